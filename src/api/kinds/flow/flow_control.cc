// FlowSchema and PriorityLevelConfiguration: whose requests share which part of the server.

#include <algorithm>
#include <cmath>

#include "api/kinds/checks.h"
#include "api/kinds/flow/flow_defaults.h"
#include "api/kinds/names.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::int64_t kMostPrecedence = 10000;
constexpr std::int64_t kMostQueues = 10'000'000;
constexpr int kHashBits = 60;
constexpr std::string_view kBetaZeroShares =
    "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

bool has_wildcard(const Value& list) {
  const auto& items = list.items();
  return std::find(items.begin(), items.end(), Value("*")) != items.end();
}

/// One fault about the list, as upstream tells it.
void add_unsupported_list(const Value& list, const std::vector<std::string>& known,
                          const Path& path, FieldErrors& errors) {
  for (const Value& item : list.items()) {
    if (std::find(known.begin(), known.end(), item.str()) == known.end())
      return errors.not_supported(path, list, known);
  }
}

void validate_verbs(const Value& rule, const Path& parent, FieldErrors& errors) {
  const Value& verbs = rule["verbs"];
  const Path path = parent.child("verbs");
  if (verbs.empty()) return errors.required(path, "verbs must contain at least one value");
  if (has_wildcard(verbs)) {
    if (verbs.size() > 1)
      errors.invalid(path, verbs, "if '*' is present, must not specify other verbs");
    return;
  }
  add_unsupported_list(
      verbs,
      {"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"},
      path, errors);
}

void validate_url(const Value& url, const Path& path, FieldErrors& errors) {
  const std::string_view text = url.as_string();
  if (text.empty()) return errors.invalid(path, url, "must not be empty");
  if (text == "/") return;
  if (!text.starts_with('/')) return errors.invalid(path, url, "must start with slash");
  if (text.find(' ') != text.npos) return errors.invalid(path, url, "must not contain white-space");
  if (text.find("//") != text.npos)
    return errors.invalid(path, url, "must not contain double slash");
  const auto stars = std::count(text.begin(), text.end(), '*');
  if (stars > 1 || (stars == 1 && !text.ends_with("/*")))
    errors.invalid(path, url, "wildcard can only do suffix matching");
}

void validate_url_rule(const Value& rule, const Path& path, FieldErrors& errors) {
  validate_verbs(rule, path, errors);
  const Value& urls = rule["nonResourceURLs"];
  const Path at = path.child("nonResourceURLs");
  if (urls.empty()) return errors.required(at, "nonResourceURLs must contain at least one value");
  if (has_wildcard(urls)) {
    if (urls.size() > 1)
      errors.invalid(at, urls, "if '*' is present, must not specify other non-resource URLs");
    return;
  }
  for (std::size_t i = 0; i < urls.size(); ++i) validate_url(urls[i], at.index(i), errors);
}

void check_list(const Value& rule, std::string_view key, std::string_view what, const Path& path,
                FieldErrors& errors) {
  const Value& list = rule[key];
  if (list.empty()) {
    errors.required(path.child(key), cat("resource rules must supply at least one ", what));
  } else if (list.size() > 1 && has_wildcard(list)) {
    errors.invalid(path.child(key), list,
                   cat("if '*' is present, must not specify other ", what, "s"));
  }
}

void validate_resource_rule(const Value& rule, const Path& path, FieldErrors& errors) {
  validate_verbs(rule, path, errors);
  check_list(rule, "apiGroups", "api group", path, errors);
  check_list(rule, "resources", "resource", path, errors);
  const Value& places = rule["namespaces"];
  const Path at = path.child("namespaces");
  if (places.empty()) {
    if (!rule["clusterScope"].as_bool()) {
      errors.required(
          at, "resource rules that are not cluster scoped must supply at least one namespace");
    }
  } else if (has_wildcard(places)) {
    if (places.size() > 1)
      errors.invalid(at, places, "if '*' is present, must not specify other namespaces");
  } else {
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (const std::string& fault : is_name(NameRule::label, places[i].as_string())) {
        errors.invalid(at.index(i), places[i],
                       cat("each member of this list must be '*' or a DNS-1123 label; ", fault));
      }
    }
  }
}

void validate_account(const Value& account, const Path& path, FieldErrors& errors) {
  const Value& name = account["name"];
  if (name.as_string().empty()) {
    errors.required(path.child("name"));
  } else if (name.as_string() != "*") {
    add_invalid(is_name(NameRule::subdomain, name.as_string()), name, path.child("name"), errors);
  }
  const Value& place = account["namespace"];
  if (place.as_string().empty()) {
    errors.required(path.child("namespace"), "must specify namespace for service account");
  } else {
    add_invalid(is_name(NameRule::label, place.as_string()), place, path.child("namespace"),
                errors);
  }
}

void validate_subject(const Value& subject, const Path& path, FieldErrors& errors) {
  struct Form {
    std::string_view kind;
    std::string_view field;
  };
  // Faults of what must not be there come in this order.
  constexpr Form kForms[] = {
      {"ServiceAccount", "serviceAccount"}, {"User", "user"}, {"Group", "group"}};
  const std::string_view kind = subject["kind"].as_string();
  const auto* own = std::find_if(std::begin(kForms), std::end(kForms),
                                 [&](const Form& form) { return form.kind == kind; });
  if (own == std::end(kForms)) {
    return errors.not_supported(path.child("kind"), subject["kind"],
                                {"Group", "ServiceAccount", "User"});
  }
  const Value& who = subject[own->field];
  const Path at = path.child(own->field);
  if (who.is_null()) {
    errors.required(at, cat(own->field, " is required when subject kind is '", kind, "'"));
  } else if (kind == "ServiceAccount") {
    validate_account(who, at, errors);
  } else if (who["name"].as_string().empty()) {
    errors.required(at.child("name"));
  }
  for (const Form& form : kForms) {
    if (form.kind == kind || !is_set(subject, form.field)) continue;
    errors.forbidden(path.child(form.field), cat(form.field,
                                                 " is forbidden when subject kind is "
                                                 "not '",
                                                 form.kind, "'"));
  }
}

void validate_rule(const Value& rule, const Path& path, FieldErrors& errors) {
  const Value& subjects = rule["subjects"];
  const Path who = path.child("subjects");
  if (subjects.empty()) errors.required(who, "subjects must contain at least one value");
  for (std::size_t i = 0; i < subjects.size(); ++i)
    validate_subject(subjects[i], who.index(i), errors);
  const Value& resources = rule["resourceRules"];
  const Value& urls = rule["nonResourceRules"];
  if (resources.empty() && urls.empty()) {
    errors.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty");
  }
  const Path resource = path.child("resourceRules");
  for (std::size_t i = 0; i < resources.size(); ++i)
    validate_resource_rule(resources[i], resource.index(i), errors);
  const Path url = path.child("nonResourceRules");
  for (std::size_t i = 0; i < urls.size(); ++i) validate_url_rule(urls[i], url.index(i), errors);
}

void validate_flow_conditions(const Value& object, FieldErrors& errors) {
  const Value& conditions = object["status"]["conditions"];
  const Path status("status");
  const Path path = status.child("conditions");
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Path at = path.index(i);
    const std::string type = conditions[i]["type"].str();
    if (std::find(seen.begin(), seen.end(), type) != seen.end())
      errors.duplicate(at.child("type"), conditions[i]["type"]);
    seen.push_back(type);
    if (type.empty()) errors.required(at.child("type"));
  }
}

/// Null where the name is not one of the mandatory objects.
Value fixed_spec(const std::vector<Value>& defaults, std::string_view name) {
  if (!is_mandatory_flow(name)) return {};
  for (const Value& object : defaults) {
    if (object["metadata"]["name"].as_string() == name) return object["spec"];
  }
  return {};
}

void validate_schema(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const std::string_view name = object["metadata"]["name"].as_string();
  const Path path("spec");
  const Path order = path.child("matchingPrecedence");
  const std::int64_t precedence = spec["matchingPrecedence"].as_int();
  if (precedence <= 0) errors.invalid(order, precedence, "must be a positive value");
  if (precedence > kMostPrecedence)
    errors.invalid(order, precedence, cat("must not be greater than ", kMostPrecedence));
  if (precedence == 1 && name != "exempt") {
    errors.invalid(order, precedence,
                   "only the schema named 'exempt' may have matchingPrecedence 1");
  }
  if (is_set(spec, "distinguisherMethod") &&
      !is_one_of(spec["distinguisherMethod"]["type"].as_string(), {"ByUser", "ByNamespace"})) {
    const Path method = path.child("distinguisherMethod");
    errors.not_supported(method.child("type"),
                         Value::object({{"Type", spec["distinguisherMethod"]["type"].str()}}),
                         {"ByNamespace", "ByUser"});
  }
  const Value& level = spec["priorityLevelConfiguration"]["name"];
  const Path parent = path.child("priorityLevelConfiguration");
  if (level.as_string().empty()) {
    errors.required(parent.child("name"), "must reference a priority level");
  } else {
    add_invalid(is_name(NameRule::subdomain, level.as_string()), level, parent.child("name"),
                errors);
  }
  const Path rules = path.child("rules");
  for (std::size_t i = 0; i < spec["rules"].size(); ++i)
    validate_rule(spec["rules"][i], rules.index(i), errors);
  if (const Value fixed = fixed_spec(default_flow_schemas(), name);
      !fixed.is_null() && !(fixed == spec)) {
    errors.invalid(path, spec, cat("spec of '", name, "' must equal the fixed value"));
  }
  validate_flow_conditions(object, errors);
}

void check_percent(const Value& object, std::string_view key, const Path& path,
                   FieldErrors& errors) {
  const std::int64_t percent = object[key].as_int();
  if (percent < 0 || percent > 100)
    errors.invalid(path.child(key), object[key], "must be between 0 and 100, inclusive");
}

void check_shares(const Value& object, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kKey = "nominalConcurrencyShares";
  if (object[kKey].as_int() < 0)
    errors.invalid(path.child(kKey), object[kKey], "must be a non-negative integer");
}

void validate_queuing(const Value& queuing, const Path& path, FieldErrors& errors) {
  const std::int64_t queues = queuing["queues"].as_int();
  const std::int64_t hand = queuing["handSize"].as_int();
  if (queuing["queueLengthLimit"].as_int() <= 0)
    errors.invalid(path.child("queueLengthLimit"), queuing["queueLengthLimit"], "must be positive");
  if (queues <= 0) {
    errors.invalid(path.child("queues"), queues, "must be positive");
  } else if (queues > kMostQueues) {
    errors.invalid(path.child("queues"), queues, cat("must not be greater than ", kMostQueues));
  }
  const Path at = path.child("handSize");
  if (hand <= 0) {
    errors.invalid(at, hand, "must be positive");
  } else if (hand > queues) {
    errors.invalid(at, hand, cat("should not be greater than queues (", queues, ")"));
  } else if (std::ceil(std::log2(static_cast<double>(queues)) * static_cast<double>(hand)) >
             kHashBits) {
    errors.invalid(at, hand,
                   cat("required entropy bits of deckSize ", queues, " and handSize ", hand,
                       " should not be greater than ", kHashBits));
  }
}

void validate_response(const Value& response, const Path& path, FieldErrors& errors) {
  const std::string_view type = response["type"].as_string();
  const Path queuing = path.child("queuing");
  if (type == "Reject") {
    if (is_set(response, "queuing")) {
      errors.forbidden(queuing, {});
    }
  } else if (type == "Queue") {
    if (is_set(response, "queuing")) {
      validate_queuing(response["queuing"], queuing, errors);
    } else {
      errors.required(queuing);
    }
  } else {
    if (!type.empty())
      errors.not_supported(path.child("type"), response["type"], {"Queue", "Reject"});
    if (is_set(response, "queuing")) errors.forbidden(queuing, {});
    if (type.empty()) errors.required(path.child("type"));
  }
}

void validate_limited(const Value& limited, const Path& path, FieldErrors& errors) {
  check_shares(limited, path, errors);
  validate_response(limited["limitResponse"], path.child("limitResponse"), errors);
  check_percent(limited, "lendablePercent", path, errors);
  if (limited["borrowingLimitPercent"].as_int() < 0) {
    errors.invalid(path.child("borrowingLimitPercent"), limited["borrowingLimitPercent"],
                   "if specified, must be a non-negative integer");
  }
}

void validate_fixed_level(const Value& object, const Path& path, FieldErrors& errors) {
  const std::string_view name = object["metadata"]["name"].as_string();
  const Value fixed = fixed_spec(default_priority_levels(), name);
  if (fixed.is_null()) return;
  Value spec = object["spec"];
  if (name == "exempt") spec.set("exempt", fixed["exempt"]);
  if (spec == fixed) return;
  errors.invalid(
      path, object["spec"],
      cat("spec of '", name, "' ", name == "exempt" ? "except the 'spec.exempt' field " : "",
          "must equal the fixed value"));
}

void validate_level(const Value& object, FieldErrors& errors) {
  const Value& metadata = object["metadata"];
  const Value& spec = object["spec"];
  if (metadata["annotations"].contains(kBetaZeroShares)) {
    const Path at("metadata");
    errors.forbidden(at.child("annotations"),
                     cat("annotation '", kBetaZeroShares, "' is forbidden"));
  }
  const Path path("spec");
  const std::string_view type = spec["type"].as_string();
  if ((metadata["name"].as_string() == "exempt") != (type == "Exempt")) {
    errors.invalid(path.child("type"), spec["type"],
                   "must be 'Exempt' if and only if `name` is 'exempt'");
  }
  if (type == "Exempt") {
    if (is_set(spec, "limited")) errors.forbidden(path.child("limited"), {});
    if (is_set(spec, "exempt")) {
      const Path at = path.child("exempt");
      check_shares(spec["exempt"], at, errors);
      check_percent(spec["exempt"], "lendablePercent", at, errors);
    }
  } else if (type == "Limited") {
    if (is_set(spec, "exempt")) errors.forbidden(path.child("exempt"), {});
    if (is_set(spec, "limited")) {
      validate_limited(spec["limited"], path.child("limited"), errors);
    } else {
      errors.required(path.child("limited"));
    }
  } else {
    if (!type.empty())
      errors.not_supported(path.child("type"), spec["type"], {"Exempt", "Limited"});
    for (std::string_view part : {"exempt", "limited"}) {
      if (is_set(spec, part)) errors.forbidden(path.child(part), {});
    }
    if (type.empty()) errors.required(path.child("type"));
  }
  validate_fixed_level(object, path, errors);
  validate_flow_conditions(object, errors);
}

void set_number(Value& object, std::string_view key, int number) {
  if (object[key].as_int() == 0) object.set(key, number);
}

void set_schema_defaults(Value& object) {
  if (is_set(object, "spec")) set_number(object.mut("spec"), "matchingPrecedence", 1000);
}

void set_level_defaults(Value& object) {
  const Value& spec = object["spec"];
  if (is_set(spec, "exempt")) {
    Value& exempt = object.mut("spec").mut("exempt");
    set_default(exempt, "nominalConcurrencyShares", 0);
    set_default(exempt, "lendablePercent", 0);
  }
  if (!is_set(spec, "limited")) return;
  Value& limited = object.mut("spec").mut("limited");
  set_default(limited, "nominalConcurrencyShares", 30);
  set_default(limited, "lendablePercent", 0);
  if (!is_set(limited["limitResponse"], "queuing")) return;
  Value& queuing = limited.mut("limitResponse").mut("queuing");
  set_number(queuing, "queues", 64);
  set_number(queuing, "handSize", 8);
  set_number(queuing, "queueLengthLimit", 50);
}

KindRules rules_of(void (*set_defaults)(Value&), void (*validate)(const Value&, FieldErrors&)) {
  KindRules rules;
  rules.tracks_generation = true;
  rules.has_status = true;
  rules.set_defaults = set_defaults;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  rules.validate = validate;
  rules.validate_update = [validate](const Value& object, const Value&, FieldErrors& errors) {
    validate(object, errors);
  };
  rules.validate_status = [](const Value& object, const Value&, FieldErrors& errors) {
    validate_flow_conditions(object, errors);
  };
  return rules;
}

}  // namespace

void add_flow_rules(RuleTable& table) {
  table[{std::string(kFlowGroup), "FlowSchema"}] = rules_of(set_schema_defaults, validate_schema);
  table[{std::string(kFlowGroup), "PriorityLevelConfiguration"}] =
      rules_of(set_level_defaults, validate_level);
}

}  // namespace dibs::api
