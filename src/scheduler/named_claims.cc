#include "scheduler/named_claims.h"

#include "base/strings.h"
#include "client/client.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// Drivers whose resources the API lets one allocation have.
constexpr std::size_t kMostHandles = 32;
constexpr std::string_view kHostname = "kubernetes.io/hostname";

/// The first entry of a list that is about the driver; null: none.
const Value& of_driver(const Value& list, std::string_view driver) {
  for (const Value& entry : list.items()) {
    if (entry["driverName"].as_string() == driver) return entry;
  }
  return json::null_value();
}

Value requirement(std::string_view key, const std::string& value) {
  return Value::array({Value::object(
      {{"key", key}, {"operator", "In"}, {"values", Value::array({Value(value)})}})});
}

/// Kubernetes goes by the label, which a node need not have, or share its name with.
Value place_of(const alloc::Node& node) {
  const bool labelled = node.labels[kHostname].as_string() == node.name;
  Value term = Value::object();
  term.set(labelled ? "matchExpressions" : "matchFields",
           requirement(labelled ? kHostname : "metadata.name", node.name));
  return Value::object({{"nodeSelectorTerms", Value::array({std::move(term)})}});
}

}  // namespace

NamedClaim NamedClaim::read(const Value& claim, const Value& resource_class,
                            FoundParameters parameters, std::string& problem) {
  NamedClaim made;
  made.parameters_ = std::move(parameters);
  auto wanted = std::make_shared<alloc::Claim>();
  if (made.parameters_.of_claim["driverRequests"].size() > kMostHandles) {
    problem = cat("claim parameters name more than ", kMostHandles, " drivers");
  }
  wanted->name = claim["metadata"]["name"].str();
  wanted->id = client::key_of(claim);
  for (const Value& of : made.parameters_.of_claim["driverRequests"].items()) {
    const std::string driver = of["driverName"].str();
    auto filtered = std::make_shared<alloc::DeviceClass>();
    filtered->name = resource_class["metadata"]["name"].str();
    const Value& filter = of_driver(made.parameters_.of_class["filters"], driver);
    if (filter["namedResources"].is_object()) {
      filtered->selectors.push_back(filter["namedResources"]["selector"].str());
    }
    const std::string class_name = cat(wanted->id, "\n", driver);
    made.classes_[class_name] = std::move(filtered);
    const Value& requests = of["requests"];
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!requests[i]["namedResources"].is_object()) {
        problem = cat("driver ", driver, ": no supported structured parameters found");
      }
      alloc::DeviceRequest one;
      one.name = requests.size() == 1 ? driver : cat(driver, "/", i);
      one.result_name = one.name;
      one.class_name = class_name;
      one.driver = driver;
      one.selectors.push_back(requests[i]["namedResources"]["selector"].str());
      one.count = 1;
      alloc::Request request;
      request.name = one.name;
      request.alternatives.push_back(std::move(one));
      wanted->requests.push_back(std::move(request));
    }
  }
  made.claim_ = std::move(wanted);
  return made;
}

std::shared_ptr<const alloc::DeviceClass> NamedClaim::class_of(std::string_view name) const {
  const auto found = classes_.find(name);
  return found != classes_.end() ? found->second : nullptr;
}

Value NamedClaim::allocation(const alloc::Node& node, const Value& chosen) const {
  const Value& devices = chosen["devices"]["results"];
  std::size_t next = 0;
  Value handles = Value::array();
  for (const Value& of : parameters_.of_claim["driverRequests"].items()) {
    const std::string driver = of["driverName"].str();
    Value results = Value::array();
    for (const Value& request : of["requests"].items()) {
      results.push(
          Value::object({{"namedResources", Value::object({{"name", devices[next++]["device"]}})},
                         {"vendorRequestParameters", request["vendorParameters"]}}));
    }
    const Value& of_class = of_driver(parameters_.of_class["vendorParameters"], driver);
    handles.push(Value::object(
        {{"driverName", driver},
         {"structuredData", Value::object({{"nodeName", node.name},
                                           {"results", std::move(results)},
                                           {"vendorClaimParameters", of["vendorParameters"]},
                                           {"vendorClassParameters", of_class["parameters"]}})}}));
  }
  Value made = Value::object({{"availableOnNodes", place_of(node)}});
  if (!handles.empty()) made.set("resourceHandles", std::move(handles));
  if (parameters_.of_claim["shareable"].as_bool()) made.set("shareable", true);
  return made;
}

bool same_instances(const Value& one, const Value& other) {
  const Value& a = one["resourceHandles"];
  const Value& b = other["resourceHandles"];
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Value& of_a = a[i]["structuredData"];
    const Value& of_b = b[i]["structuredData"];
    if (!(a[i]["driverName"] == b[i]["driverName"]) || !(of_a["nodeName"] == of_b["nodeName"]) ||
        !(a[i]["data"] == b[i]["data"]) || of_a["results"].size() != of_b["results"].size()) {
      return false;
    }
    for (std::size_t k = 0; k < of_a["results"].size(); ++k) {
      if (!(of_a["results"][k]["namedResources"] == of_b["results"][k]["namedResources"])) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace dibs::scheduler
