#include "runtime/runtime.h"

#include <array>
#include <cstring>

#include "base/strings.h"

namespace dibs::runtime {

std::uint64_t Random::next() {
  std::array<std::uint8_t, 8> bytes{};
  fill(bytes);
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

std::uint64_t Random::below(std::uint64_t bound) {
  // Numbers under 2^64 mod bound are drawn again: with them the small results would come too often.
  std::uint64_t least = (0 - bound) % bound;
  for (;;) {
    std::uint64_t number = next();
    if (number >= least) return number % bound;
  }
}

std::string make_uuid(Random& random) {
  std::array<std::uint8_t, 16> bytes{};
  random.fill(bytes);
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  std::string hex = hex_encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  for (std::size_t at : {8, 13, 18, 23}) hex.insert(at, 1, '-');
  return hex;
}

std::string make_suffix(Random& random, std::size_t n) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  suffix.reserve(n);
  for (std::size_t i = 0; i < n; ++i) suffix += kAlphabet[random.below(kAlphabet.size())];
  return suffix;
}

}  // namespace dibs::runtime
