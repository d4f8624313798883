#include "server/auth/request_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/tls.h"

namespace dibs::server::auth {
namespace {

using testing::ElementsAre;

net::Request from_proxy(const std::string& name) {
  net::Request request;
  request.headers.add(std::string(net::kFrontProxyField), name);
  request.headers.add("x-remote-user", "alice");
  request.headers.add("X-Remote-Uid", "7");
  request.headers.add("X-Remote-Group", "devs");
  request.headers.add("X-Remote-Group", "ops");
  request.headers.add("X-Remote-Extra-Example.com%2fteam", "blue");
  return request;
}

TEST(RequestHeader, takes_the_user_from_a_front_proxy) {
  RequestHeaderOptions options;
  options.allowed_names = {"front-proxy-client"};

  const auto user = front_proxy_user(from_proxy("front-proxy-client"), options);

  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "alice");
  EXPECT_EQ(user->uid, "7");
  EXPECT_THAT(user->groups, ElementsAre("devs", "ops"));
  EXPECT_THAT(user->extra.at("example.com/team"), ElementsAre("blue"));
}

TEST(RequestHeader, believes_nobody_else) {
  RequestHeaderOptions options;
  options.allowed_names = {"front-proxy-client"};
  EXPECT_FALSE(front_proxy_user(from_proxy("other"), options));
  net::Request stranger = from_proxy("front-proxy-client");
  stranger.headers.remove(net::kFrontProxyField);
  // A client's own certificate is no proxy's, whatever its name.
  stranger.peer.certificate = true;
  stranger.peer.common_name = "front-proxy-client";
  EXPECT_FALSE(front_proxy_user(stranger, options));
  options.allowed_names.clear();
  EXPECT_TRUE(front_proxy_user(from_proxy("other"), options));
  EXPECT_FALSE(front_proxy_user(stranger, options));
}

TEST(RequestHeader, is_of_no_use_without_a_user) {
  net::Request request = from_proxy("p");
  request.headers.remove("X-Remote-User");
  EXPECT_FALSE(front_proxy_user(request, {}));
}

TEST(RequestHeader, is_taken_out_before_a_request_goes_on) {
  net::Request request = from_proxy("p");
  request.headers.add("Accept", "*/*");
  request.headers.add("My-User", "bob");
  RequestHeaderOptions options;
  options.username_headers = {"My-User"};

  clear_front_proxy_headers(request.headers, options);

  ASSERT_EQ(request.headers.fields().size(), 1U);
  EXPECT_EQ(request.headers.fields()[0].first, "Accept");
}

}  // namespace
}  // namespace dibs::server::auth
