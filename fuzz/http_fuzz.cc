// Any bytes as what comes in on a connection, at a server and at a client.
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "net/message_parser.h"
#include "net/websocket.h"

namespace dibs::fuzz {
namespace {

using net::Parsed;

constexpr net::ParseLimits kLimits{.max_header_bytes = 4096, .max_body = 65536};

/// Feeds the parser all of `held` that it takes. False when the connection would end.
template <class Parser, class Complete>
bool feed(Parser& parser, std::string& held, const Complete& complete) {
  while (!held.empty()) {
    std::size_t used = 0;
    const Parsed parsed = parser.feed(held, used);
    held.erase(0, used);
    if (parsed == Parsed::need_more) break;
    if (parsed != Parsed::head && (parsed != Parsed::complete || !complete())) return false;
  }
  return true;
}

}  // namespace

int fuzz_http(const std::uint8_t* data, std::size_t size) {
  net::RequestParser requests(kLimits);
  std::string held;
  in_pieces(data, size, [&](std::string_view piece) {
    held.append(piece);
    return feed(requests, held, [&] {
      (void)net::Target::parse(requests.request().target);
      (void)net::is_websocket_upgrade(requests.request());
      requests.reset();
      return true;
    });
  });
  net::ResponseParser response(kLimits, false);
  held.clear();
  bool open = true;
  in_pieces(data, size, [&](std::string_view piece) {
    held.append(piece);
    return open = feed(response, held, [] { return false; });
  });
  if (open) (void)response.feed_end();
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_http)
