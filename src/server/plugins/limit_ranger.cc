// LimitRanges of a namespace fill in and bound what its pods and claims ask for.
#include "api/kinds/cluster/quota.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class LimitRanger : public AdmissionPlugin {
 public:
  explicit LimitRanger(PluginSources sources) : sources_(sources) {}
  std::string_view name() const override { return "LimitRanger"; }

  Result<> mutate(Write& write) override {
    if (!concerns(write) || !write.is("", "pods") || !write.subresource.empty()) return success();
    for (const Value& range : sources_.list("", "limitranges", write.name_space)) {
      api::apply_limit_range_defaults(write.object, range);
    }
    return success();
  }

  Result<> validate(const Write& write) override {
    if (!concerns(write)) return success();
    for (const Value& range : sources_.list("", "limitranges", write.name_space)) {
      auto faults = api::limit_range_faults(write.resource.plural, write.object, range);
      if (!faults.empty()) return refuse(write, api::joined_faults(faults));
    }
    return success();
  }

 private:
  /// What pods ask for changes by a resize alone.
  static bool concerns(const Write& write) {
    if (write.is("", "pods")) {
      return write.subresource == "resize" ||
             (write.subresource.empty() && write.operation == Operation::create);
    }
    if (!write.subresource.empty()) return false;
    return write.is("", "persistentvolumeclaims") && write.operation != Operation::remove;
  }

  PluginSources sources_;
};

}  // namespace

PluginPtr make_limit_ranger(PluginSources sources) {
  return std::make_unique<LimitRanger>(sources);
}

}  // namespace dibs::server
