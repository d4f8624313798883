// LimitRanges of a namespace fill in and bound what its pods and claims ask for.
#include "api/kinds/cluster/quota.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class LimitRanger : public AdmissionPlugin {
 public:
  explicit LimitRanger(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "LimitRanger"; }

  Result<> mutate(AdmissionRequest& request) override {
    if (!concerns(request) || !request.is("", "pods")) return success();
    for (const Value& range : sources_.list("", "limitranges", request.name_space)) {
      api::apply_limit_range_defaults(*request.object, range);
    }
    return success();
  }

  Result<> validate(AdmissionRequest& request) override {
    if (!concerns(request)) return success();
    for (const Value& range : sources_.list("", "limitranges", request.name_space)) {
      auto faults = api::limit_range_faults(request.resource.plural, *request.object, range);
      if (!faults.empty()) return refuse(request, api::joined_faults(faults));
    }
    return success();
  }

 private:
  /// Pods cannot be made to fit once they run.
  static bool concerns(const AdmissionRequest& request) {
    if (!request.subresource.empty()) return false;
    if (request.is("", "pods")) return request.operation == Operation::create;
    return request.is("", "persistentvolumeclaims") && request.operation != Operation::remove;
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_limit_ranger(PluginSources sources) {
  return std::make_unique<LimitRanger>(sources);
}

}  // namespace dibs::server
