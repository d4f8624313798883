#include "server/plugins/plugins.h"

#include "server/status.h"
#include "server/stored.h"

namespace dibs::server {

Value PluginSources::find(std::string_view group, std::string_view plural,
                          std::string_view name_space, std::string_view name) const {
  auto resource = resources.get()->find_plural(group, plural);
  if (!resource) return nullptr;
  auto object = objects.get(*resource, name_space, name);
  return object.ok() ? std::move(object).value() : Value();
}

std::vector<Value> PluginSources::list(std::string_view group, std::string_view plural,
                                       std::string_view name_space) const {
  std::vector<Value> out;
  auto resource = resources.get()->find_plural(group, plural);
  if (!resource) return out;
  store::RangeQuery query;
  query.prefix = resource->namespace_prefix(name_space);
  auto listing = store.range(query);
  if (!listing.ok()) return out;
  for (const auto& record : listing->records) {
    auto object = decode_stored(*record);
    if (object.ok()) out.push_back(std::move(object).value());
  }
  return out;
}

Error refuse(const Write& write, std::string_view why) {
  return forbidden_error(write.resource.group, write.resource.plural, write.name, why);
}

void add_admission_plugins(AdmissionChain& chain, PluginSources sources) {
  chain.add(make_namespace_lifecycle(sources));
  chain.add(make_limit_ranger(sources));
  chain.add(make_service_account(sources));
  chain.add(make_node_restriction(sources));
  chain.add(make_pod_security(sources));
  chain.add(make_priority(sources));
  chain.add(make_default_tolerations());
  chain.add(make_default_storage_class(sources));
  chain.add(make_storage_protection());
  chain.add(make_pod_group_protection());
  chain.add(make_claim_resize(sources));
  chain.add(make_runtime_class(sources));
  chain.add(make_default_ingress_class(sources));
  chain.add(make_pod_resize(sources));
  // Whoever answers for rights comes after those who may change the object.
  chain.add(make_mutating_policies(sources));
  chain.add(make_mutating_webhooks(sources));
  chain.add(make_certificate_request_author());
  chain.add(make_certificate_approval(sources));
  chain.add(make_certificate_signing(sources));
  chain.add(make_certificate_subject_restriction());
  chain.add(make_trust_bundle_attest(sources));
  chain.add(make_pod_certificates(sources));
  chain.add(make_role_escalation(sources));
  chain.add(make_param_access(sources));
  chain.add(make_service_addresses(sources));
  chain.add(make_admission_policies(sources));
  chain.add(make_validating_webhooks(sources));
  chain.add(make_admin_access(sources));
  chain.add(make_claim_status_authorization(sources));
  chain.add(make_device_names(sources));
  // Last, so that nothing refused by others is counted.
  chain.add(make_resource_quota(sources));
  chain.add(make_unique_devices(sources));
}

}  // namespace dibs::server
