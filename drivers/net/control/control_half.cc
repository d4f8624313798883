#include "drivers/net/control/control_half.h"

#include "base/log.h"
#include "base/strings.h"
#include "client/informer.h"
#include "driver/leader.h"
#include "drivers/net/control/advice.h"
#include "drivers/net/control/allocator.h"
#include "drivers/net/control/binding.h"
#include "drivers/net/control/networks.h"
#include "drivers/net/objects/install.h"
#include "drivers/net/objects/reconciler.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

/// Lives while this process leads. Parts end in the reverse of the order in which they begin here:
/// each uses those above it.
class Work {
 public:
  Work(const driver::Environment& environment, const ControlHalfOptions& options)
      : events_(environment.api, environment.runtime,
                {.controller = cat("resource driver ", kDriver), .core = true}),
        networks_(environment.api, environment.runtime, [this] { look_again(); }),
        states_(environment.api, environment.runtime, [this] { look_again(); }),
        pools_(environment.api, environment.runtime, {.gvr = kIpPools}) {
    const SelectionOptions& selection = options.ipam.selection;
    ReconcilerOptions reconciling;
    reconciling.match_subnets = selection.subnet_match != SubnetMatch::off;
    reconciling.multus_name_selects = selection.multus_name_selects;
    reconciling.install_namespace = selection.install_namespace;
    reconciler_ = Reconciler::start(environment, std::move(reconciling));
    if (auto started = Collector::start(environment, options.collector)) {
      collector_ = std::move(started).value();
    } else {
      log::error("addresses are not collected", {{"error", started.error()}});
    }
    auto ipam = Ipam::start(environment, options.ipam);
    if (!ipam) {
      log::error("addresses cannot be assigned", {{"error", ipam.error()}});
      return;
    }
    ipam_ = std::move(ipam).value();
    binding_ =
        std::make_unique<Binding>(environment, *ipam_, networks_, states_, events_, selection);
    advice_ = std::make_unique<Advice>(environment, *ipam_, networks_, states_, events_, selection);
    const AllocatorViews views{
        *ipam_, networks_, states_, events_,
        [this](const std::string& node, Used& used) { binding_->add_used(node, used); }};
    allocator_ = std::make_unique<NetAllocator>(
        environment, views, AllocatorOptions{selection, options.allow_immediate});
    driver::ControllerOptions how;
    how.driver_name = kClassicDriver;
    if (auto started = driver::Controller::start(*allocator_, environment, std::move(how))) {
      const MutexLock lock(mutex_);
      controller_ = std::move(started).value();
    }
    watch_pools();
  }

  ~Work() {
    // Who waits for an address is let go first: all others may be waiting for it.
    if (ipam_) ipam_->stop();
    pools_.stop();
    networks_.stop();
    states_.stop();
    std::unique_ptr<driver::Controller> controller;
    {
      const MutexLock lock(mutex_);
      controller = std::move(controller_);
    }
    if (controller) controller->stop();
    if (binding_) binding_->stop();
    if (advice_) advice_->stop();
    if (collector_) collector_->stop();
    if (reconciler_) reconciler_->stop();
  }

 private:
  /// Whoever waits for an address may find one: a pool came, changed, or has more free ones.
  void watch_pools() {
    client::InformerHandlers handlers;
    handlers.added = [this](const Value&, bool initial) {
      if (!initial) look_again();
    };
    handlers.updated = [this](const Value& before, const Value& after) {
      const auto count = [](const Value& pool) {
        return pool["status"]["allocatedIPCount"].as_int();
      };
      const bool freed = count(after) < count(before);
      if (freed || !(before["spec"] == after["spec"]) ||
          !(before["status"]["admittedIPs"] == after["status"]["admittedIPs"])) {
        look_again();
      }
    };
    pools_.add_handler(std::move(handlers));
    pools_.start();
  }

  void look_again() {
    const MutexLock lock(mutex_);
    if (controller_) controller_->look_again();
  }

  client::EventRecorder events_;
  Mutex mutex_;
  std::unique_ptr<driver::Controller> controller_ DIBS_GUARDED_BY(mutex_);
  Networks networks_;
  NodeStates states_;
  client::Informer pools_;
  std::unique_ptr<Reconciler> reconciler_;
  std::unique_ptr<Collector> collector_;
  std::unique_ptr<Ipam> ipam_;
  std::unique_ptr<Binding> binding_;
  std::unique_ptr<Advice> advice_;
  std::unique_ptr<NetAllocator> allocator_;
};

}  // namespace

Result<driver::Running> start_control_half(driver::Environment environment,
                                           ControlHalfOptions options) {
  options.election.driver_name = kClassicDriver;
  if (options.election.lease_name.empty()) {
    options.election.lease_name = "spiderpool-controller-leases";
  }
  options.collector.subnets = options.ipam.selection.subnets;
  options.collector.stateful_sets = options.ipam.stateful_sets;
  options.collector.records = options.ipam.records;
  const driver::ControllerOptions election = options.election;
  std::shared_ptr<driver::Leader> leader = driver::Leader::start(
      environment, election, [environment, options]() -> std::shared_ptr<void> {
        log::info("the network driver works for the cluster");
        return std::make_shared<Work>(environment, options);
      });
  return driver::Running{std::move(leader), nullptr};
}

}  // namespace dibs::drivers::net
