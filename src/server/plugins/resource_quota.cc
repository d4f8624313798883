// ResourceQuotas: a write that would use more than is left is refused; what it uses is written into
// the quota in the same transaction.
//
// Only quotas whose status.hard is set count. The transaction expects each quota as it was judged,
// so two creations cannot use the same rest, on whichever servers, and no charge is without its
// object. Of all that are charged to one namespace one would win and the others begin again; so
// here they queue (write_turns.h), and only those of other servers race.
#include "api/kinds/cluster/quota.h"
#include "server/plugins/plugins.h"
#include "server/plugins/write_turns.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

class ResourceQuota : public AdmissionPlugin {
 public:
  explicit ResourceQuota(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "ResourceQuota"; }

  /// What is stored is judged when it is charged.
  Result<> validate(const Write& write) override {
    if (!write.is_dry_run() || !counts(write)) return success();
    if (write.operation == Operation::create &&
        !sources_.find(write.resource.group, write.resource.plural, write.name_space, write.name)
             .is_null()) {
      return success();  // the answer will say so
    }
    DIBS_CHECK(charges_of(write));
    return success();
  }

  Result<bool> charge(Write& write, const std::function<void()>& go_on) override {
    if (!counts(write)) return true;
    DIBS_TRY(auto quotas, charges_of(write));
    if (quotas.empty()) return true;
    if (go_on) {
      if (!turns_->take(write.name_space, write, go_on)) return false;
      // Those before have changed it.
      DIBS_TRY(quotas, charges_of(write));
    }
    const auto resource = sources_.resources.get()->find("", "v1", "resourcequotas");
    for (const Value& quota : quotas) {
      const Value& metadata = quota["metadata"];
      const store::Revision judged = std::atoll(metadata["resourceVersion"].str().c_str());
      write.fences.push_back(
          stored_op(resource->key(write.name_space, metadata["name"].as_string()), quota, judged));
    }
    return true;
  }

 private:
  static bool counts(const Write& write) {
    if (!write.resource.namespaced || write.object.is_null() || write.outcome.removed) return false;
    // A resize counts as the pod itself does.
    const bool resize = write.is("", "pods") && write.subresource == "resize";
    if ((!write.subresource.empty() && !resize) || write.is("", "resourcequotas")) return false;
    return write.operation != Operation::create || write.object.contains("metadata");
  }

  /// The quotas that the write changes, changed. Errors: forbidden, where one has not enough left.
  Result<std::vector<Value>> charges_of(const Write& write) const {
    const auto quotas = sources_.list("", "resourcequotas", write.name_space);
    if (quotas.empty()) return std::vector<Value>();
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
    auto charged = api::charge_quotas(quotas, write.resource.group, write.resource.plural,
                                      write.object, write.old_if_any(), write.context.now, sources);
    if (!charged.ok()) return refuse(write, charged.error().message());
    return charged;
  }

  PluginSources sources_;
  const std::shared_ptr<WriteTurns> turns_ =
      std::make_shared<WriteTurns>();  // one for each namespace
};

}  // namespace

PluginPtr make_resource_quota(PluginSources sources) {
  return std::make_unique<ResourceQuota>(sources);
}

}  // namespace dibs::server
