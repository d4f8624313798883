#include "node/runtime/cni_text.h"

#include <arpa/inet.h>

#include <charconv>
#include <optional>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;

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

}  // namespace

Result<Value> parse_cni_configuration(std::string_view text) {
  DIBS_TRY(Value value, json::parse(text));
  if (!value.is_object()) return Error::invalid("it is no object");
  if (!value["name"].is_string()) return Error::invalid("it has no name");
  if (!value.contains("plugins")) {
    value = Value::object({{"cniVersion", value["cniVersion"]},
                           {"name", value["name"]},
                           {"plugins", Value::array({value})}});
  }
  if (value["plugins"].empty()) return Error::invalid("plugins: at least one is needed");
  for (std::size_t i = 0; i < value["plugins"].size(); ++i) {
    // Else the type would be a path to any program.
    const std::string_view type = value["plugins"][i]["type"].as_string();
    if (type.empty() || type.find('/') != std::string_view::npos) {
      return Error::invalid(
          cat("plugins[", i, "].type: ", quoted(type), " is not the name of a plugin"));
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

Value cni_input(const Value& list, const Value& plugin, const SandboxConfig& sandbox,
                const Value& previous) {
  Value input = plugin;
  input.set("name", list["name"]);
  input.set("cniVersion", list["cniVersion"]);
  if (plugin["capabilities"]["portMappings"].as_bool()) {
    if (const Value ports = cni_port_mappings(sandbox); !ports.empty()) {
      input.set("runtimeConfig", Value::object({{"portMappings", ports}}));
    }
  }
  input.erase("capabilities");
  if (!previous.is_null()) input.set("prevResult", previous);
  return input;
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
