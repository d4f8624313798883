// Which standards a namespace is held to: its labels, over what the configuration says for all.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "api/kinds/names.h"
#include "api/kinds/pod_security/pod_security.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

constexpr std::string_view kLabels = "pod-security.kubernetes.io/";
constexpr std::string_view kGroup = "pod-security.admission.config.k8s.io/";
constexpr const char* kLevelFault = "must be one of privileged, baseline, restricted";
constexpr const char* kVersionFault = "must be \"latest\" or \"v1.x\"";

std::optional<SecurityLevel> parse_level(std::string_view text) {
  for (SecurityLevel level :
       {SecurityLevel::privileged, SecurityLevel::baseline, SecurityLevel::restricted}) {
    if (text == name_of(level)) return level;
  }
  return std::nullopt;
}

std::optional<SecurityVersion> parse_version(std::string_view text) {
  if (text == "latest") return SecurityVersion();
  if (!text.starts_with("v1.")) return std::nullopt;
  const std::string_view digits = text.substr(3);
  if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) return std::nullopt;
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) {
    return std::nullopt;
  }
  // As large as upstream's integers; what is newer than all releases is as good as the newest.
  std::int64_t minor = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), minor);
  if (code != std::errc()) return std::nullopt;
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  return SecurityVersion{static_cast<int>(std::min(minor, kMost))};
}

/// One of the three modes, from its two labels. Returns whether a level was given and understood.
bool read_labels(const Value& labels, std::string_view mode, SecurityLevel level_on_fault,
                 SecurityStandard& standard, FieldErrors& errors) {
  const Path path("metadata");
  const Path labels_path = path.child("labels");
  bool understood = false;
  const std::string level_key = cat(kLabels, mode);
  if (const Value* given = labels.find(level_key)) {
    const auto level = parse_level(given->as_string());
    understood = level.has_value();
    standard.level = level.value_or(level_on_fault);
    if (!level) errors.invalid(labels_path.key(level_key), *given, kLevelFault);
  }
  const std::string version_key = cat(kLabels, mode, "-version");
  if (const Value* given = labels.find(version_key)) {
    const auto version = parse_version(given->as_string());
    standard.version = version.value_or(SecurityVersion());
    if (!version) errors.invalid(labels_path.key(version_key), *given, kVersionFault);
  }
  return understood;
}

void read_default(const Value& defaults, const std::string& mode, SecurityStandard& standard,
                  FieldErrors& errors) {
  const Path path("defaults");
  if (const Value& given = defaults[mode]; !given.as_string().empty()) {
    const auto level = parse_level(given.as_string());
    if (!level) errors.invalid(path.child(mode), given, kLevelFault);
    standard.level = level.value_or(SecurityLevel::restricted);
  }
  const std::string field = mode + "-version";
  if (const Value& given = defaults[field]; !given.as_string().empty()) {
    const auto version = parse_version(given.as_string());
    if (!version) errors.invalid(path.child(field), given, kVersionFault);
    standard.version = version.value_or(SecurityVersion());
  }
}

/// `faults_of` gives what is wrong with one of them, or nothing.
template <typename FaultsOf>
std::vector<std::string> read_exempt(const Value& exemptions, const char* field, FaultsOf faults_of,
                                     FieldErrors& errors) {
  const Path path("exemptions");
  const Path list_path = path.child(field);
  std::vector<std::string> out;
  std::size_t i = 0;
  for (const Value& one : exemptions[std::string_view(field)].items()) {
    const Path at = list_path.index(i++);
    if (const Faults faults = faults_of(one.as_string()); !faults.empty()) {
      errors.invalid(at, one, join(faults, ", "));
    } else if (std::ranges::find(out, one.as_string()) != out.end()) {
      errors.duplicate(at, one);
    } else {
      out.push_back(one.str());
    }
  }
  return out;
}

}  // namespace

std::string_view name_of(SecurityLevel level) {
  switch (level) {
    case SecurityLevel::privileged:
      return "privileged";
    case SecurityLevel::baseline:
      return "baseline";
    case SecurityLevel::restricted:
      break;
  }
  return "restricted";
}

std::string SecurityVersion::str() const { return is_latest() ? "latest" : cat("v1.", minor); }

std::string SecurityStandard::str() const { return cat(name_of(level), ":", version.str()); }

bool SecurityStandard::is_equivalent(const SecurityStandard& other) const {
  return level == other.level && (level == SecurityLevel::privileged || version == other.version);
}

bool SecurityPolicy::is_privileged() const {
  return enforce.level == SecurityLevel::privileged && audit.level == SecurityLevel::privileged &&
         warn.level == SecurityLevel::privileged;
}

bool SecurityPolicy::is_equivalent(const SecurityPolicy& other) const {
  return enforce.is_equivalent(other.enforce) && audit.is_equivalent(other.audit) &&
         warn.is_equivalent(other.warn);
}

bool has_security_label(const Value& labels, std::string_view mode) {
  return labels.contains(cat(kLabels, mode)) || labels.contains(cat(kLabels, mode, "-version"));
}

SecurityPolicy security_policy_of(const Value& labels, const SecurityPolicy& defaults,
                                  FieldErrors& errors) {
  SecurityPolicy policy = defaults;
  if (labels.empty()) return policy;
  const bool enforces =
      read_labels(labels, "enforce", SecurityLevel::restricted, policy.enforce, errors);
  read_labels(labels, "audit", SecurityLevel::privileged, policy.audit, errors);
  read_labels(labels, "warn", SecurityLevel::privileged, policy.warn, errors);
  // Who enforces more than he warns of is warned of as much.
  if (enforces && !labels.contains(cat(kLabels, "warn")) &&
      policy.enforce.level > policy.warn.level) {
    policy.warn.level = policy.enforce.level;
    if (!labels.contains(cat(kLabels, "warn-version"))) {
      policy.warn.version = policy.enforce.version;
    }
  }
  return policy;
}

Result<PodSecurityConfiguration> read_pod_security_configuration(const Value& source) {
  const std::string_view version = source["apiVersion"].as_string();
  const bool known = version.starts_with(kGroup) && (version.substr(kGroup.size()) == "v1" ||
                                                     version.substr(kGroup.size()) == "v1beta1" ||
                                                     version.substr(kGroup.size()) == "v1alpha1");
  if (!known || source["kind"].as_string() != "PodSecurityConfiguration") {
    return Error::bad_request(cat("no kind ", quoted(source["kind"].as_string()),
                                  " is registered for version ", quoted(version),
                                  ": must be a PodSecurityConfiguration of ", kGroup, "v1"));
  }
  std::vector<std::string> strict;
  DIBS_TRY(const Value made,
           decode(source, *builtin_type("podsecurity/v1.PodSecurityConfiguration"),
                  Strictness::strict, strict));
  PodSecurityConfiguration configuration;
  FieldErrors errors;
  read_default(made["defaults"], "enforce", configuration.defaults.enforce, errors);
  read_default(made["defaults"], "warn", configuration.defaults.warn, errors);
  read_default(made["defaults"], "audit", configuration.defaults.audit, errors);
  const Value& exemptions = made["exemptions"];
  configuration.exempt_namespaces = read_exempt(
      exemptions, "namespaces", [](std::string_view text) { return is_dns1123_label(text); },
      errors);
  configuration.exempt_runtime_classes = read_exempt(
      exemptions, "runtimeClasses",
      [](std::string_view text) { return is_dns1123_subdomain(text); }, errors);
  configuration.exempt_users = read_exempt(
      exemptions, "usernames",
      [](std::string_view text) {
        return text.empty() ? Faults{"username must not be empty"} : Faults();
      },
      errors);
  if (errors.empty()) return configuration;
  std::vector<std::string> all;
  for (const FieldError& one : errors.errors()) all.push_back(cat(one.field, ": ", one.text));
  return Error::bad_request(all.size() == 1 ? all[0] : cat("[", join(all, ", "), "]"));
}

}  // namespace dibs::api
