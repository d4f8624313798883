#include "scheduler/cluster_state.h"

#include <algorithm>

#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "client/client.h"

namespace dibs::scheduler {
namespace {

/// Distinct selectors whose counts are kept; beyond that the counts are forgotten and made anew.
constexpr std::size_t kMostTallies = 512;

void tally_up(Tally& tally, const std::string& value, std::int64_t by) {
  auto& slot = tally[value];
  slot += by;
  if (slot == 0) tally.erase(value);
}

bool same_taints(const std::vector<Taint>& a, const std::vector<Taint>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Taint& x, const Taint& y) {
    return x.key == y.key && x.value == y.value && x.effect == y.effect;
  });
}

/// Where the pod of this key is, or belongs.
std::vector<PodPtr>::iterator place_of(NodeInfo& node, std::string_view key) {
  return std::lower_bound(node.pods.begin(), node.pods.end(), key,
                          [](const PodPtr& pod, std::string_view k) { return pod->key < k; });
}

}  // namespace

ClusterState::ClusterState() = default;

NodeInfo& ClusterState::node(std::string_view name) {
  auto& slot = by_name_[std::string(name)];
  if (slot == nullptr) {
    slot = std::make_unique<NodeInfo>();
    slot->name = name;
  }
  return *slot;
}

void ClusterState::forget_if_empty(NodeInfo& node) {
  if (node.exists || !node.pods.empty()) return;
  for (auto& [key, selected] : selected_by_node_) selected.counts.erase(&node);
  const std::string name = node.name;
  by_name_.erase(name);
}

void ClusterState::refresh_row(const NodeInfo& node) {
  if (node.exists) rows_[node.index] = NodeRow::of(node, !nominated(node.name).empty());
}

void ClusterState::replace_images(const NodeInfo& node, const json::Value& before,
                                  const json::Value& after) {
  if (before == after) return;
  for (const json::Value& image : before.items()) {
    for (const json::Value& name : image["names"].items()) {
      const auto found = images_.find(name.str());
      if (found == images_.end()) continue;
      found->second.nodes.erase(&node);
      if (found->second.nodes.empty()) images_.erase(found);
    }
  }
  for (const json::Value& image : after.items()) {
    for (const json::Value& name : image["names"].items()) {
      const auto [at, fresh] = images_.try_emplace(name.str());
      // A node may say anything, and sizes are added up.
      constexpr std::int64_t kLargest = std::int64_t{1} << 47;
      if (fresh) {
        at->second.size = std::clamp<std::int64_t>(image["sizeBytes"].as_int(), 0, kLargest);
      }
      at->second.nodes.insert(&node);
    }
  }
}

const NodeImage* ClusterState::image(const std::string& name) const {
  const auto found = images_.find(name);
  return found != images_.end() ? &found->second : nullptr;
}

NodeChange ClusterState::put_node(const json::Value& object) {
  NodeInfo& info = node(object["metadata"]["name"].as_string());
  NodeChange change;
  change.added = !info.exists;
  if (change.added) {
    info.exists = true;
    info.index = nodes_.size();
    nodes_.push_back(&info);
    rows_.emplace_back();
  }
  std::vector<Taint> taints;
  for (const json::Value& t : object["spec"]["taints"].items()) {
    taints.push_back({t["key"].str(), t["value"].str(), t["effect"].str()});
  }
  const bool unschedulable = object["spec"]["unschedulable"].as_bool();
  change.taints = unschedulable != info.unschedulable || !same_taints(taints, info.taints);
  info.taints = std::move(taints);
  info.unschedulable = unschedulable;
  Resources allocatable = Resources::read(object["status"]["allocatable"]);
  change.allocatable = !(allocatable == info.allocatable);
  info.allocatable = std::move(allocatable);
  alloc::Node place = alloc::Node::read(object);
  change.labels = !(place.labels == info.place.labels);
  change.features =
      !(object["status"]["declaredFeatures"] == info.object["status"]["declaredFeatures"]);
  info.place = std::move(place);
  replace_images(info, info.object["status"]["images"], object["status"]["images"]);
  info.object = object;
  if (change.any()) ++info.version;
  refresh_row(info);
  if (change.labels && !info.pods.empty()) rebuild_tallies();
  return change;
}

void ClusterState::remove_node(std::string_view name) {
  NodeInfo* info = find(name);
  if (info == nullptr) return;
  nodes_[info->index] = nodes_.back();
  nodes_[info->index]->index = info->index;
  nodes_.pop_back();
  rows_[info->index] = rows_.back();
  rows_.pop_back();
  replace_images(*info, info->object["status"]["images"], json::null_value());
  info->exists = false;
  info->place = {};
  info->object = {};
  ++info->version;
  rebuild_tallies();
  forget_if_empty(*info);
}

NodeInfo* ClusterState::find(std::string_view name) {
  const auto found = by_name_.find(std::string(name));
  return found != by_name_.end() && found->second->exists ? found->second.get() : nullptr;
}

void ClusterState::put_namespace(const json::Value& object) {
  json::Value& labels = namespaces_[object["metadata"]["name"].str()];
  if (labels == object["metadata"]["labels"]) return;
  labels = object["metadata"]["labels"];
  selected_.clear();
}

void ClusterState::remove_namespace(std::string_view name) { namespaces_.erase(std::string(name)); }

const json::Value& ClusterState::namespace_labels(std::string_view name) const {
  const auto found = namespaces_.find(std::string(name));
  return found != namespaces_.end() ? found->second : json::null_value();
}

void ClusterState::add_pod(const PodPtr& pod, std::string_view node_name) {
  const auto found = where_.find(pod->key);
  if (found != where_.end()) {
    Counted& held = found->second;
    // One that is going is left out of some counts, and must be taken out of them now.
    if (held.node->name == node_name && held.pod->same_signature(*pod) &&
        held.pod->uid == pod->uid && held.pod->terminating == pod->terminating) {
      replace(found, pod);
      return;
    }
    remove_pod(pod->key);
  }
  NodeInfo& info = node(node_name);
  info.pods.insert(place_of(info, pod->key), pod);
  where_.emplace(pod->key, Counted{pod, &info});
  count(*pod, info, 1);
}

void ClusterState::replace(std::unordered_map<std::string_view, Counted>::iterator found,
                           const PodPtr& pod) {
  *place_of(*found->second.node, pod->key) = pod;
  auto moved = where_.extract(found);
  moved.key() = pod->key;
  moved.mapped().pod = pod;
  where_.insert(std::move(moved));
}

bool ClusterState::remove_pod(std::string_view key) {
  const auto found = where_.find(key);
  if (found == where_.end()) return false;
  const PodPtr pod = std::move(found->second.pod);
  NodeInfo& info = *found->second.node;
  where_.erase(found);
  info.pods.erase(place_of(info, pod->key));
  count(*pod, info, -1);
  forget_if_empty(info);
  return true;
}

NodeInfo* ClusterState::node_of(std::string_view key) const {
  const auto found = where_.find(key);
  return found != where_.end() ? found->second.node : nullptr;
}

PodPtr ClusterState::counted(std::string_view key) const {
  const auto found = where_.find(key);
  return found != where_.end() ? found->second.pod : nullptr;
}

std::size_t ClusterState::volume_users(const std::string& claim) const {
  const auto found = volume_users_.find(claim);
  return found != volume_users_.end() ? found->second : 0;
}

void ClusterState::count_volumes(const Pod& pod, int sign) {
  for (const api::PodVolume& volume : api::pod_volumes(pod.object)) {
    const std::string key = client::key_of(pod.name_space, volume.claim);
    if (sign > 0) {
      ++volume_users_[key];
    } else if (--volume_users_[key] == 0) {
      volume_users_.erase(key);
    }
  }
}

void ClusterState::count(const Pod& pod, NodeInfo& info, int sign) {
  ++info.version;
  if (pod.claims_volumes) count_volumes(pod, sign);
  if (sign > 0) {
    info.requested.add(pod.shape->requests);
    info.ports.insert(info.ports.end(), pod.shape->ports.begin(), pod.shape->ports.end());
  } else {
    info.requested.subtract(pod.shape->requests);
    for (const HostPort& port : pod.shape->ports) {
      const auto at = std::find(info.ports.begin(), info.ports.end(), port);
      if (at != info.ports.end()) info.ports.erase(at);
    }
  }
  info.scored.cpu += sign * pod.shape->score.cpu;
  info.scored.memory += sign * pod.shape->score.memory;
  refresh_row(info);
  count_terms(pod, info, sign);
  carry(pod, info, sign);
}

void ClusterState::count_terms(const Pod& pod, const NodeInfo& info, int sign) {
  for (auto& [id, selected] : selected_) {
    const json::Value* value = info.label(selected.term.topology_key);
    if (value == nullptr || !selects(selected.term, pod)) continue;
    tally_up(selected.tally, value->str(), sign);
  }
  for (auto& [id, selected] : selected_by_node_) {
    if (selected.name_space != pod.name_space || !selected.selector.matches(pod.labels)) continue;
    if (pod.terminating) continue;
    auto& slot = selected.counts[&info];
    slot += sign;
    if (slot == 0) selected.counts.erase(&info);
  }
}

void ClusterState::carry(const Pod& pod, const NodeInfo& info, int sign) {
  const auto one = [&](const PodTerm& term, TermKind kind) {
    const json::Value* value = info.label(term.topology_key);
    if (value == nullptr) return;
    const std::string id = cat(static_cast<int>(kind), term.id);
    CarriedTerm& carried = carried_[id];
    if (carried.term.id.empty()) {
      carried.term = term;
      carried.kind = kind;
    }
    tally_up(carried.carriers, value->str(), sign);
    if (carried.carriers.empty()) carried_.erase(id);
  };
  for (const PodTerm& term : pod.shape->affinity) one(term, TermKind::required_affinity);
  for (const PodTerm& term : pod.shape->anti_affinity) one(term, TermKind::required_anti_affinity);
  for (const PodTerm& term : pod.shape->preferred_affinity) one(term, TermKind::preferred);
}

void ClusterState::rebuild_tallies() {
  selected_.clear();
  selected_by_node_.clear();
  carried_.clear();
  for (const auto& [name, info] : by_name_) {
    for (const PodPtr& pod : info->pods) carry(*pod, *info, 1);
  }
}

void ClusterState::nominate(const PodPtr& pod, std::string_view node_name) {
  drop_nomination(pod->key);
  nominated_[std::string(node_name)].push_back(pod);
  nominations_[pod->key] = node_name;
  if (NodeInfo* info = find(node_name)) {
    ++info->version;
    refresh_row(*info);
  }
}

void ClusterState::drop_nomination(std::string_view key) {
  const auto found = nominations_.find(std::string(key));
  if (found == nominations_.end()) return;
  auto& pods = nominated_[found->second];
  std::erase_if(pods, [&](const PodPtr& pod) { return pod->key == key; });
  if (pods.empty()) nominated_.erase(found->second);
  if (NodeInfo* info = find(found->second)) {
    ++info->version;
    refresh_row(*info);
  }
  nominations_.erase(found);
}

const std::vector<PodPtr>& ClusterState::nominated(std::string_view node_name) const {
  static const std::vector<PodPtr> kNone;
  if (nominated_.empty()) return kNone;
  const auto found = nominated_.find(std::string(node_name));
  return found != nominated_.end() ? found->second : kNone;
}

std::string ClusterState::nominated_node(std::string_view key) const {
  const auto found = nominations_.find(std::string(key));
  return found != nominations_.end() ? found->second : std::string();
}

bool ClusterState::selects(const PodTerm& term, const Pod& pod) const {
  const bool named =
      std::binary_search(term.namespaces.begin(), term.namespaces.end(), pod.name_space);
  if (!named && !(term.has_namespace_selector &&
                  term.namespace_selector.matches(namespace_labels(pod.name_space)))) {
    return false;
  }
  return term.selector.matches(pod.labels);
}

const Tally& ClusterState::selected_by(const PodTerm& term) {
  const auto found = selected_.find(term.id);
  if (found != selected_.end()) return found->second.tally;
  if (selected_.size() >= kMostTallies) selected_.clear();
  Selected& made = selected_[term.id];
  made.term = term;
  for (const auto& [name, info] : by_name_) {
    const json::Value* value = info->label(term.topology_key);
    if (value == nullptr) continue;
    for (const PodPtr& pod : info->pods) {
      if (selects(term, *pod)) tally_up(made.tally, value->str(), 1);
    }
  }
  return made.tally;
}

const std::unordered_map<const NodeInfo*, std::int64_t>& ClusterState::selected_by_node(
    std::string_view name_space, const api::LabelSelector& selector) {
  const std::string id = cat(name_space, '\n', selector.matches_nothing() ? "!" : selector.str());
  const auto found = selected_by_node_.find(id);
  if (found != selected_by_node_.end()) return found->second.counts;
  if (selected_by_node_.size() >= kMostTallies) selected_by_node_.clear();
  SelectedByNode& made = selected_by_node_[id];
  made.name_space = name_space;
  made.selector = selector;
  for (const auto& [name, info] : by_name_) {
    for (const PodPtr& pod : info->pods) {
      if (pod->name_space != name_space || pod->terminating) continue;
      if (selector.matches(pod->labels)) ++made.counts[info.get()];
    }
  }
  return made.counts;
}

}  // namespace dibs::scheduler
