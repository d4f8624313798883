#include "net/jwt.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include "base/strings.h"
#include "json/parse.h"
#include "net/tls_impl.h"

namespace dibs::net {
namespace {

constexpr int kHalf = 32;  // bytes of r and of s in an ES256 signature

// Longer than any token of a cluster; keeps garbage from costing a parse.
constexpr std::size_t kMaxToken = 64 * 1024;

int no_passphrase(char*, int, int, void*) { return 0; }

std::shared_ptr<void> own(EVP_PKEY* key) {
  if (key == nullptr) return nullptr;
  return std::shared_ptr<void>(key, [](void* p) { EVP_PKEY_free(static_cast<EVP_PKEY*>(p)); });
}

EVP_PKEY* raw(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }

std::shared_ptr<void> read_private(std::string_view pem) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  auto key = own(PEM_read_bio_PrivateKey(bio, nullptr, no_passphrase, nullptr));
  BIO_free(bio);
  ERR_clear_error();
  return key;
}

std::shared_ptr<void> read_any(std::string_view pem) {
  if (auto key = read_private(pem)) return key;
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  auto key = own(PEM_read_bio_PUBKEY(bio, nullptr, no_passphrase, nullptr));
  BIO_free(bio);
  if (!key) {
    bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    if (X509* certificate = PEM_read_bio_X509(bio, nullptr, no_passphrase, nullptr)) {
      key = own(X509_get_pubkey(certificate));
      X509_free(certificate);
    }
    BIO_free(bio);
  }
  ERR_clear_error();
  return key;
}

bool is_p256(EVP_PKEY* key) {
  char name[64] = "";
  std::size_t size = 0;
  return EVP_PKEY_is_a(key, "EC") == 1 &&
         EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, name, sizeof name,
                                        &size) == 1 &&
         std::string_view(name, size) == "prime256v1";
}

std::string key_id_of(EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  if (size <= 0) return {};
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<std::size_t>(size), digest);
  OPENSSL_free(der);
  return base64url_encode({reinterpret_cast<char*>(digest), sizeof digest});
}

std::string big_number(EVP_PKEY* key, const char* name, int width = 0) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return {};
  const int size = width > 0 ? width : BN_num_bytes(number);
  std::string bytes(static_cast<std::size_t>(size), '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()), size);
  BN_free(number);
  return base64url_encode(bytes);
}

// OpenSSL speaks DER, tokens carry r and s side by side.
bool to_raw(std::string_view der, std::string& out) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
  if (signature == nullptr) return false;
  out.assign(2 * kHalf, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  const bool good = BN_bn2binpad(ECDSA_SIG_get0_r(signature), bytes, kHalf) == kHalf &&
                    BN_bn2binpad(ECDSA_SIG_get0_s(signature), bytes + kHalf, kHalf) == kHalf;
  ECDSA_SIG_free(signature);
  return good;
}

bool to_der(std::string_view signature, std::string& out) {
  if (signature.size() != 2 * kHalf) return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(signature.data());
  ECDSA_SIG* pair = ECDSA_SIG_new();
  ECDSA_SIG_set0(pair, BN_bin2bn(bytes, kHalf, nullptr), BN_bin2bn(bytes + kHalf, kHalf, nullptr));
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(pair, &der);
  ECDSA_SIG_free(pair);
  if (size <= 0) return false;
  out.assign(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return true;
}

bool verify_signature(EVP_PKEY* key, std::string_view text, std::string_view signature) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  const bool good =
      EVP_DigestVerifyInit(context, nullptr, EVP_sha256(), nullptr, key) == 1 &&
      EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size()) == 1;
  EVP_MD_CTX_free(context);
  ERR_clear_error();
  return good;
}

Error refused(std::string message) { return {Code::unauthorized, std::move(message)}; }

struct Parts {
  std::string_view header;
  std::string_view claims;
  std::string_view signature;
};

Result<Parts> take_apart(std::string_view token) {
  if (token.size() > kMaxToken) return refused("token is too long");
  const auto first = token.find('.');
  const auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) {
    return refused("token must have three parts");
  }
  return Parts{token.substr(0, first), token.substr(first + 1, second - first - 1),
               token.substr(second + 1)};
}

Result<json::Value> decode(std::string_view part) {
  std::string text;
  if (!base64url_decode(part, text)) return refused("token part is not base64url");
  auto value = json::parse(text);
  if (!value || !value->is_object()) return refused("token part is not a JSON object");
  return value;
}

}  // namespace

Result<JwtSigner> JwtSigner::open(std::string_view private_key_pem) {
  JwtSigner out;
  out.key_ = read_private(private_key_pem);
  if (!out.key_) return Error::invalid("no PEM private key found");
  if (!is_p256(raw(out.key_))) return Error::invalid("signing key must be EC P-256");
  out.key_id_ = key_id_of(raw(out.key_));
  return out;
}

Result<std::string> JwtSigner::sign(const json::Value& claims) const {
  const auto header = json::Value::object({{"alg", "ES256"}, {"kid", key_id_}});
  std::string token =
      cat(base64url_encode(json::write(header)), '.', base64url_encode(json::write(claims)));
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::size_t size = 0;
  const auto* text = reinterpret_cast<const unsigned char*>(token.data());
  std::string der;
  bool good = EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, raw(key_)) == 1 &&
              EVP_DigestSign(context, nullptr, &size, text, token.size()) == 1;
  if (good) {
    der.resize(size);
    good = EVP_DigestSign(context, reinterpret_cast<unsigned char*>(der.data()), &size, text,
                          token.size()) == 1;
    der.resize(size);
  }
  EVP_MD_CTX_free(context);
  std::string signature;
  if (!good || !to_raw(der, signature)) {
    return Error::internal(cat("sign token: ", openssl_error()));
  }
  append(token, '.', base64url_encode(signature));
  return token;
}

Result<> JwtVerifier::add(std::string_view pem) {
  Entry entry;
  entry.key = read_any(pem);
  if (!entry.key) return Error::invalid("no PEM key or certificate found");
  if (is_p256(raw(entry.key))) {
    entry.algorithm = "ES256";
  } else if (EVP_PKEY_is_a(raw(entry.key), "RSA") == 1 && EVP_PKEY_bits(raw(entry.key)) >= 2048) {
    entry.algorithm = "RS256";
  } else {
    return Error::invalid("key must be EC P-256 or RSA of at least 2048 bits");
  }
  entry.id = key_id_of(raw(entry.key));
  keys_.push_back(std::move(entry));
  return success();
}

Result<json::Value> JwtVerifier::verify(std::string_view token) const {
  DIBS_TRY(const Parts parts, take_apart(token));
  DIBS_TRY(const json::Value header, decode(parts.header));
  const auto algorithm = header["alg"].as_string();
  const auto id = header["kid"].as_string();
  std::string signature;
  if (!base64url_decode(parts.signature, signature)) return refused("signature is not base64url");
  std::string der;
  const std::string_view signed_text =
      token.substr(0, parts.header.size() + 1 + parts.claims.size());
  for (const auto& key : keys_) {
    // The key decides the algorithm; the token may only agree.
    if (key.algorithm != algorithm || (!id.empty() && id != key.id)) continue;
    std::string_view bytes = signature;
    if (algorithm == "ES256") {
      if (!to_der(signature, der)) continue;
      bytes = der;
    }
    if (verify_signature(raw(key.key), signed_text, bytes)) return decode(parts.claims);
  }
  return refused("no known key signed the token");
}

json::Value JwtVerifier::jwks() const {
  auto keys = json::Value::array();
  for (const auto& key : keys_) {
    auto entry = json::Value::object({{"use", "sig"}});
    if (key.algorithm == "ES256") {
      entry.set("kty", "EC");
      entry.set("kid", key.id);
      entry.set("crv", "P-256");
      entry.set("alg", "ES256");
      entry.set("x", big_number(raw(key.key), OSSL_PKEY_PARAM_EC_PUB_X, kHalf));
      entry.set("y", big_number(raw(key.key), OSSL_PKEY_PARAM_EC_PUB_Y, kHalf));
    } else {
      entry.set("kty", "RSA");
      entry.set("kid", key.id);
      entry.set("alg", "RS256");
      entry.set("n", big_number(raw(key.key), OSSL_PKEY_PARAM_RSA_N));
      entry.set("e", big_number(raw(key.key), OSSL_PKEY_PARAM_RSA_E));
    }
    keys.push(std::move(entry));
  }
  return json::Value::object({{"keys", std::move(keys)}});
}

}  // namespace dibs::net
