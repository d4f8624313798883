// Attaches volumes to the nodes whose pods use them, and detaches them again: a VolumeAttachment
// each, that the driver's own controller acts on.
//
// For every node status.volumesAttached says which volumes are attached and stay so; a volume is
// taken out of it before its attachment is deleted, and that only when the node no longer has it
// among status.volumesInUse. A node that is not ready is given six minutes to let go; one with the
// taint out-of-service none.
//
// Works on one volume at a time, by its name, from what the informers have; the node is read anew
// before a volume is detached from it.
#include "controllers/volumes/attach_detach.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "controllers/controllers.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

const Gvr kAttachments{"storage.k8s.io", "v1", "volumeattachments"};
const Gvr kDrivers{"storage.k8s.io", "v1", "csidrivers"};
constexpr const char* kByVolume = "persistent-volume";
constexpr const char* kComponent = "attachdetach-controller";
constexpr const char* kManaged = "volumes.kubernetes.io/controller-managed-attach-detach";
constexpr Duration kUnmountPatience = std::chrono::minutes(6);
constexpr Duration kLookAgain = std::chrono::seconds(10);

std::vector<std::string> index_by_attached_volume(const Value& attachment) {
  const auto name = attachment["spec"]["source"]["persistentVolumeName"].as_string();
  return name.empty() ? std::vector<std::string>() : std::vector{std::string(name)};
}

std::vector<std::string> index_by_attached_node(const Value& attachment) {
  return {attachment["spec"]["nodeName"].str()};
}

bool contains(const Value& list, std::string_view text) {
  const auto items = list.items();
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return item.as_string() == text; });
}

bool is_out_of_service(const Value& node) {
  const auto taints = node["spec"]["taints"].items();
  return std::any_of(taints.begin(), taints.end(), [](const Value& taint) {
    return taint["key"].as_string() == "node.kubernetes.io/out-of-service";
  });
}

bool is_managed(const Value& node) {
  return node["metadata"]["annotations"][kManaged].as_string() == "true";
}

bool is_ready(const Value& node) {
  return find_condition(node, "Ready")["status"].as_string() == "True";
}

/// What of a node decides about its volumes.
bool same_for_volumes(const Value& before, const Value& after) {
  return before["status"]["volumesInUse"] == after["status"]["volumesInUse"] &&
         before["status"]["volumesAttached"] == after["status"]["volumesAttached"] &&
         before["spec"]["taints"] == after["spec"]["taints"] && is_ready(before) == is_ready(after);
}

class AttachDetach : public Controller {
 public:
  explicit AttachDetach(Environment& environment)
      : environment_(environment),
        pods_(environment.informers.of(kPods, kByVolumeClaim, index_by_volume_claim)),
        claims_(environment.informers.of(kVolumeClaims)),
        volumes_(environment.informers.of(kVolumes)),
        nodes_(environment.informers.of(kNodes)),
        drivers_(environment.informers.of(kDrivers)),
        attachments_(environment.informers.of(kAttachments, kByVolume, index_by_attached_volume)),
        on_node_(environment.informers.of(kAttachments, kByNode, index_by_attached_node)),
        loop_(
            environment, kComponent, [this](const std::string& volume) { return sync(volume); },
            // Several at once would write a node's status over each other.
            1) {
    loop_.follow(pods_, [this](const Value& pod) {
      for (const auto& key : index_by_volume_claim(pod)) {
        if (const auto claim = claims_.get(key)) wake((*claim)["spec"]["volumeName"]);
      }
    });
    loop_.follow(claims_, [this](const Value& claim) { wake(claim["spec"]["volumeName"]); });
    loop_.follow(volumes_);
    loop_.follow(attachments_, [this](const Value& attachment) { wake_volume_of(attachment); });
    nodes_.add_handler({.added = [this](const Value& node, bool) { wake_volumes_on(node); },
                        .updated =
                            [this](const Value& before, const Value& after) {
                              if (!same_for_volumes(before, after)) wake_volumes_on(after);
                            },
                        .removed = [this](const Value& node) { wake_volumes_on(node); }});
    loop_.follow(drivers_, [this](const Value& driver) {
      for (const Value& volume : volumes_.list()) {
        if (volume["spec"]["csi"]["driver"].as_string() == name_of(driver)) {
          loop_.add(std::string(name_of(volume)));
        }
      }
    });
  }

  void stop() override { loop_.stop(); }

 private:
  /// What is remembered of a volume while it is attached or wanted, by attachment.
  struct Notes {
    std::map<std::string, std::string> attaching;  // the last error that was told
    std::map<std::string, Duration> unwanted_since;
    std::set<std::string> detaching;
    std::set<std::string> exclusive;  // told that another node has it
  };
  /// The pods that want the volume, by node.
  using Wanted = std::map<std::string, std::vector<Value>>;

  void wake(const Value& volume) {
    if (!volume.as_string().empty()) loop_.add(volume.str());
  }
  void wake_volume_of(const Value& attachment) {
    wake(attachment["spec"]["source"]["persistentVolumeName"]);
  }
  void wake_volumes_on(const Value& node) {
    for (const Value& attachment : on_node_.by_index(kByNode, std::string(name_of(node)))) {
      wake_volume_of(attachment);
    }
  }

  Result<WorkOutcome> sync(const std::string& name) {
    const auto volume = volumes_.get(name);
    const auto attachments = attachments_.by_index(kByVolume, name);
    // Attachments of a volume that is gone are for whoever removed it from under them.
    const bool known = volume && !attached_volume_name(*volume).empty();
    const Wanted wanted = known ? wanted_by(*volume) : Wanted();
    if (!known || (wanted.empty() && attachments.empty())) {
      notes_.erase(name);
      return done();
    }
    Notes& notes = notes_[name];
    bool again = false;
    std::set<std::string> nodes;
    for (const Value& attachment : attachments) {
      const std::string node = attachment["spec"]["nodeName"].str();
      nodes.insert(node);
      if (wanted.contains(node)) {
        notes.unwanted_since.erase(std::string(name_of(attachment)));
        if (!is_deleting(attachment)) notes.detaching.erase(std::string(name_of(attachment)));
        continue;
      }
      if (is_deleting(attachment)) continue;
      DIBS_TRY(const bool gone, detach(attachment, *volume, notes));
      again = again || !gone;
    }
    for (const auto& [node, pods] : wanted) DIBS_CHECK(attach(*volume, node, pods, notes));
    for (const auto& node : nodes) DIBS_CHECK(report(node));
    return again ? WorkOutcome::again_after(kLookAgain) : WorkOutcome::done();
  }

  Wanted wanted_by(const Value& volume) {
    Wanted out;
    const Value& source = volume["spec"]["csi"];
    const auto driver = drivers_.get(source["driver"].str());
    if (driver && !(*driver)["spec"]["attachRequired"].as_bool(true)) return out;
    const Value& reference = volume["spec"]["claimRef"];
    const std::string key =
        client::key_of(reference["namespace"].as_string(), reference["name"].as_string());
    const auto claim = claims_.get(key);
    if (!claim || uid_of(*claim) != reference["uid"].as_string() ||
        (*claim)["spec"]["volumeName"].as_string() != name_of(volume)) {
      return out;
    }
    for (const Value& pod : pods_.by_index(kByVolumeClaim, key)) {
      if (!holds_volumes(pod)) continue;
      const std::string node = pod["spec"]["nodeName"].str();
      const auto known = nodes_.get(node);
      if (known && is_managed(*known)) out[node].push_back(pod);
    }
    return out;
  }

  Result<> attach(const Value& volume, const std::string& node, const std::vector<Value>& pods,
                  Notes& notes) {
    const std::string name = attachment_name(volume, node);
    if (const auto there = attachments_.get(name)) {
      if (!is_deleting(*there)) tell(*there, volume, pods, notes);
      return success();
    }
    if (!is_for_several_nodes(volume)) {
      for (const Value& other : attachments_.by_index(kByVolume, std::string(name_of(volume)))) {
        const std::string holder = other["spec"]["nodeName"].str();
        if (holder == node) continue;
        if (notes.exclusive.insert(name).second) tell_exclusive(volume, holder, pods);
        return success();
      }
    }
    notes.exclusive.erase(name);
    notes.detaching.erase(name);
    notes.attaching[name] = "";
    const auto made = environment_.client.create(kAttachments, "", attachment_of(volume, node));
    if (made || made.error().code() == Code::already_exists) return success();
    event(pods, true, "FailedAttachVolume",
          cat("AttachVolume.Attach failed for volume ", quoted(name_of(volume)), " : ",
              made.error().message()));
    return made.error();
  }

  /// How far the driver is with it.
  void tell(const Value& attachment, const Value& volume, const std::vector<Value>& pods,
            Notes& notes) {
    const std::string name(name_of(attachment));
    const Value& status = attachment["status"];
    if (status["attached"].as_bool()) {
      if (notes.attaching.erase(name) == 0) return;
      event(pods, false, "SuccessfulAttachVolume",
            cat("AttachVolume.Attach succeeded for volume ", quoted(name_of(volume)), " "));
      return;
    }
    std::string& told = notes.attaching[name];
    const auto error = status["attachError"]["message"].as_string();
    if (error.empty() || told == error) return;
    told = error;
    event(pods, true, "FailedAttachVolume",
          cat("AttachVolume.Attach failed for volume ", quoted(name_of(volume)), " : ", error));
  }

  void tell_exclusive(const Value& volume, const std::string& holder,
                      const std::vector<Value>& pods) {
    std::string users;
    const Value& claim = volume["spec"]["claimRef"];
    for (const Value& pod : pods_.by_index(
             kByVolumeClaim,
             client::key_of(claim["namespace"].as_string(), claim["name"].as_string()))) {
      if (pod["spec"]["nodeName"].as_string() != holder || !holds_volumes(pod)) continue;
      append(users, users.empty() ? "" : ", ", name_of(pod));
    }
    event(pods, true, "FailedAttachVolume",
          cat("Multi-Attach error for volume ", quoted(name_of(volume)), " ",
              users.empty() ? std::string("Volume is already exclusively attached to one node and "
                                          "can't be attached to another")
                            : cat("Volume is already used by pod(s) ", users)));
  }

  void event(const std::vector<Value>& pods, bool warning, const char* reason,
             const std::string& note) {
    for (const Value& pod : pods) {
      environment_.events.event(kComponent, pod, warning, reason, note);
    }
  }

  /// False: the node has it still, and is given time.
  Result<bool> detach(const Value& attachment, const Value& volume, Notes& notes) {
    const std::string name(name_of(attachment));
    const std::string node = attachment["spec"]["nodeName"].str();
    const Duration now = environment_.runtime.clock.steady();
    const Duration waited = now - notes.unwanted_since.emplace(name, now).first->second;
    // The informer may be behind what the node has just said.
    auto live = environment_.client.get(kNodes, "", node);
    if (!live && !is_gone(live.error())) return live.error();
    if (live && !is_managed(*live)) return true;  // the node sees to it itself
    const bool in_use =
        !live || contains((*live)["status"]["volumesInUse"], attached_volume_name(volume));
    const bool lost = (!live || !is_ready(*live)) && waited >= kUnmountPatience;
    if (in_use && !lost && !(live && is_out_of_service(*live))) return false;
    notes.detaching.insert(name);
    DIBS_CHECK(report(node));
    client::DeleteOptions options;
    options.uid = uid_of(attachment);
    const auto removed = environment_.client.remove(kAttachments, "", name, options);
    if (!removed && !is_gone(removed.error()) && removed.error().code() != Code::conflict) {
      return removed.error();
    }
    notes.unwanted_since.erase(name);
    notes.attaching.erase(name);
    return true;
  }

  /// Writes status.volumesAttached where it is another.
  Result<> report(const std::string& node) {
    const auto known = nodes_.get(node);
    if (!known) return success();
    std::set<std::string> names;
    for (const Value& attachment : on_node_.by_index(kByNode, node)) {
      if (!attachment["status"]["attached"].as_bool() || is_deleting(attachment)) continue;
      const std::string of = attachment["spec"]["source"]["persistentVolumeName"].str();
      const auto notes = notes_.find(of);
      if (notes != notes_.end() &&
          notes->second.detaching.contains(std::string(name_of(attachment)))) {
        continue;
      }
      const auto volume = volumes_.get(of);
      if (volume) names.insert(attached_volume_name(*volume));
    }
    std::set<std::string> told;
    for (const Value& one : (*known)["status"]["volumesAttached"].items()) {
      told.insert(one["name"].str());
    }
    if (told == names) return success();
    Value list = Value::array();
    for (const auto& name : names) {
      list.push(Value::object({{"name", name}, {"devicePath", ""}}));
    }
    client::WriteOptions options;
    options.subresource = "status";
    const Value patch =
        Value::object({{"status", Value::object({{"volumesAttached", std::move(list)}})}});
    const auto written =
        environment_.client.patch(kNodes, "", node, client::PatchType::merge, patch, options);
    if (written || is_gone(written.error())) return success();
    return written.error();
  }

  Environment& environment_;
  client::Informer& pods_;
  client::Informer& claims_;
  client::Informer& volumes_;
  client::Informer& nodes_;
  client::Informer& drivers_;
  client::Informer& attachments_;
  client::Informer& on_node_;           // the same, by node
  std::map<std::string, Notes> notes_;  // of the loop alone, by volume
  Reconciler loop_;
};

}  // namespace

ControllerPtr make_attach_detach_controller(Environment& environment) {
  return std::make_unique<AttachDetach>(environment);
}

}  // namespace dibs::controllers
