#pragma once
// Shared between tls.cc and channel.cc only: the OpenSSL side of a TlsContext.

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "net/openssl_objects.h"
#include "net/tls.h"

namespace dibs::net {

// Verdicts on client certificates beside X509_V_OK, which is the client CA's alone. They are kept
// in the session as OpenSSL's own are, so that a resumed one has them too. OpenSSL says the second
// one itself where a verification broke off: verdict_on() keeps its words apart from these.
inline constexpr int kVerifiedByFrontProxy = X509_V_ERR_APPLICATION_VERIFICATION;
inline constexpr int kVerifiedByBoth = X509_V_ERR_UNSPECIFIED;

/// What a session keeps of both verifications. `error` is OpenSSL's of the client CA's, and counts
/// only where neither vouches: then it is never one of those that mean somebody did.
constexpr int verdict_on(bool client, bool front_proxy, int error) {
  if (front_proxy) return client ? kVerifiedByBoth : kVerifiedByFrontProxy;
  if (client) return X509_V_OK;
  const bool vouches =
      error == X509_V_OK || error == kVerifiedByFrontProxy || error == kVerifiedByBoth;
  return vouches ? X509_V_ERR_CERT_REJECTED : error;
}

/// A certificate with its key, as a handshake needs it.
struct TlsKeyPair {
  Certificate certificate;
  Key key;
  STACK_OF(X509) * chain = nullptr;
  std::vector<std::string> names;  // in lower case

  TlsKeyPair() = default;
  TlsKeyPair(const TlsKeyPair&) = delete;
  TlsKeyPair& operator=(const TlsKeyPair&) = delete;
  ~TlsKeyPair() { sk_X509_pop_free(chain, X509_free); }
};

struct TlsContext::Impl {
  SSL_CTX* context = nullptr;
  X509_STORE* front_proxies = nullptr;
  std::vector<std::unique_ptr<TlsKeyPair>> by_name;
  bool insecure = false;
  bool http2 = false;
  std::string server_name;

  // A client resumes its last session: a new connection then costs no signature. OpenSSL looks at
  // no certificate there, so it is offered to nobody but who has proved to be the same.
  Mutex mutex;
  SSL_SESSION* session DIBS_GUARDED_BY(mutex) = nullptr;
  std::string session_name DIBS_GUARDED_BY(mutex);

  ~Impl() {
    if (session != nullptr) SSL_SESSION_free(session);
    if (front_proxies != nullptr) X509_STORE_free(front_proxies);
    if (context != nullptr) SSL_CTX_free(context);
  }
};

}  // namespace dibs::net
