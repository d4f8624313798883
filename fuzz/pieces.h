#pragma once
// Bytes as several inputs: in pieces, as a network delivers them, or as texts beside each other.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dibs::fuzz {

/// Hands pieces to `take` until it returns false. Their size is the first byte, 0 for all at once.
template <class Take>
void in_pieces(const std::uint8_t* data, std::size_t size, const Take& take) {
  if (size < 2) return;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t step = data[0] == 0 ? size : data[0];
  for (std::size_t next = 0; next < bytes.size(); next += step) {
    if (!take(bytes.substr(next, step))) return;
  }
}

/// Takes texts from the front: two bytes of length, the higher first, then so many bytes or what is
/// left. Where nothing is left they are empty.
class Texts {
 public:
  Texts(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  std::string_view next() {
    const std::size_t high = byte();
    const std::size_t size = high * 256 + byte();
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(text.size());
    return text;
  }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto first = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return first;
  }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

}  // namespace dibs::fuzz
