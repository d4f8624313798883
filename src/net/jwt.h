#pragma once
// JSON Web Tokens as service account tokens use them: signed with ES256 by us, verified for ES256
// and RS256 keys. Only signatures are judged here; issuer, audience and times are the caller's to
// check.

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
  /// An EC P-256 private key as PEM. Errors: invalid.
  static Result<JwtSigner> open(std::string_view private_key_pem);

  Result<std::string> sign(const json::Value& claims) const;
  /// base64url(SHA-256(public key as DER)), as Kubernetes names its keys.
  const std::string& key_id() const { return key_id_; }

 private:
  friend class JwtVerifier;
  JwtSigner() = default;
  std::shared_ptr<void> key_;
  std::string key_id_;
};

/// Verifies with any of its keys. Thread-safe once all keys are added.
class JwtVerifier {
 public:
  /// A public key, private key or certificate as PEM, EC P-256 or RSA of at least 2048 bits.
  Result<> add(std::string_view pem);

  /// The claims of a token that one of the keys signed. Errors: unauthorized.
  Result<json::Value> verify(std::string_view token) const;

  /// The JWKS document of all keys.
  json::Value jwks() const;

 private:
  struct Entry {
    std::string id;
    std::string algorithm;
    std::shared_ptr<void> key;
  };
  std::vector<Entry> keys_;
};

}  // namespace dibs::net
