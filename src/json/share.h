#pragma once
// One copy of what is equal: a pool of subtrees and long strings.
//
// Objects that are kept for long are alike: pods made from one template have the same containers,
// tolerations and volumes, and all of them have the same keys. share() gives a value that is equal
// to its argument and made, as far as possible, of what the pool has already. What it makes for
// this is exactly as large as it must be.
//
// The pool owns a reference to everything in it, so whoever changes a shared value works on a copy
// as always. What nobody but the pool owns any more goes when the pool needs the room. A subtree
// that has been through a pool is known by a mark, so a value of which little has changed since
// costs little; one that comes from another pool is left as it is.
//
// Those who keep the same objects share a pool: the server of a cluster has one and hands it to
// clients in its process. Values may outlive it.
//
// Thread-safe. Objects of many members, very long strings and what lies very deep are left as they
// are.

#include <cstddef>
#include <memory>
#include <string_view>

#include "json/value.h"

namespace dibs::json {

class Sharing;

class Pool {
 public:
  Pool();
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// For a value that is likely to occur again as a whole.
  Value share(const Value& value);

  /// For a value that as a whole is like no other: its items or members are shared, one by one, but
  /// it does not go into the pool itself. The member `except` stays as it is.
  Value share_parts(Value value, std::string_view except = {});

  /// The same for a copy that lacks the member.
  Value share_without(const Value& object, std::string_view key);

  /// Values and strings in the pool.
  std::size_t count() const;
  /// Lets everything go that only the pool owns, as it happens by itself from time to time; threads
  /// keep a few of those that they have met last.
  void sweep();

 private:
  friend class Sharing;
  struct Shard;
  std::shared_ptr<Shard[]> shards_;
};

/// True where sharing would find nothing more to do.
bool is_shared(const Value& value);

}  // namespace dibs::json
