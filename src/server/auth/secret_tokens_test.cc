#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "json/test_text.h"
#include "server/auth/tokens.h"

namespace dibs::server::auth {
namespace {

using json::Value;
using json::test::from_text;
using testing::ElementsAre;

struct SecretTokens : testing::Test {
  std::map<std::string, Value> objects;
  Time now = *parse_rfc3339("2026-01-01T00:00:00Z");
  TokenOptions options;

  SecretTokens() { options.issuer = "https://kubernetes.default.svc"; }

  TokenLookup lookup() const {
    return [this](std::string_view resource, std::string_view space,
                  std::string_view name) -> Result<Value> {
      auto found = objects.find(cat(resource, "/", space, "/", name));
      if (found == objects.end())
        return Error::not_found(cat(resource, " ", quoted(name), " not found"));
      return found->second;
    };
  }
  static std::string outcome(const Result<VerifiedToken>& token) {
    return token.ok() ? token->user.name : cat("refused: ", token.error().message());
  }
};

// --- of accounts ---

struct LegacyTokens : SecretTokens {
  Value claims = from_text(
      "{'iss':'kubernetes/serviceaccount','sub':'system:serviceaccount:n:bot',"
      "'kubernetes.io/serviceaccount/namespace':'n',"
      "'kubernetes.io/serviceaccount/secret.name':'s',"
      "'kubernetes.io/serviceaccount/service-account.name':'bot',"
      "'kubernetes.io/serviceaccount/service-account.uid':'sa-1'}");

  std::vector<Value> uses;

  LegacyTokens() {
    objects["serviceaccounts/n/bot"] = from_text("{'metadata':{'name':'bot','uid':'sa-1'}}");
    objects["secrets/n/s"] =
        Value::object({{"metadata", Value::object({{"name", "s"}})},
                       {"data", Value::object({{"token", base64_encode("the token")}})}});
  }
  void mark_invalid() {
    objects["secrets/n/s"]
        .mut("metadata")
        .mut("labels")
        .set("kubernetes.io/legacy-token-invalid-since", "2025-12-01");
  }
  std::string verify(std::string_view token = "the token",
                     const std::vector<std::string>& audiences = {}) {
    return outcome(verify_legacy_claims(claims, token, audiences, options, lookup(),
                                        [&](const Value& secret) { uses.push_back(secret); }));
  }
};

TEST_F(LegacyTokens, are_good_as_long_as_their_secret_holds_them) {
  const auto token =
      verify_legacy_claims(claims, "the token", {}, options, lookup(), [](const Value&) {});
  ASSERT_TRUE(token.ok()) << token.error().message();
  EXPECT_EQ(token->user.name, "system:serviceaccount:n:bot");
  EXPECT_EQ(token->user.uid, "sa-1");
  EXPECT_THAT(token->user.groups,
              ElementsAre("system:serviceaccounts", "system:serviceaccounts:n"));
  EXPECT_THAT(token->audiences, ElementsAre("https://kubernetes.default.svc"));

  EXPECT_EQ(verify("another"), "refused: Token does not match server's copy");
  objects["secrets/n/s"].mut("metadata").set("deletionTimestamp", "2026-01-01T00:00:00Z");
  EXPECT_EQ(verify(), "refused: Token has been invalidated");
  objects.erase("secrets/n/s");
  EXPECT_EQ(verify(), "refused: Token has been invalidated");
}

TEST_F(LegacyTokens, are_for_the_api_alone) {
  EXPECT_EQ(verify("the token", {"https://kubernetes.default.svc", "other"}),
            "system:serviceaccount:n:bot");
  EXPECT_EQ(verify("the token", {"other"}),
            "refused: token audiences [\"https://kubernetes.default.svc\"] is invalid for the "
            "target audiences [\"other\"]");
}

TEST_F(LegacyTokens, end_with_their_account) {
  objects["serviceaccounts/n/bot"].mut("metadata").set("uid", "sa-2");
  EXPECT_EQ(verify(), "refused: ServiceAccount UID (sa-2) does not match claim (sa-1)");
  objects["serviceaccounts/n/bot"].mut("metadata").set("deletionTimestamp", "2026-01-01T00:00:00Z");
  EXPECT_EQ(verify(), "refused: ServiceAccount n/bot has been deleted");
  objects.erase("serviceaccounts/n/bot");
  EXPECT_EQ(verify(), "refused: serviceaccounts \"bot\" not found");
}

TEST_F(LegacyTokens, can_be_marked_invalid) {
  mark_invalid();
  EXPECT_THAT(verify(), testing::HasSubstr("has been marked invalid"));
}

TEST_F(LegacyTokens, tell_of_their_use_when_they_were_shown) {
  verify("another");
  EXPECT_THAT(uses, testing::IsEmpty());
  verify();
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0]["metadata"]["name"].as_string(), "s");
  mark_invalid();
  verify();
  EXPECT_EQ(uses.size(), 2U);
}

TEST_F(LegacyTokens, say_all_of_whom_they_are) {
  for (const char* name :
       {"namespace", "secret.name", "service-account.name", "service-account.uid"}) {
    const Value whole = claims;
    claims.erase(cat("kubernetes.io/serviceaccount/", name));
    EXPECT_THAT(verify(), testing::HasSubstr("claim is missing")) << name;
    claims = whole;
  }
  claims.set("sub", "system:serviceaccount:n:other");
  EXPECT_EQ(verify(), "refused: sub claim is invalid");
}

// --- of machines that join ---

struct BootstrapTokens : SecretTokens {
  BootstrapTokens() { write(); }

  void write(const std::map<std::string, std::string>& more = {},
             const char* type = "bootstrap.kubernetes.io/token") {
    std::map<std::string, std::string> data = {{"token-id", "abcdef"},
                                               {"token-secret", "0123456789abcdef"},
                                               {"usage-bootstrap-authentication", "true"}};
    for (const auto& [key, value] : more) data[key] = value;
    Value secret = Value::object({{"metadata", Value::object()}, {"type", type}});
    for (const auto& [key, value] : data) secret.mut("data").set(key, base64_encode(value));
    objects["secrets/kube-system/bootstrap-token-abcdef"] = secret;
  }
  Result<VerifiedToken> read(std::string_view token = "abcdef.0123456789abcdef") {
    return verify_bootstrap_token(token, options, {}, lookup(), now);
  }
};

TEST_F(BootstrapTokens, speak_for_machines) {
  const auto token = read();
  ASSERT_TRUE(token.ok());
  EXPECT_EQ(token->user.name, "system:bootstrap:abcdef");
  EXPECT_THAT(token->user.groups, ElementsAre("system:bootstrappers"));

  write({{"auth-extra-groups", "system:bootstrappers:b,system:bootstrappers:a:1"}});
  EXPECT_THAT(read()->user.groups, ElementsAre("system:bootstrappers", "system:bootstrappers:a:1",
                                               "system:bootstrappers:b"));
}

TEST_F(BootstrapTokens, are_refused_when_anything_is_wrong) {
  for (const char* token :
       {"", "abcdef", "abcdef.", "abcdef.0123456789abcde", "ABCDEF.0123456789abcdef",
        "abcdef.0123456789abcdeF", "fedcba.0123456789abcdef", "abcdef.0000000000000000",
        "abcdef.0123456789abcdef.x"})
    EXPECT_FALSE(read(token).ok()) << token;

  write({}, "Opaque");
  EXPECT_FALSE(read().ok());
  write({{"token-id", "fedcba"}});
  EXPECT_FALSE(read().ok());
  write({{"usage-bootstrap-authentication", "false"}});
  EXPECT_FALSE(read().ok());
  for (const char* groups : {"system:masters", "system:bootstrappers", "system:bootstrappers:",
                             "system:bootstrappers:a,", "system:bootstrappers:-"}) {
    write({{"auth-extra-groups", groups}});
    EXPECT_FALSE(read().ok()) << groups;
  }
}

TEST_F(BootstrapTokens, end) {
  write({{"expiration", "2026-01-01T00:00:01Z"}});
  EXPECT_TRUE(read().ok());
  write({{"expiration", "2026-01-01T00:00:00Z"}});
  EXPECT_FALSE(read().ok());
  write({{"expiration", "soon"}});
  EXPECT_FALSE(read().ok());
  write();
  objects["secrets/kube-system/bootstrap-token-abcdef"]
      .mut("metadata")
      .set("deletionTimestamp", "2026-01-01T00:00:00Z");
  EXPECT_FALSE(read().ok());
}

}  // namespace
}  // namespace dibs::server::auth
