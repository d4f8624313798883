#include <algorithm>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "node/pods/container_config.h"
#include "node/pods/pod_resources.h"

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
constexpr const char* kNodeCritical = "system-node-critical";

constexpr std::string_view kPages = "hugepages-";

/// "hugepages-2Mi": the kernel names the size "2MB".
std::string page_size(std::string_view resource) {
  const auto size = Quantity::parse(resource.substr(kPages.size()));
  if (!size) return "";
  std::int64_t number = size->value();
  const char* const units[] = {"B", "KB", "MB", "GB"};
  std::size_t unit = 0;
  for (; unit < 3 && number >= 1024 && number % 1024 == 0; ++unit) number /= 1024;
  return cat(number, units[unit]);
}

/// Sizes of huge pages that the pod or the container names anywhere.
std::set<std::string> huge_pages_of(const Value& pod, const Value& container = {}) {
  std::set<std::string> out;
  const auto note = [&](std::string_view name) {
    if (name.starts_with(kPages) && !page_size(name).empty()) out.emplace(name);
  };
  const auto note_all = [&](const Value& resources) {
    for (const auto& [name, quantity] : resources["limits"].members()) note(name);
  };
  note_all(container["resources"]);
  note_all(pod["spec"]["resources"]);
  for (const char* list : {"initContainers", "containers"}) {
    for (const Value& container : pod["spec"][list].items()) note_all(container["resources"]);
  }
  for (const Value& claim : pod["status"]["nodeAllocatableResourceClaimStatuses"].items()) {
    for (const char* kind : {"mapping", "overhead"}) {
      for (const Value& item : claim[kind].items()) note(item["name"].as_string());
    }
  }
  return out;
}

std::int64_t shares_of(std::int64_t milli_cpu) {
  return std::clamp(milli_cpu * kSharesPerCpu / 1000, kMinShares, kMaxShares);
}

void set_quota(std::int64_t milli_cpu, ContainerLimits& out) {
  if (milli_cpu <= 0) return;
  // More than any machine has, and still a number of microseconds.
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  out.cpu_period = kPeriod;
  out.cpu_quota = std::max(std::min(milli_cpu, kMost) * kPeriod / 1000, kMinQuota);
}

/// A container without a limit may take what the pod as a whole may; one with a limit also what its
/// claims give it.
std::int64_t limit_of(const Value& pod, const Value& container, const char* resource) {
  const std::int64_t own = amount_of(container["resources"]["limits"][resource], resource);
  if (own == 0) return amount_of(pod["spec"]["resources"]["limits"][resource], resource);
  return own + claimed_by(pod, container["name"].as_string(), resource);
}

/// The pod as a whole has one, or each container: else what runs without is not held at all.
bool is_limited(const Value& pod, const char* resource) {
  if (amount_of(pod["spec"]["resources"]["limits"][resource], resource) > 0) return true;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Value& container : pod["spec"][list].items()) {
      if (amount_of(container["resources"]["limits"][resource], resource) == 0) return false;
    }
  }
  return true;
}

bool is_sidecar(const Value& pod, const Value& container) {
  if (container["restartPolicy"].as_string() != "Always") return false;
  for (const Value& one : pod["spec"]["initContainers"].items()) {
    if (one["name"] == container["name"]) return true;
  }
  return false;
}

/// Memory that the pod as a whole asks for beyond its containers, for each of them.
std::int64_t unshared_memory(const Value& pod) {
  const std::int64_t whole = amount_of(pod["spec"]["resources"]["requests"]["memory"], "memory");
  if (whole == 0) return 0;
  const std::int64_t rest = whole - containers_total(pod, "requests", "memory").value_or(0);
  const auto count = static_cast<std::int64_t>(pod["spec"]["containers"].size() +
                                               pod["spec"]["initContainers"].size());
  return count == 0 ? 0 : std::max<std::int64_t>(rest, 0) / count;
}

}  // namespace

std::int64_t oom_score_adjust(const Value& pod, const Value& container, const NodeFacts& facts) {
  if (pod["spec"]["priority"].as_int() >= kSystemCritical &&
      pod["spec"]["priorityClassName"].as_string() == kNodeCritical) {
    return kGuaranteedScore;
  }
  const auto qos = qos_class(pod);
  if (qos == "Guaranteed") return kGuaranteedScore;
  if (qos == "BestEffort" || facts.memory_bytes <= 0) return kBestEffortScore;
  const std::int64_t more = unshared_memory(pod);
  // The less of the node's memory it asked for, the sooner it goes.
  const auto score_of = [&](std::int64_t request) {
    return 1000 - 1000 * (request + more) / facts.memory_bytes;
  };
  std::int64_t score = score_of(memory_share(pod, container));
  if (is_sidecar(pod, container)) {
    // It goes after those that it serves.
    std::int64_t least = 0;
    bool first = true;
    for (const Value& regular : pod["spec"]["containers"].items()) {
      const std::int64_t share = memory_share(pod, regular);
      least = first ? share : std::min(least, share);
      first = false;
    }
    score = std::min(score, score_of(least));
  }
  return std::clamp(score, 1000 + kGuaranteedScore, kBestEffortScore - 1);
}

ContainerLimits container_limits(const Value& pod, const Value& container, const NodeFacts& facts) {
  const Value& resources = container["resources"];
  ContainerLimits out;
  std::int64_t request = amount_of(resources["requests"]["cpu"], "cpu");
  if (!resources["requests"]["cpu"].is_string()) {
    // Without what claims give it: that is no request of its own.
    request = amount_of(resources["limits"]["cpu"], "cpu");
    if (request == 0) request = amount_of(pod["spec"]["resources"]["limits"]["cpu"], "cpu");
  }
  out.cpu_shares = shares_of(request);
  set_quota(limit_of(pod, container, "cpu"), out);
  out.memory_bytes = limit_of(pod, container, "memory");
  for (const auto& name : huge_pages_of(pod, container)) {
    // None of those that only others in the pod have; of sizes that nobody has, the pod's group.
    out.huge_pages.emplace_back(page_size(name),
                                amount_of(resources["limits"][name], name) +
                                    claimed_by(pod, container["name"].as_string(), name));
  }
  out.oom_score_adj = std::max(oom_score_adjust(pod, container, facts), facts.lowest_oom_score);
  return out;
}

ContainerLimits pod_limits(const Value& pod) {
  ContainerLimits out;
  out.cpu_shares = kMinShares;
  if (qos_class(pod) != "BestEffort") {
    out.cpu_shares = shares_of(requested(pod, "cpu"));
    if (is_limited(pod, "cpu")) set_quota(total_of(pod, "limits", "cpu").value_or(0), out);
    if (is_limited(pod, "memory")) {
      out.memory_bytes = total_of(pod, "limits", "memory").value_or(0);
    }
  }
  for (const auto& name : huge_pages_of(pod)) {
    out.huge_pages.emplace_back(page_size(name), total_of(pod, "limits", name).value_or(0));
  }
  out.no_other_pages = true;
  return out;
}

std::string pod_group(const Value& pod) {
  const auto qos = qos_class(pod);
  const std::string own = cat("pod", pod["metadata"]["uid"].as_string());
  if (qos == "Guaranteed") return own;
  return cat(qos == "Burstable" ? "burstable/" : "besteffort/", own);
}

}  // namespace dibs::node
