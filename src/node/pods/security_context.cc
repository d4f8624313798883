#include <algorithm>

#include "base/strings.h"
#include "node/pods/container_config.h"

namespace dibs::node {
namespace {

using json::Value;

/// The container's own field goes before the pod's.
const Value& merged(const Value& pod, const Value& container, const char* field) {
  const Value* own = container["securityContext"].find(field);
  if (own != nullptr && !own->is_null()) return *own;
  return pod["spec"]["securityContext"][field];
}

Result<std::string> seccomp_of(const Value& pod, const Value& container, const NodeFacts& facts) {
  const Value& profile = merged(pod, container, "seccompProfile");
  const auto type = profile["type"].as_string();
  if (type == "RuntimeDefault") return std::string(type);
  if (type == "Localhost") {
    const auto name = profile["localhostProfile"].as_string();
    const auto parts = split(name, '/');
    if (name.empty() || name.starts_with('/') ||
        std::find(parts.begin(), parts.end(), "..") != parts.end()) {
      return Error::invalid(cat("invalid localhostProfile ", quoted(name),
                                ": must be a path below the node's folder of profiles"));
    }
    const std::string folder =
        facts.seccomp_folder.empty() ? cat(facts.root, "/seccomp") : facts.seccomp_folder;
    return cat(folder, '/', name);
  }
  return std::string("Unconfined");
}

std::string where(const Value& pod, const Value& container) {
  return cat("(pod: ", quoted(pod_text(pod)), ", container: ", container["name"].as_string(), ')');
}

/// What the image says it runs as; an image that says nothing runs as root.
struct ImageUser {
  std::optional<std::int64_t> id;
  std::string name;
};
ImageUser user_of(const ImageInfo& image) {
  if (image.user_id) return {image.user_id, {}};
  if (!image.user_name.empty()) return {std::nullopt, image.user_name};
  return {0, {}};
}

Result<> check_non_root(const Value& pod, const Value& container, const ImageUser& image) {
  const Value& user = merged(pod, container, "runAsUser");
  if (user.is_integer()) {
    if (user.as_int() != 0) return success();
    return Error::invalid(
        cat("container's runAsUser breaks non-root policy ", where(pod, container)));
  }
  if (image.id && *image.id == 0) {
    return Error::invalid(
        cat("container has runAsNonRoot and image will run as root ", where(pod, container)));
  }
  if (!image.id) {
    return Error::invalid(cat("container has runAsNonRoot and image has non-numeric user (",
                              image.name, "), cannot verify user is non-root ",
                              where(pod, container)));
  }
  return success();
}

void take_names(const Value& list, std::vector<std::string>& out) {
  for (const auto& name : list.items()) out.push_back(name.str());
}

}  // namespace

Result<EffectiveSecurity> effective_security(const Value& pod, const Value& container,
                                             const ImageInfo& image, const NodeFacts& facts) {
  const Value& own = container["securityContext"];
  const Value& shared = pod["spec"]["securityContext"];
  const ImageUser image_user = user_of(image);
  EffectiveSecurity out;
  out.run_as_non_root = merged(pod, container, "runAsNonRoot").as_bool();
  if (out.run_as_non_root) DIBS_CHECK(check_non_root(pod, container, image_user));

  ContainerSecurity& security = out.security;
  security.privileged = own["privileged"].as_bool();
  security.read_only_root = own["readOnlyRootFilesystem"].as_bool();
  const Value* escalation = own.find("allowPrivilegeEscalation");
  security.no_new_privileges = escalation != nullptr && !escalation->as_bool(true);
  take_names(own["capabilities"]["add"], security.add_capabilities);
  take_names(own["capabilities"]["drop"], security.drop_capabilities);
  DIBS_TRY(security.seccomp, seccomp_of(pod, container, facts));
  if (security.privileged) security.seccomp = "Unconfined";

  if (const Value& user = merged(pod, container, "runAsUser"); user.is_integer()) {
    security.run_as_user = user.as_int();
  } else {
    security.run_as_user = image_user.id;
    security.run_as_username = image_user.name;
  }
  if (const Value& group = merged(pod, container, "runAsGroup"); group.is_integer()) {
    security.run_as_group = group.as_int();
  }
  if (shared["fsGroup"].is_integer()) {
    security.supplemental_groups.push_back(shared["fsGroup"].as_int());
  }
  security.strict_groups = shared["supplementalGroupsPolicy"].as_string() == "Strict";
  for (const auto& group : shared["supplementalGroups"].items()) {
    security.supplemental_groups.push_back(group.as_int());
  }
  return out;
}

}  // namespace dibs::node
