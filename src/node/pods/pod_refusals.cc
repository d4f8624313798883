#include "node/pods/pod_refusals.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

/// What the node declares of itself by not having it.
constexpr const char* kUnsupported = "PodFeatureUnsupported";
constexpr const char* kNoUserNamespaces =
    "this node does not make user namespaces; leave the field out";

struct Refused {
  std::string_view field;
  bool (*asked)(const Value& owner);
  std::string_view why;
};

bool windows(const Value& owner) { return !owner["securityContext"]["windowsOptions"].empty(); }
constexpr Refused kWindows = {"securityContext.windowsOptions", windows,
                              "this node runs Linux containers only"};

/// Of a pod's spec.
constexpr Refused kOfSpec[] = {
    {"hostUsers", [](const Value& spec) { return !spec["hostUsers"].as_bool(true); },
     kNoUserNamespaces},
    {"runtimeClassName",
     [](const Value& spec) { return !spec["runtimeClassName"].as_string().empty(); },
     "this node has one way to run containers and no handlers to choose from"},
    kWindows,
};

/// Of a container, whichever list it is in.
constexpr Refused kOfContainer[] = {
    kWindows,
    {"securityContext.procMount",
     [](const Value& container) {
       return container["securityContext"]["procMount"].as_string() == "Unmasked";
     },
     kNoUserNamespaces},
    {"volumeMounts[].recursiveReadOnly",
     [](const Value& container) {
       const auto& mounts = container["volumeMounts"].items();
       return std::any_of(mounts.begin(), mounts.end(), [](const Value& mount) {
         return mount["recursiveReadOnly"].as_string() == "Enabled";
       });
     },
     "this node makes the mount itself read-only, not what is mounted below it; use IfPossible"},
    {"restartPolicyRules[].action",
     [](const Value& container) {
       const auto& rules = container["restartPolicyRules"].items();
       return std::any_of(rules.begin(), rules.end(), [](const Value& rule) {
         return rule["action"].as_string() == "RestartAllContainers";
       });
     },
     "this node restarts single containers only"},
};

template <std::size_t N>
std::optional<std::string> first_of(const Refused (&table)[N], const Value& owner,
                                    std::string_view path) {
  for (const Refused& refused : table) {
    if (refused.asked(owner)) return cat(path, refused.field, ": ", refused.why);
  }
  return std::nullopt;
}

bool labelled(const Value& owner) { return !owner["securityContext"]["seLinuxOptions"].empty(); }

/// The field that asks for a label of SELinux, of the pod or the first of its containers; or "".
std::string labelled_field(const Value& spec) {
  if (labelled(spec)) return "spec.securityContext.seLinuxOptions";
  for (const char* list : {"initContainers", "containers"}) {
    std::size_t index = 0;
    for (const Value& container : spec[list].items()) {
      if (labelled(container))
        return cat("spec.", list, '[', index, "].securityContext.seLinuxOptions");
      ++index;
    }
  }
  return "";
}

bool confined(const Value& owner) {
  const auto type = owner["securityContext"]["appArmorProfile"]["type"].as_string();
  return !type.empty() && type != "Unconfined";
}

/// The field that asks for a profile, or "". Older pods ask by annotations.
std::string armored(const Value& pod) {
  constexpr std::string_view kAnnotation = "container.apparmor.security.beta.kubernetes.io/";
  if (confined(pod["spec"])) return "spec.securityContext.appArmorProfile";
  for (const char* list : {"initContainers", "containers"}) {
    std::size_t index = 0;
    for (const Value& container : pod["spec"][list].items()) {
      if (confined(container)) {
        return cat("spec.", list, '[', index, "].securityContext.appArmorProfile");
      }
      ++index;
    }
  }
  for (const auto& [key, value] : pod["metadata"]["annotations"].members()) {
    if (std::string_view(key).starts_with(kAnnotation) && value.as_string() != "unconfined") {
      return cat("metadata.annotations[", key, ']');
    }
  }
  return "";
}

}  // namespace

std::optional<std::string> refuse_container(const Value& container, std::string_view path,
                                            const NodeFacts& facts) {
  if (facts.selinux && labelled(container)) {
    return cat(path, "securityContext.seLinuxOptions: this node does not set SELinux labels");
  }
  if (auto why = first_of(kOfContainer, container, path)) return why;
  if (confined(container)) {
    return cat(path, "securityContext.appArmorProfile: this node does not load AppArmor profiles");
  }
  return std::nullopt;
}

std::optional<Rejection> refuse_spec(const Value& pod, const NodeFacts& facts) {
  const Value& spec = pod["spec"];
  if (auto why = facts.sysctls.forbidden(pod)) return Rejection{"SysctlForbidden", *why};
  if (const std::string field = armored(pod); !field.empty()) {
    return Rejection{"AppArmor", cat("Cannot enforce AppArmor: ", field,
                                     ": this node does not load profiles; leave the field out or "
                                     "set its type to Unconfined")};
  }
  if (const std::string field = labelled_field(spec); facts.selinux && !field.empty()) {
    return Rejection{kUnsupported, cat(field, ": this node does not set SELinux labels")};
  }
  if (auto why = first_of(kOfSpec, spec, "spec.")) return Rejection{kUnsupported, *why};
  for (const char* list : {"initContainers", "containers"}) {
    std::size_t index = 0;
    for (const Value& container : spec[list].items()) {
      if (auto why = refuse_container(container, cat("spec.", list, '[', index++, "]."), facts)) {
        return Rejection{kUnsupported, *why};
      }
    }
  }
  return std::nullopt;
}

std::string without_effect(const Value& pod, const NodeFacts& facts) {
  if (facts.selinux) return "";
  const std::string field = labelled_field(pod["spec"]);
  if (field.empty()) return "";
  return cat(field, " has no effect: the kernel of this node has no SELinux");
}

}  // namespace dibs::node
