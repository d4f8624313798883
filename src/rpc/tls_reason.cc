// gRPC says of a handshake that it failed, and hardly more. This makes one more with OpenSSL, to
// tell whoever set it up what is wrong.

#include <netdb.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <memory>

#include "base/strings.h"
#include "rpc/remote.h"

namespace dibs::rpc {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* what) const {
    Free(what);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Deleter<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Deleter<SSL_free>>;

Bio memory(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate next_certificate(BIO* from) {
  return Certificate(PEM_read_bio_X509(from, nullptr, nullptr, nullptr));
}

std::string last_error() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "" : reason;
}

/// What is wrong with our own half, whoever the server is.
std::string fault_of_own(const RemoteTls& tls) {
  if (tls.certificate.empty()) return {};
  const Certificate own = next_certificate(memory(tls.certificate).get());
  if (!own) return "the client's certificate cannot be read";
  const Key key(PEM_read_bio_PrivateKey(memory(tls.key).get(), nullptr, nullptr, nullptr));
  if (!key) return "the client's key cannot be read";
  if (X509_check_private_key(own.get(), key.get()) != 1) {
    return "the client's key does not belong to its certificate";
  }
  if (X509_cmp_current_time(X509_get0_notAfter(own.get())) < 0) {
    return "the client's certificate has expired";
  }
  if (X509_cmp_current_time(X509_get0_notBefore(own.get())) > 0) {
    return "the client's certificate is not valid yet";
  }
  return {};
}

Context context_of(const RemoteTls& tls) {
  Context context(SSL_CTX_new(TLS_client_method()));
  const Bio authorities = memory(tls.authorities);
  while (const Certificate each = next_certificate(authorities.get())) {
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), each.get());
  }
  if (!tls.certificate.empty()) {
    const Certificate own = next_certificate(memory(tls.certificate).get());
    const Key key(PEM_read_bio_PrivateKey(memory(tls.key).get(), nullptr, nullptr, nullptr));
    SSL_CTX_use_certificate(context.get(), own.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof kHttp2);
  return context;
}

/// -1: not reached.
int dial(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return -1;
  int fd = -1;
  for (const addrinfo* at = found; at != nullptr && fd < 0; at = at->ai_next) {
    fd = ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience{2, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (::connect(fd, at->ai_addr, at->ai_addrlen) == 0) break;
    ::close(fd);
    fd = -1;
  }
  ::freeaddrinfo(found);
  return fd;
}

std::string handshake(const RemoteTls& tls, const std::string& host, int fd) {
  const Context context = context_of(tls);
  const Session session(SSL_new(context.get()));
  SSL_set_fd(session.get(), fd);
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str()) != 1) {
    SSL_set1_host(session.get(), host.c_str());
    SSL_set_tlsext_host_name(session.get(), host.c_str());
  }
  ERR_clear_error();
  const bool shaken = SSL_connect(session.get()) == 1;
  if (const long verdict = SSL_get_verify_result(session.get()); verdict != X509_V_OK) {
    return cat("the server's certificate for ", host, ": ", X509_verify_cert_error_string(verdict));
  }
  // Whether our own certificate is liked is told with the first bytes.
  char byte = 0;
  if (shaken && SSL_read(session.get(), &byte, 1) > 0) return {};
  return last_error();
}

}  // namespace

std::string tls_reason(const RemoteOptions& options) {
  if (!options.tls) return {};
  if (std::string own = fault_of_own(options.certificates); !own.empty()) return own;
  const auto colon = options.address.rfind(':');
  std::string host = options.address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const int fd = dial(host, options.address.substr(colon + 1));
  if (fd < 0) return {};
  std::string reason = handshake(options.certificates, host, fd);
  ::close(fd);
  ERR_clear_error();
  return reason;
}

}  // namespace dibs::rpc
