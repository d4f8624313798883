#include "api/kinds/pod/security.h"

#include <algorithm>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/volumes.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

const std::vector<std::string> kProfileTypes = {"Localhost", "RuntimeDefault", "Unconfined"};

bool is_profile_type(std::string_view type) {
  return is_one_of(type, {"Localhost", "RuntimeDefault", "Unconfined"});
}

void check_id(const Value& context, std::string_view key, const Path& path, FieldErrors& errors) {
  if (!is_set(context, key)) return;
  add_invalid(is_user_id(context[key].as_int()), context[key], path.child(key), errors);
}

void check_one_of(const Value& context, std::string_view key,
                  const std::vector<std::string>& supported, const Path& path,
                  FieldErrors& errors) {
  if (!is_set(context, key)) return;
  std::string_view text = context[key].as_string();
  if (std::find(supported.begin(), supported.end(), text) == supported.end()) {
    errors.not_supported(path.child(key), context[key], supported);
  }
}

void validate_seccomp(const Value& profile, const Path& path, FieldErrors& errors) {
  if (profile.is_null()) return;
  std::string_view type = profile["type"].as_string();
  if (type.empty()) {
    errors.required(path.child("type"), "type is required when seccompProfile is set");
  } else if (!is_profile_type(type)) {
    errors.not_supported(path.child("type"), Value(type), kProfileTypes);
  }
  const Value& local = profile["localhostProfile"];
  if (type == "Localhost") {
    if (local.is_null()) {
      errors.required(path.child("localhostProfile"), "must be set when seccomp type is Localhost");
    } else {
      validate_descending_path(local, path.child("localhostProfile"), errors);
    }
  } else if (!local.is_null()) {
    errors.invalid(path.child("localhostProfile"),
                   Value::object({{"Type", Value(type)}, {"LocalhostProfile", local}}),
                   "can only be set when seccomp type is Localhost");
  }
}

void validate_app_armor(const Value& profile, const Path& path, FieldErrors& errors) {
  if (profile.is_null()) return;
  std::string_view type = profile["type"].as_string();
  const Value& local = profile["localhostProfile"];
  Path at = path.child("localhostProfile");
  if (type == "Localhost") {
    std::string_view name = local.as_string();
    if (local.is_null() || name.empty()) {
      errors.required(at, "must be set when AppArmor type is Localhost");
    } else if (trim(name).size() != name.size()) {
      errors.invalid(at, local, "must not be padded with whitespace");
    }
    if (name.size() > 4095) errors.too_long(at, 4095);
  } else if (type.empty()) {
    errors.required(path.child("type"), "type is required when appArmorProfile is set");
  } else if (!is_profile_type(type)) {
    errors.not_supported(path.child("type"), Value(type), kProfileTypes);
  } else if (!local.is_null()) {
    errors.invalid(at, local, "can only be set when AppArmor type is Localhost");
  }
}

void validate_windows_options(const Value& options, const Path& path, FieldErrors& errors) {
  if (options.is_null()) return;
  const Value& name = options["gmsaCredentialSpecName"];
  if (!name.is_null()) {
    add_invalid(is_dns1123_subdomain(name.as_string()), name, path.child("gmsaCredentialSpecName"),
                errors);
  }
  const Value& credential = options["gmsaCredentialSpec"];
  if (!credential.is_null()) {
    Path at = path.child("gmsaCredentialSpec");
    if (credential.as_string().empty()) {
      errors.invalid(at, credential, "gmsaCredentialSpec cannot be an empty string");
    }
    if (credential.as_string().size() > 64 * 1024) {
      errors.too_long(at, 64 * 1024);
    }
  }
  const Value& user = options["runAsUserName"];
  if (!user.is_null() && user.as_string().empty()) {
    errors.invalid(path.child("runAsUserName"), user, "runAsUserName cannot be an empty string");
  }
}

Value shown_context(const Value& context) {
  return go_form(context, *builtin_type("core/v1.SecurityContext"));
}

// ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$
bool is_sysctl_name(std::string_view name) {
  if (name.size() > 253) return false;
  auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  std::size_t start = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && name[i] != '.' && name[i] != '/') {
      if (!alnum(name[i]) && name[i] != '-' && name[i] != '_') return false;
      continue;
    }
    if (i == start || !alnum(name[start]) || !alnum(name[i - 1])) return false;
    start = i + 1;
  }
  return true;
}

void validate_sysctls(const Value& sysctls, const Value& spec, const Path& path,
                      FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < sysctls.size(); ++i) {
    Path at = path.index(i);
    const Value& value = sysctls[i]["name"];
    std::string name = value.str();
    std::replace(name.begin(), name.end(), '/', '.');
    if (name.empty()) {
      errors.required(at.child("name"));
    } else if (!is_sysctl_name(value.as_string())) {
      errors.invalid(at.child("name"), value,
                     "must have at most 253 characters and match regex "
                     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    } else if (!seen.insert(name).second) {
      errors.duplicate(at.child("name"), value);
    }
    bool net = name.substr(0, 4) == "net.";
    bool ipc = name.substr(0, 10) == "kernel.shm" || name.substr(0, 10) == "kernel.msg" ||
               name == "kernel.sem" || name.substr(0, 10) == "fs.mqueue.";
    if (net && spec["hostNetwork"].as_bool()) {
      errors.invalid(at.child("name"), value, "may not be specified when 'hostNetwork' is true");
    }
    if (ipc && spec["hostIPC"].as_bool()) {
      errors.invalid(at.child("name"), value, "may not be specified when 'hostIPC' is true");
    }
  }
}

void forbid_set(const Value& object, const char* key, const Path& path, std::string_view detail,
                FieldErrors& errors) {
  if (is_set(object, key)) errors.forbidden(path.child(key), detail);
}

void validate_linux(const Value& spec, const Path& path, FieldErrors& errors) {
  constexpr std::string_view text = "windows options cannot be set for a linux pod";
  Path context = path.child("securityContext");
  forbid_set(spec["securityContext"], "windowsOptions", context, text, errors);
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    Path list_at = path.child(list);
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      Path at = list_at.index(i);
      Path own = at.child("securityContext");
      forbid_set(spec[list][i]["securityContext"], "windowsOptions", own, text, errors);
    }
  }
}

void validate_windows(const Value& spec, const Path& path, FieldErrors& errors) {
  constexpr std::string_view text = "cannot be set for a windows pod";
  const Value& context = spec["securityContext"];
  Path context_at = path.child("securityContext");
  // In the order of the API, which shows where a message is expected by scripts.
  for (const char* key : {"appArmorProfile", "seLinuxOptions"}) {
    forbid_set(context, key, context_at, text, errors);
  }
  if (is_set(spec, "hostUsers")) errors.forbidden(path.child("hostUsers"), text);
  if (spec["hostPID"].as_bool()) errors.forbidden(path.child("hostPID"), text);
  if (spec["hostIPC"].as_bool()) errors.forbidden(path.child("hostIPC"), text);
  for (const char* key : {"seccompProfile", "fsGroup", "fsGroupChangePolicy"}) {
    forbid_set(context, key, context_at, text, errors);
  }
  if (!context["sysctls"].empty()) errors.forbidden(context_at.child("sysctls"), text);
  if (spec["shareProcessNamespace"].as_bool()) {
    errors.forbidden(path.child("shareProcessNamespace"), text);
  }
  for (const char* key : {"runAsUser", "runAsGroup"}) {
    forbid_set(context, key, context_at, text, errors);
  }
  if (!context["supplementalGroups"].empty()) {
    errors.forbidden(context_at.child("supplementalGroups"), text);
  }
  forbid_set(context, "supplementalGroupsPolicy", context_at, text, errors);
  if (is_set(spec, "resources")) {
    errors.forbidden(path.child("resources"), "may not be set for a windows pod");
  }
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    Path list_at = path.child(list);
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      Path at = list_at.index(i);
      Path own = at.child("securityContext");
      for (const char* key : {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities",
                              "readOnlyRootFilesystem", "privileged", "allowPrivilegeEscalation",
                              "procMount", "runAsUser", "runAsGroup"}) {
        forbid_set(spec[list][i]["securityContext"], key, own, text, errors);
      }
    }
  }
}

}  // namespace

void validate_security_context(const Value& context, bool host_users, const Path& path,
                               FieldErrors& errors) {
  if (context.is_null()) return;
  check_id(context, "runAsUser", path, errors);
  check_id(context, "runAsGroup", path, errors);
  if (is_set(context, "procMount")) {
    check_one_of(context, "procMount", {"Default", "Unmasked"}, path, errors);
    if (host_users && context["procMount"].as_string() == "Unmasked") {
      errors.invalid(path.child("procMount"), context["procMount"],
                     "`hostUsers` must be false to use `Unmasked`");
    }
  }
  validate_seccomp(context["seccompProfile"], path.child("seccompProfile"), errors);
  const Value& escalation = context["allowPrivilegeEscalation"];
  if (escalation.is_boolean() && !escalation.as_bool()) {
    if (context["privileged"].as_bool()) {
      errors.invalid(path, shown_context(context),
                     "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    for (const Value& capability : context["capabilities"]["add"].items()) {
      if (capability.as_string() != "CAP_SYS_ADMIN") continue;
      errors.invalid(path, shown_context(context),
                     "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                     "CAP_SYS_ADMIN");
    }
  }
  validate_windows_options(context["windowsOptions"], path.child("windowsOptions"), errors);
  validate_app_armor(context["appArmorProfile"], path.child("appArmorProfile"), errors);
}

void validate_pod_security_context(const Value& spec, const Path& spec_path, FieldErrors& errors) {
  const Value& context = spec["securityContext"];
  Path path = spec_path.child("securityContext");
  if (spec["hostNetwork"].as_bool()) {
    Path containers_at = spec_path.child("containers");
    for (std::size_t i = 0; i < spec["containers"].size(); ++i) {
      Path at = containers_at.index(i);
      Path ports_at = at.child("ports");
      const Value& ports = spec["containers"][i]["ports"];
      for (std::size_t p = 0; p < ports.size(); ++p) {
        if (ports[p]["hostPort"].as_int() == ports[p]["containerPort"].as_int()) continue;
        Path port_at = ports_at.index(p);
        errors.invalid(port_at.child("containerPort"), ports[p]["containerPort"],
                       "must match `hostPort` when `hostNetwork` is true");
      }
    }
  }
  check_id(context, "fsGroup", path, errors);
  check_id(context, "runAsUser", path, errors);
  check_id(context, "runAsGroup", path, errors);
  Path groups_at = path.child("supplementalGroups");
  const Value& groups = context["supplementalGroups"];
  for (std::size_t i = 0; i < groups.size(); ++i) {
    add_invalid(is_group_id(groups[i].as_int()), groups[i], groups_at.index(i), errors);
  }
  if (spec["shareProcessNamespace"].as_bool() && spec["hostPID"].as_bool()) {
    errors.invalid(spec_path.child("shareProcessNamespace"), true,
                   "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  validate_sysctls(context["sysctls"], spec, path.child("sysctls"), errors);
  check_one_of(context, "fsGroupChangePolicy", {"Always", "OnRootMismatch"}, path, errors);
  validate_seccomp(context["seccompProfile"], path.child("seccompProfile"), errors);
  validate_windows_options(context["windowsOptions"], path.child("windowsOptions"), errors);
  validate_app_armor(context["appArmorProfile"], path.child("appArmorProfile"), errors);
  check_one_of(context, "supplementalGroupsPolicy", {"Merge", "Strict"}, path, errors);
  check_one_of(context, "seLinuxChangePolicy", {"MountOption", "Recursive"}, path, errors);
}

void validate_host_users(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& host_users = spec["hostUsers"];
  if (!host_users.is_boolean() || host_users.as_bool()) return;
  constexpr std::string_view text = "when `hostUsers` is false";
  if (spec["hostNetwork"].as_bool()) errors.forbidden(path.child("hostNetwork"), text);
  // The API spells these two with a capital.
  if (spec["hostPID"].as_bool()) errors.forbidden(path.child("HostPID"), text);
  if (spec["hostIPC"].as_bool()) errors.forbidden(path.child("HostIPC"), text);
}

void validate_os(const Value& spec, const Path& path, FieldErrors& errors) {
  if (!is_set(spec, "os")) return;
  std::string_view name = spec["os"]["name"].as_string();
  if (name.empty()) {
    Path os = path.child("os");
    errors.required(os.child("name"), "cannot be empty");
  } else if (name == "linux") {
    validate_linux(spec, path, errors);
  } else if (name == "windows") {
    validate_windows(spec, path, errors);
  } else {
    errors.not_supported(path.child("os"), Value(name), {"linux", "windows"});
  }
}

void validate_windows_host_process(const Value& spec, const Path& path, FieldErrors& errors) {
  std::size_t total = 0;
  std::size_t host_process = 0;
  const Value& pod = spec["securityContext"]["windowsOptions"]["hostProcess"];
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      ++total;
      const Value& own = spec[list][i]["securityContext"]["windowsOptions"]["hostProcess"];
      if (own.as_bool() || (own.is_null() && pod.as_bool())) ++host_process;
      if (!own.is_null() && !pod.is_null() && own.as_bool() != pod.as_bool()) {
        Path list_at = path.child(list);
        Path at = list_at.index(i);
        Path context_at = at.child("securityContext");
        Path options_at = context_at.child("windowsOptions");
        errors.invalid(options_at.child("hostProcess"), own,
                       cat("pod hostProcess value must be identical if both are specified, was ",
                           pod.as_bool()));
      }
    }
  }
  if (host_process == 0) return;
  if (host_process != total) {
    errors.invalid(
        path, "",
        "If pod contains any hostProcess containers then all containers must be HostProcess "
        "containers");
  }
  if (!spec["hostNetwork"].as_bool()) {
    errors.invalid(path.child("hostNetwork"), false,
                   "hostNetwork must be true if pod contains any hostProcess containers");
  }
}

}  // namespace dibs::api
