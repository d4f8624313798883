// A node is not ready until it says so: nothing is scheduled to a new one.
#include "server/plugins/plugins.h"

namespace dibs::server {
namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";

class NodeTaints : public AdmissionPlugin {
 public:
  std::string_view name() const override { return "TaintNodesByCondition"; }

  Result<> mutate(AdmissionRequest& request) override {
    if (request.operation != Operation::create || !request.is("", "nodes")) return success();
    for (const Value& taint : (*request.object)["spec"]["taints"].items()) {
      if (taint["key"].as_string() == kNotReady && taint["effect"].as_string() == "NoSchedule") return success();
    }
    request.object->mut("spec").mut("taints").push(
        Value::object({{"key", kNotReady}, {"effect", "NoSchedule"}}));
    return success();
  }
};

}  // namespace

PluginPtr make_node_taints() { return std::make_unique<NodeTaints>(); }

}  // namespace dibs::server
