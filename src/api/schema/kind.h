#pragma once
// What the server must know of a kind beyond its schema: names, scope, and the rules a schema
// cannot say.

#include <cstdint>
#include <functional>
#include <optional>
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

/// What a POST of a kind asks for that is answered and never stored.
enum class Question : std::uint8_t {
  none,
  binding,      // a pod to a node, named in the body
  token,        // whose token is this
  who_am_i,     // who sends this
  my_rules,     // what may the sender do in a namespace
  may_he,       // may somebody do this
  may_he_here,  // the same in the namespace of the request
  may_i,        // may the sender do this
};

/// Who answers behind the sub-resource proxy.
enum class ProxyTarget : std::uint8_t { none, node, pod, service };

/// A Warning that goes with every answer about a kind.
struct Deprecation {
  int since = 0;  // the minor number of the first release that gives it
  std::string text;
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
  /// In place of validate_status, for a kind whose status is judged by the time of the write.
  std::function<void(const Value& object, const Value& old, Time now, FieldErrors&)>
      validate_status_at;
  /// Texts for Warning headers; `old` is null on create.
  std::function<std::vector<std::string>(const Value& object, const Value* old)> warnings;

  /// How long an object may take to end, of the seconds that the client wants. Kinds without it go
  /// at once.
  std::function<std::int64_t(const Value& object, std::optional<std::int64_t> wanted)> grace;
  /// Marks a deleted object that ends in stages of its own. It then has no grace period, and its
  /// generation stays.
  std::function<void(Value& object, Time now)> mark_deleted;
  /// True while something beside metadata.finalizers keeps a deleted object.
  std::function<bool(const Value& object)> is_held;
  /// Puts the protection of what the object holds on it, or takes it off, in the write that makes
  /// it due. Asked of writes that say so (calls/call.h).
  std::function<void(Value& object, const Value& old)> protect;
  /// How a field that selectors do not know is refused, where not as everywhere.
  std::function<std::string(std::string_view field)> refuse_selector;

  /// How long an object is kept, counted from its last write; unset: until it is deleted.
  std::optional<Duration> lifetime;
  NameRule name_rule = NameRule::subdomain;
  Question question = Question::none;
  ProxyTarget proxied = ProxyTarget::none;
  Deprecation deprecation;
  bool tracks_generation = false;
  int generation_since = 0;  // the first release that does
  bool has_status = false;
  /// A write of the main resource keeps the spec, so nobody comes to own it.
  bool keeps_spec = false;
  bool allow_unconditional_update = true;
  bool allow_create_on_update = false;
  /// DELETE answers with the object when it is gone, not with a Status. Upstream says so per kind
  /// (ReturnDeletedObject).
  bool returns_deleted = false;
  /// A DELETE that does not say what becomes of dependents leaves them there; with this Warning,
  /// where there is one.
  bool orphans_by_default = false;
  std::string orphans_warning;
  /// Finalizers need no domain to be accepted.
  bool any_finalizers = false;
  /// validate tells an empty list from none, so a new object is judged as it was sent.
  bool judged_as_sent = false;
  std::vector<SelectableField> selectable;
  /// Group-versions that are known as those of this kind though none serves them any more.
  std::vector<std::string> former_versions;
};

/// The rules of a built-in kind; empty ones for a kind judged by its schema alone. kinds/*.cc
const KindRules& kind_rules(std::string_view group, std::string_view kind);
/// True when a kind of that name once had this apiVersion. kinds/registry.cc
bool is_former_version(std::string_view api_version, std::string_view kind);

}  // namespace dibs::api
