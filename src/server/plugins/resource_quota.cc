// ResourceQuotas: a write that would use more than is left is refused; what it uses is written into
// the quota first.
//
// Only quotas whose status.hard is set count. The usage is charged by a conditional write of the
// quota, so that two creations cannot use the same rest. It outlasts the write: a charge for one
// that then fails is found by whoever recounts the quota. So it is made in the last step, when
// nearly all who might refuse have been asked.
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

  Result<> validate(const Write& write) override {
    if (!write.resource.namespaced || write.operation == Operation::remove ||
        write.object.is_null())
      return success();
    // A resize counts as the pod itself does.
    const bool resize = write.is("", "pods") && write.subresource == "resize";
    if ((!write.subresource.empty() && !resize) || write.is("", "resourcequotas")) return success();
    if (write.operation == Operation::create && !write.object.contains("metadata"))
      return success();
    if (write.operation == Operation::create &&
        !sources_.find(write.resource.group, write.resource.plural, write.name_space, write.name)
             .is_null()) {
      return success();  // it exists: the answer will say so, and nothing is used
    }
    api::QuotaSources sources;
    if (write.resource.features && write.resource.features->on("DRAExtendedResource")) {
      sources.extended = [this](std::string_view device_class) {
        return sources_
            .find("resource.k8s.io", "deviceclasses", "",
                  device_class)["spec"]["extendedResourceName"]
            .str();
      };
      sources.pod = [this](std::string_view name_space, std::string_view name) {
        return sources_.find("", "pods", name_space, name);
      };
      sources.claims = [this](std::string_view name_space) {
        return sources_.list("resource.k8s.io", "resourceclaims", name_space);
      };
    }
    for (int race = 0; race < kRaces; ++race) {
      auto quotas = sources_.list("", "resourcequotas", write.name_space);
      if (quotas.empty()) return success();
      auto charged =
          api::charge_quotas(quotas, write.resource.group, write.resource.plural, write.object,
                             write.old_if_any(), write.context.now, sources);
      if (!charged.ok()) return refuse(write, charged.error().message());
      if (charged->empty() || write.context.dry_run) return success();
      auto stored = store(*charged);
      if (stored.ok() || stored.error().code() != Code::conflict) return stored;
    }
    return Error(Code::conflict, "the quota of the namespace changes too fast; try again");
  }

 private:
  /// Errors: conflict, when a quota has changed meanwhile; of the store.
  Result<> store(const std::vector<Value>& quotas) {
    auto resource = sources_.resources.get()->find("", "v1", "resourcequotas");
    std::vector<store::Op> ops;
    for (const Value& quota : quotas) {
      const Value& metadata = quota["metadata"];
      std::string key =
          resource->key(metadata["namespace"].as_string(), metadata["name"].as_string());
      store::Revision expected = std::atoll(metadata["resourceVersion"].str().c_str());
      ops.push_back({key, share(encode_stored(quota)), expected});
    }
    DIBS_CHECK(sources_.store.commit(std::move(ops)));
    return success();
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_resource_quota(PluginSources sources) {
  return std::make_unique<ResourceQuota>(sources);
}

}  // namespace dibs::server
