#pragma once
// Brings statuses of pods to the server: one write at a time per pod, always the newest, nothing
// that the server knows already.
//
// A status set while another is on its way waits for it and replaces what waited before. Failed
// writes are repeated; a pod that is gone ends its writes. Nothing here waits; thread-safe.

#include <functional>
#include <memory>
#include <string>

#include "client/client.h"
#include "json/value.h"
#include "runtime/runtime.h"

namespace dibs::node {

class PodStatusWriter {
 public:
  struct Callbacks {
    /// Everything that was set is on the server now.
    std::function<void(const std::string& uid)> written = {};
    /// The server has no such pod any more, or another one of that name.
    std::function<void(const std::string& uid)> gone = {};
  };

  /// `client` and `runtime` must outlive it.
  PodStatusWriter(client::Client& client, runtime::Runtime& runtime, Callbacks callbacks);
  ~PodStatusWriter();
  PodStatusWriter(const PodStatusWriter&) = delete;
  PodStatusWriter& operator=(const PodStatusWriter&) = delete;

  /// `pod` as last seen on the server.
  void set(const json::Value& pod, json::Value status);
  /// The server has what was last set.
  bool is_written(const std::string& uid) const;
  void forget(const std::string& uid);
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
