// The Endpoints of Services that select pods: the older form of what slices say.
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/endpoints/service_pods.h"
#include "controllers/endpoints/subsets.h"
#include "controllers/endpoints/trigger_times.h"
#include "controllers/workload.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr const char* kManagerLabel = "endpoints.kubernetes.io/managed-by";
constexpr const char* kOverCapacity = "endpoints.kubernetes.io/over-capacity";
constexpr int kManagerLabelSince = 33;

class EndpointsController : public Controller {
 public:
  explicit EndpointsController(Environment& environment)
      : environment_(environment),
        endpoints_(environment.informers.of(kEndpointsResource)),
        loop_(environment, "endpoint", [this](const std::string& key) { return reconcile(key); }),
        services_(environment, loop_) {
    const auto look = [this](const Value& endpoints) { loop_.add(client::key_of(endpoints)); };
    endpoints_.add_handler({.added =
                                [look](const Value& endpoints, bool initial) {
                                  // Their Service may have gone while nobody looked. Those of an
                                  // election never had one.
                                  if (initial && annotation_of(endpoints, kLeaderRecord).empty())
                                    look(endpoints);
                                },
                            .removed = look});
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto service = services_.service(key);
    if (!service) return remove(key);
    if (!ServicePods::selects(*service)) return done();
    const auto pods = services_.pods_of(*service);
    const auto time = times_.look(key, *service, pods);
    const auto before = endpoints_.get(key);
    Value wanted = wanted_endpoints(*service, pods, before ? *before : Value());
    if (before && same(*before, wanted)) return done();
    set_trigger_time(wanted, time);
    return write(*service, wanted, !before);
  }

  Result<WorkOutcome> remove(const std::string& key) {
    times_.forget(key);
    if (!endpoints_.get(key)) return done();
    const auto [name_space, name] = client::split_key(key);
    const auto removed = environment_.client.remove(kEndpointsResource, name_space, name);
    if (!removed.ok() && !is_gone(removed.error())) return removed.error();
    return done();
  }

  Value wanted_endpoints(const Value& service, const std::vector<Value>& pods,
                         const Value& before) const {
    Value out = before;
    if (out.is_null()) {
      out = Value::object({{"apiVersion", "v1"},
                           {"kind", "Endpoints"},
                           {"metadata", Value::object({{"name", service["metadata"]["name"]}})}});
    }
    Value labels = labels_without(service["metadata"]["labels"], {kHeadlessLabel});
    if (is_headless(service)) labels.set(kHeadlessLabel, "");
    if (environment_.discovery.release() >= kManagerLabelSince)
      labels.set(kManagerLabel, "endpoint-controller");
    Value subsets = subsets_of(service, pods);
    Value& metadata = out.mut("metadata");
    metadata.set("labels", std::move(labels));
    if (truncate_subsets(subsets)) {
      metadata.mut("annotations").set(kOverCapacity, "truncated");
    } else if (!metadata["annotations"][kOverCapacity].is_null()) {
      metadata.mut("annotations").erase(kOverCapacity);
    }
    out.set("subsets", std::move(subsets));
    return out;
  }

  static bool same(const Value& before, const Value& wanted) {
    const auto labels = [](const Value& object) {
      return labels_without(object["metadata"]["labels"], {});
    };
    return labels(before) == labels(wanted) &&
           annotation_of(before, kOverCapacity) == annotation_of(wanted, kOverCapacity) &&
           packed_subsets(before["subsets"]) == packed_subsets(wanted["subsets"]);
  }

  Result<WorkOutcome> write(const Value& service, const Value& wanted, bool creating) {
    client::WriteOptions options;
    options.field_manager = kFieldManager;
    const auto name_space = namespace_of(service);
    const auto written =
        creating ? environment_.client.create(kEndpointsResource, name_space, wanted, options)
                 : environment_.client.update(kEndpointsResource, name_space, wanted, options);
    if (written.ok() || is_namespace_ending(written.error())) return done();
    const Error& error = written.error();
    // Somebody was there first, or the informer is behind.
    if (error.code() != Code::conflict && error.code() != Code::already_exists) {
      environment_.events.event(
          "endpoint-controller", service, true,
          creating ? "FailedToCreateEndpoint" : "FailedToUpdateEndpoint",
          cat("Failed to ", creating ? "create endpoint for service " : "update endpoint ",
              client::key_of(service), ": ", error.message()));
    }
    return error;
  }

  Environment& environment_;
  client::Informer& endpoints_;
  Reconciler loop_;
  ServicePods services_;
  TriggerTimes times_;
};

}  // namespace

ControllerPtr make_endpoints_controller(Environment& environment) {
  return std::make_unique<EndpointsController>(environment);
}

}  // namespace dibs::controllers
