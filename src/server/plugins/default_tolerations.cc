// Pods outlive a short trouble of their node, unless they say for how long themselves.
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kTaints[] = {"node.kubernetes.io/not-ready",
                                        "node.kubernetes.io/unreachable"};
constexpr int kSeconds = 300;

bool tolerates(const Value& tolerations, std::string_view key) {
  for (const Value& toleration : tolerations.items()) {
    auto of = toleration["key"].as_string();
    auto effect = toleration["effect"].as_string();
    if ((of == key || of.empty()) && (effect == "NoExecute" || effect.empty())) return true;
  }
  return false;
}

class DefaultTolerations : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "DefaultTolerationSeconds"; }

  Result<> mutate(Write& write) override {
    if (write.operation == Operation::remove || !write.is("", "pods") ||
        !write.subresource.empty()) {
      return success();
    }
    Value& pod = write.object;
    for (std::string_view key : kTaints) {
      if (tolerates(pod["spec"]["tolerations"], key)) continue;
      pod.mut("spec")
          .mut("tolerations")
          .push(Value::object({{"key", key},
                               {"operator", "Exists"},
                               {"effect", "NoExecute"},
                               {"tolerationSeconds", kSeconds}}));
    }
    return success();
  }
};

}  // namespace

PluginPtr make_default_tolerations() { return std::make_unique<DefaultTolerations>(); }

}  // namespace dibs::server
