#pragma once
// Reads metrics through the API: those of resources from metrics.k8s.io, others from
// custom.metrics.k8s.io and external.metrics.k8s.io, whoever serves these groups.
//
// Errors are in the words of Kubernetes, since conditions and events show them. Thread-safe; waits
// for the server.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "controllers/autoscaling/replica_plan.h"
#include "controllers/controller.h"
#include "json/value.h"

namespace dibs::controllers {

class MetricsReader {
 public:
  explicit MetricsReader(Environment& environment) : environment_(environment) {}

  /// Of the pods that a selector selects; of one container where that is named.
  Result<PodUsages> resource(std::string_view name_space, const std::string& selector,
                             std::string_view resource, std::string_view container);
  /// A custom metric of these pods.
  Result<PodUsages> pods(std::string_view name_space, const std::string& selector,
                         const Value& metric);
  /// Of one object, named by an ObjectMetricSource.
  Result<std::int64_t> object(std::string_view name_space, const Value& reference,
                              const Value& metric);
  /// The sum of all values that the metric's selector selects.
  Result<std::int64_t> external(std::string_view name_space, const Value& metric);

 private:
  Result<std::string> custom_version();
  Result<Value> get(const std::string& target, std::string_view resource);

  Environment& environment_;
};

}  // namespace dibs::controllers
