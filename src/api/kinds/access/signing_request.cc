#include "api/kinds/access/signing_request.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include <algorithm>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/names.h"
#include "base/owned.h"
#include "base/pem.h"
#include "base/strings.h"
#include "base/time.h"

namespace dibs::api {
namespace {

const std::vector<std::string>& usages() {
  static const std::vector<std::string> all = {"any",
                                               "cert sign",
                                               "client auth",
                                               "code signing",
                                               "content commitment",
                                               "crl sign",
                                               "data encipherment",
                                               "decipher only",
                                               "digital signature",
                                               "email protection",
                                               "encipher only",
                                               "ipsec end system",
                                               "ipsec tunnel",
                                               "ipsec user",
                                               "key agreement",
                                               "key encipherment",
                                               "microsoft sgc",
                                               "netscape sgc",
                                               "ocsp signing",
                                               "s/mime",
                                               "server auth",
                                               "signing",
                                               "timestamping"};
  return all;
}

/// What is wrong with spec.request, "" for nothing.
std::string request_fault(const Value& request) {
  std::string pem;
  base64_decode(request.as_string(), pem);
  std::string_view text = pem;
  const auto block = next_pem_block(text);
  if (!block || block->type != "CERTIFICATE REQUEST") {
    return "PEM block type must be CERTIFICATE REQUEST";
  }
  const auto* data = reinterpret_cast<const unsigned char*>(block->bytes.data());
  const auto* end = data + block->bytes.size();
  const Owned<X509_REQ, X509_REQ_free> parsed(d2i_X509_REQ(nullptr, &data, end - data));
  std::string fault;
  if (!parsed) {
    fault = "asn1: syntax error: not a certificate request";
  } else if (data != end) {
    fault = "asn1: syntax error: trailing data";
  } else {
    EVP_PKEY* key = X509_REQ_get0_pubkey(parsed.get());
    if (!key) {
      fault = "x509: unknown public key algorithm";
    } else if (X509_REQ_verify(parsed.get(), key) != 1) {
      fault = "x509: the signature does not match the public key of the request";
    }
  }
  ERR_clear_error();
  return fault;
}

/// What is wrong with status.certificate, "" for nothing.
std::string certificate_fault(const Value& certificate) {
  if (certificate.as_string().empty()) return {};
  std::string pem;
  base64_decode(certificate.as_string(), pem);
  std::string_view text = pem;
  int count = 0;
  while (const auto block = next_pem_block(text)) {
    if (block->type != "CERTIFICATE") {
      return cat("only CERTIFICATE PEM blocks are allowed, found ", quoted(block->type));
    }
    if (block->has_headers) return "no PEM block headers are permitted";
    ++count;
    const auto* data = reinterpret_cast<const unsigned char*>(block->bytes.data());
    const auto* end = data + block->bytes.size();
    const Owned<X509, X509_free> parsed(d2i_X509(nullptr, &data, end - data));
    ERR_clear_error();
    if (!parsed) return "x509: malformed certificate";
    if (data != end) return "x509: trailing data";
  }
  return count == 0 ? "must contain at least one CERTIFICATE PEM block" : "";
}

bool has_duplicates(const Value& list, std::string_view key) {
  std::set<std::string_view> seen;
  for (const Value& item : list.items()) {
    const Value& value = key.empty() ? item : item[key];
    if (!seen.insert(value.as_string()).second) return true;
  }
  return false;
}

std::size_t count_of(const Value& csr, std::string_view type) {
  std::size_t count = 0;
  for (const Value& condition : csr["status"]["conditions"].items()) {
    count += condition["type"].as_string() == type;
  }
  return count;
}

void check_conditions(const Value& csr, const Value* old, FieldErrors& errors) {
  Path status("status");
  Path path = status.child("conditions");
  const Value& conditions = csr["status"]["conditions"];
  bool may_repeat = old && has_duplicates((*old)["status"]["conditions"], "type");
  std::set<std::string_view> seen;
  std::size_t i = 0;
  for (const Value& condition : conditions.items()) {
    Path at = path.index(i++);
    std::string_view type = condition["type"].as_string();
    std::string_view value = condition["status"].as_string();
    if (type.empty()) errors.required(at.child("type"));
    bool only_true = is_one_of(type, {"Approved", "Denied", "Failed"});
    if (value.empty()) {
      errors.required(at.child("status"));
    } else if (only_true && value != "True") {
      errors.not_supported(at.child("status"), condition["status"], {"True"});
    } else if (!is_one_of(value, {"True", "False", "Unknown"})) {
      errors.not_supported(at.child("status"), condition["status"], {"False", "True", "Unknown"});
    }
    if (!seen.insert(type).second && !may_repeat) {
      errors.duplicate(at.child("type"), condition["type"]);
    }
  }
}

void check_one_decision(const Value& csr, const Value* old, FieldErrors& errors) {
  auto both = [](const Value& c) { return count_of(c, "Approved") && count_of(c, "Denied"); };
  if (!both(csr) || (old && both(*old))) return;
  Path status("status");
  errors.invalid(status.child("conditions"),
                 "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}",
                 "must specify at most one of: `conditions[{\"type\": \"Approved\"}]`, "
                 "`conditions[{\"type\": \"Denied\"}]`");
}

void validate_csr(const Value& csr, const Value* old, FieldErrors& errors) {
  const Value& spec = csr["spec"];
  Path path("spec");
  if (std::string fault = request_fault(spec["request"]); !fault.empty()) {
    bool is_empty = spec["request"].as_string().empty();
    errors.invalid(path.child("request"), is_empty ? Value() : spec["request"], fault);
  }
  Path usages_path = path.child("usages");
  if (spec["usages"].empty()) errors.required(usages_path);
  std::size_t i = 0;
  auto is_known = [](const Value& usage) {
    return std::find(usages().begin(), usages().end(), usage.as_string()) != usages().end();
  };
  for (const Value& usage : spec["usages"].items()) {
    if (!old && !is_known(usage)) errors.not_supported(usages_path.index(i), usage, usages());
    ++i;
  }
  std::set<std::string_view> seen;
  i = 0;
  for (const Value& usage : spec["usages"].items()) {
    if (!seen.insert(usage.as_string()).second && !old)
      errors.duplicate(usages_path.index(i), usage);
    ++i;
  }
  if (spec["signerName"].as_string() == "kubernetes.io/legacy-unknown" && !old) {
    errors.invalid(path.child("signerName"), spec["signerName"],
                   "the legacy signerName is not allowed via this API version");
  } else {
    validate_signer_name(spec["signerName"], path.child("signerName"), errors);
  }
  const Value& seconds = spec["expirationSeconds"];
  if (!seconds.is_null() && seconds.as_int() < 600) {
    errors.invalid(path.child("expirationSeconds"), seconds,
                   "may not specify a duration less than 600 seconds (10 minutes)");
  }
  check_conditions(csr, old, errors);
  const Value& certificate = csr["status"]["certificate"];
  bool untouched = old && certificate == (*old)["status"]["certificate"];
  bool was_bad = old && !certificate_fault((*old)["status"]["certificate"]).empty();
  if (!untouched && !was_bad) {
    if (std::string fault = certificate_fault(certificate); !fault.empty()) {
      Path status("status");
      errors.invalid(status.child("certificate"), "<certificate data>", fault);
    }
  }
}

enum class Write : char { object, status, approval };

void validate_csr_update(const Value& csr, const Value& old, Write write, FieldErrors& errors) {
  validate_csr(csr, &old, errors);
  Path status("status");
  Path conditions = status.child("conditions");
  for (std::string_view type : {"Approved", "Denied", "Failed"}) {
    if (count_of(csr, type) < count_of(old, type)) {
      errors.forbidden(conditions,
                       cat("updates may not remove a condition of type ", quoted(type)));
    }
  }
  if (write != Write::approval) {
    for (std::string_view type : {"Approved", "Denied"}) {
      if (count_of(csr, type) > count_of(old, type)) {
        errors.forbidden(conditions, cat("updates may not add a condition of type ", quoted(type)));
      }
    }
  }
  const Value& certificate = csr["status"]["certificate"];
  const Value& before = old["status"]["certificate"];
  if (certificate.as_string() != before.as_string()) {
    if (write != Write::status) {
      errors.forbidden(status.child("certificate"), "updates may not set certificate content");
    } else if (!before.as_string().empty()) {
      errors.forbidden(status.child("certificate"),
                       "updates may not modify existing certificate content");
    }
  }
  check_one_decision(csr, &old, errors);
}

/// Approved and Denied stay as they were as long as there are as many of them.
void preserve_decisions(Value& csr, const Value& old, std::string_view type) {
  if (count_of(csr, type) != count_of(old, type) || count_of(old, type) == 0) return;
  Value& conditions = csr.mut("status").mut("conditions");
  std::size_t next = 0;
  for (const Value& before : old["status"]["conditions"].items()) {
    if (before["type"].as_string() != type) continue;
    while (conditions[next]["type"].as_string() != type) ++next;
    conditions.mut(next++) = before;
  }
}

void stamp_conditions(Value& csr, const Value& old, Time now) {
  if (csr["status"]["conditions"].empty()) return;
  Value& conditions = csr.mut("status").mut("conditions");
  std::string text = format_rfc3339(now);
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    Value& condition = conditions.mut(i);
    set_default(condition, "lastUpdateTime", text);
    if (is_set(condition, "lastTransitionTime")) continue;
    Value since = text;
    for (const Value& before : old["status"]["conditions"].items()) {
      if (before["type"] == condition["type"] && before["status"] == condition["status"] &&
          is_set(before, "lastTransitionTime")) {
        since = before["lastTransitionTime"];
        break;
      }
    }
    condition.set("lastTransitionTime", since);
  }
}

}  // namespace

void validate_signer_name(const Value& name, const Path& path, FieldErrors& errors) {
  constexpr std::size_t kMaxDomain = 253;
  constexpr std::size_t kMaxName = kMaxDomain + 1 + 253 + 63 + 1;
  std::string_view text = name.as_string();
  if (text.empty()) {
    errors.required(path);
    return;
  }
  std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() != 2) {
    errors.invalid(path, name,
                   "must be a fully qualified domain and path of the form "
                   "'example.com/signer-name'");
    return;
  }
  if (parts[0].size() > kMaxDomain) errors.too_long(path, kMaxDomain);
  std::vector<std::string_view> labels = split(parts[0], '.');
  for (std::string_view label : labels) {
    for (const std::string& fault : is_dns1123_label(label)) {
      errors.invalid(path, parts[0], cat("validating label ", quoted(label), ": ", fault));
    }
  }
  if (labels.size() < 2) {
    errors.invalid(path, parts[0],
                   "should be a domain with at least two segments separated by dots");
  }
  for (std::string_view label : split(parts[1], '.')) {
    for (const std::string& fault : is_dns1123_subdomain(label)) {
      errors.invalid(path, parts[1], cat("validating label ", quoted(label), ": ", fault));
    }
  }
  if (text.size() > kMaxName) errors.too_long(path, kMaxName);
}

KindRules signing_request_rules() {
  KindRules rules;
  rules.name_rule = NameRule::any;
  rules.has_status = true;
  rules.keeps_spec = true;
  rules.prepare_create = [](Value& csr, const RuleContext&) { csr.set("status", Value::object()); };
  rules.prepare_update = [](Value& csr, const Value& old, const RuleContext&) {
    csr.set("spec", old["spec"]);
  };
  rules.prepare_status = [](Value& csr, const Value& old, const RuleContext& context) {
    preserve_decisions(csr, old, "Approved");
    preserve_decisions(csr, old, "Denied");
    stamp_conditions(csr, old, context.now);
  };
  rules.validate = [](const Value& csr, FieldErrors& errors) {
    validate_csr(csr, nullptr, errors);
    check_one_decision(csr, nullptr, errors);
  };
  rules.validate_update = [](const Value& csr, const Value& old, FieldErrors& errors) {
    validate_csr_update(csr, old, Write::object, errors);
  };
  rules.validate_status = [](const Value& csr, const Value& old, FieldErrors& errors) {
    validate_csr_update(csr, old, Write::status, errors);
  };
  rules.selectable = {
      {"spec.signerName", [](const Value& csr) { return csr["spec"]["signerName"].str(); }}};
  return rules;
}

KindRules signing_request_approval_rules() {
  KindRules rules = signing_request_rules();
  rules.prepare_status = [](Value& csr, const Value& old, const RuleContext& context) {
    stamp_conditions(csr, old, context.now);
    Value conditions = csr["status"]["conditions"];
    csr.set("status", old["status"].is_object() ? old["status"] : Value::object());
    if (conditions.is_null()) {
      csr.mut("status").erase("conditions");
    } else {
      csr.mut("status").set("conditions", conditions);
    }
  };
  rules.validate_status = [](const Value& csr, const Value& old, FieldErrors& errors) {
    validate_csr_update(csr, old, Write::approval, errors);
  };
  return rules;
}

}  // namespace dibs::api
