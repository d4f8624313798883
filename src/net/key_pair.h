#pragma once
// A new key with a request that proves its possession, for who asks others to sign.
//
// Keys are drawn from OpenSSL's generator. Making one of RSA takes a second or so.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::net {

struct KeyAndProof {
  std::string key_pem;  // PKCS #8
  /// A PKCS #10 request as DER, with nothing in it but the public key, signed by the key.
  std::string request_der;
};

/// `type` in the words of the API: RSA3072, RSA4096, ECDSAP256, ECDSAP384, ECDSAP521 or ED25519.
/// Errors: invalid for any other.
Result<KeyAndProof> make_key_and_proof(std::string_view type);

/// A chain of certificates as PEM, without headers and what stands around the blocks.
std::string clean_certificate_chain(std::string_view pem);

}  // namespace dibs::net
