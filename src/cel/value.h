#pragma once
// Values of the expression language.
//
// A Value is 24 bytes: scalars, durations and timestamps are inline, text is a view with an owner,
// everything else is a counted node. Copying never copies content. Text made with borrow() has no
// owner: whoever made it keeps the bytes alive as long as the value or anything derived from it is
// in use. An error inside the language is a value too (Kind::error), so that logic can absorb it.
//
// Immutable once made; safe to read from many threads.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dibs::cel {

enum class Kind : std::uint8_t {
  null,
  boolean,
  integer,
  uinteger,
  real,
  string,
  bytes,
  list,
  map,
  duration,
  timestamp,
  type,
  optional,
  opaque,
  error
};

class Value;

/// The counted heap part of a value.
class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

 private:
  friend class Value;
  mutable std::atomic<std::uint32_t> refs_{1};
};

class List : public Node {
 public:
  virtual std::size_t size() const = 0;
  /// Requires index < size().
  virtual Value at(std::size_t index) const = 0;
  /// Lists that are sets, or keyed, say here what `this == other` and `this + other` are. False: as
  /// for any list.
  virtual bool equals(const List& other, Value& out) const;
  virtual bool plus(const List& other, Value& out) const;
};

/// Keys are booleans, ints, uints and strings; numbers are the same key when their value is. What a
/// map does follows from its class and its entries.
class Map : public Node {
 public:
  virtual std::size_t size() const = 0;
  /// What m[key] and m.key give; false where that is an error.
  virtual bool find(const Value& key, Value& out) const = 0;
  /// The value in place, where the map holds one. Null: ask find().
  virtual const Value* peek(const Value& key) const;
  /// `key in m`.
  virtual bool contains(const Value& key) const;
  /// In an order of the map's own that does not change.
  virtual Value key_at(std::size_t index) const = 0;
  virtual Value value_at(std::size_t index) const = 0;
  /// What `this == other` is where entries alone do not decide. False: they do.
  virtual bool equals(const Map& other, Value& out) const;
};

/// A value of a type that the language knows by name only.
class Opaque : public Node {
 public:
  virtual std::string_view type_name() const = 0;
  /// `other` is of the same type name.
  virtual bool equals(const Opaque& other) const = 0;
  /// How equality with a value of another kind ends: with false, or (as the types that Kubernetes
  /// adds do) with the error "no such overload".
  virtual bool equals_only_itself() const { return true; }
  /// False where equality with this other value of the same type is an error, too.
  virtual bool comparable_with(const Opaque&) const { return true; }
  /// What counts as its size where costs go by that.
  virtual std::uint64_t cost_size() const { return 1; }
  /// Fields, for object types. False: no such field.
  virtual bool field(std::string_view name, Value& out) const;
  /// Appends what tells this value from others of its class. False: its address only.
  virtual bool identify(std::string& out) const;
};

class Value {
 public:
  Value() noexcept = default;
  Value(const Value& other) noexcept : Value(other, 0) {
    if (node_ != nullptr) node_->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  Value(Value&& other) noexcept : Value(other, 0) {
    other.node_ = nullptr;
    other.kind_ = Kind::null;
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
    if (node_ != nullptr) release();
  }

  static Value null() { return {}; }
  static Value boolean(bool b) { return scalar(Kind::boolean, b ? 1 : 0); }
  static Value integer(std::int64_t i) { return scalar(Kind::integer, i); }
  static Value uinteger(std::uint64_t u) {
    return scalar(Kind::uinteger, static_cast<std::int64_t>(u));
  }
  static Value real(double d);
  static Value duration(std::int64_t nanoseconds) { return scalar(Kind::duration, nanoseconds); }
  /// `zone`: minutes east of UTC, in which it is written; it counts for nothing else.
  static Value timestamp(std::int64_t seconds, std::uint32_t nanoseconds = 0,
                         std::int16_t zone = 0) {
    Value made = scalar(Kind::timestamp, seconds);
    made.size_ = nanoseconds;
    made.zone_ = zone;
    return made;
  }
  static Value string(std::string text) { return text_value(Kind::string, std::move(text)); }
  static Value bytes(std::string bytes) { return text_value(Kind::bytes, std::move(bytes)); }
  static Value type(std::string name) { return text_value(Kind::type, std::move(name)); }
  /// Text that someone else keeps alive.
  static Value borrow(std::string_view text, Kind kind = Kind::string);
  /// Text that lies within a node, which stays alive with the value.
  static Value shared_text(Kind kind, std::string_view text, const Node& owner);
  /// A piece of this text (or bytes), sharing its owner.
  Value piece(std::string_view part) const;
  static Value list(std::vector<Value> items);
  /// Takes over the node.
  static Value list(const List* node) { return of_node(Kind::list, node); }
  static Value map(const Map* node) { return of_node(Kind::map, node); }
  static Value opaque(const Opaque* node) { return of_node(Kind::opaque, node); }
  static Value some(Value content);
  static Value none();
  static Value error(std::string message) { return text_value(Kind::error, std::move(message)); }
  static Value no_such_overload();

  Kind kind() const noexcept { return kind_; }
  bool is_error() const noexcept { return kind_ == Kind::error; }
  bool is(Kind kind) const noexcept { return kind_ == kind; }
  bool is_true() const noexcept { return kind_ == Kind::boolean && bits_ != 0; }
  bool is_false() const noexcept { return kind_ == Kind::boolean && bits_ == 0; }
  bool is_number() const noexcept { return kind_ >= Kind::integer && kind_ <= Kind::real; }

  // Each requires the kind it is named after.
  bool as_boolean() const noexcept { return bits_ != 0; }
  std::int64_t as_integer() const noexcept { return bits_; }
  std::uint64_t as_uinteger() const noexcept { return static_cast<std::uint64_t>(bits_); }
  double as_real() const noexcept;
  std::int64_t as_duration() const noexcept { return bits_; }
  std::int64_t timestamp_seconds() const noexcept { return bits_; }
  std::uint32_t timestamp_nanos() const noexcept { return size_; }
  std::int16_t timestamp_zone() const noexcept { return zone_; }
  /// Of a string, bytes, type or error.
  std::string_view text() const noexcept { return {text_, size_}; }
  const List& as_list() const noexcept { return *static_cast<const List*>(node_); }
  const Map& as_map() const noexcept { return *static_cast<const Map*>(node_); }
  const Opaque& as_opaque() const noexcept { return *static_cast<const Opaque*>(node_); }
  bool has_content() const noexcept { return node_ != nullptr; }
  /// Requires an optional with content.
  const Value& content() const noexcept;

  /// What type(x) is called: "int", "map", "google.protobuf.Timestamp", "net.IP".
  std::string_view type_name() const;

 private:
  Value(const Value& other, int) noexcept
      : bits_(other.bits_),
        node_(other.node_),
        size_(other.size_),
        kind_(other.kind_),
        zone_(other.zone_) {}
  static Value scalar(Kind kind, std::int64_t bits) {
    Value made;
    made.kind_ = kind;
    made.bits_ = bits;
    return made;
  }
  static Value of_node(Kind kind, const Node* node) {
    Value made;
    made.kind_ = kind;
    made.node_ = node;
    return made;
  }
  static Value text_value(Kind kind, std::string text);
  void swap(Value& other) noexcept {
    std::swap(bits_, other.bits_);
    std::swap(node_, other.node_);
    std::swap(size_, other.size_);
    std::swap(kind_, other.kind_);
    std::swap(zone_, other.zone_);
  }
  void release() noexcept;

  union {
    std::int64_t bits_ = 0;
    const char* text_;
  };
  const Node* node_ = nullptr;
  std::uint32_t size_ = 0;
  Kind kind_ = Kind::null;
  std::int16_t zone_ = 0;
};
static_assert(sizeof(Value) == 24);

/// Puts a map together. Keys keep the order in which they came.
class MapBuilder {
 public:
  MapBuilder();
  ~MapBuilder();
  MapBuilder(MapBuilder&&) noexcept;
  /// False when the key is there already; the first value stays.
  bool add(Value key, Value value);
  /// Replaces the value where the key is there already.
  void set(Value key, Value value);
  bool contains(const Value& key) const;
  Value build();

 private:
  class Table;
  Table* table_;
};

/// True for kinds that may be keys of a map.
bool is_key(const Value& value);

}  // namespace dibs::cel
