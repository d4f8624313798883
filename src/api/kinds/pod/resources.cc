#include "api/kinds/pod/resources.h"

#include <algorithm>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "base/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool is_pod_level_resource(std::string_view name) {
  return name == "cpu" || name == "memory" || is_huge_page_resource(name);
}

void validate_huge_pages(std::string_view name, const Value& amount, const Path& path,
                         FieldErrors& errors) {
  auto page = Quantity::parse(name.substr(std::string_view("hugepages-").size()));
  if (!page.ok() || page->value() <= 0) return;
  if (quantity_of(amount).value() % page->value() != 0) {
    errors.invalid(path, amount,
                   cat(amount.as_string(), " is not positive integer multiple of ", name));
  }
}

struct Seen {
  bool cpu_or_memory = false;
  bool huge_pages = false;
};

void note(std::string_view name, Seen& seen) {
  seen.cpu_or_memory = seen.cpu_or_memory || name == "cpu" || name == "memory";
  seen.huge_pages = seen.huge_pages || is_huge_page_resource(name);
}

void validate_claims(const Value& claims, const std::vector<std::string>& names, const Path& path,
                     FieldErrors& errors) {
  std::set<std::string> whole;
  std::set<std::string> any;
  std::set<std::string> requests;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Path at = path.index(i);
    std::string name = claims[i]["name"].str();
    std::string request = claims[i]["request"].str();
    if (name.empty()) {
      errors.required(at);
      continue;
    }
    if (!request.empty()) {
      add_invalid(is_dns1123_label(request), claims[i]["request"], at.child("request"), errors);
    }
    // A claim may be named once as a whole, or any number of times by different requests.
    std::string key = request.empty() ? name : cat(name, "/", request);
    if (whole.count(name) != 0 || (request.empty() && any.count(name) != 0)) {
      errors.duplicate(at, Value(name));
    } else if (requests.count(key) != 0) {
      errors.duplicate(at, Value(key));
    } else {
      if (request.empty()) whole.insert(name);
      any.insert(name);
      requests.insert(key);
    }
    if (!std::binary_search(names.begin(), names.end(), name)) {
      errors.add(Fault::not_found, at,
                 cat("Not found: ", quoted(name), ": must be one of the names in ",
                     names.empty() ? "pod.spec.resourceClaims which is empty"
                                   : cat("pod.spec.resourceClaims: ", join(names, ", "))));
    }
  }
}

// What the requests must be, given the limits.
void validate_request_against_limit(const std::string& name, const Value& request,
                                    const Value& limits, const Path& requests_at,
                                    const Path& limits_at, FieldErrors& errors) {
  const Value* limit = limits.find(name);
  if (limit == nullptr) {
    if (!is_overcommit_allowed(name)) {
      errors.required(limits_at, "Limit must be set for non overcommitable resources");
    }
    return;
  }
  int order = quantity_of(request).compare(quantity_of(*limit));
  if (order != 0 && !is_overcommit_allowed(name)) {
    errors.invalid(requests_at, request,
                   cat("must be equal to ", name, " limit of ", limit->as_string()));
  } else if (order > 0) {
    errors.invalid(requests_at, request,
                   cat("must be less than or equal to ", name, " limit of ", limit->as_string()));
  }
}

void fill_requests(Value& containers) {
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Value& limits = containers[i]["resources"]["limits"];
    if (limits.empty()) continue;
    const Value& requests = containers[i]["resources"]["requests"];
    std::vector<std::string> missing;
    for (const std::string& name : sorted_keys(limits)) {
      if (!requests.contains(name)) missing.push_back(name);
    }
    if (missing.empty()) continue;
    Value taken = limits;
    Value& target = containers.mut(i).mut("resources").mut("requests");
    for (const std::string& name : missing) target.set(name, taken[name]);
  }
}

Amounts container_amounts(const Value& container, std::string_view kind) {
  return amounts_of(container["resources"][kind]);
}

Amounts with_pod_level(const Value& spec, std::string_view kind) {
  Amounts sum = aggregate_containers(spec, kind);
  for (const auto& [name, value] : spec["resources"][kind].members()) {
    if (is_pod_level_resource(name)) sum[std::string(name)] = quantity_of(value);
  }
  return sum;
}

}  // namespace

void validate_container_resource_name(std::string_view name, const Path& path,
                                      FieldErrors& errors) {
  validate_resource_name(name, path, errors);
  if (name.find('/') == std::string_view::npos) {
    if (!is_standard_container_resource(name)) {
      errors.invalid(path, Value(name), "must be a standard resource for containers");
    }
  } else if (!is_native_resource(name) && !is_extended_resource_name(name)) {
    errors.invalid(path, Value(name), "doesn't follow extended resource name standard");
  }
}

Quantity quantity_of(const Value& value) {
  if (value.is_integer()) return Quantity(value.as_int());
  auto parsed = Quantity::parse(value.as_string());
  return parsed.ok() ? *parsed : Quantity();
}

bool same_amount(const Value& a, const Value& b) { return quantity_of(a) == quantity_of(b); }

Amounts amounts_of(const Value& list) {
  Amounts amounts;
  for (const auto& [name, value] : list.members()) {
    amounts.emplace(std::string(name), quantity_of(value));
  }
  return amounts;
}

Value to_value(const Amounts& amounts) {
  Value list = Value::object();
  for (const auto& [name, amount] : amounts) list.set(name, amount.str());
  return list;
}

void add_amounts(Amounts& sum, const Amounts& more) {
  for (const auto& [name, amount] : more) {
    auto [found, fresh] = sum.emplace(name, amount);
    if (!fresh) found->second.add(amount);
  }
}

void max_amounts(Amounts& sum, const Amounts& other) {
  for (const auto& [name, amount] : other) {
    auto [found, fresh] = sum.emplace(name, amount);
    if (!fresh && found->second < amount) found->second = amount;
  }
}

bool is_native_resource(std::string_view name) {
  return name.find('/') == std::string_view::npos ||
         name.find("kubernetes.io/") != std::string_view::npos;
}

bool is_huge_page_resource(std::string_view name) { return starts_with(name, "hugepages-"); }

bool is_integer_resource(std::string_view name) {
  return is_one_of(name, {"pods", "services", "replicationcontrollers", "resourcequotas", "secrets",
                          "configmaps", "persistentvolumeclaims", "services.nodeports",
                          "services.loadbalancers"}) ||
         is_extended_resource_name(name);
}

bool is_overcommit_allowed(std::string_view name) {
  return is_native_resource(name) && !is_huge_page_resource(name);
}

bool is_standard_container_resource(std::string_view name) {
  return is_one_of(name, {"cpu", "memory", "ephemeral-storage"}) || is_huge_page_resource(name);
}

bool is_standard_quota_resource(std::string_view name) {
  return is_one_of(name, {"cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory",
                          "requests.storage", "requests.ephemeral-storage", "limits.cpu",
                          "limits.memory", "limits.ephemeral-storage", "pods", "resourcequotas",
                          "services", "replicationcontrollers", "secrets", "persistentvolumeclaims",
                          "configmaps", "services.nodeports", "services.loadbalancers"}) ||
         is_huge_page_resource(name) || starts_with(name, "requests.hugepages-");
}

bool is_standard_resource(std::string_view name) {
  return is_standard_quota_resource(name) || name == "storage";
}

void validate_resource_name(std::string_view name, const Path& path, FieldErrors& errors) {
  Faults faults = is_qualified_name(name);
  add_invalid(faults, Value(name), path, errors);
  if (!faults.empty()) return;
  if (name.find('/') == std::string_view::npos && !is_standard_resource(name)) {
    errors.invalid(path, Value(name), "must be a standard resource type or fully qualified");
  }
}

void validate_resource_amount(std::string_view name, const Value& amount, const Path& path,
                              FieldErrors& errors) {
  Quantity quantity = quantity_of(amount);
  if (quantity.sign() < 0) {
    errors.invalid(path, amount, "must be greater than or equal to 0");
  }
  if (is_integer_resource(name) && quantity.milli_value() % 1000 != 0) {
    errors.invalid(path, amount, "must be an integer");
  }
}

void validate_container_resources(const Value& resources,
                                  const std::vector<std::string>& claim_names, const Path& path,
                                  FieldErrors& errors) {
  const Value& limits = resources["limits"];
  const Value& requests = resources["requests"];
  Path limits_at = path.child("limits");
  Path requests_at = path.child("requests");
  Seen seen;
  for (const std::string& name : sorted_keys(limits)) {
    Path at = limits_at.key(name);
    validate_container_resource_name(name, at, errors);
    validate_resource_amount(name, limits[name], at, errors);
    if (is_huge_page_resource(name)) validate_huge_pages(name, limits[name], at, errors);
    note(name, seen);
  }
  for (const std::string& name : sorted_keys(requests)) {
    Path at = requests_at.key(name);
    validate_container_resource_name(name, at, errors);
    validate_resource_amount(name, requests[name], at, errors);
    validate_request_against_limit(name, requests[name], limits, requests_at, limits_at, errors);
    if (is_huge_page_resource(name)) validate_huge_pages(name, requests[name], at, errors);
    note(name, seen);
  }
  if (seen.huge_pages && !seen.cpu_or_memory) {
    errors.forbidden(path, "HugePages require cpu or memory");
  }
  validate_claims(resources["claims"], claim_names, path.child("claims"), errors);
}

void validate_pod_level_resources(const Value& spec, const Path& spec_path, FieldErrors& errors) {
  const Value& resources = spec["resources"];
  if (!resources.is_object()) return;
  Path path = spec_path.child("resources");
  if (!resources["claims"].empty()) {
    errors.forbidden(path.child("claims"), "claims may not be set for Resources at pod-level");
  }
  const Value& limits = resources["limits"];
  const Value& requests = resources["requests"];
  Path limits_at = path.child("limits");
  Path requests_at = path.child("requests");
  std::vector<std::string> supported = {"cpu", "hugepages-", "memory"};
  for (const std::string& name : sorted_keys(limits)) {
    Path at = limits_at.key(name);
    if (!is_pod_level_resource(name)) errors.not_supported(at, Value(name), supported);
    validate_resource_amount(name, limits[name], at, errors);
  }
  for (const std::string& name : sorted_keys(requests)) {
    Path at = requests_at.key(name);
    if (!is_pod_level_resource(name)) errors.not_supported(at, Value(name), supported);
    validate_resource_amount(name, requests[name], at, errors);
    validate_request_against_limit(name, requests[name], limits, requests_at, limits_at, errors);
  }
  for (const auto& [name, sum] : aggregate_containers(spec, "requests")) {
    const Value* of_pod = requests.find(name);
    if (!is_pod_level_resource(name) || of_pod == nullptr) continue;
    if (sum > quantity_of(*of_pod)) {
      errors.invalid(
          requests_at.key(name), *of_pod,
          cat("must be greater than or equal to aggregate container requests of ", sum.str()));
    }
  }
  Path containers_at = spec_path.child("containers");
  const Value& containers = spec["containers"];
  for (std::size_t i = 0; i < containers.size(); ++i) {
    Path container_at = containers_at.index(i);
    Path container_resources_at = container_at.child("resources");
    Path container_limits_at = container_resources_at.child("limits");
    const Value& own = containers[i]["resources"]["limits"];
    for (const std::string& name : sorted_keys(own)) {
      const Value* of_pod = limits.find(name);
      if (of_pod == nullptr || !(quantity_of(own[name]) > quantity_of(*of_pod))) continue;
      errors.invalid(container_limits_at.key(name), own[name],
                     cat("must be less than or equal to pod limits of ", of_pod->as_string()));
    }
  }
}

Amounts aggregate_containers(const Value& spec, std::string_view kind) {
  Amounts running;
  for (const Value& container : spec["containers"].items()) {
    add_amounts(running, container_amounts(container, kind));
  }
  // Sidecars go on running beside everything that starts after them.
  Amounts sidecars;
  Amounts start_up;
  for (const Value& container : spec["initContainers"].items()) {
    Amounts own = container_amounts(container, kind);
    if (container["restartPolicy"].as_string() == "Always") {
      add_amounts(running, own);
      add_amounts(sidecars, own);
      max_amounts(start_up, sidecars);
    } else {
      add_amounts(own, sidecars);
      max_amounts(start_up, own);
    }
  }
  max_amounts(running, start_up);
  return running;
}

Amounts pod_requests(const Value& spec) {
  Amounts sum = with_pod_level(spec, "requests");
  add_amounts(sum, amounts_of(spec["overhead"]));
  return sum;
}

Amounts pod_limits(const Value& spec) {
  Amounts sum = with_pod_level(spec, "limits");
  for (const auto& [name, value] : spec["overhead"].members()) {
    auto found = sum.find(name);
    if (found != sum.end()) found->second.add(quantity_of(value));
  }
  return sum;
}

std::string_view qos_class(const Value& spec) {
  Amounts requests;
  Amounts limits;
  bool guaranteed = true;
  auto collect = [&](const Value& resources) {
    int limited = 0;
    for (const char* name : {"cpu", "memory"}) {
      Quantity request = quantity_of(resources["requests"][name]);
      Quantity limit = quantity_of(resources["limits"][name]);
      if (request.sign() > 0) add_amounts(requests, {{name, request}});
      if (limit.sign() > 0) {
        add_amounts(limits, {{name, limit}});
        ++limited;
      }
    }
    guaranteed = guaranteed && limited == 2;
  };
  const Value& pod_level = spec["resources"];
  if (!pod_level["requests"].empty() || !pod_level["limits"].empty()) {
    collect(pod_level);
  } else {
    for (const Value& container : spec["containers"].items()) collect(container["resources"]);
    for (const Value& container : spec["initContainers"].items()) collect(container["resources"]);
  }
  if (requests.empty() && limits.empty()) return "BestEffort";
  if (guaranteed && requests == limits) return "Guaranteed";
  return "Burstable";
}

void set_request_defaults(Value& spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (spec.contains(list)) fill_requests(spec.mut(list));
  }
  Value limits = spec["resources"]["limits"];
  if (limits.empty() && spec["resources"]["requests"].empty()) return;
  Amounts requests = amounts_of(spec["resources"]["requests"]);
  std::size_t given = requests.size();
  for (const auto& [name, sum] : aggregate_containers(spec, "requests")) {
    if (is_pod_level_resource(name)) requests.emplace(name, sum);
  }
  for (const auto& [name, limit] : limits.members()) {
    if (is_pod_level_resource(name)) requests.emplace(std::string(name), quantity_of(limit));
  }
  if (requests.size() == given) return;
  spec.mut("resources").set("requests", to_value(requests));
}

}  // namespace dibs::api
