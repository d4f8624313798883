#pragma once
// A cluster for benchmarks: inside this process, an API server over a store on disk in a temporary
// folder, the controllers that scheduling needs, and the scheduler, without a socket or a kubelet;
// or one that runs already, of which this process has only the controller of claims.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "cluster/cluster.h"
#include "scheduler/profiles.h"

namespace dibs::bench {

struct BenchClusterOptions {
  std::string release = {};  // "" for the newest
  std::string feature_gates = {};
  scheduler::Configuration configuration = {};
  std::string store = "sqlite";  // see store/stores.h
  std::vector<std::string> etcd_endpoints = {};
  /// All controllers of `dibs up`; else the one of resource claims alone.
  bool all_controllers = false;
  /// Of a server that runs, with a scheduler beside it; what is above says nothing then.
  std::string kubeconfig = {};
  /// Called with the length of each scheduling attempt, one at a time.
  std::function<void(Duration)> attempt = {};
};

class BenchCluster {
 public:
  static Result<std::unique_ptr<BenchCluster>> start(const BenchClusterOptions& options);
  /// Ends everything and removes the folder.
  ~BenchCluster();

  client::Client& client();
  runtime::Runtime& runtime();
  const alloc::Features& features() const;
  /// Returns when the process has been idle for a moment: what was written has been read. Where
  /// others read it, after a second more.
  void settle();

 private:
  struct Running;

  BenchCluster();
  Result<> open(const BenchClusterOptions& options);
  Result<> reach(const BenchClusterOptions& options);

  std::unique_ptr<Running> running_;  // or the two below
  std::string folder_;
  std::unique_ptr<cluster::Cluster> cluster_;
};

/// Processor time that the process has used so far.
double processor_seconds();
/// Megabytes of memory that the process has now.
double resident_megabytes();

}  // namespace dibs::bench
