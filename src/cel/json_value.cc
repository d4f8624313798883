#include "cel/json_value.h"

namespace dibs::cel {

namespace {

Value element(const json::Value& item, const Node& owner);

/// Holding the container keeps its elements in place, so their text can be pointed at.
class JsonList final : public List {
 public:
  explicit JsonList(const json::Value& tree) : tree_(tree) {}
  std::size_t size() const override { return tree_.size(); }
  Value at(std::size_t index) const override { return element(tree_[index], *this); }

 private:
  const json::Value tree_;
};

class JsonMap final : public Map {
 public:
  explicit JsonMap(const json::Value& tree) : tree_(tree) {}
  std::size_t size() const override { return tree_.size(); }

  bool find(const Value& key, Value& out) const override {
    if (!key.is(Kind::string)) return false;
    const json::Value* found = tree_.find(key.text());
    if (found == nullptr) return false;
    out = element(*found, *this);
    return true;
  }

  bool contains(const Value& key) const override {
    return key.is(Kind::string) && tree_.contains(key.text());
  }

  Value key_at(std::size_t index) const override {
    return Value::shared_text(Kind::string, member(index).key(), *this);
  }
  Value value_at(std::size_t index) const override { return element(member(index).value(), *this); }

 private:
  const json::Member& member(std::size_t index) const { return tree_.members().begin()[index]; }

  const json::Value tree_;
};

Value element(const json::Value& item, const Node& owner) {
  if (item.is_string()) return Value::shared_text(Kind::string, item.as_string(), owner);
  return json_value(item);
}

}  // namespace

Value json_value(const json::Value& tree) {
  switch (tree.kind()) {
    case json::Kind::null:
      return Value::null();
    case json::Kind::boolean:
      return Value::boolean(tree.as_bool());
    case json::Kind::integer:
      return Value::integer(tree.as_int());
    case json::Kind::number:
      return Value::real(tree.as_double());
    case json::Kind::string:
      return Value::string(tree.str());
    case json::Kind::array:
      return Value::list(static_cast<const List*>(new JsonList(tree)));
    case json::Kind::object:
      return Value::map(static_cast<const Map*>(new JsonMap(tree)));
  }
  return Value::null();
}

}  // namespace dibs::cel
