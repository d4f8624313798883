#include "net/http_fuzz.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "net/message_parser.h"
#include "net/spdy_frame.h"
#include "net/websocket.h"

namespace dibs::net {
namespace {

constexpr ParseLimits kLimits{.max_header_bytes = 4096, .max_body = 65536};

struct Input {
  std::size_t step;
  std::string_view bytes;
};

Input cut(const std::uint8_t* data, std::size_t size) {
  return {data[0] == 0 ? size : data[0], {reinterpret_cast<const char*>(data) + 1, size - 1}};
}

void run_requests(const Input& input) {
  RequestParser parser(kLimits);
  std::string held;
  for (std::size_t next = 0; next < input.bytes.size(); next += input.step) {
    held.append(input.bytes.substr(next, input.step));
    while (!held.empty()) {
      std::size_t used = 0;
      const Parsed parsed = parser.feed(held, used);
      held.erase(0, used);
      if (parsed == Parsed::need_more) break;
      if (parsed == Parsed::head) continue;
      if (parsed != Parsed::complete) return;
      (void)Target::parse(parser.request().target);
      (void)is_websocket_upgrade(parser.request());
      parser.reset();
    }
  }
}

void run_response(const Input& input) {
  ResponseParser parser(kLimits, false);
  std::string held;
  for (std::size_t next = 0; next < input.bytes.size(); next += input.step) {
    held.append(input.bytes.substr(next, input.step));
    while (!held.empty()) {
      std::size_t used = 0;
      const Parsed parsed = parser.feed(held, used);
      held.erase(0, used);
      if (parsed == Parsed::need_more) break;
      if (parsed != Parsed::head) return;
    }
  }
  (void)parser.feed_end();
}

}  // namespace

int fuzz_http(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Input input = cut(data, size);
  run_requests(input);
  run_response(input);
  return 0;
}

int fuzz_websocket(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Input input = cut(data, size);
  for (const bool from_client : {true, false}) {
    WsReader reader(from_client, 65536);
    std::vector<WsEvent> events;
    for (std::size_t next = 0; next < input.bytes.size(); next += input.step) {
      if (reader.feed(input.bytes.substr(next, input.step), events) != 0) break;
    }
  }
  return 0;
}

int fuzz_spdy(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const Input input = cut(data, size);
  SpdyCodec codec;
  std::vector<SpdyFrame> frames;
  for (std::size_t next = 0; next < input.bytes.size(); next += input.step) {
    if (!codec.feed(input.bytes.substr(next, input.step), frames).ok()) break;
    frames.clear();
  }
  return 0;
}

}  // namespace dibs::net
