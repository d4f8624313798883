#include "controllers/endpoints/slice_plan.h"

#include <algorithm>
#include <map>

#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr const char* kZoneLabel = "topology.kubernetes.io/zone";

bool is_auto(std::string_view mode) { return mode == "Auto" || mode == "auto"; }

/// Spreading by the capacity of zones, which an annotation asks for, goes before closeness; we do
/// not have it, and no hints is what it says where it cannot be done either.
bool asks_for_zone_capacity(const Value& service) {
  const std::string_view old = annotation_of(service, "service.kubernetes.io/topology-aware-hints");
  return is_auto(old.empty() ? annotation_of(service, "service.kubernetes.io/topology-mode") : old);
}

/// For whom a ready endpoint is close, as spec.trafficDistribution wants it; null: for everybody.
Value hints_for(const Value& endpoint, const Value& service) {
  const std::string_view wanted = service["spec"]["trafficDistribution"].as_string();
  if (!endpoint["conditions"]["ready"].as_bool() || asks_for_zone_capacity(service)) return {};
  const bool same_node = wanted == "PreferSameNode";
  if (!same_node && wanted != "PreferSameZone" && wanted != "PreferClose") return {};
  Value hints;
  const auto add = [&](const char* list, const Value& name) {
    if (!name.is_null()) hints.set(list, Value::array({Value::object({{"name", name}})}));
  };
  add("forZones", endpoint["zone"]);
  if (same_node) add("forNodes", endpoint["nodeName"]);
  return hints;
}

Value ports_of(const Value& service, const Value& pod) {
  Value out = Value::array();
  for (const Value& port : service["spec"]["ports"].items()) {
    const auto number = target_port(pod, port);
    if (!number) continue;
    Value one = Value::object({{"name", port["name"].as_string()},
                               {"port", *number},
                               {"protocol", port["protocol"].as_string("TCP")}});
    if (!port["appProtocol"].is_null()) one.set("appProtocol", port["appProtocol"]);
    out.push(std::move(one));
  }
  return out;
}

using Groups = std::map<std::string, EndpointGroup>;  // by ports_key()

Groups wanted_groups(const Value& service, const std::vector<Value>& pods, std::string_view type,
                     const NodeOf& node_of, std::vector<std::string>& without_node) {
  const bool all = service["spec"]["publishNotReadyAddresses"].as_bool();
  Groups groups;
  for (const Value& pod : pods) {
    if (!has_endpoint(pod, true)) continue;
    const Value node = node_of(pod);
    if (node.is_null() && !all) {
      without_node.emplace_back(name_of(pod));
      continue;
    }
    Value endpoint = endpoint_of(pod, node, service, type);
    if (endpoint["addresses"].empty()) continue;
    Value ports = ports_of(service, pod);
    EndpointGroup& group = groups[ports_key(ports)];
    group.ports = std::move(ports);
    group.endpoints.push_back(std::move(endpoint));
  }
  return groups;
}

/// The writes for one group of endpoints and the slices that have its ports.
class GroupPlan {
 public:
  GroupPlan(const Value& service, std::string_view type, const Value& labels, EndpointGroup group,
            SliceWrites& writes)
      : service_(service),
        type_(type),
        labels_(labels),
        ports_(std::move(group.ports)),
        writes_(writes) {
    for (Value& endpoint : group.endpoints) {
      std::string key = endpoint_key(endpoint);
      missing_.insert_or_assign(std::move(key), std::move(endpoint));
    }
  }

  void plan(const std::vector<Value>& slices) {
    for (const Value& slice : slices) keep(slice);
    fill_changed();
    fill_one_or_create();
    for (Value& slice : changed_) writes_.update.push_back(std::move(slice));
  }

 private:
  void keep(const Value& slice) {
    Value kept = Value::array();
    bool same = true;
    for (const Value& endpoint : slice["endpoints"].items()) {
      const auto wanted = missing_.find(endpoint_key(endpoint));
      if (wanted == missing_.end()) {
        same = false;
        continue;
      }
      same = same && wanted->second == endpoint;
      kept.push(std::move(wanted->second));
      missing_.erase(wanted);
    }
    if (kept.empty()) {
      writes_.remove.push_back(slice);
    } else if (same && slice["metadata"]["labels"] == labels_) {
      unchanged_.push_back(slice);
    } else {
      change(slice, std::move(kept));
    }
  }

  void change(const Value& slice, Value endpoints) {
    Value next = slice;
    next.set("endpoints", std::move(endpoints));
    next.mut("metadata").set("labels", labels_);
    changed_.push_back(std::move(next));
  }

  void fill(Value& slice) {
    Value& endpoints = slice.mut("endpoints");
    while (!missing_.empty() && endpoints.size() < kSliceCapacity) {
      endpoints.push(std::move(missing_.begin()->second));
      missing_.erase(missing_.begin());
    }
  }

  void fill_changed() {
    std::stable_sort(changed_.begin(), changed_.end(), [](const Value& a, const Value& b) {
      return a["endpoints"].size() > b["endpoints"].size();
    });
    for (Value& slice : changed_) fill(slice);
  }

  /// The rest goes into one slice where it fits, into the fullest such; else into new ones.
  void fill_one_or_create() {
    while (!missing_.empty()) {
      auto best = unchanged_.end();
      for (auto one = unchanged_.begin(); one != unchanged_.end(); ++one) {
        const std::size_t size = (*one)["endpoints"].size();
        if (size + missing_.size() > kSliceCapacity) continue;
        if (best == unchanged_.end() || size > (*best)["endpoints"].size()) best = one;
      }
      if (best != unchanged_.end()) {
        change(*best, (*best)["endpoints"]);
        unchanged_.erase(best);
        fill(changed_.back());
        continue;
      }
      Value slice = new_slice(service_, type_, labels_, ports_);
      fill(slice);
      writes_.create.push_back(std::move(slice));
    }
  }

  const Value& service_;
  const std::string_view type_;
  const Value& labels_;
  const Value ports_;
  SliceWrites& writes_;
  std::map<std::string, Value> missing_;  // by endpoint_key(): not in a slice yet
  std::vector<Value> changed_;
  std::vector<Value> unchanged_;
};

bool is_placeholder(const Value& slice, const Value& labels) {
  return slice["endpoints"].empty() && slice["ports"].empty() &&
         slice["metadata"]["labels"] == labels;
}

void plan_type(const Value& service, const std::vector<Value>& pods,
               const std::vector<Value>& slices, const std::string& type, const NodeOf& node_of,
               SlicePlan& plan) {
  const Value labels = slice_labels(service);
  SliceWrites writes;
  std::map<std::string, std::vector<Value>> by_ports;
  for (const Value& slice : slices) {
    // Left by a Service of the same name.
    if (!controlled_by(slice, service)) {
      writes.remove.push_back(slice);
    } else {
      by_ports[ports_key(slice["ports"])].push_back(slice);
    }
  }
  Groups groups = wanted_groups(service, pods, type, node_of, plan.without_node);
  for (auto& [key, group] : groups) {
    const auto found = by_ports.find(key);
    const std::vector<Value> none;
    GroupPlan(service, type, labels, std::move(group), writes)
        .plan(found == by_ports.end() ? none : found->second);
  }
  for (const auto& [key, unwanted] : by_ports) {
    if (groups.contains(key)) continue;
    writes.remove.insert(writes.remove.end(), unwanted.begin(), unwanted.end());
  }
  if (writes.remove.size() == slices.size() && writes.create.empty()) {
    const auto kept =
        std::find_if(writes.remove.begin(), writes.remove.end(), [&](const Value& slice) {
          return controlled_by(slice, service) && is_placeholder(slice, labels);
        });
    if (kept != writes.remove.end()) {
      writes.remove.erase(kept);
    } else {
      writes.create.push_back(new_slice(service, type, labels, Value::array()));
    }
  }
  writes.reuse_removed(uid_of(service));
  const auto append = [](std::vector<Value>& to, std::vector<Value>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(plan.writes.create, writes.create);
  append(plan.writes.update, writes.update);
  append(plan.writes.remove, writes.remove);
}

}  // namespace

Value endpoint_of(const Value& pod, const Value& node, const Value& service,
                  std::string_view address_type) {
  const bool serving = pod_ready(pod);
  const bool terminating = is_deleting(pod);
  const bool ready =
      service["spec"]["publishNotReadyAddresses"].as_bool() || (serving && !terminating);
  Value addresses = Value::array();
  for (const std::string& address : pod_addresses(pod, address_type)) addresses.push(address);
  Value out = Value::object(
      {{"addresses", std::move(addresses)},
       {"conditions",
        Value::object({{"ready", ready}, {"serving", serving}, {"terminating", terminating}})},
       {"targetRef", pod_reference(pod)}});
  if (const Value& name = pod["spec"]["nodeName"]; !name.as_string().empty())
    out.set("nodeName", name);
  if (const auto zone = label_of(node, kZoneLabel); !zone.empty()) out.set("zone", zone);
  if (const auto name = endpoint_hostname(pod, service); !name.empty()) out.set("hostname", name);
  if (Value hints = hints_for(out, service); !hints.is_null()) out.set("hints", std::move(hints));
  return out;
}

Value slice_labels(const Value& service) {
  Value labels = labels_without(service["metadata"]["labels"],
                                {kServiceNameLabel, kSliceManagerLabel, kHeadlessLabel});
  if (is_headless(service)) labels.set(kHeadlessLabel, "");
  labels.set(kServiceNameLabel, name_of(service));
  labels.set(kSliceManagerLabel, kSliceController);
  return labels;
}

SlicePlan plan_slices(const Value& service, const std::vector<Value>& pods,
                      const std::vector<Value>& slices, const NodeOf& node_of) {
  SlicePlan plan;
  const std::vector<std::string> types = address_types(service);
  for (const std::string& type : types) {
    std::vector<Value> of_type;
    for (const Value& slice : slices)
      if (slice["addressType"].as_string() == type) of_type.push_back(slice);
    plan_type(service, pods, of_type, type, node_of, plan);
  }
  for (const Value& slice : slices) {
    if (std::find(types.begin(), types.end(), slice["addressType"].as_string()) == types.end())
      plan.writes.remove.push_back(slice);
  }
  return plan;
}

}  // namespace dibs::controllers
