#pragma once
// The API server's way to the ports of nodes and pods.
//
// Nodes are shown the server's client certificate. Connections are opened, and what flows through
// them is moved, on one io thread: somebody who never answers holds up nobody.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "net/http.h"
#include "net/stream_client.h"
#include "server/options.h"

namespace dibs::server {

/// Where a request is passed on to.
struct StreamPlace {
  std::string url = {};     // "https://10.0.0.5:10250"
  std::string target = {};  // path and query
  bool to_node = true;      // else a pod's own server, which gets no certificate
  net::Reach reach = net::Reach::anywhere;
  bool unchecked = false;  // the client does not mind whose certificate the node shows
};

inline constexpr Duration kNodeTimeout = std::chrono::seconds(30);
/// What is read of a node's answer that is an error.
inline constexpr std::size_t kMaxNodeError = 64 * 1024;

class NodeClient {
 public:
  /// Errors: invalid, for a certificate that cannot be used.
  static Result<std::unique_ptr<NodeClient>> open(const Options& options);
  /// For connections that begin later. Errors: invalid.
  Result<> set_certificate(const std::string& certificate_pem, const std::string& key_pem);

  /// Nodes are shown this server's certificate. Others are reached by http, or by https without any
  /// check. `opened` is called once, on the io thread, and must not block there; when the client
  /// has hung up before, with an error. Errors: as of net::StreamRequest.
  void open(const StreamPlace& place, const net::Request& request, net::Exchange& client,
            std::function<void(Result<net::StreamAnswer>)> opened);
  /// Reads a whole answer of at most `limit` bytes that is a success. `done` is called once, on the
  /// io thread. Errors: unavailable.
  void fetch(const std::string& url, const std::string& target, Duration timeout, std::size_t limit,
             std::function<void(Result<std::string>)> done);
  /// The agent's port, by what the node says of itself. Errors: a node without any address.
  Result<std::string> url_of(const json::Value& node) const;
  /// Where a node of this process listens; "" for any other, whose address is what it says.
  std::string own_host(std::string_view node) const;
  /// Breaks off every stream.
  void close() { client_.close(); }

 private:
  explicit NodeClient(std::string ca_pem) : ca_pem_(std::move(ca_pem)) {}
  std::shared_ptr<net::TlsContext> context_for(const StreamPlace& place);

  const std::string ca_pem_;
  std::vector<std::string> own_nodes_;
  std::string own_nodes_host_;
  net::StreamClient client_;
  std::shared_ptr<net::TlsContext> other_tls_;
  Mutex mutex_;
  std::shared_ptr<net::TlsContext> tls_ DIBS_GUARDED_BY(mutex_);
  std::shared_ptr<net::TlsContext> unchecked_tls_ DIBS_GUARDED_BY(mutex_);
};

/// The client's request with its target replaced, without what was meant for this server alone.
net::Request passed_on(const net::Request& request, const std::string& target);

/// Answers an upgrade by what the place answers: both connections are joined, or its refusal is
/// passed back.
void join_upgrade(NodeClient& nodes, const net::Request& request, const StreamPlace& place,
                  const std::shared_ptr<net::Exchange>& exchange);

/// What waits for a client that reads slowly before its source is held up.
inline constexpr std::size_t kMaxQueued = 1024 * 1024;
/// Sends a body on as it comes; a client that is slow holds up the source.
void relay(std::shared_ptr<net::BodySource> body, std::shared_ptr<net::BodyStream> client);

}  // namespace dibs::server
