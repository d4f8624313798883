#pragma once
// What a pod asks for that this agent will not do. A field is honoured or the pod is refused, never
// run as if the field were not there: docs/nodes.md has the list. Labels of SELinux on a machine
// that knows none are taken, as every runtime takes them, and told of.

#include <optional>
#include <string>
#include <string_view>

#include "json/value.h"
#include "node/pods/node_facts.h"
#include "node/pods/pod_admission.h"

namespace dibs::node {

/// The first thing in the pod's spec that the node refuses, by the spec and the node's settings
/// alone.
std::optional<Rejection> refuse_spec(const json::Value& pod, const NodeFacts& facts);

/// The same of one container, for those that come later: the field below `path`, and why.
std::optional<std::string> refuse_container(const json::Value& container, std::string_view path,
                                            const NodeFacts& facts);

/// What of a pod that is not refused means nothing on this machine, and why; "": nothing.
std::string without_effect(const json::Value& pod, const NodeFacts& facts);

}  // namespace dibs::node
