#include "server/authentication.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::server {
namespace {

using auth::UserInfo;
using testing::ElementsAre;

Authenticator one_token() {
  return Authenticator({[](std::string_view token) -> Result<UserInfo> {
                          if (token != "good") return unauthorized_error();
                          return UserInfo{"alice", "1", {"devs"}, {}};
                        },
                        [](std::string_view token) -> Result<UserInfo> {
                          if (token != "other") return unauthorized_error();
                          return UserInfo{"bob", "", {}, {}};
                        }});
}

net::Request with(std::string name, std::string value) {
  net::Request request;
  request.headers.add(std::move(name), std::move(value));
  return request;
}

TEST(Authentication, takes_user_and_groups_from_the_certificate) {
  net::Request request = with("Authorization", "Bearer good");
  request.peer.certificate = true;
  request.peer.common_name = "carol";
  request.peer.organizations = {"ops"};
  request.peer.uid = "u-7";
  request.peer.credential_id = "X509SHA256=ab";

  auto user = one_token().authenticate(request);

  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->name, "carol");
  EXPECT_EQ(user->uid, "u-7");
  EXPECT_THAT(user->extra["authentication.kubernetes.io/credential-id"],
              ElementsAre("X509SHA256=ab"));
  EXPECT_THAT(user->groups, ElementsAre("ops", "system:authenticated"));
}

TEST(Authentication, takes_a_certificate_without_a_name_for_none) {
  net::Request request = with("Authorization", "Bearer good");
  request.peer.certificate = true;
  request.peer.organizations = {"system:masters"};

  auto user = one_token().authenticate(request);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->name, "alice");

  request.headers.remove("Authorization");
  user = one_token().authenticate(request);
  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->name, "system:anonymous");
  EXPECT_THAT(user->groups, ElementsAre("system:unauthenticated"));
}

TEST(Authentication, refuses_a_certificate_that_does_not_hold) {
  net::Request request;
  request.peer.certificate_invalid = true;

  auto user = one_token().authenticate(request);

  ASSERT_FALSE(user.ok());
  EXPECT_EQ(http_status(user.error().code()), 401);
  EXPECT_EQ(user.error().message(), "Unauthorized");
}

TEST(Authentication, asks_each_verifier_for_a_token) {
  auto alice = one_token().authenticate(with("Authorization", "Bearer good"));
  ASSERT_TRUE(alice.ok());
  EXPECT_EQ(alice->name, "alice");
  EXPECT_THAT(alice->groups, ElementsAre("devs", "system:authenticated"));

  auto bob = one_token().authenticate(with("authorization", "bearer  other "));
  ASSERT_TRUE(bob.ok());
  EXPECT_EQ(bob->name, "bob");
}

TEST(Authentication, takes_the_token_of_a_browser_from_the_sub_protocol) {
  auto user = one_token().authenticate(with(
      "Sec-WebSocket-Protocol",
      cat("v5.channel.k8s.io, base64url.bearer.authorization.k8s.io.", base64url_encode("good"))));

  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->name, "alice");
}

TEST(Authentication, refuses_a_token_that_nobody_knows) {
  auto user = one_token().authenticate(with("Authorization", "Bearer bad"));

  ASSERT_FALSE(user.ok());
  EXPECT_EQ(http_status(user.error().code()), 401);
}

TEST(Authentication, who_shows_nothing_is_anonymous) {
  for (const char* header : {"", "Basic eDp5", "Bearer ", "Bearer"}) {
    auto user = one_token().authenticate(with("Authorization", header));
    ASSERT_TRUE(user.ok()) << header;
    EXPECT_EQ(user->name, "system:anonymous");
    EXPECT_THAT(user->groups, ElementsAre("system:unauthenticated"));
  }
}

class Impersonation : public testing::Test {
 protected:
  Result<UserInfo> as(std::vector<std::pair<std::string, std::string>> headers) {
    net::Request request;
    for (auto& [name, value] : headers) request.headers.add(name, value);
    return impersonate(
        request, UserInfo{"alice", "", {"devs"}, {}}, [this](const auth::RequestAttributes& what) {
          std::string shown =
              cat(what.verb, " ", what.group.empty() ? "" : cat(what.group, "/"), what.resource,
                  what.subresource.empty() ? "" : cat("/", what.subresource), " ",
                  what.name_space.empty() ? "" : cat(what.name_space, "/"), what.name);
          asked_.push_back(shown);
          auth::Decision decision;
          decision.allowed = shown != refused_;
          return decision;
        });
  }

  std::vector<std::string> asked_;
  std::string refused_;
};

TEST_F(Impersonation, leaves_who_asks_for_nobody_as_he_is) {
  auto user = as({{"X-Other", "y"}});

  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->name, "alice");
  EXPECT_TRUE(asked_.empty());
}

TEST_F(Impersonation, makes_him_the_user_he_may_be) {
  auto user = as({{"Impersonate-User", "bob"}});

  ASSERT_TRUE(user.ok());
  EXPECT_EQ(user->name, "bob");
  EXPECT_THAT(user->groups, ElementsAre("system:authenticated"));
  EXPECT_THAT(asked_, ElementsAre("impersonate users bob"));
}

TEST_F(Impersonation, asks_for_every_group_extra_and_uid) {
  auto user = as({{"Impersonate-User", "bob"},
                  {"Impersonate-Group", "ops"},
                  {"Impersonate-Group", "system:masters"},
                  {"Impersonate-Extra-Acme.com%2FTeam", "red"},
                  {"Impersonate-Uid", "u-1"}});

  ASSERT_TRUE(user.ok());
  EXPECT_THAT(user->groups, ElementsAre("ops", "system:masters", "system:authenticated"));
  EXPECT_EQ(user->uid, "u-1");
  EXPECT_THAT(user->extra["acme.com/team"], ElementsAre("red"));
  EXPECT_THAT(asked_, ElementsAre("impersonate users bob", "impersonate groups ops",
                                  "impersonate groups system:masters",
                                  "impersonate authentication.k8s.io/userextras/acme.com/team red",
                                  "impersonate authentication.k8s.io/uids u-1"));
}

TEST_F(Impersonation, gives_a_service_account_its_groups) {
  auto user = as({{"Impersonate-User", "system:serviceaccount:ns:robot"}});

  ASSERT_TRUE(user.ok());
  EXPECT_THAT(user->groups, ElementsAre("system:serviceaccounts", "system:serviceaccounts:ns",
                                        "system:authenticated"));
  EXPECT_THAT(asked_, ElementsAre("impersonate serviceaccounts ns/robot"));
}

TEST_F(Impersonation, keeps_anonymous_among_the_unauthenticated) {
  auto user = as({{"Impersonate-User", "system:anonymous"}});

  ASSERT_TRUE(user.ok());
  EXPECT_THAT(user->groups, ElementsAre("system:unauthenticated"));
}

TEST_F(Impersonation, is_refused_in_the_words_of_the_api) {
  struct {
    const char* refused;
    const char* message;
  } cases[] = {
      {"impersonate users bob",
       "users \"bob\" is forbidden: User \"alice\" cannot impersonate resource \"users\" in API "
       "group \"\" at the cluster scope"},
      {"impersonate groups ops",
       "groups \"ops\" is forbidden: User \"alice\" cannot impersonate resource \"groups\" in API "
       "group \"\" at the cluster scope"},
      {"impersonate authentication.k8s.io/userextras/team red",
       "userextras.authentication.k8s.io \"red\" is forbidden: User \"alice\" cannot impersonate "
       "resource "
       "\"userextras/team\" in API group \"authentication.k8s.io\" at the cluster scope"},
  };
  for (const auto& one : cases) {
    refused_ = one.refused;
    auto user = as({{"Impersonate-User", "bob"},
                    {"Impersonate-Group", "ops"},
                    {"Impersonate-Extra-Team", "red"}});
    ASSERT_FALSE(user.ok()) << one.refused;
    EXPECT_EQ(user.error().code(), Code::forbidden);
    EXPECT_EQ(user.error().message(), one.message);
  }
}

TEST_F(Impersonation, needs_a_user_for_everything_else) {
  for (const char* header : {"Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Team"}) {
    auto user = as({{header, "x"}});
    ASSERT_FALSE(user.ok()) << header;
    EXPECT_EQ(user.error().code(), Code::bad_request);
    EXPECT_NE(user.error().message().find("without impersonating a user name"), std::string::npos);
  }
}

}  // namespace
}  // namespace dibs::server
