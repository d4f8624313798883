#pragma once
// Bytes in pieces, as a network delivers them: their size is the first byte, 0 for all at once.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dibs::fuzz {

/// Hands the pieces to `take` until it returns false.
template <class Take>
void in_pieces(const std::uint8_t* data, std::size_t size, const Take& take) {
  if (size < 2) return;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t step = data[0] == 0 ? size : data[0];
  for (std::size_t next = 0; next < bytes.size(); next += step) {
    if (!take(bytes.substr(next, step))) return;
  }
}

}  // namespace dibs::fuzz
