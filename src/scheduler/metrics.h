#pragma once
// What the scheduler counts, under the names that kube-scheduler gives it.

#include "base/metrics.h"

namespace dibs::scheduler {

struct Metrics {
  explicit Metrics(metrics::Registry& registry);

  metrics::CounterFamily attempts;           // result, profile
  metrics::HistogramFamily attempt_seconds;  // result, profile
  metrics::HistogramFamily wait_seconds;     // attempts
  metrics::GaugeFamily pending;              // queue
  metrics::CounterFamily incoming;           // queue, event
  metrics::CounterFamily preemptions;
  metrics::HistogramFamily victims;
};

}  // namespace dibs::scheduler
