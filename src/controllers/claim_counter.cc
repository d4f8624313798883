// Counts claims and devices, for metrics. Writes nothing.
#include "base/mutex.h"
#include "client/claim_metrics.h"
#include "controllers/controllers.h"
#include "controllers/device_counts.h"
#include "controllers/pod_claims.h"

namespace dibs::controllers {
namespace {

constexpr const char* kGroup = "resource.k8s.io";
constexpr std::string_view kExtendedClaimAnnotation =
    "resource.kubernetes.io/extended-resource-claim";

const char* text_of(bool value) { return value ? "true" : "false"; }

/// As Kubernetes counts them: allocated, admin_access, source.
std::vector<std::string> labels_of(const Value& claim) {
  const Value& annotations = claim["metadata"]["annotations"];
  const char* source = "";
  if (annotations[kClaimNameAnnotation].is_string()) source = "resource_claim_template";
  if (annotations[kExtendedClaimAnnotation].as_string() == "true") source = "extended_resource";
  return {text_of(claim["status"]["allocation"].is_object()), client::admin_access_of(claim),
          source};
}

const char* state_of(const Value& claim) {
  if (is_deleting(claim)) return "deleting";
  if (!claim["status"]["allocation"].is_object()) return "pending";
  return claim["status"]["reservedFor"].empty() ? "allocated" : "reserved";
}

using Told = std::vector<metrics::Sample>;

/// What is told at an exposition, by any thread.
struct Counted {
  Mutex mutex;
  std::map<std::vector<std::string>, std::int64_t> claims DIBS_GUARDED_BY(mutex);
  std::map<std::string, std::int64_t> states DIBS_GUARDED_BY(mutex) = {
      {"allocated", 0}, {"deleting", 0}, {"pending", 0}, {"reserved", 0}};
  DeviceCounts devices DIBS_GUARDED_BY(mutex);

  void change(const Value* before, const Value* after) {
    const MutexLock lock(mutex);
    if (before != nullptr) count(*before, -1);
    if (after != nullptr) {
      count(*after, 1);
      devices.put_claim(*after);
    } else if (before != nullptr) {
      devices.remove_claim(*before);
    }
  }
  void count(const Value& claim, int change) DIBS_REQUIRES(mutex) {
    claims[labels_of(claim)] += change;
    states[state_of(claim)] += change;
  }

  Told tell_claims() {
    const MutexLock lock(mutex);
    Told out;
    for (const auto& [labels, count] : claims) out.push_back({labels, static_cast<double>(count)});
    return out;
  }
  Told tell_states() {
    const MutexLock lock(mutex);
    Told out;
    for (const auto& [state, count] : states) out.push_back({{state}, static_cast<double>(count)});
    return out;
  }
  Told tell_devices() {
    const MutexLock lock(mutex);
    Told out;
    for (const auto& [kind, count] : devices.all()) {
      out.push_back(
          {{kind.driver, kind.node, kind.allocated ? "allocated" : "free", text_of(kind.tainted)},
           static_cast<double>(count)});
    }
    return out;
  }
};

class ClaimCounter : public Controller {
 public:
  ClaimCounter(Environment& environment, const Gvr& claims)
      : counted_(std::make_shared<Counted>()) {
    follow_claims(environment.informers.of(claims));
    if (const auto slices = environment.discovery.find(kGroup, "resourceslices")) {
      follow(environment.informers.of(slices->gvr), &DeviceCounts::put_slice,
             &DeviceCounts::remove_slice);
    }
    if (const auto rules = find_taint_rules(environment)) {
      follow(environment.informers.of(rules->gvr), &DeviceCounts::put_rule,
             &DeviceCounts::remove_rule);
    }
    tell(*environment.options.metrics);
  }

  void stop() override {}

 private:
  void follow_claims(client::Informer& claims) {
    const auto change = [counted = counted_](const Value* before, const Value* after) {
      counted->change(before, after);
    };
    claims.add_handler(
        {.added = [change](const Value& claim, bool) { change(nullptr, &claim); },
         .updated = [change](const Value& before, const Value& after) { change(&before, &after); },
         .removed = [change](const Value& claim) { change(&claim, nullptr); }});
  }

  using Change = void (DeviceCounts::*)(const Value& object);
  void follow(client::Informer& informer, Change put, Change remove) {
    const auto call = [counted = counted_](Change what, const Value& object) {
      const MutexLock lock(counted->mutex);
      (counted->devices.*what)(object);
    };
    informer.add_handler(
        {.added = [call, put](const Value& object, bool) { call(put, object); },
         .updated = [call, put](const Value&, const Value& object) { call(put, object); },
         .removed = [call, remove](const Value& object) { call(remove, object); }});
  }

  void tell(metrics::Registry& registry) const {
    // The registry outlives the controller.
    const auto by = [weak = std::weak_ptr<Counted>(counted_)](Told (Counted::*what)()) {
      return [weak, what] {
        const auto counted = weak.lock();
        return counted == nullptr ? Told() : (*counted.*what)();
      };
    };
    registry.gauge_function("dynamic_resource_allocation_resource_claims",
                            "ResourceClaims, by allocation, access and source.",
                            {"allocated", "admin_access", "source"}, by(&Counted::tell_claims));
    registry.gauge_function("dibs_resource_claims", "ResourceClaims, by state.", {"state"},
                            by(&Counted::tell_states));
    registry.gauge_function("dibs_devices", "Devices that drivers publish, by state.",
                            {"driver", "node", "state", "tainted"}, by(&Counted::tell_devices));
  }

  const std::shared_ptr<Counted> counted_;
};

}  // namespace

ControllerPtr make_claim_counter(Environment& environment) {
  const auto claims = environment.discovery.find(kGroup, "resourceclaims");
  if (environment.options.metrics == nullptr || !claims) return nullptr;
  return std::make_unique<ClaimCounter>(environment, claims->gvr);
}

}  // namespace dibs::controllers
