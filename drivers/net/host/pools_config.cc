#include "drivers/net/host/pools_config.h"

#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "base/interface_name.h"
#include "base/names.h"
#include "base/strings.h"
#include "drivers/net/host/hardware.h"
#include "drivers/net/model/field_reader.h"
#include "json/yaml.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::int64_t kMaxCount = 1'000'000;
constexpr int kMaxFunction = 65'535;
/// It is an attribute of devices, and those are no longer.
constexpr std::size_t kMaxNameLength = 64;

// -- Reading
// ---------------------------------------------------------------------------------------

void only(const FieldReader& in, const Value& object,
          std::initializer_list<std::string_view> keys) {
  for (const auto& [key, value] : object.members()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) in.fail(key, "unknown key");
  }
}

/// PCI identifiers are four digits.
std::vector<std::string> read_ids(const FieldReader& in, std::string_view key) {
  std::vector<std::string> ids = in.texts(key);
  for (auto& id : ids) {
    id = to_lower(id);
    const bool digits = std::all_of(id.begin(), id.end(), [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    });
    if (id.size() != 4 || !digits) {
      in.fail(key, cat(quoted(id), " is not four hexadecimal digits, such as \"15b3\""));
    }
  }
  return ids;
}

std::vector<std::string> read_addresses(const FieldReader& in, std::string_view key) {
  std::vector<std::string> addresses = in.texts(key);
  for (auto& address : addresses) {
    address = to_lower(address);
    if (!is_pci_address(address)) {
      in.fail(key, cat(quoted(address), " is no PCI address, such as \"0000:81:00.0\""));
    }
  }
  return addresses;
}

std::vector<std::string> read_link_types(const FieldReader& in) {
  std::vector<std::string> types = in.texts("linkTypes");
  for (auto& type : types) {
    if (type == "ether") type = "ethernet";
    if (type != "ethernet" && type != "infiniband") {
      in.fail("linkTypes", cat(quoted(type), " is neither ether nor infiniband"));
    }
  }
  return types;
}

std::optional<int> read_index(std::string_view text) {
  int number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return number >= 0 && number <= kMaxFunction ? std::optional(number) : std::nullopt;
}

/// "ens1f0np0#0-3,6"
std::optional<PfName> read_pf_name(std::string_view text) {
  const std::size_t mark = text.find('#');
  PfName out;
  out.name = text.substr(0, mark);
  if (!is_interface_name(out.name)) return std::nullopt;
  if (mark == std::string_view::npos) return out;
  for (const auto piece : split(text.substr(mark + 1), ',')) {
    const std::size_t dash = piece.find('-');
    const auto first = read_index(piece.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : read_index(piece.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    out.functions.emplace_back(*first, *last);
  }
  return out;
}

DeviceSelectors read_sriov_selectors(const FieldReader& in, const Value& object) {
  only(in, object,
       {"vendors", "devices", "drivers", "pciAddresses", "pfNames", "rootDevices", "linkTypes",
        "isRdma"});
  DeviceSelectors out;
  out.vendors = read_ids(in, "vendors");
  out.devices = read_ids(in, "devices");
  out.drivers = in.texts("drivers");
  out.pci_addresses = read_addresses(in, "pciAddresses");
  out.root_devices = read_addresses(in, "rootDevices");
  out.link_types = read_link_types(in);
  out.is_rdma = in.flag("isRdma");
  for (const auto& text : in.texts("pfNames")) {
    auto name = read_pf_name(text);
    if (name) out.pf_names.push_back(*std::move(name));
    if (!name) {
      in.fail("pfNames", cat(quoted(text), " is no interface, as \"eth1\" or \"eth1#0-3,6\""));
    }
  }
  return out;
}

DeviceSelectors read_rdma_selectors(const FieldReader& in, const Value& object) {
  only(in, object, {"vendors", "deviceIDs", "drivers", "ifNames", "linkTypes"});
  DeviceSelectors out;
  out.vendors = read_ids(in, "vendors");
  out.devices = read_ids(in, "deviceIDs");
  out.drivers = in.texts("drivers");
  out.if_names = in.texts("ifNames");
  out.link_types = read_link_types(in);
  return out;
}

std::string read_resource_name(const FieldReader& in) {
  const std::string prefix =
      in.has("resourcePrefix") ? in.text("resourcePrefix") : std::string(kDefaultResourcePrefix);
  const std::string name = in.text("resourceName");
  if (name.empty()) {
    in.fail("resourceName", "must not be empty");
    return {};
  }
  std::string full = cat(prefix, "/", name);
  if (const Faults faults = is_qualified_name(full); !faults.empty()) {
    in.fail("resourceName", cat(quoted(full), ": ", faults.front()));
  } else if (full.size() > kMaxNameLength) {
    in.fail("resourceName", cat(quoted(full), ": must be at most ", kMaxNameLength,
                                " characters, prefix included"));
  }
  return full;
}

PoolRule read_sriov(const FieldReader& in, const Value& object) {
  only(in, object, {"resourceName", "resourcePrefix", "deviceType", "selectors"});
  PoolRule rule;
  rule.kind = PoolKind::sriov_vf;
  rule.resource_name = read_resource_name(in);
  if (in.has("deviceType") && in.text("deviceType") != "netDevice") {
    in.fail("deviceType", "must be netDevice");
  }
  const Value& selectors = object["selectors"];
  if (selectors.is_array()) {
    for (std::size_t i = 0; i < selectors.size(); ++i) {
      rule.selectors.push_back(read_sriov_selectors(in.item("selectors", i), selectors[i]));
    }
  } else {
    rule.selectors.push_back(read_sriov_selectors(in.in("selectors"), selectors));
  }
  return rule;
}

std::int64_t read_count(const FieldReader& in, std::string_view key, std::int64_t usual) {
  if (!in.has(key)) return usual;
  const std::int64_t count = in.number(key);
  if (count > kMaxCount) in.fail(key, cat("must be at most ", kMaxCount));
  return count;
}

PoolRule read_rdma(const FieldReader& in, const Value& object) {
  only(in, object, {"resourceName", "resourcePrefix", "rdmaHcaMax", "selectors", "devices"});
  PoolRule rule;
  rule.kind = PoolKind::rdma_shared;
  rule.resource_name = read_resource_name(in);
  rule.count = read_count(in, "rdmaHcaMax", kDefaultRdmaShares);
  if (in.has("devices") == in.has("selectors")) {
    in.fail("selectors", "exactly one of selectors and devices must be given");
  }
  DeviceSelectors selectors = read_rdma_selectors(in.in("selectors"), object["selectors"]);
  if (in.has("devices")) {
    selectors.if_names = in.texts("devices");
    if (selectors.if_names.empty()) in.fail("devices", "must not be empty");
  }
  rule.selectors.push_back(std::move(selectors));
  return rule;
}

PoolRule read_masters(const FieldReader& in, const Value& object) {
  only(in, object, {"resourcePrefix", "defaultMaxCount", "includeInterfaces", "excludeInterfaces"});
  PoolRule rule;
  rule.kind = PoolKind::master_nic;
  rule.resource_name =
      in.has("resourcePrefix") ? in.text("resourcePrefix") : std::string(kDefaultResourcePrefix);
  if (const Faults faults = is_dns1123_subdomain(rule.resource_name); !faults.empty()) {
    in.fail("resourcePrefix", cat(quoted(rule.resource_name), ": ", faults.front()));
  }
  rule.count = read_count(in, "defaultMaxCount", kDefaultMasterCount);
  rule.include = in.texts("includeInterfaces");
  rule.exclude = in.texts("excludeInterfaces");
  return rule;
}

// -- Matching
// --------------------------------------------------------------------------------------

/// A function that a pod may get as a whole.
struct Candidate {
  const Interface* pf = nullptr;
  const VirtualFunction* vf = nullptr;  // null: the physical function itself

  const std::string& pci_address() const { return vf ? vf->pci_address : pf->pci_address; }
  const std::string& vendor() const { return vf ? vf->vendor : pf->vendor; }
  const std::string& device() const { return vf ? vf->device : pf->device; }
  const std::string& driver() const { return vf ? vf->driver : pf->driver; }
  bool has_rdma() const { return vf ? !vf->rdma_device.empty() : pf->rdma.has_value(); }
};

bool allows(const std::vector<std::string>& list, const std::string& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

bool allows(const std::vector<PfName>& names, const Candidate& candidate) {
  if (names.empty()) return true;
  return std::any_of(names.begin(), names.end(), [&](const PfName& name) {
    if (name.name != candidate.pf->name) return false;
    if (name.functions.empty()) return true;
    return candidate.vf != nullptr &&
           std::any_of(name.functions.begin(), name.functions.end(), [&](const auto& range) {
             return range.first <= candidate.vf->index && candidate.vf->index <= range.second;
           });
  });
}

bool matches(const DeviceSelectors& selectors, const Candidate& candidate) {
  return allows(selectors.vendors, candidate.vendor()) &&
         allows(selectors.devices, candidate.device()) &&
         allows(selectors.drivers, candidate.driver()) &&
         allows(selectors.pci_addresses, candidate.pci_address()) &&
         allows(selectors.pf_names, candidate) &&
         allows(selectors.root_devices, candidate.pf->pci_address) &&
         allows(selectors.link_types, candidate.pf->link_layer) &&
         (!selectors.is_rdma || candidate.has_rdma());
}

bool shares(const DeviceSelectors& selectors, const Interface& interface) {
  return interface.rdma && allows(selectors.vendors, interface.vendor) &&
         allows(selectors.devices, interface.device) &&
         allows(selectors.drivers, interface.driver) &&
         allows(selectors.if_names, interface.name) &&
         allows(selectors.link_types, interface.link_layer);
}

/// Giving it away would cut the node off.
bool is_used_by_host(const Interface& interface, const std::vector<Interface>& interfaces) {
  return !interface.addresses.empty() ||
         std::any_of(interfaces.begin(), interfaces.end(), [&](const Interface& other) {
           return other.parent == interface.name ||
                  std::find(other.bond_members.begin(), other.bond_members.end(), interface.name) !=
                      other.bond_members.end();
         });
}

std::vector<Candidate> candidates_of(const std::vector<Interface>& interfaces) {
  std::vector<Candidate> out;
  for (const auto& interface : interfaces) {
    if (interface.pci_address.empty()) continue;
    const bool divided =
        interface.sriov && (interface.sriov->num_vfs > 0 || !interface.sriov->vfs.empty());
    if (!divided && !is_used_by_host(interface, interfaces)) out.push_back({&interface, nullptr});
    if (!interface.sriov) continue;
    for (const auto& vf : interface.sriov->vfs) out.push_back({&interface, &vf});
  }
  return out;
}

ResourcePool sriov_pool(const PoolRule& rule, const std::vector<Candidate>& candidates,
                        std::set<std::string>& owned) {
  ResourcePool pool{rule.resource_name, rule.kind, 0, {}};
  for (const auto& candidate : candidates) {
    const bool matched =
        std::any_of(rule.selectors.begin(), rule.selectors.end(),
                    [&](const auto& selectors) { return matches(selectors, candidate); });
    if (matched && owned.insert(candidate.pci_address()).second) {
      pool.devices.push_back(candidate.pci_address());
    }
  }
  std::sort(pool.devices.begin(), pool.devices.end());
  pool.capacity = static_cast<std::int64_t>(pool.devices.size());
  return pool;
}

ResourcePool rdma_pool(const PoolRule& rule, const std::vector<Interface>& interfaces) {
  ResourcePool pool{rule.resource_name, rule.kind, 0, {}};
  for (const auto& interface : interfaces) {
    const bool matched =
        std::any_of(rule.selectors.begin(), rule.selectors.end(),
                    [&](const auto& selectors) { return shares(selectors, interface); });
    if (matched) pool.devices.push_back(interface.name);
  }
  if (!pool.devices.empty()) pool.capacity = rule.count;
  return pool;
}

void add_master_pools(const PoolRule& rule, const std::vector<Interface>& interfaces,
                      std::vector<ResourcePool>& pools) {
  for (const auto& interface : interfaces) {
    const bool included =
        rule.include.empty() ? !interface.is_virtual : matches_any(rule.include, interface.name);
    if (!included || matches_any(rule.exclude, interface.name)) continue;
    std::string name = cat(rule.resource_name, "/", interface.name, "-nic");
    if (!is_qualified_name(name).empty() || name.size() > kMaxNameLength) continue;
    pools.push_back({std::move(name), rule.kind, rule.count, {interface.name}});
  }
}

}  // namespace

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

Result<PoolsConfig> parse_pools_config(std::string_view text) {
  const auto parsed = json::parse_yaml(text);
  if (!parsed) return Error::invalid(parsed.error().message());
  const Value& file = *parsed;
  std::optional<Error> error;
  const FieldReader in(file, "", error);
  only(in, file, {"resourceList", "configList", "masterNIC", "periodicUpdateInterval"});
  PoolsConfig config;
  for (std::size_t i = 0; i < in.list("resourceList").size(); ++i) {
    config.rules.push_back(read_sriov(in.item("resourceList", i), file["resourceList"][i]));
  }
  for (std::size_t i = 0; i < in.list("configList").size(); ++i) {
    config.rules.push_back(read_rdma(in.item("configList", i), file["configList"][i]));
  }
  std::set<std::string> names;
  for (const auto& rule : config.rules) {
    if (!names.insert(rule.resource_name).second) {
      in.fail("resourceName", cat("two pools are named ", rule.resource_name));
    }
  }
  if (in.has("masterNIC"))
    config.rules.push_back(read_masters(in.in("masterNIC"), file["masterNIC"]));
  if (const std::int64_t seconds = in.number("periodicUpdateInterval"); seconds > 0) {
    config.rescan = std::min<Duration>(config.rescan,
                                       std::chrono::seconds(std::min<std::int64_t>(seconds, 60)));
  }
  if (error) return *std::move(error);
  return config;
}

std::vector<ResourcePool> pools_of(const PoolsConfig& config,
                                   const std::vector<Interface>& interfaces) {
  const std::vector<Candidate> candidates = candidates_of(interfaces);
  std::set<std::string> owned;
  std::vector<ResourcePool> pools;
  for (const auto& rule : config.rules) {
    switch (rule.kind) {
      case PoolKind::sriov_vf:
        pools.push_back(sriov_pool(rule, candidates, owned));
        break;
      case PoolKind::rdma_shared:
        pools.push_back(rdma_pool(rule, interfaces));
        break;
      case PoolKind::master_nic:
        add_master_pools(rule, interfaces, pools);
        break;
    }
  }
  return pools;
}

}  // namespace dibs::drivers::net
