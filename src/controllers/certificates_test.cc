// Certificates and tokens that controllers make: decisions as functions, and against a whole
// server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/certificate_rules.h"
#include "controllers/test_cluster.h"
#include "controllers/workload_objects.h"
#include "net/x509.h"

namespace dibs::controllers {
namespace {

using test::from_text;

const Gvr kRequests = {"certificates.k8s.io", "v1", "certificatesigningrequests"};
const Gvr kSecrets = {"", "v1", "secrets"};
constexpr const char* kServing = "kubernetes.io/kubelet-serving";

// Made with: openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256
//   -subj "/O=system:nodes/CN=system:node:n1"
constexpr const char* kRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHrMIGSAgEAMDAxFTATBgNVBAoMDHN5c3RlbTpub2RlczEXMBUGA1UEAwwOc3lz
dGVtOm5vZGU6bjEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQMqv5gEVlHJeYC
JqwoPqMjDVzrXX0oAPC37+iwid7O3b3eztV+OQ0DtZoYrcivHnieeuM0QxL4z7GM
OyQZqJvvoAAwCgYIKoZIzj0EAwIDSAAwRQIgQyTeoTDAypk4w671F0q01cnt9IEV
PSjAIlz7sHtDfC0CIQDeXqctNk292Q0xYgDWuzdxWTvzd48yJKFE2BaUMs9mmQ==
-----END CERTIFICATE REQUEST-----
)";

// With -subj "/O=system:nodes/CN=system:node:n1/CN=system:node:n2".
constexpr const char* kTwoNamesRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBBDCBqwIBADBJMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5
c3RlbTpub2RlOm4xMRcwFQYDVQQDDA5zeXN0ZW06bm9kZTpuMjBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABKXg/iYKXe4z+nO7UA1Phrlmsuw37YSkR4XvhCAs3K2E
+rtT0C5tINKw+SZ02I3BInM48vm76CleW3Foxv6xLOKgADAKBggqhkjOPQQDAgNI
ADBFAiAWpHEs+wuPYWkSLmb7j4R7rYm3PwJc/dgKXgMpYfy4VAIhAPHofEMqE4Wy
oYWfadJsiOgNBCUK9UgTBLf52Bq/siHQ
-----END CERTIFICATE REQUEST-----
)";

// --- functions ---

Value asked(const std::string& signer, const std::string& usages) {
  return from_text(cat("{'spec':{'signerName':'", signer, "','usages':", usages, "}}"));
}

TEST(CertificateRules, kubelets_ask_for_themselves_as_clients) {
  const net::SigningRequest node = {.common_name = "system:node:n1",
                                    .organizations = {"system:nodes"}};
  const Value request = asked(kKubeletClientSigner, "['client auth','digital signature']");
  EXPECT_EQ(signing_fault(request, node), "");
  EXPECT_EQ(signing_fault(asked(kKubeletClientSigner,
                                "['digital signature','key encipherment','client auth']"),
                          node),
            "");
  EXPECT_EQ(signing_fault(asked(kKubeletClientSigner, "['client auth']"), node),
            "usages did not match [client auth digital signature key encipherment]");

  net::SigningRequest other = node;
  other.organizations = {"system:nodes", "system:masters"};
  EXPECT_EQ(signing_fault(request, other), "subject organization is not system:nodes");
  other = node;
  other.common_name = "admin";
  EXPECT_EQ(signing_fault(request, other), "subject common name does not begin with system:node:");
  other = node;
  other.dns_names = {"n1"};
  EXPECT_EQ(signing_fault(request, other), "DNS subjectAltNames are not allowed");
  other = node;
  other.ip_addresses = {"10.0.0.1"};
  EXPECT_EQ(signing_fault(request, other), "IP subjectAltNames are not allowed");
  other = node;
  other.email_addresses = {"a@b"};
  EXPECT_EQ(signing_fault(request, other), "Email subjectAltNames are not allowed");
  other = node;
  other.uris = {"spiffe://a"};
  EXPECT_EQ(signing_fault(request, other), "URI subjectAltNames are not allowed");
}

TEST(CertificateRules, kubelets_serve_under_their_names) {
  net::SigningRequest node = {.common_name = "system:node:n1", .organizations = {"system:nodes"}};
  const Value request = asked(kServing, "['server auth','digital signature']");
  EXPECT_EQ(signing_fault(request, node), "DNS or IP subjectAltName is required");
  node.ip_addresses = {"10.0.0.1"};
  EXPECT_EQ(signing_fault(request, node), "");
  EXPECT_EQ(signing_fault(asked(kServing, "['client auth','digital signature']"), node),
            "usages did not match [digital signature key encipherment server auth]");
}

TEST(CertificateRules, clients_may_not_serve) {
  const std::string signer = "kubernetes.io/kube-apiserver-client";
  EXPECT_EQ(signing_fault(asked(signer, "['client auth','key encipherment']"), {}), "");
  EXPECT_EQ(signing_fault(asked(signer, "['digital signature']"), {}),
            "missing required usage for client certificate: client auth");
  EXPECT_EQ(signing_fault(asked(signer, "['client auth','server auth']"), {}),
            "invalid usage for client certificate: server auth");
  EXPECT_EQ(signing_fault(asked("kubernetes.io/legacy-unknown", "['any']"), {}), "");
  EXPECT_FALSE(is_own_signer("example.com/own"));
}

TEST(CertificateRules, last_as_long_as_asked_but_not_longer_than_allowed) {
  const Time now = *parse_rfc3339("2026-01-01T00:00:00Z");
  const Time far = now + std::chrono::hours(24 * 3650);
  const auto end = [&](const char* seconds, Time authority) {
    Value request = asked("x", "[]");
    if (*seconds != 0) request.mut("spec").set("expirationSeconds", std::stoi(seconds));
    const auto validity = validity_for(request, std::chrono::hours(8760), authority, now);
    EXPECT_EQ(format_rfc3339(validity.not_before), "2025-12-31T23:55:00Z");
    return format_rfc3339(validity.not_after);
  };
  EXPECT_EQ(end("", far), "2026-12-31T23:55:00Z");
  EXPECT_EQ(end("3600", far), "2026-01-01T01:00:00Z");
  EXPECT_EQ(end("1", far), "2026-01-01T00:10:00Z");
  EXPECT_EQ(end("99999999", far), "2026-12-31T23:55:00Z");
  EXPECT_EQ(end("", now + std::chrono::hours(1)), "2026-01-01T01:00:00Z");
}

TEST(CertificateRules, requests_go_when_they_are_done_with) {
  const Time now = *parse_rfc3339("2026-01-02T00:00:00Z");
  const auto hours = [&](const std::string& status) {
    const auto left = time_left(
        from_text(
            cat("{'metadata':{'creationTimestamp':'2026-01-01T12:00:00Z'},'status':", status, "}")),
        now);
    return left ? std::chrono::duration_cast<std::chrono::hours>(*left).count() : -1;
  };
  const auto since = [](const char* type, const char* more = "") {
    return cat("{'conditions':[{'type':'", type,
               "','status':'True','lastUpdateTime':'2026-01-01T12:00:00Z'}]", more, "}");
  };
  EXPECT_EQ(hours("{}"), 12) << "a day for what nobody has decided";
  EXPECT_EQ(hours(since("Denied")), 0);
  EXPECT_EQ(hours(since("Failed")), 0);
  EXPECT_EQ(hours(since("Approved")), 12) << "not signed yet";
  EXPECT_EQ(hours(since("Approved", ",'certificate':'eA=='")), 0);
}

// --- against a server ---

struct CertificatesTest : testing::Test {
  CertificatesTest() : cluster(options()) {}

  static cluster::Options options() {
    cluster::Options out;
    out.server.ca_pem = "CA";
    out.server.account_key_pem = *net::make_private_key();
    out.controllers.emplace();
    const Time from = *parse_rfc3339("2000-01-01T00:00:00Z");
    out.controllers->signing_ca =
        *net::make_ca("test", {from, *parse_rfc3339("2099-01-01T00:00:00Z")});
    return out;
  }
  void settle(Duration time = std::chrono::seconds(1)) { cluster.sim.advance(time); }
  Value ask(const std::string& name, const std::string& signer, const std::string& usages,
            const char* pem = kRequest) {
    Value object = from_text(cat("{'metadata':{'name':'", name, "'},'spec':{'signerName':'", signer,
                                 "','usages':", usages, "}}"));
    object.mut("spec").set("request", base64_encode(pem));
    auto made = cluster.api->create(kRequests, "", object);
    EXPECT_TRUE(made.ok()) << made.error().message();
    settle();
    return cluster.get(kRequests, "", name);
  }
  void approve(const std::string& name) {
    Value object = cluster.get(kRequests, "", name);
    object.mut("status")
        .mut("conditions")
        .push(from_text("{'type':'Approved','status':'True','reason':'Test','message':'m'}"));
    auto written = cluster.api->update(kRequests, "", object, {.subresource = "approval"});
    EXPECT_TRUE(written.ok()) << written.error().message();
    settle();
  }
  Value request(const std::string& name) { return cluster.get(kRequests, "", name); }

  cluster::test::TestCluster cluster;
};

TEST_F(CertificatesTest, kubelets_get_theirs_at_once) {
  settle();
  const Value signed_one = ask("node", kKubeletClientSigner, "['client auth','digital signature']");

  EXPECT_EQ(condition_in(signed_one["status"]["conditions"], "Approved")["reason"].as_string(),
            "AutoApproved");
  std::string pem;
  ASSERT_TRUE(base64_decode(signed_one["status"]["certificate"].as_string(), pem));
  const auto info = net::parse_certificate(pem);
  ASSERT_TRUE(info.ok()) << pem;
  EXPECT_EQ(info->common_name, "system:node:n1");
  EXPECT_TRUE(info->for_clients);
  EXPECT_EQ(info->issuer_common_name, "test");

  settle(std::chrono::minutes(61));
  EXPECT_TRUE(request("node").is_null()) << "done with, after an hour";
}

TEST_F(CertificatesTest, others_wait_for_an_approval) {
  settle();
  const std::string signer = "kubernetes.io/kube-apiserver-client";
  EXPECT_TRUE(ask("user", signer, "['client auth']")["status"]["certificate"].is_null());
  approve("user");
  EXPECT_FALSE(request("user")["status"]["certificate"].as_string().empty());

  ask("serving", kServing, "['server auth','digital signature']");
  approve("serving");
  const Value failed = condition_in(request("serving")["status"]["conditions"], "Failed");
  EXPECT_EQ(failed["reason"].as_string(), "SignerValidationFailure");
  EXPECT_EQ(failed["message"].as_string(), "DNS or IP subjectAltName is required");

  ask("foreign", "example.com/own", "['client auth']");
  approve("foreign");
  EXPECT_TRUE(request("foreign")["status"]["certificate"].is_null());
  EXPECT_EQ(request("foreign")["status"]["conditions"].size(), 1U);
}

TEST_F(CertificatesTest, what_has_two_names_fails) {
  settle();
  ask("two", kKubeletClientSigner, "['client auth','digital signature']", kTwoNamesRequest);
  EXPECT_TRUE(request("two")["status"]["conditions"].empty()) << "not approved by itself";
  approve("two");
  EXPECT_TRUE(request("two")["status"]["certificate"].is_null());
  const Value failed = condition_in(request("two")["status"]["conditions"], "Failed");
  EXPECT_EQ(failed["message"].as_string(), "the subject has more than one common name");
}

TEST_F(CertificatesTest, secrets_hold_tokens_of_their_account) {
  cluster.create({"", "v1", "serviceaccounts"}, "default", "{'metadata':{'name':'bot'}}");
  cluster.create(kSecrets, "default",
                 "{'metadata':{'name':'s','annotations':{'kubernetes.io/service-account.name':"
                 "'bot'}},'type':'kubernetes.io/service-account-token'}");
  settle();
  const Value secret = cluster.get(kSecrets, "default", "s");
  EXPECT_FALSE(secret["data"]["token"].as_string().empty());
  EXPECT_EQ(secret["data"]["ca.crt"].as_string(), base64_encode("CA"));
  EXPECT_EQ(secret["data"]["namespace"].as_string(), base64_encode("default"));
  EXPECT_FALSE(annotation_of(secret, "kubernetes.io/service-account.uid").empty());

  cluster.remove({"", "v1", "serviceaccounts"}, "default", "bot");
  settle();
  EXPECT_TRUE(cluster.get(kSecrets, "default", "s").is_null());
}

TEST_F(CertificatesTest, secrets_of_nobody_go) {
  settle();
  cluster.create(kSecrets, "default",
                 "{'metadata':{'name':'s','annotations':{'kubernetes.io/service-account.name':"
                 "'nobody'}},'type':'kubernetes.io/service-account-token'}");
  settle();
  EXPECT_TRUE(cluster.get(kSecrets, "default", "s").is_null());
}

TEST_F(CertificatesTest, accounts_forget_secrets_that_are_gone) {
  cluster.create({"", "v1", "serviceaccounts"}, "default",
                 "{'metadata':{'name':'bot'},'secrets':[{'name':'s'},{'name':'other'}]}");
  cluster.create(kSecrets, "default",
                 "{'metadata':{'name':'s','annotations':{'kubernetes.io/service-account.name':"
                 "'bot'}},'type':'kubernetes.io/service-account-token'}");
  settle();
  cluster.remove(kSecrets, "default", "s");
  settle();
  EXPECT_EQ(cluster.get({"", "v1", "serviceaccounts"}, "default", "bot")["secrets"],
            from_text("[{'name':'other'}]"));
}

TEST_F(CertificatesTest, bootstrap_tokens_go_when_their_time_is_up) {
  const auto add = [&](const char* name, const std::string& end) {
    Value secret =
        from_text(cat("{'metadata':{'name':'", name, "'},'type':'bootstrap.kubernetes.io/token'}"));
    secret.mut("data").set("expiration", base64_encode(end));
    EXPECT_TRUE(cluster.api->create(kSecrets, "kube-system", secret).ok());
  };
  add("bootstrap-token-aaaaaa", format_rfc3339(cluster.sim.now() + std::chrono::minutes(5)));
  add("bootstrap-token-bbbbbb", "whenever");
  settle();
  EXPECT_TRUE(cluster.get(kSecrets, "kube-system", "bootstrap-token-bbbbbb").is_null());
  EXPECT_FALSE(cluster.get(kSecrets, "kube-system", "bootstrap-token-aaaaaa").is_null());
  settle(std::chrono::minutes(5));
  EXPECT_TRUE(cluster.get(kSecrets, "kube-system", "bootstrap-token-aaaaaa").is_null());
}

TEST_F(CertificatesTest, bootstrap_tokens_sign_where_the_cluster_is) {
  const Gvr maps = {"", "v1", "configmaps"};
  cluster.create(maps, "kube-public",
                 "{'metadata':{'name':'cluster-info'},'data':{'kubeconfig':'some content',"
                 "'jws-kubeconfig-zzzzzz':'old'}}");
  Value secret = from_text(
      "{'metadata':{'name':'bootstrap-token-abcdef'},'type':'bootstrap.kubernetes.io/token'}");
  secret.mut("data").set("token-id", base64_encode("abcdef"));
  secret.mut("data").set("token-secret", base64_encode("0123456789abcdef"));
  secret.mut("data").set("usage-bootstrap-signing", base64_encode("true"));
  EXPECT_TRUE(cluster.api->create(kSecrets, "kube-system", secret).ok());
  settle();
  const auto data = [&] { return cluster.get(maps, "kube-public", "cluster-info")["data"]; };
  EXPECT_EQ(
      data()["jws-kubeconfig-abcdef"].as_string(),
      "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..Ak-Sq5TJaZVVofPrFWqrt2J4qwsYNxitnuh0Ygr6oz4");
  EXPECT_FALSE(data().contains("jws-kubeconfig-zzzzzz")) << "of no token";

  cluster.remove(kSecrets, "kube-system", "bootstrap-token-abcdef");
  settle();
  EXPECT_EQ(data().size(), 1U);
}

}  // namespace
}  // namespace dibs::controllers
