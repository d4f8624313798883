#include "scheduler/owners.h"

#include "base/strings.h"
#include "client/client.h"

namespace dibs::scheduler {
namespace {

using json::Value;

bool is_service(const Value& object) { return object["kind"].as_string() == "Service"; }

std::string controller_key(std::string_view kind, std::string_view name_space,
                           std::string_view name) {
  return cat(kind, " ", name_space, "/", name);
}

bool selects(const Value& selector, const Value& labels) {
  for (const auto& [key, value] : selector.members()) {
    const Value* label = labels.find(key);
    if (label == nullptr || !(*label == value)) return false;
  }
  return true;
}

/// The controller among the owners; null: there is none.
const Value& controller_of(const Pod& pod) {
  for (const Value& owner : pod.object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return owner;
  }
  return json::null_value();
}

}  // namespace

void Owners::put(const Value& object) {
  const std::string_view name_space = client::namespace_of(object);
  const Value& selector = object["spec"]["selector"];
  if (!is_service(object)) {
    controllers_[controller_key(object["kind"].as_string(), name_space, client::name_of(object))] =
        selector;
  } else if (selector.empty()) {
    remove(object);
  } else {
    services_[std::string(name_space)][std::string(client::name_of(object))] = selector;
  }
}

void Owners::remove(const Value& object) {
  const std::string name_space(client::namespace_of(object));
  if (!is_service(object)) {
    controllers_.erase(
        controller_key(object["kind"].as_string(), name_space, client::name_of(object)));
    return;
  }
  const auto found = services_.find(name_space);
  if (found == services_.end()) return;
  found->second.erase(std::string(client::name_of(object)));
  if (found->second.empty()) services_.erase(found);
}

std::vector<api::LabelRequirement> Owners::selector_of(const Pod& pod) const {
  std::map<std::string, std::string> labels;
  const auto merge = [&labels](const Value& selector) {
    for (const auto& [key, value] : selector.members()) labels[std::string(key)] = value.str();
  };
  if (const auto found = services_.find(std::string(pod.name_space)); found != services_.end()) {
    for (const auto& [name, selector] : found->second) {
      if (selects(selector, pod.labels)) merge(selector);
    }
  }
  std::vector<api::LabelRequirement> made;
  if (const Value& owner = controller_of(pod); !owner.is_null()) {
    const auto found = controllers_.find(
        controller_key(owner["kind"].as_string(), pod.name_space, owner["name"].as_string()));
    if (found != controllers_.end()) {
      if (owner["kind"].as_string() == "ReplicationController") {
        merge(found->second);
      } else if (const auto read = api::to_label_selector(found->second)) {
        made = read->requirements();
      }
    }
  }
  for (const auto& [key, value] : labels) {
    made.push_back({key, api::LabelOperator::equals, {value}});
  }
  return made;
}

const std::vector<SpreadConstraint>& Owners::spread_of(const Pod& pod, const Profile& profile,
                                                       std::vector<SpreadConstraint>& room) const {
  if (!pod.shape->spread.empty() || profile.spread.empty()) return pod.shape->spread;
  const std::vector<api::LabelRequirement> selector = selector_of(pod);
  if (selector.empty()) return pod.shape->spread;
  room = profile.spread;
  for (SpreadConstraint& one : room) one.selector = api::LabelSelector(selector);
  return room;
}

}  // namespace dibs::scheduler
