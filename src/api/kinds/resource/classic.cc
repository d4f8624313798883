// The classic model of resource.k8s.io, v1alpha2: classes, claims of a class, scheduling contexts,
// and the named resources of 1.30.
//
// The releases that had it judged a main update twice over, once as a new object and once as a
// change, so every fault is among the causes twice.
#include <algorithm>
#include <set>

#include "api/devices/named_resources.h"
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/pod/scheduling.h"
#include "api/kinds/resource/names.h"
#include "api/kinds/resource/rules.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "base/semver.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kConsumers = 32;
constexpr std::size_t kHandles = 32;
constexpr std::size_t kHandleLength = 16 * 1024;
constexpr std::size_t kNodes = 128;
constexpr std::string_view kNoModel = "exactly one structured model field must be set";

void check_driver(const Value& holder, const Path& path, FieldErrors& errors) {
  std::string_view name = holder["driverName"].as_string();
  Path at = path.child("driverName");
  if (name.empty()) errors.required(at);
  if (name.size() > 63) {
    errors.add(Fault::too_long, at, "Too long: must have at most 63 bytes");
  }
  add_invalid(is_dns1123_subdomain(to_lower(name)), Value(name), at, errors);
}

bool is_longer(const Value& list, std::size_t limit, const Path& path, FieldErrors& errors) {
  if (list.size() <= limit) return false;
  errors.add(Fault::too_long, path, cat("Too long: may not be longer than ", limit));
  return true;
}

void check_reference(const Value& reference, bool with_namespace, const Path& path,
                     FieldErrors& errors) {
  if (reference.is_null()) return;
  for (const char* key : {"kind", "name"}) {
    if (reference[key].as_string().empty()) errors.required(path.child(key));
  }
  const Value& name_space = reference["namespace"];
  if (with_namespace && !name_space.as_string().empty()) {
    add_invalid(is_dns1123_label(name_space.as_string()), name_space, path.child("namespace"),
                errors);
  }
}

void check_class(const Value& object, FieldErrors& errors) {
  check_driver(object, Path(), errors);
  check_reference(object["parametersRef"], true, Path("parametersRef"), errors);
  if (is_set(object, "suitableNodes")) {
    validate_node_selector(object["suitableNodes"], Path("suitableNodes"), errors);
  }
}

void check_spec(const Value& spec, const Path& path, FieldErrors& errors) {
  std::string_view name = spec["resourceClassName"].as_string();
  add_invalid(is_dns1123_subdomain(name), Value(name), path.child("resourceClassName"), errors);
  check_reference(spec["parametersRef"], false, path.child("parametersRef"), errors);
  std::string_view mode = spec["allocationMode"].as_string();
  if (!is_one_of(mode, {"Immediate", "WaitForFirstConsumer"})) {
    errors.not_supported(path.child("allocationMode"), Value(mode),
                         {"Immediate", "WaitForFirstConsumer"});
  }
}

void check_nodes(const Value& nodes, const Path& path, FieldErrors& errors) {
  if (is_longer(nodes, kNodes, path, errors)) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!seen.insert(nodes[i].str()).second) {
      errors.duplicate(path.index(i), nodes[i]);
    } else {
      check_node_name(nodes[i].as_string(), path.index(i), errors);
    }
  }
}

// An attribute of an instance: a name and one value.
void check_attribute(const Value& attribute, const Path& path, FieldErrors& errors) {
  std::vector<std::string> set;
  for (const char* key :
       {"quantity", "bool", "int", "intSlice", "string", "stringSlice", "version"}) {
    if (is_set(attribute, key)) set.push_back(quoted(key));
  }
  if (is_set(attribute, "version") &&
      !SemanticVersion::parse(attribute["version"].as_string()).ok()) {
    errors.invalid(path.child("version"), attribute["version"],
                   "must be a string compatible with semver.org spec 2.0.0");
  }
  if (set.empty()) {
    errors.required(path, "exactly one value must be set");
  } else if (set.size() > 1) {
    errors.add(Fault::invalid, path,
               cat("Invalid value: []string{", join(set, ", "),
                   "}: exactly one field must be set, not several"));
  }
}

// Entries by name, each once; `check` looks at the rest of an entry.
template <typename Check>
void check_named(const Value& list, const Path& path, FieldErrors& errors, Check check) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Path at = path.index(i);
    std::string name = list[i]["name"].str();
    add_invalid(is_dns1123_subdomain(name), Value(name), at.child("name"), errors);
    if (!seen.insert(name).second) errors.duplicate(at.child("name"), Value(name));
    check(list[i], at);
  }
}

void check_slice(const Value& slice, FieldErrors& errors) {
  if (!slice["nodeName"].as_string().empty()) {
    check_node_name(slice["nodeName"].as_string(), Path("nodeName"), errors);
  }
  check_driver(slice, Path(), errors);
  if (!is_set(slice, "namedResources")) {
    errors.required(Path(), kNoModel);
    return;
  }
  Path model("namedResources");
  check_named(slice["namedResources"]["instances"], model.child("instances"), errors,
              [&](const Value& instance, const Path& at) {
                check_named(instance["attributes"], at.child("attributes"), errors,
                            [&](const Value& attribute, const Path& attribute_at) {
                              check_attribute(attribute, attribute_at, errors);
                            });
              });
}

void check_selector(const Value& holder, bool stored, const Path& path, FieldErrors& errors) {
  if (!is_set(holder, "namedResources")) {
    errors.required(path, kNoModel);
    return;
  }
  std::string_view selector = holder["namedResources"]["selector"].as_string();
  Path model = path.child("namedResources");
  if (selector.empty()) {
    errors.required(model.child("selector"));
  } else {
    validate_named_resources(selector, stored, model.child("selector"), errors);
  }
}

// Entries by driver, each driver once.
template <typename Check>
void check_by_driver(const Value& list, const Path& path, FieldErrors& errors, Check check) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Path at = path.index(i);
    std::string driver = list[i]["driverName"].str();
    check_driver(list[i], at, errors);
    if (!seen.insert(driver).second) errors.duplicate(at.child("driverName"), Value(driver));
    check(list[i], at);
  }
}

void check_claim_parameters(const Value& object, const Value* old, FieldErrors& errors) {
  check_reference(object["generatedFrom"], false, Path("generatedFrom"), errors);
  bool stored = old != nullptr && (*old)["driverRequests"] == object["driverRequests"];
  check_by_driver(object["driverRequests"], Path("driverRequests"), errors,
                  [&](const Value& entry, const Path& at) {
                    const Value& requests = entry["requests"];
                    Path requests_at = at.child("requests");
                    if (requests.empty()) {
                      errors.required(requests_at,
                                      "empty entries with no requests are not allowed");
                    }
                    for (std::size_t i = 0; i < requests.size(); ++i) {
                      check_selector(requests[i], stored, requests_at.index(i), errors);
                    }
                  });
}

void check_class_parameters(const Value& object, FieldErrors& errors) {
  check_reference(object["generatedFrom"], true, Path("generatedFrom"), errors);
  check_by_driver(
      object["filters"], Path("filters"), errors,
      [&](const Value& filter, const Path& at) { check_selector(filter, false, at, errors); });
  check_by_driver(object["vendorParameters"], Path("vendorParameters"), errors,
                  [](const Value&, const Path&) {});
}

void check_handle(const Value& handle, const Path& path, FieldErrors& errors) {
  check_driver(handle, path, errors);
  if (handle["data"].as_string().size() > kHandleLength) {
    errors.add(Fault::too_long, path.child("data"),
               cat("Too long: may not be longer than ", kHandleLength));
  }
  if (!is_set(handle, "structuredData")) return;
  const Value& data = handle["structuredData"];
  Path data_at = path.child("structuredData");
  if (!data["nodeName"].as_string().empty()) {
    check_node_name(data["nodeName"].as_string(), data_at.child("nodeName"), errors);
  }
  const Value& results = data["results"];
  Path results_at = data_at.child("results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    Path at = results_at.index(i);
    if (!is_set(results[i], "namedResources")) {
      errors.required(at, kNoModel);
      continue;
    }
    std::string_view name = results[i]["namedResources"]["name"].as_string();
    Path model = at.child("namedResources");
    add_invalid(is_dns1123_subdomain(name), Value(name), model.child("name"), errors);
  }
  if (!handle["data"].as_string().empty()) {
    errors.invalid(path, "null", "data and structuredData are mutually exclusive");
  }
}

void check_allocation(const Value& allocation, const Path& path, FieldErrors& errors) {
  const Value& handles = allocation["resourceHandles"];
  Path handles_at = path.child("resourceHandles");
  for (std::size_t i = 0; i < handles.size(); ++i) {
    check_handle(handles[i], handles_at.index(i), errors);
  }
  is_longer(handles, kHandles, handles_at, errors);
  if (is_set(allocation, "availableOnNodes")) {
    validate_node_selector(allocation["availableOnNodes"], path.child("availableOnNodes"), errors);
  }
}

void check_consumers(const Value& consumers, const Path& path, FieldErrors& errors) {
  if (is_longer(consumers, kConsumers, path, errors)) return;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < consumers.size(); ++i) {
    Path at = path.index(i);
    for (const char* key : {"resource", "name", "uid"}) {
      if (consumers[i][key].as_string().empty()) errors.required(at.child(key));
    }
    std::string uid = consumers[i]["uid"].str();
    if (!seen.insert(uid).second) errors.duplicate(at.child("uid"), Value(uid));
  }
}

bool adds_consumer(const Value& consumers, const Value& before) {
  auto old = before.items();
  for (const Value& consumer : consumers.items()) {
    if (std::find(old.begin(), old.end(), consumer) == old.end()) return true;
  }
  return false;
}

// Structures as these releases wrote them into messages.
std::string shown_part(const Value& part, std::string_view kind,
                       std::initializer_list<std::string_view> steps, const Features& features) {
  constexpr int kLast = 30;
  const int release = features.minor() <= kLast ? features.minor() : 0;
  const Schema* schema = builtin_schema("resource.k8s.io", "v1alpha2", kind, release);
  for (std::string_view step : steps) schema = schema->field(step)->schema;
  return go_syntax(part, *schema);
}

void immutable(const Path& path, const std::string& shown, FieldErrors& errors) {
  errors.add(Fault::invalid, path, cat("Invalid value: ", shown, ": field is immutable"));
}

void check_claim_status(const Value& claim, const Value& old, const Features& features,
                        FieldErrors& errors) {
  const Value& status = claim["status"];
  const Value& before = old["status"];
  Path path("status");
  const Value& allocation = status["allocation"];
  if (!status["driverName"].as_string().empty()) {
    check_driver(status, path, errors);
  } else if (!allocation.is_null()) {
    errors.required(path.child("driverName"), "must be specified when `allocation` is set");
  }
  if (!allocation.is_null()) check_allocation(allocation, path.child("allocation"), errors);

  const Value& consumers = status["reservedFor"];
  Path consumers_at = path.child("reservedFor");
  check_consumers(consumers, consumers_at, errors);
  bool deallocating = status["deallocationRequested"].as_bool();
  if (!consumers.empty()) {
    if (allocation.is_null()) {
      errors.forbidden(consumers_at, "may not be specified when `allocated` is not set");
    } else {
      if (!allocation["shareable"].as_bool() && consumers.size() > 1) {
        errors.forbidden(consumers_at, "may not be reserved more than once");
      }
      bool ending = deallocating || is_set(claim["metadata"], "deletionTimestamp");
      if (ending && adds_consumer(consumers, before["reservedFor"])) {
        errors.forbidden(consumers_at,
                         "new entries may not be added while `deallocationRequested` or "
                         "`deletionTimestamp` are set");
      }
    }
  }
  if (!allocation.is_null() && is_set(before, "allocation") &&
      !(allocation == before["allocation"])) {
    immutable(path.child("allocation"),
              shown_part(allocation, "ResourceClaim", {"status", "allocation"}, features), errors);
  }
  bool was_deallocating = before["deallocationRequested"].as_bool();
  Path deallocation_at = path.child("deallocationRequested");
  if (deallocating && !was_deallocating && !consumers.empty()) {
    errors.forbidden(deallocation_at,
                     "deallocation cannot be requested while `reservedFor` is set");
  }
  if (allocation.is_null() && deallocating) {
    errors.forbidden(path, "`allocation` must be set when `deallocationRequested` is set");
  }
  if (!deallocating && was_deallocating && !allocation.is_null()) {
    errors.forbidden(deallocation_at, "may not be cleared when `allocation` is set");
  }
}

}  // namespace

void set_classic_defaults(Value& object) {
  if (!object["spec"].is_object()) object.set("spec", Value::object());
  Value* spec = &object.mut("spec");
  if (object["kind"].as_string() == "ResourceClaimTemplate") {
    if (!(*spec)["spec"].is_object()) spec->set("spec", Value::object());
    spec = &object.mut("spec").mut("spec");
  }
  set_default_text(*spec, "allocationMode", "WaitForFirstConsumer");
}

void validate_classic(std::string_view kind, const Value& object, const Features&,
                      FieldErrors& errors) {
  Path spec("spec");
  if (kind == "ResourceClass") check_class(object, errors);
  if (kind == "ResourceClaim") check_spec(object["spec"], spec, errors);
  if (kind == "ResourceClaimTemplate") {
    check_spec(object["spec"]["spec"], spec.child("spec"), errors);
  }
  if (kind == "PodSchedulingContext") {
    check_nodes(object["spec"]["potentialNodes"], spec.child("potentialNodes"), errors);
  }
  if (kind == "ResourceSlice") check_slice(object, errors);
  if (kind == "ResourceClaimParameters") check_claim_parameters(object, nullptr, errors);
  if (kind == "ResourceClassParameters") check_class_parameters(object, errors);
}

void validate_classic_update(std::string_view kind, const Value& object, const Value& old,
                             const Features& features, FieldErrors& errors) {
  if (kind == "ResourceClaimParameters") {
    check_claim_parameters(object, &old, errors);
    return;
  }
  if (kind == "ResourceSlice") {
    check_slice(object, errors);
    for (const char* key : {"nodeName", "driverName"}) {
      Value now(object[key].as_string());
      if (!(now == Value(old[key].as_string()))) {
        errors.invalid(Path(key), now, "field is immutable");
      }
    }
    return;
  }
  bool twice = kind != "ResourceClassParameters";
  std::vector<FieldError> metadata = errors.errors();
  validate_classic(kind, object, features, errors);
  if (!twice) return;
  for (const FieldError& error : metadata) errors.add(error.fault, Path(error.field), error.text);
  if (!(object["spec"] == old["spec"])) {
    if (kind == "ResourceClaim" || kind == "ResourceClaimTemplate") {
      immutable(Path("spec"), shown_part(object["spec"], kind, {"spec"}, features), errors);
    }
  }
  validate_classic(kind, object, features, errors);
}

void validate_classic_status(std::string_view kind, const Value& object, const Value& old,
                             const Features& features, FieldErrors& errors) {
  if (kind == "ResourceClaim") {
    check_claim_status(object, old, features, errors);
    return;
  }
  if (kind != "PodSchedulingContext") return;
  const Value& claims = object["status"]["resourceClaims"];
  Path status("status");
  Path path = status.child("claims");
  std::set<std::string> seen;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    Path at = path.index(i);
    std::string name = claims[i]["name"].str();
    check_nodes(claims[i]["unsuitableNodes"], at.child("unsuitableNodes"), errors);
    if (!seen.insert(name).second) errors.duplicate(at, Value(name));
  }
}

}  // namespace dibs::api
