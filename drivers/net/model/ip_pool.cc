#include "drivers/net/model/ip_pool.h"

#include <algorithm>

#include "base/strings.h"
#include "drivers/net/model/address_space.h"
#include "drivers/net/model/fields.h"

namespace dibs::drivers::net {
namespace {

constexpr std::string_view kJointly =
    ", total IP addresses of an IPPool are jointly determined by 'spec.ips' and "
    "'spec.excludeIPs'";
constexpr std::size_t kUseFaults = 10;

Result<std::optional<api::LabelSelector>> selector(const json::Value& spec, std::string_view key) {
  const json::Value& value = spec[key];
  if (value.is_null()) return std::optional<api::LabelSelector>();
  auto made = api::to_label_selector(value);
  if (value.is_object() && made.ok()) return std::optional(std::move(*made));
  api::FieldErrors errors;
  const api::Path path("spec");
  errors.invalid(path.child(key), value,
                 made.ok() ? "must be a label selector" : made.error().message());
  return first_fault(errors);
}

Result<> pod_affinity(const json::Value& spec, IpPool& pool) {
  const json::Value& affinity = spec["podAffinity"];
  if (affinity.is_null()) return success();
  api::FieldErrors errors;
  const api::Path path("spec");
  const api::Path where = path.child("podAffinity");
  const json::Value& labels = affinity["matchLabels"];
  if (!pool.automatic) {
    DIBS_TRY(pool.pod_affinity, selector(spec, "podAffinity"));
    if (!pool.pod_affinity->empty()) return success();
    errors.invalid(where, affinity, "empty podAffinity is invalid for SpiderIPPool");
    return first_fault(errors);
  }
  for (const auto& [key, value] : labels.members()) {
    const auto& known = kApplicationLabels;
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      errors.invalid(where, affinity,
                     "it's invalid to add additional podAffinity matchLabels for auto-created "
                     "SpiderIPPool");
      return first_fault(errors);
    }
  }
  if (!affinity["matchExpressions"].empty()) {
    errors.invalid(where, affinity,
                   "it's invalid to add additional podAffinity matchExpressions for auto-created "
                   "SpiderIPPool");
    return first_fault(errors);
  }
  pool.pod_affinity = api::LabelSelector();
  pool.application_labels = labels;
  return success();
}

std::string overlapping_subnet(const AddressSpace& mine, const AddressSpace& other,
                               std::string_view kind) {
  return cat("spec.subnet: Invalid value: ", quoted(mine.subnet.str()), ": overlap with ", kind,
             ' ', other.name, " which 'spec.subnet' is ", other.subnet.str());
}

std::string overlapping_addresses(const IpPool& mine, const IpPool& other) {
  return cat("spec.ips: Forbidden: overlap with IPPool ", other.name, " in IP ranges ",
             go_list(mine.total.intersection(other.total).to_strings()), kJointly);
}

/// "" where the two get along.
std::string conflict(const IpPool& pool, const IpPool& other) {
  if (other.name == pool.name || other.version != pool.version) return {};
  if (other.subnet == pool.subnet) {
    return pool.total.intersects(other.total) ? overlapping_addresses(pool, other) : "";
  }
  return other.subnet.overlaps(pool.subnet) ? overlapping_subnet(pool, other, "IPPool") : "";
}

}  // namespace

Result<IpPool> parse_ip_pool(const json::Value& object, const Families& families) {
  DIBS_TRY(AddressSpace space, parse_address_space(object, families));
  IpPool pool;
  static_cast<AddressSpace&>(pool) = std::move(space);
  const json::Value& spec = object["spec"];
  const api::Path path("spec");
  pool.automatic = object["metadata"]["labels"].contains(kLabelApplicationName);
  DIBS_CHECK(pod_affinity(spec, pool));
  DIBS_TRY(pool.namespace_affinity, selector(spec, "namespaceAffinity"));
  DIBS_TRY(pool.node_affinity, selector(spec, "nodeAffinity"));
  DIBS_TRY(pool.node_names, read_texts(spec, "nodeName", path));
  DIBS_TRY(pool.namespace_names, read_texts(spec, "namespaceName", path));
  DIBS_TRY(pool.multus_names, read_texts(spec, "multusName", path));
  DIBS_TRY(pool.is_default, read_flag(spec, "default", path));
  DIBS_TRY(pool.disabled, read_flag(spec, "disable", path));
  return pool;
}

std::vector<std::string> conflicts(const IpPool& pool, const std::vector<IpPool>& others) {
  std::vector<std::string> texts;
  for (const IpPool& other : others) {
    if (std::string text = conflict(pool, other); !text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

std::vector<std::string> conflicts(const IpSubnet& subnet, const std::vector<IpSubnet>& others) {
  std::vector<std::string> texts;
  for (const IpSubnet& other : others) {
    if (other.name == subnet.name || other.version != subnet.version) continue;
    if (other.subnet.overlaps(subnet.subnet)) {
      texts.push_back(overlapping_subnet(subnet, other, "Subnet"));
    }
  }
  return texts;
}

std::vector<std::string> conflicts(const IpPool& pool, const IpSubnet& owner) {
  const IpSet outside = pool.total.minus(owner.total);
  if (outside.empty()) return {};
  return {cat("spec.ips: Forbidden: add some IP ranges ", go_list(outside.to_strings()),
              " that are not contained in controller Subnet ", owner.name, kJointly)};
}

std::vector<std::string> use_faults(const IpSubnet& subnet,
                                    const std::map<std::string, ControlledPool>& pools) {
  std::vector<std::string> faults;
  for (const auto& [name, pool] : pools) {
    const IpSet missing = pool.ips.minus(subnet.total);
    if (missing.empty()) continue;
    faults.push_back(cat("spec.ips: Forbidden: remove some IP ranges ",
                         go_list(missing.to_strings()), " that is being used by IPPool ", name,
                         ", total IP addresses of an Subnet are jointly determined by 'spec.ips' "
                         "and 'spec.excludeIPs'"));
  }
  return faults;
}

std::vector<std::string> use_faults(const IpPool& pool, const PoolStatus& status) {
  std::vector<std::string> faults;
  const auto add = [&](const Ip& ip, std::string_view user) {
    faults.push_back(cat("spec.ips: Forbidden: remove an IP address ", ip.str(),
                         " that is being used by ", user, kJointly));
  };
  for (const auto& [ip, record] : status.allocated) {
    if (pool.total.contains(ip)) continue;
    if (faults.size() == kUseFaults) return faults;
    add(ip, cat("Pod ", record.pod));
  }
  for (const IpRange& range : status.settled.minus(pool.total).ranges()) {
    if (faults.size() == kUseFaults) return faults;
    add(range.first, "a Pod");
  }
  return faults;
}

}  // namespace dibs::drivers::net
