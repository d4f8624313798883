#pragma once
// Limits of a namespace: what LimitRanges put into pods and refuse, what objects count for in
// ResourceQuotas.
//
// Pure functions; whoever admits objects looks up the LimitRanges and quotas and writes the usage
// back.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/pod/resources.h"
#include "api/schema/kind.h"
#include "base/result.h"

namespace dibs::api {

/// Default requests and limits of the range, for containers that name none; noted in an annotation.
void apply_limit_range_defaults(Value& pod, const Value& range);

/// What of a pod or PersistentVolumeClaim (by `resource`, the plural) a range refuses. The texts
/// are joined by the caller: one alone, or "[a, b]".
std::vector<std::string> limit_range_faults(std::string_view resource, const Value& object,
                                            const Value& range);
/// "a" or "[a, b]"
std::string joined_faults(const std::vector<std::string>& faults);

/// The extended resource that stands for the devices of a class, "" for none. Empty where pods
/// cannot ask for devices that way.
using ExtendedNameOf = std::function<std::string(std::string_view device_class)>;

/// What the usage of a claim depends on besides the claim. Empty functions: nothing of it.
struct QuotaSources {
  ExtendedNameOf extended = {};
  /// Of the namespace and name; null: none.
  std::function<Value(std::string_view name_space, std::string_view name)> pod = {};
  /// All of a namespace.
  std::function<std::vector<Value>(std::string_view name_space)> claims = {};
};

/// What an object counts for: "pods", "count/pods", "requests.cpu", "count/deployments.apps", ….
/// `resource` is the plural. `now` decides whether a pod past its deletion still counts.
Amounts quota_usage(std::string_view group, std::string_view resource, const Value& object,
                    Time now, const QuotaSources& sources = {});

/// The quota's scopes take in this object.
bool quota_matches(const Value& quota, std::string_view group, std::string_view resource,
                   const Value& object);

/// Charges a new object (or the difference to `old`) to the quotas of its namespace, which count by
/// their status.hard. Gives the quotas whose status.used changes, with the new usage. Error:
/// forbidden, "exceeded quota: …" or "failed quota: …", without the name of the object.
Result<std::vector<Value>> charge_quotas(const std::vector<Value>& quotas, std::string_view group,
                                         std::string_view resource, const Value& object,
                                         const Value* old, Time now,
                                         const QuotaSources& sources = {});

/// status.used of a quota over all objects' usage: every resource of spec.hard, zero where nothing
/// counts.
Value used_of(const Value& quota, const Amounts& total);

}  // namespace dibs::api
