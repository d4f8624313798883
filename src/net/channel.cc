#include "net/channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/tls_impl.h"
#include "net/x509.h"

namespace dibs::net {
namespace {

// What an idle channel may keep of its output buffer.
constexpr std::size_t kKeptOutput = 4096;

class PlainChannel final : public Channel {
 public:
  explicit PlainChannel(int fd) : Channel(fd) {}

  Io read(char* data, std::size_t size, std::size_t& got) override {
    const auto count = receive(data, size);
    got = count > 0 ? static_cast<std::size_t>(count) : 0;
    if (count > 0) return Io::ok;
    if (count == 0) return Io::eof;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Io::again;
    error_ = errno;
    return Io::error;
  }

  bool write(std::string_view bytes) override {
    out_.append(bytes);
    return true;
  }
};

class TlsChannel final : public Channel {
 public:
  TlsChannel(int fd, std::shared_ptr<TlsContext> context)
      : Channel(fd), context_(std::move(context)), ssl_(SSL_new(context_->impl().context)) {
    BIO* bio = BIO_new(bio_method());
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
  }

  ~TlsChannel() override { SSL_free(ssl_); }

  void accept() { SSL_set_accept_state(ssl_); }

  void connect(const std::string& host) {
    auto& impl = context_->impl();
    SSL_set_connect_state(ssl_);
    name_ = impl.server_name.empty() ? host : impl.server_name;
    SSL_set_app_data(ssl_, &name_);
    X509_VERIFY_PARAM* rules = SSL_get0_param(ssl_);
    if (X509_VERIFY_PARAM_set1_ip_asc(rules, name_.c_str()) != 1) {
      ERR_clear_error();
      X509_VERIFY_PARAM_set1_host(rules, name_.c_str(), name_.size());
      SSL_set_tlsext_host_name(ssl_, name_.c_str());
    }
    const MutexLock lock(impl.mutex);
    if (impl.session != nullptr && impl.session_name == name_) SSL_set_session(ssl_, impl.session);
  }

  Io handshake() override {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_);
    if (done == 1) return Io::ok;
    return outcome(done);
  }

  Io read(char* data, std::size_t size, std::size_t& got) override {
    got = 0;
    ERR_clear_error();
    const int done = SSL_read_ex(ssl_, data, size, &got);
    if (done == 1) return Io::ok;
    return outcome(done);
  }

  bool write(std::string_view bytes) override {
    while (!bytes.empty()) {
      std::size_t written = 0;
      ERR_clear_error();
      // The output buffer takes everything, so this never asks to be called again.
      if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written) != 1) {
        error_text_ = openssl_error();
        return false;
      }
      bytes.remove_prefix(written);
    }
    return true;
  }

  void write_end() override {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_)) SSL_shutdown(ssl_);
    ERR_clear_error();
  }

  bool holds_input() const override { return SSL_has_pending(ssl_) == 1; }

  PeerCertificate peer_certificate() const override {
    PeerCertificate out;
    X509* certificate = SSL_get0_peer_certificate(ssl_);
    if (certificate == nullptr) return out;
    out.presented = true;
    const long verdict = SSL_get_verify_result(ssl_);
    out.verified = verdict == X509_V_OK || verdict == kVerifiedByBoth;
    out.front_proxy = verdict == kVerifiedByFrontProxy || verdict == kVerifiedByBoth;
    const auto info = describe_certificate(certificate);
    out.common_name = info.common_name;
    out.organizations = info.organizations;
    out.credential_id = cat("X509SHA256=", info.sha256);
    if (!info.user_ids.empty()) out.uid = info.user_ids[0];
    // Who has two uids, or an empty one, is nobody.
    if (info.user_ids.size() > 1 || (!info.user_ids.empty() && out.uid.empty())) {
      out.verified = false;
    }
    out.not_before = info.not_before;
    out.not_after = info.not_after;
    return out;
  }

  bool speaks_http2() const override {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_, &name, &size);
    return size == 2 && std::memcmp(name, "h2", 2) == 0;
  }

  std::string error_text() const override {
    return error_text_.empty() ? Channel::error_text() : error_text_;
  }

  bool got_plain_http() const override { return plain_http_; }

 private:
  Io outcome(int done) {
    switch (SSL_get_error(ssl_, done)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return Io::again;
      case SSL_ERROR_ZERO_RETURN:
        return Io::eof;
      default:
        break;
    }
    if (ended_ && ERR_peek_error() == 0) return Io::eof;
    plain_http_ = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST;
    if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      error_text_ = verify_text(SSL_get_verify_result(ssl_));
      ERR_clear_error();
    } else if (ERR_peek_last_error() != 0) {
      error_text_ = cat("tls: ", openssl_error());
    }
    return Io::error;
  }

  static std::string verify_text(long verdict) {
    const std::string start = "tls: failed to verify certificate: x509: ";
    switch (verdict) {
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
      case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
      case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        return start + "certificate signed by unknown authority";
      case X509_V_ERR_CERT_HAS_EXPIRED:
      case X509_V_ERR_CERT_NOT_YET_VALID:
        return start + "certificate has expired or is not yet valid";
      default:
        return start + X509_verify_cert_error_string(verdict);
    }
  }

  static int bio_read(BIO* bio, char* data, std::size_t size, std::size_t* got) {
    auto* self = static_cast<TlsChannel*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const auto count = self->receive(data, size);
    if (count > 0) {
      *got = static_cast<std::size_t>(count);
      return 1;
    }
    *got = 0;
    if (count == 0) {
      self->ended_ = true;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      BIO_set_retry_read(bio);
    } else {
      self->error_ = errno;
    }
    return 0;
  }

  static int bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
    auto* self = static_cast<TlsChannel*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    self->out_.append(data, size);
    *written = size;
    return 1;
  }

  static long bio_control(BIO* bio, int command, long, void*) {
    auto* self = static_cast<TlsChannel*>(BIO_get_data(bio));
    switch (command) {
      case BIO_CTRL_FLUSH:
        return 1;
      case BIO_CTRL_EOF:
        return self->ended_ ? 1 : 0;
      default:
        return 0;
    }
  }

  static BIO_METHOD* bio_method() {
    static BIO_METHOD* method = [] {
      BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "channel");
      BIO_meth_set_read_ex(made, bio_read);
      BIO_meth_set_write_ex(made, bio_write);
      BIO_meth_set_ctrl(made, bio_control);
      return made;
    }();
    return method;
  }

  std::shared_ptr<TlsContext> context_;
  SSL* ssl_;
  std::string name_;  // a client's: what the certificate must be for
  std::string error_text_;
  bool ended_ = false;
  bool plain_http_ = false;
};

}  // namespace

Channel::~Channel() { ::close(fd_); }

std::unique_ptr<Channel> Channel::plain(int fd) { return std::make_unique<PlainChannel>(fd); }

std::unique_ptr<Channel> Channel::tls_server(int fd, std::shared_ptr<TlsContext> context) {
  auto channel = std::make_unique<TlsChannel>(fd, std::move(context));
  channel->accept();
  return channel;
}

std::unique_ptr<Channel> Channel::tls_client(int fd, std::shared_ptr<TlsContext> context,
                                             const std::string& host) {
  auto channel = std::make_unique<TlsChannel>(fd, std::move(context));
  channel->connect(host);
  return channel;
}

std::string Channel::error_text() const {
  return error_ != 0 ? to_lower(std::strerror(error_)) : "EOF";
}

std::ptrdiff_t Channel::receive(char* data, std::size_t size) {
  std::ptrdiff_t count;
  do {
    count = ::recv(fd_, data, size, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  // A short read empties the socket; more bytes would make it ready anew.
  if (count < static_cast<std::ptrdiff_t>(size) && !peer_closed_) readable_ = false;
  if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) readable_ = false;
  return count;
}

Io Channel::flush() {
  while (sent_ < out_.size()) {
    const auto count =
        ::send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent_ += static_cast<std::size_t>(count);
      taken_ += static_cast<std::uint64_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Io::again;
    error_ = errno;
    return Io::error;
  }
  sent_ = 0;
  if (out_.capacity() > kKeptOutput) {
    out_ = std::string();
  } else {
    out_.clear();
  }
  return Io::ok;
}

void Channel::shutdown_write() { ::shutdown(fd_, SHUT_WR); }
void Channel::shutdown_both() { ::shutdown(fd_, SHUT_RDWR); }

Io Channel::discard(std::size_t limit, std::size_t& got) {
  got = 0;
  char waste[16384];
  while (got < limit) {
    const auto count = receive(waste, sizeof waste);
    if (count > 0) {
      got += static_cast<std::size_t>(count);
      continue;
    }
    if (count == 0) return Io::eof;
    return errno == EAGAIN || errno == EWOULDBLOCK ? Io::again : Io::error;
  }
  return Io::ok;
}

}  // namespace dibs::net
