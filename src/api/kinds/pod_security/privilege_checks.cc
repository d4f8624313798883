// What a container's process may do, and as whom it runs.
#include <algorithm>

#include "api/kinds/pod_security/checks.h"
#include "base/strings.h"

namespace dibs::api::pod_security {
namespace {

bool is_default_capability(std::string_view name) {
  static constexpr std::string_view kDefault[] = {
      "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
      "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};
  return std::ranges::find(kDefault, name) != std::end(kDefault);
}

/// Containers that add what they may not.
template <typename Allowed>
Names adding(const Pod& pod, Allowed allowed, SortedNames& added) {
  Names bad;
  for_each_container(pod, [&](const Value& container) {
    bool adds = false;
    for (const Value& one : container["securityContext"]["capabilities"]["add"].items()) {
      if (allowed(one.as_string())) continue;
      adds = true;
      added.insert(one.str());
    }
    if (adds) bad.push_back(container["name"].str());
  });
  return bad;
}

std::string adding_text(const Names& containers, const SortedNames& added) {
  return cat(containers_text(containers), " must not include ", joined(added),
             " in securityContext.capabilities.add");
}

}  // namespace

Found privileged(const Pod& pod) {
  Names bad;
  for_each_container(pod, [&](const Value& container) {
    if (container["securityContext"]["privileged"].as_bool())
      bad.push_back(container["name"].str());
  });
  if (bad.empty()) return {};
  return Violation{"privileged",
                   cat(containers_text(bad), " must not set securityContext.privileged=true")};
}

Found capabilities_baseline(const Pod& pod) {
  SortedNames added;
  const Names bad = adding(pod, is_default_capability, added);
  if (bad.empty()) return {};
  return Violation{"non-default capabilities", adding_text(bad, added)};
}

Found capabilities_restricted(const Pod& pod) {
  Names keeping;
  for_each_container(pod, [&](const Value& container) {
    const auto dropped = container["securityContext"]["capabilities"]["drop"].items();
    if (std::none_of(dropped.begin(), dropped.end(),
                     [](const Value& one) { return one.as_string() == "ALL"; })) {
      keeping.push_back(container["name"].str());
    }
  });
  SortedNames added;
  const Names bad = adding(
      pod, [](std::string_view name) { return name == "NET_BIND_SERVICE"; }, added);
  Names details;
  if (!keeping.empty()) {
    details.push_back(
        cat(containers_text(keeping), " must set securityContext.capabilities.drop=[\"ALL\"]"));
  }
  if (!bad.empty()) details.push_back(adding_text(bad, added));
  if (details.empty()) return {};
  return Violation{"unrestricted capabilities", join(details, "; ")};
}

Found privilege_escalation(const Pod& pod) {
  Names bad;
  for_each_container(pod, [&](const Value& container) {
    if (container["securityContext"]["allowPrivilegeEscalation"].as_bool(true)) {
      bad.push_back(container["name"].str());
    }
  });
  if (bad.empty()) return {};
  return Violation{
      "allowPrivilegeEscalation != false",
      cat(containers_text(bad), " must set securityContext.allowPrivilegeEscalation=false")};
}

Found run_as_non_root(const Pod& pod) {
  constexpr const char* kReason = "runAsNonRoot != true";
  const Value& of_pod = pod.context()["runAsNonRoot"];
  Names saying_no;
  Names silent;
  for_each_container(pod, [&](const Value& container) {
    const Value& own = container["securityContext"]["runAsNonRoot"];
    if (own.is_null()) {
      if (!of_pod.as_bool()) silent.push_back(container["name"].str());
    } else if (!own.as_bool()) {
      saying_no.push_back(container["name"].str());
    }
  });
  const bool pod_says_no = !of_pod.is_null() && !of_pod.as_bool();
  if (pod_says_no || !saying_no.empty()) {
    return Violation{kReason, cat(setters_text(pod_says_no, saying_no),
                                  " must not set securityContext.runAsNonRoot=false")};
  }
  if (silent.empty()) return {};
  return Violation{kReason, cat("pod or ", containers_text(silent),
                                " must set securityContext.runAsNonRoot=true")};
}

Found run_as_user(const Pod& pod) {
  const auto is_root = [](const Value& context) {
    return context["runAsUser"].is_number() && context["runAsUser"].as_int() == 0;
  };
  Names bad;
  for_each_container(pod, [&](const Value& container) {
    if (is_root(container["securityContext"])) bad.push_back(container["name"].str());
  });
  const bool of_pod = is_root(pod.context());
  if (!of_pod && bad.empty()) return {};
  return Violation{"runAsUser=0", cat(setters_text(of_pod, bad), " must not set runAsUser=0")};
}

}  // namespace dibs::api::pod_security
