#pragma once
// The configMaps and secrets that pods of a node refer to, as they are now.
//
// A pod is retained while it is on the node. From then on every object that it names (volumes,
// environment, pull secrets are not among them) is followed by a watch of that one object, which is
// all that a node may see; several pods share one watch. `changed` tells which pods' objects came,
// changed or went. Objects of pods that are not retained are read from the server each time.
//
// A simulated node follows nothing and reads each time, so that a thousand of them cost no watch.
//
// Thread-safe.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "client/client.h"
#include "json/value.h"
#include "runtime/runtime.h"

namespace dibs::node {

enum class PodObjectKind : std::uint8_t { config_map, secret };

/// "configmap" and "secret", as messages name them.
std::string_view kind_name(PodObjectKind kind);

class PodObjects {
 public:
  virtual ~PodObjects() = default;
  /// With the pod as it is now; again whenever its spec changes.
  virtual void retain(const json::Value& pod) = 0;
  virtual void release(const std::string& pod_uid) = 0;
  /// Errors are those that users see: not_found `configmap "x" not found`.
  virtual Result<json::Value> get(PodObjectKind kind, const std::string& name_space,
                                  const std::string& name) = 0;
  /// Called on the executor with the uid of each pod that uses an object that changed. At most one
  /// listener; set before the first retain().
  virtual void on_change(std::function<void(const std::string& pod_uid)> changed) = 0;
};

struct PodObjectsOptions {
  /// Follow objects by watches; else read them whenever they are asked for.
  bool watch = true;
};

/// `client` and `runtime` must outlive it.
std::unique_ptr<PodObjects> make_pod_objects(client::Client& client, runtime::Runtime& runtime,
                                             PodObjectsOptions options);

}  // namespace dibs::node
