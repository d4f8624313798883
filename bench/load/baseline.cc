#include "load/baseline.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "load/connection.h"
#include "load/process.h"

namespace dibs::bench {
namespace {

constexpr double kSeconds = 0.3;
constexpr int kRounds = 4;
constexpr std::size_t kPiece = 2048;

double measure_syncs() {
  Folder folder;
  const int fd = ::open((folder.path() + "/log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (fd < 0) die("cannot write the baseline's file");
  const std::string piece(kPiece, 'x');
  const double began = seconds_now();
  double now = began;
  int count = 0;
  for (; now < began + kSeconds; ++count, now = seconds_now()) {
    if (::write(fd, piece.data(), piece.size()) < 0 || ::fdatasync(fd) != 0)
      die("cannot write the baseline's file");
  }
  ::close(fd);
  return count / (now - began);
}

double measure_sha256() {
  const std::string block(1 << 20, 'x');
  unsigned char digest[SHA256_DIGEST_LENGTH];
  const double began = seconds_now();
  double now = began;
  int count = 0;
  for (; now < began + kSeconds; ++count, now = seconds_now()) {
    SHA256(reinterpret_cast<const unsigned char*>(block.data()), block.size(), digest);
  }
  return count / (now - began);
}

void use_own_certificate(SSL_CTX* context) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

bool read_piece(SSL* ssl, char* data) {
  for (std::size_t have = 0; have < kPiece;) {
    const int got = SSL_read(ssl, data + have, static_cast<int>(kPiece - have));
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  return true;
}

SSL* on_socket(SSL_CTX* context, int fd) {
  const int one = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  return ssl;
}

void serve_echo(int listener, SSL_CTX* context) {
  const int fd = ::accept(listener, nullptr, nullptr);
  SSL* ssl = on_socket(context, fd);
  char data[kPiece];
  if (SSL_accept(ssl) == 1) {
    while (read_piece(ssl, data) && SSL_write(ssl, data, sizeof data) > 0) {
    }
  }
  SSL_free(ssl);
  ::close(fd);
}

double measure_echoes() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener, plain, size) != 0 || ::listen(listener, 1) != 0)
    die("cannot listen on loopback");
  ::getsockname(listener, plain, &size);
  SSL_CTX* server = SSL_CTX_new(TLS_server_method());
  use_own_certificate(server);
  SSL_CTX* client = SSL_CTX_new(TLS_client_method());
  std::thread echo([&] { serve_echo(listener, server); });

  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, plain, size) != 0) die("cannot connect on loopback");
  SSL* ssl = on_socket(client, fd);
  if (SSL_connect(ssl) != 1) die("the baseline's TLS handshake failed");
  char data[kPiece] = {};
  const double began = seconds_now();
  double now = began;
  int count = 0;
  for (; now < began + kSeconds; ++count, now = seconds_now()) {
    if (SSL_write(ssl, data, sizeof data) <= 0 || !read_piece(ssl, data))
      die("the baseline's echo failed");
  }
  SSL_shutdown(ssl);
  SSL_free(ssl);
  ::close(fd);
  echo.join();
  ::close(listener);
  SSL_CTX_free(server);
  SSL_CTX_free(client);
  return count / (now - began);
}

}  // namespace

Baseline measure_baseline() {
  // The best of some rounds: others on this machine only ever make it slower.
  Baseline best;
  for (int i = 0; i < kRounds; ++i) {
    best.syncs = std::max(best.syncs, measure_syncs());
    best.sha256_mb = std::max(best.sha256_mb, measure_sha256());
    best.echoes = std::max(best.echoes, measure_echoes());
  }
  return best;
}

}  // namespace dibs::bench
