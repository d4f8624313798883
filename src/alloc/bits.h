#pragma once
// Sets of small numbers as words of bits.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dibs::alloc {

/// Up to 128 numbers need no memory of their own: most nodes have no more devices.
class Bits {
 public:
  Bits() = default;
  explicit Bits(std::size_t size) { resize(size); }

  /// Room for `size` numbers; new ones are not in the set.
  void resize(std::size_t size) {
    const std::size_t count = (size + 63) / 64;
    if (count > kInline) {
      if (count_ <= kInline) more_.assign(few_, few_ + count_);
      more_.resize(count);
    } else if (count_ > kInline) {
      for (std::size_t w = 0; w < kInline; ++w) few_[w] = w < count ? more_[w] : 0;
      more_.clear();
    } else {
      for (std::size_t w = count; w < kInline; ++w) few_[w] = 0;
    }
    count_ = count;
  }
  std::size_t word_count() const { return count_; }
  bool test(std::size_t i) const { return (word(i / 64) >> (i % 64) & 1) != 0; }
  void set(std::size_t i) { word(i / 64) |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { word(i / 64) &= ~(std::uint64_t{1} << (i % 64)); }
  void assign(std::size_t i, bool on) { on ? set(i) : reset(i); }
  void clear() {
    for (std::size_t w = 0; w < count_; ++w) word(w) = 0;
  }
  std::uint64_t word(std::size_t w) const { return count_ <= kInline ? few_[w] : more_[w]; }
  std::uint64_t& word(std::size_t w) { return count_ <= kInline ? few_[w] : more_[w]; }
  bool none() const {
    for (std::size_t w = 0; w < count_; ++w) {
      if (word(w) != 0) return false;
    }
    return true;
  }
  std::size_t count() const {
    std::size_t total = 0;
    for (std::size_t w = 0; w < count_; ++w) {
      total += static_cast<std::size_t>(std::popcount(word(w)));
    }
    return total;
  }
  /// Adds the numbers of a set of the same size.
  void add(const Bits& other) {
    for (std::size_t w = 0; w < count_; ++w) word(w) |= other.word(w);
  }
  /// Takes the numbers of a set of the same size out; false: there were none.
  bool remove(const Bits& other) {
    bool some = false;
    for (std::size_t w = 0; w < count_; ++w) {
      some = some || (word(w) & other.word(w)) != 0;
      word(w) &= ~other.word(w);
    }
    return some;
  }
  /// Whether all numbers are in a set of the same size.
  bool within(const Bits& other) const {
    for (std::size_t w = 0; w < count_; ++w) {
      if ((word(w) & ~other.word(w)) != 0) return false;
    }
    return true;
  }
  friend bool operator==(const Bits&, const Bits&) = default;

 private:
  static constexpr std::size_t kInline = 2;
  std::size_t count_ = 0;
  std::uint64_t few_[kInline] = {0, 0};
  std::vector<std::uint64_t> more_;  // in place of `few_`, for more words than it has
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
