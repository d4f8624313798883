#pragma once
// What CNI plugins are told and what they print, as functions of text and values: of plugins that
// others wrote, so anything may stand there.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

/// The interface whose addresses are the pod's.
inline constexpr const char* kDefaultInterface = "eth0";

/// A file of /etc/cni/net.d, or of a pod's network, of one plugin or of a list of them, as a list:
/// a name, and plugins that each have a type. `name` is that of one that has none.
Result<json::Value> parse_cni_configuration(std::string_view text, std::string_view name = {});

/// Ports of the machine that lead to the pod, as plugins are told of them.
json::Value cni_port_mappings(const SandboxConfig& sandbox);
/// One network of a sandbox, as its record keeps it: what was, or may have been added.
///
///     {"interface": "eth0", "name": "kube-system/a", "list": {…}, "mac": "", "ips": [], "result":
///     …}
json::Value cni_attachment(const SandboxNetwork& network, json::Value list);
/// All of a record, in the order in which they were added; of older records too.
json::Value cni_attachments(const json::Value& record);
/// What one plugin of an attachment's list is given. `previous`: the result of the one before; null
/// for none.
json::Value cni_input(const json::Value& attachment, const json::Value& plugin,
                      const SandboxConfig& sandbox, const json::Value& previous);
/// k8s.v1.cni.cncf.io/network-status of attachments that have results, as Multus writes it.
std::string cni_network_status(const json::Value& attachments);

/// The end of a plugin, and all that it printed.
struct CniOutput {
  int code = 0;
  std::string_view out = {};
  std::string_view err = {};
};
/// Its result: an object, which only an addition must have. Errors are the plugin's words.
Result<json::Value> read_cni_output(std::string_view command, const CniOutput& output);

/// The addresses of the pod that a result names, without their masks. An error where there is
/// none, or one that is no address: the pod's status could not say it.
Result<std::vector<std::string>> cni_addresses(const json::Value& result);

}  // namespace dibs::node
