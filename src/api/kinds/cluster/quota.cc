#include "api/kinds/cluster/quota.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "base/names.h"
#include "base/span.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kRangeAnnotation = "kubernetes.io/limit-ranger";

// Fills one list of one container; gives the names set.
std::vector<std::string> fill(Value& container, const char* kind, const Value& defaults) {
  std::vector<std::string> set;
  for (const std::string& name : sorted_keys(defaults)) {
    if (container["resources"][kind].contains(name)) continue;
    container.mut("resources").mut(kind).set(name, Value(defaults[name]));
    set.push_back(name);
  }
  return set;
}

struct Bound {
  std::string_view type;  // Pod, Container, PersistentVolumeClaim
  const std::string& resource;
  const Value& enforced;
};

std::string usage_text(std::string_view which, const Bound& bound) {
  return cat(which, " ", bound.resource, " usage per ", bound.type, " is ",
             bound.enforced.as_string());
}

const Quantity* find(const Amounts& amounts, const std::string& name) {
  auto found = amounts.find(name);
  return found == amounts.end() ? nullptr : &found->second;
}

void check_min(const Bound& bound, const Amounts& requests, const Amounts& limits,
               std::vector<std::string>& faults) {
  const Quantity* request = find(requests, bound.resource);
  const Quantity* limit = find(limits, bound.resource);
  Quantity enforced = quantity_of(bound.enforced);
  if (request == nullptr) {
    faults.push_back(cat(usage_text("minimum", bound), ".  No request is specified"));
  } else if (*request < enforced) {
    faults.push_back(cat(usage_text("minimum", bound), ", but request is ", request->str()));
  } else if (limit != nullptr && *limit < enforced) {
    faults.push_back(cat(usage_text("minimum", bound), ", but limit is ", limit->str()));
  }
}

void check_max(const Bound& bound, const Amounts& requests, const Amounts& limits,
               std::vector<std::string>& faults) {
  const Quantity* request = find(requests, bound.resource);
  const Quantity* limit = find(limits, bound.resource);
  Quantity enforced = quantity_of(bound.enforced);
  if (limit == nullptr) {
    faults.push_back(cat(usage_text("maximum", bound), ".  No limit is specified"));
  } else if (*limit > enforced) {
    faults.push_back(cat(usage_text("maximum", bound), ", but limit is ", limit->str()));
  } else if (request != nullptr && *request > enforced) {
    faults.push_back(cat(usage_text("maximum", bound), ", but request is ", request->str()));
  }
}

void check_max_request(const Bound& bound, const Amounts& requests,
                       std::vector<std::string>& faults) {
  const Quantity* request = find(requests, bound.resource);
  if (request == nullptr) {
    faults.push_back(cat(usage_text("maximum", bound), ".  No request is specified"));
  } else if (*request > quantity_of(bound.enforced)) {
    faults.push_back(cat(usage_text("maximum", bound), ", but request is ", request->str()));
  }
}

void check_ratio(const Bound& bound, const Amounts& requests, const Amounts& limits,
                 std::vector<std::string>& faults) {
  const Quantity* request = find(requests, bound.resource);
  const Quantity* limit = find(limits, bound.resource);
  std::string text = cat(bound.resource, " max limit to request ratio per ", bound.type, " is ",
                         bound.enforced.as_string());
  if (request == nullptr || request->is_zero()) {
    faults.push_back(cat(text, ", but no request is specified or request is 0"));
  } else if (limit == nullptr || limit->is_zero()) {
    faults.push_back(cat(text, ", but no limit is specified or limit is 0"));
  } else {
    double ratio = limit->approximate() / request->approximate();
    if (ratio * 1000 <= static_cast<double>(quantity_of(bound.enforced).milli_value())) return;
    char shown[64];
    std::snprintf(shown, sizeof shown, "%f", ratio);
    faults.push_back(cat(text, ", but provided ratio is ", shown));
  }
}

void check_bounds(const Value& item, const Amounts& requests, const Amounts& limits,
                  std::vector<std::string>& faults) {
  std::string_view type = item["type"].as_string();
  for (const std::string& name : sorted_keys(item["min"])) {
    check_min({type, name, item["min"][name]}, requests, limits, faults);
  }
  for (const std::string& name : sorted_keys(item["max"])) {
    check_max({type, name, item["max"][name]}, requests, limits, faults);
  }
  for (const std::string& name : sorted_keys(item["maxLimitRequestRatio"])) {
    check_ratio({type, name, item["maxLimitRequestRatio"][name]}, requests, limits, faults);
  }
}

bool is_counted_pod(const Value& pod, Time now) {
  if (is_one_of(pod["status"]["phase"].as_string(), {"Failed", "Succeeded"})) return false;
  const Value& metadata = pod["metadata"];
  if (metadata["deletionTimestamp"].is_null() || metadata["deletionGracePeriodSeconds"].is_null()) {
    return true;
  }
  auto deletion = parse_rfc3339(metadata["deletionTimestamp"].as_string());
  if (!deletion.ok()) return true;
  return now <= *deletion + seconds_of(metadata["deletionGracePeriodSeconds"].as_int());
}

constexpr std::string_view kExtendedClaim = "resource.kubernetes.io/extended-resource-claim";
constexpr std::string_view kClassPrefix = "requests.deviceclass.resource.kubernetes.io/";

Amounts compute_usage(const Amounts& requests, const Amounts& limits) {
  Amounts usage;
  usage.emplace("pods", Quantity(1));
  for (const auto& [name, amount] : requests) {
    bool plain = name == "cpu" || name == "memory" || name == "ephemeral-storage";
    if (plain || is_huge_page_resource(name)) {
      usage.emplace(name, amount);
      usage.emplace(cat("requests.", name), amount);
    } else if (is_extended_resource_name(name) ||
               cat("requests.", name).starts_with(kClassPrefix)) {
      usage.emplace(cat("requests.", name), amount);
    }
  }
  for (const char* name : {"cpu", "memory", "ephemeral-storage"}) {
    const Quantity* limit = find(limits, name);
    if (limit != nullptr) usage.emplace(cat("limits.", name), *limit);
  }
  return usage;
}

const Value& controlling_pod(const Value& claim) {
  for (const Value& owner : claim["metadata"]["ownerReferences"].items()) {
    if (!owner["controller"].as_bool()) continue;
    const bool pod = owner["kind"].as_string() == "Pod" && owner["apiVersion"].as_string() == "v1";
    return pod ? owner : json::null_value();
  }
  return json::null_value();
}

bool is_made_for_pod(const Value& claim) {
  return claim["metadata"]["annotations"][kExtendedClaim].as_string() == "true";
}

/// What the pod that the claim was made for counts for itself; nothing where it is not that claim:
/// anybody may write the annotation.
Amounts counted_with_pod(const Value& claim, Time now, const QuotaSources& sources) {
  const Value& owner = controlling_pod(claim);
  if (!is_made_for_pod(claim) || owner.is_null() || !sources.pod) return {};
  const Value& metadata = claim["metadata"];
  const std::string_view name_space = metadata["namespace"].as_string();
  const Value pod = sources.pod(name_space, owner["name"].as_string());
  if (pod.is_null() || !(pod["metadata"]["uid"] == owner["uid"])) return {};
  const Value& known = pod["status"]["extendedResourceClaimStatus"];
  if (!known.is_null() && !(known["resourceClaimName"] == metadata["name"])) return {};
  if (known.is_null() && sources.claims) {
    // Not told yet: of several the first.
    for (const Value& other : sources.claims(name_space)) {
      const Value& its = other["metadata"];
      if (!is_made_for_pod(other) || !(controlling_pod(other)["uid"] == owner["uid"])) continue;
      if (its["name"] == metadata["name"]) continue;
      const auto order = std::pair(its["creationTimestamp"].as_string(), its["name"].as_string());
      const auto own =
          std::pair(metadata["creationTimestamp"].as_string(), metadata["name"].as_string());
      if (own.first.empty() || order < own) return {};
    }
  }
  return quota_usage("", "pods", pod, now);
}

// Devices count under the names by which pods could have asked for them as well. Of a claim that
// was made for a pod that did, what was not counted with the pod.
void add_extended_usage(const Value& claim, const Amounts& devices, Time now,
                        const QuotaSources& sources, Amounts& usage) {
  if (!sources.extended) return;
  Amounts more;
  for (const auto& [name, amount] : devices) {
    std::string device_class = name.substr(0, name.find(".deviceclass.resource.k8s.io/devices"));
    add_amounts(more, {{cat(kClassPrefix, device_class), amount}});
    std::string other = sources.extended(device_class);
    if (!other.empty()) add_amounts(more, {{cat("requests.", other), amount}});
  }
  const Amounts counted = counted_with_pod(claim, now, sources);
  for (auto& [name, amount] : more) {
    if (const auto found = counted.find(name); found != counted.end()) {
      amount.subtract(found->second);
    }
    if (amount.sign() > 0) usage.emplace(name, amount);
  }
}

void add_claim_usage(const Value& claim, Amounts& usage) {
  auto devices_of = [](const Value& request) {
    if (request["allocationMode"].as_string() == "All") return std::int64_t{32};
    std::int64_t count = request["count"].as_int();
    return count == 0 ? std::int64_t{1} : count;
  };
  auto name_of = [](const Value& request) {
    return cat(request["deviceClassName"].as_string(), ".deviceclass.resource.k8s.io/devices");
  };
  for (const Value& request : claim["spec"]["devices"]["requests"].items()) {
    if (!request["firstAvailable"].empty()) {
      Amounts dearest;
      for (const Value& choice : request["firstAvailable"].items()) {
        max_amounts(dearest, {{name_of(choice), Quantity(devices_of(choice))}});
      }
      add_amounts(usage, dearest);
      continue;
    }
    const Value& exactly = is_set(request, "exactly") ? request["exactly"] : request;
    if (exactly["deviceClassName"].as_string().empty()) continue;
    add_amounts(usage, {{name_of(exactly), Quantity(devices_of(exactly))}});
  }
}

void add_service_usage(const Value& service, Amounts& usage) {
  usage.emplace("services", Quantity(1));
  std::string_view type = service["spec"]["type"].as_string();
  std::int64_t ports = 0;
  if (type == "NodePort") {
    ports = static_cast<std::int64_t>(service["spec"]["ports"].size());
  } else if (type == "LoadBalancer") {
    bool all = service["spec"]["allocateLoadBalancerNodePorts"].as_bool(true);
    for (const Value& port : service["spec"]["ports"].items()) {
      if (all || port["nodePort"].as_int() != 0) ++ports;
    }
  }
  usage.emplace("services.nodeports", Quantity(ports));
  usage.emplace("services.loadbalancers", Quantity(type == "LoadBalancer" ? 1 : 0));
}

void add_storage_usage(const Value& claim, Amounts& usage) {
  usage.emplace("persistentvolumeclaims", Quantity(1));
  const Value* storage = claim["spec"]["resources"]["requests"].find("storage");
  std::string name = claim["spec"]["storageClassName"].str();
  std::string prefix = name.empty() ? "" : cat(name, ".storageclass.storage.k8s.io/");
  if (!prefix.empty()) usage.emplace(cat(prefix, "persistentvolumeclaims"), Quantity(1));
  if (storage == nullptr) return;
  usage.emplace("requests.storage", quantity_of(*storage));
  if (!prefix.empty()) usage.emplace(cat(prefix, "requests.storage"), quantity_of(*storage));
}

bool selects_across_namespaces(const Value& pod) {
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Value& affinity = pod["spec"]["affinity"][kind];
    for (const Value& term : affinity["requiredDuringSchedulingIgnoredDuringExecution"].items()) {
      if (!term["namespaces"].empty() || is_set(term, "namespaceSelector")) return true;
    }
    for (const Value& weighted :
         affinity["preferredDuringSchedulingIgnoredDuringExecution"].items()) {
      const Value& term = weighted["podAffinityTerm"];
      if (!term["namespaces"].empty() || is_set(term, "namespaceSelector")) return true;
    }
  }
  return false;
}

bool scope_matches(std::string_view scope, std::string_view op, const Value& values,
                   const Value& pod) {
  const Value& spec = pod["spec"];
  bool terminating =
      is_set(spec, "activeDeadlineSeconds") && spec["activeDeadlineSeconds"].as_int() >= 0;
  if (scope == "Terminating") return terminating;
  if (scope == "NotTerminating") return !terminating;
  if (scope == "BestEffort") return qos_class(spec) == "BestEffort";
  if (scope == "NotBestEffort") return qos_class(spec) != "BestEffort";
  if (scope == "CrossNamespacePodAffinity") return selects_across_namespaces(pod);
  if (scope != "PriorityClass") return false;
  std::string_view name = spec["priorityClassName"].as_string();
  bool listed = false;
  for (const Value& value : values.items()) listed = listed || value.as_string() == name;
  if (op == "In") return listed;
  if (op == "NotIn") return !listed;
  if (op == "DoesNotExist") return name.empty();
  return !name.empty();
}

// A quota on cpu or memory makes every container say what it needs.
std::string missing_requests(const Value& hard, const Value& pod) {
  if (!pod["spec"]["resources"]["requests"].empty() ||
      !pod["spec"]["resources"]["limits"].empty()) {
    return "";
  }
  std::string text;
  for (const char* name :
       {"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"}) {
    if (!hard.contains(name)) continue;
    std::set<std::string> containers;
    for (const char* list : {"containers", "initContainers"}) {
      for (const Value& container : pod["spec"][list].items()) {
        Amounts usage = compute_usage(amounts_of(container["resources"]["requests"]),
                                      amounts_of(container["resources"]["limits"]));
        if (usage.count(name) == 0) containers.insert(container["name"].str());
      }
    }
    if (containers.empty()) continue;
    append(text, text.empty() ? "must specify " : "; ", name,
           " for: ", join({containers.begin(), containers.end()}, ","));
  }
  return text;
}

std::string shown(const Amounts& amounts, const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    const Quantity* amount = find(amounts, name);
    if (!text.empty()) text += ",";
    append(text, name, "=", amount == nullptr ? "0" : amount->str());
  }
  return text;
}

}  // namespace

void apply_limit_range_defaults(Value& pod, const Value& range) {
  Value requests = Value::object();
  Value limits = Value::object();
  for (const Value& item : range["spec"]["limits"].items()) {
    if (item["type"].as_string() != "Container") continue;
    for (const auto& [name, amount] : item["defaultRequest"].members()) requests.set(name, amount);
    for (const auto& [name, amount] : item["default"].members()) limits.set(name, amount);
  }
  std::vector<std::string> notes;
  auto visit = [&](const char* list, std::string_view what) {
    for (std::size_t i = 0; i < pod["spec"][list].size(); ++i) {
      Value container = pod["spec"][list][i];
      auto set_limits = fill(container, "limits", limits);
      auto set_requests = fill(container, "requests", requests);
      if (set_limits.empty() && set_requests.empty()) continue;
      std::string_view name = container["name"].as_string();
      if (!set_requests.empty()) {
        notes.push_back(cat(join(set_requests, ", "), " request for ", what, " ", name));
      }
      if (!set_limits.empty()) {
        notes.push_back(cat(join(set_limits, ", "), " limit for ", what, " ", name));
      }
      pod.mut("spec").mut(list).mut(i) = container;
    }
  };
  visit("containers", "container");
  visit("initContainers", "init container");
  if (notes.empty()) return;
  pod.mut("metadata")
      .mut("annotations")
      .set(kRangeAnnotation, cat("LimitRanger plugin set: ", join(notes, "; ")));
}

std::vector<std::string> limit_range_faults(std::string_view resource, const Value& object,
                                            const Value& range) {
  std::vector<std::string> faults;
  for (const Value& item : range["spec"]["limits"].items()) {
    std::string_view type = item["type"].as_string();
    if (resource == "persistentvolumeclaims" && type == "PersistentVolumeClaim") {
      Amounts requests = amounts_of(object["spec"]["resources"]["requests"]);
      for (const std::string& name : sorted_keys(item["min"])) {
        check_min({type, name, item["min"][name]}, requests, {}, faults);
      }
      for (const std::string& name : sorted_keys(item["max"])) {
        check_max_request({type, name, item["max"][name]}, requests, faults);
      }
    }
    if (resource != "pods") continue;
    if (type == "Container") {
      for (const char* list : {"containers", "initContainers"}) {
        for (const Value& container : object["spec"][list].items()) {
          check_bounds(item, amounts_of(container["resources"]["requests"]),
                       amounts_of(container["resources"]["limits"]), faults);
        }
      }
    } else if (type == "Pod") {
      check_bounds(item, pod_requests(object["spec"]), pod_limits(object["spec"]), faults);
    }
  }
  return faults;
}

std::string joined_faults(const std::vector<std::string>& faults) {
  return faults.size() == 1 ? faults[0] : cat("[", join(faults, ", "), "]");
}

Amounts quota_usage(std::string_view group, std::string_view resource, const Value& object,
                    Time now, const QuotaSources& sources) {
  Amounts usage;
  std::string counted = group.empty() ? std::string(resource) : cat(resource, ".", group);
  if (group.empty()) {
    if (resource == "pods") {
      if (is_counted_pod(object, now)) {
        usage = compute_usage(pod_requests(object["spec"]), pod_limits(object["spec"]));
      }
    } else if (resource == "services") {
      add_service_usage(object, usage);
    } else if (resource == "persistentvolumeclaims") {
      add_storage_usage(object, usage);
    } else if (is_one_of(resource,
                         {"replicationcontrollers", "resourcequotas", "secrets", "configmaps"})) {
      usage.emplace(std::string(resource), Quantity(1));
    }
  } else if (group == "resource.k8s.io" && resource == "resourceclaims") {
    add_claim_usage(object, usage);
    add_extended_usage(object, Amounts(usage), now, sources, usage);
  }
  usage.emplace(cat("count/", counted), Quantity(1));
  return usage;
}

bool quota_matches(const Value& quota, std::string_view group, std::string_view resource,
                   const Value& object) {
  const Value& scopes = quota["spec"]["scopes"];
  const Value& expressions = quota["spec"]["scopeSelector"]["matchExpressions"];
  if (scopes.empty() && expressions.empty()) return true;
  if (!group.empty() || resource != "pods") return false;
  for (const Value& scope : scopes.items()) {
    if (!scope_matches(scope.as_string(), "Exists", {}, object)) return false;
  }
  for (const Value& expression : expressions.items()) {
    if (!scope_matches(expression["scopeName"].as_string(), expression["operator"].as_string(),
                       expression["values"], object)) {
      return false;
    }
  }
  return true;
}

Result<std::vector<Value>> charge_quotas(const std::vector<Value>& quotas, std::string_view group,
                                         std::string_view resource, const Value& object,
                                         const Value* old, Time now, const QuotaSources& sources) {
  Amounts delta = quota_usage(group, resource, object, now, sources);
  if (old != nullptr) {
    for (const auto& [name, amount] : quota_usage(group, resource, *old, now, sources)) {
      auto found = delta.find(name);
      if (found != delta.end()) found->second.subtract(amount);
    }
  }
  std::vector<Value> changed;
  for (const Value& quota : quotas) {
    const Value& hard = quota["status"]["hard"];
    std::string name = quota["metadata"]["name"].str();
    if (hard.empty() || !quota_matches(quota, group, resource, object)) continue;
    if (group.empty() && resource == "pods" && old == nullptr) {
      std::string missing = missing_requests(hard, object);
      if (!missing.empty()) return Error::forbidden(cat("failed quota: ", name, ": ", missing));
    }
    Amounts used = amounts_of(quota["status"]["used"]);
    Amounts requested;
    std::set<std::string> exceeded;
    for (const auto& [key, amount] : delta) {
      // Less than before is always fine.
      if (!hard.contains(key) || amount.sign() <= 0) continue;
      requested.emplace(key, amount);
      Quantity after = amount;
      if (const Quantity* before = find(used, key)) {
        after = *before;
        after.add(amount);
      }
      if (after > quantity_of(hard[key])) exceeded.insert(key);
    }
    if (requested.empty()) continue;
    if (!exceeded.empty()) {
      return Error::forbidden(
          cat("exceeded quota: ", name, ", requested: ", shown(requested, exceeded),
              ", used: ", shown(used, exceeded), ", limited: ", shown(amounts_of(hard), exceeded)));
    }
    add_amounts(used, requested);
    Value charged = quota;
    charged.mut("status").set("used", to_value(used));
    changed.push_back(std::move(charged));
  }
  return changed;
}

Value used_of(const Value& quota, const Amounts& total) {
  Value used = Value::object();
  for (const std::string& name : sorted_keys(quota["spec"]["hard"])) {
    const Quantity* amount = find(total, name);
    used.set(name, amount == nullptr ? "0" : amount->str());
  }
  return used;
}

}  // namespace dibs::api
