// Binds claims and volumes to each other, asks provisioners for what is missing, and sees to
// volumes whose claims are gone.
//
// One key at a time, so that no volume is chosen for two claims at once; what informers do not know
// yet is asked of the server before a write. Keys are "claim/namespace/name", "volume/name" and
// "class/name": all claims of that class that wait for a volume.
#include "api/volumes/matching.h"
#include "api/volumes/volumes.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/volumes/binding_writes.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

constexpr const char* kComponent = "persistentvolume-controller";
constexpr std::string_view kClaim = "claim/";
constexpr std::string_view kVolume = "volume/";
constexpr std::string_view kClass = "class/";
// Indexes.
constexpr const char* kFree = "free";        // volumes by class
constexpr const char* kByClaim = "claim";    // volumes by the claim they name
constexpr const char* kWaiting = "waiting";  // claims without a volume by class
constexpr const char* kWanting = "wanting";  // claims by the volume they name

/// Nobody has it, or will have it.
bool is_available(const Value& volume) {
  return volume["spec"]["claimRef"].is_null() &&
         volume["status"]["phase"].as_string() == "Available" && !is_deleting(volume);
}

std::vector<std::string> index_free(const Value& volume) {
  if (!is_available(volume)) return {};
  return {std::string(api::class_of_volume(volume))};
}

std::vector<std::string> index_by_claim(const Value& volume) {
  std::string key = api::claim_key_of(volume);
  if (key.empty()) return {};
  return {std::move(key)};
}

std::vector<std::string> index_waiting(const Value& claim) {
  if (!claim["spec"]["volumeName"].as_string().empty() ||
      api::has_annotation(claim, api::kBindCompleted))
    return {};
  return {std::string(api::class_of_claim(claim))};
}

std::vector<std::string> index_wanting(const Value& claim) {
  const Value& volume = claim["spec"]["volumeName"];
  if (volume.as_string().empty()) return {};
  return {volume.str()};
}

class Binder : public Controller {
 public:
  explicit Binder(Environment& environment)
      : environment_(environment),
        api_(environment.client),
        volumes_(environment.informers.of(kVolumes, kFree, index_free)),
        claims_(environment.informers.of(kVolumeClaims, kWaiting, index_waiting)),
        classes_(environment.informers.of(kStorageClasses)),
        pods_(environment.informers.of(kPods, kByVolumeClaim, index_by_volume_claim)),
        loop_(
            environment, "persistent-volume-binder",
            [this](const std::string& key) { return reconcile(key); }, 1) {
    environment.informers.of(kVolumes, kByClaim, index_by_claim);
    environment.informers.of(kVolumeClaims, kWanting, index_wanting);
    volumes_.add_handler(
        {.added = [this](const Value& volume, bool) { volume_seen(Value(), volume); },
         .updated = [this](const Value& before, const Value& after) { volume_seen(before, after); },
         .removed = [this](const Value& volume) { volume_seen(volume, volume); }});
    claims_.add_handler({.added = [this](const Value& claim, bool) { claim_seen(claim); },
                         .updated = [this](const Value&, const Value& claim) { claim_seen(claim); },
                         .removed =
                             [this](const Value& claim) {
                               forget(claim);
                               claim_seen(claim);
                             }});
    loop_.follow(classes_, [this](const Value& storage_class) {
      loop_.add(cat(kClass, name_of(storage_class)));
      // Claims that name none get the default one.
      if (api::is_default_class(storage_class)) loop_.add(std::string(kClass));
    });
    loop_.follow(pods_, [this](const Value& pod) { pod_seen(pod); });
  }

  void stop() override { loop_.stop(); }

 private:
  static std::string claim_key(const std::string& key) { return cat(kClaim, key); }
  static std::string volume_key(std::string_view name) { return cat(kVolume, name); }

  void volume_seen(const Value& before, const Value& volume) {
    const std::string name(name_of(volume));
    loop_.add(volume_key(name));
    for (const Value& claim : claims_.by_index(kWanting, name))
      loop_.add(claim_key(client::key_of(claim)));
    const std::string claim = api::claim_key_of(volume);
    if (!claim.empty()) loop_.add(claim_key(claim));
    if (is_available(volume) && !is_available(before))
      loop_.add(cat(kClass, api::class_of_volume(volume)));
  }

  void claim_seen(const Value& claim) {
    const std::string key = client::key_of(claim);
    loop_.add(claim_key(key));
    const Value& volume = claim["spec"]["volumeName"];
    if (!volume.as_string().empty()) loop_.add(volume_key(volume.as_string()));
    for (const Value& other : volumes_.by_index(kByClaim, key))
      loop_.add(volume_key(name_of(other)));
  }

  /// Claims that wait for their first consumer tell whom they wait for.
  void pod_seen(const Value& pod) {
    for (const api::PodVolume& volume : api::pod_volumes(pod)) {
      const std::string key = client::key_of(namespace_of(pod), volume.claim);
      const auto claim = claims_.get(key);
      if (claim && !index_waiting(*claim).empty() && waits(*claim)) loop_.add(claim_key(key));
    }
  }

  Result<WorkOutcome> reconcile(std::string_view key) {
    if (key.starts_with(kVolume)) return sync_volume(std::string(key.substr(kVolume.size())));
    if (key.starts_with(kClaim)) return sync_claim(std::string(key.substr(kClaim.size())));
    for (const Value& claim : claims_.by_index(kWaiting, std::string(key.substr(kClass.size()))))
      loop_.add(claim_key(client::key_of(claim)));
    return done();
  }

  /// The same text about the same claim is told once.
  void tell(const Value& claim, bool warning, const std::string& reason, const std::string& note) {
    {
      const MutexLock lock(mutex_);
      std::string& last = told_[std::string(uid_of(claim))];
      if (last == cat(reason, ' ', note)) return;
      last = cat(reason, ' ', note);
    }
    environment_.events.event(kComponent, claim, warning, reason, note);
  }
  void forget(const Value& claim) {
    const MutexLock lock(mutex_);
    told_.erase(std::string(uid_of(claim)));
  }

  std::optional<Value> class_named(std::string_view name) const {
    return name.empty() ? std::nullopt : classes_.get(std::string(name));
  }
  bool waits(const Value& claim) const {
    const auto found = class_named(api::class_of_claim(claim));
    return found && api::waits_for_consumer(*found);
  }

  /// As the server has it; null when it is gone.
  Result<Value> live(const Gvr& gvr, std::string_view name_space, std::string_view name) {
    auto found = api_.get(gvr, name_space, name);
    if (!found && is_gone(found.error())) return Value();
    return found;
  }

  // Claims.

  Result<WorkOutcome> sync_claim(const std::string& key) {
    const auto known = claims_.get(key);
    if (!known) return done();
    DIBS_TRY(const Value claim, live(kVolumeClaims, namespace_of(*known), name_of(*known)));
    if (claim.is_null()) return done();
    DIBS_CHECK(api::has_annotation(claim, api::kBindCompleted) ? sync_bound(claim)
                                                               : sync_unbound(claim));
    return done();
  }

  Result<> sync_unbound(const Value& claim) {
    if (is_deleting(claim)) return success();
    const std::string_view wanted = claim["spec"]["volumeName"].as_string();
    if (!wanted.empty()) return bind_wanted(claim, wanted);
    const bool delayed = waits(claim);
    DIBS_TRY(const Value volume, choose(claim, delayed));
    if (!volume.is_null()) return bind_volume(api_, volume, claim);
    DIBS_TRY(const bool assigned, assign_default_class(claim));
    if (assigned) return success();  // comes again as another claim
    if (delayed && !api::has_annotation(claim, api::kSelectedNode)) {
      tell_waiting(claim);
    } else if (!api::class_of_claim(claim).empty()) {
      return provision(claim);
    } else {
      tell(claim, false, "FailedBinding",
           "no persistent volumes available for this claim and no storage class is set");
    }
    return pending(claim);
  }

  Result<> pending(const Value& claim) {
    DIBS_CHECK(set_claim_phase(api_, claim, "Pending"));
    return success();
  }

  /// The volume to bind, as the server has it; null when there is none.
  Result<Value> choose(const Value& claim, bool delayed) {
    const std::string key = client::key_of(claim);
    const std::vector<Value> reserved = volumes_.by_index(kByClaim, key);
    std::vector<Value> free;
    // Those of a class that waits are the scheduler's to choose.
    if (!delayed) free = volumes_.by_index(kFree, std::string(api::class_of_claim(claim)));
    for (const Value& found : api::serving_volumes(claim, reserved, free)) {
      DIBS_TRY(Value now, live(kVolumes, "", name_of(found)));
      if (!now.is_null() && may_bind(claim, now, delayed)) return now;
    }
    return Value();
  }

  static bool may_bind(const Value& claim, const Value& volume, bool delayed) {
    const std::vector<Value> one = {volume};
    return !api::serving_volumes(claim, one, delayed ? std::vector<Value>() : one).empty();
  }

  Result<> bind_wanted(const Value& claim, std::string_view name) {
    DIBS_TRY(const Value volume, live(kVolumes, "", name));
    if (volume.is_null()) return pending(claim);
    if (volume["spec"]["claimRef"].is_null()) {
      const std::string why = api::volume_mismatch(volume, claim);
      if (why.empty()) return bind_volume(api_, volume, claim);
      tell(claim, true, "VolumeMismatch",
           cat("Cannot bind to requested volume ", quoted(name), ": ", why));
      return pending(claim);
    }
    if (api::is_bound_to(volume, claim)) return bind_volume(api_, volume, claim);
    tell(claim, true, "FailedBinding",
         cat("volume ", quoted(name), " already bound to a different claim."));
    return pending(claim);
  }

  Result<bool> assign_default_class(const Value& claim) {
    if (api::claim_names_class(claim)) return false;
    const Value chosen = api::default_class(classes_.list());
    if (chosen.is_null()) return false;
    Value next = claim;
    next.mut("spec").set("storageClassName", chosen["metadata"]["name"]);
    DIBS_CHECK(api_.update(kVolumeClaims, namespace_of(claim), next, volume_writing()));
    return true;
  }

  void tell_waiting(const Value& claim) {
    std::vector<std::string> pods;
    for (const Value& pod : pods_.by_index(kByVolumeClaim, client::key_of(claim))) {
      if (!is_pod_terminal(pod) && pod["spec"]["nodeName"].as_string().empty())
        pods.emplace_back(name_of(pod));
    }
    if (pods.empty()) {
      return tell(claim, false, "WaitForFirstConsumer",
                  "waiting for first consumer to be created before binding");
    }
    tell(claim, false, "WaitForPodScheduled",
         cat("waiting for pod", pods.size() > 1 ? "s " : " ", join(pods, ","), " to be scheduled"));
  }

  /// Says who is to make a volume. Everything that provisions works on the claim from then on.
  Result<> provision(const Value& claim) {
    const std::string_view name = api::class_of_claim(claim);
    const auto storage_class = class_named(name);
    if (!storage_class) {
      tell(claim, true, "ProvisioningFailed",
           cat("storageclass.storage.k8s.io ", quoted(name), " not found"));
      return success();
    }
    const Value& provisioner = (*storage_class)["provisioner"];
    if (provisioner.as_string().starts_with("kubernetes.io/")) {
      tell(claim, true, "ProvisioningFailed",
           cat("no volume plugin matched name: ", provisioner.as_string()));
      return success();
    }
    Value next = claim;
    Value& annotations = next.mut("metadata").mut("annotations");
    annotations.set(api::kBetaStorageProvisioner, provisioner);
    annotations.set(api::kStorageProvisioner, provisioner);
    if (next != claim)
      DIBS_CHECK(api_.update(kVolumeClaims, namespace_of(claim), next, volume_writing()));
    tell(claim, false, "ExternalProvisioning",
         cat("Waiting for a volume to be created either by the external provisioner '",
             provisioner.as_string(),
             "' or manually by the system administrator. If volume creation is delayed, please "
             "verify that the provisioner is running and correctly registered."));
    return success();
  }

  Result<> sync_bound(const Value& claim) {
    const std::string_view name = claim["spec"]["volumeName"].as_string();
    if (name.empty()) {
      return lose(
          claim, "ClaimLost",
          "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!");
    }
    DIBS_TRY(const Value volume, live(kVolumes, "", name));
    if (volume.is_null()) {
      return lose(claim, "ClaimLost",
                  "Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    }
    const Value& ref = volume["spec"]["claimRef"];
    if (ref.is_null() || ref["uid"] == claim["metadata"]["uid"])
      return bind_volume(api_, volume, claim);
    return lose(claim, "ClaimMisbound",
                "Two claims are bound to the same volume, this one is bound incorrectly");
  }

  Result<> lose(const Value& claim, const std::string& reason, const std::string& note) {
    if (claim["status"]["phase"].as_string() == "Lost") return success();
    DIBS_CHECK(set_claim_phase(api_, claim, "Lost"));
    tell(claim, true, reason, note);
    return success();
  }

  // Volumes.

  Result<WorkOutcome> sync_volume(const std::string& name) {
    if (!volumes_.get(name)) return done();
    DIBS_TRY(const Value volume, live(kVolumes, "", name));
    if (!volume.is_null()) DIBS_CHECK(sync_volume(volume));
    return done();
  }

  Result<> sync_volume(const Value& volume) {
    const Value& ref = volume["spec"]["claimRef"];
    if (ref["uid"].as_string().empty()) {  // free, or reserved for a claim that may still come
      DIBS_CHECK(set_volume_phase(api_, volume, "Available"));
      return success();
    }
    DIBS_TRY(const Value claim,
             live(kVolumeClaims, ref["namespace"].as_string(), ref["name"].as_string()));
    if (claim.is_null() || claim["metadata"]["uid"] != ref["uid"]) return release(volume);
    const std::string_view bound = claim["spec"]["volumeName"].as_string();
    if (bound.empty()) {
      if (!api::same_volume_mode(volume, claim)) tell_mode(volume, claim);
      return success();  // the claim's turn, which comes by the same event
    }
    if (bound == name_of(volume)) {
      DIBS_CHECK(set_volume_phase(api_, volume, "Bound"));
      return success();
    }
    // The claim has another volume. One that was made for it is of no use to others.
    if (api::has_annotation(volume, api::kProvisionedBy) &&
        volume["spec"]["persistentVolumeReclaimPolicy"].as_string() == "Delete") {
      return release(volume);
    }
    return unbind_volume(api_, volume);
  }

  void tell_mode(const Value& volume, const Value& claim) {
    environment_.events.event(
        kComponent, volume, true, "VolumeMismatch",
        cat("Cannot bind PersistentVolume to requested PersistentVolumeClaim ",
            quoted(name_of(claim)), " due to incompatible volumeMode."));
    tell(claim, true, "VolumeMismatch",
         cat("Cannot bind PersistentVolume ", quoted(name_of(volume)),
             " to requested PersistentVolumeClaim due to incompatible volumeMode."));
  }

  /// The claim is gone for good: claims of that name that come later have another uid.
  Result<> release(const Value& volume) {
    const std::string_view phase = volume["status"]["phase"].as_string();
    Value released = volume;
    if (phase != "Released" && phase != "Failed") {
      DIBS_TRY(released, set_volume_phase(api_, volume, "Released"));
    }
    return reclaim(released);
  }

  Result<> reclaim(const Value& volume) {
    const std::string_view policy = volume["spec"]["persistentVolumeReclaimPolicy"].as_string();
    if (policy == "Recycle") {
      const std::string users = users_of(volume);
      if (users.empty())
        return fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!");
      environment_.events.event(kComponent, volume, false, "VolumeFailedRecycle",
                                cat("Volume is used by pods: ", users));
      return success();
    }
    // Retained, or removed by who made it.
    const std::string_view maker = api::annotation_of(volume, api::kProvisionedBy).as_string();
    const bool theirs = (!maker.empty() && !maker.starts_with("kubernetes.io/")) ||
                        api::has_annotation(volume, api::kMigratedTo) ||
                        !volume["spec"]["csi"].is_null();
    if (policy != "Delete" || theirs) return success();
    return fail(volume, "VolumeFailedDelete",
                cat("error getting deleter volume plugin for volume ", quoted(name_of(volume)),
                    ": no deletable volume plugin matched"));
  }

  std::string users_of(const Value& volume) const {
    std::vector<std::string> out;
    const std::string key = api::claim_key_of(volume);
    // A claim of that name has another volume, and so have its pods.
    if (claims_.get(key)) return {};
    for (const Value& pod : pods_.by_index(kByVolumeClaim, key))
      if (!is_pod_terminal(pod)) out.push_back(client::key_of(pod));
    return join(out, ",");
  }

  Result<> fail(const Value& volume, const std::string& reason, const std::string& note) {
    if (volume["status"]["phase"].as_string() == "Failed") return success();
    DIBS_CHECK(set_volume_phase(api_, volume, "Failed", note));
    environment_.events.event(kComponent, volume, true, reason, note);
    return success();
  }

  Environment& environment_;
  client::Client& api_;
  client::Informer& volumes_;
  client::Informer& claims_;
  client::Informer& classes_;
  client::Informer& pods_;
  Mutex mutex_;
  std::map<std::string, std::string> told_ DIBS_GUARDED_BY(mutex_);  // by the claim's uid
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_volume_binder(Environment& environment) {
  return std::make_unique<Binder>(environment);
}

}  // namespace dibs::controllers
