#include "api/kinds/access/pod_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/access/certificate_material.h"
#include "api/kinds/access/mail_address.h"
#include "base/strings.h"
#include "json/test_text.h"
#include "net/key_pair.h"
#include "net/x509.h"

namespace dibs::api {
namespace {

using json::test::from_text;
using std::chrono::hours;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Time now() { return *parse_rfc3339("2026-03-01T12:00:00Z"); }

std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(error.field + ": " + error.text);
  return out;
}

const net::KeyAndProof& pair_of(const std::string& type) {
  static std::map<std::string, net::KeyAndProof> made;
  if (!made.contains(type)) made[type] = *net::make_key_and_proof(type);
  return made[type];
}

std::string as_pem(const std::string& der) {
  const std::string text = base64_encode(der);
  std::string out = "-----BEGIN CERTIFICATE REQUEST-----\n";
  for (std::size_t i = 0; i < text.size(); i += 64) append(out, text.substr(i, 64), "\n");
  return out + "-----END CERTIFICATE REQUEST-----\n";
}

Value asked(const std::string& type = "ED25519") {
  Value request = from_text(R"({'metadata': {'name': 'req-1', 'namespace': 'ns'},
    'spec': {'signerName': 'example.com/mine', 'podName': 'p', 'podUID': 'pod-uid',
             'serviceAccountName': 'default', 'serviceAccountUID': 'account-uid',
             'nodeName': 'node-0', 'nodeUID': 'node-uid', 'maxExpirationSeconds': 86400,
             'pkixPublicKey': null, 'proofOfPossession': null}, 'status': {}})");
  request.mut("spec").set("stubPKCS10Request", base64_encode(pair_of(type).request_der));
  return request;
}

std::vector<std::string> faults(const Value& request) {
  FieldErrors errors;
  pod_certificate_request_rules().validate(request, errors);
  return texts(errors);
}

const net::Credential& authority() {
  static const net::Credential ca =
      *net::make_ca("test", {now() - hours(24), now() + hours(24 * 365)});
  return ca;
}

std::string certificate_for(const std::string& type, Time from, Time to) {
  return *net::sign_request(authority(), as_pem(pair_of(type).request_der), {"client auth"},
                            {from, to});
}

Value condition(const std::string& type, const std::string& status = "True") {
  return from_text(cat("{'type': '", type, "', 'status': '", status,
                       "', 'reason': 'Why', 'message': '', 'lastTransitionTime': "
                       "'2026-03-01T12:00:00Z'}"));
}

/// As a signer answers, with a certificate of this life.
Value issued(Time from, Time to, const std::string& type = "ED25519") {
  Value request = asked(type);
  Value& status = request.mut("status");
  status.mut("conditions").push(condition("Issued"));
  status.set("certificateChain", certificate_for(type, from, to));
  status.set("notBefore", format_rfc3339(from));
  status.set("notAfter", format_rfc3339(to));
  status.set("beginRefreshAt", format_rfc3339(to - minutes(30)));
  return request;
}

std::vector<std::string> status_faults(const Value& request, const Value& old) {
  FieldErrors errors;
  pod_certificate_request_rules().validate_status_at(request, old, now(), errors);
  return texts(errors);
}

// --- spec ---

TEST(PodCertificateRequest, takes_every_key_that_pods_may_have) {
  for (const char* type : {"RSA3072", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}) {
    EXPECT_THAT(faults(asked(type)), IsEmpty()) << type;
  }
}

TEST(PodCertificateRequest, must_prove_that_the_key_is_there) {
  Value request = asked();
  std::string der = pair_of("ED25519").request_der;
  der.back() = static_cast<char>(der.back() ^ 1);
  request.mut("spec").set("stubPKCS10Request", base64_encode(der));
  EXPECT_THAT(faults(request),
              ElementsAre("spec.stubPKCS10Request: Invalid value: invalid signature"));

  request.mut("spec").set("stubPKCS10Request", base64_encode("no request"));
  EXPECT_THAT(faults(request),
              ElementsAre("spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"));

  // What follows a request is no part of one.
  request.mut("spec").set("stubPKCS10Request", base64_encode(pair_of("ED25519").request_der + "x"));
  EXPECT_THAT(faults(request),
              ElementsAre("spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"));

  request.mut("spec").set("stubPKCS10Request", base64_encode(std::string(10241, 'x')));
  EXPECT_THAT(faults(request),
              ElementsAre("spec.stubPKCS10Request: Too long: may not be more than 10240 bytes"));
}

TEST(PodCertificateRequest, has_one_proof_of_possession) {
  constexpr const char* kFault =
      "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, "
      "proofOfPossession) must be set";
  Value none = asked();
  none.mut("spec").set("stubPKCS10Request", Value());
  EXPECT_THAT(faults(none), ElementsAre(kFault));

  Value both = asked();
  both.mut("spec").set("pkixPublicKey", "AAAA");
  EXPECT_THAT(faults(both), ElementsAre(kFault));
}

TEST(PodCertificateRequest, reads_the_older_proof_of_possession) {
  Value request = asked();
  Value& spec = request.mut("spec");
  const auto stub = read_stub_request(pair_of("ED25519").request_der);
  ASSERT_TRUE(stub);
  spec.set("stubPKCS10Request", Value());
  spec.set("pkixPublicKey", base64_encode(stub->key.der));
  spec.set("proofOfPossession", base64_encode(std::string(64, 'x')));
  EXPECT_THAT(
      faults(request),
      ElementsAre("spec.proofOfPossession: Invalid value: could not verify proof-of-possession "
                  "signature"));

  spec.set("pkixPublicKey", "AAAA");
  EXPECT_THAT(faults(request),
              ElementsAre("spec.pkixPublicKey: Invalid value: \"AAAA\": must be a valid "
                          "PKIX-serialized public key"));
}

TEST(PodCertificateRequest, names_whom_it_is_for) {
  Value request = asked();
  Value& spec = request.mut("spec");
  spec.set("podUID", "");
  spec.set("nodeUID", std::string(129, 'x'));
  spec.set("signerName", "mine");
  EXPECT_THAT(faults(request),
              ElementsAre("spec.signerName: Invalid value: \"mine\": must be a fully qualified "
                          "domain and path of the form 'example.com/signer-name'",
                          "spec.podUID: Invalid value: \"\": must not be empty",
                          "spec.nodeUID: Too long: may not be more than 128 bytes"));
}

TEST(PodCertificateRequest, lives_as_long_as_its_signer_may_give) {
  Value request = asked();
  request.mut("spec").set("maxExpirationSeconds", 91 * 86400);
  EXPECT_THAT(faults(request), IsEmpty());
  request.mut("spec").set("maxExpirationSeconds", 3599);
  EXPECT_THAT(faults(request),
              ElementsAre("spec.maxExpirationSeconds: Invalid value: 3599: must be in the range "
                          "[3600, 7862400]"));
  request.mut("spec").set("signerName", "kubernetes.io/kube-apiserver-client-pod");
  request.mut("spec").set("maxExpirationSeconds", 86401);
  EXPECT_THAT(faults(request),
              ElementsAre("spec.maxExpirationSeconds: Invalid value: 86401: must be in the range "
                          "[3600, 86400]"));
}

TEST(PodCertificateRequest, wants_a_domain_before_the_keys_of_users) {
  Value request = asked();
  request.mut("spec").set("unverifiedUserAnnotations",
                          from_text("{'Example.com/A': 'x', 'plain': 'y'}"));
  EXPECT_THAT(faults(request),
              ElementsAre("spec.unverifiedUserAnnotations: Invalid value: \"plain\": must be a "
                          "domain-prefixed key (such as \"acme.io/foo\")"));
}

TEST(PodCertificateRequest, stays_as_it_was_asked) {
  const KindRules rules = pod_certificate_request_rules();
  const Value old = asked();
  Value changed = old;
  changed.mut("metadata").set("labels", from_text("{'a': 'b'}"));
  FieldErrors none;
  rules.validate_update(changed, old, none);
  EXPECT_THAT(texts(none), IsEmpty());

  changed.mut("spec").set("podName", "other");
  FieldErrors errors;
  rules.validate_update(changed, old, errors);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(texts(errors)[0],
              HasSubstr("spec: Invalid value: {\"SignerName\":\"example.com/mine\",\"PodName\":"
                        "\"other\",\"PodUID\":\"pod-uid\""));
  EXPECT_THAT(texts(errors)[0],
              HasSubstr("\"UnverifiedUserAnnotations\":null}: field is immutable"));
}

TEST(PodCertificateRequest, begins_without_an_answer) {
  Value request = issued(now(), now() + hours(24));
  pod_certificate_request_rules().prepare_create(request, {now(), ""});
  EXPECT_EQ(request["status"], Value::object());
}

// --- status ---

TEST(PodCertificateStatus, is_a_certificate_for_the_key_that_was_asked_for) {
  for (const char* type : {"RSA3072", "ECDSAP256", "ECDSAP521", "ED25519"}) {
    EXPECT_THAT(status_faults(issued(now(), now() + hours(24), type), asked(type)), IsEmpty());
  }
  EXPECT_THAT(status_faults(issued(now(), now() + hours(24), "ECDSAP256"), asked("ED25519")),
              ElementsAre(testing::EndsWith(
                  "leaf certificate was not issued to the requested public key")));
}

TEST(PodCertificateStatus, has_a_chain_of_certificates) {
  const Value good = issued(now(), now() + hours(24));
  const auto with_chain = [&](const std::string& chain) {
    Value request = good;
    request.mut("status").set("certificateChain", chain);
    return status_faults(request, asked());
  };
  const std::string leaf = good["status"]["certificateChain"].str();
  EXPECT_THAT(with_chain(leaf + "words\n" + authority().certificate_pem), IsEmpty());
  EXPECT_THAT(with_chain(""),
              ElementsAre("status.certificateChain: Invalid value: \"\": issued certificate chain "
                          "must contain at least one certificate"));
  EXPECT_THAT(with_chain(authority().key_pem),
              ElementsAre(testing::EndsWith("must consist entirely of CERTIFICATE PEM blocks")));
  EXPECT_THAT(with_chain(leaf + authority().key_pem),
              ElementsAre(testing::EndsWith("must consist entirely of CERTFICATE PEM blocks")));
  EXPECT_THAT(with_chain("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
              ElementsAre(testing::EndsWith("leaf certificate does not parse as valid X.509")));
  EXPECT_THAT(
      with_chain(leaf + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
      ElementsAre(testing::EndsWith("intermediate certificate does not parse as valid X.509")));
}

TEST(PodCertificateStatus, tells_the_times_of_the_certificate) {
  Value request = issued(now(), now() + hours(24));
  Value& status = request.mut("status");
  for (const char* field : {"notBefore", "notAfter", "beginRefreshAt"}) status.erase(field);
  EXPECT_THAT(
      status_faults(request, asked()),
      ElementsAre("status.notBefore: Required value: must be present and consistent with the "
                  "issued certificate",
                  "status.notAfter: Required value: must be present and consistent with the issued "
                  "certificate",
                  "status.beginRefreshAt: Required value: must be present and in the range "
                  "[notbefore+10min, notafter-10min]"));

  request = issued(now(), now() + hours(24));
  request.mut("status").set("notBefore", format_rfc3339(now() + minutes(1)));
  EXPECT_THAT(status_faults(request, asked()),
              ElementsAre("status.notBefore: Invalid value: \"2026-03-01T12:01:00Z\": must be set "
                          "to the NotBefore time encoded in the leaf certificate"));

  EXPECT_THAT(status_faults(issued(now() - minutes(5), now() + hours(23)), asked()),
              ElementsAre("status.notBefore: Invalid value: \"2026-03-01T11:55:00Z\": must be set "
                          "to within 5 minutes of kube-apiserver's current time"));

  request = issued(now(), now() + hours(24));
  request.mut("status").set("notAfter", format_rfc3339(now() + hours(23)));
  EXPECT_THAT(status_faults(request, asked()),
              ElementsAre(testing::EndsWith(
                  "must be set to the NotAfter time encoded in the leaf certificate")));
}

TEST(PodCertificateStatus, lives_no_shorter_and_no_longer_than_allowed) {
  EXPECT_THAT(status_faults(issued(now(), now() + minutes(59)), asked()),
              ElementsAre("status.certificateChain: Invalid value: 3540000000000: leaf certificate "
                          "lifetime must be >= 1 hour"));
  EXPECT_THAT(status_faults(issued(now(), now() + hours(25)), asked()),
              ElementsAre("status.certificateChain: Invalid value: 90000000000000: leaf "
                          "certificate lifetime must be <= spec.maxExpirationSeconds (86400)"));
}

TEST(PodCertificateStatus, leaves_room_for_the_next_certificate) {
  Value request = issued(now(), now() + hours(1));
  request.mut("status").set("beginRefreshAt", format_rfc3339(now() + minutes(9)));
  EXPECT_THAT(status_faults(request, asked()),
              ElementsAre(testing::EndsWith("must be at least 10 minutes after status.notBefore")));
  request.mut("status").set("beginRefreshAt", format_rfc3339(now() + minutes(51)));
  EXPECT_THAT(status_faults(request, asked()),
              ElementsAre(testing::EndsWith("must be at least 10 minutes before status.notAfter")));
}

TEST(PodCertificateStatus, has_one_known_condition_that_is_true) {
  Value request = asked();
  Value& conditions = request.mut("status").mut("conditions");
  conditions.push(condition("Denied", "False"));
  conditions.push(condition("Failed"));
  conditions.push(condition("Ready"));
  EXPECT_THAT(
      status_faults(request, asked()),
      ElementsAre("status.conditions.[0].status: Unsupported value: \"False\": supported values: "
                  "\"True\"",
                  "status.conditions.[1].type: Invalid value: \"Failed\": There may be at most one "
                  "condition with type \"Issued\", \"Denied\", or \"Failed\"",
                  "status.conditions.[2].type: Unsupported value: \"Ready\": supported values: "
                  "\"Issued\", \"Denied\", \"Failed\""));
}

TEST(PodCertificateStatus, brings_no_certificate_with_a_refusal) {
  Value denied = asked();
  denied.mut("status").mut("conditions").push(condition("Denied"));
  EXPECT_THAT(status_faults(denied, asked()), IsEmpty());

  denied.mut("status").set("certificateChain", "x");
  EXPECT_THAT(status_faults(denied, asked()),
              ElementsAre("status: Invalid value: non-condition status fields must be empty when "
                          "denying or failing the PodCertificateRequest"));
}

TEST(PodCertificateStatus, is_decided_once_and_for_good) {
  const Value decided = issued(now(), now() + hours(24));
  EXPECT_THAT(status_faults(decided, decided), IsEmpty());
  Value denied = asked();
  denied.mut("status").mut("conditions").push(condition("Denied"));
  EXPECT_THAT(status_faults(denied, decided),
              ElementsAre("status: Invalid value: immutable after PodCertificateRequest is issued, "
                          "denied, or failed"));

  Value early = asked();
  early.mut("status").set("certificateChain", "x");
  EXPECT_THAT(status_faults(early, asked()),
              ElementsAre("status: Invalid value: status is immutable unless transitioning to "
                          "\"Issued\", \"Denied\", or \"Failed\""));
}

// --- addresses ---

TEST(MailAddress, is_read_as_go_does) {
  for (const char* good : {"jane@example.com", "j.d+x@host", "\"a b\"@example.com",
                           "Jane Doe <jane@example.com>", "jane@[192.0.2.1]"}) {
    EXPECT_TRUE(is_mail_address(good)) << good;
  }
  for (const char* bad :
       {"", "jane", "@example.com", "jane@", "a..b@example.com", "a b@example.com",
        "jane@example..com", "Jane jane@example.com", "<jane@example.com"}) {
    EXPECT_FALSE(is_mail_address(bad)) << bad;
  }
}

}  // namespace
}  // namespace dibs::api
