#include "drivers/net/control/control_half.h"

#include "driver/leader.h"
#include "drivers/net/control/allocator.h"
#include "drivers/net/objects/install.h"
#include "drivers/net/objects/reconciler.h"

namespace dibs::drivers::net {
namespace {

/// Lives while this process leads.
struct Work {
  NetAllocator allocator;
  std::unique_ptr<Reconciler> reconciler;
  std::unique_ptr<driver::Controller> controller;

  Work(const driver::Environment& environment, const ControlHalfOptions& options)
      : allocator({options.allow_immediate}), reconciler(Reconciler::start(environment)) {
    driver::ControllerOptions how;
    how.driver_name = kClassicDriver;
    auto started = driver::Controller::start(allocator, environment, std::move(how));
    if (started) controller = std::move(started).value();
  }
};

}  // namespace

Result<driver::Running> start_control_half(driver::Environment environment,
                                           ControlHalfOptions options) {
  if (options.election.driver_name.empty()) options.election.driver_name = kClassicDriver;
  if (options.election.lease_name.empty()) {
    options.election.lease_name = "spiderpool-controller-leases";
  }
  const driver::ControllerOptions election = options.election;
  std::shared_ptr<driver::Leader> leader = driver::Leader::start(
      environment, election, [environment, options]() -> std::shared_ptr<void> {
        return std::make_shared<Work>(environment, options);
      });
  return driver::Running{std::move(leader), nullptr};
}

}  // namespace dibs::drivers::net
