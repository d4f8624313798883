#pragma once
// The agent's HTTPS port: what an API server asks a kubelet for. Logs, exec, attach, port-forward,
// the list of pods, health, metrics.
//
// Paths, query parameters, protocols and messages are the kubelet's, so that any API server can
// stand before it: exec and attach come as SPDY/3.1 or as a WebSocket (channel protocols up to v5),
// port-forward as SPDY/3.1, directly or tunnelled in a WebSocket. /healthz alone is open to
// everybody; everyone else shows a client certificate or a token (node_access.h).
//
// Requests run on the runtime's executor and may block there; streams that wait hold no thread.
// Everything given here must outlive the server.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "net/http.h"
#include "net/tls.h"
#include "node/runtime/container_runtime.h"
#include "node/streams/node_stats.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct Caller {
  std::string user = {};
  std::vector<std::string> groups = {};
};

struct NodeServerOptions {
  std::string host = "0.0.0.0";
  std::uint16_t port = 10250;  // 0 picks a free one
  unsigned threads = 1;
  /// Certificate and key of this node, and the CA of clients. Without a certificate it makes a
  /// self-signed one for `node_name` and `addresses`.
  net::TlsServerOptions tls = {};
  std::string node_name = {};
  std::vector<std::string> addresses = {};

  /// The pod as an API object with the status as the agent sees it now, or nothing. Of several
  /// pods with one name (an old one is still ending) the newest.
  std::function<std::optional<json::Value>(const std::string& name_space, const std::string& name)>
      pod = {};
  std::function<std::vector<json::Value>()> pods = {};

  /// Who asks. Without it only verified client certificates count.
  std::function<Result<Caller>(const net::Request& request)> authenticate = {};
  /// Whether he may, on nodes/<subresource>, with the API's verb. Without it: members of
  /// system:masters.
  std::function<Result<>(const Caller& caller, const std::string& verb,
                         const std::string& subresource)>
      authorize = {};

  std::function<std::string()> metrics = {};        // Prometheus text
  std::function<std::string()> probe_metrics = {};  // likewise, of /metrics/probes
  /// Of /stats/summary and the metrics of usage; `pods` and the names come from above.
  std::function<std::optional<FileSystemUsage>()> disk = {};
  std::function<std::optional<PodStorage>(const json::Value& pod)> storage = {};
  json::Value config = {};  // shown by /configz
};

class NodeServer {
 public:
  /// Listens when it returns.
  static Result<std::unique_ptr<NodeServer>> start(runtime::Runtime& runtime,
                                                   ContainerRuntime& containers,
                                                   NodeServerOptions options);
  /// Breaks everything off; processes that were started by exec end.
  ~NodeServer();
  NodeServer(const NodeServer&) = delete;
  NodeServer& operator=(const NodeServer&) = delete;

  std::uint16_t port() const;

 private:
  struct Impl;
  explicit NodeServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace dibs::node
