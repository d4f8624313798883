// Services and the endpoints behind them.
#include <set>

#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

std::string load_balancer_addresses(const json::Value& service) {
  std::set<std::string> addresses;
  for (const json::Value& ingress : service["status"]["loadBalancer"]["ingress"].items()) {
    std::string address = text_or(ingress["ip"], ingress["hostname"].as_string());
    if (!address.empty()) addresses.insert(address);
  }
  return join({addresses.begin(), addresses.end()}, ",");
}

std::string external_address(const json::Value& service) {
  const json::Value& spec = service["spec"];
  std::string_view type = spec["type"].as_string();
  if (type == "ExternalName") return spec["externalName"].str();
  std::string external = joined(spec["externalIPs"], ",");
  if (type == "ClusterIP" || type == "NodePort") return external.empty() ? "<none>" : external;
  if (type != "LoadBalancer") return "<unknown>";
  std::string balancer = load_balancer_addresses(service);
  if (!balancer.empty() && !external.empty()) return cat(balancer, ",", external);
  if (!balancer.empty() || !external.empty()) return balancer + external;
  return "<pending>";
}

std::string service_ports(const json::Value& ports) {
  std::vector<std::string> pieces;
  for (const json::Value& port : ports.items()) {
    std::string piece = std::to_string(port["port"].as_int());
    if (port["nodePort"].as_int() > 0) append(piece, ':', port["nodePort"].as_int());
    pieces.push_back(cat(piece, '/', port["protocol"].as_string()));
  }
  return pieces.empty() ? "<none>" : join(pieces, ",");
}

void print_service(Row& row) {
  const json::Value& spec = row.object["spec"];
  const json::Value& ips = spec["clusterIPs"];
  row.name();
  row.add(spec["type"].as_string());
  row.add(text_or(ips.empty() ? spec["clusterIP"] : ips[0], "<none>"));
  row.add(external_address(row.object));
  row.add(service_ports(spec["ports"]));
  row.age();
  row.add(labels_text(spec["selector"]));
}

std::string with_port(std::string_view ip, std::int64_t port) {
  bool six = ip.find(':') != std::string_view::npos;
  return six ? cat('[', ip, "]:", port) : cat(ip, ':', port);
}

void print_endpoints(Row& row) {
  std::vector<std::string> addresses;
  for (const json::Value& subset : row.object["subsets"].items()) {
    if (subset["ports"].empty()) {
      for (const json::Value& address : subset["addresses"].items()) {
        addresses.push_back(address["ip"].str());
      }
    }
    for (const json::Value& port : subset["ports"].items()) {
      for (const json::Value& address : subset["addresses"].items()) {
        addresses.push_back(with_port(address["ip"].as_string(), port["port"].as_int()));
      }
    }
  }
  row.name();
  row.add(first_three(addresses));
  row.age();
}

std::string slice_ports(const json::Value& ports) {
  if (ports.empty()) return "<unset>";
  std::vector<std::string> pieces;
  for (const json::Value& port : ports.items()) {
    pieces.push_back(port["port"].is_integer() ? std::to_string(port["port"].as_int())
                                               : text_or(port["name"], "*"));
  }
  return first_three(pieces);
}

std::string slice_endpoints(const json::Value& endpoints) {
  if (endpoints.empty()) return "<unset>";
  std::vector<std::string> addresses;
  for (const json::Value& endpoint : endpoints.items()) {
    for (const json::Value& address : endpoint["addresses"].items()) {
      addresses.push_back(address.str());
    }
  }
  return first_three(addresses);
}

void print_endpoint_slice(Row& row) {
  row.name();
  row.add(row.object["addressType"].as_string());
  row.add(slice_ports(row.object["ports"]));
  row.add(slice_endpoints(row.object["endpoints"]));
  row.age();
}

void print_network_policy(Row& row) {
  row.name();
  row.add(selector_text(row.object["spec"]["podSelector"]));
  row.age();
}

}  // namespace

void add_services(Printers& printers) {
  printers.add("", "Service",
               {name_column(), text_column("Type", "How it is reached"),
                text_column("Cluster-IP", "Its address inside the cluster"),
                text_column("External-IP", "Its addresses from outside"),
                text_column("Port(s)", "Its ports, with node ports and protocols"), age_column(),
                wide(text_column("Selector", "Which pods serve it"))},
               print_service);
  printers.add("", "Endpoints",
               {name_column(), text_column("Endpoints", "Addresses that serve"), age_column()},
               print_endpoints);
  printers.add("discovery.k8s.io", "EndpointSlice",
               {name_column(), text_column("AddressType", "IPv4, IPv6 or FQDN"),
                text_column("Ports", "Ports of the endpoints"),
                text_column("Endpoints", "Addresses of the endpoints"), age_column()},
               print_endpoint_slice);
  printers.add("networking.k8s.io", "NetworkPolicy",
               {name_column(), text_column("Pod-Selector", "Which pods it is for"), age_column()},
               print_network_policy);
}

}  // namespace dibs::api::print
