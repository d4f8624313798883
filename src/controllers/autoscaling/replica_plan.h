#pragma once
// How many replicas a metric asks for.
//
// Pure functions: what was measured, the pods and the time in, a number out. Amounts are in
// thousandths of the metric's unit. A pod that is not measured, or not ready, never makes a scale
// go further than those that are: where the others ask for more it counts as idle, where they ask
// for less as busy.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "controllers/controller.h"
#include "json/value.h"

namespace dibs::controllers {

/// Of one pod.
struct PodUsage {
  Time at = {};
  Duration window{0};
  std::int64_t value = 0;
};
using PodUsages = std::map<std::string, PodUsage, std::less<>>;  // by the pod's name

/// How far from the target a ratio may be without any change.
struct Tolerances {
  double down = 0.1;
  double up = 0.1;
  bool hold(double ratio) const { return 1.0 - down <= ratio && ratio <= 1.0 + up; }
};

/// What all metrics of an autoscaler are judged by.
struct Measured {
  std::int64_t replicas = 0;  // that the target has
  std::vector<Value> pods = {};
  Tolerances tolerances = {};
  AutoscalerOptions options = {};
  Time now = {};
};

struct Proposal {
  std::int64_t replicas = 0;
  std::int64_t usage = 0;                        // the average, or what there is in all
  std::optional<std::int64_t> utilization = {};  // in percent of what is requested
};

/// What metrics say is added up without passing the largest number, past which sums turn negative.
std::int64_t sum_of(std::int64_t a, std::int64_t b);

/// A share of what the pods request of a resource, of one container where that is named. Errors are
/// in upstream's words.
Result<Proposal> propose_by_utilization(const Measured& measured, PodUsages usages,
                                        std::string_view resource, std::string_view container,
                                        std::int64_t target_percent);
/// An average over the pods. `resource` is "" where the metric is none.
Result<Proposal> propose_by_average(const Measured& measured, PodUsages usages,
                                    std::string_view resource, std::int64_t target);
/// A value that belongs to no pod, to be kept at the target.
Result<Proposal> propose_by_value(const Measured& measured, std::int64_t usage,
                                  std::int64_t target);
/// The same divided by the pods that there are.
Proposal propose_by_share(std::int64_t pods, const Tolerances& tolerances, std::int64_t usage,
                          std::int64_t target);

}  // namespace dibs::controllers
