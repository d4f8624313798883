#pragma once
// Sets of small numbers as words of bits.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dibs::alloc {

class Bits {
 public:
  Bits() = default;
  explicit Bits(std::size_t size) : words_((size + 63) / 64) {}

  /// Room for `size` numbers; new ones are not in the set.
  void resize(std::size_t size) { words_.resize((size + 63) / 64); }
  std::size_t word_count() const { return words_.size(); }
  bool test(std::size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  void set(std::size_t i) { words_[i / 64] |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { words_[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  void assign(std::size_t i, bool on) { on ? set(i) : reset(i); }
  void clear() { words_.assign(words_.size(), 0); }
  std::uint64_t word(std::size_t w) const { return words_[w]; }
  std::uint64_t& word(std::size_t w) { return words_[w]; }
  bool none() const {
    for (const std::uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }
  std::size_t count() const {
    std::size_t total = 0;
    for (const std::uint64_t word : words_) total += static_cast<std::size_t>(std::popcount(word));
    return total;
  }
  friend bool operator==(const Bits&, const Bits&) = default;

 private:
  std::vector<std::uint64_t> words_;
};

template <typename Visit>
void each_in(const Bits& bits, Visit visit) {
  for (std::size_t w = 0; w < bits.word_count(); ++w) {
    for (std::uint64_t left = bits.word(w); left != 0; left &= left - 1) {
      visit(static_cast<std::uint32_t>(w * 64) +
            static_cast<std::uint32_t>(std::countr_zero(left)));
    }
  }
}

}  // namespace dibs::alloc
