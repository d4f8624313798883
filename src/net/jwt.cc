#include "net/jwt.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/x509.h>

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"
#include "net/openssl_objects.h"

namespace dibs::net {
namespace {

// How a key signs. `half` is the bytes of r and of s, and of a coordinate.
struct Algorithm {
  const char* name;
  const EVP_MD* (*digest)();
  const char* group;  // of an elliptic curve, as OpenSSL calls it; null: RSA
  const char* curve;  // the same in a JWK
  int half;
  bool pss;
};
constexpr Algorithm kAlgorithms[] = {
    {"ES256", EVP_sha256, "prime256v1", "P-256", 32, false},
    {"ES384", EVP_sha384, "secp384r1", "P-384", 48, false},
    {"ES512", EVP_sha512, "secp521r1", "P-521", 66, false},
    {"RS256", EVP_sha256, nullptr, nullptr, 0, false},
    {"RS384", EVP_sha384, nullptr, nullptr, 0, false},
    {"RS512", EVP_sha512, nullptr, nullptr, 0, false},
    {"PS256", EVP_sha256, nullptr, nullptr, 0, true},
    {"PS384", EVP_sha384, nullptr, nullptr, 0, true},
    {"PS512", EVP_sha512, nullptr, nullptr, 0, true},
};

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& one : kAlgorithms) {
    if (name == one.name) return &one;
  }
  return nullptr;
}

// Longer than any token of a cluster; keeps garbage from costing a parse.
constexpr std::size_t kMaxToken = 64 * 1024;

std::shared_ptr<void> own(EVP_PKEY* key) {
  if (key == nullptr) return nullptr;
  return std::shared_ptr<void>(key, [](void* p) { EVP_PKEY_free(static_cast<EVP_PKEY*>(p)); });
}

EVP_PKEY* raw(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }

std::shared_ptr<void> read_private(std::string_view pem) {
  auto key = own(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return key;
}

std::shared_ptr<void> read_any(std::string_view pem) {
  if (auto key = read_private(pem)) return key;
  auto key = own(PEM_read_bio_PUBKEY(reader(pem).get(), nullptr, no_passphrase, nullptr));
  if (!key) {
    const Certificate certificate(
        PEM_read_bio_X509(reader(pem).get(), nullptr, no_passphrase, nullptr));
    if (certificate) key = own(X509_get_pubkey(certificate.get()));
  }
  ERR_clear_error();
  return key;
}

/// "" unless it is an elliptic key.
std::string group_of(EVP_PKEY* key) {
  char name[64] = "";
  std::size_t size = 0;
  if (EVP_PKEY_is_a(key, "EC") != 1 ||
      EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_GROUP_NAME, name, sizeof name, &size) !=
          1) {
    ERR_clear_error();
    return {};
  }
  return {name, size};
}

bool fits(const Algorithm& algorithm, EVP_PKEY* key) {
  if (algorithm.group == nullptr) return EVP_PKEY_is_a(key, "RSA") == 1;
  return group_of(key) == algorithm.group;
}

/// What such a key signs tokens of service accounts with; null where it is of no use.
const Algorithm* usual_algorithm(EVP_PKEY* key) {
  if (EVP_PKEY_is_a(key, "RSA") == 1) {
    return EVP_PKEY_bits(key) >= 2048 ? find_algorithm("RS256") : nullptr;
  }
  for (const Algorithm& one : kAlgorithms) {
    if (one.group != nullptr && fits(one, key)) return &one;
  }
  return nullptr;
}

constexpr std::string_view kKinds =
    "key must be EC (P-256, P-384, P-521) or RSA of at least 2048 bits";

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
bool to_raw(std::string_view der, int half, std::string& out) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
  if (signature == nullptr) return false;
  out.assign(2 * static_cast<std::size_t>(half), '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  const bool good = BN_bn2binpad(ECDSA_SIG_get0_r(signature), bytes, half) == half &&
                    BN_bn2binpad(ECDSA_SIG_get0_s(signature), bytes + half, half) == half;
  ECDSA_SIG_free(signature);
  return good;
}

bool to_der(std::string_view signature, int half, std::string& out) {
  if (signature.size() != 2 * static_cast<std::size_t>(half)) return false;
  const auto* bytes = reinterpret_cast<const unsigned char*>(signature.data());
  ECDSA_SIG* pair = ECDSA_SIG_new();
  ECDSA_SIG_set0(pair, BN_bin2bn(bytes, half, nullptr), BN_bin2bn(bytes + half, half, nullptr));
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(pair, &der);
  ECDSA_SIG_free(pair);
  if (size <= 0) return false;
  out.assign(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return true;
}

bool verify_signature(EVP_PKEY* key, const Algorithm& algorithm, std::string_view text,
                      std::string_view signature) {
  std::string der;
  if (algorithm.group != nullptr) {
    if (!to_der(signature, algorithm.half, der)) return false;
    signature = der;
  }
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_PKEY_CTX* of_key = nullptr;
  bool good = EVP_DigestVerifyInit(context, &of_key, algorithm.digest(), nullptr, key) == 1;
  if (good && algorithm.pss) {
    good = EVP_PKEY_CTX_set_rsa_padding(of_key, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(of_key, RSA_PSS_SALTLEN_AUTO) == 1;
  }
  good = good &&
         EVP_DigestVerify(context, reinterpret_cast<const unsigned char*>(signature.data()),
                          signature.size(), reinterpret_cast<const unsigned char*>(text.data()),
                          text.size()) == 1;
  EVP_MD_CTX_free(context);
  ERR_clear_error();
  return good;
}

/// The blocks of a PEM text, each with its lines around it.
std::vector<std::string_view> blocks_of(std::string_view pem) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kEnd = "-----END ";
  std::vector<std::string_view> out;
  for (;;) {
    const auto begin = pem.find(kBegin);
    const auto end = begin == std::string_view::npos ? begin : pem.find(kEnd, begin);
    const auto last = end == std::string_view::npos ? end : pem.find("-----", end + kEnd.size());
    if (last == std::string_view::npos) return out;
    out.push_back(pem.substr(begin, last + 5 - begin));
    pem.remove_prefix(last + 5);
  }
}

std::shared_ptr<void> key_from(const char* type, OSSL_PARAM_BLD* builder) {
  EVP_PKEY* key = nullptr;
  OSSL_PARAM* parameters = OSSL_PARAM_BLD_to_param(builder);
  EVP_PKEY_CTX* context = EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr);
  if (context != nullptr && EVP_PKEY_fromdata_init(context) == 1) {
    EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters);
  }
  EVP_PKEY_CTX_free(context);
  OSSL_PARAM_free(parameters);
  ERR_clear_error();
  return own(key);
}

/// Null for a key of another kind, or a broken one.
std::shared_ptr<void> read_jwk(const json::Value& jwk) {
  // Longer numbers make verifying slow, and nobody has them.
  constexpr std::size_t kMostBytes = 2048;
  const auto number = [&](std::string_view field) {
    std::string bytes;
    const auto text = jwk[field].as_string();
    if (text.size() > 2 * kMostBytes || !base64url_decode(text, bytes)) bytes.clear();
    return bytes;
  };
  std::shared_ptr<void> key;
  OSSL_PARAM_BLD* builder = OSSL_PARAM_BLD_new();
  if (jwk["kty"].as_string() == "RSA") {
    const std::string n = number("n");
    const std::string e = number("e");
    BIGNUM* modulus = BN_bin2bn(reinterpret_cast<const unsigned char*>(n.data()),
                                static_cast<int>(n.size()), nullptr);
    BIGNUM* exponent = BN_bin2bn(reinterpret_cast<const unsigned char*>(e.data()),
                                 static_cast<int>(e.size()), nullptr);
    if (!n.empty() && !e.empty() && e.size() <= 8 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1) {
      key = key_from("RSA", builder);
    }
    BN_free(modulus);
    BN_free(exponent);
    if (key && EVP_PKEY_bits(raw(key)) < 1024) key = nullptr;
  } else if (jwk["kty"].as_string() == "EC") {
    for (const Algorithm& one : kAlgorithms) {
      if (one.curve == nullptr || jwk["crv"].as_string() != one.curve) continue;
      const std::string x = number("x");
      const std::string y = number("y");
      const auto half = static_cast<std::size_t>(one.half);
      if (x.size() > half || y.size() > half || x.empty() || y.empty()) continue;
      const std::string point =
          cat('\x04', std::string(half - x.size(), '\0'), x, std::string(half - y.size(), '\0'), y);
      if (OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, one.group, 0) == 1 &&
          OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                           point.size()) == 1) {
        key = key_from("EC", builder);
      }
      break;
    }
  }
  OSSL_PARAM_BLD_free(builder);
  return key;
}

Error refused(std::string message) { return {Code::unauthorized, std::move(message)}; }

struct Parts {
  std::string_view header;
  std::string_view claims;
  std::string_view signature;
  std::string_view signed_text;
};

Result<Parts> take_apart(std::string_view token) {
  if (token.size() > kMaxToken) return refused("token is too long");
  const auto first = token.find('.');
  const auto second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) {
    return refused("token must have three parts");
  }
  return Parts{token.substr(0, first), token.substr(first + 1, second - first - 1),
               token.substr(second + 1), token.substr(0, second)};
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
  const Algorithm* algorithm = usual_algorithm(raw(out.key_));
  if (algorithm == nullptr) return Error::invalid(cat("signing ", kKinds));
  out.algorithm_ = algorithm->name;
  out.key_id_ = key_id_of(raw(out.key_));
  return out;
}

Result<std::string> JwtSigner::sign(const json::Value& claims) const {
  const Algorithm& algorithm = *find_algorithm(algorithm_);
  const auto header = json::Value::object({{"alg", algorithm_}, {"kid", key_id_}});
  std::string token =
      cat(base64url_encode(json::write(header)), '.', base64url_encode(json::write(claims)));
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::size_t size = 0;
  const auto* text = reinterpret_cast<const unsigned char*>(token.data());
  std::string made;
  bool good = EVP_DigestSignInit(context, nullptr, algorithm.digest(), nullptr, raw(key_)) == 1 &&
              EVP_DigestSign(context, nullptr, &size, text, token.size()) == 1;
  if (good) {
    made.resize(size);
    good = EVP_DigestSign(context, reinterpret_cast<unsigned char*>(made.data()), &size, text,
                          token.size()) == 1;
    made.resize(size);
  }
  EVP_MD_CTX_free(context);
  std::string signature;
  if (good && algorithm.group == nullptr) {
    signature = std::move(made);
  } else if (!good || !to_raw(made, algorithm.half, signature)) {
    return Error::internal(cat("sign token: ", openssl_error()));
  }
  append(token, '.', base64url_encode(signature));
  return token;
}

Result<> JwtVerifier::add(std::string_view pem) {
  const auto blocks = blocks_of(pem);
  std::size_t found = 0;
  for (const std::string_view block : blocks) {
    Entry entry;
    entry.key = read_any(block);
    // "EC PARAMETERS" stands before a key of OpenSSL's.
    if (!entry.key) continue;
    ++found;
    const Algorithm* algorithm = usual_algorithm(raw(entry.key));
    if (algorithm == nullptr) return Error::invalid(std::string(kKinds));
    entry.algorithm = algorithm->name;
    entry.id = key_id_of(raw(entry.key));
    const bool known = std::any_of(keys_.begin(), keys_.end(),
                                   [&](const Entry& one) { return one.id == entry.id; });
    if (!known) keys_.push_back(std::move(entry));
  }
  if (found == 0) return Error::invalid("no PEM key or certificate found");
  return success();
}

Result<json::Value> JwtVerifier::verify(std::string_view token) const {
  DIBS_TRY(const Parts parts, take_apart(token));
  DIBS_TRY(const json::Value header, decode(parts.header));
  const auto name = header["alg"].as_string();
  const auto id = header["kid"].as_string();
  std::string signature;
  if (!base64url_decode(parts.signature, signature)) return refused("signature is not base64url");
  for (const auto& key : keys_) {
    // The key decides the algorithm; the token may only agree.
    if (key.algorithm != name || (!id.empty() && id != key.id)) continue;
    if (verify_signature(raw(key.key), *find_algorithm(key.algorithm), parts.signed_text,
                         signature)) {
      return decode(parts.claims);
    }
  }
  return refused("no known key signed the token");
}

json::Value JwtVerifier::jwks() const {
  auto keys = json::Value::array();
  for (const auto& key : keys_) {
    const Algorithm& algorithm = *find_algorithm(key.algorithm);
    auto entry = json::Value::object({{"use", "sig"}});
    if (algorithm.group != nullptr) {
      entry.set("kty", "EC");
      entry.set("kid", key.id);
      entry.set("crv", algorithm.curve);
      entry.set("alg", key.algorithm);
      entry.set("x", big_number(raw(key.key), OSSL_PKEY_PARAM_EC_PUB_X, algorithm.half));
      entry.set("y", big_number(raw(key.key), OSSL_PKEY_PARAM_EC_PUB_Y, algorithm.half));
    } else {
      entry.set("kty", "RSA");
      entry.set("kid", key.id);
      entry.set("alg", key.algorithm);
      entry.set("n", big_number(raw(key.key), OSSL_PKEY_PARAM_RSA_N));
      entry.set("e", big_number(raw(key.key), OSSL_PKEY_PARAM_RSA_E));
    }
    keys.push(std::move(entry));
  }
  return json::Value::object({{"keys", std::move(keys)}});
}

std::vector<std::string> JwtVerifier::algorithms() const {
  std::vector<std::string> out;
  for (const auto& key : keys_) {
    if (std::find(out.begin(), out.end(), key.algorithm) == out.end()) out.push_back(key.algorithm);
  }
  std::sort(out.begin(), out.end());
  return out;
}

const std::vector<std::string>& jwk_algorithms() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Algorithm& one : kAlgorithms) names.emplace_back(one.name);
    std::sort(names.begin(), names.end());
    return names;
  }();
  return kNames;
}

Result<JwkSet> JwkSet::parse(const json::Value& document) {
  // An issuer has a few; a token is tried with those that fit it.
  constexpr std::size_t kMostKeys = 256;
  if (!document["keys"].is_array()) return Error::invalid("no JWKS: keys must be a list");
  JwkSet out;
  for (const json::Value& jwk : document["keys"].items()) {
    const auto use = jwk["use"].as_string();
    if (!use.empty() && use != "sig") continue;
    Key key{jwk["kid"].str(), jwk["alg"].str(), read_jwk(jwk)};
    if (!key.key) continue;
    if (out.keys_.size() == kMostKeys) return Error::invalid("a JWKS of too many keys");
    out.keys_.push_back(std::move(key));
  }
  return out;
}

Result<json::Value> JwkSet::verify(std::string_view token,
                                   const std::vector<std::string>& algorithms) const {
  DIBS_TRY(const Parts parts, take_apart(token));
  DIBS_TRY(const json::Value header, decode(parts.header));
  const auto name = header["alg"].as_string();
  const auto id = header["kid"].as_string();
  const Algorithm* algorithm = find_algorithm(name);
  if (algorithm == nullptr ||
      std::find(algorithms.begin(), algorithms.end(), name) == algorithms.end()) {
    return refused(cat("token signed with unsupported algorithm, expected [", join(algorithms, " "),
                       "] got ", quoted(name)));
  }
  std::string signature;
  if (!base64url_decode(parts.signature, signature)) return refused("signature is not base64url");
  for (const Key& key : keys_) {
    if (!id.empty() && id != key.id) continue;
    if (!key.algorithm.empty() && key.algorithm != name) continue;
    if (!fits(*algorithm, raw(key.key))) continue;
    if (verify_signature(raw(key.key), *algorithm, parts.signed_text, signature)) {
      return decode(parts.claims);
    }
  }
  return Error::not_found("failed to verify id token signature");
}

Result<json::Value> unverified_claims(std::string_view token) {
  DIBS_TRY(const Parts parts, take_apart(token));
  return decode(parts.claims);
}

std::string detached_signature(std::string_view content, std::string_view key_id,
                               std::string_view secret) {
  const std::string header =
      base64url_encode(json::write(json::Value::object({{"alg", "HS256"}, {"kid", key_id}})));
  const std::string text = cat(header, ".", base64url_encode(content));
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes, &size);
  return cat(header, "..",
             base64url_encode(std::string_view(reinterpret_cast<const char*>(bytes), size)));
}

}  // namespace dibs::net
