#pragma once
// A WebSocket over a byte stream, for both ends: frames, pings and the closing handshake.

#include <cstdint>
#include <memory>

#include "net/http.h"

namespace dibs::net {

enum class WsEnd : std::uint8_t { server, client };

std::shared_ptr<WebSocket> make_websocket(std::shared_ptr<ByteStream> stream, WsEnd end,
                                          std::size_t max_message);

/// The bytes of all binary messages, and each write as one: for protocols that tunnel through a
/// WebSocket.
std::shared_ptr<ByteStream> bytes_of(std::shared_ptr<WebSocket> socket);

}  // namespace dibs::net
