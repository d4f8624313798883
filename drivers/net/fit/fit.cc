#include "drivers/net/fit/fit.h"

#include <algorithm>
#include <numeric>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

bool is_layered(const MultusConfig& config) {
  return config.cni_type == "macvlan" || config.cni_type == "ipvlan" || config.cni_type == "vlan";
}

bool is_sriov(const MultusConfig& config) {
  return config.cni_type == "sriov" || config.cni_type == "ib-sriov";
}

/// The interface that a configuration of CNI names itself, in its only or first plugin.
std::string custom_master(const MultusConfig& config) {
  const auto parsed = json::parse(config.custom_cni);
  if (!parsed) return {};
  const json::Value& plugins = (*parsed)["plugins"];
  return (plugins.is_array() ? plugins[0] : *parsed)["master"].str();
}

bool needs_facts(const Need& need) {
  return need.config.cni_type != "custom" || !custom_master(need.config).empty();
}

bool has(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// One decision: what is used grows with each NIC that is served.
class Fitting {
 public:
  Fitting(const NodeState& state, const ClaimParameter& parameter, const Used& used)
      : state_(state), parameter_(parameter), used_(used) {}

  Result<Grant> run(const std::vector<Need>& needs) {
    grant_.node = state_.node;
    grant_.rdma_acc = parameter_.rdma_acc;
    grant_.nics.resize(needs.size());
    for (const std::size_t i : order(needs)) {
      Given& nic = grant_.nics[i];
      nic.interface = needs[i].interface;
      nic.multus = needs[i].config.key();
      nic.cni_type = needs[i].config.cni_type;
      config_ = &needs[i].config;
      DIBS_CHECK(serve(nic));
    }
    for (const auto& [name, amount] : parameter_.resources) DIBS_CHECK(take(name, amount));
    return grant_;
  }

 private:
  /// Whoever can use the fewest functions chooses first: one that is named, then InfiniBand (whose
  /// functions all have RDMA), then RDMA.
  std::vector<std::size_t> order(const std::vector<Need>& needs) const {
    const auto rank = [&](std::size_t i) {
      const MultusConfig& config = needs[i].config;
      if (config.cni_type == "ovs" && !config.device_id.empty()) return 0;
      if (config.cni_type == "ib-sriov") return 1;
      return config.cni_type == "sriov" && wants_rdma(config) ? 2 : 3;
    };
    std::vector<std::size_t> indexes(needs.size());
    std::iota(indexes.begin(), indexes.end(), 0);
    std::stable_sort(indexes.begin(), indexes.end(),
                     [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    return indexes;
  }

  bool wants_rdma(const MultusConfig& config) const {
    return config.enable_rdma || config.rdma_isolation || parameter_.enable_rdma;
  }

  /// Every reason ends with the config that has it.
  Error missing(std::string_view what) const {
    return Error::unavailable(cat(what, " (", config_->key(), ")"));
  }

  Result<> serve(Given& nic) {
    if (is_layered(*config_)) return serve_layered(nic);
    if (is_sriov(*config_)) return serve_function(nic);
    if (config_->cni_type == "ipoib") return serve_ipoib(nic);
    if (config_->cni_type == "ovs") return serve_ovs(nic);
    return serve_custom(nic);
  }

  Result<const Interface*> interface(const std::string& name) const {
    const Interface* found = state_.find(name);
    if (found == nullptr) return missing(cat("no interface ", quoted(name)));
    if (!found->pci_address.empty() && used_.vfs.count(found->pci_address) > 0) {
      return missing(cat("interface ", quoted(name), " is given to a pod as a whole"));
    }
    return found;
  }

  // -- macvlan, ipvlan, vlan
  // -----------------------------------------------------------------------

  Result<> serve_layered(Given& nic) {
    nic.master = traffic_device(*config_);
    const Interface* first = nullptr;
    for (const auto& name : config_->masters) {
      DIBS_TRY(const Interface* master, interface(name));
      if (!master->admin_up) return missing(cat("interface ", quoted(name), " is down"));
      if (first == nullptr || (!first->rdma && master->rdma)) first = master;
    }
    if (first == nullptr) return missing("no master");
    DIBS_CHECK(check_bond());
    DIBS_CHECK(check_vlan(nic.master));
    DIBS_CHECK(check_mix(nic.master));
    used_.masters[nic.master].insert(config_->cni_type);
    return add_rdma(nic, *first);
  }

  std::string base_device() const {
    return config_->masters.size() > 1 && config_->bond ? config_->bond->name
                                                        : config_->masters.front();
  }

  Result<> check_bond() const {
    if (config_->masters.size() < 2 || !config_->bond) return success();
    const std::string& name = config_->bond->name;
    std::vector<std::string> wanted = config_->masters;
    std::sort(wanted.begin(), wanted.end());
    if (const Interface* bond = state_.find(name)) {
      if (bond->kind == "bond" && bond->bond_members == wanted) return success();
      return missing(cat("interface ", quoted(name), " is no bond of ", join(wanted, ", ")));
    }
    for (const auto& other : state_.interfaces) {
      for (const auto& member : other.bond_members) {
        if (has(wanted, member)) {
          return missing(
              cat("interface ", quoted(member), " is part of bond ", quoted(other.name)));
        }
      }
    }
    return success();
  }

  Result<> check_vlan(const std::string& device) const {
    if (config_->vlan_id == 0) return success();
    const Interface* vlan = state_.find(device);
    const std::string base = base_device();
    if (vlan == nullptr || device == base) return success();
    if (vlan->kind == "vlan" && vlan->vlan_id == config_->vlan_id && vlan->parent == base) {
      return success();
    }
    return missing(
        cat("interface ", quoted(device), " is no VLAN ", config_->vlan_id, " of ", base));
  }

  /// The kernel has macvlan or ipvlan links on a device, never both.
  Result<> check_mix(const std::string& device) const {
    const bool macvlan = config_->cni_type == "macvlan";
    if (!macvlan && config_->cni_type != "ipvlan") return success();
    const std::string other = macvlan ? "ipvlan" : "macvlan";
    const auto used = used_.masters.find(device);
    bool mixed = used != used_.masters.end() && used->second.count(other) > 0;
    for (const auto& link : state_.interfaces) {
      mixed = mixed || (link.parent == device && link.kind == other);
    }
    if (!mixed) return success();
    return missing(cat("interface ", quoted(device), " carries ", other, " links"));
  }

  /// `master` has an RDMA device if any of the NIC's has one.
  Result<> add_rdma(Given& nic, const Interface& master) {
    const bool asked = config_->enable_rdma || !config_->rdma_resource_name.empty();
    if (!asked && !parameter_.enable_rdma) return success();
    if (parameter_.enable_rdma && !master.rdma) {
      return missing(cat("interface ", quoted(master.name), " has no RDMA device"));
    }
    std::string name = config_->rdma_resource_name;
    if (name.empty()) {
      std::vector<std::string> pools;
      for (const auto& pool : state_.pools) {
        if (pool.kind == PoolKind::rdma_shared && has(pool.devices, master.name)) {
          pools.push_back(pool.resource_name);
        }
      }
      // Asked for by the claim alone, the device itself will do.
      if (pools.empty() && asked) {
        return missing(cat("no RDMA pool has interface ", quoted(master.name)));
      }
      if (pools.size() > 1) {
        return missing(cat("interface ", quoted(master.name), " is in several RDMA pools (",
                           join(pools, ", "), "), rdmaResourceName must name one"));
      }
      if (!pools.empty()) name = pools.front();
    }
    if (!name.empty()) {
      DIBS_TRY(const ResourcePool* pool, pool_of(name, PoolKind::rdma_shared));
      DIBS_CHECK(take_shares(*pool, 1));
      nic.resource_name = name;
    }
    if (master.rdma) nic.rdma_device = master.rdma->device;
    return success();
  }

  // -- Functions
  // -----------------------------------------------------------------------------------

  Result<const ResourcePool*> pool_of(const std::string& name, PoolKind kind) const {
    const ResourcePool* pool = state_.pool(name);
    if (pool == nullptr) return Error::unavailable(cat("no resource ", name));
    if (pool->kind != kind) {
      return Error::unavailable(cat("resource ", name, " is of kind ", pool_kind_name(pool->kind),
                                    ", not ", pool_kind_name(kind)));
    }
    return pool;
  }

  /// Of other pods, on itself or on a VLAN of it.
  bool carries_links(const std::string& name) const {
    return std::any_of(used_.masters.begin(), used_.masters.end(), [&](const auto& used) {
      return used.first == name || used.first.starts_with(name + ".");
    });
  }

  struct Function {
    const Interface* pf = nullptr;
    std::string rdma_device = {};
  };

  /// One that a pod can get now.
  std::optional<Function> free_function(const std::string& pci_address) const {
    if (used_.vfs.count(pci_address) > 0) return std::nullopt;
    if (const auto found = state_.vf(pci_address)) {
      if (!found->vf->available) return std::nullopt;
      return Function{found->pf, found->vf->rdma_device};
    }
    for (const auto& interface : state_.interfaces) {
      if (interface.pci_address != pci_address) continue;
      if (carries_links(interface.name)) return std::nullopt;
      return Function{&interface, interface.rdma ? interface.rdma->device : ""};
    }
    return std::nullopt;
  }

  Result<const ResourcePool*> function_pool() const {
    if (!config_->resource_name.empty()) {
      return pool_of(config_->resource_name, PoolKind::sriov_vf);
    }
    const ResourcePool* found = nullptr;
    for (const auto& pool : state_.pools) {
      if (pool.kind != PoolKind::sriov_vf) continue;
      if (found != nullptr) return missing("several SR-IOV pools, resourceName must name one");
      found = &pool;
    }
    if (found == nullptr) return missing("no SR-IOV pool");
    return found;
  }

  Result<> serve_function(Given& nic) {
    DIBS_TRY(const ResourcePool* pool, function_pool());
    const bool infiniband = config_->cni_type == "ib-sriov";
    const bool rdma = wants_rdma(*config_);
    if ((config_->enable_rdma || config_->rdma_isolation) &&
        state_.rdma_netns_mode != "exclusive") {
      return missing("RDMA network namespace mode is not exclusive");
    }
    bool any = false;
    for (const auto& address : pool->devices) {  // ascending
      const auto function = free_function(address);
      if (!function) continue;
      any = true;
      if (infiniband && function->pf->link_layer != "infiniband") continue;
      if (rdma && function->rdma_device.empty()) continue;
      nic.master = function->pf->name;
      nic.vf = address;
      nic.rdma_device = function->rdma_device;
      nic.resource_name = pool->resource_name;
      give(pool->resource_name, address);
      return success();
    }
    const char* which = !any ? "VF" : infiniband ? "InfiniBand VF" : "VF with an RDMA device";
    return Error::unavailable(cat("no free ", which, " in ", pool->resource_name));
  }

  void give(const std::string& pool, const std::string& address) {
    used_.vfs.insert(address);
    grant_.resources[pool].push_back(address);
  }

  // -- The others
  // ----------------------------------------------------------------------------------

  Result<> check_rdma(Given& nic, const Interface& interface) {
    if (!parameter_.enable_rdma) return success();
    if (!interface.rdma) {
      return missing(cat("interface ", quoted(interface.name), " has no RDMA device"));
    }
    nic.rdma_device = interface.rdma->device;
    return success();
  }

  Result<> serve_ipoib(Given& nic) {
    if (config_->masters.empty()) return missing("no master");
    DIBS_TRY(const Interface* master, interface(config_->masters.front()));
    if (master->link_layer != "infiniband") {
      return missing(cat("interface ", quoted(master->name), " is no InfiniBand device"));
    }
    nic.master = master->name;
    return check_rdma(nic, *master);
  }

  Result<> serve_ovs(Given& nic) {
    if (!has(state_.ovs_bridges, config_->bridge)) {
      return missing(cat("no OVS bridge ", quoted(config_->bridge)));
    }
    nic.master = config_->bridge;
    std::string rdma_device;
    if (!config_->device_id.empty()) {
      const auto function = free_function(config_->device_id);
      if (!function) {
        const bool known = used_.vfs.count(config_->device_id) > 0 || state_.vf(config_->device_id);
        return missing(cat("device ", config_->device_id, known ? " is in use" : " is not there"));
      }
      used_.vfs.insert(config_->device_id);
      nic.vf = config_->device_id;
      rdma_device = function->rdma_device;
    }
    if (parameter_.enable_rdma && rdma_device.empty()) return missing("no RDMA device");
    if (parameter_.enable_rdma) nic.rdma_device = rdma_device;
    return success();
  }

  Result<> serve_custom(Given& nic) {
    const std::string name = custom_master(*config_);
    if (name.empty()) {
      return parameter_.enable_rdma ? Result<>(missing("no RDMA device")) : success();
    }
    DIBS_TRY(const Interface* master, interface(name));
    nic.master = name;
    return check_rdma(nic, *master);
  }

  // -- Resources of the claim
  // ----------------------------------------------------------------------

  Result<> take_shares(const ResourcePool& pool, std::int64_t amount) {
    const std::string& name = pool.resource_name;
    const auto found = used_.shares.find(name);
    const std::int64_t left = std::max<std::int64_t>(
        0, pool.capacity - (found == used_.shares.end() ? 0 : found->second));
    if (left < amount) {
      return Error::unavailable(left == 0
                                    ? cat("no free share in ", name)
                                    : cat("only ", left, " free in ", name, ", not ", amount));
    }
    auto& held = grant_.resources[name];
    for (std::int64_t i = 0; i < amount; ++i) held.push_back(cat(held.size()));
    used_.shares[name] += amount;
    return success();
  }

  /// What NICs have of it already counts: the greater number is needed, not the sum.
  Result<> take(const std::string& name, std::int64_t amount) {
    const auto held = grant_.resources.find(name);
    const auto of_nics =
        held == grant_.resources.end() ? 0 : static_cast<std::int64_t>(held->second.size());
    const std::int64_t more = amount - of_nics;
    if (more <= 0) return success();
    const ResourcePool* pool = state_.pool(name);
    if (pool == nullptr) return Error::unavailable(cat("no resource ", name));
    if (pool->kind != PoolKind::sriov_vf) return take_shares(*pool, more);
    std::vector<std::string> free;
    for (const auto& address : pool->devices) {
      if (static_cast<std::int64_t>(free.size()) == more) break;
      if (free_function(address)) free.push_back(address);
    }
    if (static_cast<std::int64_t>(free.size()) < more) {
      return Error::unavailable(
          free.empty() ? cat("no free VF in ", name)
                       : cat("only ", free.size(), " free VFs in ", name, ", not ", more));
    }
    for (const auto& address : free) give(name, address);
    return success();
  }

  const NodeState& state_;
  const ClaimParameter& parameter_;
  Used used_;
  Grant grant_;
  const MultusConfig* config_ = nullptr;
};

}  // namespace

Result<Grant> fit(const NodeState* state, const std::vector<Need>& needs,
                  const ClaimParameter& parameter, const Used& used, Time now) {
  const bool wants_rdma = parameter.enable_rdma && !needs.empty();
  const bool needed = wants_rdma || !parameter.resources.empty() ||
                      std::any_of(needs.begin(), needs.end(), needs_facts);
  if (needed) {
    if (state == nullptr) return Error::unavailable("no SpiderNodeState");
    if (!state->problem.empty()) {
      return Error::unavailable(cat("SpiderNodeState is not ready: ", state->problem));
    }
    if (now - state->observed > kStateLifetime) {
      return Error::unavailable(
          cat("SpiderNodeState is ", human_duration(now - state->observed), " old"));
    }
  }
  const NodeState nothing;
  return Fitting(state != nullptr ? *state : nothing, parameter, used).run(needs);
}

std::optional<std::vector<Subnet>> host_subnets(const NodeState& state, const MultusConfig& config,
                                                std::string_view vf) {
  const Interface* device = nullptr;
  if (is_layered(config) || config.cni_type == "ipoib") {
    device = state.find(traffic_device(config));
  } else if (config.cni_type == "ovs") {
    device = state.find(config.bridge);
  } else if (config.cni_type == "custom") {
    device = state.find(custom_master(config));
  } else if (const auto found = state.vf(vf)) {
    device = found->pf;
  }
  if (device == nullptr) return std::nullopt;
  std::vector<Subnet> out;
  for (const auto& address : device->addresses) {
    const auto ip = Ip::parse(std::string_view(address).substr(0, address.find('/')));
    if (ip) out.push_back({*ip, ip->width()});
  }
  return out;
}

}  // namespace dibs::drivers::net
