#include "controllers/endpoints/endpoint_objects.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/strings.h"
#include "controllers/workload_objects.h"
#include "json/parse.h"

namespace dibs::controllers {
namespace {

// Of names that the API accepts.
constexpr std::size_t kLongestName = 253;

const Value* named_port(const Value& container, std::string_view name, std::string_view protocol) {
  for (const Value& port : container["ports"].items()) {
    if (port["name"].as_string() == name && port["protocol"].as_string("TCP") == protocol)
      return &port;
  }
  return nullptr;
}

}  // namespace

bool is_headless(const Value& service) {
  const auto address = service["spec"]["clusterIP"].as_string();
  return address.empty() || address == "None";
}

api::LabelSelector service_selector(const Value& service) {
  const Value& selector = service["spec"]["selector"];
  if (selector.empty()) return api::LabelSelector::nothing();
  std::vector<api::LabelRequirement> all;
  for (const auto& [key, value] : selector.members())
    all.push_back({std::string(key), api::LabelOperator::equals, {value.str()}});
  return api::LabelSelector(std::move(all));
}

std::vector<std::string> address_types(const Value& service) {
  std::vector<std::string> out;
  for (const Value& family : service["spec"]["ipFamilies"].items()) out.push_back(family.str());
  if (!out.empty()) return out;
  const bool six = service["spec"]["clusterIP"].as_string().find(':') != std::string_view::npos;
  return {six ? "IPv6" : "IPv4"};
}

bool has_endpoint(const Value& pod, bool also_terminating) {
  if (is_pod_terminal(pod)) return false;
  if (pod["status"]["podIP"].as_string().empty() && pod["status"]["podIPs"].empty()) return false;
  return also_terminating || !is_deleting(pod);
}

std::optional<std::string> canonical_ip(std::string_view text) {
  const std::string address(text);
  unsigned char bytes[16];
  char shown[INET6_ADDRSTRLEN];
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, address.c_str(), bytes) == 1)
      return std::string(inet_ntop(family, bytes, shown, sizeof shown));
  }
  return std::nullopt;
}

std::vector<std::string> pod_addresses(const Value& pod, std::string_view family) {
  std::vector<std::string> out;
  for (const Value& address : pod["status"]["podIPs"].items()) {
    auto ip = canonical_ip(address["ip"].as_string());
    if (!ip) continue;
    const bool six = ip->find(':') != std::string::npos;
    if (six == (family == "IPv6")) out.push_back(std::move(*ip));
  }
  return out;
}

std::optional<std::int64_t> target_port(const Value& pod, const Value& service_port) {
  const Value& target = service_port["targetPort"];
  if (!target.is_string()) return target.as_int();
  const std::string_view protocol = service_port["protocol"].as_string("TCP");
  for (const Value& container : pod["spec"]["containers"].items()) {
    if (const Value* port = named_port(container, target.as_string(), protocol))
      return (*port)["containerPort"].as_int();
  }
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].as_string() != "Always") continue;  // no sidecar
    if (const Value* port = named_port(container, target.as_string(), protocol))
      return (*port)["containerPort"].as_int();
  }
  return std::nullopt;
}

std::string_view endpoint_hostname(const Value& pod, const Value& service) {
  const Value& spec = pod["spec"];
  return spec["subdomain"].as_string() == name_of(service) ? spec["hostname"].as_string() : "";
}

Value pod_reference(const Value& pod) {
  return Value::object({{"kind", "Pod"},
                        {"namespace", pod["metadata"]["namespace"]},
                        {"name", pod["metadata"]["name"]},
                        {"uid", pod["metadata"]["uid"]}});
}

bool changes_endpoints(const Value& before, const Value& after) {
  return is_deleting(before) != is_deleting(after) || pod_ready(before) != pod_ready(after) ||
         is_pod_terminal(before) != is_pod_terminal(after) ||
         !(before["status"]["podIPs"] == after["status"]["podIPs"]) ||
         !(before["spec"]["nodeName"] == after["spec"]["nodeName"]);
}

Value labels_without(const Value& labels, std::initializer_list<std::string_view> reserved) {
  Value out = Value::object();
  for (const auto& [key, value] : labels.members()) {
    if (std::find(reserved.begin(), reserved.end(), key) == reserved.end()) out.set(key, value);
  }
  return out;
}

std::string slices_key(std::string_view name_space, std::string_view service,
                       std::string_view manager) {
  return cat(name_space, '/', service, '/', manager);
}

std::vector<std::string> index_slices(const Value& slice) {
  const std::string_view service = label_of(slice, kServiceNameLabel);
  if (service.empty()) return {};
  return {slices_key(namespace_of(slice), service, label_of(slice, kSliceManagerLabel))};
}

Value new_slice(const Value& owner, std::string_view address_type, Value labels, Value ports) {
  std::string prefix(name_of(owner));
  if (prefix.size() < kLongestName) prefix += '-';
  return Value::object(
      {{"apiVersion", "discovery.k8s.io/v1"},
       {"kind", "EndpointSlice"},
       {"metadata", Value::object({{"generateName", prefix},
                                   {"namespace", owner["metadata"]["namespace"]},
                                   {"labels", std::move(labels)},
                                   {"ownerReferences", Value::array({owner_reference(owner)})}})},
       {"addressType", address_type},
       {"endpoints", Value::array()},
       {"ports", std::move(ports)}});
}

std::string ports_key(const Value& ports) {
  std::vector<std::string> all;
  for (const Value& port : ports.items()) {
    all.push_back(cat(port["name"].as_string(), '|', port["port"].as_int(), '|',
                      port["protocol"].as_string("TCP"), '|', port["appProtocol"].as_string()));
  }
  std::sort(all.begin(), all.end());
  return join(all, ",");
}

std::string endpoint_key(const Value& endpoint) {
  std::vector<std::string> addresses;
  for (const Value& address : endpoint["addresses"].items()) addresses.push_back(address.str());
  std::sort(addresses.begin(), addresses.end());
  const Value& target = endpoint["targetRef"];
  return cat(join(addresses, ","), '|', endpoint["hostname"].as_string(), '|',
             target["namespace"].as_string(), '|', target["name"].as_string());
}

}  // namespace dibs::controllers
