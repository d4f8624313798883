#pragma once
// A Transport over HTTPS. Requests share kept connections; each stream (a watch) has a connection
// and a thread of its own, so a thousand quiet watches cost stacks, not executor threads.

#include <memory>

#include "base/result.h"
#include "client/kubeconfig.h"
#include "client/transport.h"
#include "net/x509.h"

namespace dibs::client {

struct HttpsOptions {
  Duration timeout = std::chrono::seconds(60);
  /// A stream is given up when nothing at all has come for so long; bookmarks come every minute.
  Duration stream_timeout = std::chrono::minutes(30);
  std::string user_agent = "dibs";
};

class HttpsTransport : public Transport {
 public:
  /// Who one is in connections that are opened from now on. Streams go on in theirs. Errors:
  /// invalid.
  virtual Result<> set_credential(const net::Credential& credential) = 0;
};

/// `files` and `runtime` must outlive the transport; its destructor ends all streams and waits for
/// them. Errors: invalid.
Result<std::unique_ptr<HttpsTransport>> make_https_transport(const Access& access,
                                                             runtime::Files& files,
                                                             runtime::Runtime& runtime,
                                                             HttpsOptions options = {});

}  // namespace dibs::client
