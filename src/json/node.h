#pragma once
// The heap part of values. Of the json library alone; value.cc tells the layout.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "json/value.h"

namespace dibs::json::internal {

struct Slot {
  std::uint32_t hash;
  std::uint32_t place;  // of the member, plus one; 0 is free
};

/// Open addressing with linear probing, never more than half full.
struct Index {
  std::size_t mask;
  Slot slots[1];
};

struct Container : Node {
  std::uint32_t capacity;
  Kind kind;
  /// Everything below is in the pool of share.h. Cleared by who changes the container; one that is
  /// in the pool itself is never changed, for the pool owns it too.
  std::atomic<bool> shared;
  union {
    Index* index;     // of an object; null up to kIndexFrom members
    Container* next;  // while it waits for its end
  };

  Value* items() { return reinterpret_cast<Value*>(this + 1); }
  Member* members() { return reinterpret_cast<Member*>(this + 1); }
};

/// Empty, with one reference. Throws std::bad_alloc.
Container* new_container(Kind kind, std::size_t capacity);

/// Seeded at random, so that nobody can send what all falls into one place.
std::uint64_t hash_bytes(const void* bytes, std::size_t size);

}  // namespace dibs::json::internal
