#include "api/merge/apply.h"

#include <algorithm>
#include <map>

#include "api/merge/merge.h"
#include "api/merge/typed.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

constexpr std::size_t kMaxUpdateManagers = 10;
constexpr std::string_view kBeforeFirstApply = "before-first-apply";
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
// kubectl keeps its own record of what it applied in an annotation; these two rules hold for it
// alone.
constexpr std::string_view kKubectl = "kubectl";

struct Conflict {
  const Manager* manager;
  FieldSet fields;
};

// "apps/v1" or "v1"; anything with more slashes is no version.
bool is_version(std::string_view text) { return std::count(text.begin(), text.end(), '/') <= 1; }

std::string group_version_kind(const Value& object) {
  const std::string_view version = object["apiVersion"].as_string();
  const std::string_view kind = object["kind"].as_string();
  if (!is_version(version)) return "/, Kind=";
  return cat(version.find('/') == std::string_view::npos ? "/" : "", version, ", Kind=", kind);
}

Value without_managed_fields(Value object) {
  if (object["metadata"].contains("managedFields")) object.mut("metadata").erase("managedFields");
  return object;
}

void set_managed_fields(Value& object, Value entries) {
  if (!entries.is_null()) {
    object.mut("metadata").set("managedFields", std::move(entries));
  } else if (object["metadata"].contains("managedFields")) {
    object.mut("metadata").erase("managedFields");
  }
}

Error conflict_error(const std::vector<Conflict>& conflicts) {
  std::vector<std::pair<std::string, const Conflict*>> sorted;
  for (const Conflict& conflict : conflicts) {
    sorted.emplace_back(conflict.manager->identity(), &conflict);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  ErrorDetails details;
  std::string list;
  for (const auto& [identity, conflict] : sorted) {
    const std::string label = conflict->manager->label();
    append(list, list.empty() ? "" : "\n", "conflicts with ", label, ':');
    conflict->fields.for_each([&](const FieldPath& path) {
      details.causes.push_back(
          {"FieldManagerConflict", cat("conflict with ", label), to_string(path)});
      append(list, "\n- ", details.causes.back().field);
    });
  }
  const std::size_t count = details.causes.size();
  std::string message =
      cat("Apply failed with ", count, count == 1 ? " conflict: " : " conflicts: ");
  if (count == 1) {
    append(message, details.causes[0].message, ": ", details.causes[0].field);
  } else {
    append(message, list);
  }
  return Error(Code::conflict, std::move(message), std::move(details));
}

// One write: the comparison of the objects in every version that a manager wrote in.
class Tracker {
 public:
  explicit Tracker(const FieldWriter& writer) : writer_(writer) {}

  // The object in a version, with the schema of it; nothing when that version is not known.
  Result<std::optional<VersionedObject>> convert(const Value& object,
                                                 std::string_view version) const {
    if (!is_version(version)) {
      return Error::plain(cat("unexpected GroupVersion string: ", version));
    }
    const bool is_own =
        version == writer_.api_version && object["apiVersion"].as_string() == version;
    if (is_own || writer_.convert == nullptr) {
      return std::optional(VersionedObject{object, writer_.schema});
    }
    return (*writer_.convert)(object, version);
  }

  // Fits the sets of all managers to the schema; drops those of unknown versions.
  Result<> reconcile(const Value& live, Managers& managers) const {
    const std::string_view live_version = live["apiVersion"].as_string();
    for (auto manager = managers.list().begin(); manager != managers.list().end();) {
      const Schema* schema = writer_.schema;
      const std::string_view version = manager->version();
      if (version != writer_.api_version || version != live_version) {
        DIBS_TRY(auto versioned, convert(live, version));
        if (!versioned) {
          manager = managers.list().erase(manager);
          continue;
        }
        schema = versioned->schema;
      }
      manager->fields = reconciled(manager->fields, *schema);
      ++manager;
    }
    return success();
  }

  // Takes from the managers what the write removed or changed, but from `self` nothing; what is
  // `allowed` is taken without force. Returns what differs in the writer's version; with force what
  // is modified is among what is added.
  Result<Comparison> update(const Value& live, const Value& object, Managers& managers,
                            const Manager* self, bool force, const FieldSet& allowed = {}) const {
    DIBS_TRY(auto own, compared(live, object, *writer_.schema, force));
    std::vector<std::pair<std::string, Comparison>> others;
    std::vector<Conflict> conflicts;
    for (Manager& manager : managers.list()) {
      if (self != nullptr && manager.is(*self)) continue;
      const Comparison* comparison = &own;
      const std::string_view version = manager.version();
      if (version != writer_.api_version && writer_.convert != nullptr) {
        auto known = std::find_if(others.begin(), others.end(),
                                  [&](const auto& o) { return o.first == version; });
        if (known == others.end()) {
          DIBS_TRY(auto before, convert(live, version));
          DIBS_TRY(auto after, convert(object, version));
          if (!before || !after) {
            manager.fields = FieldSet();
            continue;
          }
          DIBS_TRY(auto other, compared(before->object, after->object, *after->schema, force));
          others.emplace_back(version, std::move(other));
          known = others.end() - 1;
        }
        comparison = &known->second;
      }
      if (force) continue;
      FieldSet taken = manager.fields.common(comparison->modified)
                           .united(manager.fields.common(comparison->added));
      if (!taken.empty()) conflicts.push_back({&manager, std::move(taken)});
    }
    if (!force) {
      for (Conflict& conflict : conflicts) conflict.fields = conflict.fields.without(allowed);
      std::erase_if(conflicts, [](const Conflict& conflict) { return conflict.fields.empty(); });
      if (!conflicts.empty()) return conflict_error(conflicts);
    }
    for (Manager& manager : managers.list()) {
      if (self != nullptr && manager.is(*self)) continue;
      const auto known = std::find_if(others.begin(), others.end(),
                                      [&](const auto& o) { return o.first == manager.version(); });
      const Comparison& comparison = known == others.end() ? own : known->second;
      manager.fields = manager.fields.without(comparison.modified)
                           .without(comparison.added)
                           .without(comparison.removed);
    }
    return own;
  }

  // A write that is no apply: the changed fields go to the writer's Update entry.
  Result<> record_update(const Value& live, const Value& object, Managers& managers,
                         std::string_view name) const {
    DIBS_CHECK(reconcile(live, managers));
    DIBS_TRY(auto comparison, update(live, object, managers, nullptr, true));
    managers.drop_empty();
    const FieldSet owned = comparison.modified.united(comparison.added).without(unmanaged_fields());
    if (!owned.empty()) {
      Manager writer = entry(name, false);
      if (const Manager* previous = managers.find(writer)) {
        writer.fields = previous->fields.united(owned);
      } else {
        writer.fields = owned;
      }
      writer.time = Value(format_rfc3339(writer_.now));
      managers.put(std::move(writer));
    }
    managers.cap_updates(kMaxUpdateManagers);
    return success();
  }

  // The merged object, pruned; the managers are brought up to date.
  Result<Value> record_apply(const Value& live, const Value& config, Managers& managers, bool force,
                             const FieldSet& allowed) const {
    DIBS_CHECK(reconcile(live, managers));
    auto merged = merge_objects(live, config, *writer_.schema);
    if (!merged.ok()) return merged.error().within("failed to merge config");
    DIBS_TRY(auto set, field_set_of(config, *writer_.schema));
    if (writer_.reset != nullptr) set = set.without_all_below(*writer_.reset);
    Manager self = entry(writer_.manager, true);
    const Manager* known = managers.find(self);
    const std::optional<Manager> last = known != nullptr ? std::optional(*known) : std::nullopt;
    self.fields = std::move(set);
    if (last) self.time = last->time;
    managers.put(self);
    Value object = std::move(merged).value();
    if (last && !last->fields.empty()) {
      DIBS_TRY(object, prune(object, managers, *last));
    }
    DIBS_CHECK(update(live, object, managers, &self, force, allowed));
    Manager* mine = managers.find(self);
    mine->fields = mine->fields.without(unmanaged_fields());
    if (!(object == live)) mine->time = Value(format_rfc3339(writer_.now));
    managers.drop_empty();
    return object;
  }

  Manager entry(std::string_view name, bool applies) const {
    Manager manager;
    manager.name = name.empty() ? Value("unknown") : Value(name);
    manager.applies = applies;
    manager.api_version = writer_.api_version;
    manager.subresource = writer_.subresource;
    return manager;
  }

 private:
  Result<Comparison> compared(const Value& before, const Value& after, const Schema& schema,
                              bool joined) const {
    DIBS_TRY(auto comparison, compare_objects(before, after, schema, joined));
    if (writer_.reset != nullptr) comparison.ignore(*writer_.reset);
    return comparison;
  }

  static Result<FieldSet> named_set(const VersionedObject& object) {
    DIBS_TRY(auto set, field_set_of(object.object, *object.schema));
    return with_named_fields(set, *object.schema);
  }

  // Removes what the manager applied last time, not this time, and nobody else owns.
  Result<Value> prune(const Value& object, const Managers& managers, const Manager& last) const {
    DIBS_TRY(auto merged, convert(object, last.version()));
    if (!merged) return object;
    const FieldSet last_set = with_named_fields(last.fields, *merged->schema);
    const Value bare = remove_items(merged->object, last_set, *merged->schema);
    DIBS_TRY(auto owned, with_owned(merged->object, bare, last.version(), managers));
    DIBS_TRY(auto pruned, convert(owned, last.version()));
    if (!pruned) return object;
    // Whatever went away but was not the manager's stays: it is owned by nobody.
    DIBS_TRY(auto merged_set, named_set(*merged));
    DIBS_TRY(auto pruned_set, named_set(*pruned));
    const FieldSet gone = merged_set.without(pruned_set).common(last_set);
    DIBS_TRY(auto result,
             convert(remove_items(merged->object, gone, *merged->schema), writer_.api_version));
    return result ? result->object : object;
  }

  // `pruned` with all that any manager owns of `merged`; in the version that was looked at last.
  Result<Value> with_owned(Value merged, Value pruned, std::string_view version,
                           const Managers& managers) const {
    std::vector<std::pair<std::string, FieldSet>> owned = {{std::string(version), FieldSet()}};
    for (const Manager& manager : managers.list()) {
      const std::string key(writer_.convert == nullptr ? owned.front().first : manager.version());
      auto at =
          std::find_if(owned.begin(), owned.end(), [&](const auto& o) { return o.first == key; });
      if (at == owned.end()) at = owned.insert(owned.end(), {key, FieldSet()});
      at->second = at->second.united(manager.fields);
    }
    for (const auto& [at_version, fields] : owned) {
      if (fields.empty()) continue;
      DIBS_TRY(auto whole, convert(merged, at_version));
      DIBS_TRY(auto rest, convert(pruned, at_version));
      if (!whole || !rest) continue;
      const Schema& schema = *whole->schema;
      DIBS_TRY(auto whole_set, named_set(*whole));
      DIBS_TRY(auto rest_set, named_set(*rest));
      const FieldSet kept = rest_set.united(with_named_fields(fields, schema));
      pruned = remove_items(whole->object, whole_set.without(kept), schema);
      merged = whole->object;
    }
    return pruned;
  }

  const FieldWriter& writer_;
};

Value first_state(const FieldWriter& writer) {
  if (writer.custom) {
    return Value::object({{"apiVersion", writer.api_version}, {"kind", writer.kind}});
  }
  return zero_object(*writer.schema, writer.api_version, writer.kind);
}

// kubectl's annotation tells what it applied before it applied at the server: of that it may take
// over what is still as it was.
FieldSet client_side_fields(const FieldWriter& writer, const Value& live) {
  const std::string_view text = live["metadata"]["annotations"][kLastApplied].as_string();
  if (text.empty()) return {};
  auto last = json::parse(text);
  if (!last.ok() || (*last)["apiVersion"].as_string() != writer.api_version) return {};
  if (!check_typed(*last, *writer.schema).ok()) return {};
  auto fields = field_set_of(*last, *writer.schema);
  auto comparison = compare_objects(*last, live, *writer.schema);
  if (!fields.ok() || !comparison.ok()) return {};
  return fields->without(comparison->modified)
      .without(comparison->added)
      .without(comparison->removed);
}

Value sorted(const Value& value) {
  if (value.is_array()) {
    Value out = Value::array();
    for (const Value& item : value.items()) out.push(sorted(item));
    return out;
  }
  if (!value.is_object()) return value;
  std::map<std::string_view, const Value*> members;
  for (const auto& [key, item] : value.members()) members.emplace(key, &item);
  Value out = Value::object();
  for (const auto& [key, item] : members) out.set(key, sorted(*item));
  return out;
}

// Upstream bounds all annotations of an object together.
constexpr std::size_t kMaxAnnotations = 256 * 1024;

void update_last_applied(Value& object, const Value& config) {
  if (object["metadata"]["annotations"][kLastApplied].as_string().empty()) return;
  Value bare = sorted(config);
  if (config["metadata"]["annotations"].contains(kLastApplied)) {
    bare.mut("metadata").mut("annotations").erase(kLastApplied);
  }
  Value& annotations = object.mut("metadata").mut("annotations");
  annotations.set(kLastApplied, cat(json::write(bare, true), '\n'));
  std::size_t size = 0;
  for (const auto& [key, value] : annotations.members()) {
    size += key.size() + value.as_string().size();
  }
  if (size > kMaxAnnotations) annotations.erase(kLastApplied);
}

}  // namespace

Value track_update(const FieldWriter& writer, const Value* live, Value object, bool forget) {
  const Value& live_entries =
      live != nullptr ? (*live)["metadata"]["managedFields"] : json::null_value();
  Managers managers;
  if (!writer.subresource.empty() || !(forget || resets_managed_fields(object))) {
    // Clients that do not know of the entries drop them by accident, and some write what is none:
    // those of the live object count then. Through a sub-resource they cannot be written at all.
    auto decoded = Managers::decode(writer.subresource.empty() ? object["metadata"]["managedFields"]
                                                               : json::null_value());
    if (!decoded.ok() || decoded->empty()) decoded = Managers::decode(live_entries);
    if (decoded.ok()) managers = std::move(decoded).value();
  }
  object = without_managed_fields(std::move(object));
  if (managers.empty() && live != nullptr && !(*live)["metadata"]["uid"].as_string().empty()) {
    return object;
  }
  const Tracker tracker(writer);
  // What compares them does not look at the entries that the live object has.
  const Value before = live != nullptr ? *live : first_state(writer);
  if (tracker.record_update(before, object, managers, writer.manager).ok()) {
    set_managed_fields(object, managers.encode());
  } else {
    set_managed_fields(object, live_entries);
  }
  return object;
}

Result<ApplyResult> apply(const FieldWriter& writer, const Value* live, const Value& config,
                          bool force) {
  if (config["apiVersion"].as_string() != writer.api_version ||
      config["kind"].as_string() != writer.kind) {
    return Error::bad_request(cat("invalid object type: ", group_version_kind(config)));
  }
  if (!config["metadata"]["managedFields"].is_null()) {
    return Error::bad_request("metadata.managedFields must be nil");
  }
  if (auto fits = check_typed(config, *writer.schema); !fits.ok()) {
    return fits.error().within(
        cat("failed to create typed patch object (", config["metadata"]["namespace"].as_string(),
            '/', config["metadata"]["name"].as_string(), "; ", group_version_kind(config), ')'));
  }

  Managers managers;
  if (live != nullptr) {
    auto decoded = Managers::decode((*live)["metadata"]["managedFields"]);
    if (!decoded.ok()) {
      return Error::plain(cat("failed to decode managed fields: ", decoded.error().message()));
    }
    managers = std::move(decoded).value();
  }
  const Value before = live != nullptr ? without_managed_fields(*live) : first_state(writer);
  const Tracker tracker(writer);
  if (managers.empty() && live != nullptr) {
    DIBS_CHECK(tracker.record_update(first_state(writer), before, managers, kBeforeFirstApply));
  }

  const FieldSet allowed =
      writer.manager == kKubectl && !force ? client_side_fields(writer, before) : FieldSet();
  auto object = tracker.record_apply(before, config, managers, force, allowed);
  if (!object.ok()) return object.error();

  ApplyResult result;
  result.changed = !(*object == before);
  result.object = result.changed ? std::move(object).value() : before;
  if (writer.manager == kKubectl) update_last_applied(result.object, config);
  set_managed_fields(result.object, managers.encode());
  return result;
}

}  // namespace dibs::api
