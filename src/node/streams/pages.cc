#include "node/streams/pages.h"

namespace dibs::node {
namespace {

using json::Value;

Value list_of(Value items) {
  return Value::object({{"kind", "PodList"},
                        {"apiVersion", "v1"},
                        {"metadata", Value::object()},
                        {"items", std::move(items)}});
}

}  // namespace

Value pod_list(const std::vector<Value>& pods) {
  Value items = Value::array();
  for (Value pod : pods) {
    pod.erase("kind");
    pod.erase("apiVersion");
    items.push(std::move(pod));
  }
  return list_of(std::move(items));
}

Result<Value> running_pods(ContainerRuntime& containers) {
  DIBS_TRY(const auto sandboxes, containers.list_sandboxes());
  DIBS_TRY(const auto all, containers.list_containers());
  Value items = Value::array();
  for (const SandboxStatus& sandbox : sandboxes) {
    if (sandbox.state != SandboxState::ready) continue;
    Value running = Value::array();
    for (const ContainerStatus& one : all) {
      if (one.sandbox_id != sandbox.id || one.state != ContainerState::running) continue;
      running.push(Value::object({{"name", one.name}, {"image", one.image}}));
    }
    Value metadata = Value::object(
        {{"name", sandbox.name}, {"namespace", sandbox.name_space}, {"uid", sandbox.uid}});
    items.push(Value::object({{"metadata", std::move(metadata)},
                              {"spec", Value::object({{"containers", std::move(running)}})},
                              {"status", Value::object()}}));
  }
  return list_of(std::move(items));
}

}  // namespace dibs::node
