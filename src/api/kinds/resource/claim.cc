// ResourceClaims: what may be asked for, and what a status may say of it.
#include <algorithm>
#include <set>

#include "api/devices/selector.h"
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/pod/scheduling.h"
#include "api/kinds/resource/checks.h"
#include "api/kinds/resource/names.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

constexpr std::size_t kRequests = 32;
constexpr std::size_t kAlternatives = 8;
constexpr std::size_t kConsumers = 256;
constexpr std::size_t kOpaqueLength = 10 * 1024;
constexpr std::size_t kDeviceConditions = 8;
constexpr std::size_t kAddresses = 16;
constexpr std::string_view kNoSuchRequest =
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'";

// Names of requests, and "request/alternative" for each alternative.
std::set<std::string, std::less<>> request_names(const Value& devices) {
  std::set<std::string, std::less<>> names;
  for (const Value& request : devices["requests"].items()) {
    std::string name = request["name"].str();
    for (const Value& choice : request["firstAvailable"].items()) {
      names.insert(cat(name, "/", choice["name"].as_string()));
    }
    names.insert(std::move(name));
  }
  return names;
}

using Names = std::set<std::string, std::less<>>;

void check_request_reference(const Value& name, const Names& names, const Path& path,
                             Findings& found) {
  auto parts = split(name.as_string(), '/');
  if (parts.size() <= 2) {
    for (std::string_view part : parts) {
      add_invalid(is_dns1123_label(part), Value(part), path, found.errors);
    }
  }
  if (parts.size() > 2 || names.find(name.as_string()) == names.end()) {
    found.errors.invalid(path, name, kNoSuchRequest);
  }
}

void check_request_references(const Value& list, const Names& names, const Path& path,
                              Findings& found) {
  if (!fits(list, kRequests, path, found, true)) return;
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_request_reference(list[i], names, path.index(i), found);
  }
  check_unique_key(list, "", path, found, true);
}

void check_class_name(const Value& request, const Path& path, Findings& found, bool covered) {
  std::size_t from = found.errors.size();
  if (request["deviceClassName"].as_string().empty()) {
    found.errors.required(path);
  } else {
    add_invalid(is_dns1123_subdomain(request["deviceClassName"].as_string()),
                request["deviceClassName"], path, found.errors);
  }
  if (covered) found.cover(from);
}

void check_allocation_mode(const Value& request, const Path& path, Findings& found) {
  std::string_view mode = request["allocationMode"].as_string();
  std::int64_t count = request["count"].as_int();
  if (mode == "All") {
    if (count != 0) {
      found.errors.invalid(path.child("count"), Value(count),
                           "must not be specified when allocationMode is 'All'");
    }
  } else if (mode == "ExactCount") {
    if (count <= 0) {
      found.errors.invalid(path.child("count"), Value(count), "must be greater than zero");
    }
  } else {
    std::size_t from = found.errors.size();
    found.errors.not_supported(path.child("allocationMode"), Value(mode), {"All", "ExactCount"});
    found.cover(from);
  }
}

SelectorEnvironment environment(const Findings& found, bool stored) {
  return {.release = found.features.minor(),
          .stored = stored,
          .consumable_capacity = found.on("DRAConsumableCapacity"),
          .list_attributes = found.on("DRAListTypeAttributes")};
}

// Derived attributes are worth writing only where a constraint looks at them.
bool is_constrained(std::string_view attribute, std::string_view request, const Value& devices) {
  std::string_view parent = request.substr(0, request.find('/'));
  for (const Value& constraint : devices["constraints"].items()) {
    const char* key = is_set(constraint, "matchAttribute") ? "matchAttribute" : "distinctAttribute";
    if (constraint[key].as_string() != attribute) continue;
    const Value& targets = constraint["requests"];
    if (targets.empty()) return true;
    for (const Value& target : targets.items()) {
      if (target.as_string() == request || target.as_string() == parent) return true;
    }
  }
  return false;
}

bool is_scalar(const cel::Type& type) {
  switch (type.kind()) {
    case cel::TypeKind::boolean:
    case cel::TypeKind::integer:
    case cel::TypeKind::string:
    case cel::TypeKind::dyn:
    case cel::TypeKind::any:
      return true;
    default:
      return type.name() == "kubernetes.Semver";
  }
}

// An expression whose value stands in for an attribute; gives its estimated cost.
std::uint64_t check_derived_expression(const Value& expression, const Path& path, Findings& found) {
  Selector made = compile_selector(expression.as_string(), environment(found, false));
  if (made.fault == SelectorFault::too_long) {
    found.errors.too_long(path, kSelectorLengthLimit);
    return 0;
  }
  if (!made.issues.empty()) {
    found.errors.invalid(path, expression, made.message);
    return 0;
  }
  if (made.fault == SelectorFault::internal) {
    found.errors.internal(path, made.message);
    return 0;
  }
  bool lists = found.on("DRAListTypeAttributes");
  bool list = lists && made.type.is(cel::TypeKind::list) && is_scalar(made.type.parameter(0));
  if (!is_scalar(made.type) && !list) {
    found.errors.invalid(
        path, expression,
        cat("must evaluate to a primitive scalar (string, integer, boolean, semver)",
            lists ? " or a list of these scalars" : "", ", not ", made.type.full_name()));
    return 0;
  }
  if (made.estimated_cost > kSelectorCostLimit) {
    found.errors.forbidden(path, "too complex, exceeds cost limit");
  }
  return made.estimated_cost;
}

void check_derived_attributes(const Value& attributes, std::string_view request,
                              const Value& devices, std::uint64_t& cost, const Path& path,
                              Findings& found) {
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    Path at = path.index(i);
    const Value& name = attributes[i]["name"];
    if (!name.as_string().empty() && !is_constrained(name.as_string(), request, devices)) {
      found.errors.invalid(at.child("name"), name,
                           "must be referenced by at least one matchAttribute or "
                           "distinctAttribute constraint targeting this request");
    }
    const Value& expression = attributes[i]["expression"];
    if (!expression.as_string().empty()) {
      cost += check_derived_expression(expression, at.child("expression"), found);
    }
  }
  check_unique_key(attributes, "name", path, found, false);
}

// What all requests of a claim are judged by.
struct Claim {
  const Value& devices;
  std::uint64_t derived_cost = 0;
};

void check_request_body(const Value& request, std::string_view name, Claim& claim, bool alternative,
                        const Path& path, Findings& found) {
  check_class_name(request, path.child("deviceClassName"), found, alternative);
  check_selectors(request["selectors"], false, path.child("selectors"), found);
  check_derived_attributes(request["derivedAttributes"], name, claim.devices, claim.derived_cost,
                           path.child("derivedAttributes"), found);
  check_allocation_mode(request, path, found);
  check_device_tolerations(request["tolerations"], path.child("tolerations"), found);
}

void check_request(const Value& request, Claim& claim, const Path& path, Findings& found) {
  add_invalid(is_dns1123_label(request["name"].as_string()), Value(request["name"].as_string()),
              path.child("name"), found.errors);
  const Value& choices = request["firstAvailable"];
  bool exactly = is_set(request, "exactly");
  if (!exactly && choices.empty()) {
    found.errors.required(path, "exactly one of `exactly` or `firstAvailable` is required");
  } else if (exactly && !choices.empty()) {
    found.errors.invalid(path, Value(),
                         "exactly one of `exactly` or `firstAvailable` is required, but multiple "
                         "fields are set");
  } else if (exactly) {
    check_request_body(request["exactly"], request["name"].as_string(), claim, false,
                       path.child("exactly"), found);
  } else {
    Path choices_at = path.child("firstAvailable");
    if (!fits(choices, kAlternatives, choices_at, found, true)) return;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      Path at = choices_at.index(i);
      std::string_view name = choices[i]["name"].as_string();
      add_invalid(is_dns1123_label(name), Value(name), at.child("name"), found.errors);
      check_request_body(choices[i], cat(request["name"].as_string(), "/", name), claim, true, at,
                         found);
    }
    check_unique_key(choices, "name", choices_at, found, true);
  }
}

void check_constraint(const Value& constraint, const Names& names, const Path& path,
                      Findings& found) {
  check_request_references(constraint["requests"], names, path.child("requests"), found);
  std::size_t from = found.errors.size();
  for (const char* key : {"matchAttribute", "distinctAttribute"}) {
    if (!is_set(constraint, key)) continue;
    check_fully_qualified_name(constraint[key].as_string(), path.child(key), found.errors);
    found.cover(from);
    return;
  }
  if (found.on("DRAConsumableCapacity")) {
    found.errors.required(path,
                          "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, "
                          "but multiple fields are set");
  } else {
    found.errors.required(path.child("matchAttribute"));
  }
}

// Any JSON object within the limit. What the client sent is kept as a tree, so its length is that
// of its shortest text.
void check_raw_object(const Value& raw, std::size_t limit, bool stored, const Path& path,
                      Findings& found) {
  if (raw.is_null()) {
    found.errors.required(path);
  } else if (!stored && json::write(raw).size() > limit) {
    found.errors.too_long(path, limit);
  } else if (!raw.is_object()) {
    found.errors.invalid(path, "<value omitted>", "must be a valid JSON object");
  }
}

Value device_id(const Value& device) {
  return Value::object({{"Driver", device["driver"].as_string()},
                        {"Pool", device["pool"].as_string()},
                        {"Device", device["device"].as_string()},
                        {"ShareID", device["shareID"].as_string()}});
}

void check_network_data(const Value& data, const Path& path, Findings& found) {
  std::size_t from = found.errors.size();
  if (data["interfaceName"].as_string().size() > 256) {
    found.errors.too_long(path.child("interfaceName"), 256);
  }
  if (data["hardwareAddress"].as_string().size() > 128) {
    found.errors.too_long(path.child("hardwareAddress"), 128);
  }
  found.cover(from);
  const Value& addresses = data["ips"];
  Path addresses_at = path.child("ips");
  if (!fits(addresses, kAddresses, addresses_at, found, true)) return;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    check_interface_address(addresses[i], addresses_at.index(i), found.errors);
  }
  check_unique_key(addresses, "", addresses_at, found, true);
}

void check_device_status(const Value& device, const std::vector<Value>& allocated, const Path& path,
                         Findings& found) {
  check_driver_name(device["driver"].as_string(), path.child("driver"), found.errors);
  check_pool_name(device["pool"].as_string(), path.child("pool"), found.errors);
  std::string_view name = device["device"].as_string();
  add_invalid(is_dns1123_label(name), Value(name), path.child("device"), found.errors);
  if (is_set(device, "shareID")) {
    std::size_t from = found.errors.size();
    check_uuid(device["shareID"].as_string(), path.child("shareID"), found.errors);
    found.cover(from);
  }
  Value id = device_id(device);
  if (std::find(allocated.begin(), allocated.end(), id) == allocated.end()) {
    found.errors.invalid(path, id, "must be an allocated device in the claim");
  }
  const Value& conditions = device["conditions"];
  if (conditions.size() > kDeviceConditions) {
    found.errors.too_many(path.child("conditions"), conditions.size(), kDeviceConditions);
  }
  validate_conditions(conditions, path.child("conditions"), found.errors);
  if (is_set(device, "data")) {
    check_raw_object(device["data"], kOpaqueLength, false, path.child("data"), found);
  }
  if (is_set(device, "networkData")) {
    check_network_data(device["networkData"], path.child("networkData"), found);
  }
}

void check_result(const Value& result, const Names& names, const Path& path, Findings& found) {
  Value request(result["request"].as_string());
  check_request_reference(request, names, path.child("request"), found);
  std::size_t from = found.errors.size();
  check_driver_name(result["driver"].as_string(), path.child("driver"), found.errors);
  check_pool_name(result["pool"].as_string(), path.child("pool"), found.errors);
  found.cover(from);
  std::string_view device = result["device"].as_string();
  add_invalid(is_dns1123_label(device), Value(device), path.child("device"), found.errors);
  check_binding_conditions(result, path, found);
  if (found.features.minor() >= 37) {
    check_device_tolerations(result["tolerations"], path.child("tolerations"), found);
  }
  if (is_set(result, "shareID")) {
    from = found.errors.size();
    check_uuid(result["shareID"].as_string(), path.child("shareID"), found.errors);
    found.cover(from);
  }
  check_skipped_operations(result["skipNodeOperations"], path.child("skipNodeOperations"), found);
}

void check_allocation(const Value& allocation, const Names& names, const Path& path,
                      Findings& found) {
  Path devices_at = path.child("devices");
  const Value& results = allocation["devices"]["results"];
  Path results_at = devices_at.child("results");
  if (fits(results, kRequests, results_at, found, true)) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      check_result(results[i], names, results_at.index(i), found);
    }
  }
  const Value& config = allocation["devices"]["config"];
  Path config_at = devices_at.child("config");
  if (fits(config, 2 * kRequests, config_at, found, true)) {
    for (std::size_t i = 0; i < config.size(); ++i) {
      Path at = config_at.index(i);
      std::string_view source = config[i]["source"].as_string();
      std::size_t from = found.errors.size();
      if (source.empty()) {
        found.errors.required(at.child("source"));
      } else if (!is_one_of(source, {"FromClaim", "FromClass"})) {
        found.errors.not_supported(at.child("source"), Value(source), {"FromClaim", "FromClass"});
      }
      found.cover(from);
      check_request_references(config[i]["requests"], names, at.child("requests"), found);
      check_configuration(config[i], false, at, found);
    }
  }
  if (is_set(allocation, "nodeSelector")) {
    validate_node_selector(allocation["nodeSelector"], path.child("nodeSelector"), found.errors);
  }
}

void check_consumers(const Value& status, const Value& old, bool deleted, const Path& path,
                     Findings& found) {
  const Value& consumers = status["reservedFor"];
  if (consumers.empty()) return;
  if (!is_set(status, "allocation")) {
    found.errors.forbidden(path, "may not be specified when `allocated` is not set");
    return;
  }
  if (!deleted) return;
  for (const Value& consumer : consumers.items()) {
    auto before = old["reservedFor"].items();
    if (std::find(before.begin(), before.end(), consumer) == before.end()) {
      found.errors.forbidden(path,
                             "new entries may not be added while `deallocationRequested` or "
                             "`deletionTimestamp` are set");
      return;
    }
  }
}

}  // namespace

void check_unique_key(const Value& list, std::string_view key, const Path& path, Findings& found,
                      bool covered) {
  auto id = [&](const Value& item) { return Value((key.empty() ? item : item[key]).as_string()); };
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Value one = id(list[i]);
    if (seen.insert(one.str()).second) continue;
    std::size_t from = found.errors.size();
    found.errors.duplicate(path.index(i), one);
    if (covered) found.cover(from);
  }
}

void check_selectors(const Value& selectors, bool stored, const Path& path, Findings& found) {
  if (!fits(selectors, kRequests, path, found, true)) return;
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    Path at = path.index(i);
    if (!is_set(selectors[i], "cel")) {
      found.errors.required(at.child("cel"));
      continue;
    }
    // Since 1.37 an expression that is stored is not judged again.
    if (stored && found.features.minor() >= 37) continue;
    Path cel_at = at.child("cel");
    validate_selector(selectors[i]["cel"]["expression"].as_string(), environment(found, stored),
                      cel_at.child("expression"), found.errors);
  }
}

void check_configuration(const Value& config, bool stored, const Path& path, Findings& found) {
  const Value& opaque = config["opaque"];
  if (opaque.is_null()) {
    found.errors.required(path.child("opaque"));
    return;
  }
  Path at = path.child("opaque");
  std::size_t from = found.errors.size();
  check_driver_name(opaque["driver"].as_string(), at.child("driver"), found.errors);
  found.cover(from);
  check_raw_object(opaque["parameters"], kOpaqueLength, stored, at.child("parameters"), found);
}

void check_device_tolerations(const Value& tolerations, const Path& path, Findings& found) {
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    const Value& toleration = tolerations[i];
    Path at = path.index(i);
    std::size_t from = found.errors.size();
    if (!toleration["key"].as_string().empty()) {
      check_label_name(toleration["key"], at.child("key"), found.errors);
      found.cover(from);
    }
    std::string_view op = toleration["operator"].as_string();
    std::string_view value = toleration["value"].as_string();
    if (op == "Exists") {
      if (!value.empty()) {
        found.errors.invalid(at.child("value"), Value(value),
                             "must be empty for operator `Exists`");
      }
    } else if (op == "Equal") {
      add_invalid(is_label_value(value), Value(value), at.child("value"), found.errors);
    } else {
      from = found.errors.size();
      if (op.empty()) {
        found.errors.required(at.child("operator"));
      } else {
        found.errors.not_supported(at.child("operator"), Value(op), {"Equal", "Exists"});
      }
      found.cover(from);
    }
    std::string_view effect = toleration["effect"].as_string();
    if (!effect.empty() && !is_one_of(effect, {"NoExecute", "NoSchedule", "None"})) {
      from = found.errors.size();
      found.errors.not_supported(at.child("effect"), Value(effect),
                                 {"NoExecute", "NoSchedule", "None"});
      found.cover(from);
    }
  }
}

void check_claim_spec(const Value& spec, const Path& path, Findings& found) {
  const Value& devices = spec["devices"];
  Path devices_at = path.child("devices");
  Names names = request_names(devices);
  Claim claim{devices};
  const Value& requests = devices["requests"];
  Path requests_at = devices_at.child("requests");
  if (fits(requests, kRequests, requests_at, found, true)) {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      check_request(requests[i], claim, requests_at.index(i), found);
    }
    check_unique_key(requests, "name", requests_at, found, true);
  }
  const Value& constraints = devices["constraints"];
  Path constraints_at = devices_at.child("constraints");
  if (fits(constraints, kRequests, constraints_at, found, true)) {
    for (std::size_t i = 0; i < constraints.size(); ++i) {
      check_constraint(constraints[i], names, constraints_at.index(i), found);
    }
  }
  const Value& config = devices["config"];
  Path config_at = devices_at.child("config");
  if (fits(config, kRequests, config_at, found, true)) {
    for (std::size_t i = 0; i < config.size(); ++i) {
      Path at = config_at.index(i);
      check_request_references(config[i]["requests"], names, at.child("requests"), found);
      check_configuration(config[i], false, at, found);
    }
  }
  if (claim.derived_cost > kSelectorCostLimit) {
    found.errors.forbidden(devices_at,
                           "too complex, total cost of derived attribute CEL expressions in the "
                           "claim exceeds cost limit");
  }
}

void check_claim_status(const Value& claim, const Value& old, Findings& found) {
  const Value& status = claim["status"];
  const Value& old_status = old["status"];
  Path path("status");

  const Value& consumers = status["reservedFor"];
  Path consumers_at = path.child("reservedFor");
  if (fits(consumers, kConsumers, consumers_at, found, true)) {
    for (std::size_t i = 0; i < consumers.size(); ++i) {
      Path at = consumers_at.index(i);
      for (const char* key : {"resource", "name", "uid"}) {
        if (consumers[i][key].as_string().empty()) found.errors.required(at.child(key));
      }
    }
    check_unique_key(consumers, "uid", consumers_at, found, true);
  }

  std::vector<Value> allocated;
  for (const Value& result : status["allocation"]["devices"]["results"].items()) {
    allocated.push_back(device_id(result));
  }
  const Value& devices = status["devices"];
  Path devices_at = path.child("devices");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    check_device_status(devices[i], allocated, devices_at.index(i), found);
  }
  std::vector<Value> seen;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    Value id = device_id(devices[i]);
    if (std::find(seen.begin(), seen.end(), id) != seen.end()) {
      std::size_t from = found.errors.size();
      found.errors.duplicate(devices_at.index(i), id);
      found.cover(from);
    }
    seen.push_back(std::move(id));
  }

  check_consumers(status, old_status, is_set(claim["metadata"], "deletionTimestamp"), consumers_at,
                  found);

  // An allocation is set or taken away, never changed; one that stays was judged when it came.
  const Value& allocation = status["allocation"];
  const Value& old_allocation = old_status["allocation"];
  if (allocation.is_null()) return;
  Path allocation_at = path.child("allocation");
  if (old_allocation.is_null()) {
    check_allocation(allocation, request_names(claim["spec"]["devices"]), allocation_at, found);
  } else if (!(allocation == old_allocation)) {
    std::size_t from = found.errors.size();
    found.errors.invalid(
        allocation_at,
        shown_part(allocation, "ResourceClaim", {"status", "allocation"}, found.features),
        "field is immutable");
    found.cover(from);
  }
}

}  // namespace dibs::api
