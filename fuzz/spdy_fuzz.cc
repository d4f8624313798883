// Any bytes as SPDY frames with their compressed headers.
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "net/spdy_frame.h"

namespace dibs::fuzz {

int fuzz_spdy(const std::uint8_t* data, std::size_t size) {
  net::SpdyCodec codec;
  std::vector<net::SpdyFrame> frames;
  in_pieces(data, size, [&](std::string_view piece) {
    frames.clear();
    return codec.feed(piece, frames).ok();
  });
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_spdy)
