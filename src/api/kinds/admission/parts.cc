#include "api/kinds/admission/parts.h"

#include <algorithm>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "base/strings.h"

namespace dibs::api::admission {
namespace {

bool has(const Value& list, std::string_view text) {
  for (const Value& item : list.items()) {
    if (item.as_string() == text) return true;
  }
  return false;
}

void check_resources(const Value& resources, const Path& path, FieldErrors& errors) {
  if (resources.empty()) errors.required(path);
  std::set<std::string_view> all_parts_of;  // "x/*" was there
  std::set<std::string_view> of_all;        // "*/x" was there
  bool plain = false;
  std::size_t i = 0;
  for (const Value& resource : resources.items()) {
    Path at = path.index(i++);
    std::string_view text = resource.as_string();
    if (text.empty()) {
      errors.required(at);
      continue;
    }
    std::size_t slash = text.find('/');
    if (slash == std::string_view::npos) {
      plain = text != "*";
      continue;
    }
    std::string_view name = text.substr(0, slash);
    std::string_view sub = text.substr(slash + 1);
    if (all_parts_of.contains(name)) {
      errors.invalid(at, resource, cat("if '", name, "/*' is present, must not specify ", text));
    }
    if (of_all.contains(sub)) {
      errors.invalid(at, resource, cat("if '*/", sub, "' is present, must not specify ", text));
    }
    if (sub == "*") all_parts_of.insert(name);
    if (name == "*") of_all.insert(sub);
  }
  if (resources.size() > 1 && has(resources, "*/*")) {
    errors.invalid(path, resources, "if '*/*' is present, must not specify other resources");
  }
  if (has(resources, "*") && plain) {
    errors.invalid(path, resources,
                   "if '*' is present, must not specify other resources without subresources");
  }
}

void check_named_rules(const Value& rules, const Path& path, FieldErrors& errors) {
  std::size_t i = 0;
  for (const Value& rule : rules.items()) {
    Path at = path.index(i++);
    Path names_path = at.child("resourceNames");
    std::set<std::string_view> names;
    std::size_t j = 0;
    for (const Value& name : rule["resourceNames"].items()) {
      add_invalid(is_path_segment_name(name.as_string()), name, names_path.index(j), errors);
      if (!names.insert(name.as_string()).second) errors.duplicate(names_path.index(j), name);
      ++j;
    }
    check_rule(rule, at, errors);
  }
}

bool is_cel_identifier(std::string_view text) {
  if (text.empty() || (text.front() >= '0' && text.front() <= '9')) return false;
  bool is_word = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  });
  return is_word &&
         !is_one_of(text,
                    {"true",     "false",   "null",      "in",       "as",  "break",  "const",
                     "continue", "else",    "for",       "function", "if",  "import", "let",
                     "loop",     "package", "namespace", "return",   "var", "void",   "while"});
}

void check_url(const Value& url, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  std::string_view text = url.as_string();
  std::size_t colon = text.find(':');
  std::size_t slash = text.find('/');
  std::string_view scheme;
  std::string_view rest = text;
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon < slash)) {
    scheme = text.substr(0, colon);
    rest = text.substr(colon + 1);
  }
  auto cut = [&rest](char mark) {
    std::size_t at = rest.find(mark);
    if (at == std::string_view::npos) return std::string_view();
    std::string_view tail = rest.substr(at + 1);
    rest = rest.substr(0, at);
    return tail;
  };
  std::string_view fragment = cut('#');
  std::string_view query = cut('?');
  std::string_view host;
  std::string_view user;
  if (rest.substr(0, 2) == "//") {
    host = rest.substr(2, rest.find('/', 2) - std::min<std::size_t>(2, rest.size()));
    if (std::size_t at = host.rfind('@'); at != std::string_view::npos) {
      user = host.substr(0, at);
      host = host.substr(at + 1);
    }
  }
  if (to_lower(scheme) != "https") {
    errors.invalid(path, to_lower(scheme), cat("'https' is the only allowed URL scheme", kForm));
  }
  if (host.empty()) errors.invalid(path, "", cat("host must be specified", kForm));
  if (!user.empty()) {
    errors.invalid(path, user, "user information is not permitted in the URL");
  }
  if (!fragment.empty()) {
    errors.invalid(path, fragment, "fragments are not permitted in the URL");
  }
  if (!query.empty()) {
    errors.invalid(path, query, "query parameters are not permitted in the URL");
  }
}

void check_service(const Value& service, const Path& path, FieldErrors& errors) {
  // Each missing one is told of under the other's name.
  if (service["namespace"].as_string().empty()) errors.required(path.child("name"));
  if (service["name"].as_string().empty()) errors.required(path.child("namespace"));
  if (Faults faults = is_port_number(service["port"].as_int()); !faults.empty()) {
    errors.invalid(path.child("port"), Value(static_cast<long>(service["port"].as_int())),
                   cat("port is not valid: ", join(faults, ", ")));
  }
  const Value& url_path = service["path"];
  std::string_view text = url_path.as_string();
  if (text.empty() || text == "/") return;
  Path at = path.child("path");
  if (text == "//") {
    errors.invalid(at, url_path, "segment[0] may not be empty");
    return;
  }
  if (text.front() != '/') errors.invalid(at, url_path, "must start with a '/'");
  text.remove_prefix(1);
  if (!text.empty() && text.back() == '/') text.remove_suffix(1);
  std::size_t i = 0;
  for (std::string_view step : split(text, '/')) {
    if (step.empty()) {
      errors.invalid(at, url_path, cat("segment[", i, "] may not be empty"));
    } else {
      for (const std::string& fault : is_dns1123_subdomain(step)) {
        errors.invalid(at, url_path, cat("segment[", i, "]: ", fault));
      }
    }
    ++i;
  }
}

}  // namespace

KindRules admission_rules() {
  KindRules rules;
  rules.tracks_generation = true;
  rules.allow_unconditional_update = false;
  return rules;
}

void set_rule_defaults(Value& object, std::string_view list) {
  if (object[list].empty()) return;
  Value& rules = object.mut(list);
  for (std::size_t i = 0; i < rules.size(); ++i) set_default(rules.mut(i), "scope", "*");
}

void set_match_defaults(Value& resources) {
  set_default(resources, "matchPolicy", "Equivalent");
  set_default(resources, "namespaceSelector", Value::object());
  set_default(resources, "objectSelector", Value::object());
  set_rule_defaults(resources, "resourceRules");
  set_rule_defaults(resources, "excludeResourceRules");
}

void check_choice(const Value& object, std::string_view key,
                  const std::vector<std::string>& choices, const Path& path, FieldErrors& errors) {
  const Value& value = object[key];
  if (value.is_null()) return;
  if (std::find(choices.begin(), choices.end(), value.as_string()) != choices.end()) return;
  errors.not_supported(path.child(key), value, choices);
}

void check_failure_policy(const Value& object, bool is_required, const Path& path,
                          FieldErrors& errors) {
  if (is_required && !is_set(object, "failurePolicy")) {
    errors.required(path.child("failurePolicy"));
  }
  check_choice(object, "failurePolicy", {"Fail", "Ignore"}, path, errors);
}

void check_rule(const Value& rule, const Path& path, FieldErrors& errors) {
  const Value& operations = rule["operations"];
  Path operations_path = path.child("operations");
  if (operations.empty()) errors.required(operations_path);
  if (operations.size() > 1 && has(operations, "*")) {
    errors.invalid(operations_path, operations,
                   "if '*' is present, must not specify other operations");
  }
  std::size_t i = 0;
  for (const Value& operation : operations.items()) {
    if (!is_one_of(operation.as_string(), {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"})) {
      errors.not_supported(operations_path.index(i), operation,
                           {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"});
    }
    ++i;
  }
  const Value& groups = rule["apiGroups"];
  if (groups.empty()) errors.required(path.child("apiGroups"));
  if (groups.size() > 1 && has(groups, "*")) {
    errors.invalid(path.child("apiGroups"), groups,
                   "if '*' is present, must not specify other API groups");
  }
  const Value& versions = rule["apiVersions"];
  Path versions_path = path.child("apiVersions");
  if (versions.empty()) errors.required(versions_path);
  if (versions.size() > 1 && has(versions, "*")) {
    errors.invalid(versions_path, versions,
                   "if '*' is present, must not specify other API versions");
  }
  i = 0;
  for (const Value& version : versions.items()) {
    if (version.as_string().empty()) errors.required(versions_path.index(i));
    ++i;
  }
  check_resources(rule["resources"], path.child("resources"), errors);
  check_choice(rule, "scope", {"*", "Cluster", "Namespaced"}, path, errors);
}

void check_match_resources(const Value& resources, const Path& path, FieldErrors& errors) {
  if (!is_set(resources, "matchPolicy")) errors.required(path.child("matchPolicy"));
  check_choice(resources, "matchPolicy", {"Equivalent", "Exact"}, path, errors);
  for (std::string_view key : {"namespaceSelector", "objectSelector"}) {
    if (!is_set(resources, key)) errors.required(path.child(key));
    validate_label_selector(resources[key], path.child(key), errors);
  }
  check_named_rules(resources["resourceRules"], path.child("resourceRules"), errors);
  check_named_rules(resources["excludeResourceRules"], path.child("excludeResourceRules"), errors);
}

void check_mutating_operations(const Value& resources, const Path& path, FieldErrors& errors) {
  Path rules = path.child("resourceRules");
  for (const Value& rule : resources["resourceRules"].items()) {
    for (const Value& operation : rule["operations"].items()) {
      if (is_one_of(operation.as_string(), {"*", "CONNECT", "CREATE", "UPDATE"})) continue;
      errors.not_supported(rules.child("operations"), operation,
                           {"*", "CONNECT", "CREATE", "UPDATE"});
    }
  }
}

void check_expression(ExpressionJudge* judge, ExpressionRole role, std::string_view text,
                      const Value& shown, const Path& path, FieldErrors& errors,
                      std::string_view name) {
  if (judge == nullptr) return;
  if (std::string fault = judge->fault(role, text, name); !fault.empty()) {
    errors.invalid(path, shown, fault);
  }
}

void check_match_conditions(const Value& conditions, ExpressionJudge* judge, const Path& path,
                            FieldErrors& errors) {
  constexpr std::size_t kMost = 64;
  if (conditions.size() > kMost) errors.too_many(path, conditions.size(), kMost);
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& condition : conditions.items()) {
    Path at = path.index(i++);
    std::string_view expression = trim(condition["expression"].as_string());
    if (expression.empty()) {
      errors.required(at.child("expression"));
    } else {
      check_expression(judge, ExpressionRole::match_condition, expression, expression,
                       at.child("expression"), errors);
    }
    std::string_view name = condition["name"].as_string();
    if (name.empty()) {
      errors.required(at.child("name"));
      continue;
    }
    add_invalid(is_qualified_name(name), condition["name"], at.child("name"), errors);
    if (!names.insert(name).second) errors.duplicate(at.child("name"), condition["name"]);
  }
}

void check_variable(const Value& variable, ExpressionJudge* judge, const Path& path,
                    FieldErrors& errors) {
  if (trim(variable["name"].as_string()).empty()) {
    errors.required(path.child("name"), "name is not specified");
  } else if (!is_cel_identifier(variable["name"].as_string())) {
    errors.invalid(path.child("name"), variable["name"], "must be a valid CEL identifier");
  }
  const Value& expression = variable["expression"];
  if (trim(expression.as_string()).empty()) {
    errors.required(path.child("expression"), "expression is not specified");
  } else {
    check_expression(judge, ExpressionRole::variable, expression.as_string(), expression,
                     path.child("expression"), errors, variable["name"].as_string());
  }
}

void check_param_kind(const Value& kind, const Path& path, FieldErrors& errors) {
  const Value& version = kind["apiVersion"];
  std::string_view text = version.as_string();
  Path version_path = path.child("apiVersion");
  std::vector<std::string_view> parts = split(text, '/');
  if (text.empty()) {
    errors.required(version_path);
  } else if (parts.size() > 2) {
    errors.invalid(version_path, version, cat("unexpected GroupVersion string: ", text));
  } else {
    std::string_view group = parts.size() == 2 ? parts[0] : std::string_view();
    std::string_view name = parts.back();
    if (Faults faults = is_dns1123_subdomain(group); !group.empty() && !faults.empty()) {
      errors.invalid(version_path, group, join(faults, ","));
    }
    if (name.empty()) {
      errors.invalid(version_path, version, "version must be specified");
    } else if (Faults faults = is_dns1035_label(name); !faults.empty()) {
      errors.invalid(version_path, name, join(faults, ","));
    }
  }
  std::string_view kind_name = kind["kind"].as_string();
  if (kind_name.empty()) {
    errors.required(path.child("kind"));
  } else if (Faults faults = is_dns1035_label(to_lower(kind_name)); !faults.empty()) {
    errors.invalid(path.child("kind"), kind["kind"],
                   cat("may have mixed case, but should otherwise match: ", join(faults, ",")));
  }
}

void check_param_reference(const Value& reference, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kExclusive = "name and selector are mutually exclusive";
  std::string_view name = reference["name"].as_string();
  bool selects = is_set(reference, "selector");
  if (!name.empty()) {
    add_invalid(is_path_segment_name(name), reference["name"], path.child("name"), errors);
    if (selects) errors.forbidden(path.child("name"), kExclusive);
  }
  if (selects) {
    validate_label_selector(reference["selector"], path.child("selector"), errors);
    if (!name.empty()) errors.forbidden(path.child("selector"), kExclusive);
  }
  if (name.empty() && !selects) {
    errors.required(path, "one of name or selector must be specified");
  }
  const Value& action = reference["parameterNotFoundAction"];
  if (action.as_string().empty()) {
    errors.required(path.child("parameterNotFoundAction"));
  } else if (!is_one_of(action.as_string(), {"Deny", "Allow"})) {
    errors.not_supported(path.child("parameterNotFoundAction"), action, {"Deny", "Allow"});
  }
}

void check_client_config(const Value& config, const Path& path, FieldErrors& errors) {
  bool by_url = is_set(config, "url");
  bool by_service = is_set(config, "service");
  if (by_url == by_service) {
    errors.required(path, "exactly one of url or service is required");
  } else if (by_url) {
    check_url(config["url"], path.child("url"), errors);
  } else {
    check_service(config["service"], path.child("service"), errors);
  }
}

}  // namespace dibs::api::admission
