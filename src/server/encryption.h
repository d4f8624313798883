#pragma once
// Encryption of what is stored: an EncryptionConfiguration of apiserver.config.k8s.io/v1.
//
// A value looks as kube-apiserver writes it: "k8s:enc:PROVIDER:v1:KEY:" and then
//   aescbc  an initialization vector of 16 bytes, AES-CBC of the value padded as PKCS #7
//   aesgcm  a nonce of 12 bytes, AES-GCM of the value, its tag of 16; the store's key is
//           authenticated with it, so that a value cannot be moved to another
//   secretbox  a nonce of 24 bytes, a tag of 16, XSalsa20-Poly1305 of the value (secretbox.h)
// The first key of the first provider of a resource writes, all of them read; identity reads and
// writes values as they are. kms is refused: it is not here.

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runtime/runtime.h"
#include "server/resource.h"
#include "store/at_rest.h"

namespace dibs::server {

/// `text`: YAML or JSON. `builtin`: of which the configuration may name any; a group that is not
/// among theirs may be of custom resources. `random`, which nonces come from, must outlive it.
/// `registry` is what stands for "/registry" in the keys of the store, which aesgcm authenticates.
/// Errors name the field.
Result<std::shared_ptr<const store::AtRest>> make_encryption(
    std::string_view text, const std::vector<ResourcePtr>& builtin, runtime::Random& random,
    std::string_view registry = "/registry");

/// Of a value that none of the keys at hand opens; what is sealed is not shown.
Error no_key_error(std::string_view bytes);

}  // namespace dibs::server
