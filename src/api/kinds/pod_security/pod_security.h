#pragma once
// The Pod Security Standards: what pods of a namespace may ask of the machine they run on.
//
// A namespace says by labels which level, as which release had it, is enforced, noted for audits
// and warned about. Each level is a list of checks; "restricted" has those of "baseline" but for
// the few that it replaces by stricter ones. A check may differ by release, and a namespace that
// names an older one is judged as that release did. Ids, versions and words are those of
// Kubernetes.
//
// Pure functions: who is exempt, and what becomes of a violation, is the admission plugin's.

#include <string>
#include <string_view>
#include <vector>

#include "api/schema/field_error.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

enum class SecurityLevel : char { privileged, baseline, restricted };  // the least strict first

std::string_view name_of(SecurityLevel level);

/// v1.MINOR, or the newest there is.
struct SecurityVersion {
  static constexpr int kLatest = -1;
  int minor = kLatest;

  bool is_latest() const { return minor == kLatest; }
  std::string str() const;
  bool operator==(const SecurityVersion&) const = default;
};

struct SecurityStandard {
  SecurityLevel level = SecurityLevel::privileged;
  SecurityVersion version;

  /// "restricted:latest"
  std::string str() const;
  /// Privileged is the same in all versions.
  bool is_equivalent(const SecurityStandard& other) const;
  bool operator==(const SecurityStandard&) const = default;
};

struct SecurityPolicy {
  SecurityStandard enforce;
  SecurityStandard audit;
  SecurityStandard warn;

  bool is_privileged() const;
  bool is_equivalent(const SecurityPolicy& other) const;
};

/// What an administrator sets for all namespaces (PodSecurityConfiguration).
struct PodSecurityConfiguration {
  SecurityPolicy defaults;  // where a namespace has no label
  std::vector<std::string> exempt_users;
  std::vector<std::string> exempt_namespaces;
  std::vector<std::string> exempt_runtime_classes;
};

/// Decodes and judges a PodSecurityConfiguration. Errors: bad_request names every fault.
Result<PodSecurityConfiguration> read_pod_security_configuration(const json::Value& source);

/// The policy that the labels of a namespace set. There always is one: where a label cannot be
/// understood, which `errors` tells, the strictest is enforced, and nothing audited or warned of.
SecurityPolicy security_policy_of(const json::Value& labels, const SecurityPolicy& defaults,
                                  FieldErrors& errors);

/// Those of metadata.labels that a policy is read from.
bool has_security_label(const json::Value& labels, std::string_view mode);

/// What a pod violates.
struct SecurityVerdict {
  struct Violation {
    std::string reason;
    std::string detail;
  };
  std::vector<Violation> violations;

  bool is_allowed() const { return violations.empty(); }
  /// "hostPort, privileged"
  std::string reasons() const;
  /// `privileged (container "c" must not set securityContext.privileged=true)`
  std::string details() const;
};

/// A pod, or the template of one. `release` is the minor number of the release that judges: nothing
/// newer is "latest".
SecurityVerdict judge_pod_security(const SecurityStandard& standard, int release,
                                   const json::Value& metadata, const json::Value& spec);

}  // namespace dibs::api
