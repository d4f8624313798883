#pragma once
// TLS settings of one end: certificate, trust, session cache. Channels (channel.h) are made from
// it.
//
// Immutable and thread-safe once made; a server swaps the whole context to renew its certificate,
// and connections keep the one they began with.

#include <memory>
#include <string>

#include "base/result.h"

namespace dibs::net {

struct TlsServerOptions {
  std::string certificate_pem = {};  // the chain, own certificate first
  std::string key_pem = {};
  /// Client certificates are asked for, not demanded, when set; may hold several CAs.
  std::string client_ca_pem = {};
};

struct TlsClientOptions {
  std::string ca_pem = {};  // the system's trust when empty
  std::string certificate_pem = {};
  std::string key_pem = {};
  bool insecure = false;         // no check of the server's certificate
  std::string server_name = {};  // checked and sent instead of the host dialled, when set
};

class TlsContext {
 public:
  /// Errors: invalid, naming which PEM is broken.
  static Result<std::shared_ptr<TlsContext>> server(const TlsServerOptions& options);
  static Result<std::shared_ptr<TlsContext>> client(const TlsClientOptions& options);
  ~TlsContext();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  TlsContext();
  std::unique_ptr<Impl> impl_;
};

}  // namespace dibs::net
