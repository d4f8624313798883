// What CNI plugins of ours are told, what they and the driver tell each other, and what a pod's
// annotations name. What is read keeps its meaning when it is written, and no name is a path.
#include <map>

#include "drivers/net/cni/coordinator_config.h"
#include "drivers/net/cni/ifacer.h"
#include "drivers/net/cni/plugin_call.h"
#include "drivers/net/cni/pod_routes.h"
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "json/parse.h"
#include "node/pods/pod_networks.h"

namespace dibs::fuzz {
namespace {

using namespace drivers::net;

bool is_path(std::string_view name) {
  return name.empty() || name == "." || name == ".." || name.find('/') != std::string_view::npos ||
         name.find('\0') != std::string_view::npos;
}

void check_messages(std::string_view text) {
  if (const auto request = read_nic_request(text)) {
    require(!is_path(request->pod.name_space) && !is_path(request->pod.name) &&
                !is_path(request->interface) && !is_path(request->container),
            "names in a request are names");
    const auto again = read_nic_request(json::write(to_value(*request)));
    require(again.ok() && to_value(*again) == to_value(*request), "a request reads back");
  }
  if (const auto addresses = read_nic_addresses(text)) {
    const auto again = read_nic_addresses(json::write(to_value(*addresses)));
    require(again.ok() && to_value(*again) == to_value(*addresses), "addresses read back");
    const auto result = ipam_result(*addresses, "1.0.0");
    require(json::parse(json::write(result)).ok(), "a result is JSON");
  }
  if (const auto nic = read_attached_nic(text)) {
    const auto again = read_attached_nic(json::write(to_value(*nic)));
    require(again.ok() && to_value(*again) == to_value(*nic), "what was attached reads back");
  }
}

void check_call(std::string_view configuration, std::string_view facts_text,
                const std::string& variable) {
  const auto variables = [&](const char* name) -> std::string {
    static const std::map<std::string, std::string> kUsual = {
        {"CNI_COMMAND", "ADD"}, {"CNI_CONTAINERID", "c"}, {"CNI_NETNS", "/n"}};
    const auto found = kUsual.find(name);
    return found == kUsual.end() ? variable : found->second;
  };
  const auto call = read_call(variables, configuration);
  if (!call.ok()) {
    require(json::parse(json::write(error_value(call.error(), ""))).ok(), "an error is JSON");
    return;
  }
  require(!is_path(call->interface) && call->interface.size() <= 15, "an interface is a name");
  require(json::parse(json::write(pass_on(*call))).ok(), "what is handed on is JSON");
  (void)result_addresses(call->previous());
  (void)read_ifacer_config(call->config).ok();
  const auto facts = read_coordinator_facts(facts_text);
  const auto config = read_coordinator_config(call->config, facts ? *facts : CoordinatorFacts{});
  if (!config.ok()) return;
  require(config->host_table < 253 || config->host_table > 255, "tables are not the kernel's");
  require(config->mac_prefix.empty() || !mac_bytes(config->mac_prefix + ":00:00:00:00").empty(),
          "a prefix is one");
}

void check_annotations(std::string_view first, std::string_view further) {
  const json::Value pod = json::Value::object(
      {{"metadata",
        json::Value::object(
            {{"name", "p"},
             {"namespace", "team"},
             {"annotations", json::Value::object({{node::kDefaultNetworkAnnotation, first},
                                                  {node::kNetworksAnnotation, further}})}})}});
  const auto networks = node::named_networks(pod);
  if (!networks.ok()) return;
  std::map<std::string, int> interfaces;
  for (const auto& network : *networks) {
    require(!is_path(network.name_space) && !is_path(network.name), "networks have names");
    require(!is_path(network.interface) && network.interface.size() <= 15, "interfaces, too");
    require(++interfaces[network.interface] == 1, "and each its own");
    require(network.interface != "lo" && network.interface != "veth0", "none of the sandbox's");
  }
}

}  // namespace

int fuzz_net_cni(const std::uint8_t* data, std::size_t size) {
  Texts texts(data, size);
  const auto message = texts.next();
  const auto configuration = texts.next();
  const auto facts = texts.next();
  const std::string variable(texts.next());
  const auto first = texts.next();
  check_messages(message);
  check_call(configuration, facts, variable);
  check_annotations(first, texts.rest());
  const std::string veth = host_veth_name(variable);
  require(veth.size() == 15 && veth.starts_with("veth") && !is_path(veth), "devices have names");
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_net_cni)
