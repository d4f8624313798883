// Barriers of the kernel that a pod may not take down: AppArmor, SELinux, seccomp, masks of /proc,
// settings of the machine.
#include <algorithm>
#include <span>

#include "api/kinds/pod_security/checks.h"
#include "base/strings.h"

namespace dibs::api::pod_security {
namespace {

constexpr std::string_view kAppArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kSeccompOfPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompPrefix = "container.seccomp.security.alpha.kubernetes.io/";

bool is_confined(std::string_view type) { return type == "RuntimeDefault" || type == "Localhost"; }

/// Who sets a profile, and which, that confines nothing.
struct Profiles {
  bool of_pod = false;
  Names containers;
  Names silent;  // containers that say nothing, where the pod does not say it for them
  SortedNames types;
};

Profiles profiles_of(const Pod& pod, const char* field) {
  Profiles found;
  const Value& all = pod.context()[std::string_view(field)];
  const auto is_bad = [&](const Value& profile) {
    const std::string_view type = profile["type"].as_string();
    if (is_confined(type)) return false;
    found.types.emplace(type);
    return true;
  };
  found.of_pod = !all.is_null() && is_bad(all);
  const bool said_for_all = !all.is_null() && !found.of_pod;
  for_each_container(pod, [&](const Value& container) {
    const Value& own = container["securityContext"][std::string_view(field)];
    if (own.is_null()) {
      if (!said_for_all) found.silent.push_back(container["name"].str());
    } else if (is_bad(own)) {
      found.containers.push_back(container["name"].str());
    }
  });
  return found;
}

Found bad_seccomp(const Profiles& profiles) {
  if (!profiles.of_pod && profiles.containers.empty()) return {};
  return Violation{"seccompProfile", cat(setters_text(profiles.of_pod, profiles.containers),
                                         " must not set securityContext.seccompProfile.type to ",
                                         joined(profiles.types))};
}

Found se_linux(const Pod& pod, std::span<const std::string_view> allowed) {
  SortedNames types;
  bool sets_user = false;
  bool sets_role = false;
  const auto is_bad = [&](const Value& options) {
    const std::string_view type = options["type"].as_string();
    const bool bad_type = !type.empty() && std::ranges::find(allowed, type) == allowed.end();
    if (bad_type) types.emplace(type);
    const bool user = !options["user"].as_string().empty();
    const bool role = !options["role"].as_string().empty();
    sets_user = sets_user || user;
    sets_role = sets_role || role;
    return bad_type || user || role;
  };
  const bool of_pod = is_bad(pod.context()["seLinuxOptions"]);
  Names bad;
  for_each_container(pod, [&](const Value& container) {
    if (is_bad(container["securityContext"]["seLinuxOptions"])) {
      bad.push_back(container["name"].str());
    }
  });
  if (!of_pod && bad.empty()) return {};
  Names faults;
  if (!types.empty())
    faults.push_back(cat(plural(types.size(), "type", "types"), " ", joined(types)));
  if (sets_user) faults.emplace_back("user may not be set");
  if (sets_role) faults.emplace_back("role may not be set");
  return Violation{"seLinuxOptions",
                   cat(setters_text(of_pod, bad),
                       " set forbidden securityContext.seLinuxOptions: ", join(faults, "; "))};
}

/// A release allows what those before it did, so one list with the number of each is enough.
constexpr std::string_view kSysctls[] = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
    // since 1.27
    "net.ipv4.ip_local_reserved_ports",
    // since 1.29
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    // since 1.32
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"};

Found sysctls(const Pod& pod, std::size_t allowed) {
  const auto safe = std::span(kSysctls).first(allowed);
  Names bad;
  for (const Value& one : pod.context()["sysctls"].items()) {
    if (std::ranges::find(safe, one["name"].as_string()) == safe.end()) {
      bad.push_back(one["name"].str());
    }
  }
  if (bad.empty()) return {};
  return Violation{"forbidden sysctls", join(bad, ", ")};
}

}  // namespace

Found app_armor(const Pod& pod) {
  const Profiles profiles = profiles_of(pod, "appArmorProfile");
  SortedNames annotations;
  for (const auto& [key, value] : pod.metadata["annotations"].members()) {
    const std::string_view profile = value.as_string();
    if (!key.starts_with(kAppArmorPrefix) || profile.empty() || profile == "runtime/default" ||
        profile.starts_with("localhost/")) {
      continue;
    }
    annotations.insert(cat(key, "=", quoted(profile)));
  }
  Names setters;
  if (std::string set = setters_text(profiles.of_pod, profiles.containers); !set.empty()) {
    setters.push_back(std::move(set));
  }
  if (!annotations.empty()) {
    setters.emplace_back(plural(annotations.size(), "annotation", "annotations"));
  }
  if (setters.empty()) return {};
  Names values(profiles.types.begin(), profiles.types.end());
  values.insert(values.end(), annotations.begin(), annotations.end());
  return Violation{
      std::string(
          plural(values.size(), "forbidden AppArmor profile", "forbidden AppArmor profiles")),
      cat(join(setters, " and "), " must not set AppArmor profile type to ", joined(values))};
}

Found proc_mount(const Pod& pod) {
  Names bad;
  SortedNames types;
  for_each_container(pod, [&](const Value& container) {
    const Value& type = container["securityContext"]["procMount"];
    if (type.is_null() || type.as_string() == "Default") return;
    bad.push_back(container["name"].str());
    types.insert(type.str());
  });
  if (bad.empty()) return {};
  return Violation{"procMount", cat(containers_text(bad),
                                    " must not set securityContext.procMount to ", joined(types))};
}

Found se_linux_1_0(const Pod& pod) {
  static constexpr std::string_view kTypes[] = {"container_t", "container_init_t",
                                                "container_kvm_t"};
  return se_linux(pod, kTypes);
}

Found se_linux_1_31(const Pod& pod) {
  static constexpr std::string_view kTypes[] = {"container_t", "container_init_t",
                                                "container_kvm_t", "container_engine_t"};
  return se_linux(pod, kTypes);
}

Found seccomp_baseline_1_0(const Pod& pod) {
  SortedNames forbidden;
  const auto look = [&](const std::string& key) {
    const Value* given = pod.metadata["annotations"].find(key);
    if (given == nullptr) return;
    const std::string_view profile = given->as_string();
    if (profile == "runtime/default" || profile == "docker/default" ||
        profile.starts_with("localhost/")) {
      return;
    }
    forbidden.insert(cat(key, "=", quoted(profile)));
  };
  look(std::string(kSeccompOfPod));
  for_each_container(pod, [&](const Value& container) {
    look(cat(kSeccompPrefix, container["name"].as_string()));
  });
  if (forbidden.empty()) return {};
  return Violation{"seccompProfile",
                   cat("forbidden ", plural(forbidden.size(), "annotation", "annotations"), " ",
                       join(Names(forbidden.begin(), forbidden.end()), ", "))};
}

Found seccomp_baseline_1_19(const Pod& pod) {
  return bad_seccomp(profiles_of(pod, "seccompProfile"));
}

Found seccomp_restricted(const Pod& pod) {
  const Profiles profiles = profiles_of(pod, "seccompProfile");
  if (auto found = bad_seccomp(profiles)) return found;
  if (profiles.silent.empty()) return {};
  return Violation{"seccompProfile",
                   cat("pod or ", containers_text(profiles.silent),
                       " must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
                       "\"Localhost\"")};
}

Found sysctls_1_0(const Pod& pod) { return sysctls(pod, 5); }
Found sysctls_1_27(const Pod& pod) { return sysctls(pod, 6); }
Found sysctls_1_29(const Pod& pod) { return sysctls(pod, 10); }
Found sysctls_1_32(const Pod& pod) { return sysctls(pod, 12); }

}  // namespace dibs::api::pod_security
