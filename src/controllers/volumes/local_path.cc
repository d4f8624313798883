// Provisions folders on nodes: the class of that provisioner needs no other storage.
//
// A claim that the binder has handed to this provisioner, with the node that the scheduler has
// selected, gets a local volume there; the node makes the folder when it first mounts it. When the
// volume is released, a pod on that node removes the folder, and then the volume goes. Only the API
// is used, so this works for nodes on any machine. What is to be done follows from the objects
// alone: whoever comes after a kill goes on.
#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/volumes/binding_writes.h"
#include "controllers/volumes/local_path_objects.h"
#include "controllers/volumes/volume_objects.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kClaim = "claim/";
constexpr std::string_view kVolume = "volume/";
/// A pod that has not ended by then is worth a word; it may still.
constexpr Duration kPatience = std::chrono::minutes(2);
/// After a pod that failed.
constexpr Duration kAgain = std::chrono::seconds(15);

class LocalPath : public Controller {
 public:
  explicit LocalPath(Environment& environment)
      : environment_(environment),
        api_(environment.client),
        claims_(environment.informers.of(kVolumeClaims)),
        volumes_(environment.informers.of(kVolumes)),
        classes_(environment.informers.of(kStorageClasses)),
        nodes_(environment.informers.of(kNodes)),
        pods_(environment.informers.of(kPods)),
        loop_(environment, "local-path",
              [this](const std::string& key) { return reconcile(key); }) {
    loop_.follow(claims_, [this](const Value& claim) {
      if (is_mine(claim)) loop_.add(cat(kClaim, client::key_of(claim)));
    });
    loop_.follow(volumes_, [this](const Value& volume) {
      if (is_folder_to_remove(volume) || is_kept(volume)) loop_.add(cat(kVolume, name_of(volume)));
    });
    loop_.follow(pods_, [this](const Value& pod) {
      const Value& volume = pod["metadata"]["labels"][kFolderLabel];
      if (volume.is_string() && namespace_of(pod) == kFolderNamespace)
        loop_.add(cat(kVolume, volume.as_string()));
    });
    // Volumes whose node was missing.
    nodes_.add_handler({.added = [this](const Value&, bool) {
      for (const Value& volume : volumes_.list())
        if (is_folder_to_remove(volume)) loop_.add(cat(kVolume, name_of(volume)));
    }});
  }

  void stop() override { loop_.stop(); }

 private:
  /// It waits for a volume of this provisioner.
  static bool is_mine(const Value& claim) {
    return api::annotation_of(claim, api::kStorageProvisioner).as_string() ==
               api::kLocalPathProvisioner &&
           claim["spec"]["volumeName"].as_string().empty() && !is_deleting(claim);
  }

  /// An administrator deletes the volume and wants to keep the folder.
  static bool is_kept(const Value& volume) {
    return is_deleting(volume) && has_finalizer(volume, kFolderFinalizer) &&
           volume["spec"]["persistentVolumeReclaimPolicy"].as_string() != "Delete";
  }

  Result<WorkOutcome> reconcile(std::string_view key) {
    if (key.starts_with(kClaim)) return provide(std::string(key.substr(kClaim.size())));
    return remove(std::string(key.substr(kVolume.size())));
  }

  void tell(const Value& object, bool warning, const std::string& reason, const std::string& note) {
    environment_.events.event(std::string(api::kLocalPathProvisioner), object, warning, reason,
                              note);
  }

  // A claim gets its volume.

  Result<WorkOutcome> provide(const std::string& key) {
    const auto known = claims_.get(key);
    if (!known || !is_mine(*known)) return done();
    auto live = api_.get(kVolumeClaims, namespace_of(*known), name_of(*known));
    if (!live && is_gone(live.error())) return done();
    DIBS_TRY(const Value claim, std::move(live));
    if (!is_mine(claim)) return done();
    const auto storage_class = classes_.get(std::string(api::class_of_claim(claim)));
    // Annotations are the user's to write; whose volumes a class has is not.
    if (!storage_class || (*storage_class)["provisioner"].as_string() != api::kLocalPathProvisioner)
      return done();
    const std::string node = api::annotation_of(claim, api::kSelectedNode).str();
    if (node.empty()) {
      return refuse(claim, *storage_class,
                    "no node is selected: the class needs volumeBindingMode WaitForFirstConsumer, "
                    "since a folder is on one node");
    }
    const auto found = nodes_.get(node);
    if (!found) return choose_again(claim, node);
    auto volume = folder_volume(claim, *storage_class, *found);
    if (!volume) return refuse(claim, *storage_class, volume.error().message());
    auto made = api_.create(kVolumes, "", *volume, volume_writing());
    if (!made && made.error().code() != Code::already_exists) {
      (void)refuse(claim, *storage_class, made.error().message());
      return std::move(made).error();
    }
    if (made) {
      tell(claim, false, "ProvisioningSucceeded",
           cat("Successfully provisioned volume ", name_of(*made)));
    }
    return done();
  }

  Result<WorkOutcome> refuse(const Value& claim, const Value& storage_class,
                             const std::string& why) {
    tell(claim, true, "ProvisioningFailed",
         cat("failed to provision volume with StorageClass ", quoted(name_of(storage_class)), ": ",
             why));
    return done();
  }

  /// The node is gone: the scheduler is to select another.
  Result<WorkOutcome> choose_again(const Value& claim, const std::string& node) {
    Value next = claim;
    next.mut("metadata").mut("annotations").erase(api::kSelectedNode);
    DIBS_CHECK(api_.update(kVolumeClaims, namespace_of(claim), next, volume_writing()));
    tell(claim, true, "ProvisioningFailed",
         cat("Failed to get target node: node ", quoted(node), " not found"));
    return done();
  }

  // A volume goes, its folder first.

  Result<WorkOutcome> remove(const std::string& name) {
    const auto known = volumes_.get(name);
    const std::string pod_name = cat("remove-", name);
    const auto pod = pods_.get(client::key_of(kFolderNamespace, pod_name));
    if (!known) {
      if (pod) DIBS_CHECK(remove_pod(*pod));
      return done();
    }
    const Value& volume = *known;
    if (is_kept(volume)) DIBS_CHECK(let_go(volume));
    if (!is_folder_to_remove(volume)) return done();
    const auto host = host_of_folder(volume);
    if (!host) return fail(volume, host.error().message());
    if (pod && is_deleting(*pod)) return done();
    const std::string_view phase = pod ? (*pod)["status"]["phase"].as_string() : "";
    if (phase == "Succeeded") {
      DIBS_CHECK(let_go(volume));
      DIBS_CHECK(remove_pod(*pod));
      return done();
    }
    if (phase == "Failed") return try_again(volume, *pod);
    if (pod) return wait_for(volume, *pod);
    const std::string node = node_of(*host);
    if (node.empty()) {
      return fail(volume, cat("node with the label kubernetes.io/hostname=", *host,
                              " is not there: the folder stays until it is back, or until the "
                              "finalizer ",
                              kFolderFinalizer, " is taken off the volume"));
    }
    // The end of the pod before may have come here sooner than that of the volume.
    const auto live = api_.get(kVolumes, "", name);
    if (!live && is_gone(live.error())) return done();
    if (live && !is_folder_to_remove(*live)) return done();
    auto made = api_.create(kPods, kFolderNamespace, removal_pod(volume, node), volume_writing());
    if (!made && made.error().code() != Code::already_exists) {
      DIBS_CHECK(fail(
          volume, cat("cannot make the pod that removes the folder: ", made.error().message())));
      return std::move(made).error();
    }
    return WorkOutcome::again_after(kPatience);
  }

  std::string node_of(const std::string& host) const {
    for (const Value& node : nodes_.list()) {
      if (node["metadata"]["labels"]["kubernetes.io/hostname"].as_string() == host)
        return std::string(name_of(node));
    }
    return {};
  }

  Result<> let_go(const Value& volume) {
    if (!is_deleting(volume)) {
      client::DeleteOptions options;
      options.uid = uid_of(volume);
      auto removed = api_.remove(kVolumes, "", name_of(volume), options);
      if (!removed && !is_gone(removed.error())) return std::move(removed).error();
      tell(volume, false, "VolumeDeleted", "the folder of the volume is removed");
    }
    auto live = api_.get(kVolumes, "", name_of(volume));
    if (!live && is_gone(live.error())) return success();
    DIBS_TRY(const Value now, std::move(live));
    if (!has_finalizer(now, kFolderFinalizer)) return success();
    auto written =
        api_.update(kVolumes, "", without_finalizer(now, kFolderFinalizer), volume_writing());
    if (!written && !is_gone(written.error())) return std::move(written).error();
    return success();
  }

  Result<> remove_pod(const Value& pod) {
    client::DeleteOptions options;
    options.uid = uid_of(pod);
    auto removed = api_.remove(kPods, kFolderNamespace, name_of(pod), options);
    if (!removed && !is_gone(removed.error())) return std::move(removed).error();
    return success();
  }

  Result<WorkOutcome> try_again(const Value& volume, const Value& pod) {
    const Value& ended = pod["status"]["containerStatuses"][0]["state"]["terminated"];
    const Value& text = ended["message"].is_string() ? ended["message"] : pod["status"]["message"];
    DIBS_CHECK(fail(volume, cat("pod ", client::key_of(pod), " on node ",
                                pod["spec"]["nodeName"].as_string(), " failed to remove the folder",
                                text.as_string().empty() ? "" : ": ", text.as_string())));
    // A node that took it on not at all says no time.
    const Time finished = time_at(ended["finishedAt"]);
    const Time failed = finished == Time() ? created_at(pod) : finished;
    const Duration rest = failed + kAgain - environment_.runtime.clock.now();
    if (rest > Duration::zero()) return WorkOutcome::again_after(rest);
    DIBS_CHECK(remove_pod(pod));
    return done();
  }

  Result<WorkOutcome> wait_for(const Value& volume, const Value& pod) {
    const Time since = created_at(pod);
    const Duration rest = since + kPatience - environment_.runtime.clock.now();
    if (rest > Duration::zero()) return WorkOutcome::again_after(rest);
    tell(volume, true, "VolumeFailedDelete",
         cat("pod ", client::key_of(pod), " on node ", pod["spec"]["nodeName"].as_string(),
             " has not removed the folder yet"));
    return WorkOutcome::again_after(kPatience);
  }

  Result<WorkOutcome> fail(const Value& volume, const std::string& why) {
    if (volume["status"]["message"].as_string() == why) return done();
    Value next = volume;
    next.mut("status").set("phase", "Failed");
    next.mut("status").set("message", why);
    auto written = api_.update(kVolumes, "", next, volume_writing("status"));
    if (!written && !is_gone(written.error())) return std::move(written).error();
    tell(volume, true, "VolumeFailedDelete", why);
    return done();
  }

  Environment& environment_;
  client::Client& api_;
  client::Informer& claims_;
  client::Informer& volumes_;
  client::Informer& classes_;
  client::Informer& nodes_;
  client::Informer& pods_;
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_local_path_provisioner(Environment& environment) {
  return std::make_unique<LocalPath>(environment);
}

}  // namespace dibs::controllers
