#include "net/x509.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/pem.h"
#include "base/strings.h"
#include "net/jwt.h"
#include "net/testing/test_support.h"
#include "net/tls.h"

namespace dibs::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string der_of(std::string_view pem) {
  const auto block = next_pem_block(pem);
  return block ? block->bytes : "";
}

bool check_pair(const Credential& credential) {
  return TlsContext::server({credential.certificate_pem, credential.key_pem}).ok();
}

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

// Until 9966, which as nanoseconds has no place in 64 bits.
TEST(X509, takes_a_certificate_that_ends_in_ages_for_a_good_one) {
  const auto info = parse_certificate(
      "-----BEGIN CERTIFICATE-----\n"
      "MIIBfDCCASGgAwIBAgIUUBkqASQsyWtk5Cj4HhM75m3GK7swCgYIKoZIzj0EAwIw\n"
      "EjEQMA4GA1UEAwwHZW5kbGVzczAgFw0yNjExMTkxNTA3MjhaGA85OTY2MTAyNTE1\n"
      "MDcyOFowEjEQMA4GA1UEAwwHZW5kbGVzczBZMBMGByqGSM49AgEGCCqGSM49AwEH\n"
      "A0IABMFHpAcrLkUHO+nMWHH8Tudiv1MvJbZhIHPwfkyscNZ0r02yNSbx/h1P13NR\n"
      "asyUkSOHPEc6ATbVurBmGpwWO5KjUzBRMB0GA1UdDgQWBBSH7Rz1UFMlXUlbrwSt\n"
      "Fgswrx7mxjAfBgNVHSMEGDAWgBSH7Rz1UFMlXUlbrwStFgswrx7mxjAPBgNVHRMB\n"
      "Af8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCHGygrALF4X0nb17h1XX6kUioS\n"
      "ZE/aGfrTipmnHQ2gygIhANyvqqvUU44bibT35rbHfcRqbKE1eUScoEzHMQ9VgCve\n"
      "-----END CERTIFICATE-----\n");
  ASSERT_TRUE(info.ok()) << info.error().message();
  EXPECT_EQ(info->common_name, "endless");
  EXPECT_GT(info->not_before, Time::from_seconds(1'700'000'000));
  EXPECT_GT(info->not_after, Time::from_seconds(9'000'000'000));
  EXPECT_GT(info->not_after - info->not_before, Duration(0));
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

TEST(X509, tells_whether_an_authority_can_sign) {
  EXPECT_TRUE(check_authority(test_ca()).ok());
  const auto fault = [](const Credential& ca) { return check_authority(ca).error().message(); };
  EXPECT_EQ(fault(test_server_certificate()), "CA: the certificate is not that of an authority");
  Credential mixed = test_ca();
  mixed.key_pem = *make_private_key();
  EXPECT_EQ(fault(mixed), "CA: the key does not match the certificate");
  EXPECT_EQ(fault({"rubbish", mixed.key_pem}), "no PEM certificate found");
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

TEST(X509, signs_requests_for_the_usages_that_it_is_told) {
  const auto signed_pem =
      sign_request(test_ca(), kRequest, {"digital signature", "server auth"}, test_validity());
  ASSERT_TRUE(signed_pem.ok()) << signed_pem.error().message();

  const auto info = parse_certificate(*signed_pem);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->common_name, "system:node:n1");
  EXPECT_THAT(info->organizations, ElementsAre("system:nodes"));
  EXPECT_THAT(info->dns_names, ElementsAre("n1"));
  EXPECT_THAT(info->ip_addresses, ElementsAre("10.0.0.1"));
  EXPECT_TRUE(info->for_servers);
  EXPECT_FALSE(info->for_clients);
  EXPECT_FALSE(info->is_ca);
  EXPECT_TRUE(is_issued_by(*signed_pem, test_ca().certificate_pem));

  EXPECT_FALSE(sign_request(test_ca(), "rubbish", {"client auth"}, test_validity()).ok());
  EXPECT_FALSE(sign_request(test_ca(), kRequest, {"world rule"}, test_validity()).ok());
  const auto authority = sign_request(test_ca(), kRequest, {"cert sign"}, test_validity());
  ASSERT_TRUE(authority.ok());
  EXPECT_FALSE(parse_certificate(*authority)->is_ca) << "whatever the usages say";
}

// As above, with -subj "/O=system:masters/CN=evil".
constexpr const char* kMastersRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHiMIGKAgEAMCgxFzAVBgNVBAoMDnN5c3RlbTptYXN0ZXJzMQ0wCwYDVQQDDARl
dmlsMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8g83b8Y4vsaX6qm1FzZQH0pf
bOt5hlgSPL3a1721+b/hamOMhkFHWOvO97pnKJDjWa1371qvZedXBGg1/5UTDKAA
MAoGCCqGSM49BAMCA0cAMEQCIBdvNS5dn1lHGt8IcgLTGdU2im4dkml3KyqGs2G9
O2dhAiB+XvTPCp59kf00+NtTR9MRhTlfsDMjPZpAacnF1qkBUw==
-----END CERTIFICATE REQUEST-----
)";

TEST(X509, reads_and_signs_the_request_that_validation_sees_where_a_block_is_damaged) {
  std::string damaged = kMastersRequest;
  damaged.insert(damaged.find("\n-----END"), "-");
  const std::string text = damaged + kRequest;

  const auto request = parse_signing_request(text);
  ASSERT_TRUE(request.ok()) << request.error().message();
  EXPECT_EQ(request->common_name, "system:node:n1");
  const auto signed_pem = sign_request(test_ca(), text, {"client auth"}, test_validity());
  ASSERT_TRUE(signed_pem.ok()) << signed_pem.error().message();
  EXPECT_EQ(parse_certificate(*signed_pem)->common_name, "system:node:n1");
  EXPECT_FALSE(parse_signing_request(damaged).ok());
}

TEST(X509, refuses_requests_of_another_type_or_with_more_behind_them) {
  std::string other = kRequest;
  for (auto at = other.find("CERTIFICATE"); at != other.npos; at = other.find("CERTIFICATE", at))
    other.replace(at, std::string_view("CERTIFICATE").size(), "NEW CERTIFICATE"), at += 15;
  EXPECT_FALSE(parse_signing_request(other).ok());

  const std::string bytes = der_of(kRequest);
  const auto as_pem = [](std::string_view der) {
    return cat("-----BEGIN CERTIFICATE REQUEST-----\n", base64_encode(der),
               "\n-----END CERTIFICATE REQUEST-----\n");
  };
  EXPECT_TRUE(parse_signing_request(as_pem(bytes)).ok());
  EXPECT_FALSE(parse_signing_request(as_pem(bytes + "x")).ok());
}

// As above, with -subj "/CN=n1" -addext "subjectAltName=DER:30:05:87:03:01:02:03".
constexpr const char* kShortAddressRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIHqMIGQAgEAMA0xCzAJBgNVBAMMAm4xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAE225ppR2iaqrV7dMAz5WCnt1I/PFVf7cM3sLTWRSSzPo78e7fmfjxl4ZMZ/wc
WElLqpJYqVqjNr5lWRQ4K6Vaj6AhMB8GCSqGSIb3DQEJDjESMBAwDgYDVR0RBAcw
BYcDAQIDMAoGCCqGSM49BAMCA0kAMEYCIQDeLGzFBKz1xxQsM1MvTcptZ2d8JjEC
NuF7zTM11ihabQIhAPriyi24+cjfMfswPWt7WlUl8fPTZftWgg48ixnLhxwO
-----END CERTIFICATE REQUEST-----
)";

TEST(X509, takes_bytes_that_are_no_address_for_none) {
  const auto request = parse_signing_request(kShortAddressRequest);
  ASSERT_TRUE(request.ok()) << request.error().message();
  EXPECT_THAT(request->ip_addresses, IsEmpty());

  const auto signed_pem =
      sign_request(test_ca(), kShortAddressRequest, {"client auth"}, test_validity());
  ASSERT_TRUE(signed_pem.ok()) << signed_pem.error().message();
  const std::string der = der_of(*signed_pem);
  EXPECT_EQ(der.find("\x87\x03\x01\x02\x03"), der.npos) << "what rules did not see is not signed";
}

// As above, with -subj "/O=system:nodes/CN=system:node:n1/CN=system:node:n2".
constexpr const char* kTwoNamesRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBBDCBqwIBADBJMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxFzAVBgNVBAMMDnN5
c3RlbTpub2RlOm4xMRcwFQYDVQQDDA5zeXN0ZW06bm9kZTpuMjBZMBMGByqGSM49
AgEGCCqGSM49AwEHA0IABKXg/iYKXe4z+nO7UA1Phrlmsuw37YSkR4XvhCAs3K2E
+rtT0C5tINKw+SZ02I3BInM48vm76CleW3Foxv6xLOKgADAKBggqhkjOPQQDAgNI
ADBFAiAWpHEs+wuPYWkSLmb7j4R7rYm3PwJc/dgKXgMpYfy4VAIhAPHofEMqE4Wy
oYWfadJsiOgNBCUK9UgTBLf52Bq/siHQ
-----END CERTIFICATE REQUEST-----
)";
// As above, with -subj "/O=system:nodes/OU=evil/UID=7/CN=system:node:n1".
constexpr const char* kOddSubjectRequest = R"(-----BEGIN CERTIFICATE REQUEST-----
MIIBDjCBtAIBADBSMRUwEwYDVQQKDAxzeXN0ZW06bm9kZXMxDTALBgNVBAsMBGV2
aWwxETAPBgoJkiaJk/IsZAEBDAE3MRcwFQYDVQQDDA5zeXN0ZW06bm9kZTpuMTBZ
MBMGByqGSM49AgEGCCqGSM49AwEHA0IABIaJOBjXVOuGdfDfe5Q2D7G8d4nSg2KK
rN5J0vhtt0o+qM58dYu+0CGaY1EWQ4p5Edl+AUWNnZpdzj71B5dPohWgADAKBggq
hkjOPQQDAgNJADBGAiEApW7AtKz9a32HMaHi4BPTb7jQpdGJynBkvI9y8UMNvfUC
IQCMa2MncBu4Cbt627+w8YhXAabbt9GG3fPH2QITqC3Efw==
-----END CERTIFICATE REQUEST-----
)";

TEST(X509, refuses_requests_with_two_common_names) {
  const auto request = parse_signing_request(kTwoNamesRequest);
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.error().message(), "the subject has more than one common name");
  EXPECT_FALSE(sign_request(test_ca(), kTwoNamesRequest, {"client auth"}, test_validity()).ok());
}

TEST(X509, signs_only_the_parts_of_a_subject_that_are_known) {
  const std::string user_id = "\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x01";  // its OID
  ASSERT_NE(der_of(kOddSubjectRequest).find(user_id), std::string::npos);

  const auto signed_pem =
      sign_request(test_ca(), kOddSubjectRequest, {"client auth"}, test_validity());

  ASSERT_TRUE(signed_pem.ok()) << signed_pem.error().message();
  EXPECT_EQ(der_of(*signed_pem).find(user_id), std::string::npos);
  EXPECT_NE(der_of(*signed_pem).find("evil"), std::string::npos);
  const auto info = parse_certificate(*signed_pem);
  EXPECT_EQ(info->common_name, "system:node:n1");
  EXPECT_THAT(info->organizations, ElementsAre("system:nodes"));
}

TEST(X509, asks_for_what_another_signs) {
  const std::string name = "system:node:" + std::string(200, 'n');
  const auto key = make_private_key();
  ASSERT_TRUE(key.ok());
  const auto request = make_signing_request(*key, name, {"system:nodes"});
  ASSERT_TRUE(request.ok()) << request.error().message();
  const auto asked = parse_signing_request(*request);
  ASSERT_TRUE(asked.ok()) << asked.error().message();
  EXPECT_EQ(asked->common_name, name);
  EXPECT_THAT(asked->organizations, ElementsAre("system:nodes"));
  EXPECT_THAT(asked->dns_names, IsEmpty());

  const auto made = sign_request(test_ca(), *request, {"client auth"}, test_validity());
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_TRUE(check_pair({*made, *key})) << "the certificate is for the key";
  EXPECT_FALSE(make_signing_request("no key", name, {}).ok());
}

TEST(X509, hashes_a_public_key_as_openssl_does) {
  // openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum
  const auto hash = public_key_hash(R"(-----BEGIN CERTIFICATE-----
MIIBejCCAR+gAwIBAgIUJZhSYEjMjgvmaASUje0qYypXDMAwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGcGlubmVkMCAXDTI2MTExODIwMDkyOFoYDzIxMjYxMDI1MjAw
OTI4WjARMQ8wDQYDVQQDDAZwaW5uZWQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AASUbkLFcplhb54kRpTQDTKEI135GF4zt/280xifam9R5XUcU4NE1c9qkGf131tM
gg0I1WnBYD9l/XQjsQaHvWxIo1MwUTAdBgNVHQ4EFgQUjCjh+1265l7tH6vnZfMa
48i/wqwwHwYDVR0jBBgwFoAUjCjh+1265l7tH6vnZfMa48i/wqwwDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNJADBGAiEA9X9B3SOhu9k6PBSodwQYfBAUsH4h
fZbbtGFd0RaTGdsCIQCq3IJgQq7zhldj9yU0DmIKGFN/xKyfqjvGPDDz9wxxtA==
-----END CERTIFICATE-----
)");
  ASSERT_TRUE(hash.ok());
  EXPECT_EQ(*hash, "sha256:fbf16ffcd6136859ab6d5c9812ead8b4dee5a98e26fbc19cff9e6764f2a41eeb");
  EXPECT_FALSE(public_key_hash("").ok());
  EXPECT_FALSE(public_key_hash("garbage").ok());
}

}  // namespace
}  // namespace dibs::net
