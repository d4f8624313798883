#include "node/pods/volume_growth.h"

#include <algorithm>
#include <string_view>

#include "api/volumes/volumes.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::string_view kNoNodePart = "volume.kubernetes.io/node-expansion-not-required";
constexpr std::string_view kFailed = "NodeResizeError";
constexpr std::string_view kConditions[] = {"Resizing", "FileSystemResizePending",
                                            "ControllerResizeError", kFailed};

/// Zero where there is none, or none that can be read.
Quantity amount(const Value& amounts) {
  auto read = Quantity::parse(amounts["storage"].as_string());
  return read ? std::move(*read) : Quantity();
}

std::string_view stage_of(const Value& claim) {
  return claim["status"]["allocatedResourceStatuses"]["storage"].as_string();
}

bool is_for_many_nodes(const Value& claim) {
  const auto modes = claim["spec"]["accessModes"].items();
  return std::any_of(modes.begin(), modes.end(),
                     [](const Value& mode) { return mode.as_string() == "ReadWriteMany"; });
}

Value patch_of(const Value& claim, Value status) {
  return Value::object(
      {{"metadata", Value::object({{"resourceVersion", claim["metadata"]["resourceVersion"]}})},
       {"status", std::move(status)}});
}

Value stage_patch(const char* stage) {
  return Value::object({{"allocatedResourceStatuses", Value::object({{"storage", stage}})}});
}

}  // namespace

Quantity size_of_claim(const Value& claim) { return amount(claim["status"]["capacity"]); }

std::optional<Growth> growth_of(const Value& claim, const Value& volume, const Quantity& here) {
  const Quantity size = amount(volume["spec"]["capacity"]);
  if (here.is_zero() || size <= here) return std::nullopt;
  const std::string_view stage = stage_of(claim);
  const Value& allocated = claim["status"]["allocatedResources"];
  if (stage.empty() && allocated.empty()) {
    return Growth{size, false, size_of_claim(claim) >= size};
  }
  const Growth growth{amount(allocated), true,
                      stage.empty() && size_of_claim(claim) >= amount(allocated)};
  if (growth.size <= here) return std::nullopt;
  if (growth.told) {
    // One node alone has a volume of another mode, and it was this one.
    const bool own = is_for_many_nodes(claim) && !api::has_annotation(claim, kNoNodePart);
    return own ? std::optional(growth) : std::nullopt;
  }
  const bool due = stage == "NodeResizePending" || stage == "NodeResizeInProgress";
  return due ? std::optional(growth) : std::nullopt;
}

Value growth_begun(const Value& claim) {
  return patch_of(claim, stage_patch("NodeResizeInProgress"));
}

Value growth_done(const Value& claim, const Quantity& size) {
  Value conditions = Value::array();
  for (const Value& condition : claim["status"]["conditions"].items()) {
    if (std::find(std::begin(kConditions), std::end(kConditions), condition["type"].as_string()) ==
        std::end(kConditions)) {
      conditions.push(condition);
    }
  }
  Value status =
      Value::object({{"capacity", Value::object({{"storage", size.str()}})},
                     {"conditions", conditions.empty() ? Value(nullptr) : std::move(conditions)}});
  const Value& stages = claim["status"]["allocatedResourceStatuses"];
  if (stages.contains("storage")) {
    status.set("allocatedResourceStatuses",
               stages.size() == 1 ? Value(nullptr) : Value::object({{"storage", nullptr}}));
  }
  return patch_of(claim, std::move(status));
}

Value growth_failed(const Value& claim, const std::string& why, bool hopeless, Time now) {
  Value status = hopeless ? stage_patch("NodeResizeInfeasible") : Value::object();
  Value conditions = Value::array();
  Value since = format_rfc3339(now);
  for (const Value& condition : claim["status"]["conditions"].items()) {
    if (condition["type"].as_string() != kFailed) {
      conditions.push(condition);
    } else if (condition["status"].as_string() == "True") {
      since = condition["lastTransitionTime"];
    }
  }
  conditions.push(Value::object({{"type", kFailed},
                                 {"status", "True"},
                                 {"lastTransitionTime", since},
                                 {"message", cat("failed to expand pvc with ", why)}}));
  status.set("conditions", std::move(conditions));
  return patch_of(claim, std::move(status));
}

bool is_outdated(const Value& claim, const Growth& growth) {
  const auto conditions = claim["status"]["conditions"].items();
  return std::any_of(conditions.begin(), conditions.end(),
                     [](const Value& one) {
                       return one["type"].as_string() == kFailed &&
                              one["status"].as_string() == "True";
                     }) &&
         amount(claim["spec"]["resources"]["requests"]) != growth.size;
}

}  // namespace dibs::node
