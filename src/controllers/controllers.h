#pragma once
// All controllers of a cluster, started and ended together.
//
// start() returns at once; the controllers come to life when the server has said what it serves.
// Where several processes have them, those of the leader run (client/leader_election.h). Runs on
// the runtime's executor only.

#include <memory>
#include <string>
#include <vector>

#include "api/schema/features.h"
#include "client/client.h"
#include "controllers/controller.h"
#include "runtime/runtime.h"

namespace dibs::controllers {

/// The service accounts of kube-system that controllers act as, named as Kubernetes names them; it
/// has a role for each.
std::vector<std::string> controller_accounts();

/// What gates say about them.
void follow_gates(const api::Features& gates, ControllersOptions& options);

class Controllers {
 public:
  /// `client`, which reads for all of them, and `runtime` must outlive it.
  Controllers(client::Client& client, runtime::Runtime& runtime, ControllersOptions options);
  /// As stop().
  ~Controllers();
  Controllers(const Controllers&) = delete;
  Controllers& operator=(const Controllers&) = delete;

  /// Again after a stop() is fine.
  void start();
  void stop();
  /// All informers have their first list.
  bool ready() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// One function per controller, each in its own file.
using ControllerPtr = std::unique_ptr<Controller>;
ControllerPtr make_namespace_controller(Environment& environment);
ControllerPtr make_service_account_controller(Environment& environment);
ControllerPtr make_garbage_collector(Environment& environment);
ControllerPtr make_resource_claim_controller(Environment& environment);
ControllerPtr make_pod_group_protection_controller(Environment& environment);
ControllerPtr make_quota_controller(Environment& environment);
ControllerPtr make_pod_collector(Environment& environment);
ControllerPtr make_node_lifecycle_controller(Environment& environment);
ControllerPtr make_taint_eviction_controller(Environment& environment);
ControllerPtr make_device_taint_controller(Environment& environment);
ControllerPtr make_disruption_controller(Environment& environment);
ControllerPtr make_autoscaler(Environment& environment);
ControllerPtr make_cluster_role_controller(Environment& environment);
ControllerPtr make_policy_status_controller(Environment& environment);
ControllerPtr make_account_token_controller(Environment& environment);
ControllerPtr make_bootstrap_token_cleaner(Environment& environment);
ControllerPtr make_bootstrap_signer(Environment& environment);
ControllerPtr make_certificate_controller(Environment& environment);
ControllerPtr make_attach_detach_controller(Environment& environment);
ControllerPtr make_endpoints_controller(Environment& environment);
ControllerPtr make_endpoint_slice_controller(Environment& environment);
ControllerPtr make_slice_mirroring_controller(Environment& environment);
ControllerPtr make_service_cidr_controller(Environment& environment);
ControllerPtr make_trust_bundle_publisher(Environment& environment);
ControllerPtr make_pod_certificate_cleaner(Environment& environment);
ControllerPtr make_storage_migrator(Environment& environment);
ControllerPtr make_pool_status_controller(Environment& environment);
ControllerPtr make_claim_counter(Environment& environment);
ControllerPtr make_claim_protection_controller(Environment& environment);
ControllerPtr make_volume_protection_controller(Environment& environment);
ControllerPtr make_volume_binder(Environment& environment);
ControllerPtr make_ephemeral_volume_controller(Environment& environment);
ControllerPtr make_local_path_provisioner(Environment& environment);

}  // namespace dibs::controllers
