#include "controllers/endpoints/subsets.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "base/strings.h"
#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

using AddressKey = std::pair<std::string, std::string>;  // IP, and uid of the target
using PortKey = std::tuple<std::string, std::int64_t, std::string, std::string>;

struct Address {
  Value value;
  // Whether it is ready, by port; the key of no port at all stands for an address without any.
  std::map<PortKey, bool> ports;
};

class Packer {
 public:
  void add(const Value& address, const Value& ports, bool ready) {
    Address& one = addresses_[{address["ip"].str(), address["targetRef"]["uid"].str()}];
    if (one.value.is_null()) one.value = address;
    if (ports.empty()) enter(one, PortKey{"", -1, "", ""}, Value(), ready);
    for (const Value& port : ports.items()) {
      enter(one,
            {port["name"].str(), port["port"].as_int(), std::string(port["protocol"].as_string()),
             port["appProtocol"].str()},
            port, ready);
    }
  }

  Value packed() const {
    // First ports with the same addresses in the same state belong together, then those groups are
    // the subsets.
    std::map<PortKey, std::vector<std::pair<const Address*, bool>>> by_port;
    for (const auto& [key, address] : addresses_)
      for (const auto& [port, ready] : address.ports) by_port[port].emplace_back(&address, ready);
    std::map<std::vector<std::pair<const Address*, bool>>, std::vector<PortKey>> groups;
    for (const auto& [port, held] : by_port) groups[held].push_back(port);
    std::vector<std::pair<PortKey, Value>> subsets;
    for (const auto& [held, ports] : groups) subsets.emplace_back(ports[0], subset(held, ports));
    std::sort(subsets.begin(), subsets.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    Value out = Value::array();
    for (auto& [first, value] : subsets) out.push(std::move(value));
    return out;
  }

 private:
  void enter(Address& address, const PortKey& key, const Value& port, bool ready) {
    ports_.emplace(key, port);
    const auto [found, fresh] = address.ports.emplace(key, ready);
    if (!fresh) found->second = found->second && ready;
  }

  Value subset(const std::vector<std::pair<const Address*, bool>>& held,
               const std::vector<PortKey>& ports) const {
    Value ready, not_ready, numbers;
    for (const auto& [address, is_ready] : held)
      (is_ready ? ready : not_ready).push(address->value);
    for (const PortKey& port : ports)
      if (const Value& one = ports_.at(port); !one.is_null()) numbers.push(one);
    Value out = Value::object();
    if (!ready.empty()) out.set("addresses", std::move(ready));
    if (!not_ready.empty()) out.set("notReadyAddresses", std::move(not_ready));
    if (!numbers.empty()) out.set("ports", std::move(numbers));
    return out;
  }

  std::map<AddressKey, Address> addresses_;
  std::map<PortKey, Value> ports_;
};

Value address_of(const Value& pod, const Value& service, const std::string& ip) {
  Value out = Value::object({{"ip", ip}, {"targetRef", pod_reference(pod)}});
  if (const Value& node = pod["spec"]["nodeName"]; !node.as_string().empty())
    out.set("nodeName", node);
  if (const auto name = endpoint_hostname(pod, service); !name.empty()) out.set("hostname", name);
  return out;
}

Value port_of(const Value& service_port, std::int64_t number) {
  Value out = Value::object();
  if (const auto name = service_port["name"].as_string(); !name.empty()) out.set("name", name);
  out.set("port", number);
  out.set("protocol", service_port["protocol"].as_string("TCP"));
  if (!service_port["appProtocol"].is_null()) out.set("appProtocol", service_port["appProtocol"]);
  return out;
}

std::size_t count(const Value& subsets, const char* list) {
  std::size_t total = 0;
  for (const Value& subset : subsets.items()) total += subset[list].size();
  return total;
}

void shorten(Value& subset, const char* list, std::size_t size) {
  if (subset[list].size() <= size) return;
  Value kept = Value::array();
  for (std::size_t i = 0; i < size; ++i) kept.push(subset[list][i]);
  if (kept.empty()) {
    subset.erase(list);
  } else {
    subset.set(list, std::move(kept));
  }
}

}  // namespace

Value packed_subsets(const Value& subsets) {
  Packer packer;
  for (const Value& subset : subsets.items()) {
    for (const Value& one : subset["addresses"].items()) packer.add(one, subset["ports"], true);
    for (const Value& one : subset["notReadyAddresses"].items())
      packer.add(one, subset["ports"], false);
  }
  return packer.packed();
}

Value subsets_of(const Value& service, const std::vector<Value>& pods) {
  const bool all = service["spec"]["publishNotReadyAddresses"].as_bool();
  const std::string family = address_types(service)[0];
  const Value& ports = service["spec"]["ports"];
  Packer packer;
  for (const Value& pod : pods) {
    if (!has_endpoint(pod, all)) continue;
    const auto ips = pod_addresses(pod, family);
    if (ips.empty()) continue;
    const Value address = address_of(pod, service, ips[0]);
    const bool ready = all || pod_ready(pod);
    // Who has an address of its own needs a port; without one, the name alone leads to the pods.
    if (ports.empty() && service["spec"]["clusterIP"].as_string() == "None")
      packer.add(address, Value(), ready);
    for (const Value& port : ports.items()) {
      if (const auto number = target_port(pod, port))
        packer.add(address, Value::array({port_of(port, *number)}), ready);
    }
  }
  return packer.packed();
}

bool truncate_subsets(Value& subsets) {
  const std::size_t ready = count(subsets, "addresses");
  const std::size_t not_ready = count(subsets, "notReadyAddresses");
  if (ready + not_ready <= kEndpointsCapacity) return false;
  const bool ready_too = ready > kEndpointsCapacity;
  const char* list = ready_too ? "addresses" : "notReadyAddresses";
  const std::size_t room = ready_too ? kEndpointsCapacity : kEndpointsCapacity - ready;
  const std::size_t total = ready_too ? ready : not_ready;
  std::size_t left = room;
  Value out = Value::array();
  for (const Value& from : subsets.items()) {
    Value subset = from;
    if (ready_too) subset.erase("notReadyAddresses");
    const std::size_t share = (subset[list].size() * room + total - 1) / total;
    shorten(subset, list, std::min(share, left));
    left -= subset[list].size();
    if (!subset["addresses"].empty() || !subset["notReadyAddresses"].empty())
      out.push(std::move(subset));
  }
  subsets = std::move(out);
  return true;
}

}  // namespace dibs::controllers
