#include "api/kinds/metadata.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "api/kinds/selector_limits.h"
#include "base/finalizers.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kAnnotationsMaxSize = 256 * 1024;

// The value in the words of the API: members in the order of its own type, empty ones left out.
Value shown_owner_reference(const Value& reference) {
  Value shown = Value::object();
  for (const char* key :
       {"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"}) {
    const Value* member = reference.find(key);
    if (member != nullptr)
      shown.set(key, *member);
    else if (std::string_view(key) != "controller" && std::string_view(key) != "blockOwnerDeletion")
      shown.set(key, "");
  }
  return shown;
}

constexpr int kOwnersByIndexSince = 33;

void validate_owner_reference(const Value& reference, const Path& path, bool named_only,
                              FieldErrors& errors) {
  std::string_view api_version = reference["apiVersion"].as_string();
  auto parts = split(api_version, '/');
  bool valid_version = true;
  if (api_version.empty() && named_only) {
    errors.invalid(path.child("apiVersion"), "", "version must not be empty");
    valid_version = false;
  } else if (api_version.empty()) {
    errors.required(path.child("apiVersion"), "must not be empty");
    valid_version = false;
  } else if (parts.size() > 2) {
    errors.invalid(path.child("apiVersion"), reference["apiVersion"],
                   "must be <group>/<version> or <version>");
    valid_version = false;
  }
  for (const char* key : {"kind", "name", "uid"}) {
    if (!reference[key].as_string().empty()) continue;
    if (named_only) {
      errors.invalid(path.child(key), "", cat(key, " must not be empty"));
    } else {
      errors.required(path.child(key), "must not be empty");
    }
  }
  // Events are short-lived: nothing may hang on them.
  if (valid_version && parts.back() == "v1" && reference["kind"].as_string() == "Event" &&
      (parts.size() == 1 || parts[0].empty())) {
    errors.invalid(path, shown_owner_reference(reference),
                   "/v1, Kind=Event is disallowed from being an owner");
  }
}

// What holds of metadata at every write, in the order of the API.
void validate_common(const Value& metadata, const Path& path, FieldErrors& errors, int release) {
  if (metadata["generation"].as_int() < 0) {
    errors.invalid(path.child("generation"), metadata["generation"],
                   "must be greater than or equal to 0");
  }
  validate_labels(metadata["labels"], path.child("labels"), errors);
  validate_annotations(metadata["annotations"], path.child("annotations"), errors);
  validate_owner_references(metadata["ownerReferences"], path.child("ownerReferences"), errors,
                            release);
  validate_finalizers(metadata["finalizers"], path.child("finalizers"), errors);
  validate_managed_fields(metadata["managedFields"], path.child("managedFields"), errors);
}

void validate_known_finalizers(const Value& finalizers, const Path& path, FieldErrors& errors) {
  std::size_t i = 0;
  for (const Value& finalizer : finalizers.items()) {
    std::string_view name = finalizer.as_string();
    if (name.find('/') == std::string_view::npos && !is_plain_finalizer(name)) {
      errors.invalid(path.index(i), finalizer,
                     "name is neither a standard finalizer name nor is it fully qualified");
    }
    ++i;
  }
}

void validate_no_new_finalizers(const Value& finalizers, const Value& old, const Path& path,
                                FieldErrors& errors) {
  std::set<std::string> fresh;
  for (const Value& finalizer : finalizers.items()) {
    bool known = std::any_of(old.items().begin(), old.items().end(),
                             [&](const Value& other) { return other == finalizer; });
    if (!known) fresh.insert(finalizer.str());
  }
  if (fresh.empty()) return;
  std::string list;
  for (const std::string& name : fresh) {
    if (!list.empty()) list += ", ";
    list += quoted(name);
  }
  errors.forbidden(path, cat("no new finalizers can be added if the object is being deleted, found "
                             "new finalizers []string{",
                             list, "}"));
}

}  // namespace

void validate_metadata(const Value& object, bool is_namespaced, NameRule rule, FieldErrors& errors,
                       bool builtin, int release) {
  Path path("metadata");
  const Value& metadata = object["metadata"];
  const Value& generate_name = metadata["generateName"];
  if (!generate_name.as_string().empty()) {
    add_invalid(is_name(rule, generate_name.as_string(), true), generate_name,
                path.child("generateName"), errors);
  }
  const Value& name = metadata["name"];
  if (name.as_string().empty()) {
    errors.required(path.child("name"), "name or generateName is required");
  } else {
    add_invalid(is_name(rule, name.as_string()), name, path.child("name"), errors);
  }
  const Value& name_space = metadata["namespace"];
  if (is_namespaced) {
    if (name_space.as_string().empty()) {
      errors.required(path.child("namespace"));
    } else {
      add_invalid(is_dns1123_label(name_space.as_string()), name_space, path.child("namespace"),
                  errors);
    }
  } else if (!name_space.as_string().empty()) {
    errors.forbidden(path.child("namespace"), "not allowed on this type");
  }
  validate_common(metadata, path, errors, release);
  if (builtin) {
    validate_known_finalizers(metadata["finalizers"], path.child("finalizers"), errors);
  }
}

void validate_metadata_update(const Value& object, const Value& old, FieldErrors& errors,
                              bool builtin, int release) {
  Path path("metadata");
  const Value& metadata = object["metadata"];
  const Value& old_metadata = old["metadata"];
  add_invalid(is_path_segment_name(metadata["name"].as_string()), metadata["name"],
              path.child("name"), errors);
  validate_common(metadata, path, errors, release);

  if (!old_metadata["deletionTimestamp"].is_null()) {
    validate_no_new_finalizers(metadata["finalizers"], old_metadata["finalizers"],
                               path.child("finalizers"), errors);
  }
  if (metadata["generation"].as_int() < old_metadata["generation"].as_int()) {
    errors.invalid(path.child("generation"), metadata["generation"], "must not be decremented");
  }
  for (const char* key :
       {"name", "namespace", "uid", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    validate_immutable(metadata[key], old_metadata[key], path.child(key), errors);
  }
  if (builtin) {
    validate_known_finalizers(metadata["finalizers"], path.child("finalizers"), errors);
  }
}

void keep_metadata(Value& object, const Value& old) {
  const Value& before = old["metadata"];
  Value& metadata = object.mut("metadata");
  if (metadata["uid"].as_string().empty() && before.contains("uid")) {
    metadata.set("uid", before["uid"]);
  }
  if (before.contains("creationTimestamp")) {
    metadata.set("creationTimestamp", before["creationTimestamp"]);
  }
  if (!before["deletionTimestamp"].is_null()) {
    metadata.set("deletionTimestamp", before["deletionTimestamp"]);
  }
  if (!before["deletionGracePeriodSeconds"].is_null() &&
      metadata["deletionGracePeriodSeconds"].is_null()) {
    metadata.set("deletionGracePeriodSeconds", before["deletionGracePeriodSeconds"]);
  }
}

std::vector<std::string> dedup_owner_references(Value& object) {
  const Value& references = object["metadata"]["ownerReferences"];
  std::set<std::string> seen;
  std::vector<std::string> twice;
  Value kept = Value::array();
  for (const Value& reference : references.items()) {
    std::string uid = reference["uid"].str();
    bool same = false;
    for (const Value& other : kept.items()) same = same || other == reference;
    if (!seen.insert(uid).second) {
      if (std::find(twice.begin(), twice.end(), uid) == twice.end()) twice.push_back(uid);
      if (same) continue;
    }
    kept.push(reference);
  }
  if (twice.empty()) return {};
  object.mut("metadata").set("ownerReferences", kept);
  return {
      cat(".metadata.ownerReferences contains duplicate entries; API server dedups owner "
          "references in 1.20+, and may reject such requests as early as 1.24; please fix your "
          "requests; duplicate UID(s) observed: ",
          join(twice, ", "))};
}

void validate_label_key(std::string_view key, const Path& path, FieldErrors& errors) {
  add_invalid(is_qualified_name(key), Value(key), path, errors);
}

void validate_labels(const Value& labels, const Path& path, FieldErrors& errors) {
  for (const std::string& key : sorted_keys(labels)) {
    validate_label_key(key, path, errors);
    add_invalid(is_label_value(labels[key].as_string()), labels[key], path, errors);
  }
}

void validate_annotations(const Value& annotations, const Path& path, FieldErrors& errors) {
  std::size_t size = 0;
  for (const std::string& key : sorted_keys(annotations)) {
    add_invalid(is_qualified_name(to_lower(key)), Value(key), path, errors);
    size += key.size() + annotations[key].as_string().size();
  }
  if (size > kAnnotationsMaxSize) errors.too_long(path, kAnnotationsMaxSize);
}

void validate_finalizer_name(std::string_view name, const Path& path, FieldErrors& errors) {
  add_invalid(is_qualified_name(name), Value(name), path, errors);
}

void validate_finalizers(const Value& finalizers, const Path& path, FieldErrors& errors) {
  bool orphan = false;
  bool foreground = false;
  for (const Value& finalizer : finalizers.items()) {
    validate_finalizer_name(finalizer.as_string(), path, errors);
    orphan = orphan || finalizer.as_string() == kOrphanFinalizer;
    foreground = foreground || finalizer.as_string() == kForegroundFinalizer;
  }
  if (orphan && foreground) {
    errors.invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

void validate_owner_references(const Value& references, const Path& path, FieldErrors& errors,
                               int release) {
  // Once a fault named the list alone.
  bool named_only = release < kOwnersByIndexSince;
  std::string first;
  std::size_t i = 0;
  for (const Value& reference : references.items()) {
    validate_owner_reference(reference, named_only ? path : path.index(i), named_only, errors);
    if (reference["controller"].as_bool()) {
      std::string current = cat(reference["kind"].as_string(), "/", reference["name"].as_string());
      if (first.empty()) {
        first = current;
      } else {
        Value shown = Value::array();
        for (const Value& item : references.items()) shown.push(shown_owner_reference(item));
        errors.invalid(path, shown,
                       cat("Only one reference can have Controller set to true. Found \"true\" in "
                           "references for ",
                           first, " and ", current));
      }
    }
    ++i;
  }
}

void validate_field_manager(std::string_view manager, const Path& path, FieldErrors& errors) {
  if (manager.size() > 128) errors.too_long(path, 128);
  for (std::size_t i = 0; i < manager.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(manager[i]);
    if (c >= ' ' && c != 0x7f) continue;
    char shown[16];
    std::snprintf(shown, sizeof shown, "U+%04X", c);
    errors.invalid(path, Value(manager),
                   cat("invalid character ", shown, " (at position ", i, ")"));
    return;
  }
}

void validate_managed_fields(const Value& entries, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Value& entry = entries[i];
    Path at = path.index(i);
    // Entries with a wrong operation or type never get here: they are dropped when read.
    validate_field_manager(entry["manager"].as_string(), at.child("manager"), errors);
    if (entry["subresource"].as_string().size() > 256) {
      errors.too_long(at.child("subresource"), 256);
    }
  }
}

void validate_label_selector(const Value& selector, const Path& path, FieldErrors& errors,
                             SelectorOptions options) {
  if (selector.is_null()) return;
  std::size_t terms = selector["matchLabels"].size() + selector["matchExpressions"].size();
  for (const Value& expression : selector["matchExpressions"].items())
    terms += expression["values"].size();
  if (terms > kMaxSelectorTerms) errors.too_many(path, terms, kMaxSelectorTerms);
  validate_labels(selector["matchLabels"], path.child("matchLabels"), errors);
  Path list = path.child("matchExpressions");
  std::size_t i = 0;
  for (const Value& expression : selector["matchExpressions"].items()) {
    Path at = list.index(i++);
    std::string_view op = expression["operator"].as_string();
    const Value& values = expression["values"];
    if (op == "In" || op == "NotIn") {
      if (values.empty()) {
        errors.required(at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
      }
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) {
        errors.forbidden(at.child("values"),
                         "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      }
    } else {
      errors.invalid(at.child("operator"), Value(op), "not a valid selector operator");
    }
    validate_label_key(expression["key"].as_string(), at.child("key"), errors);
    if (options.allow_invalid_values) continue;
    Path values_at = at.child("values");
    std::size_t v = 0;
    for (const Value& value : values.items()) {
      add_invalid(is_label_value(value.as_string()), value, values_at.index(v++), errors);
    }
  }
}

bool label_selector_is_empty(const Value& selector) {
  return selector["matchLabels"].empty() && selector["matchExpressions"].empty();
}

bool label_selector_matches(const Value& selector, const Value& labels) {
  if (!selector.is_object()) return false;
  for (const auto& [key, value] : selector["matchLabels"].members()) {
    const Value* found = labels.find(key);
    if (found == nullptr || found->as_string() != value.as_string()) return false;
  }
  for (const Value& expression : selector["matchExpressions"].items()) {
    const Value* found = labels.find(expression["key"].as_string());
    std::string_view op = expression["operator"].as_string();
    bool listed = false;
    for (const Value& value : expression["values"].items()) {
      listed = listed || (found != nullptr && value.as_string() == found->as_string());
    }
    bool matches = op == "In"             ? listed
                   : op == "NotIn"        ? !listed
                   : op == "Exists"       ? found != nullptr
                   : op == "DoesNotExist" ? found == nullptr
                                          : false;
    if (!matches) return false;
  }
  return true;
}

void validate_immutable(const Value& value, const Value& old, const Path& path,
                        FieldErrors& errors) {
  if (!(value == old)) errors.invalid(path, value, "field is immutable");
}

bool map_contains(const Value& map, const Value& part) {
  for (const auto& [key, value] : part.members()) {
    const Value* found = map.find(key);
    if (found == nullptr || !(*found == value)) return false;
  }
  return true;
}

std::vector<std::string> sorted_keys(const Value& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.members()) keys.emplace_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

}  // namespace dibs::api
