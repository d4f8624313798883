#include "scheduler/volumes.h"

#include <algorithm>
#include <charconv>

#include "api/merge/selectors.h"
#include "api/volumes/matching.h"
#include "api/volumes/volumes.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "client/client.h"
#include "scheduler/filters.h"

namespace dibs::scheduler {
namespace {

using client::name_of;
using json::Value;

constexpr const char* kZoneLabels[] = {
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region"};

/// Where nodes have only the newer label.
const char* newer_label(std::string_view label) {
  return label == kZoneLabels[0] ? kZoneLabels[2] : label == kZoneLabels[1] ? kZoneLabels[3] : "";
}

/// Servers count revisions up; one that does not is believed as it comes.
std::uint64_t revision_of(const Value& object) {
  const std::string_view text = object["metadata"]["resourceVersion"].as_string();
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? number : 0;
}

bool is_older(const Value& object, const Value& known) {
  return object["metadata"]["uid"] == known["metadata"]["uid"] && revision_of(object) != 0 &&
         revision_of(object) < revision_of(known);
}

Quantity amount(const Value& text) {
  auto read = Quantity::parse(text.as_string());
  return read.ok() ? std::move(read).value() : Quantity();
}

Quantity size_wanted(const Value& claim) {
  return amount(claim["spec"]["resources"]["requests"]["storage"]);
}

bool has_mode(const Value& claim, std::string_view mode) {
  for (const Value& one : claim["spec"]["accessModes"].items())
    if (one.as_string() == mode) return true;
  return false;
}

std::set<std::string> zones_in(std::string_view text) {
  std::set<std::string> out;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find("__", from), text.size());
    out.emplace(text.substr(from, end - from));
    from = end + 2;
  }
  return out;
}

bool in_zones(const VolumeRun& run, const NodeInfo& node) {
  const bool has_any = std::any_of(std::begin(kZoneLabels), std::end(kZoneLabels),
                                   [&node](const char* key) { return node.label(key) != nullptr; });
  if (!has_any) return true;
  return std::all_of(run.zones.begin(), run.zones.end(), [&node](const auto& zone) {
    const Value* label = node.label(zone.first);
    if (label == nullptr) label = node.label(newer_label(zone.first));
    return label != nullptr && zone.second.contains(label->str());
  });
}

}  // namespace

void Volumes::put(Objects& objects, const Value& object) {
  Value& known = objects[client::key_of(object)];
  if (!is_older(object, known)) known = object;
}

const Value& Volumes::find(const Objects& objects, std::string_view key) {
  const auto found = objects.find(std::string(key));
  return found != objects.end() ? found->second : json::null_value();
}

void Volumes::remove_claim(const Value& object) { claims_.erase(client::key_of(object)); }
void Volumes::remove_class(const Value& object) { classes_.erase(client::key_of(object)); }

void Volumes::put_volume(const Value& object) {
  const std::string name(name_of(object));
  if (const Value& known = volume(name); !known.is_null()) {
    if (is_older(object, known)) return;
    remove_volume(Value(known));
  }
  volumes_[name] = object;
  const std::string claim = api::claim_key_of(object);
  if (claim.empty())
    free_[std::string(api::class_of_volume(object))].insert(name);
  else
    reserved_[claim].insert(name);
}

void Volumes::remove_volume(const Value& object) {
  const std::string name(name_of(object));
  const auto known = volumes_.find(name);
  if (known == volumes_.end()) return;
  const std::string claim = api::claim_key_of(known->second);
  auto& index = claim.empty() ? free_ : reserved_;
  const auto names =
      index.find(claim.empty() ? std::string(api::class_of_volume(known->second)) : claim);
  if (names != index.end()) {
    names->second.erase(name);
    if (names->second.empty()) index.erase(names);
  }
  volumes_.erase(known);
}

Volumes::Objects* Volumes::others_of(const Value& object) {
  const std::string_view kind = object["kind"].as_string();
  return kind == "CSINode"              ? &nodes_
         : kind == "CSIDriver"          ? &drivers_
         : kind == "CSIStorageCapacity" ? &capacities_
         : kind == "VolumeAttachment"   ? &attachments_
                                        : nullptr;
}

void Volumes::put_other(const Value& object) {
  if (Objects* objects = others_of(object)) put(*objects, object);
}

void Volumes::remove_other(const Value& object) {
  if (Objects* objects = others_of(object)) objects->erase(client::key_of(object));
}

const Value& Volumes::claim_soon(const std::string& key) const {
  const Value& soon = find(claims_soon_, key);
  return soon.is_null() ? claim(key) : soon;
}

VolumeRun Volumes::prepare(const Pod& pod, PluginSet enabled) const {
  VolumeRun run;
  run.enabled = enabled & kVolumePlugins;
  const bool binds = (enabled & bit(Plugin::volume_binding)) != 0;
  const std::vector<api::PodVolume> volumes = api::pod_volumes(pod.object);
  const auto refuse = [&run](std::string reason, Plugin plugin = Plugin::volume_binding) {
    run.reason = std::move(reason);
    run.plugin = plugin;
    return run;
  };
  for (const api::PodVolume& volume : volumes) {
    const std::string key = client::key_of(pod.name_space, volume.claim);
    if (volume.ephemeral || !claim(key).is_null() || run.enabled == 0) continue;
    return refuse(cat("persistentvolumeclaim ", quoted(volume.claim), " not found"),
                  Plugin::volume_restrictions);
  }
  bool immediate = false;
  for (const api::PodVolume& volume : volumes) {
    const std::string key = client::key_of(pod.name_space, volume.claim);
    const Value& found = claim_soon(key);
    if (found.is_null()) {
      if (!binds) continue;
      return refuse(
          cat("waiting for ephemeral volume controller to create the "
              "persistentvolumeclaim ",
              quoted(volume.claim)));
    }
    if (binds && found["status"]["phase"].as_string() == "Lost") {
      return refuse(cat("persistentvolumeclaim ", quoted(volume.claim),
                        " bound to non-existent persistentvolume ",
                        quoted(found["spec"]["volumeName"].as_string())));
    }
    if (binds && !found["metadata"]["deletionTimestamp"].is_null())
      return refuse(cat("persistentvolumeclaim ", quoted(volume.claim), " is being deleted"));
    if (binds && volume.ephemeral && !api::is_claim_of_pod(found, pod.object)) {
      return refuse(cat("PVC ", key, " was not created for pod ", pod.key, " (pod is not owner)"));
    }
    if (!volume.ephemeral && has_mode(found, "ReadWriteOncePod")) run.single.push_back(key);
    add_attached(found, run.attached);
    if (api::is_binding_complete(found)) {
      add_bound(found, run);
    } else if (found["spec"]["volumeName"].as_string().empty() &&
               api::waits_for_consumer(find(classes_, api::class_of_claim(found)))) {
      add_open(found, run);
    } else {
      immediate = true;
    }
  }
  if (binds && immediate) return refuse("pod has unbound immediate PersistentVolumeClaims");
  std::stable_sort(run.open.begin(), run.open.end(), [](const OpenClaim& a, const OpenClaim& b) {
    return size_wanted(a.claim) < size_wanted(b.claim);
  });
  return run;
}

void Volumes::add_bound(const Value& claim, VolumeRun& run) const {
  const Value& found = volume(claim["spec"]["volumeName"].as_string());
  if (found.is_null()) {
    run.lost = true;
    return;
  }
  run.bound.push_back(found);
  for (const char* label : kZoneLabels) {
    const Value& value = found["metadata"]["labels"][label];
    if (value.is_string()) run.zones.emplace_back(label, zones_in(value.as_string()));
  }
}

void Volumes::add_open(const Value& claim, VolumeRun& run) const {
  OpenClaim open;
  open.claim = claim;
  open.selected_node = api::annotation_of(claim, api::kSelectedNode).str();
  if (open.selected_node.empty()) {
    std::vector<Value> reserved;
    std::vector<Value> free;
    const std::string key = client::key_of(claim);
    if (const auto names = reserved_.find(key); names != reserved_.end())
      for (const std::string& name : names->second) reserved.push_back(volume(name));
    for (const auto& [name, soon] : volumes_soon_)
      if (api::claim_key_of(soon) == key) reserved.push_back(soon);
    if (const auto names = free_.find(std::string(api::class_of_claim(claim)));
        names != free_.end()) {
      for (const std::string& name : names->second)
        if (!volumes_soon_.contains(name)) free.push_back(volume(name));
    }
    open.volumes = api::serving_volumes(claim, reserved, free);
  }
  run.open.push_back(std::move(open));
}

void Volumes::add_attached(const Value& claim, std::map<std::string, std::string>& to) const {
  const Value& found = volume(claim["spec"]["volumeName"].as_string());
  if (!found.is_null()) {
    const Value& source = found["spec"]["csi"];
    if (source.is_null()) return;
    to[cat(source["driver"].as_string(), '/', source["volumeHandle"].as_string())] =
        source["driver"].str();
    return;
  }
  const Value& storage_class = find(classes_, api::class_of_claim(claim));
  const Value& provisioner = storage_class["provisioner"];
  if (provisioner.is_string())
    to[cat(provisioner.as_string(), "/claim ", client::key_of(claim))] = provisioner.str();
}

bool Volumes::exceeds_limits(const VolumeRun& run, const NodeInfo& node) const {
  if (run.attached.empty()) return false;
  std::map<std::string, std::int64_t> limits;
  for (const Value& driver : find(nodes_, node.name)["spec"]["drivers"].items()) {
    const Value& count = driver["allocatable"]["count"];
    if (count.is_integer()) limits[driver["name"].str()] = count.as_int();
  }
  const bool limited = std::any_of(run.attached.begin(), run.attached.end(),
                                   [&](const auto& one) { return limits.contains(one.second); });
  if (!limited) return false;
  std::map<std::string, std::string> there;
  for (const PodPtr& other : node.pods) {
    if (!other->claims_volumes) continue;
    for (const api::PodVolume& volume : api::pod_volumes(other->object)) {
      const Value& found = claim_soon(client::key_of(other->name_space, volume.claim));
      if (!found.is_null()) add_attached(found, there);
    }
  }
  for (const auto& [name, attachment] : attachments_) {
    const Value& spec = attachment["spec"];
    if (spec["nodeName"].as_string() != node.name) continue;
    const Value& source = volume(spec["source"]["persistentVolumeName"].as_string())["spec"]["csi"];
    if (!source.is_null()) {
      there[cat(spec["attacher"].as_string(), '/', source["volumeHandle"].as_string())] =
          spec["attacher"].str();
    }
  }
  std::map<std::string, std::int64_t> counts;
  for (const auto& [volume, driver] : there) ++counts[driver];
  for (const auto& [volume, driver] : run.attached) {
    if (there.contains(volume)) continue;
    const auto limit = limits.find(driver);
    if (limit != limits.end() && ++counts[driver] > limit->second) return true;
  }
  return false;
}

bool Volumes::tells_capacity(const Value& storage_class) const {
  return find(drivers_, storage_class["provisioner"].as_string())["spec"]["storageCapacity"]
      .as_bool();
}

const Value& Volumes::capacity_for(const Value& claim, const Value& storage_class,
                                   const NodeInfo& node) const {
  const Quantity wanted = size_wanted(claim);
  for (const auto& [key, capacity] : capacities_) {
    if (capacity["storageClassName"].as_string() != name_of(storage_class)) continue;
    const Value& most = capacity["maximumVolumeSize"].is_null() ? capacity["capacity"]
                                                                : capacity["maximumVolumeSize"];
    if (most.is_null() || capacity["nodeTopology"].is_null() || amount(most) < wanted) continue;
    const auto selector = api::to_label_selector(capacity["nodeTopology"]);
    if (selector.ok() && selector->matches(node.place.labels)) return capacity;
  }
  return json::null_value();
}

std::optional<Cause> Volumes::against_provisioning(const Value& claim, const NodeInfo& node) const {
  const Value& storage_class = find(classes_, api::class_of_claim(claim));
  const std::string_view provisioner = storage_class["provisioner"].as_string();
  if (provisioner.empty() || provisioner == api::kNoProvisioner ||
      !api::topology_allows(storage_class, node.object)) {
    return Cause::no_volume;
  }
  if (tells_capacity(storage_class) && capacity_for(claim, storage_class, node).is_null())
    return Cause::no_storage;
  return std::nullopt;
}

std::optional<Cause> Volumes::find_places(const VolumeRun& run, const NodeInfo& node,
                                          VolumePlan* plan) const {
  for (const Value& volume : run.bound)
    if (!api::volume_reaches(volume, node.object)) return Cause::volume_elsewhere;
  if (run.lost) return Cause::volume_lost;
  std::set<std::string_view> chosen;
  for (const OpenClaim& open : run.open) {
    if (!open.selected_node.empty() && open.selected_node != node.name) return Cause::no_volume;
    const auto found =
        std::find_if(open.volumes.begin(), open.volumes.end(), [&](const Value& volume) {
          return !chosen.contains(name_of(volume)) && api::volume_reaches(volume, node.object);
        });
    if (found != open.volumes.end()) {
      chosen.insert(name_of(*found));
      if (plan != nullptr)
        plan->bindings.push_back({open.claim, api::bound_volume(*found, open.claim)});
      continue;
    }
    if (const auto cause = against_provisioning(open.claim, node)) return cause;
    if (plan == nullptr) continue;
    Value wanted = open.claim;
    wanted.mut("metadata").mut("annotations").set(api::kSelectedNode, node.name);
    plan->provisions.push_back(std::move(wanted));
  }
  return std::nullopt;
}

std::optional<Volumes::Against> Volumes::check(const VolumeRun& run, const NodeInfo& node) const {
  const auto on = [&run](Plugin plugin) { return (run.enabled & bit(plugin)) != 0; };
  if (on(Plugin::node_volume_limits) && exceeds_limits(run, node))
    return Against{Plugin::node_volume_limits, Cause::volume_limit, true};
  if (on(Plugin::volume_binding)) {
    if (const auto cause = find_places(run, node, nullptr))
      return Against{Plugin::volume_binding, *cause, false};
  }
  if (on(Plugin::volume_zone) && !run.zones.empty() && !in_zones(run, node))
    return Against{Plugin::volume_zone, Cause::volume_zone, false};
  return std::nullopt;
}

std::optional<Cause> Volumes::plan(const VolumeRun& run, const NodeInfo& node,
                                   VolumePlan& made) const {
  if (!run.reason.empty()) return Cause::volumes;
  if ((run.enabled & bit(Plugin::volume_binding)) == 0) return std::nullopt;
  return find_places(run, node, &made);
}

namespace {

double bytes(const Quantity& size) { return static_cast<double>(size.value()); }

}  // namespace

std::map<std::string, VolumeUse> Volumes::use_on(const VolumeRun& run, const NodeInfo& node) const {
  std::map<std::string, VolumeUse> uses;
  VolumePlan plan;
  if (find_places(run, node, &plan)) return uses;
  for (const auto& [claim, volume] : plan.bindings) {
    VolumeUse& use = uses[std::string(api::class_of_volume(volume))];
    use.wanted += bytes(size_wanted(claim));
    use.there += bytes(amount(volume["spec"]["capacity"]["storage"]));
  }
  if (!uses.empty()) return uses;
  for (const Value& claim : plan.provisions) {
    const Value& storage_class = find(classes_, api::class_of_claim(claim));
    if (!tells_capacity(storage_class)) continue;
    VolumeUse& use = uses[std::string(name_of(storage_class))];
    use.wanted += bytes(size_wanted(claim));
    // Claims of a class share it.
    use.there = bytes(amount(capacity_for(claim, storage_class, node)["capacity"]));
  }
  return uses;
}

void Volumes::reserve(const VolumePlan& plan) {
  // The key of a claim has a slash, the name of a volume has none.
  for (const VolumePlan::Binding& one : plan.bindings) {
    const std::string name(name_of(one.volume));
    volumes_soon_[name] = one.volume;
    ++plans_[name];
  }
  for (const Value& claim : plan.provisions) {
    const std::string key = client::key_of(claim);
    claims_soon_[key] = claim;
    ++plans_[key];
  }
}

void Volumes::release(const VolumePlan& plan) {
  const auto leave = [this](const std::string& name, Objects& soon) {
    if (--plans_[name] > 0) return;
    plans_.erase(name);
    soon.erase(name);
  };
  for (const VolumePlan::Binding& one : plan.bindings)
    leave(std::string(name_of(one.volume)), volumes_soon_);
  for (const Value& claim : plan.provisions) leave(client::key_of(claim), claims_soon_);
}

bool Volumes::may_help(const Value& volume, const Pod& pod) const {
  for (const api::PodVolume& one : api::pod_volumes(pod.object)) {
    const Value& wanted = claim(client::key_of(pod.name_space, one.claim));
    if (api::class_of_claim(wanted) == api::class_of_volume(volume) &&
        wanted["spec"]["volumeName"].as_string().empty())
      return true;
  }
  return false;
}

}  // namespace dibs::scheduler
