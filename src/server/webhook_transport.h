#pragma once
// How the server reaches webhooks: one POST of JSON, answered within a time.
//
// Handed in (Options::webhooks), so that tests answer themselves. The server's own makes a
// connection for every call: what a Service leads to may be another pod a moment later, and one
// that is gone would only be found out by its silence.
//
// Thread-safe; a call blocks its thread and no other.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "net/reach.h"
#include "runtime/runtime.h"

namespace dibs::server {

struct WebhookCall {
  std::string url = {};  // "https://name.namespace.svc:443/path", without a query
  /// Where it is dialled, if not at the URL's host and port. The certificate is that of the host.
  std::string at_host = {};
  std::uint16_t at_port = 0;
  net::Reach reach = net::Reach::anywhere;
  std::string ca_pem = {};  // "": what the machine trusts
  std::string body = {};
  Duration timeout = {};
};

struct WebhookReply {
  /// Every HTTP status is a success here. Errors: invalid, for a CA that is none; unavailable,
  /// timeout and too_large in the words of Go's client, the URL included.
  Result<net::Response> response;
  Duration took{};
};

class WebhookTransport {
 public:
  virtual ~WebhookTransport() = default;
  virtual WebhookReply post(const WebhookCall& call) = 0;
  /// All at once where the transport can, else one after the other. In the order of the calls.
  virtual std::vector<WebhookReply> post_all(const std::vector<WebhookCall>& calls);
};

/// Calls of mutating, of validating, and of conversion webhooks that are waited for at once, each
/// on a thread of the server.
inline constexpr std::size_t kMostWebhookCalls = 256;
/// Of an answer, its patch included.
inline constexpr std::size_t kMostWebhookAnswer = std::size_t{16} << 20;

/// Over HTTPS; several calls are made on threads of the runtime, which outlives it.
std::shared_ptr<WebhookTransport> make_webhook_transport(runtime::Runtime& runtime);

}  // namespace dibs::server
