#pragma once
// What the scheduler counts, under the names that kube-scheduler gives it.

#include "base/metrics.h"
#include "client/claim_metrics.h"

namespace dibs::scheduler {

struct Metrics {
  explicit Metrics(metrics::Registry& registry);

  /// Gauges are 0: this scheduler has stopped.
  void clear();

  metrics::CounterFamily attempts;           // result, profile
  metrics::HistogramFamily attempt_seconds;  // result, profile
  metrics::HistogramFamily algorithm_seconds;
  metrics::HistogramFamily wait_seconds;  // attempts
  metrics::HistogramFamily attempts_needed;
  metrics::GaugeFamily pending;        // queue
  metrics::GaugeFamily unschedulable;  // plugin, profile
  metrics::GaugeFamily cache;          // type
  metrics::CounterFamily incoming;     // queue, event
  metrics::CounterFamily preemptions;
  metrics::HistogramFamily victims;
  /// Of the plugin DynamicResources alone: others are not run one by one.
  metrics::HistogramFamily plugin_seconds;  // plugin, extension_point, status
  client::ClaimsCreated claims_created;
  metrics::CounterFamily conditional;          // profile, driver, status
  metrics::HistogramFamily condition_seconds;  // profile, driver, status
  metrics::CounterFamily group_attempts;       // result, profile
  metrics::HistogramFamily group_seconds;      // result, profile
  metrics::HistogramFamily group_algorithm_seconds;

  // Set after every change.
  metrics::Gauge& active;
  metrics::Gauge& backoff;
  metrics::Gauge& parked;
  metrics::Gauge& gated;
  metrics::Gauge& nodes;
  metrics::Gauge& pods;
  metrics::Gauge& assumed;
};

}  // namespace dibs::scheduler
