// Volumes that are bound, and claims that pods use, go only when that has ended: the server put a
// finalizer on each (StorageObjectInUseProtection), which is taken off here.
#include <algorithm>

#include "api/volumes/volumes.h"
#include "base/finalizers.h"
#include "controllers/controllers.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

/// The node is done with it, or an administrator said so: only its own finalizers keep it.
bool is_shut_down(const Value& pod) {
  const Value& grace = pod["metadata"]["deletionGracePeriodSeconds"];
  return is_deleting(pod) && grace.is_integer() && grace.as_int() == 0;
}

bool uses(const Value& pod, const Value& claim) {
  // A pod without a node will not get one with a claim that is being deleted.
  if (pod["spec"]["nodeName"].as_string().empty()) return false;
  for (const api::PodVolume& volume : api::pod_volumes(pod)) {
    if (volume.claim != name_of(claim)) continue;
    if (!volume.ephemeral || (!is_shut_down(pod) && api::is_claim_of_pod(claim, pod))) return true;
  }
  return false;
}

bool used_by_any(const Value& claim, const std::vector<Value>& pods) {
  return std::any_of(pods.begin(), pods.end(),
                     [&claim](const Value& pod) { return uses(pod, claim); });
}

/// One key for all claims of a namespace: however many are deleted at once, the server is asked for
/// its pods once.
class ClaimProtection : public Controller {
 public:
  explicit ClaimProtection(Environment& environment)
      : environment_(environment),
        claims_(environment.informers.of(kVolumeClaims, kByNamespace, client::index_by_namespace)),
        pods_(environment.informers.of(kPods, kByVolumeClaim, index_by_volume_claim)),
        loop_(environment, "pvc-protection",
              [this](const std::string& name_space) { return reconcile(name_space); }) {
    const auto look = [this](const Value& claim) {
      if (is_deleting(claim) == has_finalizer(claim, kVolumeClaimFinalizer))
        loop_.add(std::string(namespace_of(claim)));
    };
    claims_.add_handler({.added = [look](const Value& claim, bool) { look(claim); },
                         .updated = [look](const Value&, const Value& claim) { look(claim); }});
    pods_.add_handler({.updated =
                           [this](const Value& before, const Value& after) {
                             if (uid_of(before) != uid_of(after) || is_deleting(after))
                               released(before);
                           },
                       .removed = [this](const Value& pod) { released(pod); }});
  }

  void stop() override { loop_.stop(); }

 private:
  /// A claim that the pod had may be free now.
  void released(const Value& pod) {
    for (const api::PodVolume& volume : api::pod_volumes(pod)) {
      const auto claim = claims_.get(client::key_of(namespace_of(pod), volume.claim));
      if (claim && is_deleting(*claim)) return loop_.add(std::string(namespace_of(pod)));
    }
  }

  Result<WorkOutcome> reconcile(const std::string& name_space) {
    std::vector<Value> writes;
    std::vector<Value> unused;
    for (const Value& claim : claims_.by_index(kByNamespace, name_space)) {
      if (!is_deleting(claim)) {
        // One from a time or a server without the admission plugin.
        if (!has_finalizer(claim, kVolumeClaimFinalizer))
          writes.push_back(with_finalizer(claim, kVolumeClaimFinalizer));
      } else if (has_finalizer(claim, kVolumeClaimFinalizer) &&
                 !used_by_any(claim, pods_.by_index(kByVolumeClaim, client::key_of(claim)))) {
        unused.push_back(claim);
      }
    }
    if (!unused.empty()) {
      // A pod may be there that the informer does not know yet.
      DIBS_TRY(const client::List pods, environment_.client.list(kPods, name_space));
      for (const Value& claim : unused)
        if (!used_by_any(claim, pods.items))
          writes.push_back(without_finalizer(claim, kVolumeClaimFinalizer));
    }
    std::optional<Error> error;
    for (const Value& claim : writes) {
      auto written = environment_.client.update(kVolumeClaims, name_space, claim);
      if (!written && !is_gone(written.error())) error = std::move(written).error();
    }
    if (error) return *error;
    return done();
  }

  Environment& environment_;
  client::Informer& claims_;
  client::Informer& pods_;
  Reconciler loop_;
};

class VolumeProtection : public Controller {
 public:
  explicit VolumeProtection(Environment& environment)
      : environment_(environment),
        volumes_(environment.informers.of(kVolumes)),
        loop_(environment, "pv-protection",
              [this](const std::string& name) { return reconcile(name); }) {
    const auto look = [this](const Value& volume) {
      if (is_deleting(volume) == has_finalizer(volume, kVolumeFinalizer))
        loop_.add(std::string(name_of(volume)));
    };
    volumes_.add_handler({.added = [look](const Value& volume, bool) { look(volume); },
                          .updated = [look](const Value&, const Value& volume) { look(volume); }});
  }

  void stop() override { loop_.stop(); }

 private:
  Result<WorkOutcome> reconcile(const std::string& name) {
    const auto volume = volumes_.get(name);
    if (!volume || is_deleting(*volume) != has_finalizer(*volume, kVolumeFinalizer)) return done();
    const bool bound = (*volume)["status"]["phase"].as_string() == "Bound";
    if (is_deleting(*volume) && bound) return done();
    auto written = environment_.client.update(kVolumes, "",
                                              is_deleting(*volume)
                                                  ? without_finalizer(*volume, kVolumeFinalizer)
                                                  : with_finalizer(*volume, kVolumeFinalizer));
    if (!written && !is_gone(written.error())) return std::move(written).error();
    return done();
  }

  Environment& environment_;
  client::Informer& volumes_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_claim_protection_controller(Environment& environment) {
  return std::make_unique<ClaimProtection>(environment);
}

ControllerPtr make_volume_protection_controller(Environment& environment) {
  return std::make_unique<VolumeProtection>(environment);
}

}  // namespace dibs::controllers
