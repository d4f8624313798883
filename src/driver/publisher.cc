#include "driver/publisher.h"

#include <atomic>
#include <map>
#include <optional>
#include <set>

#include "api/kinds/resource/versions/model.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "driver/own_writes.h"
#include "driver/slice_plan.h"

namespace dibs::driver {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};
/// How often is looked for the first list, less and less: a thousand publishers may start at once.
constexpr Duration kSyncPoll = std::chrono::milliseconds(5);
constexpr Duration kLongestSyncPoll = std::chrono::milliseconds(500);
/// A node that is not there yet is about to be.
constexpr Duration kLongestNodeWait = std::chrono::seconds(5);
/// How long the node's agent has to register the driver.
constexpr Duration kHold = std::chrono::seconds(10);

struct WantedPool {
  std::int64_t generation = 0;
  Value annotations;
  std::vector<Value> slices;
  std::vector<Value> stored;  // by index; see PlanInput
};

/// A write whose event may not have arrived in the informer yet.
struct OwnWrite {
  Value slice;  // null: deleted
  std::string uid;
  std::uint64_t revision = 0;
  Duration until{0};
};

}  // namespace

struct Publisher::State {
  State(client::Client& api, runtime::Runtime& runtime, PublisherOptions options)
      : api(api), runtime(runtime), options(std::move(options)) {}

  client::Client& api;
  runtime::Runtime& runtime;
  const PublisherOptions options;

  mutable Mutex mutex;
  std::map<std::string, WantedPool> wanted DIBS_GUARDED_BY(mutex);
  std::set<std::string> unfinished DIBS_GUARDED_BY(mutex);  // pools
  bool updated DIBS_GUARDED_BY(mutex) = false;
  bool held DIBS_GUARDED_BY(mutex) = options.held;
  const Duration held_until = runtime.clock.steady() + kHold;
  std::map<std::string, Duration> healed DIBS_GUARDED_BY(mutex);  // pools, when, at once
  std::set<std::string> removing DIBS_GUARDED_BY(mutex);          // uids
  std::set<std::string> gone DIBS_GUARDED_BY(mutex);              // uids, since the last look

  // Only the queue's work touches these, one at a time.
  Value owner;
  std::map<std::string, OwnWrite> own;  // by name
  Duration sync_poll = kSyncPoll;

  // Slices may have gone with a node that is there again under another uid.
  std::atomic<bool> owner_is_old{true};

  // Last: their destructors end the work before what it uses goes.
  std::unique_ptr<client::Informer> informer;
  std::unique_ptr<client::WorkQueue> queue;

  /// How long nothing may be written yet.
  Duration still_held();
  WorkOutcome work(const std::string& pool);
  Result<bool> get_ready();
  void removed(const Value& slice);
  Result<> sync(const std::string& pool);
  Result<> write(const std::string& pool, const Plan& plan, const std::vector<Value>& contents);
  Result<> remove(const Value& slice);
  void remember(const std::string& pool, std::size_t index, const Value& content,
                const Value& slice);
  std::vector<Value> slices_there(const std::string& pool);
  void note_write(const Value& slice);
  bool waits_for_node(const Error& error) const;
  void fail(const Error& error) const;
};

/// A driver may well be up before its node is.
bool Publisher::State::waits_for_node(const Error& error) const {
  return error.code() == Code::not_found && owner.is_null();
}

void Publisher::State::fail(const Error& error) const {
  const bool waits = waits_for_node(error);
  log::write(waits ? log::Level::info : log::Level::warn,
             waits ? "publishing devices waits" : "publishing devices failed",
             {{"driver", options.driver_name}, {"error", error}});
  if (options.failed) options.failed(error);
}

Duration Publisher::State::still_held() {
  const MutexLock lock(mutex);
  const Duration left = held_until - runtime.clock.steady();
  held = held && left.count() > 0;
  return held ? left : Duration(0);
}

WorkOutcome Publisher::State::work(const std::string& pool) {
  if (const Duration wait = still_held(); wait.count() > 0) return WorkOutcome::again_after(wait);
  auto ready = get_ready();
  if (!ready) {
    fail(ready.error());
    if (waits_for_node(ready.error())) queue->add_after(pool, kLongestNodeWait);
    return WorkOutcome::retry();
  }
  if (!*ready) {
    const Duration wait = sync_poll;
    sync_poll = std::min(wait * 2, kLongestSyncPoll);
    return WorkOutcome::again_after(wait);
  }
  auto synced = sync(pool);
  if (!synced) {
    fail(synced.error().within(cat("pool ", quoted(pool))));
    return WorkOutcome::retry();
  }
  const MutexLock lock(mutex);
  unfinished.erase(pool);
  return WorkOutcome::done();
}

/// False while the first list is on its way.
Result<bool> Publisher::State::get_ready() {
  if (!informer) {
    client::InformerOptions watch;
    watch.gvr = kSlices;
    watch.field_selector =
        cat("spec.driver=", options.driver_name, ",spec.nodeName=", options.node_name);
    informer = std::make_unique<client::Informer>(api, runtime, watch);
    const auto look_later = [this](const Value& slice) {
      queue->add_after(slice["spec"]["pool"]["name"].str(), options.heal_after);
    };
    client::InformerHandlers handlers;
    // What is found at the start may be of a pool that is not wanted any more: no time to lose.
    handlers.added = [this, look_later](const Value& slice, bool initial) {
      if (initial) return queue->add(slice["spec"]["pool"]["name"].str());
      look_later(slice);
    };
    handlers.updated = [look_later](const Value&, const Value& after) { look_later(after); };
    handlers.removed = [this](const Value& slice) { removed(slice); };
    informer->add_handler(std::move(handlers));
    informer->start();
  }
  if (!informer->synced()) return false;
  if (owner_is_old && !options.node_name.empty()) {
    owner = Value();
    auto node = api.get({"", "v1", "nodes"}, "", options.node_name);
    if (!node) return node.error().within(cat("look up node ", quoted(options.node_name)));
    owner_is_old = false;
    owner = Value::object({{"apiVersion", "v1"},
                           {"kind", "Node"},
                           {"name", options.node_name},
                           {"uid", (*node)["metadata"]["uid"]},
                           {"controller", true}});
  }
  return true;
}

/// Heals at once, yet not over and over: whoever deletes may have his reasons.
void Publisher::State::removed(const Value& slice) {
  owner_is_old = true;
  const std::string pool = slice["spec"]["pool"]["name"].str();
  bool at_once = false;
  {
    const Duration now = runtime.clock.steady();
    const std::string uid = slice["metadata"]["uid"].str();
    const MutexLock lock(mutex);
    if (removing.erase(uid) != 0) return;
    gone.insert(uid);
    const auto [last, first] = healed.emplace(pool, now);
    at_once = !options.may_have_successor && (first || now - last->second >= options.heal_after);
    if (at_once) last->second = now;
  }
  queue->add_after(pool, at_once ? Duration(0) : options.heal_after);
}

/// The informer's slices, corrected by what was written and has not come back yet.
std::vector<Value> Publisher::State::slices_there(const std::string& pool) {
  std::map<std::string, Value> slices;
  for (auto& slice : informer->list()) {
    // Slices of the classic model are the node agent's (NodeListAndWatchResources).
    if (!api::is_classic(slice)) slices[slice["metadata"]["name"].str()] = slice;
  }
  const Duration now = runtime.clock.steady();
  std::set<std::string> deleted;
  {
    const MutexLock lock(mutex);
    deleted.swap(gone);
  }
  for (auto write = own.begin(); write != own.end();) {
    const auto seen = slices.find(write->first);
    const bool is_there = seen != slices.end();
    const bool is_other =
        is_there && seen->second["metadata"]["uid"].as_string() != write->second.uid;
    const bool is_deletion = write->second.slice.is_null();
    const bool arrived = is_deletion
                             ? !is_there || is_other
                             : is_there && revision_of(seen->second) >= write->second.revision;
    if (arrived || write->second.until <= now || deleted.contains(write->second.uid)) {
      write = own.erase(write);
      continue;
    }
    if (is_deletion) {
      slices.erase(write->first);
    } else {
      slices[write->first] = write->second.slice;
    }
    ++write;
  }
  std::vector<Value> out;
  for (auto& [name, slice] : slices) {
    if (slice["spec"]["pool"]["name"].as_string() == pool) out.push_back(slice);
  }
  return out;
}

void Publisher::State::note_write(const Value& slice) {
  own[slice["metadata"]["name"].str()] = {slice, slice["metadata"]["uid"].str(), revision_of(slice),
                                          runtime.clock.steady() + options.look_again_after};
}

/// Keeps what the server made of a content, so that it is not written over and over.
void Publisher::State::remember(const std::string& pool, std::size_t index, const Value& content,
                                const Value& slice) {
  const Value stored = content_of(slice);
  const auto dropped = dropped_features(stored, content);
  if (!dropped.empty()) {
    fail(
        Error::invalid(cat("pool ", quoted(pool), ", slice ", slice["metadata"]["name"].as_string(),
                           ": some fields were dropped by the apiserver, probably because these "
                           "features are disabled: ",
                           join(dropped, ", "))));
  }
  const MutexLock lock(mutex);
  const auto found = wanted.find(pool);
  if (found == wanted.end() || index >= found->second.slices.size()) return;
  if (!(found->second.slices[index] == content)) return;
  found->second.stored[index] = stored;
}

Result<> Publisher::State::sync(const std::string& pool) {
  PlanInput input;
  input.driver = options.driver_name;
  input.node = options.node_name;
  input.owner = owner;
  input.pool = pool;
  {
    const MutexLock lock(mutex);
    if (!updated) return success();
    if (const auto found = wanted.find(pool); found != wanted.end()) {
      input.generation = found->second.generation;
      input.annotations = found->second.annotations;
      input.wanted = found->second.slices;
      input.stored = found->second.stored;
    }
  }
  input.existing = slices_there(pool);
  return write(pool, plan_pool(input), input.wanted);
}

/// Only this very state of it. Success too when it is gone.
Result<> Publisher::State::remove(const Value& slice) {
  client::DeleteOptions options;
  options.uid = slice["metadata"]["uid"].str();
  options.resource_version = slice["metadata"]["resourceVersion"].str();
  {
    const MutexLock lock(mutex);
    removing.insert(options.uid);
  }
  auto removed = api.remove(kSlices, "", slice["metadata"]["name"].as_string(), options);
  if (removed) return success();
  const MutexLock lock(mutex);
  removing.erase(options.uid);
  if (removed.error().code() != Code::not_found) return removed.error();
  return success();
}

Result<> Publisher::State::write(const std::string& pool, const Plan& plan,
                                 const std::vector<Value>& contents) {
  for (const auto& slice : plan.remove) {
    DIBS_CHECK(remove(slice));
    own[slice["metadata"]["name"].str()] = {Value(), slice["metadata"]["uid"].str(), 0,
                                            runtime.clock.steady() + options.look_again_after};
  }
  for (const auto& [index, slice] : plan.update) {
    DIBS_TRY(const auto written, api.update(kSlices, "", slice));
    note_write(written);
    remember(pool, index, contents[index], written);
  }
  for (const auto& [index, slice] : plan.create) {
    DIBS_TRY(const auto written, api.create(kSlices, "", slice));
    note_write(written);
    remember(pool, index, contents[index], written);
  }
  if (!plan.create.empty()) {
    // Somebody may delete a new slice before the informer has seen it.
    queue->add_after(pool, options.look_again_after);
    log::info("devices published", {{"driver", options.driver_name},
                                    {"pool", pool},
                                    {"slices", plan.create.size() + plan.update.size()},
                                    {"generation", plan.generation}});
  }
  return success();
}

Publisher::Publisher(client::Client& api, runtime::Runtime& runtime, PublisherOptions options)
    : state_(std::make_shared<State>(api, runtime, std::move(options))) {
  client::WorkQueueOptions queue;
  queue.longest_delay = state_->options.longest_retry;
  State* state = state_.get();
  state_->queue = std::make_unique<client::WorkQueue>(
      runtime, queue, [state](const std::string& pool) { return state->work(pool); });
}

Publisher::~Publisher() { stop(); }

Result<> Publisher::update(const std::vector<Pool>& pools) {
  std::map<std::string, WantedPool> wanted;
  for (const auto& pool : pools) {
    DIBS_TRY(auto slices, slices_of(pool));
    WantedPool entry;
    entry.generation = pool.generation;
    entry.annotations = pool.annotations;
    entry.stored.resize(slices.size());
    entry.slices = std::move(slices);
    if (!wanted.emplace(pool.name, std::move(entry)).second) {
      return Error::invalid(cat("pool ", quoted(pool.name), " is there twice"));
    }
  }
  std::set<std::string> changed;
  {
    const MutexLock lock(state_->mutex);
    for (const auto& [name, pool] : state_->wanted) {
      if (!wanted.contains(name)) changed.insert(name);
    }
    for (auto& [name, pool] : wanted) {
      changed.insert(name);
      const auto before = state_->wanted.find(name);
      if (before == state_->wanted.end()) continue;
      const auto& old = before->second;
      for (std::size_t i = 0; i < std::min(old.slices.size(), pool.slices.size()); ++i) {
        if (old.slices[i] == pool.slices[i]) pool.stored[i] = old.stored[i];
      }
    }
    // Slices from before the start of the driver are looked at even when it has no pool at all.
    if (!state_->updated && changed.empty()) changed.insert(state_->options.node_name);
    state_->updated = true;
    state_->wanted = std::move(wanted);
    state_->unfinished.insert(changed.begin(), changed.end());
  }
  for (const auto& name : changed) state_->queue->add(name);
  return success();
}

void Publisher::begin() {
  std::set<std::string> pools;
  {
    const MutexLock lock(state_->mutex);
    state_->held = false;
    pools = state_->unfinished;
    for (const auto& [name, pool] : state_->wanted) pools.insert(name);
  }
  for (const auto& name : pools) state_->queue->add(name);
}

bool Publisher::is_done() const {
  const MutexLock lock(state_->mutex);
  return state_->updated && state_->unfinished.empty();
}

void Publisher::stop() {
  if (state_->queue) state_->queue->stop();
  if (state_->informer) state_->informer->stop();
}

}  // namespace dibs::driver
