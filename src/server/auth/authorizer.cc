#include "server/auth/authorizer.h"

#include "base/strings.h"
#include "server/auth/escalation.h"

namespace dibs::server::auth {
namespace {

Value list_of(const std::vector<std::string>& texts) {
  Value list = Value::array();
  for (const std::string& text : texts) list.push(text);
  return list;
}

void set_list(Value& object, std::string_view key, const std::vector<std::string>& texts) {
  if (!texts.empty()) object.set(key, list_of(texts));
}

}  // namespace

Decision Authorizer::authorize(const RequestAttributes& attributes) const {
  if (attributes.user.in_group(kMasters)) return {true, ""};
  Decision by_node = nodes_.authorize(attributes);
  if (by_node.allowed) return by_node;
  Decision by_role = rbac_.authorize(attributes);
  if (by_role.allowed) return by_role;
  std::string reason;
  if (!by_node.reason.empty()) append(reason, names_judges_ ? "node: " : "", by_node.reason);
  if (!by_role.reason.empty()) {
    append(reason, reason.empty() ? "" : "\n", names_judges_ ? "rbac: " : "RBAC: ", by_role.reason);
  }
  return {false, std::move(reason)};
}

Value Authorizer::rules_for(const UserInfo& user, std::string_view name_space) const {
  std::vector<std::string> missing;
  Value resources = Value::array();
  Value others = Value::array();
  for (const PolicyRule& rule : rbac_.rules_for(user, name_space, &missing)) {
    if (!rule.resources.empty()) {
      Value shown = Value::object({{"verbs", list_of(rule.verbs)}});
      set_list(shown, "apiGroups", rule.groups);
      set_list(shown, "resources", rule.resources);
      set_list(shown, "resourceNames", rule.names);
      resources.push(std::move(shown));
    }
    if (!rule.urls.empty()) {
      Value shown = Value::object({{"verbs", list_of(rule.verbs)}});
      set_list(shown, "nonResourceURLs", rule.urls);
      others.push(std::move(shown));
    }
  }
  bool is_node = node_identity(user).has_value();
  Value status = Value::object({{"resourceRules", std::move(resources)},
                                {"nonResourceRules", std::move(others)},
                                {"incomplete", is_node}});
  std::vector<std::string> faults;
  if (is_node) faults.push_back("node authorizer does not support user rule resolution");
  faults.insert(faults.end(), missing.begin(), missing.end());
  if (faults.size() == 1) status.set("evaluationError", faults[0]);
  if (faults.size() > 1) status.set("evaluationError", cat("[", join(faults, ", "), "]"));
  return status;
}

std::string refusal_text(const RequestAttributes& what, std::string_view reason) {
  std::string text = cat("User ", quoted(what.user.name), " cannot ", what.verb, " ");
  if (!what.is_resource) {
    append(text, "path ", quoted(what.path));
  } else {
    std::string resource =
        what.subresource.empty() ? what.resource : cat(what.resource, "/", what.subresource);
    append(text, "resource ", quoted(resource), " in API group ", quoted(what.group));
    if (what.name_space.empty()) {
      append(text, " at the cluster scope");
    } else {
      append(text, " in the namespace ", quoted(what.name_space));
    }
  }
  if (!reason.empty()) append(text, ": ", reason);
  return text;
}

Error refusal_error(const RequestAttributes& what, std::string_view reason) {
  std::string text = refusal_text(what, reason);
  if (what.is_resource) return forbidden_error(what.group, what.resource, what.name, text);
  return Error(Code::forbidden, cat("forbidden: ", text), ErrorDetails{});
}

}  // namespace dibs::server::auth
