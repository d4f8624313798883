#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/auth/auth_for_test.h"
#include "server/auth/tokens.h"

namespace dibs::server::auth {
namespace {

using test::parsed;
using test::user;
using testing::ElementsAre;

struct World {
  std::map<std::string, Value> objects;
  TokenLookup lookup() const {
    return [this](std::string_view resource, std::string_view space,
                  std::string_view name) -> Result<Value> {
      auto found = objects.find(cat(resource, "/", space, "/", name));
      if (found == objects.end()) {
        return Error::not_found(cat(resource, " ", quoted(name), " not found"));
      }
      return found->second;
    };
  }
};

World small_world() {
  World world;
  world.objects["serviceaccounts/n/bot"] =
      parsed(R"({"metadata":{"name":"bot","namespace":"n","uid":"sa-1"}})");
  world.objects["pods/n/p"] = parsed(R"({"metadata":{"name":"p","namespace":"n","uid":"pod-1"},
    "spec":{"serviceAccountName":"bot","nodeName":"n1"}})");
  world.objects["nodes//n1"] = parsed(R"({"metadata":{"name":"n1","uid":"node-1"}})");
  return world;
}

TokenOptions token_options() {
  TokenOptions options;
  options.issuer = "https://kubernetes.default.svc";
  return options;
}

TEST(Tokens, bound_to_a_pod_say_where_it_runs) {
  World world = small_world();
  Time now = Time::from_seconds(1'000'000);
  Result<PreparedToken> token = prepare_token(
      world.objects["serviceaccounts/n/bot"],
      parsed(
          R"({"spec":{"expirationSeconds":3607,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p"}}})"),
      token_options(), world.lookup(), now, "id-1");
  ASSERT_TRUE(token.ok()) << token.error().message();
  EXPECT_EQ(token->claims["exp"].as_int(), 1'000'000 + 365 * 24 * 3600);
  EXPECT_EQ(token->claims["kubernetes.io"]["warnafter"].as_int(), 1'000'000 + 3607);
  EXPECT_TRUE(token->answer["spec"].contains("boundObjectRef"));

  Result<VerifiedToken> verified =
      verify_claims(token->claims, {}, token_options(), world.lookup(), now);

  ASSERT_TRUE(verified.ok()) << verified.error().message();
  EXPECT_EQ(verified->user.name, "system:serviceaccount:n:bot");
  EXPECT_EQ(verified->user.uid, "sa-1");
  EXPECT_THAT(verified->user.groups,
              ElementsAre("system:serviceaccounts", "system:serviceaccounts:n"));
  EXPECT_THAT(verified->user.extra["authentication.kubernetes.io/node-name"], ElementsAre("n1"));
  EXPECT_THAT(verified->user.extra["authentication.kubernetes.io/pod-uid"], ElementsAre("pod-1"));
  EXPECT_THAT(verified->user.extra["authentication.kubernetes.io/credential-id"],
              ElementsAre("JTI=id-1"));
}

TEST(Tokens, end_with_what_they_are_bound_to) {
  World world = small_world();
  Time now = Time::from_seconds(1'000'000);
  Result<PreparedToken> token = prepare_token(
      world.objects["serviceaccounts/n/bot"],
      parsed(
          R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"pod-1"}}})"),
      token_options(), world.lookup(), now, "id");
  ASSERT_TRUE(token.ok());
  auto fault = [&](Time at) {
    Result<VerifiedToken> verified =
        verify_claims(token->claims, {}, token_options(), world.lookup(), at);
    return verified.ok() ? std::string("fine") : verified.error().message();
  };

  EXPECT_EQ(fault(now), "fine");
  EXPECT_EQ(fault(Time::from_seconds(1'000'000 + 3600 + 61)), "service account token has expired");
  world.objects["pods/n/p"].mut("metadata").set("uid", "pod-2");
  EXPECT_EQ(fault(now), "pod UID (pod-2) does not match service account pod ref claim (pod-1)");
  world.objects.erase("pods/n/p");
  EXPECT_EQ(fault(now), "service account token has been invalidated");
  world.objects.erase("serviceaccounts/n/bot");
  EXPECT_EQ(fault(now), "serviceaccounts \"bot\" not found");
}

TEST(Tokens, refuse_requests_in_the_words_of_the_api) {
  World world = small_world();
  world.objects["pods/n/q"] = parsed(
      R"({"metadata":{"name":"q","namespace":"n","uid":"u"},"spec":{"serviceAccountName":"x"}})");
  struct Case {
    const char* request;
    int code;
    const char* message;
  };
  for (const Case& c : std::initializer_list<Case>{
           {R"({"spec":{"expirationSeconds":599}})", 422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid "
            "value: "
            "599: may not specify a duration less than 10 minutes"},
           {R"({"metadata":{"name":"other"},"spec":{}})", 422,
            "TokenRequest.authentication.k8s.io \"bot\" is invalid: metadata.name: Invalid value: "
            "\"other\": must match the service account name if specified"},
           {R"({"spec":{"boundObjectRef":{"kind":"ConfigMap","apiVersion":"v1","name":"c"}}})", 400,
            "cannot bind token to object of type /v1, Kind=ConfigMap"},
           {R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"q"}}})", 400,
            "cannot bind token for serviceaccount \"bot\" to pod running with different "
            "serviceaccount name."},
           {R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"nope"}}})", 404,
            "pods \"nope\" not found"},
           {R"({"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"z"}}})",
            409,
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference (z) "
            "does "
            "not match the UID in record. The object might have been deleted and then "
            "recreated"}}) {
    Result<PreparedToken> token =
        prepare_token(world.objects["serviceaccounts/n/bot"], parsed(c.request), token_options(),
                      world.lookup(), Time{}, "id");
    ASSERT_FALSE(token.ok()) << c.request;
    EXPECT_EQ(token.error().message(), c.message);
    EXPECT_EQ(http_status(token.error().code()), c.code);
  }
}

TEST(Tokens, are_reviewed_for_an_audience) {
  World world = small_world();
  Result<PreparedToken> token =
      prepare_token(world.objects["serviceaccounts/n/bot"],
                    parsed(R"({"spec":{"audiences":["https://kubernetes.default.svc","vault"]}})"),
                    token_options(), world.lookup(), Time{}, "id");
  ASSERT_TRUE(token.ok());
  auto review = [&](std::vector<std::string> audiences) {
    return token_review_status(
        verify_claims(token->claims, audiences, token_options(), world.lookup(), Time{}));
  };

  EXPECT_EQ(review({})["audiences"], parsed(R"(["https://kubernetes.default.svc"])"));
  EXPECT_EQ(review({"vault", "x"})["audiences"], parsed(R"(["vault"])"));
  EXPECT_EQ(
      review({"vault"})["user"]["groups"],
      parsed(R"(["system:serviceaccounts","system:serviceaccounts:n","system:authenticated"])"));
  EXPECT_EQ(
      review({"x"}),
      parsed(
          R"({"user":{},"error":"[invalid bearer token, token audiences [\"https://kubernetes.default.svc\" \"vault\"] is invalid for the target audiences [\"x\"]]"})"));
  EXPECT_EQ(token_review_status(Error(Code::unauthorized, "")),
            parsed(R"({"user":{},"error":"invalid bearer token"})"));
}

TEST(Tokens, are_read_from_a_file) {
  auto tokens = parse_static_tokens("t1,ana,u1,\"dev,ops\"\n\nt2,bob,u2\n");
  ASSERT_TRUE(tokens.ok());
  EXPECT_THAT(tokens->at("t1").groups, ElementsAre("dev", "ops"));
  EXPECT_EQ(tokens->at("t2").uid, "u2");
  EXPECT_FALSE(parse_static_tokens("a,b").ok());
}

}  // namespace
}  // namespace dibs::server::auth
