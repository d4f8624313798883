#include "net/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::net {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Headers, names_compare_without_case) {
  Headers headers;
  headers.add("Content-Type", "a");
  headers.add("X-One", "1");
  headers.add("x-one", "2");

  EXPECT_EQ(headers.get("content-type"), "a");
  EXPECT_THAT(headers.all("X-ONE"), ElementsAre("1", "2"));
  EXPECT_FALSE(headers.has("X-On"));
  EXPECT_EQ(headers.get("absent"), "");
}

TEST(Headers, set_replaces_all_of_a_name) {
  Headers headers;
  headers.add("A", "1");
  headers.add("B", "2");
  headers.add("a", "3");

  headers.set("a", "4");
  headers.set("c", "5");

  EXPECT_THAT(headers.fields(), ElementsAre(Pair("A", "4"), Pair("B", "2"), Pair("c", "5")));
  headers.remove("b");
  EXPECT_FALSE(headers.has("B"));
}

struct TargetCase {
  std::string target;
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
};

TEST(Target, splits_and_decodes) {
  const TargetCase cases[] = {
      {"/api/v1", "/api/v1", {}},
      {"/a%20b/c%2Fd", "/a b/c/d", {}},
      {"/p?watch=1&labelSelector=a%3Db%2Cc", "/p", {{"watch", "1"}, {"labelSelector", "a=b,c"}}},
      {"/p?a+b=c+d&flag&=v&x=1&x=2",
       "/p",
       {{"a b", "c d"}, {"flag", ""}, {"", "v"}, {"x", "1"}, {"x", "2"}}},
      {"/p?a=%zz&b=1&c;d=2&&", "/p", {{"b", "1"}}},
      {"http://host:1/p?q=1", "/p", {{"q", "1"}}},
      {"http://host", "/", {}},
      {"*", "*", {}},
      {"/a+b", "/a+b", {}},
  };
  for (const auto& test : cases) {
    const auto target = Target::parse(test.target);
    ASSERT_TRUE(target.ok()) << test.target;
    EXPECT_EQ(target->path, test.path) << test.target;
    EXPECT_EQ(target->query, test.query) << test.target;
  }
}

TEST(Target, refuses_a_broken_escape_in_the_path) {
  for (const auto* bad : {"/%", "/%z1", "/a%2"}) {
    const auto target = Target::parse(bad);
    ASSERT_FALSE(target.ok()) << bad;
    EXPECT_EQ(target.error().code(), Code::bad_request);
  }
}

TEST(Target, gets_first_values) {
  const auto target = Target::parse("/p?x=1&x=2&y=");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->get("x"), "1");
  EXPECT_TRUE(target->has("y"));
  EXPECT_FALSE(target->has("z"));
}

TEST(Http, knows_websocket_handshakes) {
  Request request;
  request.method = "GET";
  request.headers.add("Connection", "keep-alive, Upgrade");
  request.headers.add("Upgrade", "WebSocket");
  EXPECT_TRUE(is_websocket_upgrade(request));
  request.method = "POST";
  EXPECT_FALSE(is_websocket_upgrade(request));
}

TEST(Http, finds_tokens_in_lists) {
  EXPECT_TRUE(has_token("a, Close ,b", "close"));
  EXPECT_FALSE(has_token("closed", "close"));
  EXPECT_FALSE(has_token("", "close"));
}

}  // namespace
}  // namespace dibs::net
