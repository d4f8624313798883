#include "scheduler/metrics.h"

namespace dibs::scheduler {

Metrics::Metrics(metrics::Registry& registry)
    : attempts(registry.counter("scheduler_schedule_attempts_total",
                                "Attempts to schedule pods, by result: scheduled, unschedulable "
                                "or error",
                                {"result", "profile"})),
      attempt_seconds(registry.histogram(
          "scheduler_scheduling_attempt_duration_seconds", "How long an attempt took",
          metrics::exponential_bounds(0.001, 2, 15), {"result", "profile"})),
      wait_seconds(registry.histogram("scheduler_pod_scheduling_sli_duration_seconds",
                                      "From entering the queue to being bound",
                                      metrics::exponential_bounds(0.01, 2, 20), {"attempts"})),
      pending(registry.gauge("scheduler_pending_pods",
                             "Pods that wait: active, backoff, unschedulable, gated", {"queue"})),
      incoming(registry.counter("scheduler_queue_incoming_pods_total", "Pods that entered a queue",
                                {"queue", "event"})),
      preemptions(
          registry.counter("scheduler_preemption_attempts_total", "Preemptions tried so far")),
      victims(registry.histogram("scheduler_preemption_victims", "Victims of a preemption",
                                 metrics::exponential_bounds(1, 2, 7))) {}

}  // namespace dibs::scheduler
