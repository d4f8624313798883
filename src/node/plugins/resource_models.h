#pragma once
// Publishing for drivers of release 1.30: they stream what they offer to the node agent, which
// writes it into ResourceSlices (resource.k8s.io/v1alpha2), one per model.
//
// Slices that no longer fit are used again by an update, else deleted; all go when the driver
// deregisters. A stream that breaks is opened again after five seconds; a driver that has no such
// call, or ends the stream properly, is left alone.
//
// Thread-safe; its work runs on the executor.

#include <memory>
#include <string>

#include "client/client.h"
#include "node/plugins/dra_plugin.h"
#include "runtime/runtime.h"

namespace dibs::node {

class ResourceModels {
 public:
  /// `api` and `runtime` must outlive it.
  ResourceModels(std::string node_name, client::Client& api, runtime::Runtime& runtime);
  ~ResourceModels();
  ResourceModels(const ResourceModels&) = delete;
  ResourceModels& operator=(const ResourceModels&) = delete;

  /// Only plugins that gave a semantic version may be of that release.
  void add(const std::shared_ptr<DraPlugin>& plugin);
  void remove(const std::shared_ptr<DraPlugin>& plugin);
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
