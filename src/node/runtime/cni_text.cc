#include "node/runtime/cni_text.h"

#include <arpa/inet.h>

#include <charconv>
#include <optional>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;

bool is_default_attachment(const Value& attachment) {
  return attachment["interface"].as_string() == kDefaultInterface;
}

/// The address of ADDRESS/BITS as machines write it; nothing when it is not one.
std::optional<std::string> address_of(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string address(text.substr(0, slash));
  const std::string_view mask = text.substr(slash + 1);
  unsigned bits = 0;
  const auto read = std::from_chars(mask.data(), mask.data() + mask.size(), bits);
  if (mask.empty() || read.ec != std::errc() || read.ptr != mask.data() + mask.size()) {
    return std::nullopt;
  }
  // A text with a zero in it would end there.
  if (address.find('\0') != std::string::npos) return std::nullopt;
  unsigned char bytes[sizeof(in6_addr)];
  char printed[INET6_ADDRSTRLEN];
  for (const int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, address.c_str(), bytes) != 1) continue;
    if (bits > (family == AF_INET ? 32U : 128U)) return std::nullopt;
    return ::inet_ntop(family, bytes, printed, sizeof printed);
  }
  return std::nullopt;
}

// Else the type would be a path to any program.
bool is_plugin_name(std::string_view type) {
  return !type.empty() &&
         type.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos &&
         !type.starts_with('.');
}

/// What the pod asks of this network and the plugin says that it can do.
Value runtime_config(const Value& attachment, const Value& capabilities,
                     const SandboxConfig& sandbox) {
  Value config = Value::object();
  // Ports lead to the pod's address, which is that of eth0.
  if (capabilities["portMappings"].as_bool() && is_default_attachment(attachment)) {
    if (Value ports = cni_port_mappings(sandbox); !ports.empty()) {
      config.set("portMappings", std::move(ports));
    }
  }
  if (capabilities["mac"].as_bool() && !attachment["mac"].as_string().empty()) {
    config.set("mac", attachment["mac"]);
  }
  if (capabilities["ips"].as_bool() && !attachment["ips"].empty()) {
    config.set("ips", attachment["ips"]);
  }
  return config;
}

}  // namespace

Result<Value> parse_cni_configuration(std::string_view text, std::string_view name) {
  DIBS_TRY(Value value, json::parse(text));
  if (!value.is_object()) return Error::invalid("it is no object");
  if (!name.empty() && value["name"].as_string().empty()) value.set("name", name);
  if (!value["name"].is_string()) return Error::invalid("it has no name");
  if (!value.contains("plugins")) {
    value = Value::object({{"cniVersion", value["cniVersion"]},
                           {"name", value["name"]},
                           {"plugins", Value::array({value})}});
  }
  if (value["plugins"].empty()) return Error::invalid("plugins: at least one is needed");
  for (std::size_t i = 0; i < value["plugins"].size(); ++i) {
    const Value& plugin = value["plugins"][i];
    if (!is_plugin_name(plugin["type"].as_string())) {
      return Error::invalid(cat("plugins[", i, "].type: ", quoted(plugin["type"].as_string()),
                                " is not the name of a plugin"));
    }
    const Value& ipam = plugin["ipam"]["type"];
    if (!ipam.is_null() && !ipam.as_string().empty() && !is_plugin_name(ipam.as_string())) {
      return Error::invalid(cat("plugins[", i, "].ipam.type: ", quoted(ipam.as_string()),
                                " is not the name of a plugin"));
    }
  }
  return value;
}

Value cni_port_mappings(const SandboxConfig& sandbox) {
  Value list = Value::array();
  for (const auto& port : sandbox.ports) {
    if (port.host_port == 0) continue;
    Value mapping = Value::object({{"hostPort", port.host_port},
                                   {"containerPort", port.container_port},
                                   {"protocol", to_lower(port.protocol)}});
    if (!port.host_ip.empty()) mapping.set("hostIP", port.host_ip);
    list.push(std::move(mapping));
  }
  return list;
}

Value cni_attachment(const SandboxNetwork& network, Value list) {
  Value out = Value::object(
      {{"interface", network.interface}, {"name", network.name}, {"list", std::move(list)}});
  if (!network.mac.empty()) out.set("mac", network.mac);
  if (!network.device.empty()) out.set("device", network.device);
  if (!network.ips.empty()) {
    Value ips = Value::array();
    for (const auto& ip : network.ips) ips.push(ip);
    out.set("ips", std::move(ips));
  }
  return out;
}

Value cni_attachments(const Value& record) {
  if (record["attachments"].is_array()) return record["attachments"];
  if (record["list"].is_null()) return Value::array();
  SandboxNetwork network;
  network.interface = kDefaultInterface;
  Value one = cni_attachment(network, record["list"]);
  one.set("result", record["result"]);
  return Value::array({std::move(one)});
}

Value cni_input(const Value& attachment, const Value& plugin, const SandboxConfig& sandbox,
                const Value& previous) {
  Value input = plugin;
  input.set("name", attachment["list"]["name"]);
  input.set("cniVersion", attachment["list"]["cniVersion"]);
  if (Value config = runtime_config(attachment, plugin["capabilities"], sandbox); !config.empty()) {
    input.set("runtimeConfig", std::move(config));
  }
  // Both names are in use, and which plugin of the list needs it is its own business.
  if (!attachment["device"].is_null()) {
    input.set("deviceID", attachment["device"]);
    input.set("pciBusID", attachment["device"]);
  }
  input.erase("capabilities");
  if (!previous.is_null()) input.set("prevResult", previous);
  return input;
}

std::string cni_network_status(const Value& attachments) {
  Value list = Value::array();
  for (const auto& attachment : attachments.items()) {
    const Value& result = attachment["result"];
    Value one =
        Value::object({{"name", attachment["name"]}, {"interface", attachment["interface"]}});
    Value ips = Value::array();
    Value gateways = Value::array();
    if (auto addresses = cni_addresses(result); addresses.ok()) {
      for (const auto& address : *addresses) ips.push(address);
    }
    for (const auto& ip : result["ips"].items()) {
      if (!ip["gateway"].as_string().empty()) gateways.push(ip["gateway"]);
    }
    if (!ips.empty()) one.set("ips", std::move(ips));
    for (const auto& link : result["interfaces"].items()) {
      if (link["name"] == attachment["interface"] && !link["sandbox"].as_string().empty()) {
        one.set("mac", link["mac"]);
        if (link["mtu"].as_int() > 0) one.set("mtu", link["mtu"]);
      }
    }
    if (is_default_attachment(attachment)) one.set("default", true);
    one.set("dns", result["dns"].is_object() ? result["dns"] : Value::object());
    if (!gateways.empty()) one.set("gateway", std::move(gateways));
    list.push(std::move(one));
  }
  return json::write_pretty(list);
}

Result<Value> read_cni_output(std::string_view command, const CniOutput& output) {
  const std::string_view out = trim(output.out);
  auto result = json::parse(out);
  if (output.code != 0) {
    if (result.ok() && (*result)["msg"].is_string()) {
      const std::string details = (*result)["details"].str();
      return Error::internal(
          cat((*result)["msg"].as_string(), details.empty() ? "" : "; ", details));
    }
    const std::string_view err = trim(output.err);
    return Error::internal(std::string(err.empty() ? out : err));
  }
  if (command != "ADD") return result.ok() ? std::move(result).value() : Value();
  if (!result.ok()) return result.error().within("its result is not JSON");
  if (!result->is_object()) return Error::internal("its result is no object");
  return result;
}

Result<std::vector<std::string>> cni_addresses(const Value& result) {
  std::vector<const Value*> given;
  for (const auto& ip : result["ips"].items()) given.push_back(&ip["address"]);
  // As versions before 0.3.0 have them.
  for (const char* old : {"ip4", "ip6"}) {
    if (result.contains(old)) given.push_back(&result[old]["ip"]);
  }
  std::vector<std::string> addresses;
  for (const Value* one : given) {
    auto address = address_of(one->as_string());
    if (!address) {
      return Error::internal(cat("the result of the plugins has an address that is none: ",
                                 quoted(json::write(*one))));
    }
    addresses.push_back(std::move(*address));
  }
  if (addresses.empty())
    return Error::internal("the result of the plugins has no address for the pod");
  return addresses;
}

}  // namespace dibs::node
