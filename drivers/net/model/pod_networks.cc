#include "drivers/net/model/pod_networks.h"

#include <set>

#include "base/interface_name.h"
#include "base/names.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

/// Each is a run of plugins on the node.
constexpr std::size_t kMostNetworks = 64;

std::string_view annotation(const json::Value& pod, std::string_view key) {
  return pod["metadata"]["annotations"][key].as_string();
}

Error wrong(std::string_view key, std::string_view cause) {
  return Error::invalid(cat("invalid format of Pod annotation '", key, "': ", cause));
}

/// A network as an annotation names it.
struct Selected {
  std::string multus;
  std::string interface;  // "" where it is not said
  bool default_route = false;
};

Result<Selected> selected(std::string_view key, std::string_view name_space, std::string_view name,
                          std::string_view interface) {
  if (!is_dns1123_label(name_space).empty()) {
    return wrong(key, cat(quoted(name_space), " is no namespace"));
  }
  if (!is_dns1123_subdomain(name).empty()) return wrong(key, cat(quoted(name), " is no name"));
  if (!interface.empty() && !is_interface_name(interface)) {
    return wrong(key, cat(quoted(interface), " is no name of an interface"));
  }
  return Selected{cat(name_space, '/', name), std::string(interface)};
}

/// "[ns/]name[@if]".
Result<Selected> parse_item(std::string_view key, std::string_view item,
                            std::string_view name_space) {
  std::string_view interface;
  if (const std::size_t at = item.find('@'); at != std::string_view::npos) {
    interface = item.substr(at + 1);
    if (interface.empty()) return wrong(key, cat(quoted(item), " names no interface after @"));
    item = item.substr(0, at);
  }
  if (const std::size_t slash = item.find('/'); slash != std::string_view::npos) {
    name_space = item.substr(0, slash);
    item = item.substr(slash + 1);
  }
  return selected(key, name_space, item, interface);
}

Result<Selected> parse_element(std::string_view key, const json::Value& element,
                               std::string_view name_space) {
  if (!element.is_object()) return wrong(key, "must be a list of objects");
  for (const char* field : {"name", "namespace", "interface"}) {
    if (!element[field].is_null() && !element[field].is_string()) {
      return wrong(key, cat(field, " must be a string"));
    }
  }
  const std::string_view given = element["namespace"].as_string();
  DIBS_TRY(Selected made, selected(key, given.empty() ? name_space : given,
                                   element["name"].as_string(), element["interface"].as_string()));
  made.default_route = !element["default-route"].empty();
  return made;
}

/// Both forms of the annotation; `name_space` is that of networks without one.
Result<std::vector<Selected>> parse_networks(std::string_view key, std::string_view text,
                                             std::string_view name_space) {
  std::vector<Selected> networks;
  if (trim(text).empty()) return networks;
  const auto too_many = [&] { return wrong(key, cat("more than ", kMostNetworks, " networks")); };
  if (text.find_first_of("[{\"") == std::string_view::npos) {
    for (const std::string_view item : split(text, ',')) {
      if (networks.size() == kMostNetworks) return too_many();
      DIBS_TRY(Selected network, parse_item(key, trim(item), name_space));
      networks.push_back(std::move(network));
    }
    return networks;
  }
  const auto parsed = json::parse(text);
  if (!parsed.ok()) return wrong(key, parsed.error().message());
  if (!parsed->is_array()) return wrong(key, "must be a list of objects");
  if (parsed->size() > kMostNetworks) return too_many();
  for (const json::Value& element : parsed->items()) {
    DIBS_TRY(Selected network, parse_element(key, element, name_space));
    networks.push_back(std::move(network));
  }
  return networks;
}

struct Annotated {
  std::optional<PodNic> default_nic;
  std::vector<PodNic> secondary;
  std::string default_route;  // the annotation
};

Result<Annotated> annotated(const json::Value& pod, std::string_view install_namespace) {
  Annotated made;
  DIBS_TRY(const auto first,
           parse_networks(kDefaultNetwork, annotation(pod, kDefaultNetwork), install_namespace));
  if (first.size() > 1) return wrong(kDefaultNetwork, "more than one network");
  if (!first.empty()) {
    if (!first[0].interface.empty() && first[0].interface != kDefaultInterface) {
      return wrong(kDefaultNetwork, cat("the interface of the default network is ",
                                        kDefaultInterface, ", not ", first[0].interface));
    }
    made.default_nic = {std::string(kDefaultInterface), first[0].multus, first[0].default_route};
  }
  DIBS_TRY(const auto others, parse_networks(kNetworks, annotation(pod, kNetworks),
                                             pod["metadata"]["namespace"].as_string()));
  for (const Selected& network : others) {
    std::string interface = network.interface;
    if (interface.empty()) interface = cat("net", made.secondary.size() + 1);
    made.secondary.push_back({std::move(interface), network.multus, network.default_route});
  }
  made.default_route = annotation(pod, kDefaultRouteNic);
  return made;
}

/// Puts it together: names are unique, and the default route goes through one that exists.
Result<std::vector<PodNic>> assemble(std::optional<PodNic> default_nic,
                                     const std::vector<PodNic>& secondary,
                                     std::string_view default_route) {
  // Where the pod does not say what eth0 is, the cluster's own network has it.
  std::set<std::string_view> seen{kDefaultInterface};
  for (const PodNic& nic : secondary) {
    if (!seen.insert(nic.interface).second) {
      return wrong(kNetworks, cat("duplicate interface ", nic.interface));
    }
  }
  std::vector<PodNic> nics;
  if (default_nic) nics.push_back(std::move(*default_nic));
  nics.insert(nics.end(), secondary.begin(), secondary.end());
  if (default_route.empty() || nics.empty()) return nics;
  const auto named = [&](const PodNic& nic) { return nic.interface == default_route; };
  if (default_route != kDefaultInterface && std::none_of(nics.begin(), nics.end(), named)) {
    return wrong(kDefaultRouteNic, cat("the pod has no interface ", quoted(default_route)));
  }
  for (PodNic& nic : nics) nic.default_route = named(nic);
  return nics;
}

Result<std::optional<PodNic>> cluster_nic(std::string_view cluster_network,
                                          std::string_view install_namespace) {
  if (cluster_network.empty()) return std::optional<PodNic>();
  DIBS_TRY(Selected network, parse_item(kDefaultNetwork, cluster_network, install_namespace));
  return std::optional(PodNic{std::string(kDefaultInterface), std::move(network.multus)});
}

struct Claimed {
  std::optional<PodNic> default_nic;
  std::vector<PodNic> secondary;
};

Result<Claimed> claimed(const std::vector<AskedNics>& claims) {
  Claimed made;
  bool routed = false;  // the first one wins
  for (const AskedNics& claim : claims) {
    if (claim.default_nic) {
      if (made.default_nic) {
        return Error::conflict(cat("two claims name a default interface: ",
                                   made.default_nic->multus, " and ", claim.default_nic->multus));
      }
      made.default_nic = {std::string(kDefaultInterface), claim.default_nic->multus,
                          claim.default_nic->default_route};
    }
    for (const AskedNic& nic : claim.secondary) {
      made.secondary.push_back(
          {cat("net", made.secondary.size() + 1), nic.multus, nic.default_route && !routed});
      routed = routed || nic.default_route;
    }
  }
  if (routed && made.default_nic) made.default_nic->default_route = false;
  return made;
}

std::string names(const std::vector<PodNic>& nics) {
  std::vector<std::string> texts;
  for (const PodNic& nic : nics) texts.push_back(nic.multus);
  return join(texts, ",");
}

Error disagree(std::string_view key, std::string_view said, std::string_view claimed) {
  return Error::conflict(
      cat("annotation ", key, " names ", said, ", the claims of the pod ", claimed));
}

}  // namespace

Result<std::vector<PodNic>> pod_nics(const json::Value& pod, std::string_view install_namespace,
                                     std::string_view cluster_network) {
  return pod_nics(pod, {}, install_namespace, cluster_network);
}

Result<std::vector<PodNic>> pod_nics(const json::Value& pod, const std::vector<AskedNics>& claims,
                                     std::string_view install_namespace,
                                     std::string_view cluster_network) {
  DIBS_TRY(Annotated said, annotated(pod, install_namespace));
  DIBS_TRY(Claimed asked, claimed(claims));
  if (asked.default_nic && said.default_nic &&
      asked.default_nic->multus != said.default_nic->multus) {
    return disagree(kDefaultNetwork, said.default_nic->multus, asked.default_nic->multus);
  }
  if (!asked.secondary.empty() && !said.secondary.empty()) {
    if (names(asked.secondary) != names(said.secondary)) {
      return disagree(kNetworks, names(said.secondary), names(asked.secondary));
    }
    // The annotation may have other names for the interfaces.
    for (std::size_t i = 0; i < asked.secondary.size(); ++i) {
      said.secondary[i].default_route |= asked.secondary[i].default_route;
    }
    asked.secondary = said.secondary;
  }
  if (asked.secondary.empty()) asked.secondary = said.secondary;
  if (!asked.default_nic) asked.default_nic = said.default_nic;
  if (!asked.default_nic) {
    DIBS_TRY(asked.default_nic, cluster_nic(cluster_network, install_namespace));
  }
  for (const PodNic& nic : asked.secondary) {
    if (!nic.default_route || said.default_route.empty()) continue;
    if (nic.interface == said.default_route) continue;
    return disagree(kDefaultRouteNic, said.default_route, nic.interface);
  }
  return assemble(std::move(asked.default_nic), asked.secondary, said.default_route);
}

json::Value nic_annotations(const std::vector<PodNic>& nics) {
  json::Value made = json::Value::object();
  std::vector<std::string> networks;
  for (const PodNic& nic : nics) {
    if (nic.interface == kDefaultInterface) {
      made.set(kDefaultNetwork, nic.multus);
      continue;
    }
    const bool usual = nic.interface == cat("net", networks.size() + 1);
    networks.push_back(usual ? nic.multus : cat(nic.multus, '@', nic.interface));
    if (nic.default_route && !made.contains(kDefaultRouteNic)) {
      made.set(kDefaultRouteNic, nic.interface);
    }
  }
  if (!networks.empty()) made.set(kNetworks, join(networks, ","));
  return made;
}

}  // namespace dibs::drivers::net
