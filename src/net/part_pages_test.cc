#include "net/part_pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "net/testing/test_support.h"

namespace dibs::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string ask(HttpServer& server, const std::string& line) {
  RawClient client(server.port());
  client.send(line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  return client.read_all();
}

TEST(PartPages, tell_of_metrics_and_readiness) {
  metrics::Registry registry;
  registry.counter("c_total", "C.").one().add(3);
  std::atomic<bool> ready = false;
  const auto server = test_server({}, part_pages(registry, [&ready] { return ready.load(); }));
  EXPECT_THAT(ask(*server, "GET /metrics"), HasSubstr("\nc_total 3\n"));
  for (const char* path : {"/healthz", "/livez"})
    EXPECT_THAT(ask(*server, std::string("GET ") + path), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(*server, "GET /readyz"), StartsWith("HTTP/1.1 500 "));
  ready = true;
  EXPECT_THAT(ask(*server, "GET /readyz?verbose"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(*server, "POST /metrics"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask(*server, "GET /"), StartsWith("HTTP/1.1 404 "));
}

TEST(PartPages, are_metrics_alone_where_nothing_says_what_is_ready) {
  metrics::Registry registry;
  const auto server = test_server({}, part_pages(registry, {}));
  EXPECT_THAT(ask(*server, "GET /metrics"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(*server, "GET /readyz"), HasSubstr("only /metrics is here"));
}

}  // namespace
}  // namespace dibs::net
