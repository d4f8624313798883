// Layout. A Value is 16 bytes. Short strings lie in the first 14 of them; a longer string, a filled
// array and a filled object is a pointer to one heap block that begins with a reference count:
//   string  Node, characters
//   array   Container, Values
//   object  Container, Members; above kIndexFrom members also a hash index in a block of its own
// Values and Members have no address of their own to care for, so blocks grow by realloc.
#include "json/value.h"

#include <cassert>
#include <cstdlib>
#include <limits>
#include <new>
#include <random>
#include <unordered_set>
#include <vector>

#include "json/builder.h"
#include "json/node.h"

namespace dibs::json {

namespace {

using internal::Container;
using internal::Index;
using internal::new_container;
using internal::Node;
using internal::Slot;

constexpr std::size_t kIndexFrom = 24;
constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max() / 2;

void* allocate(std::size_t bytes) {
  void* block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

std::size_t entry_size(Kind kind) { return kind == Kind::array ? sizeof(Value) : sizeof(Member); }

__extension__ using Wide = unsigned __int128;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

struct Seed {
  std::uint64_t a, b;
  Seed() {
    std::random_device device;
    a = (std::uint64_t{device()} << 32 | device()) | 1;
    b = (std::uint64_t{device()} << 32 | device()) | 1;
  }
};

std::uint64_t load64(const char* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// memcpy of a few bytes without the call: two words that overlap in the middle.
void copy_short(char* to, const char* from, std::size_t size) {
  if (size >= 8) {
    const std::uint64_t first = load64(from);
    const std::uint64_t last = load64(from + size - 8);
    std::memcpy(to, &first, 8);
    std::memcpy(to + size - 8, &last, 8);
  } else if (size >= 4) {
    std::uint32_t first, last;
    std::memcpy(&first, from, 4);
    std::memcpy(&last, from + size - 4, 4);
    std::memcpy(to, &first, 4);
    std::memcpy(to + size - 4, &last, 4);
  } else if (size > 0) {
    to[0] = from[0];
    to[size / 2] = from[size / 2];
    to[size - 1] = from[size - 1];
  }
}

std::uint32_t hash_of(std::string_view text) {
  return static_cast<std::uint32_t>(internal::hash_bytes(text.data(), text.size()) >> 16);
}

void index_add(Index& index, std::uint32_t hash, std::size_t place) {
  std::size_t at = hash & index.mask;
  while (index.slots[at].place != 0) at = (at + 1) & index.mask;
  index.slots[at] = {hash, static_cast<std::uint32_t>(place + 1)};
}

Index* new_index(std::size_t for_members) {
  std::size_t slots = 64;
  while (slots < for_members * 2) slots *= 2;
  const std::size_t bytes = sizeof(Index) + slots * sizeof(Slot);
  auto* index = static_cast<Index*>(std::calloc(1, bytes));
  if (index == nullptr) throw std::bad_alloc();
  index->mask = slots - 1;
  return index;
}

// The index of an object with more than kIndexFrom members, with room for its capacity.
void build_index(Container& object) {
  Index* index = new_index(object.capacity);
  for (std::size_t i = 0; i < object.size; ++i) {
    index_add(*index, hash_of(object.members()[i].key()), i);
  }
  std::free(object.index);
  object.index = index;
}

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

std::size_t place_of(Container& object, std::string_view key) {
  Member* members = object.members();
  if (object.index == nullptr) {
    if (Builder::fits_inline(key)) {
      // A short string is its 16 bytes, so equal keys are equal bits.
      const Value wanted(key);
      for (std::size_t i = 0; i < object.size; ++i) {
        if (Builder::key(members[i]).same_node(wanted)) return i;
      }
    } else {
      for (std::size_t i = 0; i < object.size; ++i) {
        if (members[i].key() == key) return i;
      }
    }
    return kAbsent;
  }
  const std::uint32_t hash = hash_of(key);
  const Index& index = *object.index;
  for (std::size_t at = hash & index.mask; index.slots[at].place != 0; at = (at + 1) & index.mask) {
    const Slot slot = index.slots[at];
    if (slot.hash == hash && members[slot.place - 1].key() == key) return slot.place - 1;
  }
  return kAbsent;
}

Container* grow(Container* container, std::size_t room) {
  if (room <= container->capacity) return container;
  std::size_t capacity = std::size_t{container->capacity} + container->capacity / 2 + 2;
  if (capacity < room) capacity = room;
  if (capacity > kMost) throw std::bad_alloc();
  const Kind kind = container->kind;
  void* block =
      std::realloc(static_cast<void*>(container), sizeof(Container) + capacity * entry_size(kind));
  if (block == nullptr) throw std::bad_alloc();
  auto* grown = static_cast<Container*>(block);
  grown->capacity = static_cast<std::uint32_t>(capacity);
  if (grown->index != nullptr) build_index(*grown);
  return grown;
}

// A shallow copy: the entries are shared with the original.
Container* copy_of(Container& from, std::size_t room) {
  Container* made = new_container(from.kind, room > from.size ? room : from.size);
  if (from.kind == Kind::array) {
    for (std::size_t i = 0; i < from.size; ++i) new (made->items() + i) Value(from.items()[i]);
  } else {
    for (std::size_t i = 0; i < from.size; ++i) new (made->members() + i) Member(from.members()[i]);
  }
  made->size = from.size;
  if (from.kind == Kind::object && made->size > kIndexFrom) build_index(*made);
  return made;
}

Member* append(Container& object, Value key) {
  const std::size_t place = object.size;
  auto* member = new (object.members() + place) Member;
  Builder::set_key(*member, std::move(key));
  ++object.size;
  if (object.index != nullptr) {
    index_add(*object.index, hash_of(member->key()), place);
  } else if (object.size > kIndexFrom) {
    build_index(object);
  }
  return member;
}

void open_gap(void* entries, std::size_t size, std::size_t at, std::size_t entry) {
  char* from = static_cast<char*>(entries) + at * entry;
  std::memmove(from + entry, from, (size - at) * entry);
}

void close_gap(void* entries, std::size_t size, std::size_t at, std::size_t entry) {
  char* to = static_cast<char*>(entries) + at * entry;
  std::memmove(to, to + entry, (size - at - 1) * entry);
}

// Takes the member at `place`, which is still there, out of the index; those after it move down by
// one.
void index_remove(Container& object, std::size_t place) {
  Index& index = *object.index;
  const std::uint32_t wanted = static_cast<std::uint32_t>(place + 1);
  std::size_t hole = hash_of(object.members()[place].key()) & index.mask;
  while (index.slots[hole].place != wanted) hole = (hole + 1) & index.mask;
  for (std::size_t at = (hole + 1) & index.mask; index.slots[at].place != 0;
       at = (at + 1) & index.mask) {
    const std::size_t home = index.slots[at].hash & index.mask;
    // An entry may fill the hole unless its home lies after the hole.
    if (((at - home) & index.mask) >= ((at - hole) & index.mask)) {
      index.slots[hole] = index.slots[at];
      hole = at;
    }
  }
  index.slots[hole].place = 0;
  if (place + 1 == object.size) return;
  for (std::size_t at = 0; at <= index.mask; ++at) {
    if (index.slots[at].place > wanted) --index.slots[at].place;
  }
}

bool drop_reference(Node& node) { return node.refs.fetch_sub(1, std::memory_order_acq_rel) == 1; }

// As doubles: a double above 2^53 is written with zeros for its last digits and reads back as an
// integer next to it.
bool equal_numbers(std::int64_t i, double d) { return static_cast<double>(i) == d; }

}  // namespace

Container* internal::new_container(Kind kind, std::size_t capacity) {
  if (capacity > kMost) throw std::bad_alloc();
  void* block = allocate(sizeof(Container) + capacity * entry_size(kind));
  auto* made = new (block) Container;
  made->refs.store(1, std::memory_order_relaxed);
  made->size = 0;
  made->capacity = static_cast<std::uint32_t>(capacity);
  made->kind = kind;
  made->shared.store(false, std::memory_order_relaxed);
  made->index = nullptr;
  return made;
}

std::uint64_t internal::hash_bytes(const void* bytes, std::size_t size) {
  static const Seed seed;
  const char* from = static_cast<const char*>(bytes);
  std::size_t left = size;
  std::uint64_t hash = seed.a ^ size;
  for (; left > 16; from += 16, left -= 16) {
    hash = mix(load64(from) ^ seed.b, load64(from + 8) ^ hash);
  }
  char last[16] = {};
  if (left > 0) std::memcpy(last, from, left);
  hash = mix(load64(last) ^ seed.b, load64(last + 8) ^ hash);
  return mix(hash ^ seed.a, seed.b);
}

Value::Value(unsigned long long i) noexcept {
  if (i <= static_cast<unsigned long long>(std::numeric_limits<std::int64_t>::max())) {
    clear(Kind::integer);
    payload_.integer = static_cast<std::int64_t>(i);
  } else {
    clear(Kind::number);
    payload_.number = static_cast<double>(i);
  }
}

Value::Value(std::string_view text) {
  clear(Kind::string);
  if (text.size() <= kInline) {
    copy_short(reinterpret_cast<char*>(this), text.data(), text.size());
    length_ = static_cast<std::uint8_t>(text.size());
    return;
  }
  if (text.size() > kMost) throw std::bad_alloc();
  auto* made = new (allocate(sizeof(Node) + text.size())) Node;
  made->refs.store(1, std::memory_order_relaxed);
  made->size = static_cast<std::uint32_t>(text.size());
  std::memcpy(static_cast<void*>(made + 1), text.data(), text.size());
  payload_.node = made;
  length_ = kNode;
}

Container* Value::container() const noexcept { return static_cast<Container*>(payload_.node); }

// Containers whose last reference goes wait in a list, so the depth of a tree costs no stack.
void Value::release() noexcept {
  if (!drop_reference(*node())) return;
  if (kind_ == Kind::string) {
    std::free(payload_.node);
    return;
  }
  Container* waiting = nullptr;
  auto enqueue = [&](Container* dead) {
    if (dead->kind == Kind::object) std::free(dead->index);
    dead->next = waiting;
    waiting = dead;
  };
  auto drop = [&](Value& child) {
    if (!child.has_node() || !drop_reference(*child.node())) return;
    if (child.kind_ == Kind::string) {
      std::free(child.payload_.node);
    } else {
      enqueue(child.container());
    }
  };
  enqueue(container());
  while (waiting != nullptr) {
    Container* dead = waiting;
    waiting = dead->next;
    if (dead->kind == Kind::array) {
      for (std::size_t i = 0; i < dead->size; ++i) drop(dead->items()[i]);
    } else {
      for (std::size_t i = 0; i < dead->size; ++i) {
        drop(dead->members()[i].key_);
        drop(dead->members()[i].value_);
      }
    }
    std::free(static_cast<void*>(dead));
  }
}

// This value as a container of the kind that nobody else sees, with room for as many entries.
Container* Value::own(Kind kind, std::size_t room) {
  if (kind_ != kind) *this = kind == Kind::array ? array() : object();
  if (!has_node()) {
    payload_.node = new_container(kind, room);
    length_ = kNode;
  } else if (node()->refs.load(std::memory_order_acquire) == 1) {
    payload_.node = grow(container(), room);
    container()->shared.store(false, std::memory_order_relaxed);
  } else {
    Container* old = container();
    // Most copies get one or two members more, and then live long.
    Container* copy = copy_of(*old, room > old->size ? room + 1 : old->size);
    release();
    payload_.node = copy;
  }
  return container();
}

Value Value::object(std::initializer_list<std::pair<std::string_view, Value>> members) {
  Value made;
  made.kind_ = Kind::object;
  if (members.size() == 0) return made;
  made.own(Kind::object, members.size());
  for (const auto& [key, value] : members) made.set(key, value);
  return made;
}

Value Value::array(std::initializer_list<Value> items) {
  Value made;
  made.kind_ = Kind::array;
  if (items.size() == 0) return made;
  made.own(Kind::array, items.size());
  for (const Value& item : items) made.push(item);
  return made;
}

bool Value::as_bool(bool fallback) const noexcept {
  return kind_ == Kind::boolean ? payload_.boolean : fallback;
}

std::int64_t Value::as_int(std::int64_t fallback) const noexcept {
  if (kind_ == Kind::integer) return payload_.integer;
  if (kind_ != Kind::number) return fallback;
  const double d = payload_.number;
  if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0)) return fallback;
  return static_cast<std::int64_t>(d);
}

double Value::as_double(double fallback) const noexcept {
  if (kind_ == Kind::number) return payload_.number;
  return kind_ == Kind::integer ? static_cast<double>(payload_.integer) : fallback;
}

const Value internal::null;

const Value* Value::find(std::string_view key) const noexcept {
  if (kind_ != Kind::object || !has_node()) return nullptr;
  const std::size_t place = place_of(*container(), key);
  return place == kAbsent ? nullptr : &container()->members()[place].value_;
}

const Value* Value::find_short(ShortKey key) const noexcept {
  if (kind_ != Kind::object || !has_node()) return nullptr;
  Container& object = *container();
  if (object.index != nullptr) {
    const char* bytes = reinterpret_cast<const char*>(&key);
    return find({bytes, static_cast<std::size_t>(bytes[kInline])});
  }
  Member* members = object.members();
  for (std::size_t i = 0; i < object.size; ++i) {
    if (std::memcmp(members[i].key_.bits(), &key, sizeof key) == 0) return &members[i].value_;
  }
  return nullptr;
}

const Value& Value::operator[](std::string_view key) const noexcept {
  const Value* found = find(key);
  return found != nullptr ? *found : null_value();
}

const Value& Value::operator[](std::size_t index) const noexcept {
  if (kind_ != Kind::array || index >= size()) return null_value();
  return container()->items()[index];
}

Items Value::items() const noexcept {
  Items view;
  if (kind_ == Kind::array && has_node()) {
    view.begin_ = container()->items();
    view.size_ = container()->size;
    view.end_ = view.begin_ + view.size_;
  }
  return view;
}

Members Value::members() const noexcept {
  Members view;
  if (kind_ == Kind::object && has_node()) {
    view.begin_ = container()->members();
    view.size_ = container()->size;
    view.end_ = view.begin_ + view.size_;
  }
  return view;
}

Value& Value::set(std::string_view key, Value value) {
  Value& place = mut(key);
  place = std::move(value);
  return place;
}

Value& Value::mut(std::string_view key) {
  if (kind_ == Kind::object && has_node()) {
    const std::size_t place = place_of(*container(), key);
    if (place != kAbsent) return own(Kind::object, 0)->members()[place].value_;
  }
  // Before anything moves: the key may be a view into this very value.
  Value made_key(key);
  Container* mine = own(Kind::object, kind_ == Kind::object ? size() + 1 : 1);
  return Builder::value(*append(*mine, std::move(made_key)));
}

Value& Value::mut(std::size_t index) {
  assert(kind_ == Kind::array && index < size());
  return own(Kind::array, 0)->items()[index];
}

bool Value::erase(std::string_view key) {
  if (kind_ != Kind::object) *this = object();
  if (!has_node()) return false;
  const std::size_t place = place_of(*container(), key);
  if (place == kAbsent) return false;
  Container* mine = own(Kind::object, 0);
  if (mine->index != nullptr) index_remove(*mine, place);
  mine->members()[place].~Member();
  close_gap(mine->members(), mine->size, place, sizeof(Member));
  --mine->size;
  return true;
}

void Value::push(Value value) {
  Container* mine = own(Kind::array, kind_ == Kind::array ? size() + 1 : 1);
  new (mine->items() + mine->size) Value(std::move(value));
  ++mine->size;
}

void Value::insert(std::size_t index, Value value) {
  assert(index <= (kind_ == Kind::array ? size() : 0));
  Container* mine = own(Kind::array, kind_ == Kind::array ? size() + 1 : 1);
  open_gap(mine->items(), mine->size, index, sizeof(Value));
  new (mine->items() + index) Value(std::move(value));
  ++mine->size;
}

void Value::erase_at(std::size_t index) {
  assert(kind_ == Kind::array && index < size());
  Container* mine = own(Kind::array, 0);
  mine->items()[index].~Value();
  close_gap(mine->items(), mine->size, index, sizeof(Value));
  --mine->size;
}

bool operator==(const Value& a, const Value& b) noexcept {
  using Pair = std::pair<const Value*, const Value*>;
  // Small values are compared at once; true when the pair has to be looked into.
  bool same = true;
  auto differs_inside = [&](const Value& x, const Value& y) {
    if (x.same_node(y)) return false;
    if (x.kind_ != y.kind_) {
      if (x.kind_ == Kind::integer && y.kind_ == Kind::number) {
        same = equal_numbers(x.payload_.integer, y.payload_.number);
      } else if (x.kind_ == Kind::number && y.kind_ == Kind::integer) {
        same = equal_numbers(y.payload_.integer, x.payload_.number);
      } else {
        same = false;
      }
      return false;
    }
    switch (x.kind_) {
      case Kind::number:
        same = x.payload_.number == y.payload_.number;
        return false;
      case Kind::string:
        same = x.as_string() == y.as_string();
        return false;
      case Kind::array:
      case Kind::object:
        same = x.size() == y.size();
        return same && x.size() > 0;
      default:
        same = false;
        return false;
    }
  };
  if (!differs_inside(a, b)) return same;

  // A tree that shares subtrees can be far larger than its nodes; after a while every pair of nodes
  // is looked into once only.
  constexpr std::size_t kRememberFrom = 4096;
  struct PairHash {
    std::size_t operator()(const std::pair<void*, void*>& p) const {
      return reinterpret_cast<std::size_t>(p.first) * 31 + reinterpret_cast<std::size_t>(p.second);
    }
  };
  std::unordered_set<std::pair<void*, void*>, PairHash> seen;
  std::size_t steps = 0;
  std::vector<Pair> left{{&a, &b}};
  while (!left.empty()) {
    const auto [x, y] = left.back();
    left.pop_back();
    if (++steps > kRememberFrom && !seen.emplace(x->payload_.node, y->payload_.node).second)
      continue;
    Container& one = *x->container();
    Container& two = *y->container();
    for (std::size_t i = 0; i < one.size; ++i) {
      const Value* first;
      const Value* second;
      if (x->kind_ == Kind::array) {
        first = &one.items()[i];
        second = &two.items()[i];
      } else {
        const Member& member = one.members()[i];
        first = &member.value();
        const Member& beside = two.members()[i];
        second = beside.key() == member.key() ? &beside.value() : y->find(member.key());
        if (second == nullptr) return false;
      }
      if (differs_inside(*first, *second)) left.emplace_back(first, second);
      if (!same) return false;
    }
  }
  return true;
}

Value Builder::make(Kind kind, std::size_t room) {
  Value made = kind == Kind::array ? Value::array() : Value::object();
  if (room > 0) made.own(kind, room);
  return made;
}

Value* Builder::push(Value& array) {
  Container* mine = array.own(Kind::array, array.size() + 1);
  return new (mine->items() + mine->size++) Value;
}

Value* Builder::add(Value& object, Value key) {
  Container* mine = object.own(Kind::object, object.size() + 1);
  const std::string_view text = key.as_string();
  if (place_of(*mine, text) != kAbsent) return nullptr;
  return &append(*mine, std::move(key))->value_;
}

Value* Builder::add_new(Value& object, Value key) {
  Container* mine = object.own(Kind::object, object.size() + 1);
  return &append(*mine, std::move(key))->value_;
}

Value Builder::take(std::span<Member> members) {
  Value made = make(Kind::object, members.size());
  if (members.empty()) return made;
  Container* mine = made.container();
  std::memcpy(static_cast<void*>(mine->members()), static_cast<const void*>(members.data()),
              members.size_bytes());
  mine->size = static_cast<std::uint32_t>(members.size());
  for (Member& member : members) new (&member) Member;
  if (mine->size > kIndexFrom) build_index(*mine);
  return made;
}

}  // namespace dibs::json
