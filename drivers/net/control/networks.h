#pragma once
// What the driver's halves know of the cluster besides pools: configurations of networks, and what
// nodes report.
//
// Both are caches that follow the API by themselves, also before the kinds exist. Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "client/client.h"
#include "client/informer.h"
#include "drivers/net/model/multus_config.h"
#include "drivers/net/model/node_state.h"
#include "runtime/runtime.h"

namespace dibs::drivers::net {

class Networks {
 public:
  /// Both must outlive it. `changed` is told of every change after the first list; may be empty.
  Networks(client::Client& api, runtime::Runtime& runtime, std::function<void()> changed = {});
  void stop();
  bool synced() const;

  /// As claims name them, "namespace/name": a SpiderMultusConfig, or a NetworkAttachmentDefinition
  /// that none made. Errors: not_found; invalid, when it cannot be used.
  Result<MultusConfig> config(std::string_view key) const;
  /// As pods' annotations name them: by the NetworkAttachmentDefinition.
  Result<MultusConfig> definition(std::string_view key) const;
  /// All SpiderMultusConfigs that can be used.
  std::vector<MultusConfig> all() const;

 private:
  client::Informer configs_;
  client::Informer definitions_;
};

class NodeStates {
 public:
  /// As Networks.
  NodeStates(client::Client& api, runtime::Runtime& runtime, std::function<void()> changed = {});
  void stop();
  bool synced() const;

  /// Null: the node has not reported, or nothing that can be read.
  std::shared_ptr<const NodeState> get(const std::string& node) const;
  std::vector<std::string> names() const;

 private:
  void put(const json::Value& object);

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const NodeState>> states_ DIBS_GUARDED_BY(mutex_);
  client::Informer informer_;
};

}  // namespace dibs::drivers::net
