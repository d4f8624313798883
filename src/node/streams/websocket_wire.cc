// Exec and attach over a WebSocket: the first byte of a message is its channel.
#include "base/strings.h"
#include "json/parse.h"
#include "node/streams/command_wire.h"

namespace dibs::node {
namespace {

enum Channel : unsigned char {
  kIn = 0,
  kOut = 1,
  kErr = 2,
  kOutcome = 3,
  kResize = 4,
  kClose = 255
};

// Best first. Before v4 the outcome is plain text; "binary" and none are the oldest.
constexpr std::string_view kProtocols[] = {
    "v5.channel.k8s.io", "v4.channel.k8s.io",     "v4.base64.channel.k8s.io",
    "channel.k8s.io",    "base64.channel.k8s.io",
};

class WebSocketWire final : public CommandWire {
 public:
  WebSocketWire(std::shared_ptr<net::WebSocket> socket, std::string_view protocol,
                CommandStreams streams)
      : socket_(std::move(socket)),
        streams_(streams),
        base64_(protocol.find("base64") != std::string_view::npos),
        json_outcome_(protocol.starts_with("v")),
        v5_(protocol.starts_with("v5")) {}

  void start(Events events) override {
    // Clients take a first message, however empty, as the sign that the command is connected.
    send(streams_.out ? kOut : streams_.err ? kErr : kOutcome, "");
    const auto shared = std::make_shared<Events>(std::move(events));
    socket_->start([this, shared](std::string message, bool) { take(*shared, std::move(message)); },
                   [shared] { shared->gone(); });
    shared->ready();
  }

  void out(std::string_view bytes) override {
    if (streams_.out) send(kOut, bytes);
  }
  void err(std::string_view bytes) override {
    if (streams_.err) send(kErr, bytes);
  }

  void finish(const json::Value& status) override {
    if (json_outcome_) {
      send(kOutcome, json::write(status));
    } else if (status["status"].as_string() != "Success") {
      send(kOutcome, status["message"].as_string());
    }
    socket_->close(1000, "");
  }

  std::size_t queued() const override { return socket_->queued(); }
  void on_drained(std::function<void()> drained) override {
    socket_->on_drained(std::move(drained));
  }
  void hold(bool held) override { socket_->hold(held); }
  bool wraps_errors() const override { return v5_; }

 private:
  void send(Channel channel, std::string_view bytes) {
    if (base64_) {
      return socket_->send_text(cat(static_cast<char>('0' + channel), base64_encode(bytes)));
    }
    socket_->send_binary(cat(static_cast<char>(channel), bytes));
  }

  void take(const Events& events, std::string message) {
    if (message.empty()) return;
    auto channel = static_cast<unsigned char>(message[0]);
    message.erase(0, 1);
    if (base64_) {
      channel = static_cast<unsigned char>(channel - '0');
      std::string bytes;
      if (!base64_decode(message, bytes)) return;
      message = std::move(bytes);
    }
    if (channel == kIn && streams_.in) {
      if (!message.empty()) events.input(message);
    } else if (channel == kClose && v5_) {
      if (streams_.in && message == std::string_view("\0", 1)) events.input_closed();
    } else if (channel == kResize) {
      const auto size = json::parse(message);
      if (!size.ok()) return;
      events.resize({static_cast<unsigned>((*size)["Width"].as_int()),
                     static_cast<unsigned>((*size)["Height"].as_int())});
    }
  }

  std::shared_ptr<net::WebSocket> socket_;
  CommandStreams streams_;
  bool base64_;
  bool json_outcome_;
  bool v5_;
};

}  // namespace

bool choose_websocket_protocol(std::string_view offer, std::string& chosen) {
  chosen.clear();
  if (trim(offer).empty()) return true;
  for (const std::string_view known : kProtocols) {
    if (!net::has_token(offer, known)) continue;
    chosen = known;
    return true;
  }
  return false;
}

std::shared_ptr<CommandWire> make_websocket_wire(std::shared_ptr<net::WebSocket> socket,
                                                 std::string_view protocol,
                                                 CommandStreams streams) {
  return std::make_shared<WebSocketWire>(std::move(socket), protocol, streams);
}

}  // namespace dibs::node
