#include "net/x509.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/jwt.h"
#include "net/testing/test_support.h"

namespace dibs::net {
namespace {

using testing::ElementsAre;

TEST(X509, makes_a_ca) {
  const auto ca = make_ca("dibs-ca", test_validity());
  ASSERT_TRUE(ca.ok());
  const auto info = parse_certificate(ca->certificate_pem);
  ASSERT_TRUE(info.ok());
  EXPECT_TRUE(info->is_ca);
  EXPECT_EQ(info->common_name, "dibs-ca");
  EXPECT_EQ(info->issuer_common_name, "dibs-ca");
  EXPECT_EQ(info->not_before, test_validity().not_before);
  EXPECT_EQ(info->not_after, test_validity().not_after);
}

TEST(X509, issues_server_certificates) {
  const auto made = issue_server_certificate(
      test_ca(), "kube-apiserver", {"kubernetes.default.svc", "10.96.0.1", "::1", "*.x.y"},
      test_validity());
  ASSERT_TRUE(made.ok());
  const auto info = parse_certificate(made->certificate_pem);
  ASSERT_TRUE(info.ok());
  EXPECT_FALSE(info->is_ca);
  EXPECT_TRUE(info->for_servers);
  EXPECT_FALSE(info->for_clients);
  EXPECT_THAT(info->dns_names, ElementsAre("kubernetes.default.svc", "*.x.y"));
  EXPECT_THAT(info->ip_addresses, ElementsAre("10.96.0.1", "::1"));
  EXPECT_TRUE(is_issued_by(made->certificate_pem, test_ca().certificate_pem));
  EXPECT_FALSE(
      is_issued_by(made->certificate_pem, make_ca("test-ca", test_validity())->certificate_pem));
}

TEST(X509, issues_client_certificates_with_any_characters) {
  const auto made = issue_client_certificate(test_ca(), "system:node:a,b=c",
                                             {"system:masters", "grüppe"}, test_validity());
  ASSERT_TRUE(made.ok());
  const auto info = parse_certificate(made->certificate_pem);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->common_name, "system:node:a,b=c");
  EXPECT_THAT(info->organizations, ElementsAre("system:masters", "grüppe"));
  EXPECT_TRUE(info->for_clients);
  EXPECT_NE(info->serial, parse_certificate(test_ca().certificate_pem)->serial);
}

TEST(X509, reports_broken_input) {
  EXPECT_FALSE(parse_certificate("rubbish").ok());
  EXPECT_FALSE(parse_signing_request("rubbish").ok());
  Credential mixed = test_ca();
  mixed.key_pem = *make_private_key();
  const auto made = issue_client_certificate(mixed, "x", {}, test_validity());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "CA: the key does not match the certificate");
  // Longer than X.509 allows a common name to be.
  EXPECT_FALSE(issue_client_certificate(test_ca(), std::string(65, 'x'), {}, test_validity()).ok());
}

// Made with: openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256
//   -subj "/O=system:nodes/CN=system:node:n1" -addext "subjectAltName=DNS:n1,IP:10.0.0.1"
constexpr const char* kRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBEDCBuAIBADAwMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5
c3RlbTpub2RlOm4xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEDKxEQHwVolKh
Q66B33jj/MRbr1yLiLBxtt49ds3rBfTxCM0qB2EwNThhtk42opdAseUvmM3BTOX+
g57EYy+C3KAmMCQGCSqGSIb3DQEJDjEXMBUwEwYDVR0RBAwwCoICbjGHBAoAAAEw
CgYIKoZIzj0EAwIDRwAwRAIgIcXvze2UaZlo2c1b///5dJkXPSBuiTHUnT0mH564
N2gCIET/8rCgsNInqkCFUEAuEQBPF+Du7TwOwy2MUbLRHzGo
-----END CERTIFICATE REQUEST-----
)";

TEST(X509, reads_requests) {
  const auto request = parse_signing_request(kRequest);
  ASSERT_TRUE(request.ok()) << request.error().message();
  EXPECT_EQ(request->common_name, "system:node:n1");
  EXPECT_THAT(request->organizations, ElementsAre("system:nodes"));
  EXPECT_THAT(request->dns_names, ElementsAre("n1"));
  EXPECT_THAT(request->ip_addresses, ElementsAre("10.0.0.1"));
}

}  // namespace
}  // namespace dibs::net
