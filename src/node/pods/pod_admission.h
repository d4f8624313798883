#pragma once
// Whether a node takes a pod that was sent to it. The scheduler decides well, but pods also come
// with a nodeName written by hand, and several schedulers do not know of each other.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "json/value.h"

namespace dibs::node {

inline constexpr const char* kNodeAffinity = "NodeAffinity";

struct Rejection {
  std::string reason = {};  // "OutOfcpu", "NodeAffinity"
  std::string message = {};
};

/// `node` is the Node object; `others` the pods that the node has taken and that have not ended;
/// `held` resources that the pod has already. Nothing: the pod is welcome.
std::optional<Rejection> admit_pod(const json::Value& pod, const json::Value& node,
                                   const std::vector<json::Value>& others,
                                   const std::set<std::string>& held);

/// One of the terms of a core/v1 NodeSelector holds.
bool node_selector_holds(const json::Value& selector, const json::Value& node);

}  // namespace dibs::node
