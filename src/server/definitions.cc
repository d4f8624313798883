#include "server/definitions.h"

#include "base/log.h"
#include "base/strings.h"
#include "server/builtin_resources.h"
#include "server/custom_kinds.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kFinalizer = "customresourcecleanup.apiextensions.k8s.io";
constexpr Duration kDeletionRetry = std::chrono::milliseconds(200);

const Value& condition_of(const Value& definition, std::string_view type) {
  for (const Value& condition : definition["status"]["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return json::null_value();
}

bool is_true(const Value& definition, std::string_view type) {
  return condition_of(definition, type)["status"].as_string() == "True";
}

/// Puts a condition in its place; the time changes only with the status.
void set_condition(Value& definition, std::string_view type, bool status, std::string_view reason,
                   std::string_view message, std::string_view now) {
  Value wanted = Value::object({{"type", type},
                                {"status", status ? "True" : "False"},
                                {"lastTransitionTime", now},
                                {"reason", reason},
                                {"message", message}});
  Value conditions = Value::array();
  bool placed = false;
  for (const Value& old : definition["status"]["conditions"].items()) {
    if (old["type"].as_string() != type) {
      conditions.push(old);
      continue;
    }
    if (old["status"] == wanted["status"])
      wanted.set("lastTransitionTime", old["lastTransitionTime"]);
    conditions.push(wanted);
    placed = true;
  }
  if (!placed) conditions.push(std::move(wanted));
  definition.mut("status").set("conditions", std::move(conditions));
}

}  // namespace

struct Definitions::Entry {
  Value definition;
  std::shared_ptr<const CustomKind> kind;  // null while it is not served
};

Definitions::Definitions(runtime::Runtime& runtime, store::Store& store, Objects& objects,
                         ResourceTable& resources, std::vector<ResourcePtr> builtin)
    : runtime_(runtime),
      store_(store),
      objects_(objects),
      resources_(resources),
      builtin_(std::move(builtin)) {}

Definitions::~Definitions() { stop(); }

void Definitions::publish() {
  std::vector<ResourcePtr> custom;
  for (const auto& [key, entry] : entries_) {
    if (!entry->kind) continue;
    for (auto& resource : custom_resources(entry->kind)) custom.push_back(std::move(resource));
  }
  resources_.replace(make_resource_set(builtin_, custom, ++generation_));
}

Result<> Definitions::load() {
  std::lock_guard lock(mutex_);
  resources_.replace(make_resource_set(builtin_, {}, ++generation_));
  resource_ = resources_.get()->find_plural("apiextensions.k8s.io", "customresourcedefinitions");
  if (!resource_) return success();
  store::RangeQuery query;
  query.prefix = resource_->storage_prefix;
  DIBS_TRY(store::Listing listing, store_.range(query));
  for (const auto& record : listing.records) {
    auto definition = decode_stored(*record);
    if (!definition.ok()) continue;
    auto entry = std::make_shared<Entry>();
    entry->definition = *definition;
    if (is_true(*definition, "Established")) {
      auto kind = compile_definition(*definition);
      if (kind.ok()) entry->kind = std::move(kind).value();
    }
    entries_[record->key] = std::move(entry);
  }
  if (!entries_.empty()) publish();
  auto watch = store_.watch(resource_->storage_prefix, listing.revision, [this] { wake(); });
  if (!watch.ok()) return std::move(watch).error();
  watch_ = std::move(watch).value();
  return success();
}

void Definitions::start() {
  std::vector<std::pair<std::string, Value>> unsettled;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      if (!entry->kind || entry->definition["metadata"].contains("deletionTimestamp")) {
        unsettled.emplace_back(key, entry->definition);
      }
    }
  }
  for (const auto& [key, definition] : unsettled) settle(key, definition);
  wake();
}

void Definitions::stop() {
  std::unique_ptr<store::Watch> watch;
  std::vector<runtime::TimerId> timers;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    watch = std::move(watch_);
    timers.swap(timers_);
  }
  for (auto id : timers) runtime_.timers.cancel(id);
}

void Definitions::wake() {
  runtime_.executor.post([this] { follow(); });
}

void Definitions::follow() {
  for (;;) {
    std::vector<store::EventPtr> events;
    {
      std::lock_guard lock(mutex_);
      if (stopped_ || !watch_) return;
      auto next = watch_->next(64);
      if (!next.ok() || next->empty()) return;
      events = std::move(next).value();
    }
    for (const auto& event : events) take(*event);
  }
}

void Definitions::take(const store::Event& event) {
  if (!event.now) {
    std::lock_guard lock(mutex_);
    entries_.erase(event.key());
    publish();
    return;
  }
  auto definition = decode_stored(*event.now);
  if (definition.ok()) settle(event.key(), *definition);
}

std::string Definitions::name_conflict(const Value& definition) const {
  const Value& names = definition["spec"]["names"];
  for (const auto& [key, entry] : entries_) {
    if (entry->definition["metadata"]["name"] == definition["metadata"]["name"] || !entry->kind)
      continue;
    if (!(entry->definition["spec"]["group"] == definition["spec"]["group"])) continue;
    const Value& taken = entry->definition["status"]["acceptedNames"];
    for (std::string_view field : {"plural", "singular", "kind", "listKind"}) {
      if (!names[field].as_string().empty() && names[field] == taken[field]) {
        return cat(quoted(names[field].as_string()), " is already in use");
      }
    }
    for (const Value& short_name : names["shortNames"].items()) {
      for (const Value& other : taken["shortNames"].items()) {
        if (short_name == other) return cat(quoted(short_name.as_string()), " is already in use");
      }
    }
  }
  return {};
}

void Definitions::settle(const std::string& key, const Value& definition) {
  bool deleting = definition["metadata"].contains("deletionTimestamp");
  std::string conflict;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    conflict = name_conflict(definition);
    auto& entry = entries_[key];
    bool was_served = entry && entry->kind;
    bool same_spec = was_served && entry->definition["spec"] == definition["spec"];
    auto next = std::make_shared<Entry>();
    next->definition = definition;
    if (same_spec) {
      next->kind = entry->kind;
    } else if (conflict.empty() || was_served) {
      auto kind = compile_definition(definition);
      if (kind.ok()) {
        next->kind = std::move(kind).value();
      } else {
        log::warn("definition cannot be served",
                  {{"name", definition["metadata"]["name"].as_string()}, {"error", kind.error()}});
      }
    }
    bool changed = !same_spec;
    entry = std::move(next);
    if (changed) publish();
  }
  if (deleting) return finish_deletion(definition);

  std::string now = format_rfc3339(runtime_.clock.now());
  auto settled = write(definition, "status", [&](Value& object) {
    if (conflict.empty()) {
      object.mut("status").set("acceptedNames", object["spec"]["names"]);
      set_condition(object, "NamesAccepted", true, "NoConflicts", "no conflicts found", now);
      set_condition(object, "Established", true, "InitialNamesAccepted",
                    "the initial names have been accepted", now);
    } else {
      set_condition(object, "NamesAccepted", false, "Conflict", conflict, now);
      if (!is_true(object, "Established")) {
        set_condition(object, "Established", false, "NotAccepted", "not all names are accepted",
                      now);
      }
    }
  });
  if (!settled.ok() && settled.error().code() != Code::not_found) {
    log::warn("definition's status cannot be written", {{"error", settled.error()}});
  }
}

void Definitions::finish_deletion(const Value& definition) {
  bool held = false;
  for (const Value& finalizer : definition["metadata"]["finalizers"].items()) {
    held = held || finalizer.as_string() == kFinalizer;
  }
  if (!held) return;
  std::string now = format_rfc3339(runtime_.clock.now());
  ResourcePtr resource = resources_.get()->find_kind(
      definition["spec"]["group"].as_string(), definition["spec"]["names"]["kind"].as_string());
  std::size_t left = 0;
  if (resource) {
    store::RangeQuery query;
    query.prefix = resource->storage_prefix;
    auto listing = store_.range(query);
    Context context;
    context.user.name = "system:apiserver";
    context.user.groups = {std::string(auth::kMasters)};
    context.now = runtime_.clock.now();
    context.resource = resource;
    context.resources = resources_.get();
    if (listing.ok()) {
      for (const auto& record : listing->records) {
        auto object = decode_stored(*record);
        if (!object.ok()) continue;
        auto removed =
            objects_.remove(context, *resource, (*object)["metadata"]["namespace"].as_string(),
                            (*object)["metadata"]["name"].as_string(), {});
        if (!removed.ok() ? removed.error().code() != Code::not_found : !removed->removed) ++left;
      }
    }
  }
  if (left == 0) {
    (void)write(definition, "", [&](Value& object) {
      set_condition(object, "Terminating", false, "InstanceDeletionCompleted",
                    "removed all instances", now);
      Value finalizers = Value::array();
      for (const Value& finalizer : object["metadata"]["finalizers"].items()) {
        if (finalizer.as_string() != kFinalizer) finalizers.push(finalizer);
      }
      object.mut("metadata").set("finalizers", std::move(finalizers));
    }).ok();
    return;
  }
  // Objects with finalizers of their own go when those who put them there let go.
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  timers_.push_back(runtime_.timers.after(kDeletionRetry, [this, definition] {
    auto current = objects_.get(*resource_, "", definition["metadata"]["name"].as_string());
    if (current.ok()) finish_deletion(*current);
  }));
  if (timers_.size() > 256) timers_.erase(timers_.begin(), timers_.begin() + 128);
}

Result<> Definitions::write(const Value& definition, std::string_view subresource,
                            const std::function<void(Value&)>& change) {
  Context context;
  context.user.name = "system:apiserver";
  context.user.groups = {std::string(auth::kMasters)};
  context.now = runtime_.clock.now();
  context.resource = resource_;
  context.resources = resources_.get();
  context.info.subresource = subresource;
  context.field_manager = "kube-apiserver";
  auto written =
      objects_.update(context, *resource_, "", definition["metadata"]["name"].as_string(),
                      UpdateKind::patch, false, [&](const Value* existing) -> Result<Value> {
                        Value object = *existing;
                        change(object);
                        return object;
                      });
  if (!written.ok()) return std::move(written).error();
  return success();
}

}  // namespace dibs::server
