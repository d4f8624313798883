#pragma once
// Pieces of volumes that need no folder of their own: paths of the host, /etc/hosts, sub-paths.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/pods/node_facts.h"

namespace dibs::node {

/// The type a hostPath asks for, checked or made. `hostPath type check failed: /x is not a file`.
Result<> check_host_path(const json::Value& host_path, const NodeFacts& facts);
/// A path without a type that is not there becomes a folder, as runtimes do it.
Result<> prepare_host_path(const json::Value& host_path, const NodeFacts& facts);

/// What a container of the pod reads as /etc/hosts.
std::string hosts_content(const json::Value& pod, const std::vector<std::string>& pod_ips,
                          const NodeFacts& facts);

/// Must be relative and without "..".
Result<> check_sub_path(const std::string& path);
/// As expand_references(), but a variable that is not there is an error.
Result<std::string> expand_strictly(std::string_view text,
                                    const std::vector<std::pair<std::string, std::string>>& env);

}  // namespace dibs::node
