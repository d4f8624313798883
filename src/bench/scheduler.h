#pragma once
// `dibs bench scheduler-perf`: upstream's scheduling workloads, on a whole cluster in this process
// or on one that runs.

#include <functional>
#include <string>
#include <vector>

#include "bench/outcome.h"

namespace dibs::bench {

struct SchedulerOptions {
  std::vector<std::string> files;
  std::string workload = {};  // "TestCase/workload", or a part of it
  std::string label = {};
  std::string release = {};
  std::string store = "sqlite";
  std::vector<std::string> etcd_endpoints = {};
  bool all_controllers = false;
  std::string kubeconfig = {};  // of a cluster that runs
  bool list = false;
};

/// Hands over a line per workload as soon as it is there. The status is 0 when all ran or were
/// skipped, 1 when one failed, 2 when a file cannot be read.
Outcome bench_scheduler(const SchedulerOptions& options,
                        const std::function<void(const std::string& line)>& print);

/// The value below which that part of the values lies; 0 for none.
double percentile(std::vector<double>& values, double part);

}  // namespace dibs::bench
