#pragma once
// The cluster in memory that dibs plan tries things on.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/plan.h"
#include "client/client.h"
#include "cluster/cluster.h"
#include "runtime/sim_runtime.h"
#include "server/resource.h"

namespace dibs::cli {

/// One thread, virtual time.
class PlanCluster {
 public:
  /// Holds the objects of the input as they are, uids and status with them.
  static Result<std::unique_ptr<PlanCluster>> start(const PlanInput& input);
  ~PlanCluster();

  client::Client& client() { return cluster_->client(); }
  /// Applies one document as kubectl would. The object as it is then; null for a kind that this
  /// server does not have. Errors: the server's.
  Result<json::Value> apply(const json::Value& document, const std::string& name_space);
  /// Lets time pass until nothing happens any more.
  void settle();
  /// Pods that were deleted on the way, by key: others needed their room.
  const std::set<std::string>& evicted() const { return evicted_; }
  Time now() const { return sim_->now(); }

 private:
  PlanCluster();
  /// What agents would do. False: nothing.
  bool play_agents();
  /// What provisioners of volumes would do, that of dibs among the controllers apart.
  bool play_provisioners();
  std::string state() const;

  std::vector<server::ResourcePtr> resources_;
  std::unique_ptr<runtime::SimRuntime> sim_;
  std::unique_ptr<runtime::Files> files_;
  std::unique_ptr<cluster::Cluster> cluster_;
  std::set<std::string> evicted_;
};

}  // namespace dibs::cli
