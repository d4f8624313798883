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

/// A file of /etc/cni/net.d, of one plugin or of a list of them, as a list: a name, and plugins
/// that each have a type.
Result<json::Value> parse_cni_configuration(std::string_view text);

/// Ports of the machine that lead to the pod, as plugins are told of them.
json::Value cni_port_mappings(const SandboxConfig& sandbox);
/// What one plugin of a list is given. `previous`: the result of the one before; null for none.
json::Value cni_input(const json::Value& list, const json::Value& plugin,
                      const SandboxConfig& sandbox, const json::Value& previous);

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
