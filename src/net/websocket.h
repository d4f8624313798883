#pragma once
// WebSocket framing (RFC 6455) for both ends, without I/O.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dibs::net {

enum class WsOp : std::uint8_t { more = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

struct WsEvent {
  enum class Kind : std::uint8_t { message, ping, pong, close };
  Kind kind = Kind::message;
  std::string data;  // the message, the ping's bytes, the reason of a close
  bool binary = false;
  std::uint16_t code = 0;  // of a close; 1005 when the peer gave none
};

/// Bytes in, whole messages out; fragments are joined, control frames may come between them.
class WsReader {
 public:
  /// `from_client`: frames must be masked, from a server they must not be.
  WsReader(bool from_client, std::size_t max_message)
      : from_client_(from_client), max_message_(max_message) {}

  /// 0, or the close code that the peer has earned (1002 protocol, 1007 text, 1009 size); then the
  /// reader is finished.
  std::uint16_t feed(std::string_view bytes, std::vector<WsEvent>& events);

 private:
  std::uint16_t take_frame(bool final, WsOp op, std::string payload, std::vector<WsEvent>& events);

  bool from_client_;
  std::size_t max_message_;
  std::string held_;  // a frame in the making
  std::string message_;
  bool in_message_ = false;
  bool binary_ = false;
};

/// One final frame. A client masks with a fresh random key; a server passes no key.
std::string ws_frame(WsOp op, std::string_view payload);
std::string ws_masked_frame(WsOp op, std::string_view payload, std::uint32_t key);
std::string ws_close_payload(std::uint16_t code, std::string_view reason);

/// Sec-WebSocket-Accept for a Sec-WebSocket-Key.
std::string ws_accept(std::string_view key);

}  // namespace dibs::net
