// StorageVersionMigration: objects of a resource that are to be written anew.

#include <algorithm>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

void validate_migration(const Value& object, FieldErrors& errors) {
  const Value& resource = object["spec"]["resource"];
  const Path spec("spec");
  const Path path = spec.child("resource");
  const auto refuse = [&](std::string_view key, const Faults& faults) {
    if (!faults.empty())
      errors.invalid(path.child(key), resource[key], join({faults.begin(), faults.end()}, ","));
  };
  if (resource["resource"].as_string().empty()) {
    errors.required(path.child("resource"), "resource is required to be set");
  } else {
    refuse("resource", is_name(NameRule::service, resource["resource"].as_string()));
  }
  if (!resource["group"].as_string().empty())
    refuse("group", is_dns1123_subdomain(resource["group"].as_string()));
}

void validate_migration_status(const Value& object, const Value& old, FieldErrors& errors) {
  const Path path("status");
  const Value& version = object["status"]["resourceVersion"];
  const std::string_view text = version.as_string();
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    errors.invalid(path.child("resourceVersion"), version,
                   cat("resource version is not well formed: ", text));
  }
  const Value& conditions = object["status"]["conditions"];
  const Path at = path.child("conditions");
  validate_conditions(conditions, at, errors);
  if (!old["status"]["resourceVersion"].as_string().empty() &&
      old["status"]["resourceVersion"].as_string() != text) {
    errors.invalid(path.child("resourceVersion"), version, "field is immutable");
  }
  const bool succeeded = condition_is_true(conditions, "Succeeded");
  const bool failed = condition_is_true(conditions, "Failed");
  if (succeeded && failed) {
    errors.invalid(at, conditions,
                   "Both success and failed conditions cannot be true at the same time");
  }
  if (condition_is_true(old["status"]["conditions"], "Succeeded") && !succeeded)
    errors.invalid(at, conditions, "Success condition cannot be set to false once it is true");
  if (condition_is_true(old["status"]["conditions"], "Failed") && !failed)
    errors.invalid(at, conditions, "Failed condition cannot be set to false once it is true");
}

}  // namespace

void add_migration_rules(RuleTable& table) {
  KindRules rules;
  rules.tracks_generation = true;
  rules.has_status = true;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  rules.validate = validate_migration;
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_migration(object, errors);
    validate_immutable(object["spec"], old["spec"], Path("spec"), errors);
  };
  rules.validate_status = validate_migration_status;
  table[{"storagemigration.k8s.io", "StorageVersionMigration"}] = std::move(rules);
}

}  // namespace dibs::api
