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
      algorithm_seconds(registry.histogram("scheduler_scheduling_algorithm_duration_seconds",
                                           "How long it took to find a node",
                                           metrics::exponential_bounds(0.001, 2, 15))),
      wait_seconds(registry.histogram("scheduler_pod_scheduling_sli_duration_seconds",
                                      "From entering the queue to being bound",
                                      metrics::exponential_bounds(0.01, 2, 20), {"attempts"})),
      attempts_needed(registry.histogram("scheduler_pod_scheduling_attempts",
                                         "Attempts that a pod needed until it was bound",
                                         metrics::exponential_bounds(1, 2, 5))),
      pending(registry.gauge("scheduler_pending_pods",
                             "Pods that wait: active, backoff, unschedulable, gated", {"queue"})),
      unschedulable(registry.gauge("scheduler_unschedulable_pods",
                                   "Pods that wait for a change, by each plugin that refused them",
                                   {"plugin", "profile"})),
      cache(registry.gauge("scheduler_cache_size",
                           "What the scheduler knows: nodes, pods, assumed_pods", {"type"})),
      incoming(registry.counter("scheduler_queue_incoming_pods_total", "Pods that entered a queue",
                                {"queue", "event"})),
      preemptions(
          registry.counter("scheduler_preemption_attempts_total", "Preemptions tried so far")),
      victims(registry.histogram("scheduler_preemption_victims", "Victims of a preemption",
                                 metrics::exponential_bounds(1, 2, 7))),
      plugin_seconds(registry.histogram("scheduler_plugin_execution_duration_seconds",
                                        "How long a plugin took at an extension point",
                                        metrics::exponential_bounds(0.00001, 1.5, 20),
                                        {"plugin", "extension_point", "status"})),
      claims_created(registry),
      conditional(registry.counter("scheduler_dra_bindingconditions_allocations_total",
                                   "Allocations of devices with binding conditions",
                                   {"profile", "driver", "status"})),
      condition_seconds(registry.histogram("scheduler_dra_bindingconditions_wait_duration_seconds",
                                           "How long a pod waited for binding conditions",
                                           metrics::exponential_bounds(0.1, 2, 14),
                                           {"profile", "driver", "status"})),
      group_attempts(registry.counter("scheduler_podgroup_schedule_attempts_total",
                                      "Attempts to schedule groups of pods, by result",
                                      {"result", "profile"})),
      group_seconds(registry.histogram("scheduler_podgroup_scheduling_attempt_duration_seconds",
                                       "How long an attempt for a group took",
                                       metrics::exponential_bounds(0.001, 2, 15),
                                       {"result", "profile"})),
      group_algorithm_seconds(
          registry.histogram("scheduler_podgroup_scheduling_algorithm_duration_seconds",
                             "How long the search for a placement of a group took",
                             metrics::exponential_bounds(0.001, 2, 15))),
      active(pending.with({"active"})),
      backoff(pending.with({"backoff"})),
      parked(pending.with({"unschedulable"})),
      gated(pending.with({"gated"})),
      nodes(cache.with({"nodes"})),
      pods(cache.with({"pods"})),
      assumed(cache.with({"assumed_pods"})) {}

void Metrics::clear() {
  for (metrics::GaugeFamily* family : {&pending, &unschedulable, &cache}) family->clear();
}

}  // namespace dibs::scheduler
