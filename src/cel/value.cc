#include "cel/value.h"

#include <bit>
#include <cmath>
#include <unordered_map>

#include "cel/operations.h"

namespace dibs::cel {

namespace {

class Text final : public Node {
 public:
  explicit Text(std::string text) : text(std::move(text)) {}
  const std::string text;
};

class ArrayList final : public List {
 public:
  explicit ArrayList(std::vector<Value> items) : items_(std::move(items)) {}
  std::size_t size() const override { return items_.size(); }
  Value at(std::size_t index) const override { return items_[index]; }

 private:
  std::vector<Value> items_;
};

class Content final : public Node {
 public:
  explicit Content(Value value) : value(std::move(value)) {}
  const Value value;
};

/// Numbers that are equal by value give one hash, whatever their kind.
std::size_t hash_key(const Value& key) {
  switch (key.kind()) {
    case Kind::boolean:
      return key.as_boolean() ? 0x51ed : 0x27d4;
    case Kind::integer:
    case Kind::uinteger:
      return std::hash<std::uint64_t>()(key.as_uinteger());
    case Kind::real: {
      const double d = key.as_real();
      if (d >= 0 && d < 18446744073709551616.0)
        return std::hash<std::uint64_t>()(static_cast<std::uint64_t>(d));
      if (d < 0 && d >= -9223372036854775808.0)
        return std::hash<std::uint64_t>()(static_cast<std::uint64_t>(static_cast<std::int64_t>(d)));
      return 0;
    }
    case Kind::string:
      return std::hash<std::string_view>()(key.text());
    default:
      return 0;
  }
}

bool same_key(const Value& a, const Value& b) {
  if (a.kind() == Kind::opaque || b.kind() == Kind::opaque) return false;
  return equal(a, b).is_true();
}

}  // namespace

bool is_key(const Value& value) {
  return value.is(Kind::boolean) || value.is(Kind::integer) || value.is(Kind::uinteger) ||
         value.is(Kind::string);
}

bool List::equals(const List&, Value&) const { return false; }
bool List::plus(const List&, Value&) const { return false; }
bool Map::equals(const Map&, Value&) const { return false; }

const Value* Map::peek(const Value&) const { return nullptr; }

bool Map::contains(const Value& key) const {
  Value unused;
  return find(key, unused);
}

bool Opaque::field(std::string_view, Value&) const { return false; }
bool Opaque::identify(std::string&) const { return false; }

void Value::release() noexcept {
  if (node_->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
}

Value Value::real(double d) { return scalar(Kind::real, std::bit_cast<std::int64_t>(d)); }

double Value::as_real() const noexcept { return std::bit_cast<double>(bits_); }

Value Value::text_value(Kind kind, std::string text) {
  Value made;
  made.kind_ = kind;
  made.size_ = static_cast<std::uint32_t>(text.size());
  auto* owner = new Text(std::move(text));
  made.node_ = owner;
  made.text_ = owner->text.data();
  return made;
}

Value Value::borrow(std::string_view text, Kind kind) {
  Value made;
  made.kind_ = kind;
  made.text_ = text.data();
  made.size_ = static_cast<std::uint32_t>(text.size());
  return made;
}

Value Value::shared_text(Kind kind, std::string_view text, const Node& owner) {
  Value made = borrow(text, kind);
  owner.refs_.fetch_add(1, std::memory_order_relaxed);
  made.node_ = &owner;
  return made;
}

Value Value::piece(std::string_view part) const {
  Value made(*this);
  made.text_ = part.data();
  made.size_ = static_cast<std::uint32_t>(part.size());
  return made;
}

Value Value::list(std::vector<Value> items) {
  return list(static_cast<const List*>(new ArrayList(std::move(items))));
}

Value Value::some(Value content) {
  return of_node(Kind::optional, new Content(std::move(content)));
}

Value Value::none() { return of_node(Kind::optional, nullptr); }

Value Value::no_such_overload() { return borrow("no such overload", Kind::error); }

const Value& Value::content() const noexcept { return static_cast<const Content*>(node_)->value; }

std::string_view Value::type_name() const {
  switch (kind_) {
    case Kind::null:
      return "null_type";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::uinteger:
      return "uint";
    case Kind::real:
      return "double";
    case Kind::string:
      return "string";
    case Kind::bytes:
      return "bytes";
    case Kind::list:
      return "list";
    case Kind::map:
      return "map";
    case Kind::duration:
      return "google.protobuf.Duration";
    case Kind::timestamp:
      return "google.protobuf.Timestamp";
    case Kind::type:
      return "type";
    case Kind::optional:
      return "optional_type";
    case Kind::opaque:
      return as_opaque().type_name();
    case Kind::error:
      return "error";
  }
  return "";
}

/// Few keys are searched one after the other, many by hash.
class MapBuilder::Table final : public Map {
 public:
  std::size_t size() const override { return entries_.size(); }
  Value key_at(std::size_t index) const override { return entries_[index].first; }
  Value value_at(std::size_t index) const override { return entries_[index].second; }

  bool find(const Value& key, Value& out) const override {
    const std::size_t at = position(key);
    if (at == kAbsent) return false;
    out = entries_[at].second;
    return true;
  }

  const Value* peek(const Value& key) const override {
    const std::size_t at = position(key);
    return at == kAbsent ? nullptr : &entries_[at].second;
  }

  bool contains(const Value& key) const override { return position(key) != kAbsent; }

  void set(Value key, Value value) {
    const std::size_t at = position(key);
    if (at == kAbsent)
      add(std::move(key), std::move(value));
    else
      entries_[at].second = std::move(value);
  }

  bool add(Value key, Value value) {
    if (position(key) != kAbsent) return false;
    if (!by_hash_.empty()) by_hash_.emplace(hash_key(key), entries_.size());
    entries_.emplace_back(std::move(key), std::move(value));
    if (by_hash_.empty() && entries_.size() > kSearched) {
      for (std::size_t i = 0; i < entries_.size(); ++i)
        by_hash_.emplace(hash_key(entries_[i].first), i);
    }
    return true;
  }

 private:
  static constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);
  static constexpr std::size_t kSearched = 8;

  std::size_t position(const Value& key) const {
    if (by_hash_.empty()) {
      for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (same_key(entries_[i].first, key)) return i;
      }
      return kAbsent;
    }
    const auto [begin, end] = by_hash_.equal_range(hash_key(key));
    for (auto it = begin; it != end; ++it) {
      if (same_key(entries_[it->second].first, key)) return it->second;
    }
    return kAbsent;
  }

  std::vector<std::pair<Value, Value>> entries_;
  std::unordered_multimap<std::size_t, std::size_t> by_hash_;
};

MapBuilder::MapBuilder() : table_(new Table) {}
MapBuilder::MapBuilder(MapBuilder&& other) noexcept
    : table_(std::exchange(other.table_, nullptr)) {}
MapBuilder::~MapBuilder() { delete table_; }

bool MapBuilder::add(Value key, Value value) {
  return table_->add(std::move(key), std::move(value));
}

void MapBuilder::set(Value key, Value value) { table_->set(std::move(key), std::move(value)); }

bool MapBuilder::contains(const Value& key) const { return table_->contains(key); }

Value MapBuilder::build() {
  return Value::map(static_cast<const Map*>(std::exchange(table_, new Table)));
}

}  // namespace dibs::cel
