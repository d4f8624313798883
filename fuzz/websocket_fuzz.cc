// Any bytes as WebSocket frames, from a client and from a server.
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "net/websocket.h"

namespace dibs::fuzz {

int fuzz_websocket(const std::uint8_t* data, std::size_t size) {
  for (const bool from_client : {true, false}) {
    net::WsReader reader(from_client, 65536);
    std::vector<net::WsEvent> events;
    in_pieces(data, size, [&](std::string_view piece) { return reader.feed(piece, events) == 0; });
  }
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_websocket)
