// What informers say: the state follows, and pods that it can help are woken.
#include <algorithm>

#include "api/kinds/resource/versions/model.h"
#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "scheduler/core.h"

namespace dibs::scheduler {
namespace {

using json::Value;

constexpr PluginSet kAboutPods = bit(Plugin::topology_spread) | bit(Plugin::inter_pod_affinity);
/// What a pod that goes may have kept from others.
constexpr PluginSet kFreedByPods = bit(Plugin::resources_fit) | bit(Plugin::node_ports) |
                                   bit(Plugin::volume_restrictions) |
                                   bit(Plugin::node_volume_limits) | kAboutPods;

}  // namespace

const Profile* Scheduler::Core::profile_of(const Pod& pod) const {
  for (const Profile& profile : options.configuration.profiles) {
    if (profile.name == pod.shape->scheduler_name) return &profile;
  }
  return nullptr;
}

bool Scheduler::Core::gated(const Pod& pod) const {
  return pod.gated && profile_of(pod)->has(Point::pre_enqueue, Plugin::scheduling_gates);
}

bool Scheduler::Core::is_binding(const Pod& pod) const {
  const auto found = binding.find(pod.key);
  return found != binding.end() && found->second == pod.uid;
}

void Scheduler::Core::wake_for_node(PluginSet plugins, const NodeInfo& node, const char* why) {
  queue.wake(
      plugins,
      [&](const Pod& pod) {
        if (pod.is_group) return true;  // one of its pods may be
        const Profile* profile = profile_of(pod);
        if (profile == nullptr) return false;
        // Where the whole cluster counts, the node alone does not tell.
        const bool spread = !pod.shape->spread.empty() || profile->spread_refuses();
        if (spread && (plugins & bit(Plugin::topology_spread)) != 0) return true;
        if (pod.claims_volumes && (plugins & bit(Plugin::volume_restrictions)) != 0) return true;
        if (!pod.shape->anti_affinity.empty() || !pod.shape->affinity.empty()) return true;
        FilterRun run(state, pod, *profile,
                      [this](std::string_view name) { return devices.serves(name); });
        const Refused* refused = run.check(node);
        return refused == nullptr || (plugins & bit(refused->plugin)) == 0;
      },
      now(), why);
  kick();
}

void Scheduler::Core::wake_for_pod(const Pod& pod) {
  queue.wake(
      kAboutPods,
      [&](const Pod& other) {
        const Profile* profile = profile_of(other);
        return other.is_group || !other.shape->spread.empty() ||
               (profile != nullptr && profile->spread_refuses()) ||
               std::any_of(other.shape->affinity.begin(), other.shape->affinity.end(),
                           [&](const PodTerm& term) { return state.selects(term, pod); });
      },
      now(), "AssignedPodAdd");
}

void Scheduler::Core::wake_devices(const char* why) {
  queue.wake(bit(Plugin::dynamic_resources) | bit(Plugin::resources_fit), nullptr, now(), why);
  kick();
}

void Scheduler::Core::on_node(const Value& object) {
  const NodeChange change = state.put_node(object);
  if (!change.any()) return;
  devices.node_changed(object["metadata"]["name"].as_string());
  PluginSet plugins = 0;
  if (change.added) plugins = ~PluginSet{0};
  if (change.labels) {
    plugins |= bit(Plugin::node_affinity) | bit(Plugin::dynamic_resources) | kAboutPods |
               bit(Plugin::volume_binding) | bit(Plugin::volume_zone);
  }
  if (change.taints) {
    plugins |= bit(Plugin::taint_toleration) | bit(Plugin::node_unschedulable) |
               bit(Plugin::topology_spread);
  }
  if (change.features) {
    plugins |= bit(Plugin::node_declared_features) | bit(Plugin::dynamic_resources);
  }
  if (change.allocatable) plugins |= bit(Plugin::resources_fit) | bit(Plugin::dynamic_resources);
  if (NodeInfo* node = state.find(object["metadata"]["name"].as_string())) {
    wake_for_node(plugins, *node, change.added ? "NodeAdd" : "NodeUpdate");
    wake_selecting(node->name, "NodeUpdate");
  }
}

void Scheduler::Core::on_node_removed(const Value& object) {
  const std::string_view name = object["metadata"]["name"].as_string();
  state.remove_node(name);
  devices.forget_node(name);
  queue.wake(bit(Plugin::topology_spread), nullptr, now(), "NodeDelete");
  wake_selecting(name, "NodeDelete");
  kick();
}

void Scheduler::Core::forget_users(const std::string& pod_key) {
  const auto found = used.find(pod_key);
  if (found == used.end()) return;
  for (const std::string& claim : found->second) {
    const auto pods = users.find(claim);
    if (pods == users.end()) continue;
    pods->second.erase(pod_key);
    if (pods->second.empty()) users.erase(pods);
  }
  used.erase(found);
}

/// The pod does not wait for a node any more.
void Scheduler::Core::leave(const PodPtr& pod) {
  waiting.erase(pod->key);
  queue.remove(pod->key);
  if (in_group(*pod)) leave_group(*pod);
  state.drop_nomination(pod->key);
  forget_users(pod->key);
  if (!pod->claims_volumes) return;
  for (const api::PodVolume& volume : api::pod_volumes(pod->object)) {
    const auto found = volume_users.find(client::key_of(pod->name_space, volume.claim));
    if (found == volume_users.end()) continue;
    found->second.erase(pod->key);
    if (found->second.empty()) volume_users.erase(found);
  }
}

void Scheduler::Core::on_pod(const PodPtr& pod) {
  if (!pod->node_name.empty()) {
    const bool had = state.node_of(pod->key) != nullptr;
    if (waiting.contains(pod->key)) leave(pod);
    if (pod->finished) {
      NodeInfo* node = state.node_of(pod->key);
      const std::string name = node != nullptr ? node->name : "";
      count_in_group(*pod, false);
      if (!state.remove_pod(pod->key)) return;
      if (NodeInfo* freed = state.find(name)) {
        wake_for_node(kFreedByPods, *freed, "AssignedPodDelete");
      }
      return;
    }
    const PodPtr before = state.counted(pod->key);
    state.add_pod(pod, pod->node_name);
    count_in_group(*pod, true);
    end_talk(*pod);
    if (had) {
      // One that is going does not count where pods are spread.
      if (pod->terminating && !before->terminating) {
        if (NodeInfo* node = state.find(pod->node_name)) {
          wake_for_node(bit(Plugin::topology_spread), *node, "AssignedPodUpdate");
        }
      }
      // A resize may leave room for others.
      const Resources& now_taken = pod->shape->requests;
      if (before->shape != pod->shape && (now_taken.cpu < before->shape->requests.cpu ||
                                          now_taken.memory < before->shape->requests.memory)) {
        if (NodeInfo* node = state.find(pod->node_name)) {
          wake_for_node(bit(Plugin::resources_fit), *node, "AssignedPodUpdate");
          kick();
        }
      }
      return;
    }
    wake_for_pod(*pod);
    // Its group may be complete now.
    if (in_group(*pod)) consider(pod->group, true);
    kick();
    return;
  }
  if (!is_ours(*pod)) return;
  if (pod->finished || pod->terminating) {
    if (waiting.contains(pod->key)) leave(pod);
    return;
  }
  enqueue(pod);
}

void Scheduler::Core::enqueue(const PodPtr& pod) {
  // A pod of this name that was on a node is gone, also where nobody said so.
  if (const PodPtr old = state.counted(pod->key); old != nullptr && old->uid != pod->uid) {
    on_pod_removed(old);
  }
  const auto before = waiting.find(pod->key);
  const bool changed = before == waiting.end() || before->second->uid != pod->uid ||
                       !before->second->same_signature(*pod) ||
                       !(before->second->object["status"]["resourceClaimStatuses"] ==
                         pod->object["status"]["resourceClaimStatuses"]);
  waiting[pod->key] = pod;
  if (!pod->nominated_node().empty() && state.nominated_node(pod->key).empty()) {
    state.nominate(pod, pod->nominated_node());
  }
  forget_users(pod->key);
  for (const PodClaimRef& ref : pod->shape->claims) {
    const std::string name = devices.claim_name(*pod, ref);
    if (name.empty()) continue;
    const std::string key = client::key_of(pod->name_space, name);
    users[key].insert(pod->key);
    used[pod->key].insert(key);
  }
  if (pod->claims_volumes) {
    for (const api::PodVolume& volume : api::pod_volumes(pod->object))
      volume_users[client::key_of(pod->name_space, volume.claim)].insert(pod->key);
  }
  // Decided about; what says so may come later than what was before it.
  if (is_binding(*pod) || state.counted(pod->key) != nullptr) return;
  if (queue.is_out(*pod)) {
    // An extender is being asked about it, and what it says is put to the pod as it is then.
    if (changed) queue.wake_pod(pod->key, now(), "PodUpdate");
    return;
  }
  if (in_group(*pod)) return join_group(pod, changed);
  std::string problem;
  const bool held_back = gated(*pod);
  if (!held_back && profile_of(*pod)->devices() && !is_early(options.release)) {
    devices.resolve(*pod, problem);
  }
  if (held_back || !problem.empty()) {
    queue.hold(pod, now());
    return;
  }
  if (queue.held(pod->key)) {
    queue.add(pod, now());
    queue.release(pod->key, now());
  } else {
    queue.add(pod, now());
    if (changed) queue.wake_pod(pod->key, now(), "PodUpdate");
  }
  kick();
}

void Scheduler::Core::on_pod_removed(const PodPtr& pod) {
  const auto known = waiting.find(pod->key);
  if (known != waiting.end() && known->second->uid == pod->uid) leave(pod);
  binder->pod_gone(pod->key);
  volume_binder->pod_gone(pod->key);
  NodeInfo* node = state.node_of(pod->key);
  if (node == nullptr || state.counted(pod->key)->uid != pod->uid) return;
  count_in_group(*pod, false);
  const std::string name = node->name;
  state.remove_pod(pod->key);
  if (NodeInfo* freed = state.find(name)) {
    wake_for_node(kFreedByPods, *freed, "AssignedPodDelete");
  }
}

void Scheduler::Core::on_claim(const Value& object) {
  after_claim(client::key_of(object), devices.put_claim(object));
}

void Scheduler::Core::on_claim_removed(const Value& object) {
  const ClaimChange change = devices.remove_claim(object);
  after_claim(client::key_of(object), change);
  if (change.known && object["metadata"]["annotations"].contains(kExtendedClaimAnnotation)) {
    wake_devices("ResourceClaimDelete");
  }
}

void Scheduler::Core::after_claim(const std::string& key, const ClaimChange& change) {
  if (!change.known) return;
  if (change.changed) binder->claim_changed(key);
  if (change.freed) wake_devices("ResourceClaimUpdate");
  if (!change.changed) return;
  const auto found = users.find(key);
  if (found == users.end()) return;
  const std::set<std::string> pods = found->second;
  std::set<std::string> of_groups;
  for (const std::string& pod_key : pods) {
    const auto pod = waiting.find(pod_key);
    if (pod == waiting.end() || is_binding(*pod->second)) continue;
    if (in_group(*pod->second)) {
      of_groups.insert(pod->second->group);
      note_able(*pod->second);
      continue;
    }
    if (queue.held(pod_key)) {
      std::string problem;
      devices.resolve(*pod->second, problem);
      if (problem.empty() && !gated(*pod->second) && !devices.in_flight(key)) {
        queue.release(pod_key, now());
      }
    } else {
      queue.wake_pod(pod_key, now(), "ResourceClaimUpdate");
    }
  }
  for (const std::string& group : of_groups) consider(group, true);
  kick();
}

void Scheduler::Core::on_slice(const Value& object) {
  const bool classic = api::is_classic(object);
  const std::string_view node_name = (classic ? object : object["spec"])["nodeName"].as_string();
  if (node_name.empty()) return wake_devices("ResourceSliceUpdate");
  if (NodeInfo* node = state.find(node_name)) {
    wake_for_node(bit(Plugin::dynamic_resources), *node, "ResourceSliceUpdate");
  }
}

void Scheduler::Core::wake_users(const std::string& claim_key, const char* why) {
  const auto found = volume_users.find(claim_key);
  if (found == volume_users.end()) return;
  const std::set<std::string> pods = found->second;
  for (const std::string& pod : pods) {
    const auto found_pod = waiting.find(pod);
    if (found_pod != waiting.end() && in_group(*found_pod->second)) {
      consider(found_pod->second->group, true);
    } else {
      queue.wake_pod(pod, now(), why);
    }
  }
  kick();
}

void Scheduler::Core::on_volume_claim(const Value& object) {
  state.volumes().put_claim(object);
  volume_binder->changed();
  wake_users(client::key_of(object), "PersistentVolumeClaimUpdate");
}

void Scheduler::Core::on_volume(const Value& object) {
  state.volumes().put_volume(object);
  volume_binder->changed();
  const std::string claim = api::claim_key_of(object);
  if (!claim.empty()) return wake_users(claim, "PersistentVolumeUpdate");
  queue.wake(
      kVolumePlugins,
      [&](const Pod& pod) { return pod.is_group || state.volumes().may_help(object, pod); }, now(),
      "PersistentVolumeUpdate");
  kick();
}

void Scheduler::Core::on_volume_fact(const Value& object) {
  const std::string why = cat(object["kind"].as_string(), "Update");
  queue.wake(kVolumePlugins, nullptr, now(), why.c_str());
  kick();
}

void Scheduler::Core::on_budget(const Value& object) {
  DisruptionBudget made;
  made.name_space = object["metadata"]["namespace"].str();
  auto selector = api::to_label_selector(object["spec"]["selector"]);
  made.selector = selector.ok() ? *selector : api::LabelSelector::nothing();
  made.allowed = object["status"]["disruptionsAllowed"].as_int();
  budgets[client::key_of(object)] = std::move(made);
}

}  // namespace dibs::scheduler
