#pragma once
// The bytes of a value, kept small.
//
// Objects of one kind are mostly alike: the pods of a deployment differ in a name, an id and a few
// times. So a value is kept as the differences from a base, a value of the same kind that came
// before, wherever that takes less than half the room; otherwise as it is. Reading one copies
// pieces from two places instead of one.
//
// Bases are found among the last few of each kind of key, in a pool that a store has for all of its
// values. A base lives as long as a value that needs it, and is let go from the pool when newer
// ones serve better.
//
// Values are immutable and safe to read from many threads. They may outlive the pool.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dibs::store {

class ValueBase;

/// Thread-safe.
class ValuePool {
 public:
  ValuePool();
  ~ValuePool();
  ValuePool(const ValuePool&) = delete;
  ValuePool& operator=(const ValuePool&) = delete;

 private:
  friend class ValueBytes;
  class Bases;
  const std::unique_ptr<Bases> bases_;
};

class ValueBytes {
 public:
  /// Keeps `key` and the value in one block.
  ValueBytes(ValuePool& pool, std::string_view key, std::string_view bytes);
  ~ValueBytes();
  ValueBytes(const ValueBytes&) = delete;
  ValueBytes& operator=(const ValueBytes&) = delete;

  std::string_view key() const { return {block_, key_size_}; }

  std::size_t size() const { return size_; }
  /// All of them. A copy: do not take a view of it.
  std::string operator*() const;
  void append_to(std::string& out) const;
  /// The first ones, `count` at most.
  std::string head(std::size_t count) const;
  /// Read like a pointer to the bytes.
  const ValueBytes* operator->() const { return this; }

  /// What it takes in memory, a base that was made for another value left out.
  std::size_t memory() const { return key_size_ + kept_ + (is_base_ ? size_ : 0); }

 private:
  template <typename Piece>
  void each_piece(Piece piece) const;

  char* block_ = nullptr;
  ValueBase* base_ = nullptr;  // null: the bytes stand in the block as they are
  std::uint32_t key_size_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t kept_ = 0;  // bytes in the block behind the key
  bool is_base_ = false;    // the base was made for it
};

}  // namespace dibs::store
