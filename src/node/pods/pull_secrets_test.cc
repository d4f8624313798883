#include "node/pods/pull_secrets.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "cluster/test_cluster.h"

namespace dibs::node {
namespace {

using cluster::test::from_text;
using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;

Value secret(const std::string& key, const std::string& json) {
  return Value::object({{"data", Value::object({{key, base64_encode(json)}})}});
}

std::vector<std::string> logins(const std::string& image, const std::vector<Value>& secrets) {
  std::vector<std::string> out;
  for (const auto& login : pull_logins(image, secrets)) {
    std::string text;
    EXPECT_TRUE(base64_decode(login.auth, text));
    out.push_back(text);
  }
  return out;
}

TEST(PullSecrets, are_found_by_registry_and_path) {
  const Value config =
      secret(".dockerconfigjson",
             R"({"auths": {"https://index.docker.io/v1/": {"username": "hub", "password": "1"},
                    "reg.example.com:5000": {"auth": "YWxsOjI="},
                    "reg.example.com:5000/team": {"auth": "dGVhbToz"},
                    "*.cloud.example": {"username": "any", "password": "4"}}})");
  EXPECT_THAT(logins("busybox", {config}), ElementsAre("hub:1"));
  EXPECT_THAT(logins("reg.example.com:5000/x:1", {config}), ElementsAre("all:2"));
  EXPECT_THAT(logins("reg.example.com:5000/team/x", {config}), ElementsAre("team:3", "all:2"));
  EXPECT_THAT(logins("reg.example.com:5000/teams/x", {config}), ElementsAre("all:2"));
  EXPECT_THAT(logins("eu.cloud.example/x", {config}), ElementsAre("any:4"));
  EXPECT_THAT(logins("a.eu.cloud.example/x", {config}), IsEmpty());
  EXPECT_THAT(logins("reg.example.com/x", {config}), IsEmpty());
}

TEST(PullSecrets, of_the_old_form_and_of_none) {
  EXPECT_THAT(logins("r.example/x", {secret(".dockercfg", R"({"r.example": {"auth": "YTpi"}})")}),
              ElementsAre("a:b"));
  EXPECT_THAT(logins("r.example/x", {secret(".dockerconfigjson", "no json"), secret("other", "{}"),
                                     from_text("{}")}),
              IsEmpty());
}

}  // namespace
}  // namespace dibs::node
