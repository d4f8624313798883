#include "controllers/controllers.h"

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/resource_versions.h"
#include "controllers/workload.h"

namespace dibs::controllers {
namespace {

constexpr Duration kServerRetry = std::chrono::milliseconds(500);

struct Kind {
  const char* account;
  ControllerPtr (*make)(Environment& environment);
};

// As who reads for all of them: Kubernetes has no account for it.
constexpr const char* kShared = "";

constexpr Kind kKinds[] = {
    {"namespace-controller", make_namespace_controller},
    {"service-account-controller", make_service_account_controller},
    {"generic-garbage-collector", make_garbage_collector},
    {"resource-claim-controller", make_resource_claim_controller},
    {kShared, make_claim_counter},
    {"podgroup-protection-controller", make_pod_group_protection_controller},
    {"resourcequota-controller", make_quota_controller},
    {"pod-garbage-collector", make_pod_collector},
    {"node-controller", make_node_lifecycle_controller},
    {"node-controller", make_taint_eviction_controller},
    {"device-taint-eviction-controller", make_device_taint_controller},
    {"attachdetach-controller", make_attach_detach_controller},
    {"resourcepoolstatusrequest-controller", make_pool_status_controller},
    {"replicaset-controller", make_replica_set_controller},
    {"replication-controller", make_replication_controller},
    {"deployment-controller", make_deployment_controller},
    {"statefulset-controller", make_stateful_set_controller},
    {"daemon-set-controller", make_daemon_set_controller},
    {"job-controller", make_job_controller},
    {"cronjob-controller", make_cron_job_controller},
    {"disruption-controller", make_disruption_controller},
    {"horizontal-pod-autoscaler", make_autoscaler},
    {"clusterrole-aggregation-controller", make_cluster_role_controller},
    {"validatingadmissionpolicy-status-controller", make_policy_status_controller},
    {"certificate-controller", make_certificate_controller},
    {"token-cleaner", make_bootstrap_token_cleaner},
    {"bootstrap-signer", make_bootstrap_signer},
    {kShared, make_account_token_controller},
    {"endpoint-controller", make_endpoints_controller},
    {"endpointslice-controller", make_endpoint_slice_controller},
    {"endpointslicemirroring-controller", make_slice_mirroring_controller},
    {"service-cidrs-controller", make_service_cidr_controller},
    {"kube-apiserver-serving-clustertrustbundle-publisher", make_trust_bundle_publisher},
    {"podcertificaterequestcleaner", make_pod_certificate_cleaner},
    {"storage-version-migrator-controller", make_storage_migrator},
    {"pvc-protection-controller", make_claim_protection_controller},
    {"pv-protection-controller", make_volume_protection_controller},
    {"persistent-volume-binder", make_volume_binder},
    {"ephemeral-volume-controller", make_ephemeral_volume_controller},
    // Its rights are just what provisioning needs.
    {"persistent-volume-binder", make_local_path_provisioner},
};

/// Everything that lives from one start() to the next stop().
struct Running {
  Running(client::Client& api, runtime::Runtime& world, const ControllersOptions& what)
      : shared(api), runtime(world), options(what), informers(api, world) {}

  /// A controller, and what it has for itself.
  struct Part {
    Part(Running& all, client::Client& own)
        : recorders(own, all.runtime), environment{own,           all.runtime, all.informers,
                                                   all.discovery, recorders,   all.options} {}

    Recorders recorders;
    Environment environment;
    ControllerPtr controller;
  };

  client::Client& shared;
  runtime::Runtime& runtime;
  const ControllersOptions& options;
  SharedInformers informers;
  Discovery discovery;
  std::vector<std::unique_ptr<Part>> parts;

  void make_all() {
    for (const Kind& kind : kKinds) {
      const bool of_claims = kind.make == make_resource_claim_controller;
      if (of_claims && !options.claims) continue;
      if (kind.make == make_pool_status_controller && !options.pool_status) continue;
      const auto& only = options.only;
      if (!only.empty() && std::find(only.begin(), only.end(), kind.account) == only.end())
        continue;
      const auto own = options.clients.find(std::string_view(kind.account));
      auto part =
          std::make_unique<Part>(*this, own == options.clients.end() ? shared : *own->second);
      part->controller = kind.make(part->environment);
      // None where the server does not serve what it is about.
      if (part->controller) parts.push_back(std::move(part));
    }
    informers.start();
    for (auto& part : parts) part->controller->start();
  }

  void end() {
    for (auto& part : parts) part->controller->stop();
    informers.stop();
    for (auto& part : parts) {
      part->controller.reset();
      part->recorders.stop();
    }
  }
};

}  // namespace

void follow_gates(const api::Features& gates, ControllersOptions& options) {
  constexpr int kFirstWithRulesAlone = 35;  // before, DRADeviceTaints was for both
  options.claims = gates.on("DynamicResourceAllocation");
  options.scale_to_zero = gates.on("HPAScaleToZero");
  options.group_claims = gates.on("DRAWorkloadResourceClaims");
  options.taint_rules = gates.on("DRADeviceTaints") &&
                        (gates.minor() < kFirstWithRulesAlone || gates.on("DRADeviceTaintRules"));
  options.pool_status = gates.on("DRAResourcePoolStatus");
}

std::vector<std::string> controller_accounts() {
  // Parts of the work of others: the second writes kube-root-ca.crt, the first removes Jobs whose
  // time after their end is up.
  std::vector<std::string> out = {"ttl-after-finished-controller", "root-ca-cert-publisher"};
  for (const Kind& kind : kKinds) {
    if (*kind.account != '\0' && std::find(out.begin(), out.end(), kind.account) == out.end())
      out.emplace_back(kind.account);
  }
  return out;
}

struct Controllers::State : std::enable_shared_from_this<Controllers::State> {
  State(client::Client& api, runtime::Runtime& world, ControllersOptions what)
      : client(api), runtime(world), options(std::move(what)) {
    for (auto& [account, own] : options.clients) {
      clients.push_back(std::make_unique<client::ResourceClient>(*own));
      own = clients.back().get();
    }
  }

  // They see every object of the device API in the form of its own model.
  client::ResourceClient client;
  std::vector<std::unique_ptr<client::ResourceClient>> clients;  // of the options
  runtime::Runtime& runtime;
  ControllersOptions options;
  Mutex mutex;
  // Held by stop() and by the start's task, so that one never overtakes the other.
  Mutex changing;
  std::uint64_t life DIBS_GUARDED_BY(mutex) = 0;  // odd while started
  std::shared_ptr<Running> running DIBS_GUARDED_BY(mutex);

  bool alive(std::uint64_t mine) {
    const MutexLock lock(mutex);
    return life == mine;
  }

  void attempt(std::uint64_t mine) {
    if (!alive(mine)) return;
    auto next = std::make_shared<Running>(client, runtime, options);
    if (auto known = next->discovery.refresh(client); !known) {
      log::debug("controllers wait for the server", {{"error", known.error()}});
      runtime.timers.after(kServerRetry,
                           [self = shared_from_this(), mine] { self->attempt(mine); });
      return;
    }
    const MutexLock one(changing);
    if (!alive(mine)) return;
    next->make_all();
    const MutexLock lock(mutex);
    running = std::move(next);
  }
};

Controllers::Controllers(client::Client& client, runtime::Runtime& runtime,
                         ControllersOptions options)
    : state_(std::make_shared<State>(client, runtime, std::move(options))) {}

Controllers::~Controllers() { stop(); }

void Controllers::start() {
  std::uint64_t mine = 0;
  {
    const MutexLock lock(state_->mutex);
    if (state_->life % 2 == 1) return;
    mine = ++state_->life;
  }
  state_->runtime.executor.post([state = state_, mine] { state->attempt(mine); });
}

void Controllers::stop() {
  std::shared_ptr<Running> ending;
  {
    const MutexLock lock(state_->mutex);
    if (state_->life % 2 == 0) return;
    ++state_->life;
  }
  const MutexLock one(state_->changing);
  {
    const MutexLock lock(state_->mutex);
    ending = std::move(state_->running);
    state_->running.reset();
  }
  if (ending) ending->end();
}

bool Controllers::ready() const {
  const MutexLock lock(state_->mutex);
  return state_->running != nullptr && state_->running->informers.synced();
}

}  // namespace dibs::controllers
