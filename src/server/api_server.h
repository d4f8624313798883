#pragma once
// The API server: one handler for all requests, whether they come over HTTP or as calls from inside
// the process (calls/call.h).
//
// Life of a request: 1. its path is read (request_info.h); 2. the sender is made out
// (authentication.h) and 3. authorized (auth/); 4. the resource is found (resource.h) and the
// answer's form agreed (negotiate.h); 5. the verb's handler runs: reads of one object at once on
// the caller's thread, everything else on the runtime's executor, since a write waits for the disk.
//
// Thread-safe. close() ends watches and refuses new requests; it must precede destruction.

#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "calls/call.h"
#include "json/share.h"
#include "runtime/runtime.h"
#include "server/options.h"
#include "store/store.h"

namespace dibs::server {

class ApiServer {
 public:
  /// Writes the objects every cluster has (namespaces, roles, …) where they are missing. Errors: of
  /// the store, or of an option that cannot be used.
  static Result<std::unique_ptr<ApiServer>> open(runtime::Runtime& runtime, store::Store& store,
                                                 Options options);
  ~ApiServer();

  /// Over HTTP.
  void handle(net::Request request, std::unique_ptr<net::Exchange> exchange);
  /// From inside the process.
  void handle(calls::Request request, std::unique_ptr<calls::Exchange> exchange);
  calls::Handler handler();

  /// It will be closed soon: /readyz says so, and everything else goes on.
  void retire();
  void close();
  /// What nodes are shown from now on. Errors: invalid, for PEM that cannot be used.
  Result<> set_node_client(const std::string& certificate_pem, const std::string& key_pem);
  /// What servers of APIServices are shown from now on.
  void set_front_proxy(std::string certificate_pem, std::string key_pem);
  /// Whose certificates are believed from now on, for other servers to know
  /// (server/trust.h).
  Result<> set_trust(const std::string& client_ca_pem, const std::string& front_proxy_ca_pem);
  /// Who may come in by which tokens from now on.
  void configure(const auth::AuthenticationConfiguration& configuration);
  metrics::Registry& metrics();
  /// What the objects have in common that clients in this process are given to keep; such a client
  /// shares what it keeps through the same pool.
  std::shared_ptr<json::Pool> trees() const;

 private:
  struct Parts;
  explicit ApiServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace dibs::server
