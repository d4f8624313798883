#include "node/plugins/slice_wiper.h"

#include <map>
#include <set>

#include "api/kinds/resource/versions/model.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/work_queue.h"

namespace dibs::node {
namespace {

using client::WorkOutcome;

constexpr auto kAway = std::chrono::seconds(30);
constexpr auto kLookAgain = std::chrono::milliseconds(500);
/// The key of the wipe at the start; no driver has this name.
const std::string kAll = "*";

client::WorkQueueOptions queue_options() {
  client::WorkQueueOptions options;
  options.concurrency = 4;
  options.first_delay = std::chrono::seconds(1);
  options.longest_delay = std::chrono::minutes(5);
  options.retries_per_second = 0;
  return options;
}

}  // namespace

struct SliceWiper::State : std::enable_shared_from_this<State> {
  State(std::string name, NodeRelease r, client::Client& a, runtime::Runtime& rt)
      : node_name(std::move(name)),
        release(r),
        api(a),
        runtime(rt),
        queue(rt, queue_options(), [this](const std::string& driver) { return wipe(driver); }) {}

  WorkOutcome wipe(const std::string& driver) {
    const bool all = driver == kAll;
    if (!all && !wanted(driver)) return WorkOutcome::done();
    if (!all && is_back(driver)) {
      forget(driver);
      return WorkOutcome::done();
    }
    if (!all && !at_once() && settling()) return WorkOutcome::again_after(kLookAgain);
    if (all && !release.exact) return give_time();
    const bool again = all && !first_attempt_pending();
    const auto removed = again ? remove_unusable() : remove(all ? "" : driver);
    if (all) first_attempt();
    if (!removed) {
      log::warn("cannot delete the ResourceSlices of an absent driver",
                {{"node", node_name}, {"driver", driver}, {"error", removed.error()}});
      return WorkOutcome::retry();
    }
    log::info("ResourceSlices deleted", {{"node", node_name}, {"driver", driver}});
    forget(driver);
    return WorkOutcome::done();
  }

  client::Gvr slices() const {
    return {"resource.k8s.io", std::string(release.resource_version()), "resourceslices"};
  }
  std::string of_node() const { return cat("spec.nodeName=", node_name); }

  /// Of all drivers when the name is empty.
  Result<> remove(const std::string& driver) {
    client::ListOptions selection;
    selection.field_selector =
        driver.empty() ? of_node() : cat("spec.driver=", driver, ",", of_node());
    const auto removed = api.remove_collection(slices(), "", selection);
    if (!removed && removed.error().code() != Code::not_found) return removed.error();
    return success();
  }

  Result<std::set<std::string>> drivers_without_plugin() {
    client::ListOptions selection;
    selection.field_selector = of_node();
    std::set<std::string> absent;
    const auto list = api.list(slices(), "", selection);
    // A server without this API has no slices either.
    if (!list && list.error().code() == Code::not_found) return absent;
    if (!list) return list.error();
    for (const auto& slice : list->items) {
      std::string driver =
          api::is_classic(slice) ? slice["driverName"].str() : slice["spec"]["driver"].str();
      if (!driver.empty() && !usable(driver)) absent.insert(std::move(driver));
    }
    return absent;
  }

  Result<> remove_unusable() {
    DIBS_TRY(const auto absent, drivers_without_plugin());
    for (const auto& driver : absent) DIBS_CHECK(remove(driver));
    return success();
  }

  WorkOutcome give_time() {
    const auto absent = drivers_without_plugin();
    if (absent) {
      for (const auto& driver : *absent) schedule(driver);
    }
    first_attempt();
    // One that registered after the look above would else lose what it publishes.
    if (absent) {
      for (const auto& driver : *absent) {
        if (usable(driver)) cancel(driver);
      }
    }
    return absent ? WorkOutcome::done() : WorkOutcome::retry();
  }

  void schedule(const std::string& driver) {
    const MutexLock lock(mutex);
    if (pending.count(driver) != 0) return;
    const std::weak_ptr<State> weak = weak_from_this();
    pending[driver] =
        runtime.timers.after(at_once() ? Duration(0) : Duration(kAway), [weak, driver] {
          if (const auto state = weak.lock()) {
            state->queue.add(driver);
          }
        });
  }

  void cancel(const std::string& driver) {
    const MutexLock lock(mutex);
    const auto found = pending.find(driver);
    if (found == pending.end()) return;
    runtime.timers.cancel(found->second);
    pending.erase(found);
  }

  bool at_once() const { return release.minor <= 32; }
  /// The word of it may still be on its way here.
  bool is_back(const std::string& driver) const { return drivers.usable && usable(driver); }
  bool usable(const std::string& driver) const { return drivers.usable(driver); }
  bool settling() const { return drivers.settling && drivers.settling(); }

  bool first_attempt_pending() {
    const MutexLock lock(mutex);
    return first_done != nullptr;
  }
  bool wanted(const std::string& driver) {
    const MutexLock lock(mutex);
    return pending.count(driver) != 0;
  }
  void forget(const std::string& driver) {
    const MutexLock lock(mutex);
    pending.erase(driver);
  }
  void first_attempt() {
    std::function<void()> done;
    {
      const MutexLock lock(mutex);
      done = std::move(first_done);
      first_done = nullptr;
    }
    if (done) done();
  }

  const std::string node_name;
  const NodeRelease release;
  client::Client& api;
  runtime::Runtime& runtime;
  mutable Mutex mutex;
  std::map<std::string, runtime::TimerId> pending DIBS_GUARDED_BY(mutex);
  std::function<void()> first_done DIBS_GUARDED_BY(mutex);
  Drivers drivers;  // set before the first wipe
  client::WorkQueue queue;
};

SliceWiper::SliceWiper(std::string node_name, NodeRelease release, client::Client& api,
                       runtime::Runtime& runtime)
    : state_(std::make_shared<State>(std::move(node_name), release, api, runtime)) {}

SliceWiper::~SliceWiper() { stop(); }

void SliceWiper::begin(std::function<void()> done, Drivers drivers) {
  // Before 1.31 there were no slices of drivers: the agent published for them.
  if (state_->release.exact && state_->release.minor <= 30) {
    done();
    return;
  }
  {
    const MutexLock lock(state_->mutex);
    state_->first_done = std::move(done);
    state_->drivers = std::move(drivers);
  }
  state_->queue.add(kAll);
}

void SliceWiper::schedule(const std::string& driver) {
  if (state_->release.exact && state_->release.minor <= 30) return;
  state_->schedule(driver);
}

void SliceWiper::cancel(const std::string& driver) { state_->cancel(driver); }

void SliceWiper::stop() {
  {
    const MutexLock lock(state_->mutex);
    for (const auto& [driver, timer] : state_->pending) state_->runtime.timers.cancel(timer);
    state_->pending.clear();
  }
  state_->queue.stop();
}

}  // namespace dibs::node
