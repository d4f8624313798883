#include "drivers/net/cni/plugin_call.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/interface_name.h"
#include "base/strings.h"
#include "drivers/net/cni/plugins.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::array<std::string_view, 4> kVersions = {"0.3.0", "0.3.1", "0.4.0", "1.0.0"};
constexpr std::size_t kMostInput = 1 << 20;

struct NamedPlugin {
  std::string_view name;
  Result<Value> (*run)(const PluginCall& call);
};
constexpr NamedPlugin kPlugins[] = {
    {"spiderpool", run_ipam}, {"coordinator", run_coordinator}, {"ifacer", run_ifacer}};

int cni_number(Code code) {
  switch (code) {
    case Code::not_acceptable:
      return 1;
    case Code::bad_request:
      return 4;
    case Code::invalid:
      return 7;
    case Code::unavailable:
      return 11;
    default:
      return 999;
  }
}

PodName pod_of(std::string_view args) {
  PodName pod;
  for (const auto arg : split(args, ';')) {
    const auto equals = arg.find('=');
    if (equals == std::string_view::npos) continue;
    const auto key = arg.substr(0, equals);
    const std::string value(arg.substr(equals + 1));
    if (key == "K8S_POD_NAMESPACE") pod.name_space = value;
    if (key == "K8S_POD_NAME") pod.name = value;
    if (key == "K8S_POD_UID") pod.uid = value;
  }
  return pod;
}

/// Before 1.0.0 every address says its family.
bool says_version(std::string_view version) { return version.starts_with("0."); }

std::string read_input() {
  std::string text;
  char buffer[4096];
  while (text.size() <= kMostInput) {
    const ssize_t size = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  return text;
}

void print(const Value& value) {
  const std::string text = json::write(value) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

int fail(const Error& error, std::string_view version) {
  print(error_value(error, version));
  return 1;
}

}  // namespace

Result<PluginCall> read_call(const Variables& variables, std::string_view input) {
  PluginCall call;
  call.command = variables("CNI_COMMAND");
  if (call.command != "ADD" && call.command != "DEL" && call.command != "CHECK") {
    return Error::bad_request(cat("CNI_COMMAND ", quoted(call.command),
                                  ": must be ADD, DEL, "
                                  "CHECK or VERSION"));
  }
  if (input.size() > kMostInput) return Error::invalid("the configuration is too long");
  auto config = json::parse(input);
  if (!config.ok()) {
    return Error::invalid(cat("the configuration is not JSON: ", config.error().message()));
  }
  if (!config->is_object()) return Error::invalid("the configuration is no object");
  call.config = std::move(config).value();
  const std::string version = call.version();
  // What was never added by this version is still to be found gone.
  if (call.command != "DEL" &&
      std::find(kVersions.begin(), kVersions.end(), version) == kVersions.end()) {
    return Error(Code::not_acceptable, cat("cniVersion ", quoted(version), " is not supported"));
  }
  call.container = variables("CNI_CONTAINERID");
  call.network_namespace = variables("CNI_NETNS");
  call.interface = variables("CNI_IFNAME");
  call.pod = pod_of(variables("CNI_ARGS"));
  call.socket = variables("SPIDERPOOL_SOCKET");
  if (call.container.empty()) return Error::bad_request("CNI_CONTAINERID is missing");
  if (!is_interface_name(call.interface)) {
    return Error::bad_request(cat("CNI_IFNAME ", quoted(call.interface), " is not a name"));
  }
  if (call.network_namespace.empty() && call.command != "DEL") {
    return Error::bad_request("CNI_NETNS is missing");
  }
  return call;
}

Value supported_versions() {
  Value versions = Value::array();
  for (const auto version : kVersions) versions.push(version);
  return Value::object({{"cniVersion", kVersions.back()}, {"supportedVersions", versions}});
}

Value error_value(const Error& error, std::string_view version) {
  return Value::object({{"cniVersion", version.empty() ? kVersions.back() : version},
                        {"code", cni_number(error.code())},
                        {"msg", error.message()}});
}

Value ipam_result(const NicAddresses& addresses, std::string_view version) {
  Value ips = Value::array();
  Value routes = Value::array();
  const auto add = [&](const char* family, const std::string& address, const std::string& gateway,
                       const char* all) {
    if (address.empty()) return;
    Value ip = Value::object({{"address", address}});
    if (says_version(version)) ip.set("version", family);
    if (!gateway.empty()) ip.set("gateway", gateway);
    ips.push(std::move(ip));
    if (!gateway.empty() && !addresses.clean_gateway) {
      routes.push(Value::object({{"dst", all}, {"gw", gateway}}));
    }
  };
  add("4", addresses.ipv4, addresses.ipv4_gateway, "0.0.0.0/0");
  add("6", addresses.ipv6, addresses.ipv6_gateway, "::/0");
  for (const auto& route : addresses.routes) {
    routes.push(Value::object({{"dst", route.dst}, {"gw", route.gw}}));
  }
  return Value::object({{"cniVersion", version},
                        {"ips", std::move(ips)},
                        {"routes", std::move(routes)},
                        {"dns", Value::object()}});
}

std::vector<ResultAddress> result_addresses(const Value& result) {
  std::vector<ResultAddress> out;
  for (const auto& ip : result["ips"].items()) {
    out.push_back({ip["address"].str(), ip["gateway"].str()});
  }
  return out;
}

Value pass_on(const PluginCall& call) {
  if (call.previous().is_object()) return call.previous();
  return Value::object({{"cniVersion", call.version()}});
}

std::vector<std::string> cni_plugin_names() {
  std::vector<std::string> names;
  for (const auto& plugin : kPlugins) names.emplace_back(plugin.name);
  return names;
}

int run_cni_plugin(std::string_view name) {
  const auto variables = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string(value == nullptr ? "" : value);
  };
  for (const auto& plugin : kPlugins) {
    if (plugin.name != name) continue;
    if (variables("CNI_COMMAND") == "VERSION") {
      print(supported_versions());
      return 0;
    }
    const auto call = read_call(variables, read_input());
    if (!call.ok()) return fail(call.error(), "");
    const auto result = plugin.run(*call);
    if (!result.ok()) return fail(result.error(), call->version());
    if (call->command == "ADD") print(*result);
    return 0;
  }
  return fail(Error::bad_request(cat("there is no CNI plugin ", quoted(name), ": one of ",
                                     join(cni_plugin_names(), ", "))),
              "");
}

}  // namespace dibs::drivers::net
