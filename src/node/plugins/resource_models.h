#pragma once
// Publishing for drivers of release 1.30: they stream what they offer to the node agent, which
// writes it into ResourceSlices (resource.k8s.io/v1alpha2), one per model.
//
// Slices that no longer fit are used again by an update, else deleted; all go when the driver
// deregisters. The node's slices are watched from the first offer on: what others change or delete
// is put right. A stream that breaks is opened again after five seconds; a driver that has no such
// call, or ends the stream properly, is left alone.
//
// Thread-safe; its work runs on the executor.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "node/plugins/dra_plugin.h"
#include "node/plugins/plugin_streams.h"
#include "runtime/runtime.h"

namespace dibs::node {

class ResourceModels {
 public:
  /// Whether an instance of the driver is there.
  using Registered = std::function<bool(const std::string& driver)>;

  /// `api` and `runtime` must outlive it.
  ResourceModels(std::string node_name, client::Client& api, runtime::Runtime& runtime,
                 Registered registered);

  /// From now on slices of drivers that are not registered go, too: nobody but this agent publishes
  /// for its node. Those that it had before it was started have half a minute to come back.
  void clean_up();

  /// Only plugins that gave a semantic version may be of that release.
  void add(const std::shared_ptr<DraPlugin>& plugin);
  void remove(const std::shared_ptr<DraPlugin>& plugin) { streams_.remove(plugin); }
  void stop();

 private:
  PluginStreams::Handlers handlers();
  void received(const std::string& driver, const std::string& bytes);
  void want(const std::string& driver, std::vector<json::Value> models);
  void follow_slices();
  std::optional<client::WorkOutcome> leave_alone(const std::string& driver);
  client::WorkOutcome sync(const std::string& driver);
  Result<> write(const std::string& driver, std::vector<json::Value> models);
  Result<json::Value> fresh(const std::string& driver, const json::Value& model);

  const std::string node_name_;
  client::Client& api_;
  runtime::Runtime& runtime_;
  const Registered registered_;
  Mutex mutex_;
  std::map<std::string, std::vector<json::Value>> wanted_ DIBS_GUARDED_BY(mutex_);  // by driver
  /// When slices that nobody offers go; nothing: never.
  std::optional<Duration> clean_from_ DIBS_GUARDED_BY(mutex_);
  // Last, for their work uses what stands above, and that of the streams the queue.
  client::WorkQueue queue_;
  std::unique_ptr<client::Informer> slices_ DIBS_GUARDED_BY(mutex_);
  PluginStreams streams_;
};

}  // namespace dibs::node
