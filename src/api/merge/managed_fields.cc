#include "api/merge/managed_fields.h"

#include <algorithm>

#include "base/strings.h"
#include "json/builder.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

constexpr std::string_view kAncient = "ancient-changes";
constexpr std::string_view kScaleVersion = "autoscaling/v1";

std::string_view text(const Value& value) { return value.as_string(); }

std::string_view operation(const Manager& manager) { return manager.applies ? "Apply" : "Update"; }

Result<Manager> read_entry(const Value& entry, std::size_t index) {
  Manager manager;
  const std::string_view kind = entry["operation"].as_string();
  if (kind != "Apply" && kind != "Update") {
    return Error::bad_request("operation must be `Apply` or `Update`");
  }
  manager.applies = kind == "Apply";
  manager.name = entry["manager"];
  manager.api_version = entry["apiVersion"];
  if (manager.version().empty()) return Error::bad_request("apiVersion must not be empty");
  const std::string_view type = entry["fieldsType"].as_string();
  if (type.empty()) {
    return Error::bad_request(cat("missing fieldsType in managed fields entry ", index));
  }
  if (type != "FieldsV1") {
    return Error::bad_request(
        cat("invalid fieldsType ", quoted(type), " in managed fields entry ", index));
  }
  manager.subresource = entry["subresource"];
  manager.time = entry["time"];
  DIBS_TRY(manager.fields, FieldSet::from_json(entry["fieldsV1"]));
  manager.source = entry;
  manager.source_fields = manager.fields;
  return manager;
}

Value write_entry(const Manager& manager) {
  const bool is_source = manager.source.is_object() && manager.fields.same(manager.source_fields) &&
                         manager.source["time"] == manager.time &&
                         text(manager.source["apiVersion"]) == manager.version();
  if (is_source) return manager.source;
  Value entry = json::Builder::make(json::Kind::object, 7);
  const auto add = [&](std::string_view key, Value value) {
    *json::Builder::add_new(entry, Value(key)) = std::move(value);
  };
  if (!text(manager.name).empty()) add("manager", manager.name);
  add("operation", operation(manager));
  add("apiVersion", manager.api_version);
  if (!manager.time.is_null()) add("time", manager.time);
  add("fieldsType", "FieldsV1");
  add("fieldsV1", manager.fields.to_json());
  if (!text(manager.subresource).empty()) add("subresource", manager.subresource);
  return entry;
}

// Times in normal form compare as texts; one that is not known comes first.
std::string_view time_of(const Manager& manager) { return manager.time.as_string(); }

bool before(const Manager& a, const Manager& b) {
  if (a.applies != b.applies) return a.applies;
  if (time_of(a) != time_of(b)) return time_of(a) < time_of(b);
  if (text(a.name) != text(b.name)) return text(a.name) < text(b.name);
  if (a.version() != b.version()) return a.version() < b.version();
  return text(a.subresource) < text(b.subresource);
}

// In whatever version.
bool is_same_writer(const Manager& a, const Manager& b) {
  return a.applies == b.applies && text(a.name) == text(b.name) &&
         text(a.subresource) == text(b.subresource);
}

FieldSet set_of(const FieldPath& path) {
  FieldSet set;
  set.insert(path);
  return set;
}

const FieldPath& scale_path() {
  static const FieldPath path = {PathElement::field("spec"), PathElement::field("replicas")};
  return path;
}

// Entries that are equal but for their times.
bool equal_but_time(const Value& a, const Value& b) {
  const auto members = [](const Value& entry) {
    return entry.size() - (entry.contains("time") ? 1 : 0);
  };
  if (a.kind() != b.kind() || !a.is_object()) return a == b;
  if (members(a) != members(b)) return false;
  for (const auto& [key, value] : a.members()) {
    if (key == "time") continue;
    const Value* other = b.find(key);
    if (other == nullptr || !(value == *other)) return false;
  }
  return true;
}

}  // namespace

bool Manager::is(const Manager& other) const {
  return applies == other.applies && text(name) == text(other.name) &&
         text(subresource) == text(other.subresource) && (applies || version() == other.version());
}

std::string Manager::label() const {
  std::string out = quoted(text(name));
  if (!text(subresource).empty()) append(out, " with subresource ", quoted(text(subresource)));
  if (!applies) append(out, " using ", version());
  return out;
}

std::string Manager::identity() const {
  Value id = Value::object();
  if (!text(name).empty()) id.set("manager", name);
  id.set("operation", operation(*this));
  if (!applies) id.set("apiVersion", api_version);
  if (!text(subresource).empty()) id.set("subresource", subresource);
  return json::write(id, true);
}

Result<Managers> Managers::decode(const Value& entries) {
  Managers managers;
  managers.list_.reserve(entries.size());
  std::size_t index = 0;
  for (const Value& entry : entries.items()) {
    DIBS_TRY(auto manager, read_entry(entry, index++));
    managers.put(std::move(manager));
  }
  return managers;
}

Value Managers::encode() const {
  if (list_.empty()) return Value();
  std::vector<const Manager*> sorted;
  sorted.reserve(list_.size());
  for (const Manager& manager : list_) sorted.push_back(&manager);
  std::sort(sorted.begin(), sorted.end(),
            [](const Manager* a, const Manager* b) { return before(*a, *b); });
  Value out = json::Builder::make(json::Kind::array, sorted.size());
  for (const Manager* manager : sorted) out.push(write_entry(*manager));
  return out;
}

Manager* Managers::find(const Manager& like) {
  for (Manager& manager : list_) {
    if (manager.is(like)) return &manager;
  }
  return nullptr;
}

void Managers::put(Manager manager) {
  if (Manager* known = find(manager)) {
    *known = std::move(manager);
  } else {
    list_.push_back(std::move(manager));
  }
}

void Managers::drop_empty() {
  std::erase_if(list_, [](const Manager& manager) { return manager.fields.empty(); });
}

void Managers::cap_updates(std::size_t limit) {
  std::vector<std::pair<std::string, Manager>> updates;
  const auto count =
      std::count_if(list_.begin(), list_.end(), [](const Manager& m) { return !m.applies; });
  if (static_cast<std::size_t>(count) <= limit) return;
  for (const Manager& manager : list_) {
    if (!manager.applies) updates.emplace_back(manager.identity(), manager);
  }
  std::sort(updates.begin(), updates.end(), [](const auto& a, const auto& b) {
    if (time_of(a.second) != time_of(b.second)) return time_of(a.second) < time_of(b.second);
    return a.first < b.first;
  });
  const auto drop = [&](const Manager& manager) {
    std::erase_if(list_, [&](const Manager& m) { return m.is(manager); });
  };
  // The first of a version is only remembered; from the second on they go into the version's
  // bucket.
  std::vector<Manager> firsts;
  std::size_t left = updates.size();
  for (const auto& update : updates) {
    const Manager& manager = update.second;
    if (left <= limit) return;
    const auto first = std::find_if(
        firsts.begin(), firsts.end(),
        [version = manager.version()](const Manager& m) { return m.version() == version; });
    if (first == firsts.end()) {
      firsts.push_back(manager);
      continue;
    }
    Manager bucket;
    bucket.name = kAncient;
    bucket.api_version = manager.api_version;
    const Manager* known = find(bucket);
    if (known == nullptr || manager.is(bucket)) {
      bucket.fields = first->fields.united(manager.fields);
      drop(*first);
    } else {
      bucket.fields = known->fields.united(manager.fields);
    }
    bucket.time = manager.time;
    drop(manager);
    put(std::move(bucket));
    --left;
  }
}

const FieldSet& unmanaged_fields() {
  static const FieldSet set = FieldSet::of({{"apiVersion"},
                                            {"kind"},
                                            {"metadata"},
                                            {"metadata", "name"},
                                            {"metadata", "namespace"},
                                            {"metadata", "creationTimestamp"},
                                            {"metadata", "selfLink"},
                                            {"metadata", "uid"},
                                            {"metadata", "clusterName"},
                                            {"metadata", "generation"},
                                            {"metadata", "managedFields"},
                                            {"metadata", "resourceVersion"}});
  return set;
}

bool resets_managed_fields(const Value& object) {
  const Value& entries = object["metadata"]["managedFields"];
  if (!entries.is_array()) return false;
  if (entries.empty()) return true;
  if (entries.size() != 1 || !entries[0].is_object()) return false;
  const auto members = entries[0].members();
  return std::all_of(members.begin(), members.end(), [](const json::Member& member) {
    const Value& value = member.value();
    return value.is_null() || (value.is_string() && value.as_string().empty());
  });
}

Value managed_fields_to_scale(const Value& entries, const FieldPath& replicas_path) {
  auto managers = Managers::decode(entries);
  if (!managers.ok()) return Value();
  Managers out;
  for (Manager& manager : managers->list()) {
    if (!manager.fields.has(replicas_path)) continue;
    manager.fields = set_of(scale_path());
    manager.api_version = kScaleVersion;
    out.put(std::move(manager));
  }
  return out.encode();
}

Value managed_fields_from_scale(const Value& entries, const Value& scale_entries,
                                const FieldPath& replicas_path, std::string_view api_version) {
  auto managers = Managers::decode(entries);
  auto scale = Managers::decode(scale_entries);
  if (!managers.ok() || !scale.ok()) return entries;
  const FieldSet replicas = set_of(replicas_path);
  const auto still_owns = [&](const Manager& manager) {
    const auto same = [&](const Manager& other) {
      return is_same_writer(other, manager) && other.fields.has(scale_path());
    };
    return std::any_of(scale->list().begin(), scale->list().end(), same);
  };
  for (Manager& manager : managers->list()) {
    if (manager.fields.has(replicas_path) && !still_owns(manager)) {
      manager.fields = manager.fields.without(replicas);
    }
  }
  for (const Manager& manager : scale->list()) {
    if (!manager.fields.has(scale_path())) continue;
    const auto owns = [&](const Manager& other) {
      return is_same_writer(other, manager) && other.fields.has(replicas_path);
    };
    if (std::any_of(managers->list().begin(), managers->list().end(), owns)) continue;
    // The time of a write through the scale is not kept.
    Manager owner;
    owner.name = manager.name;
    owner.applies = manager.applies;
    owner.subresource = manager.subresource;
    owner.api_version = api_version;
    owner.fields = replicas;
    managers->put(std::move(owner));
  }
  managers->drop_empty();
  return managers->encode();
}

Value keep_times(const Value& old, Value object) {
  const Value& before = old["metadata"]["managedFields"];
  const Value& after = object["metadata"]["managedFields"];
  if (before.empty() || before.size() != after.size() || before == after) return object;
  if (!std::equal(before.items().begin(), before.items().end(), after.items().begin(),
                  after.items().end(), equal_but_time)) {
    return object;
  }
  Value rest = object;
  rest.mut("metadata").set("managedFields", before);
  Value old_rest = old;
  // The server sets these after tracking.
  for (const char* name : {"resourceVersion", "generation"}) {
    if (const Value* value = rest["metadata"].find(name)) {
      old_rest.mut("metadata").set(name, *value);
    } else {
      old_rest.mut("metadata").erase(name);
    }
  }
  if (rest == old_rest) return rest;
  return object;
}

}  // namespace dibs::api
