#pragma once
// Runs the operations of one workload on a cluster of its own and measures.

#include <string>
#include <vector>

#include "base/result.h"
#include "bench/workload.h"

namespace dibs::bench {

struct BenchMeasured {
  std::size_t pods = 0;     // that got their node while measured
  std::size_t objects = 0;  // made by createAny while measured
  double seconds = 0;
  double processor_seconds = 0;         // of the whole process, load included
  std::vector<double> bound_seconds;    // create-to-bound of each
  std::vector<double> attempt_seconds;  // of each scheduling attempt
  double megabytes = 0;                 // resident at the end
};

struct BenchRunOptions {
  std::string folder;   // of the workload file: templates are beside it
  std::string release;  // "" for the newest
  std::string store = "sqlite";
  std::vector<std::string> etcd_endpoints = {};
  bool all_controllers = false;
  std::string kubeconfig = {};  // of a cluster that runs, instead of one in here
  std::size_t window = 30;      // requests at a time, as upstream has it
};

/// Errors: not_found for what this server or benchmark does not have, others for what went wrong.
Result<BenchMeasured> run_workload(const Workload& workload, const BenchRunOptions& options);

}  // namespace dibs::bench
