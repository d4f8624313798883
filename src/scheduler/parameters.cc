#include "scheduler/parameters.h"

#include "base/strings.h"
#include "client/client.h"

namespace dibs::scheduler {
namespace {

using json::Value;

constexpr std::string_view kGroup = "resource.k8s.io";

/// Equal for references to the same object.
std::string text_of(const Value& reference) {
  return cat(reference["apiGroup"].as_string(), "\n", reference["kind"].as_string(), "\n",
             reference["namespace"].as_string(), "\n", reference["name"].as_string());
}

bool same_content(const Value& a, const Value& b) {
  for (const char* field :
       {"generatedFrom", "shareable", "driverRequests", "vendorParameters", "filters"}) {
    if (!(a[field] == b[field])) return false;
  }
  return true;
}

/// Of a claim that says nothing: any one resource of the driver, for as many pods as like.
Value default_parameters(const Value& resource_class) {
  const Value request = Value::object({{"namedResources", Value::object({{"selector", "true"}})}});
  return Value::object(
      {{"shareable", true},
       {"driverRequests", Value::array({Value::object({{"driverName", resource_class["driverName"]},
                                                       {"requests", Value::array({request})}})})}});
}

}  // namespace

bool Parameters::Objects::put(const Value& object) {
  const std::string key = client::key_of(object);
  Value& known = objects_[key];
  const bool changed = known.is_null() || !same_content(known, object);
  if (changed && known["generatedFrom"].is_object()) forget(key);
  known = object;
  if (object["generatedFrom"].is_object()) {
    made_from_[text_of(object["generatedFrom"])].insert(key);
  }
  return changed;
}

void Parameters::Objects::forget(const std::string& key) {
  const auto found = made_from_.find(text_of(objects_.at(key)["generatedFrom"]));
  if (found == made_from_.end()) return;
  found->second.erase(key);
  if (found->second.empty()) made_from_.erase(found);
}

void Parameters::Objects::remove(const Value& object) {
  const std::string key = client::key_of(object);
  if (!objects_.contains(key)) return;
  forget(key);
  objects_.erase(key);
}

Value Parameters::Objects::named(const std::string& key) const {
  const auto found = objects_.find(key);
  return found != objects_.end() ? found->second : Value();
}

Value Parameters::Objects::made_from(const Value& reference, std::string_view name_space) const {
  const auto found = made_from_.find(text_of(reference));
  if (found == made_from_.end()) return {};
  for (const std::string& key : found->second) {
    if (name_space.empty() || client::split_key(key).first == name_space) return objects_.at(key);
  }
  return {};
}

Value Parameters::find_one(const Objects& objects, const Value& reference, std::string_view kind,
                           std::string_view name_space, bool of_class, std::string& problem) {
  const std::string_view what = of_class ? "class" : "claim";
  const std::string name = reference["name"].str();
  if (reference["apiGroup"].as_string() == kGroup && reference["kind"].as_string() == kind) {
    const std::string key = client::key_of(name_space, name);
    Value found = objects.named(key);
    if (found.is_null()) problem = cat(what, " parameters ", key, " not found");
    return found;
  }
  // A class is of no namespace: what was made for it may be in any, and upstream names none.
  Value found = objects.made_from(reference, of_class ? "" : name_space);
  if (found.is_null()) {
    problem = cat("generated ", what, " parameters for ", reference["kind"].as_string(), ".",
                  reference["apiGroup"].as_string(), " ",
                  of_class ? name : client::key_of(name_space, name), " not found");
  }
  return found;
}

FoundParameters Parameters::find(const Value& claim, const Value& resource_class) const {
  FoundParameters made;
  const Value& of_class = resource_class["parametersRef"];
  if (of_class.is_object()) {
    made.of_class = find_one(classes_, of_class, "ResourceClassParameters",
                             of_class["namespace"].as_string(), true, made.problem);
  }
  if (!made.problem.empty()) return made;
  const Value& of_claim = claim["spec"]["parametersRef"];
  made.of_claim = of_claim.is_object()
                      ? find_one(claims_, of_claim, "ResourceClaimParameters",
                                 claim["metadata"]["namespace"].as_string(), false, made.problem)
                      : default_parameters(resource_class);
  return made;
}

}  // namespace dibs::scheduler
