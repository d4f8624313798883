#include "cli/plan_cluster.h"

#include <algorithm>

#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "runtime/files.h"
#include "server/builtin_resources.h"
#include "server/stored.h"
#include "store/memory_store.h"

namespace dibs::cli {
namespace {

using json::Value;

const client::Gvr kPods = {"", "v1", "pods"};

/// Those that make pods and claims of what is applied. Others would tidy up after objects that were
/// not copied.
const std::vector<std::string> kControllers = {
    "resource-claim-controller",
    "replicaset-controller",
    "replication-controller",
    "deployment-controller",
    "statefulset-controller",
    "daemon-set-controller",
    "job-controller",
    "persistent-volume-binder",
    "ephemeral-volume-controller",
};

std::pair<std::string, std::string> group_version(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return {"", std::string(text)};
  return {std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

server::ResourcePtr find_kind(const std::vector<server::ResourcePtr>& resources,
                              const Value& object) {
  const auto [group, version] = group_version(object["apiVersion"].as_string());
  const std::string_view kind = object["kind"].as_string();
  for (const server::ResourcePtr& one : resources) {
    if (one->group == group && one->version == version && one->kind == kind) return one;
  }
  return nullptr;
}

server::Options server_options(const PlanInput& input) {
  server::Options made;
  made.release = input.release;
  made.feature_gates = input.feature_gates;
  // Accounts and what webhooks and policies say are the cluster's own.
  made.disabled_plugins = {"ServiceAccount"};
  return made;
}

Result<> copy(const std::vector<Value>& objects, const std::vector<server::ResourcePtr>& resources,
              store::Store& store) {
  for (const Value& object : objects) {
    const server::ResourcePtr resource = find_kind(resources, object);
    if (resource == nullptr) continue;
    Value stored = object;
    stored.mut("metadata").erase("resourceVersion");
    stored.mut("metadata").erase("managedFields");
    if (resource->to_storage) {
      DIBS_TRY(stored, resource->to_storage(stored, nullptr, true));
    }
    const std::string key = resource->key(client::namespace_of(object), client::name_of(object));
    DIBS_TRY([[maybe_unused]] const auto revision,
             store.commit({server::stored_op(key, stored, 0)}));
  }
  return success();
}

bool is_finished(const Value& pod) {
  const auto phase = pod["status"]["phase"].as_string();
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace

PlanCluster::PlanCluster() : files_(runtime::make_memory_files()) {}

PlanCluster::~PlanCluster() {
  if (cluster_) cluster_->stop();
}

Result<std::unique_ptr<PlanCluster>> PlanCluster::start(const PlanInput& input) {
  auto made = std::unique_ptr<PlanCluster>(new PlanCluster());
  cluster::Options options;
  options.server = server_options(input);
  DIBS_TRY(made->resources_, server::builtin_resources(options.server));
  auto store = store::make_memory_store({});
  const WhyObjects& objects = input.world.objects;
  for (const auto* list :
       {&objects.namespaces, &objects.nodes, &objects.classes, &objects.slices, &objects.rules,
        &objects.templates, &objects.claims, &objects.pods, &objects.volumes, &input.more}) {
    DIBS_CHECK(copy(*list, made->resources_, *store));
  }
  auto& controllers = options.controllers.emplace();
  controllers.only = kControllers;
  options.scheduler.emplace().configuration = input.world.configuration;
  runtime::SimOptions time;
  time.start = input.world.now;
  made->sim_ = std::make_unique<runtime::SimRuntime>(time);
  DIBS_TRY(made->cluster_, cluster::Cluster::start(cluster::sim_world(*made->sim_, *made->files_),
                                                   std::move(store), std::move(options)));
  made->settle();
  return made;
}

Result<Value> PlanCluster::apply(const Value& document, const std::string& name_space) {
  const server::ResourcePtr resource = find_kind(resources_, document);
  if (resource == nullptr) return Value();
  const client::Gvr gvr = {resource->group, resource->version, resource->plural};
  std::string where;
  if (resource->namespaced) {
    where = client::namespace_of(document).empty() ? name_space
                                                   : std::string(client::namespace_of(document));
  }
  client::WriteOptions options;
  options.field_manager = "dibs-plan";
  options.field_validation = "Strict";
  const std::string name(client::name_of(document));
  Value object = document;
  if (!where.empty()) object.mut("metadata").set("namespace", where);
  if (name.empty() || !client().get(gvr, where, name).ok()) {
    return client().create(gvr, where, object, options);
  }
  options.force = true;
  return client().patch(gvr, where, name, client::PatchType::apply, object, options);
}

bool PlanCluster::play_agents() {
  bool acted = false;
  auto pods = client().list(kPods, "");
  if (!pods.ok()) return false;
  for (const Value& pod : pods->items) {
    const std::string name(client::name_of(pod));
    const std::string name_space(client::namespace_of(pod));
    if (pod["metadata"]["deletionTimestamp"].is_string()) {
      client::DeleteOptions now;
      now.grace_period_seconds = 0;
      evicted_.insert(cat(name_space, "/", name));
      acted = client().remove(kPods, name_space, name, now).ok() || acted;
      continue;
    }
    if (pod["spec"]["nodeName"].as_string().empty() || is_finished(pod) ||
        pod["status"]["phase"].as_string() == "Running") {
      continue;
    }
    const std::string when = format_rfc3339(sim_->now());
    Value status = Value::object(
        {{"phase", "Running"},
         {"conditions",
          Value::array({Value::object(
              {{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", when}})})}});
    client::WriteOptions options;
    options.subresource = "status";
    acted = client()
                .patch(kPods, name_space, name, client::PatchType::strategic,
                       Value::object({{"status", std::move(status)}}), options)
                .ok() ||
            acted;
  }
  return acted;
}

bool PlanCluster::play_provisioners() {
  bool acted = false;
  auto claims = client().list({"", "v1", "persistentvolumeclaims"}, "");
  if (!claims.ok()) return false;
  for (const Value& claim : claims->items) {
    const std::string provisioner = api::annotation_of(claim, api::kStorageProvisioner).str();
    if (provisioner.empty() || provisioner == api::kLocalPathProvisioner ||
        !claim["spec"]["volumeName"].as_string().empty()) {
      continue;
    }
    Value annotations = Value::object();
    annotations.set(api::kProvisionedBy, provisioner);
    const std::string name = cat("pvc-", client::uid_of(claim));
    const Value volume = Value::object(
        {{"apiVersion", "v1"},
         {"kind", "PersistentVolume"},
         {"metadata", Value::object({{"name", name}, {"annotations", std::move(annotations)}})},
         {"spec",
          Value::object(
              {{"capacity", claim["spec"]["resources"]["requests"]},
               {"accessModes", claim["spec"]["accessModes"]},
               {"storageClassName", claim["spec"]["storageClassName"]},
               {"volumeMode", claim["spec"]["volumeMode"]},
               {"persistentVolumeReclaimPolicy", "Delete"},
               {"claimRef", Value::object({{"apiVersion", "v1"},
                                           {"kind", "PersistentVolumeClaim"},
                                           {"namespace", client::namespace_of(claim)},
                                           {"name", client::name_of(claim)},
                                           {"uid", client::uid_of(claim)}})},
               {"csi", Value::object({{"driver", "plan.dibs.io"}, {"volumeHandle", name}})}})}});
    acted = client().create({"", "v1", "persistentvolumes"}, "", volume).ok() || acted;
  }
  return acted;
}

std::string PlanCluster::state() const {
  std::string made;
  for (const char* resource : {"pods", "resourceclaims", "persistentvolumeclaims"}) {
    const client::Gvr gvr = {
        std::string_view(resource) == "resourceclaims" ? "resource.k8s.io" : "", "v1", resource};
    auto listed = cluster_->client().list(gvr, "");
    if (!listed.ok()) continue;
    for (const Value& object : listed->items) {
      append(made, client::uid_of(object), " ", object["metadata"]["resourceVersion"].as_string(),
             "\n");
    }
  }
  return made;
}

void PlanCluster::settle() {
  // Controllers and scheduler try again after seconds; what has not moved for so long waits.
  constexpr auto kStep = std::chrono::seconds(3);
  constexpr int kQuiet = 2;
  constexpr int kMost = 400;
  std::string last;
  int quiet = 0;
  for (int i = 0; i < kMost && quiet < kQuiet; ++i) {
    sim_->advance(kStep);
    const bool provisioned = play_provisioners();
    const bool acted = play_agents() || provisioned;
    std::string now = state();
    quiet = !acted && now == last ? quiet + 1 : 0;
    last = std::move(now);
  }
}

}  // namespace dibs::cli
