#include "cli/why_objects.h"

#include <algorithm>

#include "base/strings.h"
#include "scheduler/extended.h"
#include "scheduler/pod_shapes.h"

namespace dibs::cli {
namespace {

using json::Value;

/// The scheduler has chosen what the claim has.
bool has_named_resources(const Value& claim) {
  const Value& handles = claim["status"]["allocation"]["resourceHandles"];
  return std::any_of(handles.items().begin(), handles.items().end(),
                     [](const Value& handle) { return handle["structuredData"].is_object(); });
}

constexpr std::string_view kVolumeKinds[] = {
    "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver",
    "CSIStorageCapacity",    "VolumeAttachment"};

constexpr std::string_view kWorkloadKinds[] = {
    "Deployment", "ReplicaSet", "StatefulSet",          "DaemonSet",
    "Job",        "CronJob",    "ReplicationController"};

template <std::size_t N>
bool is_one_of(std::string_view kind, const std::string_view (&kinds)[N]) {
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

void put_volume_object(scheduler::Volumes& volumes, const Value& object) {
  const std::string_view kind = object["kind"].as_string();
  if (kind == "PersistentVolumeClaim")
    volumes.put_claim(object);
  else if (kind == "PersistentVolume")
    volumes.put_volume(object);
  else if (kind == "StorageClass")
    volumes.put_class(object);
  else
    volumes.put_other(object);
}

/// The scheduler made it of the pod's extended resources, and would make another.
bool made_of_resources(const Value& claim, const Value& pod) {
  if (claim["metadata"]["annotations"][scheduler::kExtendedClaimAnnotation].as_string() != "true") {
    return false;
  }
  const auto owners = claim["metadata"]["ownerReferences"].items();
  return std::any_of(owners.begin(), owners.end(),
                     [&](const Value& owner) { return owner["uid"] == pod["metadata"]["uid"]; });
}

bool used_by_it_alone(const Value& claim, const Value& pod) {
  const Value& users = claim["status"]["reservedFor"];
  return users.size() == 1 && users[0]["uid"] == pod["metadata"]["uid"];
}

}  // namespace

void WhyObjects::add(const Value& object) {
  const std::string_view kind = object["kind"].as_string();
  std::vector<Value>* to = kind == "Node"                      ? &nodes
                           : kind == "Namespace"               ? &namespaces
                           : kind == "Pod"                     ? &pods
                           : kind == "ResourceClaim"           ? &claims
                           : kind == "ResourceClaimTemplate"   ? &templates
                           : kind == "DeviceClass"             ? &classes
                           : kind == "ResourceSlice"           ? &slices
                           : kind == "DeviceTaintRule"         ? &rules
                           : kind == "PodGroup"                ? &groups
                           : kind == "CompositePodGroup"       ? &composites
                           : kind == "ResourceClass"           ? &resource_classes
                           : kind == "PodSchedulingContext"    ? &contexts
                           : kind == "ResourceClaimParameters" ? &claim_parameters
                           : kind == "ResourceClassParameters" ? &class_parameters
                           : is_one_of(kind, kVolumeKinds)     ? &volumes
                           : is_one_of(kind, kWorkloadKinds)   ? &workloads
                           : kind == "Event"                   ? &events
                                                               : nullptr;
  if (to != nullptr) to->push_back(object);
  has_groups = has_groups || to == &groups;
  has_composites = has_composites || to == &composites;
}

bool is_classic(const Value& claim) { return claim["spec"]["resourceClassName"].is_string(); }

const Value* find_object(const std::vector<Value>& objects, std::string_view name_space,
                         std::string_view name) {
  for (const Value& object : objects) {
    const Value& metadata = object["metadata"];
    if (metadata["name"].as_string() == name && metadata["namespace"].as_string() == name_space) {
      return &object;
    }
  }
  return nullptr;
}

const scheduler::Profile* WhyWorld::profile(std::string_view name) const {
  for (const scheduler::Profile& profile : configuration.profiles) {
    if (profile.name == name) return &profile;
  }
  return nullptr;
}

WhyState::WhyState(const alloc::Features& features, int release)
    : devices(
          features, [] { return std::string("share"); }, release) {
  devices.follow(groups);
}

namespace {

std::unique_ptr<WhyState> make(const WhyWorld& world, const Value* without, const Value* tried) {
  auto made = std::make_unique<WhyState>(world.features, world.release);
  for (const Value& object : world.objects.namespaces) made->cluster.put_namespace(object);
  for (const Value& object : world.objects.nodes) made->cluster.put_node(object);
  for (const Value& object : world.objects.groups) made->groups.put(object);
  for (const Value& object : world.objects.classes) made->devices.put_class(object);
  for (const Value& object : world.objects.slices) made->devices.put_slice(object);
  for (const Value& object : world.objects.rules) made->devices.put_rule(object);
  for (const Value& object : world.objects.resource_classes) {
    made->devices.put_resource_class(object);
  }
  for (const Value& object : world.objects.contexts) made->devices.put_context(object);
  for (const Value& object : world.objects.volumes)
    put_volume_object(made->cluster.volumes(), object);
  scheduler::Parameters& parameters = made->devices.parameters();
  for (const Value& object : world.objects.claim_parameters) {
    parameters.put_claim_parameters(object);
  }
  for (const Value& object : world.objects.class_parameters) {
    parameters.put_class_parameters(object);
  }
  for (const Value& object : world.objects.claims) {
    if (tried != nullptr && made_of_resources(object, *tried)) continue;
    // Where a driver would allocate it anew it does not say.
    const bool by_driver = is_classic(object) && !has_named_resources(object);
    if (without == nullptr || by_driver || !used_by_it_alone(object, *without)) {
      made->devices.put_claim(object);
      continue;
    }
    Value open = object;
    open.set("status", Value::object({}));
    made->devices.put_claim(open);
  }
  scheduler::PodShapes shapes;
  for (const Value& object : world.objects.pods) {
    if (without != nullptr && object["metadata"]["uid"] == (*without)["metadata"]["uid"]) continue;
    const scheduler::PodPtr pod = scheduler::Pod::read(object, shapes);
    if (pod->finished) continue;
    if (!pod->node_name.empty()) {
      made->cluster.add_pod(pod, pod->node_name);
    } else if (!pod->nominated_node().empty()) {
      made->cluster.nominate(pod, pod->nominated_node());
    }
  }
  return made;
}

}  // namespace

std::unique_ptr<WhyState> make_state(const WhyWorld& world, const Value* without) {
  return make(world, without, without);
}

std::unique_ptr<WhyState> make_state_for(const WhyWorld& world, const Value& pod) {
  return make(world, nullptr, &pod);
}

}  // namespace dibs::cli
