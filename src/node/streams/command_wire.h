#pragma once
// The client's end of an exec or attach, whatever protocol carries it: five channels (input,
// output, errors, outcome, terminal size) over a WebSocket or over SPDY streams.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "json/value.h"
#include "net/http.h"
#include "net/spdy_connection.h"
#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

/// What the client asked for.
struct CommandStreams {
  bool in = false;
  bool out = false;
  bool err = false;
  bool tty = false;
};

class CommandWire {
 public:
  /// On an io thread, one at a time; must not block there.
  struct Events {
    /// All channels are there: the command may begin. Never when the client does not open them.
    std::function<void()> ready = {};
    std::function<void(std::string_view bytes)> input = {};
    std::function<void()> input_closed = {};
    std::function<void(TerminalSize size)> resize = {};
    /// Once, at the end, also after finish().
    std::function<void()> gone = {};
  };
  virtual ~CommandWire() = default;

  virtual void start(Events events) = 0;
  // From any thread.
  virtual void out(std::string_view bytes) = 0;
  virtual void err(std::string_view bytes) = 0;
  /// The Status that says how it went; ends the connection after what was written.
  virtual void finish(const json::Value& status) = 0;
  virtual std::size_t queued() const = 0;
  virtual void on_drained(std::function<void()> drained) = 0;
  virtual void hold(bool held) = 0;
  /// The kubelet of this release passes v5 WebSockets on to a second streaming server, and wraps
  /// its errors once more.
  virtual bool wraps_errors() const { return false; }
};

/// The best of what a handshake's Sec-WebSocket-Protocol offers, or nothing when none is known.
/// Older clients offer none: "".
bool choose_websocket_protocol(std::string_view offer, std::string& chosen);
std::shared_ptr<CommandWire> make_websocket_wire(std::shared_ptr<net::WebSocket> socket,
                                                 std::string_view protocol, CommandStreams streams);

/// The best of what X-Stream-Protocol-Version headers offer; without any, "" (the first version).
Result<std::string> choose_spdy_protocol(const net::Request& request,
                                         const std::vector<std::string>& known);
inline const std::vector<std::string>& spdy_command_protocols() {
  // v5 adds to WebSockets what SPDY streams can do by themselves.
  static const std::vector<std::string> known = {"v4.channel.k8s.io", "v3.channel.k8s.io",
                                                 "v2.channel.k8s.io", "channel.k8s.io"};
  return known;
}
/// A client that has not opened all its streams in 30 s is cut off.
std::shared_ptr<CommandWire> make_spdy_wire(runtime::Runtime& runtime,
                                            std::shared_ptr<net::SpdyConnection> connection,
                                            std::string_view protocol, CommandStreams streams);

}  // namespace dibs::node
