#pragma once
// `dibs bench scheduler-perf`: upstream's scheduling workloads, on a whole cluster in this process.

#include <string>
#include <vector>

namespace dibs::cli {

struct BenchSchedulerFlags {
  std::vector<std::string> files;
  std::string workload = {};  // "TestCase/workload", or a part of it
  std::string label = {};
  std::string release = {};
  std::string log_level = "error";
  std::string store = "sqlite";
  bool all_controllers = false;
  bool list = false;
};

/// Prints a line per workload. 0: all ran or were skipped, 1: one failed, 2: a file cannot be read.
int bench_scheduler(const BenchSchedulerFlags& flags);

/// The value below which that part of the values lies; 0 for none.
double percentile(std::vector<double>& values, double part);

}  // namespace dibs::cli
