#include "server/list_options.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::server {
namespace {

Result<ListOptions> options_of(std::string_view query, bool watch = false) {
  return ListOptions::parse(*net::Target::parse(cat("/x?", query)), watch);
}

TEST(ListOptions, reads_what_is_given) {
  auto list = options_of("limit=3&continue=t&resourceVersion=&timeoutSeconds=7");
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->limit, 3U);
  EXPECT_EQ(list->continue_token, "t");
  EXPECT_FALSE(list->version_given);
  EXPECT_EQ(list->timeout_seconds, 7);

  auto watch = options_of(
      "resourceVersion=12&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch="
      "NotOlderThan",
      true);
  ASSERT_TRUE(watch.ok());
  EXPECT_EQ(watch->version, 12);
  EXPECT_TRUE(watch->version_given);
  EXPECT_TRUE(watch->bookmarks);
  EXPECT_EQ(watch->send_initial_events, true);
  EXPECT_EQ(watch->match, VersionMatch::not_older);
}

TEST(ListOptions, takes_no_limit_from_zero_and_below) {
  EXPECT_EQ(options_of("limit=0")->limit, 0U);
  EXPECT_EQ(options_of("limit=-5")->limit, 0U);
}

struct Fault {
  const char* query;
  bool watch;
  int status;
  const char* part;
};

class ListFaults : public testing::TestWithParam<Fault> {};

TEST_P(ListFaults, are_refused) {
  auto options = options_of(GetParam().query, GetParam().watch);

  ASSERT_FALSE(options.ok()) << GetParam().query;
  EXPECT_EQ(http_status(options.error().code()), GetParam().status) << options.error().message();
  EXPECT_NE(options.error().message().find(GetParam().part), std::string::npos)
      << options.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    All, ListFaults,
    testing::Values(
        Fault{"limit=x", false, 400, "strconv.ParseInt: parsing \"x\": invalid syntax"},
        Fault{"limit=99999999999999999999", false, 400, "value out of range"},
        Fault{"timeoutSeconds=1s", true, 400, "invalid syntax"},
        Fault{"resourceVersion=x", false, 400,
              "invalid resource version: resourceVersion: Invalid value: \"x\""},
        Fault{"resourceVersion=-1", true, 500, "resourceVersion: Invalid value: \"-1\""},
        Fault{"resourceVersionMatch=Exact", false, 422,
              "resourceVersionMatch is forbidden unless resourceVersion is provided"},
        Fault{"resourceVersionMatch=Exact&resourceVersion=0", false, 422,
              "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""},
        Fault{"resourceVersionMatch=Odd&resourceVersion=1", false, 422,
              "Unsupported value: \"Odd\""},
        Fault{"resourceVersionMatch=Exact&resourceVersion=1&continue=t", false, 422,
              "resourceVersionMatch is forbidden when continue is provided"},
        Fault{"sendInitialEvents=true", false, 422, "sendInitialEvents is forbidden for list"},
        Fault{"resourceVersionMatch=NotOlderThan&resourceVersion=1", true, 422,
              "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
        Fault{"sendInitialEvents=true", true, 422,
              "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"}));

TEST(ContinueToken, comes_back_as_it_was_given) {
  ContinueToken token{42, std::string("default/a\0", 10)};

  auto back = ContinueToken::decode(token.encode());

  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->version, 42);
  EXPECT_EQ(back->start, token.start);
}

TEST(ContinueToken, refuses_what_it_did_not_give) {
  struct {
    std::string token;
    const char* part;
  } cases[] = {
      {"!", "illegal base64 data at input byte 0"},
      {"ab.c", "illegal base64 data at input byte 2"},
      {base64url_encode("{"), "unexpected end of JSON input"},
      {base64url_encode(R"({"v":"v9","rv":1,"start":"a"})"),
       "does not recognize this encoded version v9"},
      {base64url_encode(R"({"v":"meta.k8s.io/v1","start":"a"})"),
       "incorrect encoded start resourceVersion"},
      {base64url_encode(R"({"v":"meta.k8s.io/v1","rv":1})"), "encoded start key empty"},
      {base64url_encode(R"({"v":"meta.k8s.io/v1","rv":1,"start":"../../secrets/"})"),
       "../../secrets/"},
  };
  for (const auto& one : cases) {
    auto token = ContinueToken::decode(one.token);
    ASSERT_FALSE(token.ok()) << one.part;
    EXPECT_EQ(token.error().code(), Code::bad_request);
    EXPECT_NE(token.error().message().find(one.part), std::string::npos) << token.error().message();
  }
}

TEST(VersionTooLarge, asks_to_come_back) {
  Error error = version_too_large(9, 5);

  EXPECT_EQ(http_status(error.code()), 504);
  EXPECT_EQ(error.message(), "Timeout: Too large resource version: 9, current: 5");
  ASSERT_NE(error.details(), nullptr);
  EXPECT_EQ(error.details()->retry_after_seconds, 1);
  EXPECT_EQ(error.details()->causes.at(0).reason, "ResourceVersionTooLarge");
}

}  // namespace
}  // namespace dibs::server
