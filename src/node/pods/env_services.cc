#include "node/pods/env_services.h"

#include <map>

#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

std::string variable_name(std::string_view name) {
  std::string out = to_upper(name);
  for (char& c : out) {
    if (c == '-') c = '_';
  }
  return out;
}

std::string host_port(std::string_view ip, std::int64_t port) {
  return ip.find(':') == std::string_view::npos ? cat(ip, ':', port) : cat('[', ip, "]:", port);
}

void add_service(const Value& service, EnvList& out) {
  const auto ip = service["spec"]["clusterIP"].as_string();
  const std::string name = variable_name(service["metadata"]["name"].as_string());
  const Value& ports = service["spec"]["ports"];
  out.emplace_back(cat(name, "_SERVICE_HOST"), std::string(ip));
  if (!ports.empty()) {
    out.emplace_back(cat(name, "_SERVICE_PORT"), std::to_string(ports[0]["port"].as_int()));
  }
  for (const auto& port : ports.items()) {
    if (port["name"].as_string().empty()) continue;
    out.emplace_back(cat(name, "_SERVICE_PORT_", variable_name(port["name"].as_string())),
                     std::to_string(port["port"].as_int()));
  }
  bool first = true;
  for (const auto& port : ports.items()) {
    const auto number = port["port"].as_int();
    const std::string protocol = port["protocol"].is_string() ? port["protocol"].str() : "TCP";
    const std::string url = cat(to_lower(protocol), "://", host_port(ip, number));
    const std::string prefix = cat(name, "_PORT_", number, '_', to_upper(protocol));
    if (std::exchange(first, false)) out.emplace_back(cat(name, "_PORT"), url);
    out.emplace_back(prefix, url);
    out.emplace_back(cat(prefix, "_PROTO"), to_lower(protocol));
    out.emplace_back(cat(prefix, "_PORT"), std::to_string(number));
    out.emplace_back(cat(prefix, "_ADDR"), std::string(ip));
  }
}

}  // namespace

EnvList service_variables(const std::vector<Value>& services, std::string_view name_space,
                          bool links) {
  // By name: a service of the pod's namespace goes before the one of the cluster.
  std::map<std::string, const Value*> chosen;
  for (const auto& service : services) {
    const auto ip = service["spec"]["clusterIP"].as_string();
    if (ip.empty() || ip == "None") continue;
    const auto home = service["metadata"]["namespace"].as_string();
    const std::string name = service["metadata"]["name"].str();
    if (home == name_space && links) {
      chosen[name] = &service;
    } else if (home == "default" && name == "kubernetes") {
      chosen.emplace(name, &service);
    }
  }
  EnvList out;
  for (const auto& [name, service] : chosen) add_service(*service, out);
  return out;
}

}  // namespace dibs::node
