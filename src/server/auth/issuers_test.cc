#include "server/auth/issuers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/test_text.h"

namespace dibs::server::auth {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHead =
    "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
const std::vector<std::string> kOwn = {"https://kubernetes.default.svc"};

Result<AuthenticationConfiguration> parse(const std::string& rest) {
  return parse_authentication_configuration(kHead + rest, kOwn);
}

std::string fault(const std::string& rest) {
  const auto made = parse(rest);
  return made.ok() ? "" : made.error().message();
}

constexpr const char* kWhole = R"yaml(
jwt:
- issuer:
    url: https://issuer.example
    audiences: [one, two]
    audienceMatchPolicy: MatchAny
  claimValidationRules:
  - claim: hd
    requiredValue: example.com
  - expression: "claims.exp - claims.nbf <= 86400"
    message: too long
  claimMappings:
    username: {expression: "'ex:' + claims.preferred"}
    groups: {expression: "claims.roles.split(',')"
}
    uid: {claim: sub}
    extra:
    - {key: example.com/tenant, valueExpression: claims.tenant}
  userValidationRules:
  - expression: "!user.username.startsWith('system:')"
    message: reserved
anonymous: {enabled: true, conditions: [{path: /livez}, {path: /readyz}]}
)yaml";

Value good_claims() {
  return Value::object({{"iss", "https://issuer.example"},
                        {"aud", "two"},
                        {"sub", "u-1"},
                        {"jti", "j"},
                        {"hd", "example.com"},
                        {"preferred", "alice"},
                        {"roles", "dev,,ops"},
                        {"tenant", "blue"},
                        {"nbf", 1000},
                        {"exp", 2000}});
}

TEST(Issuers, make_a_user_of_claims) {
  const auto made = parse(kWhole);
  ASSERT_TRUE(made.ok()) << made.error().message();
  const auto user = user_of_claims(*made->issuers[0], good_claims(), Time::from_seconds(1500));
  ASSERT_TRUE(user.ok()) << user.error().message();
  EXPECT_EQ(user->name, "ex:alice");
  EXPECT_EQ(user->uid, "u-1");
  EXPECT_THAT(user->groups, ElementsAre("dev", "ops"));
  EXPECT_THAT(user->extra.at("example.com/tenant"), ElementsAre("blue"));
  EXPECT_THAT(user->extra.at("authentication.kubernetes.io/credential-id"), ElementsAre("JTI=j"));
}

TEST(Issuers, refuse_what_their_rules_refuse) {
  const auto made = parse(kWhole);
  ASSERT_TRUE(made.ok());
  const auto told = [&](std::string_view claim, const Value& value) {
    Value claims = good_claims();
    claims.set(claim, value);
    const auto user = user_of_claims(*made->issuers[0], claims, Time::from_seconds(1500));
    return user.ok() ? std::string() : user.error().message();
  };
  EXPECT_EQ(told("exp", 1499), "oidc: verify token: oidc: token is expired");
  EXPECT_EQ(told("exp", Value()), "oidc: verify token: oidc: token is expired");
  EXPECT_THAT(told("nbf", 1900), HasSubstr("before the nbf"));
  EXPECT_EQ(told("aud", "three"),
            "oidc: verify token: oidc: expected audience in [\"one\" \"two\"] got [\"three\"]");
  EXPECT_EQ(told("hd", "evil.com"),
            "oidc: required claim hd value does not match. Got = evil.com, want = example.com");
  EXPECT_THAT(told("exp", 1000000), HasSubstr("failed: too long"));
  EXPECT_THAT(told("preferred", 5), HasSubstr("username claim expression"));
  EXPECT_THAT(told("roles", 5), HasSubstr("group claim expression"));
  EXPECT_EQ(told("iss", "https://kubernetes.default.svc"), "oidc: verify token: other issuer");
}

TEST(Issuers, let_user_rules_have_the_last_word) {
  const auto made = parse(R"yaml(
jwt:
- issuer: {url: https://issuer.example, audiences: [two]}
  claimMappings: {username: {claim: sub, prefix: ""}}
  userValidationRules: [{expression: "!user.username.startsWith('system:')", message: reserved}]
)yaml");
  ASSERT_TRUE(made.ok()) << made.error().message();
  Value claims = good_claims();
  claims.set("sub", "system:admin");
  EXPECT_EQ(user_of_claims(*made->issuers[0], claims, Time::from_seconds(1500)).error().message(),
            "oidc: error evaluating user info validation rule: validation expression "
            "'!user.username.startsWith('system:')' failed: reserved");
}

TEST(Issuers, show_rules_a_user_who_has_nothing_but_a_name) {
  const auto made = parse(R"yaml(
jwt:
- issuer: {url: https://issuer.example, audiences: [two]}
  claimMappings: {username: {claim: sub, prefix: ""}}
  userValidationRules:
  - expression: "!user.groups.exists(g, g.startsWith('system:'))"
  - expression: "user.uid == '' && !('example.com/tenant' in user.extra)"
)yaml");
  ASSERT_TRUE(made.ok()) << made.error().message();
  Value claims = good_claims();
  claims.erase("jti");
  const auto user = user_of_claims(*made->issuers[0], claims, Time::from_seconds(1500));
  EXPECT_TRUE(user.ok()) << user.error().message();
}

TEST(Issuers, take_null_for_no_groups) {
  const auto made = parse(R"yaml(
jwt:
- issuer: {url: https://issuer.example, audiences: [two]}
  claimMappings: {username: {claim: sub, prefix: ""}, groups: {claim: groups, prefix: "g:"}}
)yaml");
  ASSERT_TRUE(made.ok()) << made.error().message();
  Value claims = good_claims();
  claims.set("groups", Value());
  const auto user = user_of_claims(*made->issuers[0], claims, Time::from_seconds(1500));
  ASSERT_TRUE(user.ok()) << user.error().message();
  EXPECT_TRUE(user->groups.empty());
}

TEST(Issuers, do_not_take_an_email_that_is_not_verified) {
  OidcFlags flags;
  flags.issuer_url = "https://issuer.example";
  flags.client_id = "two";
  flags.username_claim = "email";
  flags.groups_claim = "roles";
  flags.groups_prefix = "g:";
  const auto made = configuration_of_flags(flags, kOwn);
  ASSERT_TRUE(made.ok()) << made.error().message();
  Value claims = good_claims();
  claims.set("email", "a@example.com");
  auto user = user_of_claims(*made->issuers[0], claims, Time::from_seconds(1500));
  ASSERT_TRUE(user.ok()) << user.error().message();
  EXPECT_EQ(user->name, "a@example.com");
  EXPECT_THAT(user->groups, ElementsAre("g:dev,,ops"));
  claims.set("email_verified", false);
  user = user_of_claims(*made->issuers[0], claims, Time::from_seconds(1500));
  EXPECT_EQ(user.error().message(), "oidc: email not verified");
}

TEST(Issuers, put_the_issuer_before_names_of_flags) {
  OidcFlags flags;
  flags.issuer_url = "https://issuer.example";
  flags.client_id = "two";
  auto made = configuration_of_flags(flags, kOwn);
  EXPECT_EQ(user_of_claims(*made->issuers[0], good_claims(), Time::from_seconds(1500))->name,
            "https://issuer.example#u-1");
  flags.username_prefix = "-";
  made = configuration_of_flags(flags, kOwn);
  EXPECT_EQ(user_of_claims(*made->issuers[0], good_claims(), Time::from_seconds(1500))->name,
            "u-1");
  flags.signing_algs = {"HS256"};
  EXPECT_EQ(configuration_of_flags(flags, kOwn).error().message(),
            "oidc: unsupported signing alg: \"HS256\"");
}

TEST(Issuers, let_strangers_in_for_some_paths) {
  const auto made = parse(kWhole);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made->anonymous->allows("/livez?verbose"));
  EXPECT_FALSE(made->anonymous->allows("/livez/ping"));
  EXPECT_FALSE(made->anonymous->allows("/version"));
}

TEST(Issuers, are_refused_in_the_words_of_the_api) {
  const std::string mappings = "\n  claimMappings: {username: {claim: sub, prefix: ''}}";
  const auto issuer = [&](const std::string& text) {
    return fault("jwt:\n- issuer: {" + text + "}" + mappings);
  };
  EXPECT_EQ(issuer("audiences: [a]"), "jwt[0].issuer.url: Required value");
  EXPECT_EQ(issuer("url: 'http://x', audiences: [a]"),
            "jwt[0].issuer.url: Invalid value: \"http://x\": URL scheme must be https");
  EXPECT_EQ(issuer("url: 'https://x?a', audiences: [a]"),
            "jwt[0].issuer.url: Invalid value: \"https://x?a\": URL must not contain a query");
  EXPECT_THAT(issuer("url: 'https://kubernetes.default.svc', audiences: [a]"),
              HasSubstr("URL must not overlap with disallowed issuers"));
  EXPECT_EQ(issuer("url: 'https://x'"),
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is "
            "required");
  EXPECT_EQ(issuer("url: 'https://x', audiences: [a, b]"),
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be "
            "MatchAny for multiple audiences");
  EXPECT_THAT(issuer("url: 'https://x', audiences: [a], certificateAuthority: x"),
              HasSubstr("jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\""));
  const auto mapped = [&](const std::string& text) {
    return fault("jwt:\n- issuer: {url: 'https://x', audiences: [a]}\n  claimMappings: {" + text +
                 "}");
  };
  EXPECT_EQ(mapped(""),
            "jwt[0].claimMappings.username: Required value: claim or expression is "
            "required");
  EXPECT_THAT(mapped("username: {claim: sub}"), HasSubstr("prefix is required when claim is set"));
  EXPECT_THAT(mapped("username: {expression: 'claims.'}"), HasSubstr("compilation failed"));
  EXPECT_THAT(mapped("username: {expression: 'claims.email'}"),
              HasSubstr("claims.email_verified must be used"));
  EXPECT_THAT(mapped("username: {claim: a, prefix: ''}, extra: [{key: x, valueExpression: '1'}]"),
              HasSubstr("jwt[0].claimMappings.extra[0].key: Invalid value"));
  EXPECT_THAT(fault("jwt: []\nanonymous: {enabled: false, conditions: [{path: /a}]}"),
              HasSubstr("enabled should be set to true when conditions are defined"));
  EXPECT_THAT(fault("jwt: []\nunknown: 1"), HasSubstr("unknown field \"unknown\""));
  EXPECT_TRUE(parse("jwt: []").ok());
}

}  // namespace
}  // namespace dibs::server::auth
