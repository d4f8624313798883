#pragma once
// What is around the driver: an API server in memory with a node, and the node's folders.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "cluster/cluster.h"
#include "json/value.h"

namespace dibs::trial {

inline const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
inline const client::Gvr kSlices = {"resource.k8s.io", "v1", "resourceslices"};

class Stage {
 public:
  /// In a folder that is there, for a node of that name.
  static Result<std::unique_ptr<Stage>> build(const std::string& folder, const std::string& node);
  ~Stage();

  client::Client& api() { return cluster_->client(); }
  runtime::Runtime& runtime() { return cluster_->runtime(); }
  const std::string& node() const { return node_; }
  const std::string& node_uid() const { return node_uid_; }
  std::string kubeconfig() const { return folder_ + "/kubeconfig"; }
  std::string registry() const { return folder_ + "/plugins_registry"; }
  std::string plugins() const { return folder_ + "/plugins"; }
  std::string cdi() const { return folder_ + "/cdi"; }

  /// Of one driver.
  Result<std::vector<json::Value>> slices(const std::string& driver);
  /// A claim that has these results, and opaque parameters of the driver where they are not null.
  Result<json::Value> allocated_claim(const std::vector<json::Value>& results,
                                      std::string_view driver, const json::Value& parameters);

 private:
  Stage(std::string folder, std::string node)
      : folder_(std::move(folder)), node_(std::move(node)) {}
  Result<> start_server();
  Result<> make_node();

  const std::string folder_;
  const std::string node_;
  std::string node_uid_;
  int claims_ = 0;
  std::unique_ptr<cluster::Cluster> cluster_;
};

}  // namespace dibs::trial
