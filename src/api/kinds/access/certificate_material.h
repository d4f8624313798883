#pragma once
// What certificates, requests for them and public keys say, as far as rules of kinds judge it.
//
// DER goes in and plain values come out. Something is read only if it is whole and nothing follows
// it, and if Go, whose words the API's messages are, would read it too.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace dibs::api {

struct PublicKey {
  enum class Kind : char { ed25519, ecdsa, rsa, other };
  Kind kind = Kind::other;
  std::string curve = {};  // of ECDSA: "P-256"
  int bits = 0;            // of RSA, in whole bytes
  std::string der = {};    // equal for equal keys
};
/// A SubjectPublicKeyInfo.
std::optional<PublicKey> read_public_key(std::string_view der);

/// `signature` is the key's, of the text: by PSS (RSA), of the text's SHA-256 (RSA, ECDSA), or of
/// the text itself (Ed25519).
bool is_signed_by(const PublicKey& key, std::string_view text, std::string_view signature);

struct StubRequest {
  PublicKey key = {};
  bool is_signed = false;  // by its own key
};
/// A PKCS#10 request.
std::optional<StubRequest> read_stub_request(std::string_view der);

struct IssuedCertificate {
  PublicKey key = {};
  Time not_before = {};
  Time not_after = {};
  std::vector<std::string> dns_names = {};
  std::vector<std::string> email_addresses = {};
};
std::optional<IssuedCertificate> read_issued_certificate(std::string_view der);

}  // namespace dibs::api
