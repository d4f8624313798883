#pragma once
// What the server must know of a kind beyond its schema: names, scope, and the rules a schema
// cannot say.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "api/schema/schema.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::api {

class Features;  // features.h

using json::Value;

struct GroupVersionKind {
  std::string group;
  std::string version;
  std::string kind;
  friend bool operator==(const GroupVersionKind&, const GroupVersionKind&) = default;
  /// "v1", "apps/v1"
  std::string api_version() const;
};

/// How metadata.name is judged.
enum class NameRule : std::uint8_t {
  subdomain,     // RFC 1123 sub-domain
  label,         // RFC 1123 label
  service,       // RFC 1035 label
  path_segment,  // not ".", "..", no "/" or "%"
  any,
};

/// What rules may ask of the world.
struct RuleContext {
  Time now;
  /// The sub-resource written to, "" for the object itself.
  std::string_view subresource;
  /// The gates of the server; null where a test has none.
  const Features* features = nullptr;
};

/// A field that field selectors know beside metadata.name and metadata.namespace.
struct SelectableField {
  std::string label;
  std::function<std::string(const Value& object)> get;
};

/// The C++ rules of one kind; any may be empty. All see objects in normal form (decoded by the
/// schema). They are called in this order on create: set_defaults, prepare_create, [admission],
/// validate; on update: set_defaults, prepare_update, [admission], validate_update. validate_update
/// is responsible for everything that must hold of the new object (so it usually calls validate).
/// Metadata common to all kinds is judged by validate_metadata(), not here.
struct KindRules {
  /// Versioned defaults, beside the constant ones of the schema.
  std::function<void(Value& object)> set_defaults;
  /// Defaults that are the time of the write, in the stored form; set before fields are told apart
  /// by who wrote them.
  std::function<void(Value& object, Time now)> set_times;
  /// What the server sets or clears on a new object: status, generation is done by
  /// `tracks_generation`.
  std::function<void(Value& object, const RuleContext&)> prepare_create;
  /// On a write of the main resource: keep what clients may not change here (status is reset by
  /// `has_status`).
  std::function<void(Value& object, const Value& old, const RuleContext&)> prepare_update;
  /// On a write of /status: everything but status has been reset to `old` already.
  std::function<void(Value& object, const Value& old, const RuleContext&)> prepare_status;
  std::function<void(const Value& object, FieldErrors&)> validate;
  std::function<void(const Value& object, const Value& old, FieldErrors&)> validate_update;
  std::function<void(const Value& object, const Value& old, FieldErrors&)> validate_status;
  /// Texts for Warning headers; `old` is null on create.
  std::function<std::vector<std::string>(const Value& object, const Value* old)> warnings;

  NameRule name_rule = NameRule::subdomain;
  bool tracks_generation = false;
  bool has_status = false;
  bool allow_unconditional_update = true;
  bool allow_create_on_update = false;
  std::vector<SelectableField> selectable;
};

/// The rules of a built-in kind; empty ones for a kind judged by its schema alone. kinds/*.cc
const KindRules& kind_rules(std::string_view group, std::string_view kind);

}  // namespace dibs::api
