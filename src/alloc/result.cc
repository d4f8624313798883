#include "alloc/result.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::alloc {
namespace {

json::Value this_node(const std::string& name) {
  return json::Value::object(
      {{"nodeSelectorTerms",
        json::Value::array({json::Value::object(
            {{"matchFields", json::Value::array({json::Value::object(
                                 {{"key", "metadata.name"},
                                  {"operator", "In"},
                                  {"values", json::Value::array({json::Value(name)})}})})}})})}});
}

bool same_values(const json::Value& a, const json::Value& b) {
  if (a.size() != b.size()) return false;
  return std::all_of(a.items().begin(), a.items().end(), [&](const json::Value& value) {
    return std::find(b.items().begin(), b.items().end(), value) != b.items().end();
  });
}

void merge_requirements(const json::Value& from, json::Value& into) {
  for (const json::Value& requirement : from.items()) {
    const bool known =
        std::any_of(into.items().begin(), into.items().end(), [&](const json::Value& other) {
          return other["key"] == requirement["key"] &&
                 other["operator"] == requirement["operator"] &&
                 same_values(other["values"], requirement["values"]);
        });
    if (!known) into.push(requirement);
  }
}

/// Where all devices of a claim can be reached from; null: everywhere.
Result<json::Value> node_selector(const Attempt& attempt, const std::vector<Picked>& picked,
                                  const Claim& claim) {
  json::Value fields = json::Value::array();
  json::Value expressions = json::Value::array();
  for (const Picked& pick : picked) {
    const RowInfo& row = attempt.info(pick.slot);
    const NodeSelection& nodes =
        row.device->nodes != nullptr ? *row.device->nodes : row.record->slice.nodes;
    if (!nodes.node_name.empty() || row.device->binds_to_node) {
      json::Value& selector = attempt.view().selector;
      if (selector.is_null()) selector = this_node(attempt.node().name);
      return selector;
    }
    if (!nodes.has_selector) continue;
    const json::Value& terms = nodes.selector.source["nodeSelectorTerms"];
    if (terms.size() != 1) {
      return Error::bad_request(cat("create NodeSelector for claim ", claim.name,
                                    ": unsupported ResourceSlice.NodeSelector with ", terms.size(),
                                    " terms"));
    }
    merge_requirements(terms[0]["matchFields"], fields);
    merge_requirements(terms[0]["matchExpressions"], expressions);
  }
  if (fields.empty() && expressions.empty()) return json::Value();
  json::Value term = json::Value::object();
  if (!expressions.empty()) term.set("matchExpressions", std::move(expressions));
  if (!fields.empty()) term.set("matchFields", std::move(fields));
  return json::Value::object({{"nodeSelectorTerms", json::Value::array({std::move(term)})}});
}

json::Value device_result(Attempt& attempt, const Picked& pick, const ShareIds& share_ids) {
  const Features& features = attempt.inventory().features();
  const DeviceRequest& spec = *attempt.demand().alternatives[pick.alternative].spec;
  const RowInfo& row = attempt.info(pick.slot);
  const Device& device = *row.device;
  const Slice& slice = row.record->slice;
  json::Value made = json::Value::object({{"request", spec.result_name},
                                          {"driver", slice.driver},
                                          {"pool", slice.pool},
                                          {"device", device.name}});
  if (spec.admin_access) made.set("adminAccess", true);
  if (!spec.tolerations_source.empty()) made.set("tolerations", spec.tolerations_source);
  if (features.binding_conditions) {
    for (const char* name : {"bindingConditions", "bindingFailureConditions"}) {
      if (!device.source[name].empty()) made.set(name, device.source[name]);
    }
  }
  if (device.multiple && features.consumable_capacity) {
    made.set("shareID", share_ids());
    json::Value consumed = json::Value::object();
    const Intake& needed = attempt.intake_of(pick.alternative, pick.slot);
    for (std::size_t i = 0; i < needed.amounts.size(); ++i) {
      const Quantity amount = consumed_quantity(device.capacities[i], spec, needed.amounts[i]);
      consumed.set(device.capacities[i].name, amount.str());
    }
    if (!consumed.empty()) made.set("consumedCapacity", std::move(consumed));
  }
  if (features.optional_node_operations && !slice.skip_operations.is_null()) {
    made.set("skipNodeOperations", slice.skip_operations);
  }
  return made;
}

/// An entry of the result from one of a class or a claim.
json::Value config_entry(std::string_view source, json::Value requests, const json::Value& from) {
  json::Value made = json::Value::object({{"source", source}});
  if (!requests.empty()) made.set("requests", std::move(requests));
  for (const auto& [key, value] : from.members()) {
    if (key != "requests") made.set(key, value);
  }
  return made;
}

/// Names that stand for the request in a config, given the alternative that was chosen.
struct Chosen {
  std::string_view request;
  std::string_view result_name;
  const DeviceClass* device_class = nullptr;
};

bool names(const json::Value& requests, const Chosen& chosen) {
  return std::any_of(
      requests.items().begin(), requests.items().end(), [&](const json::Value& name) {
        return name.as_string() == chosen.request || name.as_string() == chosen.result_name;
      });
}

std::vector<Chosen> chosen_requests(const Attempt& attempt, std::size_t claim,
                                    const std::vector<Picked>& picked) {
  const Demand& demand = attempt.demand();
  const ClaimDemand& part = demand.claims[claim];
  std::vector<Chosen> made;
  for (std::uint32_t i = 0; i < part.position_count; ++i) {
    const std::uint32_t position = part.first_position + i;
    // A request for no devices has no pick; its one alternative was taken all the same.
    const Alternative* alternative = &demand.alternatives[demand.positions[position].first];
    for (const Picked& pick : picked) {
      if (demand.alternatives[pick.alternative].position == position) {
        alternative = &demand.alternatives[pick.alternative];
        break;
      }
    }
    made.push_back({alternative->request->name, alternative->spec->result_name,
                    alternative->device_class.get()});
  }
  return made;
}

json::Value make_config(const Claim& claim, const std::vector<Chosen>& chosen) {
  json::Value made = json::Value::array();
  std::vector<const DeviceClass*> seen;
  for (const Chosen& request : chosen) {
    const DeviceClass* device_class = request.device_class;
    if (device_class == nullptr ||
        std::find(seen.begin(), seen.end(), device_class) != seen.end()) {
      continue;
    }
    seen.push_back(device_class);
    json::Value requests = json::Value::array();
    for (const Chosen& other : chosen) {
      if (other.device_class == device_class) requests.push(std::string(other.result_name));
    }
    for (const json::Value& entry : device_class->config.items()) {
      made.push(config_entry("FromClass", requests, entry));
    }
  }
  for (const json::Value& entry : claim.config.items()) {
    const json::Value& requests = entry["requests"];
    if (!requests.empty() && std::none_of(chosen.begin(), chosen.end(), [&](const Chosen& request) {
          return names(requests, request);
        })) {
      continue;
    }
    made.push(config_entry("FromClaim", requests, entry));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const json::Value requests = made[i]["requests"];
    if (requests.empty()) continue;
    if (std::all_of(chosen.begin(), chosen.end(),
                    [&](const Chosen& request) { return names(requests, request); })) {
      made.mut(i).erase("requests");
    }
  }
  return made;
}

}  // namespace

Result<std::vector<json::Value>> make_allocations(Attempt& attempt, const ShareIds& share_ids) {
  const Demand& demand = attempt.demand();
  std::vector<json::Value> made;
  std::vector<std::vector<Picked>> picked(demand.claims.size());
  for (const Picked& pick : attempt.picked()) {
    picked[demand.alternatives[pick.alternative].claim].push_back(pick);
  }
  for (std::size_t c = 0; c < demand.claims.size(); ++c) {
    const Claim& claim = *demand.claims[c].claim;
    json::Value devices = json::Value::object();
    json::Value results = json::Value::array();
    for (const Picked& pick : picked[c]) results.push(device_result(attempt, pick, share_ids));
    if (!results.empty()) devices.set("results", std::move(results));
    json::Value config = make_config(claim, chosen_requests(attempt, c, picked[c]));
    if (!config.empty()) devices.set("config", std::move(config));
    json::Value allocation = json::Value::object({{"devices", std::move(devices)}});
    DIBS_TRY(json::Value selector, node_selector(attempt, picked[c], claim));
    if (!selector.is_null()) allocation.set("nodeSelector", std::move(selector));
    made.push_back(std::move(allocation));
  }
  return made;
}

}  // namespace dibs::alloc
