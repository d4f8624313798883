#include "net/jwt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "net/x509.h"

namespace dibs::net {
namespace {

json::Value claims() {
  return json::Value::object({{"iss", "https://kubernetes.default.svc"},
                              {"sub", "system:serviceaccount:a:b"},
                              {"exp", 5}});
}

TEST(Jwt, verifies_what_it_signed) {
  const auto key = make_private_key();
  const auto signer = JwtSigner::open(*key);
  ASSERT_TRUE(signer.ok());
  JwtVerifier verifier;
  ASSERT_TRUE(verifier.add(*make_private_key()).ok());
  ASSERT_TRUE(verifier.add(*key).ok());

  for (int i = 0; i < 20; ++i) {
    const auto token = signer->sign(claims());
    ASSERT_TRUE(token.ok());
    const auto verified = verifier.verify(*token);
    ASSERT_TRUE(verified.ok()) << verified.error().message();
    EXPECT_EQ(*verified, claims());
  }
}

TEST(Jwt, refuses_everything_else) {
  const auto key = make_private_key();
  const auto signer = JwtSigner::open(*key);
  const std::string token = *signer->sign(claims());
  JwtVerifier verifier;
  ASSERT_TRUE(verifier.add(*key).ok());
  const auto parts = split(token, '.');
  const std::string none = base64url_encode(R"({"alg":"none"})");
  const std::string hs = base64url_encode(R"({"alg":"HS256"})");
  std::string changed = token;
  changed[changed.size() / 2] = changed[changed.size() / 2] == 'A' ? 'B' : 'A';

  for (const auto& bad :
       {std::string(), std::string("a.b"), std::string("a.b.c.d"), cat(none, '.', parts[1], '.'),
        cat(hs, '.', parts[1], '.', parts[2]), changed, cat(parts[0], '.', parts[1], '.'),
        cat(parts[0], '.', parts[1], ".AAAA"), cat(token, "="), std::string(100'000, 'a')}) {
    const auto verified = verifier.verify(bad);
    ASSERT_FALSE(verified.ok()) << bad.substr(0, 100);
    EXPECT_EQ(verified.error().code(), Code::unauthorized);
  }
  JwtVerifier other;
  ASSERT_TRUE(other.add(*make_private_key()).ok());
  EXPECT_FALSE(other.verify(token).ok());
}

// openssl genrsa 2048; the token is header.payload with "openssl dgst -sha256 -sign".
constexpr const char* kRsaPublic = R"(-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAzEoc3Qe3b7h1YrGFWOAR
/rCCxxRsCP7Je4H2yCA/pbZmEbziSBM8fHoBW44sFJmcEeBjWI9rQrnrX0sfW7Av
vb0PocTRF1sHnyGtCsYuUQBlGGyXe3osBeMWUceZPhX9EN+T/5bv4xTexor14qQq
BQGFyKmYoD2K6tFj98GhS4p7SF6mr6fcjizgjZ98KAbu2JZG5yBhJXjj5UOuW6yw
giOTI8eiARlwqOClCTcXM1+kzvDHGLxEd9sDtsEOoEHbfLCdB9zXQsRXdjkQ/aIG
nUZpYcAbziPkA4d5daWR+B5ZXEog2gt+IKI1gADerUkqlacaoisrd7nqp7Gkx8h5
3QIDAQAB
-----END PUBLIC KEY-----
)";
constexpr const char* kRsaToken =
    "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJyc2EifQ.mgJ4ZAYRDt4UQ1bhTX1X7lMfFweKSblXqozQ25c2"
    "1Tt8peMlv8YiocUYkC41X6PXSMbiFc689okrZSS-5GqojS3m3ihgdArbyUloVdDMyTon5QN1g_zr_gfc"
    "PfXqy6uoEFsC5PQQcCjxhDwHkgE1M2rDLqix4MGixTdMfmokJzQrAkvHHCwt-h6YeRg3tbZZS2sPispz"
    "j-M15zMg1DFdZzvflYhIOaAoWDQtEKU1hiUUnYToyTeaQLI-xU6NPgFzREOfvLCfDKsClU3uvsslB7Vh"
    "4d_11ptY8T73FS1UzsS4e9gKcoxqXNuU3eeT67uZmkN9XvVvTSlsotRksN_ryQ";

TEST(Jwt, verifies_rs256) {
  JwtVerifier verifier;
  ASSERT_TRUE(verifier.add(kRsaPublic).ok());
  const auto verified = verifier.verify(kRsaToken);
  ASSERT_TRUE(verified.ok()) << verified.error().message();
  EXPECT_EQ((*verified)["sub"].as_string(), "rsa");
}

TEST(Jwt, publishes_its_keys) {
  const auto key = make_private_key();
  const auto signer = JwtSigner::open(*key);
  JwtVerifier verifier;
  ASSERT_TRUE(verifier.add(*key).ok());
  ASSERT_TRUE(verifier.add(kRsaPublic).ok());

  const auto keys = verifier.jwks()["keys"];

  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0]["kid"].str(), signer->key_id());
  EXPECT_EQ(keys[0]["kty"].as_string(), "EC");
  EXPECT_EQ(keys[0]["crv"].as_string(), "P-256");
  EXPECT_EQ(keys[0]["x"].as_string().size(), 43U);
  EXPECT_EQ(keys[1]["kty"].as_string(), "RSA");
  EXPECT_EQ(keys[1]["e"].as_string(), "AQAB");
}

TEST(Jwt, refuses_unfit_keys) {
  EXPECT_FALSE(JwtSigner::open("rubbish").ok());
  EXPECT_FALSE(JwtSigner::open(kRsaPublic).ok());
  JwtVerifier verifier;
  EXPECT_FALSE(verifier.add("rubbish").ok());
}

}  // namespace
}  // namespace dibs::net
