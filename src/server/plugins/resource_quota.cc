// ResourceQuotas: a write that would use more than is left is refused; what it uses is written into
// the quota first.
//
// Only quotas whose status.hard is set count. The usage is charged by a conditional write of the
// quota, so that two creations cannot use the same rest; a charge for a write that then fails is
// found by whoever recounts the quota.
#include "api/kinds/cluster/quota.h"
#include "server/plugins/plugins.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr int kRaces = 20;

class ResourceQuota : public AdmissionPlugin {
 public:
  explicit ResourceQuota(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "ResourceQuota"; }

  Result<> validate(AdmissionRequest& request) override {
    if (!request.resource.namespaced || request.operation == Operation::remove || !request.object)
      return success();
    if (!request.subresource.empty() || request.is("", "resourcequotas")) return success();
    if (request.operation == Operation::create && !request.object->contains("metadata"))
      return success();
    if (request.operation == Operation::create &&
        !sources_
             .find(request.resource.group, request.resource.plural, request.name_space,
                   request.name)
             .is_null()) {
      return success();  // it exists: the answer will say so, and nothing is used
    }
    api::ExtendedNameOf extended;
    if (request.resource.features && request.resource.features->on("DRAExtendedResource")) {
      extended = [this](std::string_view device_class) {
        return sources_
            .find("resource.k8s.io", "deviceclasses", "",
                  device_class)["spec"]["extendedResourceName"]
            .str();
      };
    }
    for (int race = 0; race < kRaces; ++race) {
      auto quotas = sources_.list("", "resourcequotas", request.name_space);
      if (quotas.empty()) return success();
      auto charged =
          api::charge_quotas(quotas, request.resource.group, request.resource.plural,
                             *request.object, request.old, request.context.now, extended);
      if (!charged.ok()) return refuse(request, charged.error().message());
      if (charged->empty() || request.context.dry_run) return success();
      if (store(*charged)) return success();
    }
    return Error(Code::conflict, "the quota of the namespace changes too fast; try again");
  }

 private:
  bool store(const std::vector<Value>& quotas) {
    auto resource = sources_.resources.get()->find("", "v1", "resourcequotas");
    std::vector<store::Op> ops;
    for (const Value& quota : quotas) {
      const Value& metadata = quota["metadata"];
      std::string key =
          resource->key(metadata["namespace"].as_string(), metadata["name"].as_string());
      store::Revision expected = std::atoll(metadata["resourceVersion"].str().c_str());
      ops.push_back({key, share(encode_stored(quota)), expected});
    }
    return sources_.store.commit(std::move(ops)).ok();
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_resource_quota(PluginSources sources) {
  return std::make_unique<ResourceQuota>(sources);
}

}  // namespace dibs::server
