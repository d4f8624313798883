#include "node/pods/pod_status.h"

#include "base/strings.h"
#include "node/pods/container_config.h"
#include "node/pods/pod_container_status.h"
#include "node/pods/pod_resources.h"
#include "node/pods/pod_spec.h"

namespace dibs::node {
namespace {

using json::Value;

const Value& by_name(const Value& statuses, std::string_view name) {
  for (const Value& status : statuses.items()) {
    if (status["name"].as_string() == name) return status;
  }
  return json::null_value();
}

bool has_ended(const Value& status) { return status["state"]["terminated"].is_object(); }
bool is_running(const Value& status) { return status["state"]["running"].is_object(); }

struct Counts {
  int pending_init = 0;
  int failed_init = 0;
  int waiting = 0;
  int running = 0;
  int stopped = 0;
  int succeeded = 0;
};

bool any_regular_started(const ContainerStatuses& statuses) {
  for (const Value& status : statuses.regular.items()) {
    if (!status["state"]["waiting"].is_object() || status["lastState"]["terminated"].is_object()) {
      return true;
    }
  }
  return false;
}

Counts count(const Value& pod, const ContainerStatuses& statuses) {
  Counts counts;
  for (const auto& container : containers_of(pod)) {
    if (container.kind == ContainerKind::ephemeral) continue;
    const bool regular = container.kind == ContainerKind::regular;
    const Value& status = by_name(regular ? statuses.regular : statuses.init, container.name());
    const Value& last = status["lastState"]["terminated"];
    if (regular) {
      if (is_running(status)) {
        ++counts.running;
      } else if (has_ended(status)) {
        ++counts.stopped;
        if (status["state"]["terminated"]["exitCode"].as_int() == 0) ++counts.succeeded;
      } else if (last.is_object()) {
        ++counts.stopped;
      } else {
        ++counts.waiting;
      }
    } else if (container.kind == ContainerKind::sidecar) {
      if (!has_ended(status) && !last.is_object() && !status["started"].as_bool()) {
        ++counts.pending_init;
      }
    } else if (has_ended(status)) {
      if (status["state"]["terminated"]["exitCode"].as_int() != 0) ++counts.failed_init;
    } else if (last.is_object() && last["exitCode"].as_int() != 0) {
      ++counts.failed_init;
      ++counts.pending_init;
    } else {
      ++counts.pending_init;
    }
  }
  return counts;
}

std::string phase_of(const StatusInput& input, const ContainerStatuses& statuses) {
  const std::string_view policy = input.pod["spec"]["restartPolicy"].as_string("Always");
  const Counts counts = count(input.pod, statuses);
  if (counts.failed_init > 0 && policy == "Never") return "Failed";
  if (counts.pending_init > 0 && !any_regular_started(statuses)) return "Pending";
  if (counts.waiting > 0) return "Pending";
  if (counts.running > 0) return "Running";
  if (counts.stopped == 0) return "Pending";
  if (counts.stopped == counts.succeeded && (policy != "Always" || input.stopped)) {
    return "Succeeded";
  }
  if (policy == "Never" || input.stopped) return "Failed";
  return "Running";
}

constexpr const char* kDisruption = "DisruptionTarget";
constexpr const char* kResizePending = "PodResizePending";
constexpr const char* kResizeInProgress = "PodResizeInProgress";
constexpr const char* kByNode = "TerminationByKubelet";

class Conditions {
 public:
  Conditions(const StatusInput& input, const ContainerStatuses& statuses, std::string_view phase)
      : input_(input), statuses_(statuses), phase_(phase) {}

  Value make() {
    sandbox();
    initialized();
    const Value containers = containers_ready();
    ready(containers);
    put(containers);
    if (find_condition(input_.pod["status"], "PodScheduled").is_null()) {
      put(condition("PodScheduled", true, "", ""));
    } else {
      // Who scheduled the pod keeps his condition; only the generation is ours to tell.
      Value kept = find_condition(input_.pod["status"], "PodScheduled");
      set_generation(kept);
      out_.push(std::move(kept));
    }
    resize();
    if (input_.disrupted && input_.stopped) {
      put(condition(kDisruption, true, kByNode, input_.end_message));
    }
    for (const Value& other : input_.pod["status"]["conditions"].items()) {
      const std::string_view type = other["type"].as_string();
      if (!holds(type) && !is_own_condition(type)) out_.push(other);
    }
    return std::move(out_);
  }

 private:
  bool holds(std::string_view type) const {
    for (const Value& condition : out_.items()) {
      if (condition["type"].as_string() == type) return true;
    }
    return false;
  }

  void set_generation(Value& condition) const {
    const Value& generation = input_.pod["metadata"]["generation"];
    if (generation.as_int() > 0) condition.set("observedGeneration", generation);
  }

  Value condition(const char* type, bool status, std::string_view reason,
                  std::string_view message) const {
    Value out = Value::object({{"type", type}});
    set_generation(out);
    out.set("status", status ? "True" : "False");
    out.set("lastProbeTime", Value());
    const Value& before = find_condition(input_.pod["status"], type);
    const bool same = before["status"] == out["status"] && before["lastTransitionTime"].is_string();
    out.set("lastTransitionTime",
            same ? before["lastTransitionTime"] : Value(format_rfc3339(input_.now)));
    if (!reason.empty()) out.set("reason", reason);
    if (!message.empty()) out.set("message", message);
    return out;
  }

  void put(Value condition) { out_.push(std::move(condition)); }

  void sandbox() {
    const SandboxStatus* sandbox = input_.view.sandbox();
    if (sandbox == nullptr) {
      put(condition("PodReadyToStartContainers", false, "PodSandboxNotReady",
                    "no pod sandbox exists"));
    } else if (sandbox->state != SandboxState::ready || input_.stopped) {
      put(condition("PodReadyToStartContainers", false, "PodSandboxNotReady",
                    "pod sandbox is not ready"));
    } else {
      put(condition("PodReadyToStartContainers", true, "", ""));
    }
  }

  void resize() {
    if (const auto& why = input_.resize_pending) {
      put(condition(kResizePending, true, why->reason, why->message));
    }
    if (const auto& why = input_.resize_in_progress) {
      put(condition(kResizeInProgress, true, why->reason, why->message));
    }
  }

  static std::string listed(const std::vector<std::string>& names) {
    return cat("[", join(names, " "), "]");
  }

  void initialized() {
    std::vector<std::string> incomplete;
    for (const auto& container : containers_of(input_.pod)) {
      const Value& status = by_name(statuses_.init, container.name());
      const bool stays = container.kind == ContainerKind::sidecar;
      if (!stays && container.kind != ContainerKind::init) continue;
      if (!status[stays ? "started" : "ready"].as_bool()) {
        incomplete.emplace_back(container.name());
      }
    }
    if (phase_ == "Succeeded") {
      put(condition("Initialized", true, "PodCompleted", ""));
    } else if (incomplete.empty() || any_regular_started(statuses_)) {
      put(condition("Initialized", true, "", ""));
    } else {
      put(condition("Initialized", false, "ContainersNotInitialized",
                    cat("containers with incomplete status: ", listed(incomplete))));
    }
  }

  Value containers_ready() const {
    if (phase_ == "Succeeded") return condition("ContainersReady", false, "PodCompleted", "");
    if (phase_ == "Failed") return condition("ContainersReady", false, "PodFailed", "");
    std::vector<std::string> unready;
    for (const auto& container : containers_of(input_.pod)) {
      const bool stays = container.kind == ContainerKind::sidecar;
      if (!stays && container.kind != ContainerKind::regular) continue;
      const Value& status = by_name(stays ? statuses_.init : statuses_.regular, container.name());
      if (!status["ready"].as_bool()) unready.emplace_back(container.name());
    }
    if (unready.empty()) return condition("ContainersReady", true, "", "");
    return condition("ContainersReady", false, "ContainersNotReady",
                     cat("containers with unready status: ", listed(unready)));
  }

  void ready(const Value& containers) {
    if (containers["status"].as_string() != "True") {
      return put(condition("Ready", false, containers["reason"].as_string(),
                           containers["message"].as_string()));
    }
    std::vector<std::string> missing;
    for (const Value& gate : input_.pod["spec"]["readinessGates"].items()) {
      const std::string_view type = gate["conditionType"].as_string();
      const Value& found = find_condition(input_.pod["status"], type);
      if (found.is_null()) {
        missing.push_back(cat("corresponding condition of pod readiness gate ", quoted(type),
                              " does not exist."));
      } else if (found["status"].as_string() != "True") {
        missing.push_back(cat("the status of pod readiness gate ", quoted(type),
                              " is not \"True\", but ", found["status"].as_string()));
      }
    }
    if (missing.empty()) return put(condition("Ready", true, "", ""));
    put(condition("Ready", false, "ReadinessGatesNotReady", join(missing, ", ")));
  }

  const StatusInput& input_;
  const ContainerStatuses& statuses_;
  const std::string_view phase_;
  Value out_;
};

void set_addresses(const StatusInput& input, Value& out) {
  const Value& before = input.pod["status"];
  std::vector<std::string> ips;
  const SandboxStatus* sandbox = input.view.sandbox();
  if (input.pod["spec"]["hostNetwork"].as_bool()) {
    ips = input.host_ips;
  } else if (sandbox != nullptr) {
    ips = sandbox->ips;
  }
  if (!input.host_ips.empty()) {
    out.set("hostIP", input.host_ips.front());
    Value list;
    for (const auto& ip : input.host_ips) list.push(Value::object({{"ip", ip}}));
    out.set("hostIPs", std::move(list));
  }
  // One that has ended keeps the addresses it had.
  const bool kept = ips.empty() && (input.stopped ||
                                    (sandbox != nullptr && sandbox->state != SandboxState::ready));
  if (kept) {
    if (before.contains("podIP")) out.set("podIP", before["podIP"]);
    if (before.contains("podIPs")) out.set("podIPs", before["podIPs"]);
  } else if (!ips.empty()) {
    out.set("podIP", ips.front());
    Value list;
    for (const auto& ip : ips) list.push(Value::object({{"ip", ip}}));
    out.set("podIPs", std::move(list));
  }
}

void set_resources(const StatusInput& input, Value& out) {
  if (Value requests = shown_requests(input.pod); !requests.empty()) {
    out.set("allocatedResources", std::move(requests));
  }
  // Until all is done the pod has what it had.
  const Value& before = input.pod["status"]["resources"];
  Value resources =
      input.resize_in_progress && before.is_object() ? before : shown_resources(input.pod);
  if (!resources.empty()) out.set("resources", std::move(resources));
}

}  // namespace

bool is_own_condition(std::string_view type) {
  return type == "PodReadyToStartContainers" || type == "Initialized" || type == "Ready" ||
         type == "ContainersReady" || type == "PodScheduled" || type == kResizePending ||
         type == kResizeInProgress;
}

Value make_status(const StatusInput& input) {
  const Value& before = input.pod["status"];
  const ContainerStatuses statuses = make_container_statuses(input);
  std::string phase = phase_of(input, statuses);
  if (is_terminal(input.pod)) {
    phase = before["phase"].str();
  } else if (input.stopped && !input.end_reason.empty()) {
    phase = "Failed";
  } else if (input.stopped && phase != "Succeeded") {
    phase = "Failed";
  } else if (!input.stopped && (phase == "Succeeded" || phase == "Failed")) {
    // Not before everything is cleaned up. A pod whose init container failed never ran.
    phase = before["phase"].as_string() == "Running" || any_regular_started(statuses) ? "Running"
                                                                                      : "Pending";
  }
  Value out = Value::object();
  if (const Value& generation = input.pod["metadata"]["generation"]; generation.as_int() > 0) {
    out.set("observedGeneration", generation);
  }
  out.set("phase", phase);
  out.set("conditions", Conditions(input, statuses, phase).make());
  if (input.stopped && !input.end_reason.empty()) {
    out.set("message", input.end_message);
    out.set("reason", input.end_reason);
  } else if (is_terminal(input.pod)) {
    for (const char* key : {"message", "reason"}) {
      if (before.contains(key)) out.set(key, before[key]);
    }
  }
  set_addresses(input, out);
  out.set("startTime",
          before["startTime"].is_string() ? before["startTime"] : Value(format_rfc3339(input.now)));
  if (!statuses.init.empty()) out.set("initContainerStatuses", statuses.init);
  if (!statuses.regular.empty()) out.set("containerStatuses", statuses.regular);
  if (!statuses.ephemeral.empty()) out.set("ephemeralContainerStatuses", statuses.ephemeral);
  out.set("qosClass",
          before["qosClass"].is_string() ? before["qosClass"] : Value(qos_class(input.pod)));
  set_resources(input, out);
  return out;
}

Value rejected_status(const Value& pod, const std::string& reason, const std::string& message,
                      Time now) {
  Value out = Value::object();
  if (pod["metadata"]["generation"].as_int() > 0) {
    out.set("observedGeneration", pod["metadata"]["generation"]);
  }
  out.set("phase", "Failed");
  out.set("message", cat("Pod was rejected: ", message));
  out.set("reason", reason);
  out.set("startTime", format_rfc3339(now));
  out.set("qosClass", qos_class(pod));
  return out;
}

Value status_patch(const Value& pod, const Value& before, const Value& after) {
  // Fields that the node owns; what it leaves out of them is to go.
  static constexpr const char* kOwned[] = {"observedGeneration",
                                           "phase",
                                           "message",
                                           "reason",
                                           "hostIP",
                                           "hostIPs",
                                           "podIP",
                                           "startTime",
                                           "qosClass",
                                           "allocatedResources",
                                           "resources",
                                           "initContainerStatuses",
                                           "containerStatuses",
                                           "ephemeralContainerStatuses"};
  Value status;
  for (const char* key : kOwned) {
    const Value* wanted = after.find(key);
    if (wanted == nullptr) {
      // A pod that was not taken keeps the statuses of its containers.
      const bool optional = std::string_view(key) != "message" && std::string_view(key) != "reason";
      if (!optional && before.contains(key)) status.set(key, Value());
    } else if (!(before[key] == *wanted)) {
      status.set(key, *wanted);
    }
  }
  Value conditions;
  for (const Value& condition : after["conditions"].items()) {
    const std::string_view type = condition["type"].as_string();
    const Value& old = find_condition(before, type);
    const bool ours = is_own_condition(type) ||
                      (type == kDisruption && condition["reason"].as_string() == kByNode);
    if (!ours || old == condition) continue;
    Value changed = condition;
    // The entries of the list are merged, too.
    for (const char* key : {"reason", "message"}) {
      if (old.contains(key) && !condition.contains(key)) changed.set(key, Value());
    }
    conditions.push(std::move(changed));
  }
  for (const Value& old : before["conditions"].items()) {
    const std::string_view type = old["type"].as_string();
    if (!is_own_condition(type) || !find_condition(after, type).is_null()) continue;
    conditions.push(Value::object({{"$patch", "delete"}, {"type", type}}));
  }
  if (!conditions.empty()) status.set("conditions", std::move(conditions));
  if (after.contains("podIPs") && !(after["podIPs"] == before["podIPs"])) {
    // The list is merged by address: the old ones have to be told to go.
    Value ips = after["podIPs"];
    for (const Value& old : before["podIPs"].items()) {
      bool stays = false;
      for (const Value& ip : after["podIPs"].items()) stays = stays || ip["ip"] == old["ip"];
      if (!stays) ips.push(Value::object({{"$patch", "delete"}, {"ip", old["ip"]}}));
    }
    status.set("podIPs", std::move(ips));
  }
  if (status.empty()) return {};
  return Value::object({{"metadata", Value::object({{"uid", pod["metadata"]["uid"]}})},
                        {"status", std::move(status)}});
}

}  // namespace dibs::node
