#include "api/structural/crd_rules.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/schema/builtin.h"
#include "api/schema/catalog.h"
#include "api/schema/go_print.h"
#include "api/structural/crd_conversion.h"
#include "api/structural/crd_parts.h"
#include "api/structural/formats.h"
#include "base/finalizers.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

/// The definition as upstream judges it: what all versions have in common stands beside them, not
/// in them. Messages name fields of this form.
struct Hoisted {
  Value versions;
  Value schema;
  Value subresources;
  Value columns;
  Value selectable;
};

Value hoist(Value& versions, std::string_view key) {
  if (versions.empty()) return {};
  const Value first = versions[0][key];
  for (const Value& version : versions.items()) {
    if (!(version[key] == first)) return {};
  }
  if (first.is_null()) return {};
  for (std::size_t i = 0; i < versions.size(); ++i) versions.mut(i).erase(key);
  return first;
}

Hoisted hoisted(const Value& spec) {
  Hoisted form;
  form.versions = spec["versions"];
  form.subresources = hoist(form.versions, "subresources");
  form.schema = hoist(form.versions, "schema");
  form.columns = hoist(form.versions, "additionalPrinterColumns");
  form.selectable = hoist(form.versions, "selectableFields");
  return form;
}

/// A form's parts at `path`: the spec's, or those of one version.
void validate_schema_part(const Value& holder, const Path& path, bool has_status, bool is_stored,
                          const CelChecker& cel, FieldErrors& errors) {
  const Value& schema = holder["openAPIV3Schema"];
  if (!schema.is_null())
    validate_definition_schema(schema, path, has_status, is_stored, cel, errors);
}

/// The version's schema is what it was.
bool same_schema(const Value& spec, const Value* old, std::string_view version) {
  if (old == nullptr) return false;
  for (const Value& candidate : spec["versions"].items()) {
    if (candidate["name"].as_string() != version) continue;
    for (const Value& before : (*old)["spec"]["versions"].items()) {
      if (before["name"].as_string() == version)
        return candidate["schema"]["openAPIV3Schema"] == before["schema"]["openAPIV3Schema"];
    }
  }
  return false;
}

void validate_version(const Value& version, const Path& path, bool has_status, bool is_stored,
                      const CelChecker& cel, FieldErrors& errors) {
  check_deprecation(version, path.child("deprecationWarning"), errors);
  validate_schema_part(version["schema"], path.child("schema"), has_status, is_stored, cel, errors);
  validate_scale(version["subresources"]["scale"], path.child("subresources"), errors);
  validate_columns(version["additionalPrinterColumns"], path.child("additionalPrinterColumns"),
                   errors);
  const Value& fields = version["selectableFields"];
  if (fields.empty()) return;
  const Path at = path.child("selectableFields");
  const Value& schema = version["schema"]["openAPIV3Schema"];
  if (schema.is_null()) {
    errors.invalid(at, "", "may only be set when `version.schema.openAPIV3Schema` is not included");
  } else {
    validate_selectable(fields, schema, at, errors);
  }
}

bool has_default(const Value& spec) {
  bool found = false;
  for (const Value& version : spec["versions"].items()) {
    for_each_schema(version["schema"]["openAPIV3Schema"],
                    [&](const Value& schema) { found = found || !schema["default"].is_null(); });
  }
  return found;
}

bool has_status(const Value& subresources) { return !subresources["status"].is_null(); }

void validate_versions(const Hoisted& form, const Value& spec, const Value* old, const Path& path,
                       const CelChecker& cel, FieldErrors& errors) {
  std::set<std::string_view> names;
  std::size_t storage = 0;
  bool unique = true;
  for (std::size_t i = 0; i < form.versions.size(); ++i) {
    const Value& version = form.versions[i];
    const Path at = path.index(i);
    if (version["storage"].as_bool()) ++storage;
    unique = names.insert(version["name"].as_string()).second && unique;
    if (const auto faults = is_dns1035_label(version["name"].as_string()); !faults.empty()) {
      errors.invalid(at.child("name"), version["name"], join(faults, ","));
    }
    const bool status =
        has_status(form.subresources.is_null() ? version["subresources"] : form.subresources);
    validate_version(version, at, status, same_schema(spec, old, version["name"].as_string()), cel,
                     errors);
  }
  auto invalid = [&](std::string_view detail) {
    const Schema* type = builtin_type("apiextensions/v1.CustomResourceDefinitionSpec");
    errors.invalid(path, go_form(form.versions, *type->field("versions")->schema), detail);
  };
  if (!unique) invalid("must contain unique version names");
  if (storage != 1) invalid("must have exactly one version marked as storage version");
}

void validate_spec(const Value& definition, const Value* old, const CelChecker& cel,
                   FieldErrors& errors) {
  const Value& spec = definition["spec"];
  const Path path("spec");
  const Hoisted form = hoisted(spec);
  const Value& group = spec["group"];
  if (group.as_string().empty()) {
    errors.required(path.child("group"));
  } else if (const auto faults = is_dns1123_subdomain(group.as_string()); !faults.empty()) {
    errors.invalid(path.child("group"), group, join(faults, ","));
  } else if (group.as_string().find('.') == std::string_view::npos) {
    errors.invalid(path.child("group"), group, "should be a domain with at least one dot");
  }
  const auto scope = spec["scope"].as_string();
  if (scope.empty()) {
    errors.required(path.child("scope"));
  } else if (!is_one_of(scope, {"Cluster", "Namespaced"})) {
    errors.not_supported(path.child("scope"), scope, {"Cluster", "Namespaced"});
  }

  const Path versions = path.child("versions");
  if (form.schema["openAPIV3Schema"].is_null()) {
    for (std::size_t i = 0; i < form.versions.size(); ++i) {
      if (!form.versions[i]["schema"]["openAPIV3Schema"].is_null()) continue;
      const Path version = versions.index(i);
      errors.required(version.child("schema").child("openAPIV3Schema"));
    }
  }
  const bool preserves = spec["preserveUnknownFields"].as_bool();
  if (preserves && has_default(spec)) {
    errors.invalid(path.child("preserveUnknownFields"), true,
                   "must be false in order to use defaults in the schema");
  }
  validate_versions(form, spec, old, versions, cel, errors);
  if (!form.versions.empty())
    check_definition_label(form.versions[0]["name"], path.child("version"), errors);

  const Path names = path.child("names");
  for (const char* name : {"plural", "singular", "kind", "listKind"}) {
    if (spec["names"][name].as_string().empty()) errors.required(names.child(name));
  }
  validate_definition_names(spec["names"], names, errors);
  bool any_status = has_status(form.subresources);
  for (const Value& version : form.versions.items())
    any_status = any_status || has_status(version["subresources"]);
  validate_schema_part(form.schema, path.child("validation"), any_status,
                       same_schema(spec, old, form.versions[0]["name"].as_string()), cel, errors);
  validate_scale(form.subresources["scale"], path.child("subresources"), errors);
  validate_columns(form.columns, path.child("additionalPrinterColumns"), errors);
  if (!form.selectable.empty()) {
    const Path at = path.child("selectableFields");
    if (form.schema.is_null()) {
      errors.invalid(at, "", "may only be set when validations.schema is included");
    } else {
      validate_selectable(form.selectable, form.schema["openAPIV3Schema"], at, errors);
    }
  }
  const Value& conversion = spec["conversion"];
  if (preserves && !conversion.is_null() && conversion["strategy"].as_string() != "None") {
    errors.invalid(path.child("conversion").child("strategy"), conversion["strategy"],
                   "must be None if spec.preserveUnknownFields is true");
  }
  const bool established = old != nullptr && definition_condition(*old, "Established");
  validate_conversion(conversion, old == nullptr ? nullptr : &(*old)["spec"]["conversion"],
                      established, path.child("conversion"), errors);
}

void validate_stored_versions(const Value& definition, FieldErrors& errors) {
  const Path status("status");
  const Path path = status.child("storedVersions");
  const Value& stored = definition["status"]["storedVersions"];
  if (stored.empty()) {
    errors.invalid(path, stored, "must have at least one stored version");
    return;
  }
  const auto is_stored = [&](std::string_view name) {
    const auto items = stored.items();
    return std::any_of(items.begin(), items.end(),
                       [&](const Value& item) { return item.as_string() == name; });
  };
  std::set<std::string_view> names;
  for (const Value& version : definition["spec"]["versions"].items()) {
    const auto name = version["name"].as_string();
    names.insert(name);
    if (version["storage"].as_bool() && !is_stored(name)) {
      errors.invalid(path, stored, cat("must have the storage version ", name));
    }
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const auto name = stored[i].as_string();
    if (names.contains(name)) continue;
    errors.invalid(
        path.index(i), stored[i],
        cat("missing from spec.versions; ", name,
            " was previously a storage version, and must remain in "
            "spec.versions until a storage migration ensures no data remains persisted in ",
            name, " and removes ", name, " from status.storedVersions"));
  }
}

enum class Approval : char { missing, bypassed, approved, invalid };

constexpr std::string_view kApproved = "api-approved.kubernetes.io";

Approval approval_of(const Value& definition) {
  const auto text = definition["metadata"]["annotations"][kApproved].as_string();
  if (text.empty()) return Approval::missing;
  if (text.starts_with("unapproved")) return Approval::bypassed;
  const auto colon = text.find("://");
  const bool is_url = colon != std::string_view::npos && colon > 0 && colon + 3 < text.size() &&
                      text[colon + 3] != '/' && text.find(' ') == std::string_view::npos;
  return is_url ? Approval::approved : Approval::invalid;
}

/// The groups of the Kubernetes community need a word of its reviewers.
void validate_approval(const Value& definition, const Value* old, FieldErrors& errors) {
  const auto group = definition["spec"]["group"].as_string();
  if (group != "k8s.io" && !group.ends_with(".k8s.io") && group != "kubernetes.io" &&
      !group.ends_with(".kubernetes.io")) {
    return;
  }
  const Approval approval = approval_of(definition);
  if (old != nullptr && approval_of(*old) == approval) return;
  const Path metadata("metadata");
  const Path annotations = metadata.child("annotations");
  const Path path = annotations.key(kApproved);
  constexpr std::string_view kSee = ", see https://github.com/kubernetes/enhancements/pull/1111";
  if (approval == Approval::missing) {
    errors.required(
        path, cat("protected groups must have approval annotation ", quoted(kApproved), kSee));
  } else if (approval == Approval::invalid) {
    errors.invalid(path, definition["metadata"]["annotations"][kApproved],
                   cat("protected groups must have approval annotation ", quoted(kApproved),
                       " with either a URL or a reason starting with \"unapproved\"", kSee));
  }
}

void validate_rest(const Value& definition, const Value* old, FieldErrors& errors) {
  const Path status("status");
  validate_definition_names(definition["status"]["acceptedNames"], status.child("acceptedNames"),
                            errors);
  validate_stored_versions(definition, errors);
  validate_approval(definition, old, errors);
  const bool was_preserving = old != nullptr && (*old)["spec"]["preserveUnknownFields"].as_bool();
  if (!was_preserving && definition["spec"]["preserveUnknownFields"].as_bool()) {
    const Path spec("spec");
    errors.invalid(spec.child("preserveUnknownFields"), true,
                   "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                   "spec.versions[*].schema "
                   "instead");
  }
}

void validate_new(const Value& definition, const CelChecker& cel, FieldErrors& errors) {
  const auto name = definition["metadata"]["name"].as_string();
  const Value& spec = definition["spec"];
  if (name != cat(spec["names"]["plural"].as_string(), ".", spec["group"].as_string())) {
    const Path metadata("metadata");
    errors.invalid(metadata.child("name"), name, "must be spec.names.plural+\".\"+spec.group");
  }
  validate_spec(definition, nullptr, cel, errors);
  validate_rest(definition, nullptr, errors);
}

void validate_change(const Value& definition, const Value& old, const CelChecker& cel,
                     FieldErrors& errors) {
  validate_spec(definition, &old, cel, errors);
  const Path path("spec");
  const Path names = path.child("names");
  const Value& spec = definition["spec"];
  const Value& before = old["spec"];
  if (definition_condition(old, "Established")) {
    validate_immutable(spec["scope"], before["scope"], path.child("scope"), errors);
    validate_immutable(spec["names"]["kind"], before["names"]["kind"], names.child("kind"), errors);
  }
  validate_immutable(spec["group"], before["group"], path.child("group"), errors);
  validate_immutable(spec["names"]["plural"], before["names"]["plural"], names.child("plural"),
                     errors);
  validate_rest(definition, &old, errors);
}

/// The first storage version joins those that objects may be stored in.
void note_storage_version(Value& definition) {
  for (const Value& version : definition["spec"]["versions"].items()) {
    if (!version["storage"].as_bool()) continue;
    Value& stored = definition.mut("status").mut("storedVersions");
    const auto items = stored.items();
    if (std::find(items.begin(), items.end(), version["name"]) == items.end())
      stored.push(version["name"]);
    return;
  }
}

void set_definition_defaults(Value& definition) {
  const Value names = definition["spec"]["names"];
  const auto kind = names["kind"].as_string();
  if (!kind.empty() && names["singular"].as_string().empty()) {
    definition.mut("spec").mut("names").set("singular", to_lower(kind));
  }
  if (!kind.empty() && names["listKind"].as_string().empty()) {
    definition.mut("spec").mut("names").set("listKind", cat(kind, "List"));
  }
  if (definition["spec"]["conversion"].is_null()) {
    definition.mut("spec").set("conversion", Value::object({{"strategy", "None"}}));
  }
  const Value& service = definition["spec"]["conversion"]["webhook"]["clientConfig"]["service"];
  if (service.is_object() && service["port"].is_null()) {
    definition.mut("spec")
        .mut("conversion")
        .mut("webhook")
        .mut("clientConfig")
        .mut("service")
        .set("port", 443);
  }
  if (definition["status"]["storedVersions"].empty()) note_storage_version(definition);
}

void prepare_new(Value& definition) {
  definition.set("status",
                 Value::object({{"conditions", nullptr},
                                {"acceptedNames", Value::object({{"plural", ""}, {"kind", ""}})},
                                {"storedVersions", nullptr}}));
  note_storage_version(definition);
}

std::vector<std::string> unknown_formats(const Value& definition) {
  std::vector<std::string> warnings;
  for (const Value& version : definition["spec"]["versions"].items()) {
    for_each_schema(version["schema"]["openAPIV3Schema"], [&](const Value& schema) {
      const auto format = schema["format"].as_string();
      if (!format.empty() && !is_known_format(schema["type"].as_string(), format)) {
        warnings.push_back(cat("unrecognized format ", quoted(format)));
      }
    });
  }
  return warnings;
}

std::set<std::string> odd_sets(const Value& definition) {
  std::set<std::string> warnings;
  for (const Value& version : definition["spec"]["versions"].items()) {
    for_each_schema(version["schema"]["openAPIV3Schema"], [&](const Value& schema) {
      const auto type = schema["items"]["type"].as_string();
      if (schema["x-kubernetes-list-type"].as_string() == "set" &&
          (type == "object" || type == "array")) {
        warnings.insert(cat("x-kubernetes-list-type: set for items of type ", quoted(type),
                            " is not supported by server-side apply or CEL validation rules"));
      }
    });
  }
  return warnings;
}

/// A definition waits until its objects are gone.
void mark_deleted(Value& definition, Time now) {
  bool held = false;
  for (const Value& item : definition["metadata"]["finalizers"].items())
    held = held || item.as_string() == kDefinitionFinalizer;
  if (!held) definition.mut("metadata").mut("finalizers").push(kDefinitionFinalizer);
  for (const Value& condition : definition["status"]["conditions"].items()) {
    if (condition["type"].as_string() == "Terminating") return;
  }
  definition.mut("status")
      .mut("conditions")
      .push(Value::object({{"type", "Terminating"},
                           {"status", "True"},
                           {"lastTransitionTime", format_rfc3339(now)},
                           {"reason", "InstanceDeletionPending"},
                           {"message",
                            "CustomResourceDefinition marked for deletion; CustomResource deletion "
                            "will begin soon"}}));
}

/// Of a change only what it brings in is told. Schemas that all versions share are told once.
std::vector<std::string> definition_warnings(const Value& definition, const Value* old) {
  std::vector<std::string> warnings = unknown_formats(definition);
  const Hoisted form = hoisted(definition["spec"]);
  if (!form.schema.is_null() && definition["spec"]["versions"].size() > 1) {
    warnings.resize(warnings.size() / definition["spec"]["versions"].size());
  }
  for (const std::string& warning : odd_sets(definition)) warnings.push_back(warning);
  if (old == nullptr) return warnings;
  std::set<std::string> known = odd_sets(*old);
  for (std::string& warning : unknown_formats(*old)) known.insert(std::move(warning));
  std::erase_if(warnings, [&](const std::string& warning) { return known.contains(warning); });
  return warnings;
}

}  // namespace

bool definition_condition(const Value& definition, std::string_view type) {
  return condition_is_true(definition["status"]["conditions"], type);
}

std::string deprecation_warning(const Value& definition, std::string_view version) {
  const Value& spec = definition["spec"];
  const Value* deprecated = nullptr;
  std::string_view newest;
  for (const Value& candidate : spec["versions"].items()) {
    const auto name = candidate["name"].as_string();
    if (name == version) deprecated = &candidate;
    if (candidate["deprecated"].as_bool() || !candidate["served"].as_bool()) continue;
    if (version_before(name, version) && (newest.empty() || version_before(name, newest)))
      newest = name;
  }
  if (deprecated == nullptr || !(*deprecated)["deprecated"].as_bool()) return "";
  if (const Value& text = (*deprecated)["deprecationWarning"]; !text.is_null()) return text.str();
  const auto group = spec["group"].as_string();
  const auto kind = spec["names"]["kind"].as_string();
  std::string text = cat(group, "/", version, " ", kind, " is deprecated");
  if (!newest.empty()) append(text, "; use ", group, "/", newest, " ", kind);
  return text;
}

KindRules make_definition_rules(CelChecker cel) {
  KindRules rules;
  rules.tracks_generation = true;
  rules.has_status = true;
  rules.allow_unconditional_update = false;
  rules.any_finalizers = true;
  rules.judged_as_sent = true;
  rules.mark_deleted = mark_deleted;
  rules.set_defaults = set_definition_defaults;
  rules.prepare_create = [](Value& object, const RuleContext&) { prepare_new(object); };
  rules.prepare_update = [](Value& object, const Value& old, const RuleContext&) {
    object.set("status", old["status"]);
    note_storage_version(object);
  };
  rules.validate = [cel](const Value& object, FieldErrors& errors) {
    validate_new(object, cel, errors);
  };
  rules.validate_update = [cel](const Value& object, const Value& old, FieldErrors& errors) {
    validate_change(object, old, cel, errors);
  };
  rules.validate_status = [](const Value& object, const Value&, FieldErrors& errors) {
    const Path status("status");
    validate_definition_names(object["status"]["acceptedNames"], status.child("acceptedNames"),
                              errors);
  };
  rules.warnings = definition_warnings;
  return rules;
}

}  // namespace dibs::api
