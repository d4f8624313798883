#pragma once
// The environment of a container: literals with $(VAR) references, values from configMaps, secrets,
// fields of the pod and amounts of resources, and the variables that name services.
//
// Later entries win over earlier ones: services, then envFrom in its order, then env in its order.
// A reference $(X) in a value means the X that stands before it.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/pods/node_facts.h"
#include "node/pods/volume_objects.h"

namespace dibs::node {

/// Names and values in the order in which they were first named.
using EnvList = std::vector<std::pair<std::string, std::string>>;

struct EnvSources {
  PodObjects& objects;
  /// Services of all namespaces that the node knows of; may be empty.
  std::function<std::vector<json::Value>()> services = {};
};

/// What only the running pod knows.
struct PodAddresses {
  std::vector<std::string> pod_ips = {};
  std::vector<std::string> host_ips = {};
};

/// The error is the waiting message of CreateContainerConfigError: couldn't find key k in
/// ConfigMap ns/name.
Result<EnvList> make_environment(const json::Value& pod, const json::Value& container,
                                 const NodeFacts& facts, const PodAddresses& addresses,
                                 const EnvSources& sources);

/// `text` with $(NAME) replaced, $$ read as $, and what is unknown left as it stands; `missing`
/// gets the first unknown name.
std::string expand_references(std::string_view text, const EnvList& env,
                              std::string* missing = nullptr);

/// A field of the pod as downwardAPI gives it: metadata.labels as key="value" lines,
/// metadata.annotations['x'], spec.nodeName, status.podIP, …
Result<std::string> pod_field(const json::Value& pod, std::string_view path, const NodeFacts& facts,
                              const PodAddresses& addresses);

/// resourceFieldRef of a container: limits fall back to what the node has. The amount is rounded up
/// to the divisor.
Result<std::string> resource_field(const json::Value& container, std::string_view resource,
                                   std::string_view divisor, const NodeFacts& facts);

}  // namespace dibs::node
