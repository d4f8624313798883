#pragma once
// Shared between tls.cc and channel.cc only: the OpenSSL side of a TlsContext.

#include <openssl/ssl.h>

#include <string>

#include "base/mutex.h"
#include "net/tls.h"

namespace dibs::net {

struct TlsContext::Impl {
  SSL_CTX* context = nullptr;
  bool insecure = false;
  std::string server_name;

  // A client resumes its last session: a new connection then costs no signature.
  Mutex mutex;
  SSL_SESSION* session DIBS_GUARDED_BY(mutex) = nullptr;

  ~Impl() {
    if (session != nullptr) SSL_SESSION_free(session);
    if (context != nullptr) SSL_CTX_free(context);
  }
};

/// The newest entry of OpenSSL's error queue, which is then empty.
std::string openssl_error();

}  // namespace dibs::net
