#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/tls_impl.h"
#include "net/x509.h"

namespace dibs::net {
namespace {

Result<std::unique_ptr<TlsKeyPair>> read_pair(const std::string& certificate,
                                              const std::string& key) {
  auto out = std::make_unique<TlsKeyPair>();
  auto bio = reader(certificate);
  out->certificate.reset(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
  if (out->certificate == nullptr) {
    return Error::invalid(cat("certificate: no PEM certificate found: ", openssl_error()));
  }
  out->chain = sk_X509_new_null();
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr)) {
    sk_X509_push(out->chain, next);
  }
  ERR_clear_error();
  auto key_bio = reader(key);
  out->key.reset(PEM_read_bio_PrivateKey(key_bio.get(), nullptr, no_passphrase, nullptr));
  if (out->key == nullptr) {
    return Error::invalid(cat("private key: no PEM key found: ", openssl_error()));
  }
  if (X509_check_private_key(out->certificate.get(), out->key.get()) != 1) {
    ERR_clear_error();
    return Error::invalid("private key does not match the certificate");
  }
  return out;
}

Result<> use_identity(SSL_CTX* context, const std::string& certificate, const std::string& key) {
  DIBS_TRY(const auto pair, read_pair(certificate, key));
  if (SSL_CTX_use_cert_and_key(context, pair->certificate.get(), pair->key.get(), pair->chain, 1) !=
      1) {
    return Error::invalid(cat("certificate: ", openssl_error()));
  }
  return success();
}

Result<> trust(SSL_CTX* context, X509_STORE* store, const std::string& pem, bool announce) {
  auto bio = reader(pem);
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

/// The pair that a client gets which asks for `host`: exactly that, else by a wildcard.
const TlsKeyPair* pair_for(const TlsContext::Impl& impl, std::string_view host) {
  const auto dot = host.find('.');
  const std::string wildcard =
      dot == std::string_view::npos ? std::string() : cat("*", host.substr(dot));
  const TlsKeyPair* found = nullptr;
  for (const auto& pair : impl.by_name) {
    for (const std::string& name : pair->names) {
      if (name == host) return pair.get();
      if (found == nullptr && name == wildcard) found = pair.get();
    }
  }
  return found;
}

int choose_certificate(SSL* ssl, void* argument) {
  const auto& impl = *static_cast<const TlsContext::Impl*>(argument);
  const char* host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (host == nullptr) return 1;
  const TlsKeyPair* pair = pair_for(impl, to_lower(host));
  if (pair == nullptr) return 1;
  // A key of another kind would stand beside the one that is there, and the client would choose.
  SSL_certs_clear(ssl);
  return SSL_use_cert_and_key(ssl, pair->certificate.get(), pair->key.get(), pair->chain, 1);
}

Result<> set_cipher_suites(SSL_CTX* context, const std::vector<std::string>& names) {
  std::string before;  // of TLS 1.2
  std::string newest;
  for (const std::string& name : names) {
    const bool is_newest = name.starts_with("TLS_AES_") || name.starts_with("TLS_CHACHA20_");
    const std::string_view known = OPENSSL_cipher_name(name.c_str());
    if (known == "(NONE)")
      return Error::invalid(cat("Cipher suite ", name, " not supported or doesn't exist"));
    std::string& list = is_newest ? newest : before;
    append(list, list.empty() ? "" : ":", known);
  }
  if (!before.empty() && SSL_CTX_set_cipher_list(context, before.c_str()) != 1) {
    return Error::invalid(cat("cipher suites: none of them can be used: ", openssl_error()));
  }
  if (!newest.empty() && SSL_CTX_set_ciphersuites(context, newest.c_str()) != 1) {
    return Error::invalid(cat("cipher suites: none of them can be used: ", openssl_error()));
  }
  return success();
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* in, unsigned in_size, void* argument) {
  const auto& impl = *static_cast<const TlsContext::Impl*>(argument);
  // The server's order counts.
  for (const std::string_view wanted : {std::string_view("h2"), std::string_view("http/1.1")}) {
    if (wanted == "h2" && !impl.http2) continue;
    for (unsigned i = 0; i < in_size; i += in[i] + 1U) {
      if (in[i] == wanted.size() && i + in[i] < in_size &&
          std::memcmp(in + i + 1, wanted.data(), wanted.size()) == 0) {
        *out = in + i + 1;
        *out_size = in[i];
        return SSL_TLSEXT_ERR_OK;
      }
    }
  }
  return SSL_TLSEXT_ERR_NOACK;
}

// A bad client certificate does not end the handshake: the request then comes without an identity,
// and the API server answers it as it answers anyone unknown. The verdict stays in the session.
int judge(X509_STORE_CTX* given, void* argument) {
  const auto& impl = *static_cast<const TlsContext::Impl*>(argument);
  const bool client = X509_verify_cert(given) == 1;
  const int error = X509_STORE_CTX_get_error(given);
  bool front_proxy = false;
  if (impl.front_proxies != nullptr) {
    X509_STORE_CTX* second = X509_STORE_CTX_new();
    if (second != nullptr &&
        X509_STORE_CTX_init(second, impl.front_proxies, X509_STORE_CTX_get0_cert(given),
                            X509_STORE_CTX_get0_untrusted(given)) == 1) {
      X509_STORE_CTX_set_default(second, "ssl_client");
      front_proxy = X509_verify_cert(second) == 1;
    }
    X509_STORE_CTX_free(second);
  }
  ERR_clear_error();
  X509_STORE_CTX_set_error(given, verdict_on(client, front_proxy, error));
  return 1;
}

int keep_session(SSL* ssl, SSL_SESSION* session) {
  auto* impl = static_cast<TlsContext::Impl*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  const MutexLock lock(impl->mutex);
  if (impl->session != nullptr) SSL_SESSION_free(impl->session);
  impl->session = session;
  impl->session_name = *static_cast<const std::string*>(SSL_get_app_data(ssl));
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

TlsContext::TlsContext() : impl_(std::make_unique<Impl>()) {}
TlsContext::~TlsContext() = default;

Result<std::shared_ptr<TlsContext>> TlsContext::server(const TlsServerOptions& options) {
  std::shared_ptr<TlsContext> out(new TlsContext);
  SSL_CTX* context = out->impl_->context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return Error::internal(cat("tls: ", openssl_error()));
  set_common(context);
  DIBS_CHECK(use_identity(context, options.certificate_pem, options.key_pem));
  out->impl_->http2 = options.http2;
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, out->impl_.get());
  SSL_CTX_set_num_tickets(context, 1);
  static const unsigned char kSessionContext[] = "dibs";
  SSL_CTX_set_session_id_context(context, kSessionContext, sizeof kSessionContext - 1);
  // Tickets carry the state, so the server keeps no session per client.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (options.only_tls_1_3) SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  DIBS_CHECK(set_cipher_suites(context, options.cipher_suites));
  auto& impl = *out->impl_;
  for (const TlsIdentity& one : options.by_name) {
    DIBS_TRY(auto pair, read_pair(one.certificate_pem, one.key_pem));
    pair->names = one.names;
    if (pair->names.empty()) {
      const auto info = describe_certificate(pair->certificate.get());
      pair->names = info.dns_names;
      if (pair->names.empty() && !info.common_name.empty()) pair->names = {info.common_name};
    }
    for (std::string& name : pair->names) name = to_lower(name);
    impl.by_name.push_back(std::move(pair));
  }
  if (!impl.by_name.empty()) SSL_CTX_set_cert_cb(context, choose_certificate, &impl);
  if (!options.client_ca_pem.empty()) {
    auto trusted = trust(context, SSL_CTX_get_cert_store(context), options.client_ca_pem, true);
    if (!trusted) return trusted.error().within("client CA");
  }
  if (!options.front_proxy_ca_pem.empty()) {
    impl.front_proxies = X509_STORE_new();
    auto trusted = trust(context, impl.front_proxies, options.front_proxy_ca_pem, true);
    if (!trusted) return trusted.error().within("front proxy CA");
  }
  if (!options.client_ca_pem.empty() || !options.front_proxy_ca_pem.empty()) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(context, judge, &impl);
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
      DIBS_CHECK(trust(context, SSL_CTX_get_cert_store(context), options.ca_pem, false));
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
