#pragma once
// Counts and times of requests, under the names that dashboards of Kubernetes know.

#include "base/metrics.h"
#include "base/time.h"
#include "server/context.h"

namespace dibs::server {

class RequestMetrics {
 public:
  explicit RequestMetrics(metrics::Registry& registry);
  void count(const Context& context, int status, Duration took);

 private:
  metrics::CounterFamily total_;
  metrics::HistogramFamily seconds_;
};

}  // namespace dibs::server
