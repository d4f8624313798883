#include "node/pods/pod_networks.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/interface_name.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/pod_spec.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kPods{"", "v1", "pods"};
const client::Gvr kDefinitions{"k8s.cni.cncf.io", "v1", "network-attachment-definitions"};

constexpr std::string_view kDefaultInterfaceName = "eth0";
/// Where a default network lies whose namespace is not said.
constexpr std::string_view kInstallNamespace = "kube-system";
/// Each is a handful of processes, run by root.
constexpr std::size_t kMostNetworks = 16;

bool all_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || others.find(c) != others.npos;
  });
}

bool is_object_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && all_of(text, "-.") && text.front() != '.' &&
         text.front() != '-' && text.find("..") == text.npos;
}

/// Six bytes in hexadecimal, of one machine, not of a group of them.
bool is_mac(std::string_view text) {
  const auto bytes = split(text, ':');
  if (bytes.size() != 6) return false;
  for (const auto byte : bytes) {
    unsigned value = 0;
    const auto read = std::from_chars(byte.data(), byte.data() + byte.size(), value, 16);
    if (byte.size() != 2 || read.ec != std::errc() || read.ptr != byte.data() + 2) return false;
    if (byte.data() == text.data() && (value & 1) != 0) return false;
  }
  return true;
}

/// With or without a prefix length.
bool is_address(std::string_view text) {
  const auto slash = text.find('/');
  const std::string address(text.substr(0, slash));
  unsigned char bytes[sizeof(in6_addr)];
  const bool v4 = ::inet_pton(AF_INET, address.c_str(), bytes) == 1;
  if (!v4 && ::inet_pton(AF_INET6, address.c_str(), bytes) != 1) return false;
  if (slash == text.npos) return true;
  const auto mask = text.substr(slash + 1);
  unsigned bits = 0;
  const auto read = std::from_chars(mask.data(), mask.data() + mask.size(), bits);
  return !mask.empty() && read.ec == std::errc() && read.ptr == mask.data() + mask.size() &&
         bits <= (v4 ? 32U : 128U);
}

Error wrong(std::string_view annotation, std::string_view why) {
  return Error::invalid(cat("annotation ", annotation, ": ", why));
}

/// [NAMESPACE/]NAME[@INTERFACE]
NetworkName short_form(std::string_view text) {
  NetworkName out;
  text = trim(text);
  if (const auto at = text.find('@'); at != text.npos) {
    out.interface = text.substr(at + 1);
    // An empty one is not the same as none.
    if (out.interface.empty()) out.interface = "/";
    text = text.substr(0, at);
  }
  if (const auto slash = text.find('/'); slash != text.npos) {
    out.name_space = text.substr(0, slash);
    if (out.name_space.empty()) out.name_space = "/";
    text = text.substr(slash + 1);
  }
  out.name = text;
  return out;
}

Result<NetworkName> long_form(const Value& item, std::string_view annotation) {
  if (!item.is_object()) return wrong(annotation, "an item of the list is no object");
  NetworkName out;
  for (const auto& [key, value] : item.members()) {
    if (key == "ips" && value.is_array()) {
      for (const auto& ip : value.items()) out.ips.push_back(ip.str());
    } else if (!value.is_string()) {
      return wrong(annotation, cat(key, ": is not supported, or of the wrong type"));
    } else if (key == "name") {
      out.name = value.str();
    } else if (key == "namespace") {
      out.name_space = value.str();
    } else if (key == "interface" || key == "interfaceRequest") {
      out.interface = value.str();
    } else if (key == "mac") {
      out.mac = value.str();
    } else {
      return wrong(annotation, cat(key, ": is not supported"));
    }
  }
  return out;
}

Result<std::vector<NetworkName>> items_of(std::string_view text, std::string_view annotation) {
  std::vector<NetworkName> out;
  if (text.find_first_of("[{\"") == text.npos) {
    for (const auto item : split(text, ',')) out.push_back(short_form(item));
  } else {
    auto list = json::parse(text);
    if (!list) return wrong(annotation, cat("is not JSON: ", list.error().message()));
    if (!list->is_array()) return wrong(annotation, "must be a list");
    for (const auto& item : list->items()) {
      DIBS_TRY(out.emplace_back(), long_form(item, annotation));
    }
  }
  if (out.size() > kMostNetworks) {
    return wrong(annotation,
                 cat("names ", out.size(), " networks, and ", kMostNetworks, " are the most"));
  }
  return out;
}

Result<> check(const NetworkName& network, std::string_view annotation) {
  if (!is_object_name(network.name_space) || network.name_space.find('.') != std::string::npos) {
    return wrong(annotation, cat(quoted(network.name_space), " is not a namespace"));
  }
  if (!is_object_name(network.name)) {
    return wrong(annotation, cat(quoted(network.name), " is not the name of a network"));
  }
  if (!is_interface_name(network.interface)) {
    return wrong(annotation, cat(quoted(network.interface), " is not the name of an interface"));
  }
  if (!network.mac.empty() && !is_mac(network.mac)) {
    return wrong(annotation, cat("mac: ", quoted(network.mac), " is not the address of a device"));
  }
  for (const auto& ip : network.ips) {
    if (!is_address(ip)) return wrong(annotation, cat("ips: ", quoted(ip), " is not an address"));
  }
  return success();
}

Result<> add_default_network(const Value& pod, std::vector<NetworkName>& out) {
  const std::string_view text =
      pod["metadata"]["annotations"][kDefaultNetworkAnnotation].as_string();
  if (trim(text).empty()) return success();
  DIBS_TRY(auto items, items_of(text, kDefaultNetworkAnnotation));
  if (items.size() != 1) return wrong(kDefaultNetworkAnnotation, "must name one network");
  NetworkName& network = items.front();
  if (network.name_space.empty()) network.name_space = kInstallNamespace;
  if (network.interface.empty()) network.interface = kDefaultInterfaceName;
  if (network.interface != kDefaultInterfaceName) {
    return wrong(kDefaultNetworkAnnotation, "its interface is eth0 and can have no other name");
  }
  DIBS_CHECK(check(network, kDefaultNetworkAnnotation));
  out.push_back(std::move(network));
  return success();
}

Result<> add_further_networks(const Value& pod, std::vector<NetworkName>& out) {
  const std::string_view text = pod["metadata"]["annotations"][kNetworksAnnotation].as_string();
  if (trim(text).empty()) return success();
  DIBS_TRY(auto items, items_of(text, kNetworksAnnotation));
  // Those of the sandbox itself, of the default network, and of the way to the host.
  std::set<std::string, std::less<>> taken = {"lo", "eth0", "veth0", "all", "default"};
  for (std::size_t i = 0; i < items.size(); ++i) {
    NetworkName& network = items[i];
    if (network.name_space.empty()) network.name_space = namespace_of(pod);
    if (network.interface.empty()) network.interface = cat("net", i + 1);
    DIBS_CHECK(check(network, kNetworksAnnotation));
    if (!taken.insert(network.interface).second) {
      return wrong(kNetworksAnnotation,
                   cat("interface ", quoted(network.interface), " is there already"));
    }
    out.push_back(std::move(network));
  }
  return success();
}

Result<> check_namespace(const NetworkName& network, const Value& pod, const NodeFacts& facts) {
  const auto& shared = facts.network_namespaces;
  const auto has = [&](std::string_view name) {
    return std::find(shared.begin(), shared.end(), name) != shared.end();
  };
  if (network.name_space == namespace_of(pod) || has(network.name_space) || has("*")) {
    return success();
  }
  return Error::forbidden(cat("network ", network.name_space, "/", network.name,
                              ": pods of namespace ", quoted(namespace_of(pod)),
                              " may only use networks of their own namespace and of those that "
                              "the node shares (--network-namespaces ",
                              join(shared, ","), ")"));
}

/// spec.config of its definition.
Result<std::string> configuration_of(client::Client& client, const NetworkName& network) {
  const auto definition = client.get(kDefinitions, network.name_space, network.name);
  if (!definition) {
    const Error& error = definition.error();
    const bool no_kind =
        error.code() == Code::not_found && error.message().find(network.name) == std::string::npos;
    return error.within(cat("cannot find a network-attachment-definition (", network.name,
                            ") in namespace (", network.name_space, ")",
                            no_kind ? ": the server has no such kind, k8s.cni.cncf.io/v1" : ""));
  }
  return (*definition)["spec"]["config"].str();
}

bool names_networks(const Value& pod) {
  const Value& annotations = pod["metadata"]["annotations"];
  return !trim(annotations[kDefaultNetworkAnnotation].as_string()).empty() ||
         !trim(annotations[kNetworksAnnotation].as_string()).empty();
}

bool is_pci_address(std::string_view text) {
  return !text.empty() && text.size() <= 16 &&
         text.find_first_not_of("0123456789abcdefABCDEF:.") == text.npos;
}

/// What a driver has left for this interface of the pod.
Result<std::string> device_of(const NodeFacts& facts, const Value& pod,
                              std::string_view interface) {
  const std::string path = cat(facts.root, "/network-devices/", uid_of(pod), "_", interface);
  if (facts.root.empty() || !runtime::system_files().exists(path)) return std::string();
  DIBS_TRY(const std::string text, runtime::system_files().read(path));
  const std::string device(trim(text));
  if (!is_pci_address(device)) return Error::invalid(cat(path, ": is not the address of a device"));
  return device;
}

bool has_host_ports(const Value& pod) {
  for (const auto& container : containers_of(pod)) {
    for (const auto& port : container.spec["ports"].items()) {
      if (port["hostPort"].as_int() != 0) return true;
    }
  }
  return false;
}

bool maps_ports(const std::string& config) {
  const auto list = json::parse(config);
  if (!list) return true;  // the runtime says what is wrong with it
  for (const auto& plugin : (*list)["plugins"].items()) {
    if (plugin["capabilities"]["portMappings"].as_bool()) return true;
  }
  return (*list)["capabilities"]["portMappings"].as_bool();
}

}  // namespace

Result<std::vector<NetworkName>> named_networks(const Value& pod) {
  std::vector<NetworkName> out;
  DIBS_CHECK(add_default_network(pod, out));
  DIBS_CHECK(add_further_networks(pod, out));
  return out;
}

Result<NetworksPlan> plan_networks(client::Client& client, const Value& pod,
                                   const NodeFacts& facts) {
  NetworksPlan out;
  const bool host_network = pod["spec"]["hostNetwork"].as_bool();
  if (host_network || facts.simulated) {
    if (names_networks(pod)) {
      out.notes.emplace_back("NetworksIgnored", cat("The pod's networks are not set up: ",
                                                    host_network ? "it uses the network of its host"
                                                                 : "this node is simulated"));
    }
    return out;
  }
  if (!names_networks(pod) && pod["spec"]["resourceClaims"].empty()) return out;
  // A driver may have named networks of its claim since the agent last heard of the pod.
  DIBS_TRY(const Value now, client.get(kPods, namespace_of(pod), name_of(pod)));
  if (uid_of(now) != uid_of(pod)) {
    return Error::conflict(cat("pod ", name_of(pod), " has been replaced by another one"));
  }
  DIBS_TRY(const auto networks, named_networks(now));
  for (const auto& network : networks) {
    DIBS_CHECK(check_namespace(network, pod, facts));
    DIBS_TRY(std::string config, configuration_of(client, network));
    if (network.interface == kDefaultInterfaceName && has_host_ports(pod) && !maps_ports(config)) {
      out.notes.emplace_back("HostPortIgnored",
                             cat("Ports of the host do not lead to the pod: network ",
                                 network.name_space, "/", network.name, " maps none"));
    }
    DIBS_TRY(std::string device, device_of(facts, pod, network.interface));
    out.networks.push_back({cat(network.name_space, "/", network.name), network.interface,
                            std::move(config), network.mac, network.ips, std::move(device)});
  }
  return out;
}

}  // namespace dibs::node
