#include "api/kinds/pod_security/checks.h"

#include <algorithm>
#include <span>

#include "base/strings.h"

namespace dibs::api {
namespace pod_security {
namespace {

struct Version {
  int since;  // the minor number of the release
  CheckFunction run;
};

struct Check {
  std::string_view id;
  SecurityLevel level;
  std::initializer_list<Version> versions;  // the oldest first
  /// Check of baseline that is not asked where this one is.
  std::string_view replaces = {};

  CheckFunction at(int minor) const {
    CheckFunction found = nullptr;
    for (const Version& version : versions) {
      if (version.since <= minor) found = version.run;
    }
    return found;
  }
};

constexpr SecurityLevel kBaseline = SecurityLevel::baseline;
constexpr SecurityLevel kRestricted = SecurityLevel::restricted;

/// No check has changed since.
constexpr int kNewest = 35;

/// In the order they are told: those of baseline first, then by id.
std::span<const Check> all_checks() {
  static const Check kChecks[] = {
      {"appArmorProfile", kBaseline, {{0, app_armor}}},
      {"capabilities_baseline", kBaseline, {{0, capabilities_baseline}}},
      {"hostNamespaces", kBaseline, {{0, host_namespaces}}},
      {"hostPathVolumes", kBaseline, {{0, host_path_volumes}}},
      {"hostPorts", kBaseline, {{0, host_ports}}},
      {"hostProbesAndHostLifecycle", kBaseline, {{34, host_probes}}},
      {"privileged", kBaseline, {{0, privileged}}},
      {"procMount", kBaseline, {{0, proc_mount}, {35, unless_own_users<proc_mount>}}},
      {"seLinuxOptions", kBaseline, {{0, se_linux_1_0}, {31, se_linux_1_31}}},
      {"seccompProfile_baseline",
       kBaseline,
       {{0, seccomp_baseline_1_0}, {19, seccomp_baseline_1_19}}},
      {"sysctls",
       kBaseline,
       {{0, sysctls_1_0}, {27, sysctls_1_27}, {29, sysctls_1_29}, {32, sysctls_1_32}}},
      {"windowsHostProcess", kBaseline, {{0, windows_host_process}}},
      {"allowPrivilegeEscalation",
       kRestricted,
       {{8, privilege_escalation}, {25, unless_windows<privilege_escalation>}}},
      {"capabilities_restricted",
       kRestricted,
       {{22, capabilities_restricted}, {25, unless_windows<capabilities_restricted>}},
       "capabilities_baseline"},
      {"procMount_restricted", kRestricted, {{35, proc_mount}}, "procMount"},
      {"restrictedVolumes", kRestricted, {{0, restricted_volumes}}, "hostPathVolumes"},
      {"runAsNonRoot",
       kRestricted,
       {{0, run_as_non_root}, {35, unless_own_users<run_as_non_root>}}},
      {"runAsUser", kRestricted, {{23, run_as_user}, {35, unless_own_users<run_as_user>}}},
      {"seccompProfile_restricted",
       kRestricted,
       {{19, seccomp_restricted}, {25, unless_windows<seccomp_restricted>}},
       "seccompProfile_baseline"},
  };
  return kChecks;
}

bool is_replaced(const Check& check, int minor) {
  return std::ranges::any_of(all_checks(), [&](const Check& other) {
    return other.replaces == check.id && other.at(minor) != nullptr;
  });
}

}  // namespace

void for_each_container(const Pod& pod, const std::function<void(const Value&)>& visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : pod.spec[list].items()) visit(container);
  }
}

std::string joined(const Names& names) {
  return names.empty() ? "" : cat('"', join(names, "\", \""), '"');
}

std::string joined(const SortedNames& names) { return joined(Names(names.begin(), names.end())); }

std::string containers_text(const Names& names) {
  return cat(plural(names.size(), "container", "containers"), " ", joined(names));
}

std::string setters_text(bool pod, const Names& containers) {
  Names setters;
  if (pod) setters.emplace_back("pod");
  if (!containers.empty()) setters.push_back(containers_text(containers));
  return join(setters, " and ");
}

}  // namespace pod_security

SecurityVerdict judge_pod_security(const SecurityStandard& standard, int release,
                                   const json::Value& metadata, const json::Value& spec) {
  using pod_security::Check;
  SecurityVerdict verdict;
  if (standard.level == SecurityLevel::privileged) return verdict;
  const int newest = std::min(release, pod_security::kNewest);
  const int minor =
      standard.version.is_latest() ? newest : std::min(standard.version.minor, newest);
  const bool restricted = standard.level == SecurityLevel::restricted;
  for (const Check& check : pod_security::all_checks()) {
    if (check.level > standard.level) continue;
    if (restricted && pod_security::is_replaced(check, minor)) continue;
    const auto run = check.at(minor);
    if (run == nullptr) continue;
    if (auto found = run({metadata, spec})) verdict.violations.push_back(std::move(*found));
  }
  return verdict;
}

std::string SecurityVerdict::reasons() const {
  std::vector<std::string> all;
  for (const Violation& one : violations) all.push_back(one.reason);
  return join(all, ", ");
}

std::string SecurityVerdict::details() const {
  std::vector<std::string> all;
  for (const Violation& one : violations) {
    all.push_back(one.detail.empty() ? one.reason : cat(one.reason, " (", one.detail, ")"));
  }
  return join(all, ", ");
}

}  // namespace dibs::api
