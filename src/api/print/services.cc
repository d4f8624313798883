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

/// The first three hosts, and how many rules there are beyond three.
std::string ingress_hosts(const json::Value& rules) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> hosts;
  bool more = false;
  for (const json::Value& rule : rules.items()) {
    if (hosts.size() == kShown) more = true;
    if (!more && !rule["host"].as_string().empty()) hosts.push_back(rule["host"].str());
  }
  if (hosts.empty()) return "*";
  std::string text = join(hosts, ",");
  if (more) append(text, " + ", rules.size() - kShown, " more...");
  return text;
}

void print_ingress(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(spec["ingressClassName"].is_null() ? "<none>" : spec["ingressClassName"].as_string());
  row.add(ingress_hosts(spec["rules"]));
  row.add(load_balancer_addresses(row.object));
  row.add(spec["tls"].empty() ? "80" : "80, 443");
  row.age();
}

void print_ingress_class(Row& row) {
  const json::Value& metadata = row.object["metadata"];
  const bool is_default =
      metadata["annotations"]["ingressclass.kubernetes.io/is-default-class"].as_string() == "true";
  row.add(cat(metadata["name"].as_string(), is_default ? " (default)" : ""));
  row.add(row.object["spec"]["controller"].as_string());
  const json::Value& parameters = row.object["spec"]["parameters"];
  std::string shown = "<none>";
  if (!parameters.is_null()) {
    shown = parameters["kind"].str();
    if (!parameters["apiGroup"].is_null()) append(shown, ".", parameters["apiGroup"].as_string());
    append(shown, "/", parameters["name"].as_string());
  }
  row.add(shown);
  row.age();
}

void print_service_cidr(Row& row) {
  std::vector<std::string> cidrs;
  for (const json::Value& cidr : row.object["spec"]["cidrs"].items()) cidrs.push_back(cidr.str());
  row.name();
  row.add(join(cidrs, ","));
  row.age();
}

void print_ip_address(Row& row) {
  const json::Value& parent = row.object["spec"]["parentRef"];
  std::string shown = parent.is_null() ? "<none>" : to_lower(parent["resource"].as_string());
  if (const auto group = parent["group"].as_string(); !group.empty())
    append(shown, '.', to_lower(group));
  if (const auto place = parent["namespace"].as_string(); !place.empty()) append(shown, '/', place);
  if (!parent.is_null()) append(shown, '/', parent["name"].as_string());
  row.name();
  row.add(shown);
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
  printers.add("networking.k8s.io", "Ingress",
               {name_column(), text_column("Class", "The IngressClass that it names"),
                text_column("Hosts", "Hosts that its rules are for"),
                text_column("Address", "Where it is reached"),
                text_column("Ports", "Ports that are open for it"), age_column()},
               print_ingress);
  printers.add("networking.k8s.io", "IngressClass",
               {name_column(), text_column("Controller", "Who carries out Ingresses of the class"),
                text_column("Parameters", "Where its further settings are"), age_column()},
               print_ingress_class);
  printers.add("networking.k8s.io", "ServiceCIDR",
               {name_column(), text_column("CIDRs", "The ranges"), age_column()},
               print_service_cidr);
  printers.add("networking.k8s.io", "IPAddress",
               {name_column(), text_column("ParentRef", "What has the address")}, print_ip_address);
}

}  // namespace dibs::api::print
