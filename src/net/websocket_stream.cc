#include "net/websocket_stream.h"

#include <openssl/rand.h>

#include <vector>

#include "base/mutex.h"
#include "net/websocket.h"

namespace dibs::net {
namespace {

// The peer's close must come within this, whether or not it reads on.
constexpr std::chrono::seconds kCloseTime{5};

/// What the stream's callbacks share with the WebSocket object.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(std::shared_ptr<ByteStream> stream, WsEnd end, std::size_t max_message)
      : stream_(std::move(stream)), end_(end), reader_(end == WsEnd::server, max_message) {}

  ByteStream& stream() { return *stream_; }

  void send(WsOp op, std::string_view payload) {
    const MutexLock lock(mutex_);
    if (close_sent_) return;
    if (op == WsOp::close) close_sent_ = true;
    if (end_ == WsEnd::server) return stream_->write(ws_frame(op, payload));
    std::uint32_t key = 0;
    RAND_bytes(reinterpret_cast<unsigned char*>(&key), sizeof key);
    stream_->write(ws_masked_frame(op, payload, key));
  }

  void close(std::uint16_t code, std::string_view reason) {
    send(WsOp::close, ws_close_payload(code, reason));
    stream_->expire(kCloseTime);
  }

  void start(std::function<void(std::string, bool)> message, std::function<void()> closed) {
    message_ = std::move(message);
    stream_->start([self = shared_from_this()](std::string_view bytes) { self->take(bytes); },
                   [self = shared_from_this(), closed = std::move(closed)] {
                     // It often holds the socket; dropping it ends that circle.
                     self->finished_ = true;
                     self->message_ = nullptr;
                     if (closed) closed();
                   });
  }

 private:
  void take(std::string_view bytes) {
    if (finished_) return;
    std::vector<WsEvent> events;
    const std::uint16_t fault = reader_.feed(bytes, events);
    for (auto& event : events) {
      switch (event.kind) {
        case WsEvent::Kind::message:
          if (message_) message_(std::move(event.data), event.binary);
          if (finished_) return;
          break;
        case WsEvent::Kind::ping:
          send(WsOp::pong, event.data);
          break;
        case WsEvent::Kind::pong:
          break;
        case WsEvent::Kind::close:
          send(WsOp::close, event.code == 1005 ? std::string() : ws_close_payload(event.code, ""));
          return finish();
      }
    }
    if (fault == 0) return;
    send(WsOp::close, ws_close_payload(fault, ""));
    finish();
  }

  void finish() {
    finished_ = true;
    stream_->close();
  }

  std::shared_ptr<ByteStream> stream_;
  WsEnd end_;
  WsReader reader_;  // on the io thread only, as the two below
  std::function<void(std::string, bool)> message_;
  bool finished_ = false;
  Mutex mutex_;
  bool close_sent_ DIBS_GUARDED_BY(mutex_) = false;
};

class StreamWebSocket final : public WebSocket {
 public:
  explicit StreamWebSocket(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~StreamWebSocket() override { core_->close(1000, ""); }

  void send_binary(std::string message) override { core_->send(WsOp::binary, message); }
  void send_text(std::string message) override { core_->send(WsOp::text, message); }
  void start(std::function<void(std::string, bool)> message,
             std::function<void()> closed) override {
    core_->start(std::move(message), std::move(closed));
  }
  void close(std::uint16_t code, std::string_view reason) override { core_->close(code, reason); }
  std::size_t queued() const override { return core_->stream().queued(); }
  void on_drained(std::function<void()> drained) override {
    core_->stream().on_drained(std::move(drained));
  }
  void hold(bool held) override { core_->stream().hold(held); }

 private:
  std::shared_ptr<Core> core_;
};

class TunnelStream final : public ByteStream {
 public:
  explicit TunnelStream(std::shared_ptr<WebSocket> socket) : socket_(std::move(socket)) {}

  void start(std::function<void(std::string_view)> data, std::function<void()> closed) override {
    socket_->start([data = std::move(data)](std::string message, bool) { data(message); },
                   std::move(closed));
  }
  void write(std::string bytes) override { socket_->send_binary(std::move(bytes)); }
  void hold(bool held) override { socket_->hold(held); }
  std::size_t queued() const override { return socket_->queued(); }
  void on_drained(std::function<void()> drained) override {
    socket_->on_drained(std::move(drained));
  }
  void close() override { socket_->close(1000, ""); }
  // A closing handshake has a limit of its own.
  void expire(std::chrono::nanoseconds) override { socket_->close(1000, ""); }

 private:
  std::shared_ptr<WebSocket> socket_;
};

}  // namespace

std::shared_ptr<WebSocket> make_websocket(std::shared_ptr<ByteStream> stream, WsEnd end,
                                          std::size_t max_message) {
  return std::make_shared<StreamWebSocket>(
      std::make_shared<Core>(std::move(stream), end, max_message));
}

std::shared_ptr<ByteStream> bytes_of(std::shared_ptr<WebSocket> socket) {
  return std::make_shared<TunnelStream>(std::move(socket));
}

}  // namespace dibs::net
