#include "drivers/net/ipam/selection.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/strings.h"
#include "drivers/net/model/fields.h"

namespace dibs::drivers::net {
namespace {

constexpr std::string_view kNoPool = "no IPPool available";
/// Of one family and interface. Whoever makes pods writes the list, and everybody waits while it is
/// compared with all pools.
constexpr std::size_t kMostNames = 100;
constexpr std::size_t kMostRefused = 3;  // in one message

using Names = std::vector<std::string>;
using PoolList = std::vector<std::shared_ptr<const IpPool>>;

/// What a rule names, before anything is dropped.
struct Named {
  Names v4, v6;
  bool empty() const { return v4.empty() && v6.empty(); }
};

bool is_pattern(std::string_view name) {
  return name.find_first_of("*?") != std::string_view::npos ||
         (name.find('[') != std::string_view::npos && name.find(']') != std::string_view::npos);
}

/// As Go prints several errors as one: each once, in brackets where there are more.
std::string aggregate(const Names& reasons) {
  Names once;
  for (const std::string& reason : reasons) {
    if (std::find(once.begin(), once.end(), reason) == once.end()) once.push_back(reason);
  }
  return once.size() == 1 ? once[0] : cat('[', join(once, ", "), ']');
}

class Selector {
 public:
  Selector(const Setting& setting, const NicAsk& nic, std::size_t index)
      : setting_(setting), nic_(nic), index_(index), clean_gateway_(nic.clean_gateway) {}

  Result<Candidates> select() {
    for (const auto rule : {&Selector::by_subnets, &Selector::by_pod, &Selector::by_claim,
                            &Selector::by_namespace, &Selector::by_config}) {
      DIBS_TRY(Named named, (this->*rule)());
      if (!named.empty()) return narrow(named);
    }
    return unnamed();
  }

 private:
  // --- Rules. Each names pools, or none where it does not apply.

  Result<Named> by_subnets() {
    DIBS_TRY(const auto items, subnet_annotations(setting_.pod));
    Named named;
    if (items.empty()) return named;
    if (!setting_.options.subnets) {
      return Error::invalid(
          "it's invalid to use 'ipam.spidernet.io/subnets' or 'ipam.spidernet.io/subnet' "
          "annotation when Auto-Pool feature is disabled");
    }
    if (setting_.application.orphan()) {
      return Error::invalid("SpiderSubnet feature doesn't support no-controller pod");
    }
    for (const SubnetsOfNic& item : items) {
      // Without a name it is for the default interface; the others have the lower rules.
      const bool fits = item.interface.empty() ? nic_.interface == kDefaultInterface
                                               : nic_.interface == item.interface;
      if (!fits) continue;
      DIBS_TRY(named.v4, auto_pools(4, item.ipv4));
      DIBS_TRY(named.v6, auto_pools(6, item.ipv6));
      return named;
    }
    if (items[0].interface.empty()) return named;
    return must_be_specified("ipam.spidernet.io/subnets");
  }

  Result<Names> auto_pools(int version, const Names& subnets) {
    if (subnets.empty()) return Names{};
    const std::string name = auto_pool_name(setting_.application, nic_.interface, version);
    if (has(version) && !exists(name)) {
      return Error::unavailable(cat("no matching auto-created IPPool candidate ", name, " for ",
                                    nic_.interface, ", SpiderSubnet ", go_list(subnets),
                                    " has not made it yet"));
    }
    return Names{name};
  }

  Result<Named> by_pod() {
    DIBS_TRY(const PoolAnnotations annotations, pool_annotations(setting_.pod));
    const PoolsOfNic* mine = nullptr;
    const auto& items = annotations.items;
    if (items.empty()) return Named{};
    if (!annotations.per_nic) {
      mine = &items[0];
    } else if (!items[0].interface.empty()) {
      for (const PoolsOfNic& item : items) {
        if (item.interface == nic_.interface) mine = &item;
      }
    } else if (index_ < items.size()) {
      mine = &items[index_];
    }
    if (mine == nullptr) return must_be_specified("ipam.spidernet.io/ippools");
    if (annotations.per_nic) clean_gateway_ = mine->clean_gateway;
    if (mine->ipv4.empty() && mine->ipv6.empty()) {
      return Error::invalid(cat("wrong input, the pod names no IPPool for NIC ", nic_.interface));
    }
    return expand_both(mine->ipv4, mine->ipv6);
  }

  Result<Named> by_claim() {
    Named named;
    for (const std::string& name : nic_.only_pools) {
      const auto pool = setting_.pools->find(name);
      if (pool == setting_.pools->end()) {
        const auto refused = setting_.refused.find(name);
        if (refused == setting_.refused.end()) return not_found(name);
        return Error::invalid(cat("invalid IPPool ", name, ": ", refused->second));
      }
      (pool->second->version == 4 ? named.v4 : named.v6).push_back(name);
    }
    return named;
  }

  Result<Named> by_namespace() {
    DIBS_TRY(const Names v4, namespace_default_pools(setting_.name_space, 4));
    DIBS_TRY(const Names v6, namespace_default_pools(setting_.name_space, 6));
    return expand_both(v4, v6);
  }

  Result<Named> by_config() { return expand_both(nic_.ipv4_pools, nic_.ipv6_pools); }

  /// Rules 5 and 6: nobody names pools, they offer themselves.
  Result<Candidates> unnamed() {
    const Named defaults = all_of([](const IpPool& pool) { return pool.is_default; });
    auto found = defaults.empty() ? Result<Candidates>(no_rule()) : narrow(defaults);
    // Where one family is served, the other's trouble is not for the next rule to mend.
    if (found.ok() || serves(defaults) || !setting_.options.multus_name_selects) return found;
    const Named own =
        all_of([&](const IpPool& pool) { return names_multus(setting_, nic_, pool); });
    return own.empty() ? found : narrow(own);
  }

  Error no_rule() const {
    return Error::invalid(cat(kNoPool, ", no pool selection rules of any type are specified",
                              refusals([](std::string_view) { return true; })));
  }

  /// Pools that might have served, had they not been refused: "; invalid IPPool a: …".
  template <class Wanted>
  std::string refusals(const Wanted& wanted) const {
    std::string text;
    std::size_t told = 0;
    for (const auto& [name, why] : setting_.refused) {
      if (!wanted(name)) continue;
      if (told++ == kMostRefused) return text + "; …";
      append(text, "; invalid IPPool ", name, ": ", why);
    }
    return text;
  }

  template <class Wanted>
  Named all_of(const Wanted& wanted) const {
    Named named;
    for (const auto& [name, pool] : *setting_.pools) {
      if (wanted(*pool)) (pool->version == 4 ? named.v4 : named.v6).push_back(name);
    }
    return named;
  }

  bool serves(const Named& named) const {
    for (const auto* names : {&named.v4, &named.v6}) {
      for (const std::string& name : *names) {
        const int version = names == &named.v4 ? 4 : 6;
        if (has(version) && reason(name, version).empty()) return true;
      }
    }
    return false;
  }

  // --- From names to pools.

  bool has(int version) const {
    return version == 4 ? setting_.options.ipv4 : setting_.options.ipv6;
  }
  bool exists(const std::string& name) const {
    return setting_.pools->contains(name) || setting_.refused.contains(name);
  }

  Error must_be_specified(std::string_view key) const {
    return Error::invalid(cat("wrong input, invalid format of Pod annotation '", key,
                              "': interface ", nic_.interface, " must be specified"));
  }
  static Error not_found(const std::string& name) {
    return Error::not_found(cat("failed to get original IPPool ", name,
                                ": SpiderIPPool.spiderpool.spidernet.io ", quoted(name),
                                " not found"));
  }

  Result<Named> expand_both(const Names& v4, const Names& v6) const {
    Named named;
    DIBS_TRY(named.v4, expand(4, v4));
    DIBS_TRY(named.v6, expand(6, v6));
    return named;
  }

  /// Patterns become the names of existing pools of the family, in the order of names.
  Result<Names> expand(int version, const Names& given) const {
    Names names;
    std::set<std::string> seen;
    // The rule applies, though nothing comes of it.
    if (!has(version)) return given;
    if (given.size() > kMostNames) {
      return Error::invalid(cat("wrong input, more than ", kMostNames,
                                " IPPools specified for NIC ", nic_.interface));
    }
    for (const std::string& name : given) {
      if (!is_pattern(name)) {
        if (!seen.insert(name).second) {
          return Error::invalid(
              cat("wrong input, duplicate IPPool ", name, " specified for NIC ", nic_.interface));
        }
        if (!exists(name)) return not_found(name);
        names.push_back(name);
        continue;
      }
      for (const auto& [candidate, pool] : *setting_.pools) {
        auto fits = matches_pattern(name, candidate);
        if (!fits.ok()) {
          return fits.error().within(
              cat("failed to match wildcard: IPv", version, " PoolName pattern '", name, "'"));
        }
        if (*fits && pool->version == version && seen.insert(candidate).second) {
          names.push_back(candidate);
        }
      }
    }
    if (names.empty() && !given.empty()) {
      const auto meant = [&](std::string_view refused) {
        return std::any_of(given.begin(), given.end(), [&](const std::string& pattern) {
          const auto fits = matches_pattern(pattern, refused);
          return fits.ok() && *fits;
        });
      };
      return Error::invalid(cat(kNoPool, ", no IPv", version, " IPPool matches ", go_list(given),
                                " of ", nic_.interface, refusals(meant)));
    }
    return names;
  }

  // --- Filters and ranking.

  Result<Candidates> narrow(const Named& named) {
    Candidates made{.v4 = {}, .v6 = {}, .clean_gateway = clean_gateway_};
    DIBS_TRY(made.v4, narrow(4, named.v4));
    DIBS_TRY(made.v6, narrow(6, named.v6));
    if (made.v4.empty() && made.v6.empty()) {
      return Error::invalid(
          cat(kNoPool, ", the IP families of all IPPools of ", nic_.interface, " are disabled"));
    }
    return made;
  }

  Result<Names> narrow(int version, const Names& named) const {
    if (named.empty() || !has(version)) return Names{};
    PoolList left;
    Names reasons;
    for (const std::string& name : named) {
      std::string why = reason(name, version);
      if (why.empty()) {
        left.push_back(setting_.pools->find(name)->second);
      } else {
        reasons.push_back(std::move(why));
      }
    }
    if (left.empty()) {
      return Error::invalid(cat(kNoPool, ", all IPv", version, " IPPools ", go_list(named), " of ",
                                nic_.interface, " filtered out: ", aggregate(reasons)));
    }
    rank_pools(left);
    Names names;
    for (const auto& pool : left) names.push_back(pool->name);
    return names;
  }

  std::string reason(const std::string& name, int version) const {
    if (const auto refused = setting_.refused.find(name); refused != setting_.refused.end()) {
      return cat("invalid IPPool ", name, ": ", refused->second);
    }
    return filter_reason(setting_, nic_, *setting_.pools->find(name)->second, version);
  }

  const Setting& setting_;
  const NicAsk& nic_;
  const std::size_t index_;
  bool clean_gateway_;
};

}  // namespace

Result<Candidates> select_pools(const Setting& setting, const NicAsk& nic, std::size_t index) {
  return Selector(setting, nic, index).select();
}

void rank_pools(PoolList& pools) {
  const auto key = [](const IpPool& pool) {
    return std::make_tuple(!pool.pod_affinity, pool.node_names.empty(), !pool.node_affinity,
                           pool.namespace_names.empty(), !pool.namespace_affinity,
                           pool.multus_names.empty());
  };
  std::stable_sort(pools.begin(), pools.end(),
                   [&](const auto& a, const auto& b) { return key(*a) < key(*b); });
}

Result<SubnetMatch> parse_subnet_match(std::string_view text) {
  if (text == "auto") return SubnetMatch::automatic;
  if (text == "strict") return SubnetMatch::strict;
  if (text == "off") return SubnetMatch::off;
  return Error::invalid(cat("subnet match ", quoted(text), " is none of auto, strict, off"));
}

}  // namespace dibs::drivers::net
