#include "controllers/autoscaling/scaling_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dibs::controllers {
namespace {

using json::Value;

// The longest window and the longest period that a spec may have.
constexpr Duration kLongestWindow = std::chrono::seconds(3600);
constexpr Duration kLongestPeriod = std::chrono::seconds(1800);

constexpr ScalingHistory::Reason kReady = {"ReadyForNewScale",
                                           "recommended size matches current size"};
constexpr ScalingHistory::Reason kCalmedUp = {
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent "
    "recommendation"};
constexpr ScalingHistory::Reason kCalmedDown = {
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent "
    "recommendation"};
constexpr ScalingHistory::Reason kWithin = {"DesiredWithinRange",
                                            "the desired count is within the acceptable range"};
constexpr ScalingHistory::Reason kTooMany = {
    "TooManyReplicas", "the desired replica count is more than the maximum replica count"};
constexpr ScalingHistory::Reason kTooFew = {
    "TooFewReplicas", "the desired replica count is less than the minimum replica count"};
constexpr ScalingHistory::Reason kTooFastUp = {
    "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"};
constexpr ScalingHistory::Reason kTooFastDown = {
    "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"};

Duration seconds(const Value& number) { return std::chrono::seconds(number.as_int()); }

template <class Entries>
void forget(Entries& entries, Time before) {
  std::erase_if(entries, [&](const auto& entry) { return entry.at < before; });
}

}  // namespace

void ScalingHistory::begin(std::int64_t replicas, Time now) {
  if (desired_.empty()) desired_.push_back({now, replicas});
}

void ScalingHistory::scaled(std::int64_t from, std::int64_t to, Time now) {
  forget(added_, now - kLongestPeriod);
  forget(removed_, now - kLongestPeriod);
  if (to > from) {
    added_.push_back({now, to - from});
  } else {
    removed_.push_back({now, from - to});
  }
}

ScalingHistory::Verdict ScalingHistory::settle(const Value& spec, std::int64_t current,
                                               std::int64_t desired, Duration window, Time now) {
  forget(desired_, now - std::max(kLongestWindow, window));
  const std::int64_t calm = calmed(spec["behavior"], current, desired, window, now);
  desired_.push_back({now, desired});
  Verdict out;
  out.able = calm == desired ? kReady : kCalmedDown;
  if (calm != desired && !spec["behavior"].is_null() && desired >= current) out.able = kCalmedUp;
  const Bound bound = bounded(spec, current, calm, now);
  out.replicas = bound.replicas;
  out.limit = bound.reason;
  out.limited = bound.replicas != calm;
  return out;
}

std::int64_t ScalingHistory::calmed(const Value& behavior, std::int64_t current,
                                    std::int64_t desired, Duration window, Time now) const {
  std::int64_t lowest = desired;
  std::int64_t highest = desired;
  if (behavior.is_null()) {
    for (const Entry& past : desired_) {
      if (past.at >= now - window) highest = std::max(highest, past.count);
    }
    return highest;
  }
  const Value& down = behavior["scaleDown"]["stabilizationWindowSeconds"];
  const Time up_from = now - seconds(behavior["scaleUp"]["stabilizationWindowSeconds"]);
  const Time down_from = now - (down.is_null() ? window : seconds(down));
  for (const Entry& past : desired_) {
    if (past.at > up_from) lowest = std::min(lowest, past.count);
    if (past.at > down_from) highest = std::max(highest, past.count);
  }
  return std::min(std::max(current, lowest), highest);
}

std::int64_t ScalingHistory::changed(const std::vector<Entry>& changes, Duration period, Time now) {
  std::int64_t sum = 0;
  for (const Entry& one : changes) {
    if (one.at > now - period) sum += one.count;
  }
  return sum;
}

std::int64_t ScalingHistory::limit(const Value& rules, std::int64_t current, bool up,
                                   Time now) const {
  const std::string_view select = rules["selectPolicy"].as_string();
  if (select == "Disabled") return current;
  // The policy that changes most counts, unless the spec wants the other.
  const bool highest = up == (select != "Min");
  std::int64_t out =
      highest ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int32_t>::max();
  for (const Value& policy : rules["policies"].items()) {
    const Duration period = seconds(policy["periodSeconds"]);
    const std::int64_t start =
        current - changed(added_, period, now) + changed(removed_, period, now);
    const std::int64_t value = policy["value"].as_int();
    const double share = static_cast<double>(value) / 100;
    std::int64_t allowed = start + (up ? value : -value);
    if (policy["type"].as_string() == "Percent") {
      // Rounded so that there is always a change.
      allowed = up ? static_cast<std::int64_t>(std::ceil(static_cast<double>(start) * (1 + share)))
                   : static_cast<std::int64_t>(static_cast<double>(start) * (1 - share));
    }
    out = highest ? std::max(out, allowed) : std::min(out, allowed);
  }
  return out;
}

ScalingHistory::Bound ScalingHistory::bounded(const Value& spec, std::int64_t current,
                                              std::int64_t desired, Time now) const {
  const std::int64_t least = spec["minReplicas"].as_int(1);
  const std::int64_t most = spec["maxReplicas"].as_int();
  const Value& behavior = spec["behavior"];
  if (behavior.is_null()) {
    const std::int64_t fastest = std::max<std::int64_t>(2 * current, 4);
    if (desired < least) return {least, kTooFew};
    if (desired > std::min(fastest, most))
      return {std::min(fastest, most), most > fastest ? kTooFastUp : kTooMany};
    return {desired, kWithin};
  }
  if (desired > current) {
    const std::int64_t fastest = std::max(limit(behavior["scaleUp"], current, true, now), current);
    if (desired > std::min(fastest, most))
      return {std::min(fastest, most), most > fastest ? kTooFastUp : kTooMany};
  } else if (desired < current) {
    const std::int64_t fastest =
        std::min(limit(behavior["scaleDown"], current, false, now), current);
    if (desired < std::max(fastest, least))
      return {std::max(fastest, least), least < fastest ? kTooFastDown : kTooFew};
  }
  return {desired, kWithin};
}

}  // namespace dibs::controllers
