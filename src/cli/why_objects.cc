#include "cli/why_objects.h"

#include <algorithm>

#include "api/kinds/resource/versions/conversion.h"
#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "client/resource_versions.h"
#include "scheduler/pod_shapes.h"

namespace dibs::cli {
namespace {

using json::Value;

constexpr const char* kGroup = "resource.k8s.io";

/// DeviceTaintRules, newest first: they came by another way than the rest of the group.
constexpr const char* kRuleVersions[] = {"v1", "v1beta2", "v1alpha3"};

Result<std::vector<Value>> list_all(client::Client& client, const client::Gvr& gvr) {
  auto listed = client.list(gvr, "");
  if (!listed.ok()) return listed.error().within(cat("list ", gvr.resource));
  return std::move(listed->items);
}

/// None: the server does not know the resource.
Result<std::vector<Value>> list_known(client::Client& client, const client::Gvr& gvr) {
  auto listed = client.list(gvr, "");
  if (listed.ok()) return std::move(listed->items);
  if (listed.error().code() == Code::not_found) return std::vector<Value>();
  return listed.error().within(cat("list ", gvr.resource));
}

Result<std::vector<Value>> list_rules(client::Client& client) {
  for (const char* version : kRuleVersions) {
    auto listed = client.list({kGroup, version, "devicetaintrules"}, "");
    if (!listed.ok() && listed.error().code() == Code::not_found) continue;
    if (!listed.ok()) return listed.error().within("list devicetaintrules");
    std::vector<Value> made;
    const api::Conversion conversion("DeviceTaintRule", version);
    for (const Value& object : listed->items) {
      if (std::string_view(version) == "v1") {
        made.push_back(object);
        continue;
      }
      DIBS_TRY(Value stored, conversion.store(object, nullptr));
      made.push_back(std::move(stored));
    }
    return made;
  }
  return std::vector<Value>();
}

/// The scheduler has chosen what the claim has.
bool has_named_resources(const Value& claim) {
  const Value& handles = claim["status"]["allocation"]["resourceHandles"];
  return std::any_of(handles.items().begin(), handles.items().end(),
                     [](const Value& handle) { return handle["structuredData"].is_object(); });
}

struct VolumeKind {
  const char* kind;
  client::Gvr gvr;
};
const VolumeKind kVolumeKinds[] = {
    {"PersistentVolumeClaim", {"", "v1", "persistentvolumeclaims"}},
    {"PersistentVolume", {"", "v1", "persistentvolumes"}},
    {"StorageClass", {"storage.k8s.io", "v1", "storageclasses"}},
    {"CSINode", {"storage.k8s.io", "v1", "csinodes"}},
    {"CSIDriver", {"storage.k8s.io", "v1", "csidrivers"}},
    {"CSIStorageCapacity", {"storage.k8s.io", "v1", "csistoragecapacities"}},
    {"VolumeAttachment", {"storage.k8s.io", "v1", "volumeattachments"}},
};

bool is_about_volumes(std::string_view kind) {
  return std::any_of(std::begin(kVolumeKinds), std::end(kVolumeKinds),
                     [kind](const VolumeKind& one) { return kind == one.kind; });
}

Result<std::vector<Value>> list_volumes(client::Client& client, const std::vector<Value>& pods) {
  std::vector<Value> made;
  const bool wanted = std::any_of(pods.begin(), pods.end(),
                                  [](const Value& pod) { return !api::pod_volumes(pod).empty(); });
  if (!wanted) return made;
  for (const VolumeKind& one : kVolumeKinds) {
    DIBS_TRY(const std::vector<Value> found, list_known(client, one.gvr));
    made.insert(made.end(), found.begin(), found.end());
  }
  return made;
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
                           : kind == "ResourceClass"           ? &resource_classes
                           : kind == "PodSchedulingContext"    ? &contexts
                           : kind == "ResourceClaimParameters" ? &claim_parameters
                           : kind == "ResourceClassParameters" ? &class_parameters
                           : is_about_volumes(kind)            ? &volumes
                           : kind == "Event"                   ? &events
                                                               : nullptr;
  if (to != nullptr) to->push_back(object);
}

Result<WhyObjects> fetch_objects(client::Client& client) {
  WhyObjects made;
  DIBS_TRY(made.nodes, list_all(client, {"", "v1", "nodes"}));
  DIBS_TRY(made.namespaces, list_all(client, {"", "v1", "namespaces"}));
  // Each in the form of its own model, whatever the server serves.
  client::ResourceClient models(client);
  DIBS_TRY(made.claims, list_known(models, {kGroup, "v1", "resourceclaims"}));
  DIBS_TRY(made.templates, list_known(models, {kGroup, "v1", "resourceclaimtemplates"}));
  DIBS_TRY(made.classes, list_known(models, {kGroup, "v1", "deviceclasses"}));
  DIBS_TRY(made.slices, list_known(models, {kGroup, "v1", "resourceslices"}));
  DIBS_TRY(made.rules, list_rules(client));
  // Who has none of their claims may not be allowed to see them.
  if (std::any_of(made.claims.begin(), made.claims.end(), is_classic)) {
    DIBS_TRY(made.resource_classes, list_known(client, {kGroup, "v1alpha2", "resourceclasses"}));
    DIBS_TRY(made.contexts, list_known(client, {kGroup, "v1alpha2", "podschedulingcontexts"}));
    DIBS_TRY(made.claim_parameters,
             list_known(client, {kGroup, "v1alpha2", "resourceclaimparameters"}));
    DIBS_TRY(made.class_parameters,
             list_known(client, {kGroup, "v1alpha2", "resourceclassparameters"}));
  }
  // Last, so that a pod that is there has its claims above.
  DIBS_TRY(made.pods, list_all(client, {"", "v1", "pods"}));
  DIBS_TRY(made.volumes, list_volumes(client, made.pods));
  return made;
}

std::vector<Value> fetch_warnings(client::Client& client, const std::string& name_space) {
  client::ListOptions options;
  options.field_selector = "type=Warning";
  auto listed = client.list({"", "v1", "events"}, name_space, options);
  return listed ? std::move(listed->items) : std::vector<Value>();
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
          features, [] { return std::string("share"); }, release) {}

std::unique_ptr<WhyState> make_state(const WhyWorld& world, const Value* without) {
  auto made = std::make_unique<WhyState>(world.features, world.release);
  for (const Value& object : world.objects.namespaces) made->cluster.put_namespace(object);
  for (const Value& object : world.objects.nodes) made->cluster.put_node(object);
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

}  // namespace dibs::cli
