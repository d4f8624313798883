#pragma once
// Go's math/rand with a seed: the example driver's devices have made-up uuids, which are the same
// on every start of a node because this generator is.
//
// An additive lagged Fibonacci generator over 607 words of 64 bits. Go mixes the seed into a table
// of numbers that are the generator's own state far down its sequence; here that state is computed
// instead, once per process, by raising z to the number of steps modulo the recurrence's
// polynomial.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::drivers {

class GoRandom {
 public:
  explicit GoRandom(std::int64_t seed);

  std::uint64_t next63();
  /// As Go's Read: seven bytes of each number, the lowest first; one stream over all calls.
  void read(std::uint8_t* bytes, std::size_t count);

 private:
  static constexpr std::size_t kLength = 607;
  std::array<std::uint64_t, kLength> state_;
  std::size_t tap_ = 0;
  std::size_t feed_ = 334;
  std::uint64_t left_ = 0;  // of the number that read() is in
  unsigned left_bytes_ = 0;
};

/// "<prefix><uuid>" for `count` devices of a node.
std::vector<std::string> device_uuids(std::string_view prefix, std::string_view node,
                                      std::size_t count);

}  // namespace dibs::drivers
