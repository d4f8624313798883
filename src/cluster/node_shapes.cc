#include "cluster/node_shapes.h"

#include <map>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::cluster {
namespace {

using json::Value;

const client::Gvr kNodes{"", "v1", "nodes"};
constexpr int kRaces = 20;

Value shape_of(const NodeGroup& group) {
  Value shape = Value::object();
  if (!group.labels.empty()) {
    Value labels = Value::object();
    for (const auto& [key, value] : group.labels) labels.set(key, value);
    shape.set("labels", std::move(labels));
  }
  if (!group.taints.empty()) shape.set("taints", group.taints);
  return shape;
}

Value shape_before(const Value& node) {
  const std::string_view text = node["metadata"]["annotations"][kShapeAnnotation].as_string();
  auto shape = text.empty() ? Result<Value>(Value::object()) : json::parse(text);
  // One that somebody spoilt: nothing is taken back.
  return shape.ok() && shape->is_object() ? *shape : Value::object();
}

bool has_taint(const Value& taints, const Value& taint) {
  for (const Value& one : taints.items()) {
    if (one["key"] == taint["key"] && one["effect"] == taint["effect"]) return true;
  }
  return false;
}

Value shaped(Value node, const Value& before, const Value& shape) {
  Value& metadata = node.mut("metadata");
  for (const auto& [key, value] : before["labels"].members()) metadata.mut("labels").erase(key);
  for (const auto& [key, value] : shape["labels"].members()) {
    metadata.mut("labels").set(key, value);
  }
  Value taints = Value::array();
  for (const Value& taint : node["spec"]["taints"].items()) {
    if (!has_taint(before["taints"], taint) && !has_taint(shape["taints"], taint)) {
      taints.push(taint);
    }
  }
  for (const Value& taint : shape["taints"].items()) taints.push(taint);
  if (taints.empty()) {
    node.mut("spec").erase("taints");
  } else {
    node.mut("spec").set("taints", std::move(taints));
  }
  if (shape.empty()) {
    metadata.mut("annotations").erase(kShapeAnnotation);
  } else {
    metadata.mut("annotations").set(kShapeAnnotation, json::write(shape));
  }
  return node;
}

Result<> make_node(client::Client& owner, const std::string& name, const Value& shape) {
  const Value bare = Value::object({{"apiVersion", "v1"},
                                    {"kind", "Node"},
                                    {"metadata", Value::object({{"name", name}})},
                                    {"spec", Value::object()}});
  DIBS_CHECK(owner.create(kNodes, "", shaped(bare, Value::object(), shape)));
  return success();
}

Result<> change_node(client::Client& owner, Value node, const Value& shape) {
  for (int race = 1;; ++race) {
    const Value before = shape_before(node);
    if (before == shape) return success();
    const auto written = owner.update(kNodes, "", shaped(node, before, shape));
    if (written.ok()) return success();
    // Controllers write there, too.
    if (written.error().code() != Code::conflict || race == kRaces) return written.error();
    DIBS_TRY(node, owner.get(kNodes, "", client::name_of(node)));
  }
}

}  // namespace

Result<> shape_nodes(client::Client& owner, const NodesOptions& options) {
  for (const std::string& name : options.gone) {
    const auto removed = owner.remove(kNodes, "", name);
    if (!removed.ok() && removed.error().code() != Code::not_found) {
      return removed.error().within(cat("cannot remove node ", name));
    }
  }
  DIBS_TRY(const auto listed, owner.list(kNodes, ""));
  std::map<std::string, const Value*, std::less<>> there;
  for (const Value& node : listed.items) there.emplace(client::name_of(node), &node);
  for (const NodeGroup& group : options.groups) {
    const Value shape = shape_of(group);
    for (unsigned i = 0; i < group.count; ++i) {
      const std::string name = cat(group.prefix, i);
      const auto known = there.find(name);
      if (known == there.end() && shape.empty()) continue;
      const auto done = known == there.end() ? make_node(owner, name, shape)
                                             : change_node(owner, *known->second, shape);
      if (!done.ok()) return done.error().within(cat("cannot shape node ", name));
    }
  }
  return success();
}

}  // namespace dibs::cluster
