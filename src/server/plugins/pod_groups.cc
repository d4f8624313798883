// A group of pods is held by a finalizer while pods of it are there.
#include "base/finalizers.h"
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

class PodGroupProtection : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "PodGroupProtection"; }

  Result<> mutate(Write& write) override {
    if (write.operation != Operation::create || !write.subresource.empty() ||
        !write.is("scheduling.k8s.io", "podgroups")) {
      return success();
    }
    for (const Value& item : write.object["metadata"]["finalizers"].items()) {
      if (item.as_string() == kPodGroupFinalizer) return success();
    }
    write.object.mut("metadata").mut("finalizers").push(kPodGroupFinalizer);
    return success();
  }
};

}  // namespace

PluginPtr make_pod_group_protection() { return std::make_unique<PodGroupProtection>(); }

}  // namespace dibs::server
