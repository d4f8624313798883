#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/tls_impl.h"

namespace dibs::net {
namespace {

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioFree>;

Bio reader(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Never asks a terminal for a passphrase.
int no_passphrase(char*, int, int, void*) { return 0; }

Result<> use_identity(SSL_CTX* context, const std::string& certificate, const std::string& key) {
  auto bio = reader(certificate);
  X509* own = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr);
  if (own == nullptr) {
    return Error::invalid(cat("certificate: no PEM certificate found: ", openssl_error()));
  }
  const bool used = SSL_CTX_use_certificate(context, own) == 1;
  X509_free(own);
  if (!used) return Error::invalid(cat("certificate: ", openssl_error()));
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, next) != 1) {
      X509_free(next);
      return Error::invalid(cat("certificate chain: ", openssl_error()));
    }
  }
  ERR_clear_error();

  auto key_bio = reader(key);
  EVP_PKEY* own_key = PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_passphrase, nullptr);
  if (own_key == nullptr) {
    return Error::invalid(cat("private key: no PEM key found: ", openssl_error()));
  }
  const bool matches = SSL_CTX_use_PrivateKey(context, own_key) == 1;
  EVP_PKEY_free(own_key);
  if (!matches) return Error::invalid("private key does not match the certificate");
  return success();
}

Result<> trust(SSL_CTX* context, const std::string& pem, bool announce) {
  auto bio = reader(pem);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  int count = 0;
  while (X509* authority = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) {
    X509_STORE_add_cert(store, authority);
    if (announce) SSL_CTX_add_client_CA(context, authority);
    X509_free(authority);
    ++count;
  }
  ERR_clear_error();
  if (count == 0) return Error::invalid("certificate authority: no PEM certificate found");
  // A certificate may stand in the trust itself without being self-signed.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  return success();
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* in, unsigned in_size, void*) {
  static const unsigned char kHttp11[] = "\x08http/1.1";
  for (unsigned i = 0; i < in_size; i += in[i] + 1U) {
    if (in[i] == 8 && i + 8 < in_size && std::memcmp(in + i + 1, kHttp11 + 1, 8) == 0) {
      *out = in + i + 1;
      *out_size = 8;
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return SSL_TLSEXT_ERR_NOACK;
}

// A bad client certificate does not end the handshake: the request then comes without an identity,
// and the API server answers it as it answers anyone unknown. The verdict stays in the session.
int tolerate(int, X509_STORE_CTX*) { return 1; }

int keep_session(SSL* ssl, SSL_SESSION* session) {
  auto* impl = static_cast<TlsContext::Impl*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const MutexLock lock(impl->mutex);
  if (impl->session != nullptr) SSL_SESSION_free(impl->session);
  impl->session = session;
  return 1;
}

void set_common(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(
      context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // One recv() takes a record's header, its body and what follows.
  SSL_CTX_set_read_ahead(context, 1);
}

}  // namespace

std::string openssl_error() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : cat("error ", code);
}

TlsContext::TlsContext() : impl_(std::make_unique<Impl>()) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::server(const TlsServerOptions& options) {
  std::shared_ptr<TlsContext> out(new TlsContext);
  SSL_CTX* context = out->impl_->context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return Error::internal(cat("tls: ", openssl_error()));
  set_common(context);
  DIBS_CHECK(use_identity(context, options.certificate_pem, options.key_pem));
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  SSL_CTX_set_num_tickets(context, 1);
  static const unsigned char kSessionContext[] = "dibs";
  SSL_CTX_set_session_id_context(context, kSessionContext, sizeof kSessionContext - 1);
  // Tickets carry the state, so the server keeps no session per client.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (!options.client_ca_pem.empty()) {
    auto trusted = trust(context, options.client_ca_pem, true);
    if (!trusted) return trusted.error().within("client CA");
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, tolerate);
  }
  return out;
}

Result<std::shared_ptr<TlsContext>> TlsContext::client(const TlsClientOptions& options) {
  std::shared_ptr<TlsContext> out(new TlsContext);
  SSL_CTX* context = out->impl_->context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr) return Error::internal(cat("tls: ", openssl_error()));
  set_common(context);
  out->impl_->insecure = options.insecure;
  out->impl_->server_name = options.server_name;
  if (!options.certificate_pem.empty() || !options.key_pem.empty()) {
    auto used = use_identity(context, options.certificate_pem, options.key_pem);
    if (!used) return used.error().within("client certificate");
  }
  if (options.insecure) {
    SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  } else {
    if (options.ca_pem.empty()) {
      SSL_CTX_set_default_verify_paths(context);
    } else {
      DIBS_CHECK(trust(context, options.ca_pem, false));
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  }
  static const unsigned char kHttp11[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context, kHttp11, sizeof kHttp11 - 1);
  SSL_CTX_set_app_data(context, out->impl_.get());
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(context, keep_session);
  return out;
}

}  // namespace dibs::net
