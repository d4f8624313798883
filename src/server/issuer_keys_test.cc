#include "server/issuer_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "net/x509.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;

/// An issuer whose keys a test changes.
class FakeSource final : public KeySource {
 public:
  Result<net::JwkSet> fetch(const auth::JwtIssuer&) override {
    ++fetches;
    if (fails) return Error::unavailable("no way there");
    net::JwtVerifier published;
    for (const std::string& key : keys) (void)published.add(key);
    return net::JwkSet::parse(published.jwks());
  }

  std::vector<std::string> keys;
  int fetches = 0;
  bool fails = false;
};

class IssuerKeysTest : public testing::Test {
 protected:
  IssuerKeysTest() {
    source_->keys = {first_};
    auth::OidcFlags flags;
    flags.issuer_url = "https://issuer.example";
    flags.client_id = "me";
    flags.username_prefix = "-";
    flags.signing_algs = {"ES256"};
    options_.authentication = *auth::configuration_of_flags(flags, {});
    options_.issuer_keys = source_;
  }

  std::string token(const std::string& key, std::string_view name = "alice") {
    const auto now = api().sim.runtime().clock.now().seconds();
    return *net::JwtSigner::open(key)->sign(Value::object(
        {{"iss", "https://issuer.example"}, {"aud", "me"}, {"sub", name}, {"exp", now + 600}}));
  }

  test::TestServer& api() {
    if (!api_) {
      api_ = std::make_unique<test::TestServer>(options_);
      api_->sim.advance(std::chrono::seconds(1));
    }
    return *api_;
  }

  /// Whom the server takes the token for; "401" for nobody.
  std::string who(const std::string& bearer) {
    net::Request request;
    request.method = "POST";
    request.target = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    request.headers.add("Content-Type", "application/json");
    request.headers.add("Authorization", "Bearer " + bearer);
    request.peer.address = "192.0.2.1:1";
    request.body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})";
    const auto reply = api().send(std::move(request));
    if (reply.status != 201) return std::to_string(reply.status);
    return reply.body["status"]["userInfo"]["username"].str();
  }

  const std::string first_ = *net::make_private_key();
  const std::string second_ = *net::make_private_key();
  std::shared_ptr<FakeSource> source_ = std::make_shared<FakeSource>();
  Options options_;
  std::unique_ptr<test::TestServer> api_;
};

TEST_F(IssuerKeysTest, know_whom_a_token_speaks_of) {
  EXPECT_EQ(who(token(first_)), "alice");
  EXPECT_EQ(who(token(first_)), "alice");
  EXPECT_EQ(source_->fetches, 1);
  EXPECT_EQ(who(token(*net::make_private_key())), "401");
}

TEST_F(IssuerKeysTest, are_fetched_again_for_a_key_that_is_new) {
  EXPECT_EQ(who(token(first_)), "alice");
  source_->keys = {second_};
  api().sim.advance(std::chrono::seconds(20));
  EXPECT_EQ(who(token(second_, "bob")), "bob");
  EXPECT_EQ(source_->fetches, 2);
  // The old key is gone with that, also for tokens that were good before.
  EXPECT_EQ(who(token(first_)), "401");
}

TEST_F(IssuerKeysTest, are_not_fetched_for_every_bad_token) {
  EXPECT_EQ(who(token(first_)), "alice");
  api().sim.advance(std::chrono::seconds(20));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(who(token(*net::make_private_key())), "401");
  EXPECT_EQ(source_->fetches, 2);
}

TEST_F(IssuerKeysTest, are_tried_again_until_they_are_there) {
  source_->fails = true;
  EXPECT_EQ(who(token(first_)), "401");
  source_->fails = false;
  api().sim.advance(std::chrono::seconds(11));
  EXPECT_EQ(who(token(first_)), "alice");
}

TEST_F(IssuerKeysTest, change_with_the_configuration) {
  const std::string good = token(first_);
  EXPECT_EQ(who(good), "alice");
  api().server->configure({});
  EXPECT_EQ(who(good), "401");
  api().server->configure(options_.authentication);
  api().sim.advance(std::chrono::seconds(1));
  EXPECT_EQ(who(good), "alice");
}

TEST_F(IssuerKeysTest, are_not_waited_for_when_their_issuer_goes) {
  runtime::SimRuntime sim;
  IssuerKeys keys(sim.runtime(), source_);
  keys.configure(options_.authentication.issuers);
  const std::string early = token(first_);
  int answered = 0;
  ASSERT_TRUE(keys.await_keys(early, [&] { ++answered; }));

  keys.configure({});
  sim.advance(std::chrono::seconds(1));

  EXPECT_EQ(answered, 1);
  EXPECT_FALSE(keys.authenticate(early).ok());
  keys.stop();
}

TEST_F(IssuerKeysTest, vouch_for_tokens_to_the_api_alone) {
  options_.static_tokens = "secret,bob,1";
  const auto review = [&](const std::string& token, const Value& audiences) {
    return api()
        .post(
            "/apis/authentication.k8s.io/v1/tokenreviews",
            Value::object({{"apiVersion", "authentication.k8s.io/v1"},
                           {"kind", "TokenReview"},
                           {"spec", Value::object({{"token", token}, {"audiences", audiences}})}}))
        .body["status"];
  };
  const Value own = Value::array({options_.issuer});
  for (const std::string& bearer : {token(first_), std::string("secret")}) {
    EXPECT_TRUE(review(bearer, Value())["authenticated"].as_bool());
    EXPECT_EQ(review(bearer, Value())["audiences"], own);
    EXPECT_EQ(review(bearer, Value::array({"vault", options_.issuer}))["audiences"], own);
    const Value refused = review(bearer, Value::array({"vault"}));
    EXPECT_FALSE(refused["authenticated"].as_bool());
    EXPECT_EQ(refused["error"].as_string(), "invalid bearer token");
    EXPECT_TRUE(refused["user"]["username"].is_null());
  }
}

TEST_F(IssuerKeysTest, end_with_the_token) {
  const std::string good = token(first_);
  EXPECT_EQ(who(good), "alice");
  api().sim.advance(std::chrono::seconds(601));
  EXPECT_EQ(who(good), "401");
}

TEST_F(IssuerKeysTest, leave_strangers_out_where_the_configuration_does) {
  options_.authentication.anonymous = auth::AnonymousOptions{.enabled = true, .paths = {"/livez"}};
  const auto status = [&](const char* path) {
    net::Request request;
    request.method = "GET";
    request.target = path;
    request.peer.address = "192.0.2.1:1";
    return api().send(std::move(request)).status;
  };
  EXPECT_EQ(status("/livez"), 200);
  EXPECT_EQ(status("/version"), 401);
}

}  // namespace
}  // namespace dibs::server
