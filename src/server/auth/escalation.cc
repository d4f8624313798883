#include "server/auth/escalation.h"

#include <algorithm>
#include <set>

#include "base/strings.h"

namespace dibs::server::auth {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

/// Rules that a refusal lists.
constexpr std::size_t kMostShown = 200;

/// Everything, which who lets a role gather others must hold.
const std::vector<PolicyRule>& full_authority() {
  static const std::vector<PolicyRule> rules = {{{"*"}, {"*"}, {"*"}, {}, {}},
                                                {{"*"}, {}, {}, {}, {"*"}}};
  return rules;
}

bool aggregates(const Value& role) {
  return !role["aggregationRule"]["clusterRoleSelectors"].empty();
}

/// What is wrong with granting the rules, "" for nothing.
std::string grant_fault(const Rbac& rbac, const RoleWrite& write,
                        const std::vector<PolicyRule>& rules) {
  std::vector<std::string> unresolved;
  std::vector<PolicyRule> held = rbac.rules_for(write.user, write.name_space, &unresolved);
  std::vector<PolicyRule> missing = missing_rights(held, rules);
  if (missing.empty()) return {};
  std::set<std::string> lines;
  for (const PolicyRule& rule : missing) lines.insert(rule_text(rule));
  std::string text =
      cat("user ", quoted(write.user.name), " (groups=", list_text(write.user.groups),
          ") is attempting to grant RBAC permissions not currently held:");
  std::size_t shown = 0;
  for (const std::string& line : lines) {
    if (++shown > kMostShown) break;
    append(text, "\n", line);
  }
  if (lines.size() > kMostShown) append(text, "\n… and ", lines.size() - kMostShown, " more");
  if (!unresolved.empty()) append(text, "; resolution errors: [", join(unresolved, ", "), "]");
  return text;
}

/// What the garbage collector may change of an object that it may not write otherwise.
bool changes_only_for_collection(const Value& object, const Value& old) {
  auto without = [](Value value) {
    Value& metadata = value.mut("metadata");
    for (std::string_view key :
         {"ownerReferences", "finalizers", "managedFields", "resourceVersion"}) {
      metadata.erase(key);
    }
    return value;
  };
  return without(object) == without(old);
}

bool is_allowed(const RoleWrite& write, std::string_view verb, std::string_view resource,
                std::string_view name, const Authorize& authorize) {
  RequestAttributes what;
  what.user = write.user;
  what.verb = verb;
  what.group = kGroup;
  what.version = "*";
  what.resource = resource;
  what.name = name;
  what.name_space = write.name_space;
  return authorize(what).allowed;
}

Result<> check_role(const Rbac& rbac, const RoleWrite& write, const Authorize& authorize) {
  if (is_allowed(write, "escalate", write.resource, write.name, authorize)) return success();
  const Value& object = write.object;
  std::string_view name = object["metadata"]["name"].as_string();
  // Rules that stay as they were are asked about, too: a label may make them part of another role.
  if (std::string fault = grant_fault(rbac, write, rules_of(object)); !fault.empty()) {
    return forbidden_error(kGroup, write.resource, name, fault);
  }
  if (!aggregates(object) && !(write.old && aggregates(*write.old))) return success();
  if (!grant_fault(rbac, write, full_authority()).empty()) {
    return forbidden_error(kGroup, write.resource, name,
                           "must have cluster-admin privileges to use the aggregationRule");
  }
  return success();
}

Result<> check_binding(const Rbac& rbac, const RoleWrite& write, const Authorize& authorize) {
  const Value& role = write.object["roleRef"];
  std::string_view role_name = role["name"].as_string();
  std::string_view kind = role["kind"].as_string();
  if (kind == "Role" || kind == "ClusterRole") {
    std::string_view resource = kind == "Role" ? "roles" : "clusterroles";
    if (is_allowed(write, "bind", resource, role_name, authorize)) return success();
  }
  Result<std::vector<PolicyRule>> rules = rbac.rules_of_role(role, write.name_space);
  if (!rules.ok()) {
    ErrorDetails details;
    details.name = role_name;
    details.group = kGroup;
    details.kind = write.resource;
    return Error(Code::not_found,
                 cat(write.resource, ".", kGroup, " ", quoted(role_name), " not found"),
                 std::move(details));
  }
  if (std::string fault = grant_fault(rbac, write, *rules); !fault.empty()) {
    return forbidden_error(kGroup, write.resource, write.object["metadata"]["name"].as_string(),
                           fault);
  }
  return success();
}

}  // namespace

Error forbidden_error(std::string_view group, std::string_view resource, std::string_view name,
                      std::string_view text) {
  ErrorDetails details;
  details.name = name;
  details.group = group;
  details.kind = resource;
  std::string message(resource);
  if (!group.empty()) append(message, ".", group);
  if (!name.empty()) append(message, " ", quoted(name));
  return Error(Code::forbidden, cat(message, " is forbidden: ", text), std::move(details));
}

Result<> check_role_write(const Rbac& rbac, const RoleWrite& write, const Authorize& authorize) {
  if (write.user.in_group(kMasters)) return success();
  if (write.old && changes_only_for_collection(write.object, *write.old)) return success();
  bool is_role = write.resource == "roles" || write.resource == "clusterroles";
  return is_role ? check_role(rbac, write, authorize) : check_binding(rbac, write, authorize);
}

}  // namespace dibs::server::auth
