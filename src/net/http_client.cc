#include "net/http_client.h"

#include <openssl/rand.h>

#include <algorithm>
#include <atomic>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/client_connection.h"
#include "net/gzip.h"
#include "net/message_parser.h"
#include "net/websocket.h"

namespace dibs::net {
namespace {

constexpr std::size_t kReadSize = 32 * 1024;
constexpr std::size_t kMaxHead = 1024 * 1024;
constexpr std::size_t kMaxMessage = 64 * 1024 * 1024;

Deadline in(Duration span) { return std::chrono::steady_clock::now() + span; }

// Sending it twice is the same as sending it once.
bool is_repeatable(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "PUT" ||
         method == "DELETE";
}

}  // namespace

struct HttpClient::Impl : std::enable_shared_from_this<HttpClient::Impl> {
  ClientOptions options;
  Url url;
  const Lookups lookups;
  Mutex mutex;
  std::shared_ptr<TlsContext> tls DIBS_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<ClientConnection>> idle DIBS_GUARDED_BY(mutex);
  std::uint64_t generation DIBS_GUARDED_BY(mutex) = 0;  // counts changes of tls

  /// A kept connection, or null.
  std::unique_ptr<ClientConnection> take_idle() {
    while (true) {
      std::unique_ptr<ClientConnection> connection;
      {
        const MutexLock lock(mutex);
        if (idle.empty()) return nullptr;
        connection = std::move(idle.back());
        idle.pop_back();
      }
      if (!connection->healthy()) continue;
      connection->reused = true;
      connection->answered = false;
      return connection;
    }
  }

  Result<std::unique_ptr<ClientConnection>> dial(Deadline deadline) {
    std::shared_ptr<TlsContext> context;
    std::uint64_t made = 0;
    {
      const MutexLock lock(mutex);
      context = tls;
      made = generation;
    }
    DIBS_TRY(auto connection,
             ClientConnection::dial(url, context, std::min(deadline, in(options.dial_timeout)),
                                    options.reach, lookups));
    connection->generation = made;
    return connection;
  }

  void put_back(std::unique_ptr<ClientConnection> connection) {
    const MutexLock lock(mutex);
    if (idle.size() < options.max_idle && connection->generation == generation)
      idle.push_back(std::move(connection));
  }

  /// As Go words it: the method, the URL, then what went wrong.
  Error describe(const Request& request, const Error& error) const {
    std::string method = to_lower(request.method);
    if (!method.empty()) method[0] = static_cast<char>(method[0] - 'a' + 'A');
    return error.within(cat(
        method, ' ',
        quoted(cat(url.tls ? "https://" : "http://", url.authority(), url.path, request.target))));
  }

  struct Answer {
    std::unique_ptr<ClientConnection> connection;
    std::unique_ptr<ResponseParser> parser;
    std::string rest;    // read, not used up by the parser
    bool unfed = false;  // the parser has not seen the rest
    bool complete = false;
  };

  /// Sends on a kept or a new connection and reads up to the end of the head.
  Result<Answer> begin(const Request& request, Deadline deadline, std::size_t max_body) {
    DIBS_TRY(std::string bytes, request_head(request, url));
    const std::size_t head_size = bytes.size();
    if (request.body.size() <= kReadSize) bytes.append(request.body);
    bool fresh = false;
    while (true) {
      Answer answer;
      if (!fresh) answer.connection = take_idle();
      if (answer.connection == nullptr) {
        DIBS_TRY(answer.connection, dial(deadline));
      }
      auto sent = answer.connection->write(bytes, deadline);
      if (sent && bytes.size() == head_size && !request.body.empty()) {
        sent = answer.connection->write(request.body, deadline);
      }
      answer.parser = std::make_unique<ResponseParser>(
          ParseLimits{.max_header_bytes = kMaxHead, .max_body = max_body},
          request.method == "HEAD");
      // Even after a failed write an answer may wait: a server that refuses a body stops reading.
      auto read = read_head(answer, deadline);
      if (read) return answer;
      const bool lost = read.error().code() == Code::unavailable && !answer.connection->answered;
      if (lost && answer.connection->reused && !fresh && is_repeatable(request.method)) {
        fresh = true;
        continue;
      }
      return sent ? read.error() : sent.error();
    }
  }

  static Result<> read_head(Answer& answer, Deadline deadline) {
    char buffer[kReadSize];
    while (true) {
      DIBS_TRY(const std::size_t got, answer.connection->read(buffer, sizeof buffer, deadline));
      if (got == 0) return Error::unavailable("EOF");
      answer.rest.append(buffer, got);
      std::size_t used = 0;
      const Parsed parsed = answer.parser->feed(answer.rest, used);
      answer.rest.erase(0, used);
      switch (parsed) {
        case Parsed::need_more:
          continue;
        case Parsed::head:
          answer.unfed = !answer.rest.empty();
          return success();
        case Parsed::complete:
          answer.complete = true;
          return success();
        case Parsed::body_too_large:
          return Error::too_large("response body is too large");
        default:
          return Error::unavailable("malformed HTTP response");
      }
    }
  }

  /// Feeds what one read gives; true when the message is complete.
  static Result<bool> read_more(Answer& answer, Deadline deadline) {
    if (!std::exchange(answer.unfed, false)) {
      char buffer[kReadSize];
      DIBS_TRY(const std::size_t got, answer.connection->read(buffer, sizeof buffer, deadline));
      if (got == 0) {
        if (answer.parser->feed_end() == Parsed::complete) return true;
        return Error::unavailable("unexpected EOF");
      }
      answer.rest.append(buffer, got);
    }
    std::size_t used = 0;
    const Parsed parsed = answer.parser->feed(answer.rest, used);
    answer.rest.erase(0, used);
    switch (parsed) {
      case Parsed::complete:
        return true;
      case Parsed::head:
      case Parsed::need_more:
        return false;
      case Parsed::body_too_large:
        return Error::too_large("response body is too large");
      default:
        return Error::unavailable("malformed HTTP response");
    }
  }

  void finish(Answer& answer) {
    if (answer.parser->keep_alive() && answer.rest.empty()) put_back(std::move(answer.connection));
  }
};

class OpenStream final : public ResponseStream {
 public:
  OpenStream(std::shared_ptr<HttpClient::Impl> client, HttpClient::Impl::Answer answer)
      : client_(std::move(client)), answer_(std::move(answer)) {
    headers_ = answer_.parser->response().headers;
  }

  ~OpenStream() override {
    if (answer_.complete && !cancelled_) client_->finish(answer_);
  }

  int status() const override { return answer_.parser->response().status; }
  const Headers& headers() const override { return headers_; }

  Result<std::string> read_some(Duration timeout) override {
    const Deadline deadline = in(timeout);
    std::string& body = answer_.parser->response().body;
    while (body.empty() && !answer_.complete) {
      auto complete = HttpClient::Impl::read_more(answer_, deadline);
      if (cancelled_) return Error::unavailable("context canceled");
      if (!complete) return complete.error();
      answer_.complete = *complete;
    }
    return std::exchange(body, std::string());
  }

  void cancel() override {
    cancelled_ = true;
    answer_.connection->cancel();
  }

 private:
  std::shared_ptr<HttpClient::Impl> client_;
  HttpClient::Impl::Answer answer_;
  Headers headers_;
  std::atomic<bool> cancelled_ = false;
};

namespace {

class OpenWebSocket final : public ClientWebSocket {
 public:
  OpenWebSocket(std::unique_ptr<ClientConnection> connection, std::string protocol,
                std::string rest)
      : connection_(std::move(connection)),
        protocol_(std::move(protocol)),
        rest_(std::move(rest)),
        reader_(false, kMaxMessage) {}

  const std::string& protocol() const override { return protocol_; }

  Result<> send(std::string_view message, bool binary, Duration timeout) override {
    return write(binary ? WsOp::binary : WsOp::text, message, in(timeout));
  }

  Result<Message> receive(Duration timeout) override {
    const Deadline deadline = in(timeout);
    while (true) {
      while (next_ < events_.size()) {
        WsEvent event = std::move(events_[next_++]);
        switch (event.kind) {
          case WsEvent::Kind::message:
            return Message{std::move(event.data), event.binary, false, 0};
          case WsEvent::Kind::ping:
            DIBS_CHECK(write(WsOp::pong, event.data, deadline));
            break;
          case WsEvent::Kind::pong:
            break;
          case WsEvent::Kind::close:
            if (!closing_) {
              closing_ = true;
              (void)write(WsOp::close, ws_close_payload(1000, ""), deadline);
            }
            return Message{std::move(event.data), false, true, event.code};
        }
      }
      events_.clear();
      next_ = 0;
      if (rest_.empty()) {
        char buffer[kReadSize];
        DIBS_TRY(const std::size_t got, connection_->read(buffer, sizeof buffer, deadline));
        if (got == 0) return Error::unavailable("EOF");
        rest_.assign(buffer, got);
      }
      const auto fault = reader_.feed(rest_, events_);
      rest_.clear();
      if (fault != 0) return Error::unavailable("malformed WebSocket frame");
    }
  }

  Result<> close(std::uint16_t code, std::string_view reason, Duration timeout) override {
    if (std::exchange(closing_, true)) return success();
    return write(WsOp::close, ws_close_payload(code, reason), in(timeout));
  }

  void cancel() override { connection_->cancel(); }

 private:
  Result<> write(WsOp op, std::string_view payload, Deadline deadline) {
    std::uint32_t key = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&key), sizeof key);
    return connection_->write(ws_masked_frame(op, payload, key), deadline);
  }

  std::unique_ptr<ClientConnection> connection_;
  std::string protocol_;
  std::string rest_;
  WsReader reader_;
  std::vector<WsEvent> events_;
  std::size_t next_ = 0;
  bool closing_ = false;
};

}  // namespace

HttpClient::HttpClient() : impl_(std::make_shared<Impl>()) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::open(ClientOptions options) {
  std::unique_ptr<HttpClient> client(new HttpClient);
  DIBS_TRY(client->impl_->url, Url::parse(options.url));
  client->impl_->url.at_host = options.at_host;
  client->impl_->url.at_port = options.at_port;
  if (client->impl_->url.tls) {
    DIBS_TRY(auto context, TlsContext::client(options.tls));
    const MutexLock lock(client->impl_->mutex);
    client->impl_->tls = std::move(context);
  }
  client->impl_->options = std::move(options);
  return client;
}

Result<> HttpClient::set_tls(const TlsClientOptions& tls) {
  DIBS_TRY(auto context, TlsContext::client(tls));
  std::vector<std::unique_ptr<ClientConnection>> ended;
  const MutexLock lock(impl_->mutex);
  impl_->tls = std::move(context);
  ++impl_->generation;
  ended.swap(impl_->idle);
  return success();
}

Result<Response> HttpClient::send(const Request& request, Duration timeout) {
  const Deadline deadline = in(timeout);
  auto answer = impl_->begin(request, deadline, impl_->options.max_response);
  if (!answer) return impl_->describe(request, answer.error());
  while (!answer->complete) {
    auto complete = Impl::read_more(*answer, deadline);
    if (!complete) return impl_->describe(request, complete.error());
    answer->complete = *complete;
  }
  Response response = std::move(answer->parser->response());
  impl_->finish(*answer);
  if (equals_ignoring_case(response.headers.get("Content-Encoding"), "gzip") &&
      !response.body.empty()) {
    auto body = gunzip(response.body, impl_->options.max_response);
    if (!body) return impl_->describe(request, body.error());
    response.body = std::move(*body);
    response.headers.remove("Content-Encoding");
    response.headers.remove("Content-Length");
  }
  return response;
}

Result<std::unique_ptr<ResponseStream>> HttpClient::open_stream(const Request& request,
                                                                Duration timeout) {
  auto answer = impl_->begin(request, in(timeout), std::numeric_limits<std::size_t>::max());
  if (!answer) return impl_->describe(request, answer.error());
  return std::unique_ptr<ResponseStream>(new OpenStream(impl_, std::move(*answer)));
}

Result<std::unique_ptr<ClientWebSocket>> HttpClient::open_websocket(
    const Request& request, const std::vector<std::string>& protocols, Duration timeout) {
  unsigned char nonce[16];
  RAND_bytes(nonce, sizeof nonce);
  const std::string key = base64_encode({reinterpret_cast<char*>(nonce), sizeof nonce});
  Request handshake = request;
  handshake.method = "GET";
  handshake.headers.set("Connection", "Upgrade");
  handshake.headers.set("Upgrade", "websocket");
  handshake.headers.set("Sec-WebSocket-Version", "13");
  handshake.headers.set("Sec-WebSocket-Key", key);
  if (!protocols.empty()) {
    handshake.headers.set("Sec-WebSocket-Protocol", join(protocols, ", "));
  }
  auto answer = impl_->begin(handshake, in(timeout), kMaxHead);
  if (!answer) return impl_->describe(handshake, answer.error());
  const Response& response = answer->parser->response();
  if (response.status != 101 || response.headers.get("Sec-WebSocket-Accept") != ws_accept(key)) {
    return impl_->describe(
        handshake, Error::bad_request(cat("websocket: bad handshake (", response.status, ' ',
                                          reason_phrase(response.status), ')')));
  }
  return std::unique_ptr<ClientWebSocket>(new OpenWebSocket(
      std::move(answer->connection), std::string(response.headers.get("Sec-WebSocket-Protocol")),
      std::move(answer->rest)));
}

}  // namespace dibs::net
