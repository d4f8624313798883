// ClusterTrustBundle: certificates of authorities that pods may trust.

#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <map>

#include "api/kinds/access/signing_request.h"
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "base/owned.h"
#include "base/pem.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kMostBytes = 1024 * 1024;

/// "" where it is the certificate of an authority.
std::string fault_of(const PemBlock& block) {
  if (block.type != "CERTIFICATE") return cat("has bad block type: ", block.type);
  if (block.has_headers) return "has PEM block headers";
  const auto* at = reinterpret_cast<const unsigned char*>(block.bytes.data());
  const auto* end = at + block.bytes.size();
  const Owned<X509, X509_free> certificate(d2i_X509(nullptr, &at, end - at));
  ERR_clear_error();
  if (!certificate || at != end) return "does not parse as X.509";
  const auto flags = X509_get_extension_flags(certificate.get());
  if ((flags & EXFLAG_CA) == 0) return "does not have the CA bit set";
  if ((flags & EXFLAG_INVALID) != 0) return "has invalid basic constraints";
  return {};
}

void validate_bundle(const Value& text, FieldErrors& errors) {
  const Path spec("spec");
  const Path path = spec.child("trustBundle");
  if (text.as_string().size() > kMostBytes) return errors.too_long(path, kMostBytes);
  const std::size_t before = errors.size();
  const auto refuse = [&](std::string_view why) { errors.invalid(path, "<value omitted>", why); };
  std::map<std::string, std::vector<std::string>> places;
  std::size_t index = 0;
  std::string_view rest = text.as_string();
  while (const auto block = next_pem_block(rest)) {
    const std::string fault = fault_of(*block);
    if (!fault.empty()) refuse(cat("entry ", index, " ", fault));
    places[block->bytes].push_back(std::to_string(index++));
  }
  if (errors.size() != before) return;
  if (places.empty()) refuse("at least one trust anchor must be provided");
  for (const auto& [bytes, at] : places) {
    if (at.size() > 1) refuse(cat("duplicate trust anchor (indices [", join(at, " "), "])"));
  }
}

void validate_name(const Value& object, FieldErrors& errors) {
  const Path metadata("metadata");
  const Path path = metadata.child("name");
  const Value& name = object["metadata"]["name"];
  std::string_view text = name.as_string();
  if (text.empty()) return;
  const std::string signer = object["spec"]["signerName"].str();
  if (signer.empty()) {
    if (text.find(':') != text.npos) {
      return errors.invalid(path, name,
                            "ClusterTrustBundle without signer name must not have \":\" in its "
                            "name");
    }
  } else {
    std::string prefix = signer + ":";
    std::replace(prefix.begin(), prefix.end(), '/', ':');
    if (!text.starts_with(prefix)) {
      return errors.invalid(
          path, name,
          cat("ClusterTrustBundle for signerName ", signer, " must be named with prefix ", prefix));
    }
    text.remove_prefix(prefix.size());
  }
  add_invalid(is_name(NameRule::subdomain, text), name, path, errors);
}

void validate_signer(const Value& object, FieldErrors& errors) {
  const Path spec("spec");
  if (!object["spec"]["signerName"].as_string().empty())
    validate_signer_name(object["spec"]["signerName"], spec.child("signerName"), errors);
}

}  // namespace

KindRules trust_bundle_rules() {
  KindRules rules;
  rules.name_rule = NameRule::any;  // which depends on the signer
  rules.allow_unconditional_update = false;
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_name(object, errors);
    validate_signer(object, errors);
    validate_bundle(object["spec"]["trustBundle"], errors);
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_name(object, errors);
    validate_signer(object, errors);
    if (!(object["spec"]["trustBundle"] == old["spec"]["trustBundle"]))
      validate_bundle(object["spec"]["trustBundle"], errors);
    const Path spec("spec");
    validate_immutable(object["spec"]["signerName"], old["spec"]["signerName"],
                       spec.child("signerName"), errors);
  };
  rules.selectable = {
      {"spec.signerName", [](const Value& object) { return object["spec"]["signerName"].str(); }}};
  return rules;
}

}  // namespace dibs::api
