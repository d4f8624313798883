#pragma once
// JSON Web Tokens as service accounts and issuers of OpenID Connect use them: signed with an
// elliptic or an RSA key, verified by such keys. Only signatures are judged here; issuer, audience
// and times are the caller's to check.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::net {

/// Signs with one private key. Immutable, thread-safe.
class JwtSigner {
 public:
  /// A private key as PEM: EC (P-256, P-384, P-521) or RSA of at least 2048 bits. Errors: invalid.
  static Result<JwtSigner> open(std::string_view private_key_pem);

  Result<std::string> sign(const json::Value& claims) const;
  /// base64url(SHA-256(public key as DER)), as Kubernetes names its keys.
  const std::string& key_id() const { return key_id_; }
  /// "ES256", "RS256", …, as the key is.
  const std::string& algorithm() const { return algorithm_; }

 private:
  friend class JwtVerifier;
  JwtSigner() = default;
  std::shared_ptr<void> key_;
  std::string key_id_;
  std::string algorithm_;
};

/// Verifies with any of its keys. Thread-safe once all keys are added.
class JwtVerifier {
 public:
  /// Every public key, private key and certificate of the text (PEM): EC (P-256, P-384, P-521) or
  /// RSA of at least 2048 bits. A key that is there already is not added again. Errors: invalid.
  Result<> add(std::string_view pem);

  /// The claims of a token that one of the keys signed. Errors: unauthorized.
  Result<json::Value> verify(std::string_view token) const;

  /// The JWKS document of all keys, and their algorithms, each once.
  json::Value jwks() const;
  std::vector<std::string> algorithms() const;

 private:
  struct Entry {
    std::string id;
    std::string algorithm;
    std::shared_ptr<void> key;
  };
  std::vector<Entry> keys_;
};

/// Algorithms that a JwkSet can verify.
const std::vector<std::string>& jwk_algorithms();

/// The public keys of an issuer, as its JWKS document has them. Immutable, thread-safe.
class JwkSet {
 public:
  /// Keys that are of another use or kind are left out. Errors: invalid, for what is no JWKS.
  static Result<JwkSet> parse(const json::Value& document);
  bool empty() const { return keys_.empty(); }

  /// The claims of a token that one of the keys signed by one of `algorithms`. Errors:
  /// unauthorized; not_found where a key of another set may have signed it.
  Result<json::Value> verify(std::string_view token,
                             const std::vector<std::string>& algorithms) const;

 private:
  struct Key {
    std::string id;
    std::string algorithm;  // "": any that its kind allows
    std::shared_ptr<void> key;
  };
  std::vector<Key> keys_;
};

/// What the token says of itself, whoever made it. Errors: unauthorized.
Result<json::Value> unverified_claims(std::string_view token);

/// A signature (JWS, HS256) by a shared secret, without the content: "header..signature". Who has
/// the secret can tell that the content is whole.
std::string detached_signature(std::string_view content, std::string_view key_id,
                               std::string_view secret);

}  // namespace dibs::net
