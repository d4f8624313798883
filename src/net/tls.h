#pragma once
// TLS settings of one end: certificate, trust, session cache. Channels (channel.h) are made from
// it.
//
// Immutable and thread-safe once made; a server swaps the whole context to renew its certificate,
// and connections keep the one they began with.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::net {

/// What a client that asks for one of the names is shown instead. "*.example.com" stands for names
/// with one more label. Without names: those of the certificate.
struct TlsIdentity {
  std::string certificate_pem = {};  // the chain, own certificate first
  std::string key_pem = {};
  std::vector<std::string> names = {};

  bool operator==(const TlsIdentity&) const = default;
};

/// A field of requests whose sender showed a certificate of a front proxy (front_proxy_ca_pem),
/// with its common name. No client can send it: names of fields do not begin with a colon.
inline constexpr std::string_view kFrontProxyField = ":front-proxy";

struct TlsServerOptions {
  std::string certificate_pem = {};  // the chain, own certificate first
  std::string key_pem = {};
  /// Client certificates are asked for, not demanded, when set; may hold several CAs.
  std::string client_ca_pem = {};
  /// The same for those who tell by headers for whom they ask. The two do not stand in for each
  /// other.
  std::string front_proxy_ca_pem = {};
  std::vector<TlsIdentity> by_name = {};
  bool only_tls_1_3 = false;
  /// HTTP/2 for clients that would rather speak it.
  bool http2 = false;
  /// Names as of IANA, of TLS 1.2 and 1.3; of a version that none is named for, OpenSSL's choice.
  std::vector<std::string> cipher_suites = {};

  bool operator==(const TlsServerOptions&) const = default;
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
