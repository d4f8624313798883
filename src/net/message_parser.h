#pragma once
// HTTP/1.x messages from bytes, fed in pieces of any size.
//
// The parser takes what it can use and says how many bytes that were; the caller keeps the rest and
// feeds it again with more behind it. It stops after the head and after the whole message, so the
// caller can look at the head before it pays for a body, and never eats into the next message.
// Limits are the parser's own: a head or a chunk line over `max_header_bytes`, a body over
// `max_body`.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/http.h"

namespace dibs::net {

struct ParseLimits {
  std::size_t max_header_bytes = 64 * 1024;
  std::uint64_t max_body = 3 * 1024 * 1024;
};

enum class Parsed : std::uint8_t {
  need_more,  // all usable bytes were taken; feed the rest again with more behind it
  head,       // the head is complete now; feed on for the body
  complete,   // the message is complete; the rest belongs to the next one
  malformed,
  header_too_large,
  body_too_large,
  unsupported,  // a transfer encoding other than chunked
};

class RequestParser {
 public:
  explicit RequestParser(ParseLimits limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  /// `consumed` bytes of `bytes` are used up.
  Parsed feed(std::string_view bytes, std::size_t& consumed);
  /// Ready for the next message of the connection.
  void reset();

  /// Valid from `head` on; the body from `complete` on. May be moved from.
  Request& request();
  bool http_1_1() const;
  bool keep_alive() const;
  /// A body is announced: a Content-Length above zero, or chunks.
  bool has_body() const;
  /// What has gone by of the body when the limit struck is dropped; larger than the limit or
  /// chunked.
  std::uint64_t content_length() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

class ResponseParser {
 public:
  /// `to_head`: the response to a HEAD request, which has no body whatever its head says.
  ResponseParser(ParseLimits limits, bool to_head);
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  Parsed feed(std::string_view bytes, std::size_t& consumed);
  /// The connection ended: complete when that is how this message ends, else malformed.
  Parsed feed_end();

  /// Body bytes collect in response().body; a streaming caller takes them out as they come.
  Response& response();
  bool keep_alive() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dibs::net
