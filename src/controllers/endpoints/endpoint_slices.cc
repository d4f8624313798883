// The EndpointSlices of Services that select pods.
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/endpoints/service_pods.h"
#include "controllers/endpoints/slice_keeper.h"
#include "controllers/endpoints/slice_plan.h"
#include "controllers/endpoints/trigger_times.h"

namespace dibs::controllers {
namespace {

class EndpointSlices : public Controller {
 public:
  explicit EndpointSlices(Environment& environment)
      : environment_(environment),
        loop_(environment, "endpoint-slice",
              [this](const std::string& key) { return reconcile(key); }),
        services_(environment, loop_),
        slices_(environment, loop_, std::string(kSliceController)) {
    services_.follow_nodes();
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto service = services_.service(key);
    if (!service) {
      // Its slices go with their owner.
      times_.forget(key);
      slices_.forget(key);
      return done();
    }
    if (!ServicePods::selects(*service)) return done();
    const auto pods = services_.pods_of(*service);
    const auto slices = slices_.slices_of(key);
    if (!slices) return WorkOutcome::again_after(SliceKeeper::kLookAgain);
    const auto time = times_.look(key, *service, pods);
    SlicePlan plan = plan_slices(*service, pods, *slices,
                                 [this](const Value& pod) { return services_.node_of(pod); });
    for (Value& slice : plan.writes.create) set_trigger_time(slice, time);
    for (Value& slice : plan.writes.update) set_trigger_time(slice, time);
    const auto written = slices_.write(key, plan.writes, !is_deleting(*service));
    if (!written.ok()) {
      if (written.error().code() != Code::conflict) tell(*service, written.error().message());
      return written.error();
    }
    // Once the node is there, its pods lead here again.
    for (const std::string& pod : plan.without_node) {
      tell(*service, cat("skipping Pod ", pod, " for Service ", key, ": its Node was not found"));
    }
    return done();
  }

  void tell(const Value& service, const std::string& what) {
    environment_.events.event(
        "endpoint-slice-controller", service, true, "FailedToUpdateEndpointSlices",
        cat("Error updating Endpoint Slices for Service ", client::key_of(service), ": ", what));
  }

  Environment& environment_;
  Reconciler loop_;
  ServicePods services_;
  SliceKeeper slices_;
  TriggerTimes times_;
};

}  // namespace

ControllerPtr make_endpoint_slice_controller(Environment& environment) {
  return std::make_unique<EndpointSlices>(environment);
}

}  // namespace dibs::controllers
