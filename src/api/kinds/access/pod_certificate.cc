#include "api/kinds/access/pod_certificate.h"

#include "api/kinds/access/certificate_material.h"
#include "api/kinds/access/mail_address.h"
#include "api/kinds/access/signing_request.h"
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "base/pem.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using std::chrono::minutes;

constexpr std::int64_t kDay = 24LL * 60 * 60;
constexpr std::size_t kMostAnnotationBytes = 256 * 1024;
constexpr std::size_t kMostUid = 128;
constexpr std::size_t kMostKeyBytes = 10 * 1024;
constexpr std::size_t kMostChainBytes = 100 * 1024;
constexpr Duration kSkew = minutes(5);
constexpr Duration kMargin = minutes(10);
constexpr Duration kShortestLife = std::chrono::hours(1);

constexpr std::string_view kNoRequest = "must be a valid PKCS#10 CSR";

std::string decoded(const Value& bytes) {
  std::string out;
  base64_decode(bytes.as_string(), out);
  return out;
}

// --- spec ---

void check_uid(const Value& uid, const Path& path, FieldErrors& errors) {
  if (uid.as_string().empty()) errors.invalid(path, Value(""), "must not be empty");
  if (uid.as_string().size() > kMostUid) errors.too_long(path, kMostUid);
}

void check_whose(const Value& spec, const Path& path, FieldErrors& errors) {
  for (const auto& [name, uid] :
       {std::pair("podName", "podUID"), std::pair("serviceAccountName", "serviceAccountUID"),
        std::pair("nodeName", "nodeUID")}) {
    add_invalid(is_dns1123_subdomain(spec[name].as_string()), Value(spec[name].as_string()),
                path.child(name), errors);
    check_uid(spec[uid], path.child(uid), errors);
  }
}

struct KeyWords {
  std::string_view curves;
  Value other;  // what is shown of a key of another kind; null for nothing
};

/// True for a key of the kinds that pods may have.
bool check_key(const PublicKey& key, const Path& path, const KeyWords& words, FieldErrors& errors) {
  switch (key.kind) {
    case PublicKey::Kind::ed25519:
      return true;
    case PublicKey::Kind::ecdsa:
      if (is_one_of(key.curve, {"P-256", "P-384", "P-521"})) return true;
      errors.invalid(path, cat("curve ", key.curve), words.curves);
      return false;
    case PublicKey::Kind::rsa:
      if (key.bits == 3072 || key.bits == 4096) return true;
      errors.invalid(path, cat(key.bits, "-bit modulus"),
                     "RSA keys must have modulus size 3072 or 4096");
      return false;
    case PublicKey::Kind::other:
      break;
  }
  constexpr std::string_view kUnknown =
      "unknown public key type; supported types are Ed25519, ECDSA, and RSA";
  if (words.other.is_null()) {
    invalid_without_value(path, kUnknown, errors);
  } else {
    errors.invalid(path, words.other, kUnknown);
  }
  return false;
}

void check_stub_request(const Value& spec, const Path& parent, FieldErrors& errors) {
  const Path path = parent.child("stubPKCS10Request");
  const std::string der = decoded(spec["stubPKCS10Request"]);
  if (der.size() > kMostKeyBytes) return errors.too_long(path, kMostKeyBytes);
  const auto request = read_stub_request(der);
  if (!request) return invalid_without_value(path, kNoRequest, errors);
  const KeyWords words{"elliptic public keys must use curve P256, P384, or P521", {}};
  if (!check_key(request->key, path, words, errors)) return;
  if (!request->is_signed) invalid_without_value(path, "invalid signature", errors);
}

void check_key_and_proof(const Value& spec, const Path& parent, FieldErrors& errors) {
  const Path path = parent.child("pkixPublicKey");
  const Path proof_path = parent.child("proofOfPossession");
  const std::string der = decoded(spec["pkixPublicKey"]);
  const std::string proof = decoded(spec["proofOfPossession"]);
  if (der.size() > kMostKeyBytes) return errors.too_long(path, kMostKeyBytes);
  if (proof.size() > kMostKeyBytes) return errors.too_long(proof_path, kMostKeyBytes);
  const auto key = read_public_key(der);
  if (!key) {
    return errors.invalid(path, spec["pkixPublicKey"],
                          "must be a valid PKIX-serialized public key");
  }
  const KeyWords words{"elliptic public keys must use curve P256 or P384", spec["pkixPublicKey"]};
  if (!check_key(*key, path, words, errors)) return;
  if (!is_signed_by(*key, spec["podUID"].as_string(), proof)) {
    invalid_without_value(proof_path, "could not verify proof-of-possession signature", errors);
  }
}

void validate_request(const Value& request, FieldErrors& errors) {
  const Value& spec = request["spec"];
  const Path path("spec");
  validate_signer_name(spec["signerName"], path.child("signerName"), errors);
  validate_user_annotations(spec["unverifiedUserAnnotations"],
                            path.child("unverifiedUserAnnotations"), errors);
  check_whose(spec, path, errors);
  const Value& seconds = spec["maxExpirationSeconds"];
  const Path seconds_path = path.child("maxExpirationSeconds");
  if (seconds.is_null()) return errors.required(seconds_path, "must be set");
  const std::int64_t longest = longest_certificate(spec["signerName"].as_string());
  if (seconds.as_int() < kShortestCertificate || seconds.as_int() > longest) {
    errors.invalid(seconds_path, seconds,
                   cat("must be in the range [", kShortestCertificate, ", ", longest, "]"));
  }
  const bool stub = !spec["stubPKCS10Request"].as_string().empty();
  const bool key = !spec["pkixPublicKey"].as_string().empty();
  const bool proof = !spec["proofOfPossession"].as_string().empty();
  if (stub && !key && !proof) {
    check_stub_request(spec, path, errors);
  } else if (!stub && key && proof) {
    check_key_and_proof(spec, path, errors);
  } else {
    invalid_without_value(
        path,
        "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
        errors);
  }
}

/// The spec as the API's messages show it: by Go's names, in Go's order.
Value shown_spec(const Value& spec) {
  const auto given = [](const Value& value) { return value.empty() ? Value() : value; };
  return Value::object(
      {{"SignerName", spec["signerName"].str()},
       {"PodName", spec["podName"].str()},
       {"PodUID", spec["podUID"].str()},
       {"ServiceAccountName", spec["serviceAccountName"].str()},
       {"ServiceAccountUID", spec["serviceAccountUID"].str()},
       {"NodeName", spec["nodeName"].str()},
       {"NodeUID", spec["nodeUID"].str()},
       {"MaxExpirationSeconds", spec["maxExpirationSeconds"]},
       {"PKIXPublicKey", spec["pkixPublicKey"].is_string() ? spec["pkixPublicKey"] : Value()},
       {"ProofOfPossession",
        spec["proofOfPossession"].is_string() ? spec["proofOfPossession"] : Value()},
       {"StubPKCS10Request",
        spec["stubPKCS10Request"].is_string() ? spec["stubPKCS10Request"] : Value()},
       {"UnverifiedUserAnnotations", given(sorted_map(spec["unverifiedUserAnnotations"]))}});
}

/// What is null or empty is as good as not there.
Value without_nothing(const Value& object) {
  Value out = Value::object();
  for (const auto& [key, value] : object.members()) {
    const bool nothing = value.is_null() || (value.is_string() && value.as_string().empty()) ||
                         ((value.is_array() || value.is_object()) && value.empty());
    if (!nothing) out.set(key, value);
  }
  return out;
}

bool says_the_same(const Value& a, const Value& b) {
  return without_nothing(a) == without_nothing(b);
}

// --- status ---

bool is_known_condition(std::string_view type) {
  return is_one_of(type, {"Issued", "Denied", "Failed"});
}

bool is_decided(const Value& request) {
  const Value& conditions = request["status"]["conditions"];
  for (const char* type : {"Issued", "Denied", "Failed"}) {
    if (condition_is_true(conditions, type)) return true;
  }
  return false;
}

void check_request_conditions(const Value& conditions, const Path& path, FieldErrors& errors) {
  int known = 0;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Value& condition = conditions[i];
    // The API puts a dot before these indices.
    const std::string index = cat("[", i, "]");
    const Path at = path.child(index);
    if (!is_known_condition(condition["type"].as_string())) {
      errors.not_supported(at.child("type"), condition["type"].str(),
                           {"Issued", "Denied", "Failed"});
      continue;
    }
    if (++known > 1) {
      errors.invalid(at.child("type"), condition["type"],
                     "There may be at most one condition with type \"Issued\", \"Denied\", or "
                     "\"Failed\"");
    }
    if (condition["status"].as_string() != "True") {
      errors.not_supported(at.child("status"), condition["status"].str(), {"True"});
    }
  }
  validate_conditions(conditions, path, errors);
}

/// The names that a leaf has must be names.
void check_leaf_names(const IssuedCertificate& leaf, const Path& path, FieldErrors& errors) {
  for (const std::string& name : leaf.dns_names) {
    if (name.empty()) {
      errors.invalid(path, Value(name), "leaf certificate should not contain empty DNSName");
    }
    if (name.find("..") != std::string::npos) {
      errors.invalid(path, Value(name), "leaf certificate's DNSName should not contain '..'");
    }
    if (name.starts_with('.') || name.ends_with('.')) {
      errors.invalid(path, Value(name),
                     "leaf certificate's DNSName should not start or end with '.'");
    }
  }
  for (const std::string& address : leaf.email_addresses) {
    if (!is_mail_address(address)) {
      errors.invalid(path, Value(address),
                     "leaf certificate should not contain invalid EmailAddress");
    }
  }
}

/// The key that the request asks a certificate for; none, and a fault, where it cannot be read.
std::optional<PublicKey> requested_key(const Value& spec, FieldErrors& errors) {
  const Path path("spec");
  if (!spec["stubPKCS10Request"].as_string().empty()) {
    if (auto request = read_stub_request(decoded(spec["stubPKCS10Request"]))) return request->key;
    invalid_without_value(path.child("stubPKCS10Request"), kNoRequest, errors);
    return std::nullopt;
  }
  auto key = read_public_key(decoded(spec["pkixPublicKey"]));
  if (!key) {
    invalid_without_value(path.child("pkixPublicKey"), "must be a valid PKIX-serialized public key",
                          errors);
  }
  return key;
}

std::optional<Time> time_of(const Value& text) {
  auto time = parse_rfc3339(text.as_string());
  return time ? std::optional(*time) : std::nullopt;
}

/// The times of the status are those of the leaf, and leave room for the next certificate.
void check_times(const Value& request, const IssuedCertificate& leaf, Time now,
                 FieldErrors& errors) {
  const Path path("status");
  const Value& status = request["status"];
  const auto begins = time_of(status["notBefore"]);
  const auto ends = time_of(status["notAfter"]);
  const auto refresh = time_of(status["beginRefreshAt"]);
  constexpr std::string_view kConsistent =
      "must be present and consistent with the issued certificate";
  if (!begins) errors.required(path.child("notBefore"), kConsistent);
  if (!ends) errors.required(path.child("notAfter"), kConsistent);
  if (!refresh) {
    errors.required(path.child("beginRefreshAt"),
                    "must be present and in the range [notbefore+10min, notafter-10min]");
  }
  if (!errors.empty()) return;
  const auto refuse = [&](std::string_view field, std::string_view why) {
    errors.invalid(path.child(field), status[field], why);
  };
  if (*begins != leaf.not_before) {
    return refuse("notBefore", "must be set to the NotBefore time encoded in the leaf certificate");
  }
  if (!(*begins > now - kSkew && *begins < now + kSkew)) {
    return refuse("notBefore", "must be set to within 5 minutes of kube-apiserver's current time");
  }
  if (*ends != leaf.not_after) {
    return refuse("notAfter", "must be set to the NotAfter time encoded in the leaf certificate");
  }
  const Duration life = leaf.not_after - leaf.not_before;
  const Value shown = static_cast<long long>(life.count());
  const Path chain = path.child("certificateChain");
  if (life < kShortestLife) {
    return errors.invalid(chain, shown, "leaf certificate lifetime must be >= 1 hour");
  }
  const std::int64_t most = request["spec"]["maxExpirationSeconds"].as_int();
  if (life > std::chrono::seconds(most)) {
    return errors.invalid(
        chain, shown,
        cat("leaf certificate lifetime must be <= spec.maxExpirationSeconds (", most, ")"));
  }
  if (*refresh < *begins + kMargin) {
    return refuse("beginRefreshAt", "must be at least 10 minutes after status.notBefore");
  }
  if (*refresh > *ends - kMargin) {
    refuse("beginRefreshAt", "must be at least 10 minutes before status.notAfter");
  }
}

void check_issued(const Value& request, const Value& old, Time now, FieldErrors& errors) {
  const Path status("status");
  const Path path = status.child("certificateChain");
  const Value chain = request["status"]["certificateChain"].str();
  const auto refuse = [&](std::string_view why) { errors.invalid(path, chain, why); };
  if (chain.as_string().size() > kMostChainBytes) return errors.too_long(path, kMostChainBytes);
  std::vector<PemBlock> blocks;
  std::string_view rest = chain.as_string();
  while (auto block = next_pem_block(rest)) blocks.push_back(std::move(*block));
  if (blocks.empty()) {
    return refuse("issued certificate chain must contain at least one certificate");
  }
  if (blocks.front().type != "CERTIFICATE") {
    return refuse("issued certificate chain must consist entirely of CERTIFICATE PEM blocks");
  }
  const auto leaf = read_issued_certificate(blocks.front().bytes);
  if (!leaf) return refuse("leaf certificate does not parse as valid X.509");
  check_leaf_names(*leaf, path, errors);
  const auto wanted = requested_key(old["spec"], errors);
  if (!wanted) return;
  if (wanted->der != leaf->key.der) {
    return refuse("leaf certificate was not issued to the requested public key");
  }
  check_times(request, *leaf, now, errors);
  if (!errors.empty()) return;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].type != "CERTIFICATE") {
      return refuse("issued certificate chain must consist entirely of CERTFICATE PEM blocks");
    }
    if (!read_issued_certificate(blocks[i].bytes)) {
      return refuse("intermediate certificate does not parse as valid X.509");
    }
  }
}

void validate_request_status(const Value& request, const Value& old, Time now,
                             FieldErrors& errors) {
  if (!errors.empty()) return;
  const Path path("status");
  const Value& status = request["status"];
  check_request_conditions(status["conditions"], path.child("conditions"), errors);
  // They say how the rest is to be judged.
  if (!errors.empty()) return;
  if (is_decided(old)) {
    if (!says_the_same(status, old["status"])) {
      invalid_without_value(
          path, "immutable after PodCertificateRequest is issued, denied, or failed", errors);
    }
    return;
  }
  if (condition_is_true(status["conditions"], "Issued")) {
    return check_issued(request, old, now, errors);
  }
  if (is_decided(request)) {
    Value rest = without_nothing(status);
    rest.erase("conditions");
    if (!rest.empty()) {
      invalid_without_value(path,
                            "non-condition status fields must be empty when denying or failing the "
                            "PodCertificateRequest",
                            errors);
    }
    return;
  }
  if (!says_the_same(status, old["status"])) {
    invalid_without_value(
        path, "status is immutable unless transitioning to \"Issued\", \"Denied\", or \"Failed\"",
        errors);
  }
}

}  // namespace

std::int64_t longest_certificate(std::string_view signer) {
  const std::string_view domain = signer.substr(0, signer.find('/'));
  const bool own = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
  return own ? kDay : 91 * kDay;
}

void validate_user_annotations(const Value& annotations, const Path& path, FieldErrors& errors) {
  std::size_t size = 0;
  for (const std::string& given : sorted_keys(annotations)) {
    size += given.size() + annotations[given].as_string().size();
    const std::string key = to_lower(given);
    if (key.empty()) {
      errors.required(path);
      continue;
    }
    const Faults faults = is_qualified_name(key);
    add_invalid(faults, Value(key), path, errors);
    if (faults.empty() && key.find('/') == std::string::npos) {
      errors.invalid(path, Value(key), "must be a domain-prefixed key (such as \"acme.io/foo\")");
    }
  }
  if (size > kMostAnnotationBytes) errors.too_long(path, kMostAnnotationBytes);
}

KindRules pod_certificate_request_rules() {
  KindRules rules;
  rules.has_status = true;
  rules.allow_unconditional_update = false;
  rules.prepare_create = [](Value& request, const RuleContext&) {
    request.set("status", Value::object());
  };
  rules.validate = validate_request;
  rules.validate_update = [](const Value& request, const Value& old, FieldErrors& errors) {
    if (!says_the_same(request["spec"], old["spec"])) {
      errors.invalid(Path("spec"), shown_spec(request["spec"]), "field is immutable");
    }
  };
  rules.validate_status_at = validate_request_status;
  for (const char* field : {"signerName", "podName", "nodeName"}) {
    rules.selectable.push_back({cat("spec.", field), [field](const Value& request) {
                                  return request["spec"][field].str();
                                }});
  }
  return rules;
}

}  // namespace dibs::api
