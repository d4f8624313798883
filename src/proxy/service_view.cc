#include "proxy/service_view.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <tuple>

#include "base/strings.h"

namespace dibs::proxy {
namespace {

using json::Value;

constexpr const char* kServiceName = "kubernetes.io/service-name";
constexpr const char* kHeadless = "service.kubernetes.io/headless";
constexpr const char* kOtherProxy = "service.kubernetes.io/service-proxy-name";
constexpr std::int64_t kStickyDefault = 10800;

std::vector<std::string> names_in(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item["name"].str());
  std::sort(out.begin(), out.end());
  return out;
}

/// An address beside the cluster's own ones, that of a balancer or of somebody outside.
bool may_be_outside(const std::string& address, const Machine& machine) {
  const auto number = parse_ipv4(address);
  if (!number || !is_usable(address)) return false;
  const auto has = [&](const Ipv4Range& range) { return range.contains(*number); };
  return !has(machine.pods) && !has(machine.services) &&
         std::none_of(machine.more_services.begin(), machine.more_services.end(), has);
}

std::vector<std::string> outside_addresses(const Value& list, const char* field,
                                           const Machine& machine) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) {
    const std::string address = field == nullptr ? item.str() : item[field].str();
    // One whose balancer answers itself is none of a node's.
    if (field != nullptr && item["ipMode"].as_string() == "Proxy") continue;
    if (may_be_outside(address, machine)) out.push_back(address);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Host bits may be set, as the API takes them. Where all of them are of IPv6, nobody may.
std::vector<std::string> source_ranges(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) {
    const std::string_view text = trim(item.as_string());
    const auto slash = text.find('/');
    const auto address = parse_ipv4(text.substr(0, slash));
    const int bits =
        slash == text.npos ? 32 : std::atoi(std::string(text.substr(slash + 1)).c_str());
    if (!address || bits < 0 || bits > 32) continue;
    Ipv4Range range{0, bits};
    range.first = *address & range.mask();
    out.push_back(range.text());
  }
  if (out.empty() && !list.empty()) out.emplace_back("255.255.255.255/32");
  return out;
}

Backend read_backend(const Value& endpoint) {
  Backend out;
  out.node = endpoint["nodeName"].str();
  if (const Value& target = endpoint["targetRef"]; target["kind"].as_string() == "Pod") {
    out.pod = cat(target["namespace"].as_string(), "/", target["name"].as_string());
    out.pod_uid = target["uid"].str();
  }
  const Value& conditions = endpoint["conditions"];
  out.ready = conditions["ready"].as_bool(true);
  out.serving = conditions["serving"].as_bool(out.ready);
  out.terminating = conditions["terminating"].as_bool(false);
  out.for_zones = names_in(endpoint["hints"]["forZones"]);
  out.for_nodes = names_in(endpoint["hints"]["forNodes"]);
  return out;
}

std::vector<Backend> backends_of(const std::vector<Value>& slices, std::string_view port_name,
                                 std::string_view protocol) {
  std::vector<Backend> out;
  for (const Value& slice : slices) {
    if (slice["addressType"].as_string() != "IPv4") continue;
    int number = 0;
    for (const Value& port : slice["ports"].items()) {
      const std::string_view spoken = port["protocol"].as_string();
      if (port["name"].as_string() == port_name && (spoken.empty() ? "TCP" : spoken) == protocol) {
        number = static_cast<int>(port["port"].as_int());
      }
    }
    if (number <= 0 || number > 65535) continue;
    for (const Value& endpoint : slice["endpoints"].items()) {
      // The others of one endpoint are the same pod: one is enough, as upstream has it.
      const std::string address = endpoint["addresses"][0].str();
      if (!is_usable(address)) continue;
      Backend backend = read_backend(endpoint);
      backend.address = address;
      backend.port = number;
      out.push_back(std::move(backend));
    }
  }
  std::sort(out.begin(), out.end(), [](const Backend& a, const Backend& b) {
    return std::tie(a.address, a.port, b.ready, b.serving) <
           std::tie(b.address, b.port, a.ready, a.serving);
  });
  const auto same = [](const Backend& a, const Backend& b) {
    return a.address == b.address && a.port == b.port;
  };
  out.erase(std::unique(out.begin(), out.end(), same), out.end());
  return out;
}

using Test = std::function<bool(const Backend&)>;

std::vector<Backend> only(const std::vector<Backend>& backends, const Test& test) {
  std::vector<Backend> out;
  std::copy_if(backends.begin(), backends.end(), std::back_inserter(out), test);
  return out;
}

bool is_last_resort(const Backend& backend) { return backend.serving && backend.terminating; }

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

/// Hints count where every one of these backends has one and one of them is for the sender.
std::vector<Backend> by_hints(const std::vector<Backend>& ready, const std::string& node,
                              const std::string& zone) {
  const auto all = [&](std::vector<std::string> Backend::*hints) {
    return std::all_of(ready.begin(), ready.end(),
                       [&](const Backend& backend) { return !(backend.*hints).empty(); });
  };
  if (!node.empty() && all(&Backend::for_nodes)) {
    auto near = only(ready, [&](const Backend& backend) { return names(backend.for_nodes, node); });
    if (!near.empty()) return near;
  }
  if (!zone.empty() && all(&Backend::for_zones)) {
    auto near = only(ready, [&](const Backend& backend) { return names(backend.for_zones, zone); });
    if (!near.empty()) return near;
  }
  return ready;
}

}  // namespace

std::string Backend::element() const { return cat(address, " . ", port); }

bool is_usable(const std::string& address) {
  const auto number = parse_ipv4(address);
  if (!number) return false;
  const std::uint32_t first = *number >> 24;
  return first != 0 && first != 127 && first < 224 && (*number >> 16) != 0xa9fe;
}

ServiceView read_service(const Value& service, const std::vector<Value>& slices,
                         const Machine& machine) {
  ServiceView out;
  const Value& spec = service["spec"];
  const std::string address = spec["clusterIP"].str();
  if (spec["type"].as_string() == "ExternalName" || !is_usable(address)) return out;
  if (service["metadata"]["labels"].contains(kOtherProxy)) return out;
  out.cluster_ip = address;
  out.external_ips = outside_addresses(spec["externalIPs"], nullptr, machine);
  const bool balanced = spec["type"].as_string() == "LoadBalancer";
  if (balanced) {
    out.balancer_ips =
        outside_addresses(service["status"]["loadBalancer"]["ingress"], "ip", machine);
    out.balancer_sources = source_ranges(spec["loadBalancerSourceRanges"]);
    out.health_port = static_cast<int>(spec["healthCheckNodePort"].as_int());
  }
  out.internal_local = spec["internalTrafficPolicy"].as_string() == "Local";
  out.external_local = spec["externalTrafficPolicy"].as_string() == "Local";
  if (spec["sessionAffinity"].as_string() == "ClientIP") {
    out.sticky_seconds =
        spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"].as_int(kStickyDefault);
  }
  for (const Value& port : spec["ports"].items()) {
    ServicePort one;
    const std::string spoken =
        port["protocol"].as_string().empty() ? "TCP" : port["protocol"].str();
    one.protocol = to_lower(spoken);
    if (one.protocol != "tcp" && one.protocol != "udp" && one.protocol != "sctp") continue;
    one.port = static_cast<int>(port["port"].as_int());
    one.node_port = static_cast<int>(port["nodePort"].as_int());
    one.backends = backends_of(slices, port["name"].as_string(), spoken);
    out.ports.push_back(std::move(one));
  }
  return out;
}

std::string service_of(const Value& slice) {
  const Value& labels = slice["metadata"]["labels"];
  if (labels.contains(kHeadless) || labels.contains(kOtherProxy)) return "";
  return labels[kServiceName].str();
}

std::vector<Backend> pick_anywhere(const std::vector<Backend>& backends, const std::string& node,
                                   const Machine& machine) {
  auto ready = only(backends, [](const Backend& backend) { return backend.ready; });
  if (ready.empty()) return only(backends, is_last_resort);
  const auto place = machine.nodes.find(node);
  return by_hints(ready, node, place == machine.nodes.end() ? "" : place->second);
}

std::vector<Backend> pick_local(const std::vector<Backend>& backends, const std::string& node,
                                const Machine& machine) {
  const auto here = only(backends, [&](const Backend& backend) {
    return node.empty() ? machine.nodes.contains(backend.node) : backend.node == node;
  });
  auto ready = only(here, [](const Backend& backend) { return backend.ready; });
  return ready.empty() ? only(here, is_last_resort) : ready;
}

}  // namespace dibs::proxy
