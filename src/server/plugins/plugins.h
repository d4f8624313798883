#pragma once
// The admission plugins of this server, in the order they run. One file each.

#include <memory>
#include <string_view>

#include "base/metrics.h"
#include "runtime/runtime.h"
#include "server/access.h"
#include "server/admission.h"
#include "server/objects.h"
#include "server/options.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

/// What plugins look things up in. All outlive the chain.
struct PluginSources {
  runtime::Runtime& runtime;
  store::Store& store;
  Objects& objects;
  ResourceTable& resources;
  Access& access;
  const Options& options;
  metrics::Registry& metrics;

  /// A built-in object, or null. `plural` of the core group when `group` is "".
  Value find(std::string_view group, std::string_view plural, std::string_view name_space,
             std::string_view name) const;
  /// All objects of a kind in a namespace ("": everywhere).
  std::vector<Value> list(std::string_view group, std::string_view plural,
                          std::string_view name_space) const;
};

void add_admission_plugins(AdmissionChain& chain, PluginSources sources);

using PluginPtr = std::unique_ptr<AdmissionPlugin>;
PluginPtr make_namespace_lifecycle(PluginSources sources);
PluginPtr make_service_account(PluginSources sources);
PluginPtr make_default_tolerations();
PluginPtr make_pod_security(PluginSources sources);
PluginPtr make_priority(PluginSources sources);
PluginPtr make_limit_ranger(PluginSources sources);
PluginPtr make_runtime_class(PluginSources sources);
PluginPtr make_pod_resize(PluginSources sources);
PluginPtr make_node_restriction(PluginSources sources);
PluginPtr make_storage_protection();
PluginPtr make_pod_group_protection();
PluginPtr make_default_storage_class(PluginSources sources);
PluginPtr make_claim_resize(PluginSources sources);
PluginPtr make_default_ingress_class(PluginSources sources);
PluginPtr make_certificate_request_author();
PluginPtr make_certificate_approval(PluginSources sources);
PluginPtr make_certificate_signing(PluginSources sources);
PluginPtr make_certificate_subject_restriction();
PluginPtr make_trust_bundle_attest(PluginSources sources);
PluginPtr make_pod_certificates(PluginSources sources);
PluginPtr make_role_escalation(PluginSources sources);
PluginPtr make_param_access(PluginSources sources);
PluginPtr make_service_addresses(PluginSources sources);
PluginPtr make_mutating_policies(PluginSources sources);
PluginPtr make_admission_policies(PluginSources sources);
PluginPtr make_mutating_webhooks(PluginSources sources);
PluginPtr make_validating_webhooks(PluginSources sources);
PluginPtr make_resource_quota(PluginSources sources);
PluginPtr make_admin_access(PluginSources sources);
PluginPtr make_claim_status_authorization(PluginSources sources);
PluginPtr make_device_names(PluginSources sources);
PluginPtr make_unique_devices(PluginSources sources);

/// 403 about the object of the request.
Error refuse(const Write& write, std::string_view why);

}  // namespace dibs::server
