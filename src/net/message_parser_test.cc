#include "net/message_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::net {
namespace {

using std::string_view_literals::operator""sv;

struct Outcome {
  Parsed last = Parsed::need_more;
  std::size_t used = 0;
  Request request;
};

/// Feeds in steps until the parser says anything but "more".
Outcome run(std::string_view bytes, std::size_t step, ParseLimits limits = {}) {
  RequestParser parser(limits);
  Outcome out;
  std::string held;
  std::size_t next = 0;
  while (next < bytes.size()) {
    held.append(bytes.substr(next, step));
    next = std::min(next + step, bytes.size());
    while (!held.empty()) {
      std::size_t used = 0;
      out.last = parser.feed(held, used);
      held.erase(0, used);
      out.used += used;
      if (out.last == Parsed::head) continue;
      if (out.last == Parsed::need_more) break;
      out.request = std::move(parser.request());
      return out;
    }
  }
  return out;
}

TEST(RequestParser, reads_a_request_however_it_is_cut) {
  const std::string_view bytes =
      "POST /api?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nX: a b \r\n\r\nhelloGET";
  for (std::size_t step : {1, 2, 3, 7, 1000}) {
    const Outcome out = run(bytes, step);
    EXPECT_EQ(out.last, Parsed::complete) << step;
    EXPECT_EQ(out.request.method, "POST");
    EXPECT_EQ(out.request.target, "/api?x=1");
    EXPECT_EQ(out.request.headers.get("x"), "a b");
    EXPECT_EQ(out.request.body, "hello");
    EXPECT_EQ(out.used, bytes.size() - 3) << step;
  }
}

TEST(RequestParser, joins_chunks_and_drops_trailers) {
  const std::string_view bytes =
      "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nHost: evil\r\n\r\n";
  for (std::size_t step : {1, 2, 5, 1000}) {
    const Outcome out = run(bytes, step);
    EXPECT_EQ(out.last, Parsed::complete) << step;
    EXPECT_EQ(out.request.body, "hello world");
    EXPECT_EQ(out.request.headers.all("Host").size(), 1U);
  }
}

TEST(RequestParser, reads_an_empty_chunked_body_byte_by_byte) {
  const Outcome out =
      run("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1);
  EXPECT_EQ(out.last, Parsed::complete);
  EXPECT_EQ(out.request.body, "");
}

TEST(RequestParser, refuses_what_is_broken_or_ambiguous) {
  const std::pair<std::string_view, Parsed> cases[] = {
      {"GARBAGE\r\n\r\n", Parsed::malformed},
      {"GET / HTTP/2.0\r\n\r\n", Parsed::malformed},
      {"GET /a b HTTP/1.1\r\n\r\n", Parsed::malformed},
      {"GET / HTTP/1.1\r\nBad Name: x\r\n\r\n", Parsed::malformed},
      {"GET / HTTP/1.1\r\nA: \x01\r\n\r\n", Parsed::malformed},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Parsed::malformed},
      {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", Parsed::malformed},
      {"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       Parsed::malformed},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
       Parsed::malformed},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", Parsed::unsupported},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Parsed::unsupported},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", Parsed::unsupported},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Parsed::malformed},
      {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n", Parsed::malformed},
  };
  for (const auto& [bytes, expected] : cases) {
    for (std::size_t step : {1, 1000}) EXPECT_EQ(run(bytes, step).last, expected) << bytes;
  }
}

TEST(RequestParser, bounds_heads) {
  const ParseLimits limits{.max_header_bytes = 1024, .max_body = 100};
  const std::string one = cat("GET / HTTP/1.1\r\nA: ", std::string(2000, 'x'), "\r\n\r\n");
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) append(many, "H", i, ": value\r\n");
  many += "\r\n";
  const std::string target = cat("GET /", std::string(2000, 'x'), " HTTP/1.1\r\n\r\n");
  for (const auto& bytes : {one, many, target}) {
    for (std::size_t step : {1, 100, 100000}) {
      EXPECT_EQ(run(bytes, step, limits).last, Parsed::header_too_large) << bytes.substr(0, 30);
    }
  }
}

TEST(RequestParser, bounds_bodies_and_chunk_lines) {
  const ParseLimits limits{.max_header_bytes = 1024, .max_body = 10};
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(run("POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\nx", 1, limits).last,
            Parsed::body_too_large);
  EXPECT_EQ(run(chunked + "6\r\naaaaaa\r\n5\r\nbbbbb\r\n", 1, limits).last, Parsed::body_too_large);
  EXPECT_EQ(run(chunked + "ffffffffffffffff\r\n", 1, limits).last, Parsed::body_too_large);
  EXPECT_EQ(run("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n0123456789", 3, limits).last,
            Parsed::complete);
  EXPECT_EQ(run(cat(chunked, "1;", std::string(5000, 'e')), 1, limits).last, Parsed::malformed);
}

TEST(RequestParser, serves_one_message_after_another) {
  RequestParser parser({});
  const std::string_view two = "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.0\r\n\r\n";
  std::size_t used = 0;
  ASSERT_EQ(parser.feed(two, used), Parsed::complete);
  EXPECT_EQ(parser.request().target, "/1");
  EXPECT_TRUE(parser.keep_alive());
  parser.reset();
  std::size_t more = 0;
  ASSERT_EQ(parser.feed(two.substr(used), more), Parsed::complete);
  EXPECT_EQ(parser.request().target, "/2");
  EXPECT_FALSE(parser.http_1_1());
  EXPECT_FALSE(parser.keep_alive());
}

TEST(ResponseParser, passes_over_interim_answers) {
  ResponseParser parser({}, false);
  const std::string_view bytes =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok";
  std::size_t used = 0;
  Parsed parsed = parser.feed(bytes, used);
  ASSERT_EQ(parsed, Parsed::head);
  std::size_t more = 0;
  ASSERT_EQ(parser.feed(bytes.substr(used), more), Parsed::complete);
  EXPECT_EQ(parser.response().status, 201);
  EXPECT_EQ(parser.response().body, "ok");
}

TEST(ResponseParser, ends_a_body_of_unknown_length_with_the_connection) {
  ResponseParser parser({}, false);
  std::size_t used = 0;
  std::string_view bytes = "HTTP/1.1 200 OK\r\n\r\nabc";
  ASSERT_EQ(parser.feed(bytes, used), Parsed::head);
  std::size_t more = 0;
  ASSERT_EQ(parser.feed(bytes.substr(used), more), Parsed::need_more);
  EXPECT_EQ(parser.feed_end(), Parsed::complete);
  EXPECT_EQ(parser.response().body, "abc");
}

TEST(ResponseParser, calls_a_short_body_broken) {
  ResponseParser parser({}, false);
  std::size_t used = 0;
  ASSERT_EQ(parser.feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", used), Parsed::head);
  EXPECT_EQ(parser.feed_end(), Parsed::malformed);
}

TEST(ResponseParser, expects_no_body_after_head) {
  ResponseParser parser({}, true);
  std::size_t used = 0;
  EXPECT_EQ(parser.feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", used), Parsed::complete);
}

}  // namespace
}  // namespace dibs::net
