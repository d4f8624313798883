#pragma once
// The immutable JSON value tree.
//
// A Value has value semantics: copying shares the whole subtree (one reference count), changing one
// copy never shows in another. A mutator works in place when this Value is the only owner of the
// node, else on a shallow copy of it (its children stay shared). Objects keep insertion order; a
// key occurs once. Integers that fit int64 stay exact integers; every other number is a double,
// written so that it reads back the same, in the form Go's encoding/json gives it.
//
// A const Value may be read from many threads at once. Not more than 10,000 levels deep when
// parsed; destruction does not recurse without bound.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace dibs::json {

namespace internal {
/// The counted heap part of a long string (the characters follow), and the first part of a
/// container's.
struct Node {
  std::atomic<std::uint32_t> refs;
  std::uint32_t size;
};
struct Container;
}  // namespace internal

enum class Kind : std::uint8_t { null, boolean, integer, number, string, array, object };

class Member;
class Value;

/// Read-only views for range-for over what a Value holds; valid while the Value is unchanged.
class Items {
 public:
  const Value* begin() const { return begin_; }
  const Value* end() const { return end_; }
  std::size_t size() const { return size_; }

 private:
  friend class Value;
  const Value* begin_ = nullptr;
  const Value* end_ = nullptr;
  std::size_t size_ = 0;
};

class Members {
 public:
  const Member* begin() const { return begin_; }
  const Member* end() const { return end_; }
  std::size_t size() const { return size_; }

 private:
  friend class Value;
  const Member* begin_ = nullptr;
  const Member* end_ = nullptr;
  std::size_t size_ = 0;
};

class Value {
 public:
  Value() noexcept { clear(Kind::null); }
  Value(std::nullptr_t) noexcept { clear(Kind::null); }
  Value(bool b) noexcept {
    clear(Kind::boolean);
    payload_.boolean = b;
  }
  Value(int i) noexcept : Value(static_cast<long long>(i)) {}
  Value(long i) noexcept : Value(static_cast<long long>(i)) {}
  Value(long long i) noexcept {
    clear(Kind::integer);
    payload_.integer = i;
  }
  Value(unsigned i) noexcept : Value(static_cast<long long>(i)) {}
  Value(unsigned long i) noexcept : Value(static_cast<unsigned long long>(i)) {}
  Value(unsigned long long i) noexcept;  // a double when it does not fit int64
  Value(double d) noexcept {
    clear(Kind::number);
    payload_.number = d;
  }
  Value(const char* text) : Value(std::string_view(text)) {}
  Value(std::string_view text);
  Value(const std::string& text) : Value(std::string_view(text)) {}
  Value(const void*) = delete;  // else a pointer would be a boolean
  Value(const Value& other) noexcept {
    take_bits(other);
    if (has_node()) node()->refs.fetch_add(1, std::memory_order_relaxed);
  }
  Value(Value&& other) noexcept {
    take_bits(other);
    other.clear(Kind::null);
  }
  Value& operator=(const Value& other) noexcept {
    Value copy(other);
    swap(copy);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    Value moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Value() {
    if (has_node()) release();
  }

  /// object({{"name", "x"}, {"size", 3}}); later duplicates of a key replace earlier ones.
  static Value object(std::initializer_list<std::pair<std::string_view, Value>> members = {});
  static Value array(std::initializer_list<Value> items = {});

  Kind kind() const noexcept { return kind_; }
  bool is_null() const noexcept { return kind() == Kind::null; }
  bool is_boolean() const noexcept { return kind() == Kind::boolean; }
  bool is_integer() const noexcept { return kind() == Kind::integer; }
  /// True for integers too.
  bool is_number() const noexcept { return kind() == Kind::number || is_integer(); }
  bool is_string() const noexcept { return kind() == Kind::string; }
  bool is_array() const noexcept { return kind() == Kind::array; }
  bool is_object() const noexcept { return kind() == Kind::object; }

  /// The value, or the fallback when the kind is another.
  bool as_bool(bool fallback = false) const noexcept;
  std::int64_t as_int(std::int64_t fallback = 0) const noexcept;  // truncates a double that fits
  double as_double(double fallback = 0) const noexcept;
  /// A view into this Value; valid while it lives unchanged.
  std::string_view as_string(std::string_view fallback = {}) const noexcept {
    if (kind_ != Kind::string) return fallback;
    if (!has_node()) return {bits(), length_};
    return {reinterpret_cast<const char*>(node() + 1), node()->size};
  }
  /// as_string() as a std::string of its own.
  std::string str() const { return std::string(as_string()); }

  /// Elements of an array or members of an object; 0 for everything else.
  std::size_t size() const noexcept {
    return has_node() && kind_ != Kind::string ? node()->size : 0;
  }
  bool empty() const noexcept { return size() == 0; }

  /// The member, or a null Value when there is none or this is no object. Chains safely.
  const Value& operator[](std::string_view key) const noexcept;
  [[gnu::always_inline]] inline const Value& operator[](const char* key) const noexcept;
  /// The element, or a null Value when out of range or no array.
  const Value& operator[](std::size_t index) const noexcept;
  const Value& operator[](int index) const noexcept {
    return (*this)[static_cast<std::size_t>(index)];
  }
  /// The member, or nullptr: tells an absent member from a null one.
  const Value* find(std::string_view key) const noexcept;
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }

  /// Empty for other kinds.
  Items items() const noexcept;
  Members members() const noexcept;

  // Mutators. On a Value of another kind they first turn it into an empty object (set, mut, erase
  // by key) or array (push, insert, mut by index).

  /// Sets a member; a new one goes last.
  Value& set(std::string_view key, Value value);
  /// The member for change; null and new when absent.
  Value& mut(std::string_view key);
  /// The element for change. Requires index < size().
  Value& mut(std::size_t index);
  /// False when it was not there.
  bool erase(std::string_view key);
  void push(Value value);
  /// Requires index <= size().
  void insert(std::size_t index, Value value);
  /// Requires index < size().
  void erase_at(std::size_t index);

  /// Deep equality; the order of members does not count; 1 and 1.0 are equal.
  friend bool operator==(const Value& a, const Value& b) noexcept;
  /// True when both are one and the same node, so equal without a look inside.
  bool same_node(const Value& other) const noexcept {
    return std::memcmp(bits(), other.bits(), sizeof(Value)) == 0;
  }

 private:
  friend class Builder;
  friend class Sharing;
  static constexpr std::uint8_t kNode = 0xff;  // in length_: payload_.node holds the rest
  static constexpr std::size_t kInline = 14;   // characters that fit without a node

  /// A string of kInline characters at most as the bytes of its Value.
  struct ShortKey {
    std::uint64_t words[2];
  };
  static ShortKey short_key(std::string_view text) noexcept {
    char bytes[sizeof(ShortKey)] = {};
    if (!text.empty()) std::memcpy(bytes, text.data(), text.size());
    bytes[kInline] = static_cast<char>(text.size());
    bytes[kInline + 1] = static_cast<char>(Kind::string);
    ShortKey made;
    std::memcpy(&made, bytes, sizeof made);
    return made;
  }
  const Value* find_short(ShortKey key) const noexcept;

  const char* bits() const noexcept { return reinterpret_cast<const char*>(this); }
  bool has_node() const noexcept { return length_ == kNode; }
  internal::Node* node() const noexcept { return static_cast<internal::Node*>(payload_.node); }
  internal::Container* container() const noexcept;
  void clear(Kind kind) noexcept {
    payload_.integer = 0;
    std::memset(more_, 0, sizeof more_);
    length_ = 0;
    kind_ = kind;
  }
  void take_bits(const Value& other) noexcept {
    std::memcpy(static_cast<void*>(this), static_cast<const void*>(&other), sizeof(Value));
  }
  void swap(Value& other) noexcept {
    char kept[sizeof(Value)];
    std::memcpy(kept, static_cast<const void*>(this), sizeof(Value));
    take_bits(other);
    std::memcpy(static_cast<void*>(&other), kept, sizeof(Value));
  }
  void release() noexcept;
  internal::Container* own(Kind kind, std::size_t room);

  union Payload {
    bool boolean;
    std::int64_t integer;
    double number;
    void* node;  // null for an empty container
    char text[8];
  } payload_;
  char more_[6];         // goes on from payload_.text for short strings
  std::uint8_t length_;  // of a short string, or kNode
  Kind kind_;
};
static_assert(sizeof(Value) == 16);

class Member {
 public:
  std::string_view key() const noexcept { return key_.as_string(); }
  const Value& value() const noexcept { return value_; }
  // Structured binding: for (const auto& [key, value] : object.members())
  template <std::size_t I>
  decltype(auto) get() const noexcept {
    if constexpr (I == 0)
      return key();
    else
      return (value());
  }

 private:
  friend class Value;
  friend class Builder;
  friend class Sharing;
  Value key_;  // always a string
  Value value_;
};

namespace internal {
extern const Value null;  // as good as made before any code runs: all its bits are zero
}

/// Shared by all absent members.
inline const Value& null_value() noexcept { return internal::null; }

inline const Value& Value::operator[](const char* key) const noexcept {
  // Of a literal the compiler makes all but the search.
  const std::size_t length = std::char_traits<char>::length(key);
  const Value* found = __builtin_constant_p(length) && length <= kInline
                           ? find_short(short_key({key, length}))
                           : find({key, length});
  return found != nullptr ? *found : null_value();
}

}  // namespace dibs::json

template <>
struct std::tuple_size<dibs::json::Member> : std::integral_constant<std::size_t, 2> {};
template <>
struct std::tuple_element<0, dibs::json::Member> {
  using type = std::string_view;
};
template <>
struct std::tuple_element<1, dibs::json::Member> {
  using type = const dibs::json::Value&;
};
