#include "server/definitions.h"

#include <set>

#include "api/structural/crd_rules.h"
#include "base/finalizers.h"
#include "base/log.h"
#include "base/strings.h"
#include "server/builtin_resources.h"
#include "server/custom_kinds.h"
#include "server/definition_names.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kInProgress = "InstanceDeletionInProgress";
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

/// Where its objects lie.
std::string prefix_of(const Value& definition) {
  return cat("/registry/", definition["spec"]["group"].as_string(), "/",
             definition["spec"]["names"]["plural"].as_string(), "/");
}

bool is_ending(const Value& definition) {
  return definition["metadata"].contains("deletionTimestamp") || is_true(definition, "Terminating");
}

}  // namespace

struct Definitions::Entry {
  Value definition;
  std::shared_ptr<const CustomKind> kind;  // null while it is not served
};

Definitions::Definitions(runtime::Runtime& runtime, store::Store& store, Objects& objects,
                         ResourceTable& resources, std::vector<ResourcePtr> builtin,
                         Conversions& conversions)
    : runtime_(runtime),
      store_(store),
      objects_(objects),
      resources_(resources),
      fences_(store, "definitions"),
      builtin_(std::move(builtin)),
      conversions_(conversions) {}

Definitions::~Definitions() { stop(); }

std::shared_ptr<Definitions::Entry> Definitions::known_from(const store::Record& record) const {
  auto definition = decode_stored(record);
  if (!definition.ok()) return nullptr;
  auto entry = std::make_shared<Entry>();
  entry->definition = *definition;
  if (is_true(*definition, "Established")) {
    auto kind = compile_definition(*definition, conversions_);
    if (kind.ok()) entry->kind = std::move(kind).value();
  }
  return entry;
}

void Definitions::publish() {
  std::vector<ResourcePtr> custom;
  for (const auto& [key, entry] : entries_) {
    if (!entry->kind) continue;
    for (auto& resource : custom_resources(entry->kind, is_ending(entry->definition)))
      custom.push_back(std::move(resource));
  }
  resources_.replace(make_resource_set(builtin_, custom, ++generation_));
  if (changed_) changed_();
}

Result<> Definitions::load() {
  MutexLock lock(mutex_);
  resources_.replace(make_resource_set(builtin_, {}, ++generation_));
  resource_ = resources_.get()->find_plural("apiextensions.k8s.io", "customresourcedefinitions");
  if (!resource_) return success();
  store::RangeQuery query;
  query.prefix = resource_->storage_prefix;
  DIBS_TRY(store::Listing listing, store_.range(query));
  for (const auto& record : listing.records) {
    if (auto known = known_from(*record)) entries_[std::string(record->key)] = std::move(known);
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
    MutexLock lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      if (!entry->kind || entry->definition["metadata"].contains("deletionTimestamp")) {
        unsettled.emplace_back(key, entry->definition);
      }
    }
  }
  for (const auto& [key, definition] : unsettled) settle(key, definition);
  wake();
}

void Definitions::look_again() {
  MutexLock lock(mutex_);
  if (stopped_ || !resource_) return;
  store::RangeQuery query;
  query.prefix = resource_->storage_prefix;
  auto listing = store_.range(query);
  if (!listing.ok()) return;
  bool changed = false;
  for (const auto& record : listing->records) {
    const std::string key(record->key);
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second->kind) continue;
    auto known = known_from(*record);
    if (!known || !known->kind) continue;
    entries_[key] = std::move(known);
    changed = true;
  }
  if (changed) publish();
}

void Definitions::stop() {
  std::unique_ptr<store::Watch> watch;
  std::vector<runtime::TimerId> timers;
  {
    MutexLock lock(mutex_);
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
    bool lost = false;
    {
      MutexLock lock(mutex_);
      if (stopped_ || !watch_) return;
      auto next = watch_->next(64);
      lost = !next.ok();
      if (!lost && next->empty()) return;
      if (!lost) events = std::move(next).value();
    }
    if (lost && !start_over()) return;
    for (const auto& event : events) take(std::string(event->key()), event->now.get());
  }
}

/// The events up to now are lost; the state is not.
bool Definitions::start_over() {
  store::RangeQuery query;
  query.prefix = resource_->storage_prefix;
  auto listing = store_.range(query);
  if (!listing.ok()) return false;
  auto watch = store_.watch(query.prefix, listing->revision, [this] { wake(); });
  if (!watch.ok()) return false;
  std::set<std::string> gone;
  std::unique_ptr<store::Watch> before;
  {
    MutexLock lock(mutex_);
    if (stopped_) return false;
    before = std::exchange(watch_, std::move(watch).value());
    for (const auto& [key, entry] : entries_) gone.insert(key);
  }
  for (const auto& record : listing->records) gone.erase(std::string(record->key));
  for (const std::string& key : gone) take(key, nullptr);
  for (const auto& record : listing->records) take(std::string(record->key), record.get());
  return true;
}

void Definitions::take(const std::string& key, const store::Record* now) {
  if (now != nullptr) {
    auto definition = decode_stored(*now);
    if (definition.ok()) settle(key, *definition);
    return;
  }
  Value gone;
  {
    MutexLock lock(mutex_);
    auto found = entries_.find(key);
    if (found == entries_.end()) return;
    gone = found->second->definition;
    entries_.erase(found);
    publish();
  }
  if (end_) end_(prefix_of(gone));
  settle_group(gone);
}

std::vector<Value> Definitions::group_of(const Value& definition) const {
  std::vector<Value> group;
  for (const auto& [key, entry] : entries_) {
    if (entry && entry->definition["spec"]["group"] == definition["spec"]["group"])
      group.push_back(entry->definition);
  }
  return group;
}

void Definitions::settle_group(const Value& definition) {
  std::vector<std::pair<std::string, Value>> waiting;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      const Value& other = entry->definition;
      if (other["spec"]["group"] == definition["spec"]["group"] &&
          !(other["metadata"]["name"] == definition["metadata"]["name"]) && !is_ending(other) &&
          !is_true(other, "NamesAccepted"))
        waiting.emplace_back(key, other);
    }
  }
  for (const auto& [key, other] : waiting) settle(key, other);
}

/// Where others give out names as well, only who is said to have them has them.
bool Definitions::may_serve(const Value& definition) const {
  if (fences_.are_needed()) return is_true(definition, "Established");
  return judge_names(definition, group_of(definition)).all;
}

void Definitions::settle(const std::string& key, const Value& definition) {
  const bool deleting = definition["metadata"].contains("deletionTimestamp");
  bool replaced = false;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    auto& entry = entries_[key];
    const bool was_served = entry && entry->kind;
    const bool same_spec = was_served && entry->definition["spec"] == definition["spec"];
    const bool was_ending = entry && is_ending(entry->definition);
    auto next = std::make_shared<Entry>();
    next->definition = definition;
    if (same_spec) {
      next->kind = entry->kind;
    } else if (was_served || may_serve(definition)) {
      auto kind = compile_definition(definition, conversions_);
      if (kind.ok()) {
        next->kind = std::move(kind).value();
      } else {
        log::warn("definition cannot be served",
                  {{"name", definition["metadata"]["name"].as_string()}, {"error", kind.error()}});
      }
    }
    replaced = was_served && !same_spec;
    const bool changed = !same_spec || was_ending != is_ending(definition);
    entry = std::move(next);
    if (changed) publish();
  }
  if (replaced && end_) end_(prefix_of(definition));
  if (deleting) {
    finish_deletion(key, definition);
  } else {
    settle_names(key, definition);
  }
}

void Definitions::settle_names(const std::string& key, const Value& definition) {
  NameVerdict verdict;
  const std::string now = format_rfc3339(runtime_.clock.now());
  auto settled = write(key, definition, "status", [&](Value& object, Write& write) {
    verdict = fences_.are_needed() ? judge_stored(object, write) : judge_known(definition);
    object.mut("status").set("acceptedNames", verdict.accepted);
    set_condition(object, "NamesAccepted", verdict.all, verdict.reason, verdict.message, now);
    if (is_true(object, "Established")) return;
    if (verdict.all) {
      set_condition(object, "Established", true, "InitialNamesAccepted",
                    "the initial names have been accepted", now);
    } else {
      set_condition(object, "Established", false, "NotAccepted", "not all names are accepted", now);
    }
  });
  if (!settled.ok() && settled.error().code() != Code::not_found) {
    log::warn("definition's status cannot be written", {{"error", settled.error()}});
  }
  // A change of names may have let go of some.
  if (settled.ok() && !(verdict.accepted == definition["status"]["acceptedNames"]))
    settle_group(definition);
}

NameVerdict Definitions::judge_known(const Value& definition) {
  MutexLock lock(mutex_);
  return judge_names(definition, group_of(definition));
}

/// Where others give out names as well: by what is stored, and the names of the group have a fence.
NameVerdict Definitions::judge_stored(const Value& definition, Write& write) {
  for (;;) {
    const store::Revision seen = fences_.before_judging();
    store::RangeQuery query;
    query.prefix = resource_->storage_prefix;
    std::vector<Value> group;
    if (auto listing = store_.range(query); listing.ok()) {
      for (const auto& record : listing->records) {
        auto other = decode_stored(*record);
        if (other.ok() && (*other)["spec"]["group"] == definition["spec"]["group"])
          group.push_back(std::move(other).value());
      }
    }
    NameVerdict verdict = judge_names(definition, group);
    const bool takes = !(verdict.accepted == definition["status"]["acceptedNames"]);
    if (!takes || fences_.guard(write, {definition["spec"]["group"].str()}, seen)) return verdict;
  }
}

std::size_t Definitions::delete_objects(const Value& definition) {
  ResourcePtr resource = resources_.get()->find_kind(
      definition["spec"]["group"].as_string(), definition["spec"]["names"]["kind"].as_string());
  // In the version that is stored no webhook has to be asked.
  if (resource && resource->version != resource->storage_version) {
    if (auto stored =
            resources_.get()->find(resource->group, resource->storage_version, resource->plural)) {
      resource = std::move(stored);
    }
  }
  if (!resource || resource->storage_prefix != prefix_of(definition)) return 0;
  store::RangeQuery query;
  query.prefix = resource->storage_prefix;
  auto listing = store_.range(query);
  if (!listing.ok()) return 1;
  Context context;
  context.user.name = "system:apiserver";
  context.user.groups = {std::string(auth::kMasters)};
  context.now = runtime_.clock.now();
  context.resource = resource;
  context.resources = resources_.get();
  std::size_t left = 0;
  for (const auto& record : listing->records) {
    auto object = decode_stored(*record);
    if (!object.ok()) continue;
    Write write(context, *resource, Verb::remove);
    write.name_space = (*object)["metadata"]["namespace"].str();
    write.name = (*object)["metadata"]["name"].str();
    write.follows = true;
    auto removed = objects_.run(write);
    if (!removed.ok() ? removed.error().code() != Code::not_found : !write.outcome.removed) ++left;
  }
  return left;
}

void Definitions::finish_deletion(const std::string& key, const Value& definition) {
  bool held = false;
  for (const Value& finalizer : definition["metadata"]["finalizers"].items()) {
    held = held || finalizer.as_string() == kDefinitionFinalizer;
  }
  if (!held) return;
  const std::string now = format_rfc3339(runtime_.clock.now());
  // This may take a while. The write comes back as an event, which goes on here.
  if (condition_of(definition, "Terminating")["reason"].as_string() != kInProgress) {
    auto told = write(key, definition, "status", [&](Value& object, Write&) {
      set_condition(object, "Terminating", true, kInProgress,
                    "CustomResource deletion is in progress", now);
    });
    if (told.ok()) return;
  }
  if (delete_objects(definition) == 0) {
    (void)write(key, definition, "", [&](Value& object, Write&) {
      Value finalizers = Value::array();
      for (const Value& finalizer : object["metadata"]["finalizers"].items()) {
        if (finalizer.as_string() != kDefinitionFinalizer) finalizers.push(finalizer);
      }
      object.mut("metadata").set("finalizers", std::move(finalizers));
    }).ok();
    return;
  }
  // Objects with finalizers of their own go when those who put them there let go.
  MutexLock lock(mutex_);
  if (stopped_) return;
  timers_.push_back(runtime_.timers.after(kDeletionRetry, [this, key, definition] {
    auto current = objects_.get(*resource_, "", definition["metadata"]["name"].as_string());
    if (current.ok()) finish_deletion(key, *current);
  }));
  if (timers_.size() > 256) timers_.erase(timers_.begin(), timers_.begin() + 128);
}

Result<> Definitions::write(const std::string& key, const Value& definition,
                            std::string_view subresource,
                            const std::function<void(Value&, Write&)>& change) {
  Context context;
  context.user.name = "system:apiserver";
  context.user.groups = {std::string(auth::kMasters)};
  context.now = runtime_.clock.now();
  context.resource = resource_;
  context.resources = resources_.get();
  context.info.name = definition["metadata"]["name"].str();
  context.info.subresource = subresource;
  context.field_manager = "kube-apiserver";
  Write write(context, *resource_, Verb::patch);
  write.make = [&](const Value* existing) -> Result<Wanted> {
    Value object = *existing;
    change(object, write);
    return Wanted{std::move(object)};
  };
  DIBS_CHECK(objects_.run(write));
  const Value written = write.written();
  // Others must see the names at once, not when the event comes.
  MutexLock lock(mutex_);
  auto found = entries_.find(key);
  if (found != entries_.end() && found->second->definition["spec"] == written["spec"])
    found->second->definition = written;
  return success();
}

}  // namespace dibs::server
