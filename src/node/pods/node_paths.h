#pragma once
// A kubelet's machine as pods of a node see it.
//
// Manifests name paths that every kubelet has: /var/lib/kubelet/plugins, /var/run/cdi. Several
// nodes may live on one machine, each with a root folder of its own, so such a path lands in the
// folder of the node that the pod is on. Whoever takes a path of the host out of an object (a
// hostPath, a PersistentVolume) or from a driver (its socket, a mount in its CDI file) asks
// node_path() first; who hands a path below the root to a driver in a pod asks kubelet_path().
//
// A path above them (/, /var, /var/lib) shows the machine as it is: node_path() leaves it alone.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/pods/node_facts.h"

namespace dibs::node {

/// What NodeFacts::places is for a node with these folders. A node whose root is /var/lib/kubelet
/// has the machine to itself: only its logs may lie elsewhere.
std::vector<NodePlace> node_places(const std::string& root, const std::string& log_root);

/// Folders that a node reads CDI files in besides those of the machine; none where the root is
/// /var/lib/kubelet.
std::vector<std::string> own_cdi_folders(const std::string& root);

/// Where a path of a kubelet's machine lies on this one: without "." and "..", /var/run being /run.
/// Others are returned as they are.
std::string node_path(const NodeFacts& facts, std::string_view path);
/// The way back: what a pod that has the kubelet's folders mounted calls this path.
std::string kubelet_path(const NodeFacts& facts, std::string_view path);

/// What node_path() gives must lie in the node's folder, whatever links pods left there. A path
/// that is not there yet is fine.
Result<> check_node_path(const NodeFacts& facts, std::string_view path);

/// Mounts that are made below `folder` in a container reach the machine, and the other way round.
/// Of a folder outside of the node's root the machine decides: an error where it shares no mounts.
Result<> share_mounts(const NodeFacts& facts, const std::string& folder);

}  // namespace dibs::node
