#include "net/jwt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include "base/strings.h"
#include "json/parse.h"
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

std::string make_key(int type, int bits_or_curve) {
  EVP_PKEY* key = type == EVP_PKEY_RSA ? EVP_RSA_gen(static_cast<unsigned>(bits_or_curve))
                                       : EVP_EC_gen(OBJ_nid2sn(bits_or_curve));
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  std::string out(bytes, static_cast<std::size_t>(size));
  BIO_free(bio);
  EVP_PKEY_free(key);
  return out;
}

TEST(Jwt, signs_with_whatever_key_it_is_given) {
  struct Case {
    std::string key;
    const char* algorithm;
  };
  std::string all;
  for (const Case& one : {Case{make_key(EVP_PKEY_RSA, 2048), "RS256"},
                          Case{make_key(EVP_PKEY_EC, NID_secp384r1), "ES384"},
                          Case{make_key(EVP_PKEY_EC, NID_secp521r1), "ES512"}}) {
    const auto signer = JwtSigner::open(one.key);
    ASSERT_TRUE(signer.ok()) << one.algorithm;
    EXPECT_EQ(signer->algorithm(), one.algorithm);
    const std::string token = *signer->sign(claims());
    JwtVerifier verifier;
    all += one.key;
    ASSERT_TRUE(verifier.add(all).ok());
    EXPECT_EQ(*verifier.verify(token), claims());
    // As others verify it, by what is published.
    const auto published = JwkSet::parse(verifier.jwks());
    ASSERT_TRUE(published.ok());
    EXPECT_EQ(*published->verify(token, {one.algorithm}), claims());
    EXPECT_EQ(published->verify(token, {"PS256"}).error().code(), Code::unauthorized);
    EXPECT_EQ(JwkSet().verify(token, {one.algorithm}).error().code(), Code::not_found);
  }
  EXPECT_FALSE(JwtSigner::open(make_key(EVP_PKEY_RSA, 1024)).ok());
}

TEST(Jwt, reads_keys_that_strangers_publish) {
  for (const char* text : {R"({})", R"({"keys":5})", R"([])", R"({"keys":{}})"}) {
    EXPECT_FALSE(JwkSet::parse(*json::parse(text)).ok()) << text;
  }
  for (const char* text :
       {R"({"keys":[]})", R"({"keys":[5,null,{}]})", R"({"keys":[{"kty":"RSA"}]})",
        R"({"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"}]})",
        R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})",
        R"({"keys":[{"kty":"EC","crv":"P-999","x":"AA","y":"AA"}]})",
        R"({"keys":[{"kty":"oct","k":"AA"}]})",
        R"({"keys":[{"use":"enc","kty":"RSA","n":"AQ","e":"AQAB"}]})"}) {
    const auto set = JwkSet::parse(*json::parse(text));
    ASSERT_TRUE(set.ok()) << text;
    EXPECT_TRUE(set->empty()) << text;
  }
}

TEST(Jwt, signs_content_apart_from_it) {
  EXPECT_EQ(
      detached_signature("some content", "abcdef", "0123456789abcdef"),
      "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..Ak-Sq5TJaZVVofPrFWqrt2J4qwsYNxitnuh0Ygr6oz4");
}

}  // namespace
}  // namespace dibs::net
