#pragma once
// The nodes of `dibs up`: agents and drivers in the server's own process.
//
// Each node speaks to the API as itself (system:node:NAME), so that it may do what a node may, and
// nothing else. A few nodes are like machines: each with its folders, its port, its watches and its
// drivers behind sockets. Many are a fleet, which shares one watch, has no ports, and meets its
// drivers in memory.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "calls/call.h"
#include "json/share.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::cli {

struct LocalNodesOptions {
  unsigned nodes = 1;  // node-0, node-1, …
  /// Names of drivers that every node has: "gpu", "net", "cpu".
  std::vector<std::string> drivers = {};
  std::string runtime = "auto";
  std::string images = {};  // folder of images; "": the machine's own
  /// The cluster's data folder: a node's is nodes/NAME in it.
  std::string folder = {};
  std::string release = {};
  std::string feature_gates = {};
  /// PEM of the CA whose certificates may use a node's port.
  std::string client_ca_pem = {};
  calls::Handler server = {};
  std::shared_ptr<json::Pool> trees = {};  // the server's
};

class LocalNodes {
 public:
  /// `runtime` and `files` must outlive it. Errors name the flag that is wrong.
  static Result<std::unique_ptr<LocalNodes>> start(LocalNodesOptions options,
                                                   runtime::Runtime& runtime,
                                                   runtime::Files& files);
  ~LocalNodes();
  LocalNodes(const LocalNodes&) = delete;
  LocalNodes& operator=(const LocalNodes&) = delete;

  /// Ends agents and drivers; containers go on.
  void stop();
  /// Which container runtime was picked, and why.
  const std::string& explanation() const;

 private:
  struct State;
  explicit LocalNodes(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace dibs::cli
