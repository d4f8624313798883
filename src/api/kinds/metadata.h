#pragma once
// What must hold of metadata, of whatever kind, and of the selectors that look at labels.

#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/names.h"
#include "api/schema/field_error.h"
#include "api/schema/kind.h"
#include "base/release.h"

namespace dibs::api {

/// Judges object["metadata"] of a new object. The order of faults is that of the API: names,
/// namespace, generation, labels, annotations, owner references, finalizers, managedFields.
/// `builtin`: finalizers without a domain must be well known; custom resources may have any.
/// `release` is the minor number of the release to answer as; old ones had other words.
void validate_metadata(const Value& object, bool is_namespaced, NameRule rule, FieldErrors& errors,
                       bool builtin = true, int release = kNewestRelease);

/// Judges the metadata of an object that replaces `old`: the rules above but for the name's
/// spelling, and what may not change.
void validate_metadata_update(const Value& object, const Value& old, FieldErrors& errors,
                              bool builtin = true, int release = kNewestRelease);

/// Takes over from `old` what a client may leave out or not change: uid, creationTimestamp,
/// deletionTimestamp and its grace period. Call before validate_metadata_update.
void keep_metadata(Value& object, const Value& old);

/// Drops owner references with a uid named before. The texts are for Warning headers.
std::vector<std::string> dedup_owner_references(Value& object);

/// A map of labels at `path` (metadata.labels, spec.selector.matchLabels, …). Keys are visited in
/// sorted order.
void validate_labels(const Value& labels, const Path& path, FieldErrors& errors);
void validate_label_key(std::string_view key, const Path& path, FieldErrors& errors);
void validate_annotations(const Value& annotations, const Path& path, FieldErrors& errors);
void validate_finalizers(const Value& finalizers, const Path& path, FieldErrors& errors);
/// One finalizer's name, as in metadata.finalizers and Namespace spec.finalizers.
void validate_finalizer_name(std::string_view name, const Path& path, FieldErrors& errors);
void validate_owner_references(const Value& references, const Path& path, FieldErrors& errors,
                               int release = kNewestRelease);

/// The name of a field manager: up to 128 bytes, printable.
void validate_field_manager(std::string_view manager, const Path& path, FieldErrors& errors);
void validate_managed_fields(const Value& entries, const Path& path, FieldErrors& errors);

struct SelectorOptions {
  /// Values of existing objects may break the rules of label values.
  bool allow_invalid_values = false;
};

/// A meta/v1 LabelSelector; a null one is fine.
void validate_label_selector(const Value& selector, const Path& path, FieldErrors& errors,
                             SelectorOptions options = {});

/// matchLabels and matchExpressions select these labels. Null selects nothing, an empty one
/// everything.
bool label_selector_matches(const Value& selector, const Value& labels);
bool label_selector_is_empty(const Value& selector);

/// "Invalid value: …: field is immutable" unless both are equal.
void validate_immutable(const Value& value, const Value& old, const Path& path,
                        FieldErrors& errors);

/// True for a map of strings whose entries are all in the other.
bool map_contains(const Value& map, const Value& part);

/// Keys of an object in byte order: the order in which the API looks at maps that its own code
/// sorts, and the one we use where upstream's is random.
std::vector<std::string> sorted_keys(const Value& object);

}  // namespace dibs::api
