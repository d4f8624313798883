#include "cel/json_value.h"

#include "base/strings.h"
#include "cel/calendar.h"
#include "cel/libraries/patches.h"
#include "cel/operations.h"

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

namespace {

std::string key_text(const Value& key) {
  return key.is(Kind::string) ? std::string(key.text()) : show_key(key);
}

Result<json::Value> json_of_list(const List& list) {
  json::Value made = json::Value::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    DIBS_TRY(json::Value item, to_json(list.at(i)));
    made.push(std::move(item));
  }
  return made;
}

Result<json::Value> json_of_map(const Map& map) {
  json::Value made = json::Value::object();
  for (std::size_t i = 0; i < map.size(); ++i) {
    DIBS_TRY(json::Value value, to_json(map.value_at(i)));
    made.set(key_text(map.key_at(i)), std::move(value));
  }
  return made;
}

}  // namespace

Result<json::Value> to_json(const Value& value) {
  switch (value.kind()) {
    case Kind::null:
      return json::Value();
    case Kind::boolean:
      return json::Value(value.as_boolean());
    case Kind::integer:
      return json::Value(value.as_integer());
    case Kind::uinteger:
      return json::Value(value.as_uinteger());
    case Kind::real:
      return json::Value(value.as_real());
    case Kind::string:
      return json::Value(value.text());
    case Kind::bytes:
      return json::Value(base64_encode(value.text()));
    case Kind::timestamp:
      return json::Value(show_timestamp(value.timestamp_seconds(), value.timestamp_nanos()));
    case Kind::duration:
      return json::Value(show_duration(value.as_duration()));
    case Kind::list:
      return json_of_list(value.as_list());
    case Kind::map:
      return json_of_map(value.as_map());
    default:
      break;
  }
  if (const MadeObject* object = made_object(value)) {
    json::Value made = json::Value::object();
    for (const auto& [name, field] : object->fields()) {
      DIBS_TRY(json::Value converted, to_json(field));
      made.set(name, std::move(converted));
    }
    return made;
  }
  return Error::bad_request(
      cat("type conversion error from '", value.type_name(), "' to '*structpb.Value'"));
}

}  // namespace dibs::cel
