// Endpoints and EndpointSlices: the addresses behind a service.

#include <arpa/inet.h>
#include <netinet/in.h>

#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/network/service.h"
#include "base/strings.h"

namespace dibs::api {

void add_spelling(std::string_view ip, const std::string& path, std::vector<std::string>& texts) {
  in6_addr address;
  char usual[INET6_ADDRSTRLEN];
  if (inet_pton(AF_INET6, std::string(ip).c_str(), &address) != 1) return;
  inet_ntop(AF_INET6, &address, usual, sizeof usual);
  if (ip == usual) return;
  texts.push_back(cat(path, ": IPv6 address \"", ip,
                      "\" should be in RFC 5952 canonical format (\"", usual, "\")"));
}

namespace {

void check_protocol(const Value& port, const Path& path, FieldErrors& errors) {
  std::string_view protocol = port["protocol"].as_string();
  if (protocol.empty()) {
    errors.required(path.child("protocol"));
  } else if (!is_one_of(protocol, {"SCTP", "TCP", "UDP"})) {
    errors.not_supported(path.child("protocol"), port["protocol"], {"SCTP", "TCP", "UDP"});
  }
  if (is_set(port, "appProtocol")) {
    add_invalid(is_qualified_name(port["appProtocol"].as_string()), port["appProtocol"],
                path.child("appProtocol"), errors);
  }
}

constexpr std::size_t kMostPorts = 20000;
constexpr std::size_t kMostEndpoints = 1000;
constexpr std::size_t kMostHints = 8;

/// Those that the controllers write they spell well.
bool written_by(const Value& object, const char* label,
                std::initializer_list<std::string_view> controllers) {
  return is_one_of(object["metadata"]["labels"][label].as_string(), controllers);
}

std::vector<std::string> endpoints_warnings(const Value& endpoints, const Value*) {
  std::vector<std::string> texts;
  if (written_by(endpoints, "endpoints.kubernetes.io/managed-by", {"endpoint-controller"}))
    return texts;
  for (std::size_t s = 0; s < endpoints["subsets"].size(); ++s) {
    for (const char* list : {"addresses", "notReadyAddresses"}) {
      const Value& addresses = endpoints["subsets"][s][list];
      for (std::size_t i = 0; i < addresses.size(); ++i) {
        add_spelling(addresses[i]["ip"].as_string(), cat("subsets[", s, "].", list, "[", i, "].ip"),
                     texts);
      }
    }
  }
  return texts;
}

std::vector<std::string> slice_warnings(const Value& slice, const Value* old) {
  std::vector<std::string> texts;
  const bool domains = slice["addressType"].as_string() == "FQDN";
  if (domains && old == nullptr) texts.push_back("spec.addressType: FQDN endpoints are deprecated");
  if (domains ||
      written_by(slice, "endpointslice.kubernetes.io/managed-by",
                 {"endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"})) {
    return texts;
  }
  for (std::size_t e = 0; e < slice["endpoints"].size(); ++e) {
    const Value& addresses = slice["endpoints"][e]["addresses"];
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      add_spelling(addresses[i].as_string(), cat("endpoints[", e, "].addresses[", i, "]"), texts);
    }
  }
  return texts;
}

void set_endpoints_defaults(Value& endpoints) {
  for (std::size_t s = 0; s < endpoints["subsets"].size(); ++s) {
    for (std::size_t p = 0; p < endpoints["subsets"][s]["ports"].size(); ++p) {
      set_default_text(endpoints.mut("subsets").mut(s).mut("ports").mut(p), "protocol", "TCP");
    }
  }
}

void validate_address(const Value& address, const Path& path, FieldErrors& errors) {
  std::string_view ip = address["ip"].as_string();
  validate_ip(ip, path.child("ip"), errors);
  if (!address["hostname"].as_string().empty()) {
    add_invalid(is_dns1123_label(address["hostname"].as_string()), address["hostname"],
                path.child("hostname"), errors);
  }
  if (is_set(address, "nodeName")) {
    add_invalid(is_dns1123_subdomain(address["nodeName"].as_string()), address["nodeName"],
                path.child("nodeName"), errors);
  }
  validate_non_special_ip(ip, path.child("ip"), errors);
}

void validate_endpoints(const Value& endpoints, FieldErrors& errors) {
  Path list("subsets");
  const Value& subsets = endpoints["subsets"];
  for (std::size_t i = 0; i < subsets.size(); ++i) {
    const Value& subset = subsets[i];
    Path at = list.index(i);
    if (subset["addresses"].empty() && subset["notReadyAddresses"].empty()) {
      errors.required(at, "must specify `addresses` or `notReadyAddresses`");
    }
    for (const char* key : {"addresses", "notReadyAddresses"}) {
      Path addresses_at = at.child(key);
      for (std::size_t a = 0; a < subset[key].size(); ++a) {
        validate_address(subset[key][a], addresses_at.index(a), errors);
      }
    }
    Path ports_at = at.child("ports");
    const Value& ports = subset["ports"];
    for (std::size_t p = 0; p < ports.size(); ++p) {
      Path port_at = ports_at.index(p);
      std::string_view name = ports[p]["name"].as_string();
      if (name.empty()) {
        if (ports.size() > 1) errors.required(port_at.child("name"));
      } else {
        add_invalid(is_dns1123_label(name), ports[p]["name"], port_at.child("name"), errors);
      }
      add_invalid(is_port_number(ports[p]["port"].as_int()), Value(ports[p]["port"].as_int()),
                  port_at.child("port"), errors);
      check_protocol(ports[p], port_at, errors);
    }
  }
}

void set_slice_defaults(Value& slice) {
  for (std::size_t i = 0; i < slice["ports"].size(); ++i) {
    Value& port = slice.mut("ports").mut(i);
    set_default(port, "name", "");
    set_default(port, "protocol", "TCP");
  }
}

/// A field of an earlier version, which v1 takes and drops. The name of the node that it held
/// stays.
void drop_topology(Value& slice, const Value* old) {
  if (old != nullptr && slice["endpoints"] == (*old)["endpoints"]) return;
  std::set<std::string> known;
  if (old != nullptr) {
    for (const Value& endpoint : (*old)["endpoints"].items())
      known.insert(endpoint["deprecatedTopology"]["kubernetes.io/hostname"].str());
  }
  for (std::size_t i = 0; i < slice["endpoints"].size(); ++i) {
    if (slice["endpoints"][i]["deprecatedTopology"].is_null()) continue;
    Value& endpoint = slice.mut("endpoints").mut(i);
    const Value node = endpoint["deprecatedTopology"]["kubernetes.io/hostname"];
    if (endpoint["nodeName"].is_null() && !node.as_string().empty() && known.contains(node.str()))
      endpoint.set("nodeName", node);
    endpoint.erase("deprecatedTopology");
  }
}

void validate_slice_ports(const Value& ports, const Path& path, FieldErrors& errors) {
  if (ports.size() > kMostPorts) return errors.too_many(path, ports.size(), kMostPorts);
  std::set<std::string> names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Path at = path.index(i);
    std::string name = ports[i]["name"].str();
    if (!name.empty()) {
      add_invalid(is_dns1123_label(name), ports[i]["name"], at.child("name"), errors);
    }
    if (!names.insert(name).second) errors.duplicate(at.child("name"), Value(name));
    check_protocol(ports[i], at, errors);
  }
}

void validate_domain(const Value& name, const Path& path, FieldErrors& errors) {
  std::string_view text = name.as_string();
  if (text.empty()) return errors.required(path);
  if (text.ends_with('.')) text.remove_suffix(1);
  const Faults faults = is_dns1123_subdomain(text);
  if (!faults.empty()) return add_invalid(faults, Value(text), path, errors);
  if (text.find('.') == std::string_view::npos) {
    errors.invalid(path, Value(text),
                   "should be a domain with at least two segments separated by dots");
  }
}

void validate_slice_addresses(const Value& endpoint, std::string_view type, const Path& path,
                              FieldErrors& errors) {
  const Value& addresses = endpoint["addresses"];
  if (addresses.size() > 100) errors.too_many(path, addresses.size(), 100);
  std::size_t i = 0;
  for (const Value& address : addresses.items()) {
    const std::string_view ip = address.as_string();
    const Path at = path.index(i++);
    if (type == "FQDN") {
      validate_domain(address, at, errors);
      continue;
    }
    const std::size_t before = errors.size();
    validate_ip(ip, at, errors);
    if (errors.size() != before) continue;
    const bool right = type == "IPv4" ? is_ipv4(ip) : is_ipv6(ip);
    if (!right) errors.invalid(path, address, cat("must be an ", type, " address"));
    validate_non_special_ip(ip, at, errors);
  }
}

/// Names in a list of hints: few, each once.
void validate_hint_names(const Value& hints, const Path& path, bool of_nodes, FieldErrors& errors) {
  if (hints.size() > kMostHints) return errors.too_many(path, hints.size(), kMostHints);
  std::set<std::string> names;
  for (std::size_t i = 0; i < hints.size(); ++i) {
    const Path hint = path.index(i);
    const Path at = hint.child("name");
    const Value& name = hints[i]["name"];
    if (!names.insert(name.str()).second) errors.duplicate(at, name);
    add_invalid(
        of_nodes ? is_dns1123_subdomain(name.as_string()) : is_label_value(name.as_string()), name,
        at, errors);
  }
}

void validate_slice(const Value& slice, FieldErrors& errors) {
  std::string_view type = slice["addressType"].as_string();
  bool known = is_one_of(type, {"FQDN", "IPv4", "IPv6"});
  validate_slice_ports(slice["ports"], Path("ports"), errors);
  Path list("endpoints");
  const Value& endpoints = slice["endpoints"];
  const bool too_many = endpoints.size() > kMostEndpoints;
  if (too_many) errors.too_many(list, endpoints.size(), kMostEndpoints);
  for (std::size_t i = 0; i < endpoints.size() && !too_many; ++i) {
    Path at = list.index(i);
    if (known) validate_slice_addresses(endpoints[i], type, at.child("addresses"), errors);
    if (is_set(endpoints[i], "nodeName")) {
      add_invalid(is_dns1123_subdomain(endpoints[i]["nodeName"].as_string()),
                  endpoints[i]["nodeName"], at.child("nodeName"), errors);
    }
    if (is_set(endpoints[i], "hostname")) {
      add_invalid(is_dns1123_label(endpoints[i]["hostname"].as_string()), endpoints[i]["hostname"],
                  at.child("hostname"), errors);
    }
    const Path hints = at.child("hints");
    validate_hint_names(endpoints[i]["hints"]["forZones"], hints.child("forZones"), false, errors);
    validate_hint_names(endpoints[i]["hints"]["forNodes"], hints.child("forNodes"), true, errors);
  }
  // The API tells of what is missing after all that is wrong.
  if (type.empty()) {
    errors.required(Path("addressType"));
  } else if (!known) {
    errors.not_supported(Path("addressType"), slice["addressType"], {"FQDN", "IPv4", "IPv6"});
  }
  for (std::size_t i = 0; i < endpoints.size() && !too_many; ++i) {
    if (!endpoints[i]["addresses"].empty()) continue;
    Path at = list.index(i);
    errors.required(at.child("addresses"));
  }
}

void validate_slice_update(const Value& slice, const Value& old, FieldErrors& errors) {
  if (!(slice["addressType"] == old["addressType"])) {
    errors.invalid(Path("addressType"), Value(), "field is immutable");
    return;
  }
  validate_slice(slice, errors);
}

}  // namespace

void validate_non_special_ip(std::string_view ip, const Path& path, FieldErrors& errors) {
  Value shown(ip);
  std::string text(ip);
  in_addr v4;
  in6_addr v6;
  bool unspecified = false;
  bool loopback = false;
  bool link_local = false;
  bool multicast = false;
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    std::uint32_t number = ntohl(v4.s_addr);
    unspecified = number == 0;
    loopback = (number >> 24) == 127;
    link_local = (number >> 16) == 0xa9fe;
    multicast = (number >> 8) == 0xe00000;
  } else if (inet_pton(AF_INET6, text.c_str(), &v6) == 1) {
    unspecified = IN6_IS_ADDR_UNSPECIFIED(&v6);
    loopback = IN6_IS_ADDR_LOOPBACK(&v6);
    link_local = IN6_IS_ADDR_LINKLOCAL(&v6);
    multicast = IN6_IS_ADDR_MC_LINKLOCAL(&v6);
  } else {
    errors.invalid(path, shown, "must be a valid IP address");
    return;
  }
  if (unspecified) errors.invalid(path, shown, cat("may not be unspecified (", ip, ")"));
  if (loopback) {
    errors.invalid(path, shown, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  }
  if (link_local) {
    errors.invalid(path, shown, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  }
  if (multicast) {
    errors.invalid(path, shown,
                   "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
  }
}

KindRules endpoints_rules() {
  KindRules rules;
  rules.set_defaults = set_endpoints_defaults;
  rules.allow_create_on_update = true;
  rules.deprecation = {
      33, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"};
  rules.validate = validate_endpoints;
  rules.validate_update = [](const Value& endpoints, const Value& old, FieldErrors& errors) {
    // What an earlier release let pass stays.
    if (!(endpoints["subsets"] == old["subsets"])) validate_endpoints(endpoints, errors);
  };
  rules.warnings = endpoints_warnings;
  return rules;
}

KindRules endpoint_slice_rules() {
  KindRules rules;
  rules.set_defaults = set_slice_defaults;
  rules.prepare_create = [](Value& slice, const RuleContext&) { drop_topology(slice, nullptr); };
  rules.prepare_update = [](Value& slice, const Value& old, const RuleContext&) {
    drop_topology(slice, &old);
    // Labels say whose a slice is, so they count as what it says.
    if (!(slice["metadata"]["labels"] == old["metadata"]["labels"])) {
      slice.mut("metadata").set("generation", old["metadata"]["generation"].as_int() + 1);
    }
  };
  rules.warnings = slice_warnings;
  rules.validate = validate_slice;
  rules.validate_update = validate_slice_update;
  rules.tracks_generation = true;
  return rules;
}

}  // namespace dibs::api
