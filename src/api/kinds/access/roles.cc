#include "api/kinds/access/pod_certificate.h"
#include "api/kinds/access/signing_request.h"
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

void check_rules(const Value& object, bool is_namespaced, FieldErrors& errors) {
  Path rules("rules");
  std::size_t i = 0;
  for (const Value& rule : object["rules"].items()) {
    Path at = rules.index(i++);
    const Value& urls = rule["nonResourceURLs"];
    if (!urls.empty()) {
      Path urls_path = at.child("nonResourceURLs");
      if (is_namespaced) {
        errors.invalid(urls_path, urls, "namespaced rules cannot apply to non-resource URLs");
      }
      if (!rule["apiGroups"].empty() || !rule["resources"].empty() ||
          !rule["resourceNames"].empty()) {
        errors.invalid(urls_path, urls,
                       "rules cannot apply to both regular resources and non-resource URLs");
      }
      continue;
    }
    if (rule["apiGroups"].empty()) {
      errors.required(at.child("apiGroups"), "resource rules must supply at least one api group");
    }
    if (rule["resources"].empty()) {
      errors.required(at.child("resources"), "resource rules must supply at least one resource");
    }
  }
}

/// Lists multiply: whoever compares what a role gives looks at every verb on every resource of
/// every group. As many as no role that was meant has.
void check_amount(const Value& object, FieldErrors& errors) {
  constexpr std::size_t kMost = 50000;
  const auto count = [](const Value& list) { return std::max<std::size_t>(1, list.size()); };
  std::size_t rights = 0;
  for (const Value& rule : object["rules"].items()) {
    // Each is shorter than a body is long, so that two fit into one number.
    const std::size_t names =
        std::min(kMost + 1, count(rule["resources"]) * count(rule["resourceNames"]));
    const std::size_t places = std::min(kMost + 1, names * count(rule["apiGroups"]));
    rights += places * count(rule["verbs"]) + rule["nonResourceURLs"].size() * rule["verbs"].size();
  }
  if (rights > kMost) errors.too_many(Path("rules"), rights, kMost);
}

void check_verbs(const Value& object, FieldErrors& errors) {
  Path rules("rules");
  std::size_t i = 0;
  for (const Value& rule : object["rules"].items()) {
    Path at = rules.index(i++);
    if (rule["verbs"].empty()) errors.required(at.child("verbs"));
  }
}

void validate_role(const Value& object, FieldErrors& errors) {
  check_amount(object, errors);
  check_rules(object, true, errors);
  check_verbs(object, errors);
}

void validate_cluster_role(const Value& object, FieldErrors& errors) {
  check_amount(object, errors);
  check_rules(object, false, errors);
  const Value& aggregation = object["aggregationRule"];
  if (!aggregation.is_null()) {
    Path path("aggregationRule");
    Path selectors = path.child("clusterRoleSelectors");
    if (aggregation["clusterRoleSelectors"].empty()) {
      errors.required(selectors,
                      "at least one clusterRoleSelector required if aggregationRule is non-nil");
    }
    std::size_t i = 0;
    for (const Value& selector : aggregation["clusterRoleSelectors"].items()) {
      validate_label_selector(selector, selectors.index(i++), errors);
    }
  }
  check_verbs(object, errors);
}

void set_binding_defaults(Value& object) {
  set_default_text(object.mut("roleRef"), "apiGroup", kGroup);
  if (object["subjects"].empty()) return;
  Value& subjects = object.mut("subjects");
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    if (is_one_of(subjects[i]["kind"].as_string(), {"User", "Group"})) {
      set_default_text(subjects.mut(i), "apiGroup", kGroup);
    }
  }
}

void check_subject(const Value& subject, bool is_namespaced, const Path& path,
                   FieldErrors& errors) {
  std::string_view kind = subject["kind"].as_string();
  std::string_view name = subject["name"].as_string();
  const Value& group = subject["apiGroup"];
  if (kind == "ServiceAccount") {
    if (!name.empty()) {
      add_invalid(is_dns1123_subdomain(name), subject["name"], path.child("name"), errors);
    }
    if (!group.as_string().empty()) errors.not_supported(path.child("apiGroup"), group, {""});
    if (!is_namespaced && subject["namespace"].as_string().empty()) {
      errors.required(path.child("namespace"));
    }
  } else if (kind == "User" || kind == "Group") {
    if (group.as_string() != kGroup) {
      errors.not_supported(path.child("apiGroup"), group.str(), {std::string(kGroup)});
    }
  } else {
    errors.not_supported(path.child("kind"), subject["kind"].str(),
                         {"ServiceAccount", "User", "Group"});
  }
}

void validate_binding(const Value& object, bool is_namespaced, FieldErrors& errors) {
  const Value& role = object["roleRef"];
  Path role_path("roleRef");
  if (role["apiGroup"].as_string() != kGroup) {
    errors.not_supported(role_path.child("apiGroup"), role["apiGroup"].str(),
                         {std::string(kGroup)});
  }
  std::string_view kind = role["kind"].as_string();
  if (is_namespaced) {
    if (!is_one_of(kind, {"Role", "ClusterRole"})) {
      errors.not_supported(role_path.child("kind"), role["kind"].str(), {"Role", "ClusterRole"});
    }
  } else if (kind != "ClusterRole") {
    errors.not_supported(role_path.child("kind"), role["kind"].str(), {"ClusterRole"});
  }
  std::string_view name = role["name"].as_string();
  if (!name.empty()) {
    add_invalid(is_path_segment_name(name), role["name"], role_path.child("name"), errors);
  }
  Path subjects("subjects");
  std::size_t i = 0;
  for (const Value& subject : object["subjects"].items()) {
    check_subject(subject, is_namespaced, subjects.index(i++), errors);
  }
  i = 0;
  for (const Value& subject : object["subjects"].items()) {
    Path at = subjects.index(i++);
    if (subject["name"].as_string().empty()) errors.required(at.child("name"));
  }
  if (name.empty()) errors.required(role_path.child("name"));
}

KindRules access_rules() {
  KindRules rules;
  rules.name_rule = NameRule::path_segment;
  rules.allow_create_on_update = true;
  return rules;
}

KindRules role_rules(bool is_namespaced) {
  KindRules rules = access_rules();
  auto* validate = is_namespaced ? validate_role : validate_cluster_role;
  rules.validate = validate;
  rules.validate_update = [validate](const Value& object, const Value&, FieldErrors& errors) {
    validate(object, errors);
  };
  return rules;
}

KindRules binding_rules(bool is_namespaced) {
  KindRules rules = access_rules();
  rules.set_defaults = set_binding_defaults;
  rules.validate = [is_namespaced](const Value& object, FieldErrors& errors) {
    validate_binding(object, is_namespaced, errors);
  };
  rules.validate_update = [is_namespaced](const Value& object, const Value& old,
                                          FieldErrors& errors) {
    validate_binding(object, is_namespaced, errors);
    const Value& role = object["roleRef"];
    if (role == old["roleRef"]) return;
    Value shown = is_namespaced ? Value::object({{"APIGroup", role["apiGroup"].str()},
                                                 {"Kind", role["kind"].str()},
                                                 {"Name", role["name"].str()}})
                                : Value();
    errors.invalid(Path("roleRef"), shown, "field is immutable");
  };
  return rules;
}

}  // namespace

void add_access_rules(RuleTable& table) {
  std::string group(kGroup);
  table[{group, "Role"}] = role_rules(true);
  table[{group, "ClusterRole"}] = role_rules(false);
  table[{group, "RoleBinding"}] = binding_rules(true);
  table[{group, "ClusterRoleBinding"}] = binding_rules(false);
  table[{"certificates.k8s.io", "CertificateSigningRequest"}] = signing_request_rules();
  table[{"certificates.k8s.io", "ClusterTrustBundle"}] = trust_bundle_rules();
  table[{"certificates.k8s.io", "PodCertificateRequest"}] = pod_certificate_request_rules();
  table[{"authentication.k8s.io", "TokenReview"}].question = Question::token;
  table[{"authentication.k8s.io", "SelfSubjectReview"}].question = Question::who_am_i;
  table[{"authorization.k8s.io", "SelfSubjectRulesReview"}].question = Question::my_rules;
  table[{"authorization.k8s.io", "SubjectAccessReview"}].question = Question::may_he;
  table[{"authorization.k8s.io", "LocalSubjectAccessReview"}].question = Question::may_he_here;
  table[{"authorization.k8s.io", "SelfSubjectAccessReview"}].question = Question::may_i;
}

}  // namespace dibs::api
