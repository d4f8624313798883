// The pool is a table in shards, each with its mutex. Since the parts of a container are shared
// before it is looked up, two containers are equal when their entries are equal bit by bit, and
// nothing is ever compared in depth.
//
// In front of it every thread has a small table of what it has found last: most subtrees of most
// objects are found there without a lock, and, since that table holds its own references, without
// touching a reference count that other threads are at as well. It is of one pool at a time: a
// thread that turns to another pool starts with an empty one.
#include "json/share.h"

#include <array>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "json/node.h"

namespace dibs::json {

using internal::Container;
using internal::hash_bytes;
using internal::new_container;
using internal::Node;

namespace {

constexpr std::size_t kLongestString = 256;
constexpr std::size_t kMostEntries = 64;  // of values: 64 items or 32 members
constexpr int kDeepest = 32;

/// The bits of a Value, without its reference.
struct Raw {
  std::uint64_t first, second;
};
static_assert(sizeof(Raw) == sizeof(Value));

/// What is looked for: the characters of a string, or the entries of a container.
struct Wanted {
  Kind kind;
  std::uint32_t size;
  const void* bytes;
  std::size_t length;
  std::uint64_t hash;
};

Wanted wanted(Kind kind, std::uint32_t size, const void* bytes, std::size_t length) {
  const std::uint64_t salt = static_cast<std::uint64_t>(kind) * 0x9e3779b97f4a7c15;
  return {kind, size, bytes, length, hash_bytes(bytes, length) ^ salt};
}

std::size_t entry_size(Kind kind) { return kind == Kind::array ? sizeof(Value) : sizeof(Member); }

}  // namespace

/// One call; has the keys to Value.
class Sharing {
 public:
  explicit Sharing(const Pool& pool);
  ~Sharing();
  Sharing(const Sharing&) = delete;
  Sharing& operator=(const Sharing&) = delete;

  Value share(const Value& value) { return copied(shared(value, 0)); }
  Value parts(Value value, std::string_view except);
  Value without(const Value& object, std::string_view key);
  static bool is_shared(const Value& value);

 private:
  friend struct Pool::Shard;
  using Shard = Pool::Shard;
  struct Local;
  static Local& local_of(const Pool& pool);

  static Raw raw(const Value& value) {
    Raw bits;
    std::memcpy(&bits, static_cast<const void*>(&value), sizeof bits);
    return bits;
  }
  /// A Value that takes over a reference.
  static Value adopted(Node* node, Kind kind) {
    Value value;
    value.payload_.node = node;
    value.length_ = Value::kNode;
    value.kind_ = kind;
    return value;
  }
  static Value copied(const Raw& bits) {
    Value value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof bits);
    if (value.has_node()) value.node()->refs.fetch_add(1, std::memory_order_relaxed);
    return value;
  }
  static const void* bytes_of(Node* node, Kind kind) {
    return kind == Kind::string ? static_cast<const void*>(node + 1)
                                : static_cast<const void*>(static_cast<Container*>(node) + 1);
  }
  static bool same(Node* node, const Wanted& what) {
    return node->size == what.size &&
           std::memcmp(bytes_of(node, what.kind), what.bytes, what.length) == 0;
  }
  static Wanted wanted_again(Node* node, Kind kind) {
    const std::size_t length = kind == Kind::string ? node->size : node->size * entry_size(kind);
    return wanted(kind, node->size, bytes_of(node, kind), length);
  }

  Raw shared(const Value& value, int depth);
  Raw shared_container(const Value& value, int depth);
  Raw find(const Wanted& what, Node* given);
  Value large_array(Container& from, int depth);
  static Value exact_copy(Value value);

  Shard* const shards_;
  Local& local_;
};

/// Open addressing; 0 is a free slot. A slot is the address of a node with the kind in its low
/// bits, which are zero otherwise; leak checkers still take it for an address.
struct Pool::Shard {
  Shard() = default;
  ~Shard() {
    for (const std::uintptr_t slot : table.slots) {
      if (slot != 0) Sharing::adopted(node_of(slot), kind_of(slot));
    }
  }
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  struct Table {
    explicit Table(std::size_t size) : slots(size), hashes(size) {}
    std::vector<std::uintptr_t> slots;
    std::vector<std::uint32_t> hashes;
    std::size_t used = 0;

    void enter(std::uintptr_t slot, std::uint32_t hash) {
      const std::size_t mask = slots.size() - 1;
      std::size_t at = hash & mask;
      while (slots[at] != 0) at = (at + 1) & mask;
      slots[at] = slot;
      hashes[at] = hash;
      ++used;
    }
  };
  Mutex mutex;
  Table table DIBS_GUARDED_BY(mutex){16};

  static constexpr std::uintptr_t kKindMask = 7;
  static Node* node_of(std::uintptr_t slot) { return reinterpret_cast<Node*>(slot & ~kKindMask); }
  static Kind kind_of(std::uintptr_t slot) { return static_cast<Kind>(slot & kKindMask); }

  /// The node with a reference for the caller, or null.
  Node* find(const Wanted& what) DIBS_REQUIRES(mutex) {
    const std::size_t mask = table.slots.size() - 1;
    const auto hash = static_cast<std::uint32_t>(what.hash);
    for (std::size_t at = hash & mask; table.slots[at] != 0; at = (at + 1) & mask) {
      const std::uintptr_t slot = table.slots[at];
      if (table.hashes[at] != hash || kind_of(slot) != what.kind) continue;
      Node* node = node_of(slot);
      if (!Sharing::same(node, what)) continue;
      node->refs.fetch_add(1, std::memory_order_relaxed);
      return node;
    }
    return nullptr;
  }

  /// Takes over a reference.
  void add(Node* node, Kind kind, std::uint64_t hash) DIBS_REQUIRES(mutex) {
    if ((table.used + 1) * 4 > table.slots.size() * 3) {
      sweep();
      if (table.used * 2 > table.slots.size()) rebuild(table.slots.size() * 2);
    }
    table.enter(reinterpret_cast<std::uintptr_t>(node) | static_cast<std::uintptr_t>(kind),
                static_cast<std::uint32_t>(hash));
  }

  /// Drops what nobody else owns: that nobody can get hold of it meanwhile is what the mutex is
  /// for.
  void sweep() DIBS_REQUIRES(mutex) {
    for (std::uintptr_t& slot : table.slots) {
      if (slot == 0) continue;
      Node* node = node_of(slot);
      if (node->refs.load(std::memory_order_acquire) > 1) continue;
      Sharing::adopted(node, kind_of(slot));
      slot = 0;
    }
    rebuild(table.slots.size());
  }

  void rebuild(std::size_t size) DIBS_REQUIRES(mutex) {
    Table made(size);
    for (std::size_t i = 0; i < table.slots.size(); ++i) {
      if (table.slots[i] != 0) made.enter(table.slots[i], table.hashes[i]);
    }
    table = std::move(made);
  }
};

/// What one thread has found last.
struct Sharing::Local {
  struct Entry {
    std::uint64_t hash = 0;
    Value value;
  };
  static constexpr std::size_t kEntries = 1024;
  /// The pool it is of, known by what that owns; it does not keep it.
  std::weak_ptr<Shard[]> pool;
  std::array<Entry, kEntries> entries;
  /// Owns what is in use by a call though it has left `entries`.
  std::vector<Value> held;
};

namespace {

constexpr std::size_t kShards = 64;
constexpr int kShardShift = 42;  // of a hash; the low 32 bits choose a slot

}  // namespace

Sharing::Sharing(const Pool& pool) : shards_(pool.shards_.get()), local_(local_of(pool)) {}

Sharing::~Sharing() { local_.held.clear(); }

Sharing::Local& Sharing::local_of(const Pool& pool) {
  thread_local const std::unique_ptr<Local> mine = std::make_unique<Local>();
  if (mine->pool.owner_before(pool.shards_) || pool.shards_.owner_before(mine->pool)) {
    mine->entries.fill({});
    mine->pool = pool.shards_;
  }
  return *mine;
}

// The node of the pool that is equal; where there is none, `given` goes there if it is set, else
// a new one.
Raw Sharing::find(const Wanted& what, Node* given) {
  Local::Entry& entry = local_.entries[what.hash % Local::kEntries];
  if (entry.hash == what.hash && entry.value.kind_ == what.kind && same(entry.value.node(), what)) {
    return raw(entry.value);
  }
  Shard& shard = shards_[(what.hash >> kShardShift) % kShards];
  Node* node = nullptr;
  {
    const MutexLock lock(shard.mutex);
    node = shard.find(what);
    if (node == nullptr) {
      if (given != nullptr) {
        node = given;
        node->refs.fetch_add(2, std::memory_order_relaxed);
      } else {
        Container* made = new_container(what.kind, what.size);
        const std::size_t values = what.length / sizeof(Value);
        for (std::size_t i = 0; i < values; ++i) {
          new (made->items() + i) Value(copied(static_cast<const Raw*>(what.bytes)[i]));
        }
        made->size = what.size;
        made->refs.store(2, std::memory_order_relaxed);
        node = made;
      }
      if (what.kind != Kind::string) {
        static_cast<Container*>(node)->shared.store(true, std::memory_order_relaxed);
      }
      shard.add(node, what.kind, what.hash);
    }
  }
  if (entry.value.has_node()) local_.held.push_back(std::move(entry.value));
  entry.hash = what.hash;
  entry.value = adopted(node, what.kind);
  return raw(entry.value);
}

// The bits are good until the end of the call: the pool's node is owned by `local_`, any other by
// `value`.
Raw Sharing::shared(const Value& value, int depth) {
  if (!value.has_node()) return raw(value);
  if (value.kind_ != Kind::string) return shared_container(value, depth);
  Node* node = value.node();
  if (node->size > kLongestString) return raw(value);
  return find(wanted_again(node, Kind::string), node);
}

Raw Sharing::shared_container(const Value& value, int depth) {
  Container& from = *value.container();
  if (from.shared.load(std::memory_order_relaxed)) return raw(value);
  const bool array = value.kind_ == Kind::array;
  if (from.size == 0) {
    local_.held.push_back(array ? Value::array() : Value::object());
    return raw(local_.held.back());
  }
  if (depth == kDeepest || (!array && from.index != nullptr)) return raw(value);
  const std::size_t values = array ? from.size : std::size_t{from.size} * 2;
  if (values > kMostEntries) {
    if (!array) return raw(value);
    local_.held.push_back(large_array(from, depth));
    return raw(local_.held.back());
  }
  // Members are pairs of values.
  Raw entries[kMostEntries];
  for (std::size_t i = 0; i < values; ++i) entries[i] = shared(from.items()[i], depth + 1);
  const std::size_t length = values * sizeof(Value);
  const bool as_it_is = from.capacity == from.size &&
                        std::memcmp(entries, static_cast<const void*>(&from + 1), length) == 0;
  return find(wanted(value.kind_, from.size, entries, length), as_it_is ? &from : nullptr);
}

Value Sharing::large_array(Container& from, int depth) {
  Container* made = new_container(Kind::array, from.size);
  for (std::size_t i = 0; i < from.size; ++i) {
    new (made->items() + i) Value(copied(shared(from.items()[i], depth + 1)));
  }
  made->size = from.size;
  made->shared.store(true, std::memory_order_relaxed);
  return adopted(made, Kind::array);
}

// Not seen by anybody else and without room to spare.
Value Sharing::exact_copy(Value value) {
  Container& from = *value.container();
  const bool only = from.refs.load(std::memory_order_acquire) == 1;
  if (only && from.capacity == from.size) return value;
  Container* made = new_container(from.kind, from.size);
  const std::size_t values = from.kind == Kind::array ? from.size : std::size_t{from.size} * 2;
  if (only) {
    std::memcpy(static_cast<void*>(made->items()), static_cast<const void*>(from.items()),
                values * sizeof(Value));
    made->size = std::exchange(from.size, 0);
  } else {
    for (std::size_t i = 0; i < values; ++i) new (made->items() + i) Value(from.items()[i]);
    made->size = from.size;
  }
  return adopted(made, made->kind);
}

Value Sharing::parts(Value value, std::string_view except) {
  if (!value.has_node() || value.kind_ == Kind::string || is_shared(value)) return value;
  Container& from = *value.container();
  if (from.size == 0 || (value.kind_ == Kind::object && from.index != nullptr)) return value;
  value = exact_copy(std::move(value));
  Container& mine = *value.container();
  bool all = true;
  auto replace = [&](Value& part) {
    const Raw bits = shared(part, 1);
    const Raw before = raw(part);
    if (std::memcmp(&bits, &before, sizeof bits) != 0) part = copied(bits);
  };
  if (mine.kind == Kind::array) {
    for (std::size_t i = 0; i < mine.size; ++i) replace(mine.items()[i]);
  } else {
    for (std::size_t i = 0; i < mine.size; ++i) {
      Member& member = mine.members()[i];
      replace(member.key_);
      if (!except.empty() && member.key() == except) {
        all = false;
      } else {
        replace(member.value_);
      }
    }
  }
  mine.shared.store(all, std::memory_order_relaxed);
  return value;
}

Value Sharing::without(const Value& object, std::string_view key) {
  if (!object.contains(key)) return parts(object, {});
  if (object.size() == 1) return Value::object();
  if (object.container()->index != nullptr) {
    Value copy = object;
    copy.erase(key);
    return copy;
  }
  Container& from = *object.container();
  Container* made = new_container(Kind::object, from.size - 1);
  Value out = adopted(made, Kind::object);
  for (std::size_t i = 0; i < from.size; ++i) {
    const Member& member = from.members()[i];
    if (member.key() == key) continue;
    Value* pair = made->items() + std::size_t{made->size} * 2;
    new (pair) Value(copied(shared(member.key_, 1)));
    new (pair + 1) Value(copied(shared(member.value_, 1)));
    ++made->size;
  }
  made->shared.store(true, std::memory_order_relaxed);
  return out;
}

bool Sharing::is_shared(const Value& value) {
  if (!value.has_node() || value.kind_ == Kind::string) return !value.has_node();
  return value.container()->shared.load(std::memory_order_relaxed);
}

Pool::Pool() : shards_(new Shard[kShards]) {}
Pool::~Pool() = default;

Value Pool::share(const Value& value) { return Sharing(*this).share(value); }
Value Pool::share_parts(Value value, std::string_view except) {
  return Sharing(*this).parts(std::move(value), except);
}
Value Pool::share_without(const Value& object, std::string_view key) {
  return Sharing(*this).without(object, key);
}

std::size_t Pool::count() const {
  std::size_t all = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const MutexLock lock(shards_[i].mutex);
    all += shards_[i].table.used;
  }
  return all;
}

void Pool::sweep() {
  // A container that goes lets its parts go, which may lie in a shard that was swept before.
  for (std::size_t before = count() + 1; count() < before;) {
    before = count();
    for (std::size_t i = 0; i < kShards; ++i) {
      const MutexLock lock(shards_[i].mutex);
      shards_[i].sweep();
    }
  }
}

bool is_shared(const Value& value) { return Sharing::is_shared(value); }

}  // namespace dibs::json
