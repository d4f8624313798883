#include "node/pods/node_status.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::size_t kMaxImages = 50;
constexpr std::size_t kMaxNames = 5;
constexpr const char* kAttachDetach = "volumes.kubernetes.io/controller-managed-attach-detach";

struct Pressure {
  const char* type;
  const char* reason;
  const char* message;
  const char* event;
};
// Memory and processes are never short here: nothing watches them.
constexpr Pressure kPressures[] = {
    {"MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available",
     "NodeHasSufficientMemory"},
    {"DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure",
     "NodeHasNoDiskPressure"},
    {"PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available",
     "NodeHasSufficientPID"},
};

constexpr Pressure kDiskPressure = {"DiskPressure", "KubeletHasDiskPressure",
                                    "kubelet has disk pressure", "NodeHasDiskPressure"};

const Value& find_condition(const Value& status, std::string_view type) {
  for (const auto& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return json::null_value();
}

Value condition(const Value& before, const char* type, bool holds, const std::string& reason,
                const std::string& message, Time now) {
  const std::string status = holds ? "True" : "False";
  const Value& old = find_condition(before, type);
  const std::string text = format_rfc3339(now);
  const bool same = old["status"].as_string() == status && old["lastTransitionTime"].is_string();
  return Value::object({{"type", type},
                        {"status", status},
                        {"lastHeartbeatTime", text},
                        {"lastTransitionTime", same ? old["lastTransitionTime"] : Value(text)},
                        {"reason", reason},
                        {"message", message}});
}

Value conditions(const NodeState& state, const Value& before, Time now) {
  Value out = Value::array();
  for (const auto& calm : kPressures) {
    const bool pressed = state.disk_pressure && calm.type == std::string_view(kDiskPressure.type);
    const Pressure& told = pressed ? kDiskPressure : calm;
    out.push(condition(before, told.type, pressed, told.reason, told.message, now));
  }
  if (state.ready) {
    out.push(
        condition(before, "Ready", true, "KubeletReady", "kubelet is posting ready status", now));
  } else {
    out.push(
        condition(before, "Ready", false, "KubeletNotReady", state.ready.error().message(), now));
  }
  return out;
}

Value images_of(std::vector<ImageInfo> images) {
  std::stable_sort(images.begin(), images.end(),
                   [](const ImageInfo& a, const ImageInfo& b) { return a.size > b.size; });
  if (images.size() > kMaxImages) images.resize(kMaxImages);
  Value out = Value::array();
  for (const auto& image : images) {
    Value names = Value::array();
    for (const auto* list : {&image.digests, &image.tags}) {
      for (const auto& name : *list) {
        if (names.size() < kMaxNames) names.push(name);
      }
    }
    if (names.empty()) continue;
    out.push(Value::object(
        {{"names", std::move(names)}, {"sizeBytes", static_cast<unsigned long long>(image.size)}}));
  }
  return out;
}

Value addresses_of(const NodeFacts& facts, const NodeOptions& options) {
  Value out = Value::array();
  const auto& ips = options.addresses.empty() ? facts.addresses : options.addresses;
  for (const auto& ip : ips) {
    out.push(Value::object({{"type", "InternalIP"}, {"address", ip}}));
  }
  out.push(Value::object({{"type", "Hostname"},
                          {"address", options.hostname.empty() ? facts.name : options.hostname}}));
  return out;
}

Value labels_of(const NodeFacts& facts, const NodeOptions& options) {
  const std::string& arch = options.machine.architecture;
  Value labels = Value::object(
      {{"beta.kubernetes.io/arch", arch},
       {"beta.kubernetes.io/os", "linux"},
       {"kubernetes.io/arch", arch},
       {"kubernetes.io/hostname", options.hostname.empty() ? facts.name : options.hostname},
       {"kubernetes.io/os", "linux"}});
  for (const auto& [key, value] : options.labels) labels.set(key, value);
  return labels;
}

}  // namespace

Value node_capacity(const NodeOptions& options) {
  const Machine& machine = options.machine;
  Value capacity = Value::object({{"cpu", std::to_string(machine.cpus)}});
  for (const auto& [name, bytes] : machine.huge_pages) {
    capacity.set(name, Quantity(bytes, 0, Quantity::Format::binary_si).canonical());
  }
  if (machine.disk_bytes > 0) {
    capacity.set("ephemeral-storage", cat(machine.disk_bytes / 1024, "Ki"));
  }
  capacity.set("memory", cat(machine.memory_bytes / 1024, "Ki"));
  capacity.set("pods", std::to_string(options.max_pods));
  for (const auto& [name, amount] : options.capacity) capacity.set(name, amount);
  return capacity;
}

Value node_allocatable(const NodeOptions& options) {
  Value out = node_capacity(options);
  if (options.disk_reserve > 0 && !options.capacity.contains("ephemeral-storage")) {
    out.set("ephemeral-storage", std::to_string(std::max<std::int64_t>(
                                     options.machine.disk_bytes - options.disk_reserve, 0)));
  }
  return out;
}

Value node_status(const NodeFacts& facts, const NodeOptions& options, const NodeState& state,
                  const Value& before, Time now) {
  const Machine& machine = options.machine;
  Value capacity = node_capacity(options);
  Value allocatable = node_allocatable(options);
  for (const auto& [resource, amount] : state.devices) {
    capacity.set(resource, std::to_string(amount.capacity));
    allocatable.set(resource, std::to_string(amount.allocatable));
  }
  Value status = Value::object(
      {{"capacity", std::move(capacity)},
       {"allocatable", std::move(allocatable)},
       {"conditions", conditions(state, before, now)},
       {"addresses", addresses_of(facts, options)},
       {"nodeInfo", Value::object({{"machineID", machine.machine_id},
                                   {"systemUUID", machine.system_uuid},
                                   {"bootID", machine.boot_id},
                                   {"kernelVersion", machine.kernel_version},
                                   {"osImage", machine.os_image},
                                   {"containerRuntimeVersion", options.runtime_version},
                                   {"kubeletVersion", options.kubelet_version},
                                   {"kubeProxyVersion", ""},
                                   {"operatingSystem", "linux"},
                                   {"architecture", machine.architecture}})}});
  if (options.kubelet_port > 0) {
    const Value endpoint = Value::object({{"Port", options.kubelet_port}});
    status.set("daemonEndpoints", Value::object({{"kubeletEndpoint", endpoint}}));
  }
  if (!state.images.empty()) status.set("images", images_of(state.images));
  if (const auto& in_use = state.volumes_in_use;
      in_use && !(in_use->empty() && before["volumesInUse"].empty())) {
    Value names = Value::array();
    for (const auto& name : *in_use) names.push(name);
    status.set("volumesInUse", std::move(names));
  }
  if (!options.declared_features.empty()) {
    Value names;
    for (const auto& name : options.declared_features) names.push(name);
    status.set("declaredFeatures", std::move(names));
  }
  return status;
}

Value new_node(const NodeFacts& facts, const NodeOptions& options, const NodeState& state,
               Time now) {
  Value node = Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Node"},
       {"metadata", Value::object({{"name", facts.name},
                                   {"labels", labels_of(facts, options)},
                                   {"annotations", Value::object({{kAttachDetach, "true"}})}})},
       {"spec", Value::object()}});
  if (!options.taints.empty()) node.mut("spec").set("taints", options.taints);
  node.set("status", node_status(facts, options, state, Value(), now));
  return node;
}

std::vector<std::string> condition_events(const Value& before, const Value& after) {
  std::vector<std::string> out;
  for (const auto& pressure : kPressures) {
    const auto old = find_condition(before, pressure.type)["status"].as_string();
    const auto now = find_condition(after, pressure.type)["status"].as_string();
    if (old != now) out.emplace_back(now == "True" ? kDiskPressure.event : pressure.event);
  }
  const auto old = find_condition(before, "Ready")["status"].as_string();
  const auto ready = find_condition(after, "Ready")["status"].as_string();
  if (old != ready && ready == "True") out.emplace_back("NodeReady");
  // A node that never was ready did not become unready.
  if (!old.empty() && old != ready && ready == "False") out.emplace_back("NodeNotReady");
  return out;
}

Value metadata_patch(const Value& existing, const NodeFacts& facts, const NodeOptions& options) {
  Value labels = Value::object();
  const Value& known = existing["metadata"];
  const Value wanted = labels_of(facts, options);
  for (const auto& [key, value] : wanted.members()) {
    if (!(known["labels"][key] == value)) labels.set(key, value);
  }
  Value annotations = Value::object();
  if (known["annotations"][kAttachDetach].as_string() != "true") {
    annotations.set(kAttachDetach, "true");
  }
  if (labels.empty() && annotations.empty()) return {};
  Value metadata = Value::object();
  if (!labels.empty()) metadata.set("labels", std::move(labels));
  if (!annotations.empty()) metadata.set("annotations", std::move(annotations));
  return Value::object({{"metadata", std::move(metadata)}});
}

}  // namespace dibs::node
