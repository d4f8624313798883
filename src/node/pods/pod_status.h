#pragma once
// A pod's status as the node tells it: phase, conditions, container statuses. A pure function.
//
// A container that cannot start shows why in state.waiting, and what it was before in lastState.
// The phase becomes Succeeded or Failed only when `stopped` says that nothing of the pod is left
// that could matter: whoever sees the phase may give the pod's devices to others.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "node/pods/pod_view.h"

namespace dibs::node {

struct WaitingReason {
  std::string reason = {};
  std::string message = {};
};
using WaitingReasons = std::map<std::string, WaitingReason, std::less<>>;

/// Annotation of a container: its user, as status.containerStatuses[].user.linux shows it (JSON).
inline constexpr const char* kUserAnnotation = "dibs.dev/user";
/// The resources that it has (JSON): those it was started with, or was given since.
inline constexpr const char* kResourcesAnnotation = "dibs.dev/resources";

struct StatusInput {
  const json::Value& pod;
  const PodView& view;
  /// Why containers do not start; beats what the view says of a container that is not running.
  const WaitingReasons& waiting;
  std::function<bool(std::string_view name, const std::string& id)> started = {};
  std::function<bool(std::string_view name, const std::string& id)> ready = {};
  /// What an ended container left as its last words.
  std::function<std::string(const ContainerStatus& container)> termination_message = {};
  /// allocatedResourcesStatus of a container, or null.
  std::function<json::Value(std::string_view container)> health = {};
  std::vector<std::string> host_ips = {};
  /// Before "://" in container ids.
  std::string runtime_name = {};
  Time now = {};
  /// Everything has ended and is cleaned up: the phase may be a terminal one.
  bool stopped = false;
  /// Ended from outside: phase Failed with these; "" : not.
  std::string end_reason = {};
  std::string end_message = {};
  /// That was a disruption, with the same message.
  bool disrupted = false;
  /// What the spec asks for and the node has not granted; the pod has what it has granted.
  std::optional<WaitingReason> resize_pending = {};
  /// What it has granted and containers do not have yet.
  std::optional<WaitingReason> resize_in_progress = {};
};

/// All fields that the node writes. Conditions of others are taken over from the pod.
json::Value make_status(const StatusInput& input);

/// What to send to bring the pod's status on the server from one to the other: a strategic merge
/// patch with the uid, or null when there is nothing to say.
json::Value status_patch(const json::Value& pod, const json::Value& before,
                         const json::Value& after);

/// The conditions that the node keeps; others belong to whoever set them.
bool is_own_condition(std::string_view type);

/// The status of a pod that the node does not take.
json::Value rejected_status(const json::Value& pod, const std::string& reason,
                            const std::string& message, Time now);

}  // namespace dibs::node
