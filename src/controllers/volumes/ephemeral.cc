// Makes the claims of pods' generic ephemeral volumes. The pod owns its claim, so the garbage
// collector removes it with the pod.
#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/volumes/binding_writes.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

class EphemeralVolumes : public Controller {
 public:
  explicit EphemeralVolumes(Environment& environment)
      : environment_(environment),
        pods_(environment.informers.of(kPods, kByVolumeClaim, index_by_volume_claim)),
        claims_(environment.informers.of(kVolumeClaims)),
        loop_(environment, "ephemeral-volume",
              [this](const std::string& key) { return reconcile(key); }) {
    // The volumes of a pod do not change.
    pods_.add_handler({.added = [this](const Value& pod, bool) { add(pod); }});
    claims_.add_handler({.removed = [this](const Value& claim) {
      for (const Value& pod : pods_.by_index(kByVolumeClaim, client::key_of(claim))) add(pod);
    }});
  }

  void stop() override { loop_.stop(); }

 private:
  void add(const Value& pod) {
    if (is_deleting(pod)) return;
    for (const Value& volume : pod["spec"]["volumes"].items())
      if (!volume["ephemeral"].is_null()) return loop_.add(client::key_of(pod));
  }

  Result<WorkOutcome> reconcile(const std::string& key) {
    const auto pod = pods_.get(key);
    if (!pod || is_deleting(*pod)) return done();
    for (const Value& volume : (*pod)["spec"]["volumes"].items()) {
      if (volume["ephemeral"].is_null()) continue;
      auto made = provide(*pod, volume);
      if (made) continue;
      environment_.events.event(
          "ephemeral_volume", *pod, true, "FailedBinding",
          cat("ephemeral volume ", volume["name"].as_string(), ": ", made.error().message()));
      return std::move(made).error();
    }
    return done();
  }

  Result<> provide(const Value& pod, const Value& volume) {
    const std::string name = cat(name_of(pod), '-', volume["name"].as_string());
    if (const auto known = claims_.get(client::key_of(namespace_of(pod), name)))
      return check_owner(*known, pod);
    const Value& pattern = volume["ephemeral"]["volumeClaimTemplate"];
    Value metadata =
        Value::object({{"name", name}, {"ownerReferences", Value::array({owner_reference(pod)})}});
    for (const char* part : {"annotations", "labels"})
      if (!pattern["metadata"][part].is_null()) metadata.set(part, pattern["metadata"][part]);
    const Value claim = Value::object({{"apiVersion", "v1"},
                                       {"kind", "PersistentVolumeClaim"},
                                       {"metadata", std::move(metadata)},
                                       {"spec", pattern["spec"]}});
    auto made =
        environment_.client.create(kVolumeClaims, namespace_of(pod), claim, volume_writing());
    if (made) return success();
    if (made.error().code() != Code::already_exists)
      return made.error().within(cat("create PVC ", name));
    // Made before a restart, or by somebody else.
    DIBS_TRY(const Value live, environment_.client.get(kVolumeClaims, namespace_of(pod), name));
    return check_owner(live, pod);
  }

  static Result<> check_owner(const Value& claim, const Value& pod) {
    if (api::is_claim_of_pod(claim, pod)) return success();
    return Error::conflict(cat("PVC ", client::key_of(claim), " was not created for pod ",
                               client::key_of(pod), " (pod is not owner)"));
  }

  Environment& environment_;
  client::Informer& pods_;
  client::Informer& claims_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_ephemeral_volume_controller(Environment& environment) {
  return std::make_unique<EphemeralVolumes>(environment);
}

}  // namespace dibs::controllers
