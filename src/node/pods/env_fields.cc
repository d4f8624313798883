#include <algorithm>
#include <vector>

#include "base/quantity.h"
#include "base/strings.h"
#include "node/pods/env.h"

namespace dibs::node {
namespace {

using json::Value;

std::string format_map(const Value& map) {
  std::vector<std::string> lines;
  for (const auto& [key, value] : map.members()) {
    lines.push_back(cat(key, '=', quoted(value.as_string())));
  }
  std::sort(lines.begin(), lines.end());
  return join(lines, "\n");
}

/// The key of metadata.labels['key'], or nothing.
std::optional<std::string> subscript(std::string_view path, std::string_view field) {
  if (!path.starts_with(field)) return std::nullopt;
  path.remove_prefix(field.size());
  if (!path.starts_with("['") || !path.ends_with("']")) return std::nullopt;
  return std::string(path.substr(2, path.size() - 4));
}

std::string unsupported(std::string_view path) { return cat("unsupported fieldPath: ", path); }

}  // namespace

Result<std::string> pod_field(const Value& pod, std::string_view path, const NodeFacts& facts,
                              const PodAddresses& addresses) {
  const Value& metadata = pod["metadata"];
  if (const auto key = subscript(path, "metadata.labels")) return metadata["labels"][*key].str();
  if (const auto key = subscript(path, "metadata.annotations")) {
    return metadata["annotations"][*key].str();
  }
  if (path == "metadata.labels") return format_map(metadata["labels"]);
  if (path == "metadata.annotations") return format_map(metadata["annotations"]);
  if (path == "metadata.name") return metadata["name"].str();
  if (path == "metadata.namespace") return metadata["namespace"].str();
  if (path == "metadata.uid") return metadata["uid"].str();
  if (path == "spec.nodeName") {
    const Value& name = pod["spec"]["nodeName"];
    return name.is_string() ? name.str() : facts.name;
  }
  if (path == "spec.serviceAccountName") return pod["spec"]["serviceAccountName"].str();
  const auto& hosts = addresses.host_ips.empty() ? facts.addresses : addresses.host_ips;
  if (path == "status.hostIP") return hosts.empty() ? std::string() : hosts.front();
  if (path == "status.hostIPs") return join(hosts, ",");
  // A pod with the host's network has the host's addresses.
  const auto& ips =
      addresses.pod_ips.empty() && pod["spec"]["hostNetwork"].as_bool() ? hosts : addresses.pod_ips;
  if (path == "status.podIP") return ips.empty() ? std::string() : ips.front();
  if (path == "status.podIPs") return join(ips, ",");
  return Error::invalid(unsupported(path));
}

Result<std::string> resource_field(const Value& container, std::string_view resource,
                                   std::string_view divisor, const NodeFacts& facts) {
  const auto dot = resource.find('.');
  const std::string_view list = resource.substr(0, dot);
  if (dot == std::string_view::npos || (list != "limits" && list != "requests")) {
    return Error::invalid(cat("unsupported container resource : ", resource));
  }
  const std::string name(resource.substr(dot + 1));
  const Value& amount = container["resources"][list][name];
  Quantity quantity;
  if (amount.is_string()) {
    DIBS_TRY(quantity, Quantity::parse(amount.as_string()));
  } else if (list == "limits" && name == "cpu") {
    quantity = Quantity(facts.allocatable_milli_cpu, -3);
  } else if (list == "limits" && name == "memory") {
    quantity = Quantity(facts.memory_bytes);
  }
  Quantity by(1);
  if (!divisor.empty() && divisor != "0") {
    DIBS_TRY(by, Quantity::parse(divisor));
    if (by.sign() <= 0) by = Quantity(1);
  }
  const bool cpu = name == "cpu";
  const std::int64_t whole = cpu ? quantity.milli_value() : quantity.value();
  const std::int64_t unit = std::max<std::int64_t>(cpu ? by.milli_value() : by.value(), 1);
  return std::to_string(whole / unit + (whole % unit > 0 ? 1 : 0));
}

}  // namespace dibs::node
