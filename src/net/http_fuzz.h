#pragma once
// Fuzz entries of net: arbitrary bytes, cut into pieces by the first of them as a network would.

#include <cstddef>
#include <cstdint>

namespace dibs::net {

/// Request and response parsers, targets.
int fuzz_http(const std::uint8_t* data, std::size_t size);
/// WebSocket frames, from a client and from a server.
int fuzz_websocket(const std::uint8_t* data, std::size_t size);
/// SPDY frames and their compressed headers.
int fuzz_spdy(const std::uint8_t* data, std::size_t size);

}  // namespace dibs::net
