#include "api/kinds/access/secret.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "base/owned.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

constexpr const char* kAccountName = "kubernetes.io/service-account.name";

void set_secret_defaults(Value& secret) {
  set_default_text(secret, "type", "Opaque");
  Value texts = secret["stringData"];
  if (!secret.contains("stringData")) return;
  for (const auto& [key, text] : texts.members()) {
    secret.mut("data").set(key, base64_encode(text.as_string()));
  }
  // Write-only: it is never stored.
  secret.erase("stringData");
}

std::string decoded(const Value& data, std::string_view key) {
  std::string bytes;
  base64_decode(data[key].as_string(), bytes);
  return bytes;
}

void require_key(const Value& data, std::string_view key, const Path& path, FieldErrors& errors) {
  if (!data.contains(key)) errors.required(path.key(key));
}

void require_json(const Value& data, std::string_view key, const Path& path, FieldErrors& errors) {
  if (!data.contains(key)) {
    errors.required(path.key(key));
    return;
  }
  auto parsed = json::parse(decoded(data, key));
  std::string fault;
  if (!parsed.ok()) {
    fault = parsed.error().message();
  } else if (!parsed->is_object() && !parsed->is_null()) {
    std::string_view kind = parsed->is_array()     ? "array"
                            : parsed->is_string()  ? "string"
                            : parsed->is_boolean() ? "bool"
                                                   : "number";
    fault = cat("json: cannot unmarshal ", kind, " into Go value of type map[string]interface {}");
  }
  if (!fault.empty()) errors.invalid(path.key(key), "<secret contents redacted>", fault);
}

void validate_secret(const Value& secret, FieldErrors& errors) {
  const Value& data = secret["data"];
  Path path("data");
  std::size_t size = 0;
  for (const std::string& key : sorted_keys(data)) {
    add_invalid(is_config_map_key(key), Value(key), path.key(key), errors);
    size += decoded_size(data[key].as_string());
  }
  if (size > kMaxSecretSize) errors.too_long(path, kMaxSecretSize);
  std::string_view type = secret["type"].as_string();
  if (type == "kubernetes.io/service-account-token") {
    if (secret["metadata"]["annotations"][kAccountName].as_string().empty()) {
      Path metadata("metadata");
      Path annotations = metadata.child("annotations");
      errors.required(annotations.key(kAccountName));
    }
  } else if (type == "kubernetes.io/dockercfg") {
    require_json(data, ".dockercfg", path, errors);
  } else if (type == "kubernetes.io/dockerconfigjson") {
    require_json(data, ".dockerconfigjson", path, errors);
  } else if (type == "kubernetes.io/basic-auth") {
    if (!data.contains("username") && !data.contains("password")) {
      errors.required(path.key("username"));
      errors.required(path.key("password"));
    }
  } else if (type == "kubernetes.io/ssh-auth") {
    if (data["ssh-privatekey"].as_string().empty()) errors.required(path.key("ssh-privatekey"));
  } else if (type == "kubernetes.io/tls") {
    require_key(data, "tls.crt", path, errors);
    require_key(data, "tls.key", path, errors);
  }
}

void validate_secret_update(const Value& secret, const Value& old, FieldErrors& errors) {
  validate_immutable(secret["type"], old["type"], Path("type"), errors);
  if (old["immutable"].as_bool()) {
    constexpr std::string_view text = "field is immutable when `immutable` is set";
    if (!secret["immutable"].as_bool()) errors.forbidden(Path("immutable"), text);
    bool same = secret["data"] == old["data"] || (secret["data"].empty() && old["data"].empty());
    if (!same) errors.forbidden(Path("data"), text);
  }
  validate_secret(secret, errors);
}

using Bio = Owned<BIO, BIO_free>;

Bio memory(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

bool has_pem(const std::string& text, std::string_view title) {
  return text.find(cat("-----BEGIN ", title)) != std::string::npos;
}

// The words of Go's X509KeyPair, which users look for.
std::string key_pair_fault(const std::string& certificate, const std::string& key) {
  if (!has_pem(certificate, "")) return "tls: failed to find any PEM data in certificate input";
  if (!has_pem(certificate, "CERTIFICATE")) {
    bool switched = certificate.find("PRIVATE KEY-----") != std::string::npos;
    return switched
               ? "tls: failed to find certificate PEM data in certificate input, but did find a "
                 "private key; PEM inputs may have been switched"
               : "tls: failed to find \"CERTIFICATE\" PEM block in certificate input";
  }
  if (!has_pem(key, "")) return "tls: failed to find any PEM data in key input";
  if (key.find("PRIVATE KEY-----") == std::string::npos) {
    return has_pem(key, "CERTIFICATE")
               ? "tls: found a certificate rather than a key in the PEM for the private key"
               : "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input";
  }
  Bio certificate_text = memory(certificate);
  const Owned<X509, X509_free> parsed(
      PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  if (parsed == nullptr) return "x509: malformed certificate";
  Bio key_text = memory(key);
  const Owned<EVP_PKEY, EVP_PKEY_free> private_key(
      PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (private_key == nullptr) return "tls: failed to parse private key";
  if (X509_check_private_key(parsed.get(), private_key.get()) != 1) {
    return "tls: private key does not match public key";
  }
  return "";
}

std::vector<std::string> secret_warnings(const Value& secret, const Value*) {
  if (secret["type"].as_string() != "kubernetes.io/tls") return {};
  std::string fault =
      key_pair_fault(decoded(secret["data"], "tls.crt"), decoded(secret["data"], "tls.key"));
  if (fault.empty()) return {};
  return {fault};
}

}  // namespace

std::size_t decoded_size(std::string_view base64) {
  std::size_t size = base64.size() / 4 * 3;
  while (!base64.empty() && base64.back() == '=') {
    base64.remove_suffix(1);
    --size;
  }
  return size;
}

KindRules secret_rules() {
  KindRules rules;
  rules.set_defaults = set_secret_defaults;
  rules.validate = validate_secret;
  rules.validate_update = validate_secret_update;
  rules.warnings = secret_warnings;
  rules.selectable = {{"type", [](const Value& secret) { return secret["type"].str(); }}};
  return rules;
}

}  // namespace dibs::api
