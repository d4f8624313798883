#include "controllers/autoscaling/replica_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "api/kinds/pod/resources.h"
#include "base/strings.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

using Names = std::set<std::string, std::less<>>;
__extension__ using Wide = __int128;
using Requests = std::map<std::string, std::int64_t, std::less<>>;

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

std::int64_t rounded_up(double count) {
  if (!(count < static_cast<double>(kMost))) return kMost;
  if (count < 0) return 0;
  return static_cast<std::int64_t>(std::ceil(count));
}

/// value * factor / divisor, at the bounds of int64 where it is beyond.
std::int64_t scaled(std::int64_t value, std::int64_t factor, std::int64_t divisor) {
  constexpr Wide kLargest = std::numeric_limits<std::int64_t>::max();
  const Wide exact = static_cast<Wide>(value) * factor / divisor;
  return static_cast<std::int64_t>(std::clamp(exact, -kLargest, kLargest));
}

struct Groups {
  std::int64_t ready = 0;
  Names unready = {};
  Names missing = {};
};

/// Processor time says nothing of a pod that is still getting ready.
bool is_starting(const Value& pod, const PodUsage& usage, const Measured& measured) {
  const Value& condition = find_condition(pod, "Ready");
  const Value& start = pod["status"]["startTime"];
  if (condition.is_null() || start.is_null()) return true;
  const Time started = time_at(start);
  const Time changed = time_at(condition["lastTransitionTime"]);
  const bool unready = condition["status"].as_string() == "False";
  if (started + measured.options.cpu_initialization_period > measured.now)
    return unready || usage.at < changed + usage.window;
  // It never was ready.
  return unready && started + measured.options.initial_readiness_delay > changed;
}

/// Leaves only the usages of pods that count.
Groups group(const Measured& measured, PodUsages& usages, std::string_view resource) {
  Groups out;
  for (const Value& pod : measured.pods) {
    const std::string name(name_of(pod));
    const std::string_view phase = pod["status"]["phase"].as_string();
    if (is_deleting(pod) || phase == "Failed") {
      usages.erase(name);
      continue;
    }
    const auto usage = usages.find(name);
    if (phase == "Pending") {
      out.unready.insert(name);
    } else if (usage == usages.end()) {
      out.missing.insert(name);
      continue;
    } else if (resource == "cpu" && is_starting(pod, usage->second, measured)) {
      out.unready.insert(name);
    } else {
      ++out.ready;
      continue;
    }
    usages.erase(name);
  }
  return out;
}

Result<> check_pods(const Measured& measured) {
  if (measured.pods.empty())
    return Error::plain("no pods returned by selector while calculating replica count");
  return success();
}

Result<std::int64_t> request_of(const Value& pod, std::string_view container,
                                std::string_view resource) {
  const Value& spec = pod["spec"];
  const Value& whole = spec["resources"]["requests"];
  if (container.empty() && !whole.empty()) {
    const auto amounts = api::pod_requests(spec);
    const auto found = amounts.find(resource);
    if (found == amounts.end())
      return Error::plain(
          cat("missing pod-level request for ", resource, " in Pod ", name_of(pod)));
    return found->second.milli_value();
  }
  std::vector<Value> containers(spec["containers"].items().begin(),
                                spec["containers"].items().end());
  for (const Value& one : spec["initContainers"].items()) {
    if (one["restartPolicy"].as_string() == "Always") containers.push_back(one);
  }
  std::int64_t sum = 0;
  for (const Value& one : containers) {
    const std::string_view name = one["name"].as_string();
    if (!container.empty() && name != container) continue;
    const Value& request = one["resources"]["requests"][resource];
    if (request.is_null()) {
      return Error::plain(
          cat("missing request for ", resource, " in container ", name, " of Pod ", name_of(pod)));
    }
    sum = sum_of(sum, api::quantity_of(request).milli_value());
    if (!container.empty()) return sum;
  }
  if (!container.empty())
    return Error::plain(cat("container ", container, " not found in Pod ", name_of(pod)));
  return sum;
}

struct Ratio {
  double ratio = 0;
  std::int64_t usage = 0;
  std::optional<std::int64_t> utilization = {};
};

Result<Ratio> utilization_ratio(const PodUsages& usages, const Requests& requests,
                                std::int64_t target_percent) {
  std::int64_t used = 0;
  std::int64_t requested = 0;
  std::int64_t count = 0;
  for (const auto& [pod, usage] : usages) {
    const auto request = requests.find(pod);
    if (request == requests.end()) continue;
    used = sum_of(used, usage.value);
    requested = sum_of(requested, request->second);
    ++count;
  }
  if (requested == 0) return Error::plain("no metrics returned matched known pods");
  const std::int64_t percent = scaled(used, 100, requested);
  return Ratio{static_cast<double>(percent) / static_cast<double>(target_percent), used / count,
               percent};
}

Ratio average_ratio(const PodUsages& usages, std::int64_t target) {
  std::int64_t used = 0;
  for (const auto& [pod, usage] : usages) used = sum_of(used, usage.value);
  const std::int64_t average = used / std::ssize(usages);
  return {static_cast<double>(average) / static_cast<double>(target), average};
}

/// `measure` gives the ratio of some usages; `busy` what a pod that is not measured counts as where
/// the others ask for less.
template <class Measure, class Busy>
Result<Proposal> propose(const Measured& measured, PodUsages usages, std::string_view resource,
                         const Measure& measure, const Busy& busy) {
  const Groups groups = group(measured, usages, resource);
  if (usages.empty())
    return Error::plain("did not receive metrics for targeted pods (pods might be unready)");
  DIBS_TRY(const Ratio first, measure(usages));
  const Proposal stay{measured.replicas, first.usage, first.utilization};
  const auto change = [&](double count) {
    return Proposal{rounded_up(count), first.usage, first.utilization};
  };
  const bool grows = first.ratio > 1.0;
  const bool shrinks = first.ratio < 1.0;
  const bool unready = !groups.unready.empty() && grows;
  if (!unready && groups.missing.empty()) {
    if (measured.tolerances.hold(first.ratio)) return stay;
    return change(first.ratio * static_cast<double>(groups.ready));
  }
  for (const std::string& pod : groups.missing) {
    if (shrinks) usages[pod] = {{}, Duration(0), busy(pod)};
    if (grows) usages[pod] = {};
  }
  if (unready) {
    for (const std::string& pod : groups.unready) usages[pod] = {};
  }
  DIBS_TRY(const Ratio second, measure(usages));
  if (measured.tolerances.hold(second.ratio) || (shrinks && second.ratio > 1.0) ||
      (grows && second.ratio < 1.0)) {
    return stay;
  }
  const Proposal next = change(second.ratio * static_cast<double>(usages.size()));
  if ((second.ratio < 1.0 && next.replicas > measured.replicas) ||
      (second.ratio > 1.0 && next.replicas < measured.replicas)) {
    return stay;
  }
  return next;
}

}  // namespace

std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
  return a > 0 ? kLargest : -kLargest;
}

Result<Proposal> propose_by_utilization(const Measured& measured, PodUsages usages,
                                        std::string_view resource, std::string_view container,
                                        std::int64_t target_percent) {
  DIBS_CHECK(check_pods(measured));
  Requests requests;
  std::optional<Error> missing;
  for (const Value& pod : measured.pods) {
    auto request = request_of(pod, container, resource);
    if (!request.ok()) {
      missing = request.error();
      break;
    }
    requests[std::string(name_of(pod))] = *request;
  }
  return propose(
      measured, std::move(usages), resource,
      [&](const PodUsages& some) -> Result<Ratio> {
        // Only once there is something to compare requests with.
        if (missing) return *missing;
        return utilization_ratio(some, requests, target_percent);
      },
      [&](const std::string& pod) {
        return scaled(requests[pod], std::max<std::int64_t>(100, target_percent), 100);
      });
}

Result<Proposal> propose_by_average(const Measured& measured, PodUsages usages,
                                    std::string_view resource, std::int64_t target) {
  DIBS_CHECK(check_pods(measured));
  return propose(
      measured, std::move(usages), resource,
      [&](const PodUsages& some) -> Result<Ratio> { return average_ratio(some, target); },
      [&](const std::string&) { return target; });
}

Result<Proposal> propose_by_value(const Measured& measured, std::int64_t usage,
                                  std::int64_t target) {
  const double ratio = static_cast<double>(usage) / static_cast<double>(target);
  // From none on the value alone counts.
  if (measured.replicas == 0) return Proposal{rounded_up(ratio), usage};
  if (measured.tolerances.hold(ratio)) return Proposal{measured.replicas, usage};
  if (auto any = check_pods(measured); !any.ok())
    return any.error().within("unable to calculate ready pods");
  const auto ready =
      std::count_if(measured.pods.begin(), measured.pods.end(), [](const Value& pod) {
        return pod["status"]["phase"].as_string() == "Running" && pod_ready(pod);
      });
  return Proposal{rounded_up(ratio * static_cast<double>(ready)), usage};
}

Proposal propose_by_share(std::int64_t pods, const Tolerances& tolerances, std::int64_t usage,
                          std::int64_t target) {
  const double needed = static_cast<double>(usage) / static_cast<double>(target);
  Proposal out{pods, usage};
  if (pods == 0 || !tolerances.hold(needed / static_cast<double>(pods)))
    out.replicas = rounded_up(needed);
  if (pods > 0) out.usage = usage / pods + (usage % pods > 0 ? 1 : 0);
  return out;
}

}  // namespace dibs::controllers
