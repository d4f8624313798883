#pragma once
// From a pod's spec to what the runtime is told: sandboxes and containers.
//
// Pure but for what the sources read. Errors are the waiting messages of containers with reason
// CreateContainerConfigError, and what stands after "Error: " in the Failed event.

#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/plugins/pod_claims.h"
#include "node/pods/env.h"
#include "node/pods/node_facts.h"
#include "node/pods/pod_resources.h"
#include "node/pods/volumes.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

/// Labels that sandboxes and containers carry, as the kubelet's do.
inline constexpr const char* kPodNameLabel = "io.kubernetes.pod.name";
inline constexpr const char* kPodNamespaceLabel = "io.kubernetes.pod.namespace";
inline constexpr const char* kPodUidLabel = "io.kubernetes.pod.uid";
inline constexpr const char* kContainerNameLabel = "io.kubernetes.container.name";
/// Annotations of containers.
inline constexpr const char* kRestartCountAnnotation = "io.kubernetes.container.restartCount";
inline constexpr const char* kContainerHashAnnotation = "io.kubernetes.container.hash";
inline constexpr const char* kTerminationPathAnnotation =
    "io.kubernetes.container.terminationMessagePath";
inline constexpr const char* kTerminationPolicyAnnotation =
    "io.kubernetes.container.terminationMessagePolicy";
inline constexpr const char* kGracePeriodAnnotation = "io.kubernetes.pod.terminationGracePeriod";

/// What a sandbox needs besides the pod. `notes`: warnings to record as events (DNSConfigForming,
/// MissingClusterDNS), as {reason, note}.
struct SandboxPlan {
  SandboxConfig config = {};
  std::vector<std::pair<std::string, std::string>> notes = {};
};

/// `attempt`: how many sandboxes the pod had before. The log folder is
/// <log_root>/<namespace>_<name>_<uid>.
Result<SandboxPlan> build_sandbox_config(const json::Value& pod, unsigned attempt,
                                         const NodeFacts& facts, const std::string& log_root);

/// Everything about one start of a container.
struct ContainerStart {
  const json::Value& pod;
  const json::Value& container;  // an element of the spec's containers, initContainers, …
  unsigned attempt = 0;          // restarts so far
  const ImageInfo& image;
  VolumeImages volume_images = {};
  PodAddresses addresses = {};
  ContainerDevices devices = {};
};

/// Makes the hosts and termination files on the way.
Result<ContainerConfig> build_container_config(const ContainerStart& start, const NodeFacts& facts,
                                               const EnvSources& sources, Volumes& volumes);

/// status.containerStatuses[].user and the like read the merged security context, too.
struct EffectiveSecurity {
  ContainerSecurity security = {};
  bool run_as_non_root = false;
};
/// Pod and container merged. Fails when the image or runAsUser break runAsNonRoot.
Result<EffectiveSecurity> effective_security(const json::Value& pod, const json::Value& container,
                                             const ImageInfo& image, const NodeFacts& facts);

/// The pod's name as its containers' host name: at most 63 characters. The second is the fully
/// qualified name, or "" without a subdomain.
struct PodHostname {
  std::string name = {};
  std::string fqdn = {};
};
PodHostname pod_hostname(const json::Value& pod, const NodeFacts& facts);

std::int64_t oom_score_adjust(const json::Value& pod, const json::Value& container,
                              const NodeFacts& facts);
/// Shares, quota and memory of the container's requests and limits.
ContainerLimits container_limits(const json::Value& pod, const json::Value& container,
                                 const NodeFacts& facts);
/// Of all containers together: where the pod as a whole is limited, or each of them.
ContainerLimits pod_limits(const json::Value& pod);
/// Of the pod below those of all pods, by its class: "burstable/pod<uid>".
std::string pod_group(const json::Value& pod);

/// "name_namespace(uid)", as messages of the kubelet name a pod.
std::string pod_text(const json::Value& pod);
/// Changes when the container's spec does: a running container with another one is restarted.
std::string container_hash(const json::Value& container);

}  // namespace dibs::node
