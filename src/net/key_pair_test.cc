#include "net/key_pair.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "net/x509.h"

namespace dibs::net {
namespace {

using testing::StartsWith;

std::string as_pem(const std::string& der) {
  const std::string text = base64_encode(der);
  std::string out = "-----BEGIN CERTIFICATE REQUEST-----\n";
  for (std::size_t i = 0; i < text.size(); i += 64) append(out, text.substr(i, 64), "\n");
  return out + "-----END CERTIFICATE REQUEST-----\n";
}

TEST(KeyPair, proves_its_possession_whatever_its_kind) {
  for (const char* type : {"RSA3072", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"}) {
    const auto made = make_key_and_proof(type);

    ASSERT_TRUE(made.ok()) << type << ": " << made.error().message();
    EXPECT_THAT(made->key_pem, StartsWith("-----BEGIN PRIVATE KEY-----\n")) << type;
    EXPECT_TRUE(is_private_key(made->key_pem)) << type;
    const auto request = parse_signing_request(as_pem(made->request_der));
    ASSERT_TRUE(request.ok()) << type << ": " << request.error().message();
    EXPECT_EQ(request->common_name, "");
  }
}

TEST(KeyPair, is_another_one_each_time) {
  EXPECT_NE(make_key_and_proof("ED25519")->key_pem, make_key_and_proof("ED25519")->key_pem);
}

TEST(KeyPair, is_refused_for_kinds_that_pods_cannot_have) {
  const auto made = make_key_and_proof("RSA1024");

  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().message(), "unknown key type \"RSA1024\"");
}

TEST(KeyPair, leaves_nothing_but_certificates_in_a_chain) {
  const auto ca = make_ca("one", {Time::from_seconds(0), Time::from_seconds(3600)});
  ASSERT_TRUE(ca.ok());
  const std::string& pem = ca->certificate_pem;

  EXPECT_EQ(clean_certificate_chain("words\n" + pem + "more\n" + pem + "end\n"), pem + pem);
  EXPECT_EQ(clean_certificate_chain(""), "");
}

}  // namespace
}  // namespace dibs::net
