#include "load/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/strings.h"

namespace dibs::bench {
namespace {

std::string decode_base64(std::string_view text) {
  std::string out(text.size() / 4 * 3 + 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  if (size < 0) die("kubeconfig: broken base64");
  out.resize(static_cast<std::size_t>(size));
  while (!out.empty() && out.back() == '\0') out.pop_back();
  return out;
}

/// The value of the first "name: value" line.
std::string field(std::string_view text, std::string_view name) {
  const auto at = text.find(cat(name, ": "));
  if (at == std::string_view::npos) die(cat("kubeconfig: no ", name));
  const auto begin = at + name.size() + 2;
  std::string value(trim(text.substr(begin, text.find('\n', begin) - begin)));
  std::erase(value, '"');
  return value;
}

BIO* reader(const std::string& text) {
  return BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
}

/// One buffer for all connections of a thread.
std::vector<char>& scratch() {
  thread_local std::vector<char> buffer(256 * 1024);
  return buffer;
}

}  // namespace

void die(std::string_view text) {
  std::fprintf(stderr, "server_load: %.*s\n", static_cast<int>(text.size()), text.data());
  std::exit(1);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Access read_kubeconfig(const std::string& path) {
  std::ifstream file(path);
  if (!file) die(cat("cannot read ", path));
  std::stringstream all;
  all << file.rdbuf();
  const std::string text = all.str();
  Access access;
  const std::string server = field(text, "server");
  const auto digits = server.substr(server.rfind(':') + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), access.port);
  access.certificate_pem = decode_base64(field(text, "client-certificate-data"));
  access.key_pem = decode_base64(field(text, "client-key-data"));
  return access;
}

struct TlsSettings::Impl {
  SSL_CTX* context = nullptr;
};

TlsSettings::TlsSettings(const Access& access)
    : port(access.port), impl_(std::make_unique<Impl>()) {
  SSL_CTX* context = impl_->context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_read_ahead(context, 1);
  BIO* certificate = reader(access.certificate_pem);
  BIO* key = reader(access.key_pem);
  X509* x509 = PEM_read_bio_X509(certificate, nullptr, nullptr, nullptr);
  EVP_PKEY* pkey = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
  if (x509 == nullptr || pkey == nullptr || SSL_CTX_use_certificate(context, x509) != 1 ||
      SSL_CTX_use_PrivateKey(context, pkey) != 1) {
    die("the kubeconfig's client certificate cannot be used");
  }
  X509_free(x509);
  EVP_PKEY_free(pkey);
  BIO_free(certificate);
  BIO_free(key);
}

TlsSettings::~TlsSettings() { SSL_CTX_free(impl_->context); }

struct Connection::Impl {
  int fd = -1;
  SSL* ssl = nullptr;
  std::string head;  // of the answer that is coming, until its end is here
  bool in_body = false;
  bool endless = false;  // a stream
  std::size_t left = 0;  // of the body
  int status = 0;
  std::size_t body_size = 0;
  bool keep = false;
  std::string body;
  char last = 0;
  std::string tail;  // of a stream
  std::uint64_t events = 0;

  bool take(std::string_view bytes);
  void take_head(std::size_t end);
};

Connection::Connection(const TlsSettings& settings) : impl_(std::make_unique<Impl>()) {
  impl_->fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(settings.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(impl_->fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    die(cat("cannot connect to port ", settings.port));
  }
  const int one = 1;
  ::setsockopt(impl_->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  impl_->ssl = SSL_new(settings.impl().context);
  SSL_set_fd(impl_->ssl, impl_->fd);
  if (SSL_connect(impl_->ssl) != 1) die("the TLS handshake failed");
  const int flags = ::fcntl(impl_->fd, F_GETFL);
  ::fcntl(impl_->fd, F_SETFL, flags | O_NONBLOCK);
}

Connection::~Connection() {
  SSL_free(impl_->ssl);
  ::close(impl_->fd);
}

int Connection::fd() const { return impl_->fd; }
int Connection::status() const { return impl_->status; }
std::size_t Connection::body_size() const { return impl_->body_size; }
void Connection::keep_body() { impl_->keep = true; }
const std::string& Connection::body() const { return impl_->body; }
std::uint64_t Connection::events() const { return impl_->events; }

void Connection::send(std::string_view request) {
  while (!request.empty()) {
    std::size_t written = 0;
    if (SSL_write_ex(impl_->ssl, request.data(), request.size(), &written) == 1) {
      request.remove_prefix(written);
      continue;
    }
    if (SSL_get_error(impl_->ssl, 0) != SSL_ERROR_WANT_WRITE) die("the server closed a connection");
    pollfd wanted{impl_->fd, POLLOUT, 0};
    ::poll(&wanted, 1, 10000);
  }
}

Read Connection::receive() {
  auto& buffer = scratch();
  bool some = false;
  for (;;) {
    std::size_t got = 0;
    if (SSL_read_ex(impl_->ssl, buffer.data(), buffer.size(), &got) != 1) {
      if (SSL_get_error(impl_->ssl, 0) != SSL_ERROR_WANT_READ)
        die("the server closed a connection");
      return some ? Read::partial : Read::nothing;
    }
    some = true;
    if (impl_->take({buffer.data(), got})) return Read::complete;
    // Of a stream nothing says where it pauses: look again only for what has come already.
    if (impl_->endless && SSL_has_pending(impl_->ssl) == 0) return Read::partial;
  }
}

void Connection::wait() const {
  pollfd wanted{impl_->fd, POLLIN, 0};
  if (::poll(&wanted, 1, 60000) == 0) die("no answer within a minute");
}

void Connection::exchange(std::string_view request) {
  send(request);
  while (receive() != Read::complete) wait();
}

void Connection::Impl::take_head(std::size_t end) {
  const std::string_view text(head.data(), end);
  status = 0;
  std::from_chars(text.data() + 9, text.data() + 12, status);
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const auto at = text.find(kLength);
  endless = at == std::string_view::npos;
  left = 0;
  if (!endless) {
    const char* digits = text.data() + at + kLength.size();
    std::from_chars(digits, text.data() + text.size(), left);
  }
  body_size = left;
  body.clear();
  tail.clear();
  in_body = true;
}

bool Connection::Impl::take(std::string_view bytes) {
  std::string rest;
  if (!in_body) {
    head.append(bytes);
    const auto end = head.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    take_head(end + 2);
    rest = head.substr(end + 4);
    head.clear();
    bytes = rest;
  }
  if (keep) body.append(bytes);
  if (endless) {
    // An event ends "}\n"; the framing of chunks has "\r\n" only.
    for (const char c : bytes) {
      if (c == '\n' && last == '}') ++events;
      last = c;
    }
    body_size += bytes.size();
    // Long lists come in chunks, too, and end; a watch does not.
    constexpr std::string_view kLastChunk = "\r\n0\r\n\r\n";
    tail.append(bytes.substr(bytes.size() - std::min(bytes.size(), kLastChunk.size())));
    tail.erase(0, tail.size() - std::min(tail.size(), kLastChunk.size()));
    if (tail != kLastChunk) return false;
    in_body = false;
    return true;
  }
  left -= std::min(left, bytes.size());
  if (left > 0) return false;
  in_body = false;
  return true;
}

std::string make_request(std::string_view method, std::string_view target, std::string_view body) {
  std::string out =
      cat(method, " ", target, " HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: server_load\r\n",
          "Accept: application/json\r\n");
  if (!body.empty())
    append(out, "Content-Type: application/json\r\nContent-Length: ", body.size(), "\r\n");
  append(out, "\r\n", body);
  return out;
}

}  // namespace dibs::bench
