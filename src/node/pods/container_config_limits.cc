#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"
#include "node/pods/container_config.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::int64_t kMinShares = 2;
constexpr std::int64_t kMaxShares = 262144;
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::int64_t kPeriod = 100'000;  // microseconds
constexpr std::int64_t kMinQuota = 1000;
constexpr std::int64_t kGuaranteedScore = -997;
constexpr std::int64_t kBestEffortScore = 1000;
/// Pods of this priority and above are the cluster's own.
constexpr std::int64_t kSystemCritical = 2'000'000'000;

Quantity amount(const Value& list, const char* name) {
  auto parsed = Quantity::parse(list[name].as_string());
  return parsed ? *parsed : Quantity();
}

bool has_any(const Value& resources) {
  for (const char* list : {"requests", "limits"}) {
    for (const char* name : {"cpu", "memory"}) {
      if (!amount(resources[list], name).is_zero()) return true;
    }
  }
  return false;
}

bool is_bounded(const Value& resources) {
  for (const char* name : {"cpu", "memory"}) {
    const Quantity limit = amount(resources["limits"], name);
    if (limit.is_zero()) return false;
    const Value& request = resources["requests"][name];
    if (request.is_string() && amount(resources["requests"], name) != limit) return false;
  }
  return true;
}

/// "hugepages-2Mi": the kernel names the size "2MB".
std::vector<std::pair<std::string, std::int64_t>> huge_page_limits(const Value& limits) {
  constexpr std::string_view kPrefix = "hugepages-";
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const auto& [name, quantity] : limits.members()) {
    if (!std::string_view(name).starts_with(kPrefix)) continue;
    const auto size = Quantity::parse(std::string_view(name).substr(kPrefix.size()));
    const auto bytes = Quantity::parse(quantity.as_string());
    if (!size || !bytes) continue;
    std::int64_t number = size->value();
    const char* const units[] = {"B", "KB", "MB", "GB"};
    std::size_t unit = 0;
    for (; unit < 3 && number >= 1024 && number % 1024 == 0; ++unit) number /= 1024;
    out.emplace_back(cat(number, units[unit]), bytes->value());
  }
  return out;
}

}  // namespace

std::string_view qos_class(const Value& pod) {
  const auto told = pod["status"]["qosClass"].as_string();
  if (told == "Guaranteed") return "Guaranteed";
  if (told == "Burstable") return "Burstable";
  if (told == "BestEffort") return "BestEffort";
  bool any = false;
  bool all = true;
  for (const char* list : {"initContainers", "containers"}) {
    for (const auto& container : pod["spec"][list].items()) {
      any = any || has_any(container["resources"]);
      all = all && is_bounded(container["resources"]);
    }
  }
  if (!any) return "BestEffort";
  return all ? "Guaranteed" : "Burstable";
}

std::int64_t oom_score_adjust(const Value& pod, const Value& container, const NodeFacts& facts) {
  if (pod["spec"]["priority"].as_int() >= kSystemCritical) return kGuaranteedScore;
  const auto qos = qos_class(pod);
  if (qos == "Guaranteed") return kGuaranteedScore;
  if (qos == "BestEffort" || facts.memory_bytes <= 0) return kBestEffortScore;
  const std::int64_t request = amount(container["resources"]["requests"], "memory").value();
  // The less of the node's memory it asked for, the sooner it goes.
  const auto share = static_cast<std::int64_t>(1000.0 * static_cast<double>(request) /
                                               static_cast<double>(facts.memory_bytes));
  const std::int64_t score = 1000 - share;
  if (score < 1000 + kGuaranteedScore) return 1000 + kGuaranteedScore;
  return std::min(score, kBestEffortScore - 1);
}

ContainerLimits container_limits(const Value& pod, const Value& container, const NodeFacts& facts) {
  const Value& resources = container["resources"];
  ContainerLimits out;
  const std::int64_t limit = amount(resources["limits"], "cpu").milli_value();
  std::int64_t request = amount(resources["requests"], "cpu").milli_value();
  if (!resources["requests"]["cpu"].is_string() && limit > 0) request = limit;
  out.cpu_shares = std::clamp(request * kSharesPerCpu / 1000, kMinShares, kMaxShares);
  if (limit > 0) {
    out.cpu_period = kPeriod;
    out.cpu_quota = std::max(limit * kPeriod / 1000, kMinQuota);
  }
  out.memory_bytes = amount(resources["limits"], "memory").value();
  out.huge_pages = huge_page_limits(resources["limits"]);
  out.oom_score_adj = std::max(oom_score_adjust(pod, container, facts), facts.lowest_oom_score);
  return out;
}

}  // namespace dibs::node
