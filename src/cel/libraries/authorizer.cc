#include "cel/libraries/authorizer.h"

#include <utility>

#include "base/names.h"
#include "base/strings.h"
#include "cel/cost/cost.h"

namespace dibs::cel {

namespace {

constexpr std::string_view kAuthorizer = "kubernetes.authorization.Authorizer";
constexpr std::string_view kPathCheck = "kubernetes.authorization.PathCheck";
constexpr std::string_view kGroupCheck = "kubernetes.authorization.GroupCheck";
constexpr std::string_view kResourceCheck = "kubernetes.authorization.ResourceCheck";
constexpr std::string_view kDecision = "kubernetes.authorization.Decision";

/// None of these values is equal to anything: the comparison is an error.
class Incomparable : public Opaque {
 public:
  bool equals(const Opaque&) const override { return false; }
  bool comparable_with(const Opaque&) const override { return false; }
};

/// A question on its way; the type name says how far it has come.
class Question final : public Incomparable {
 public:
  Question(std::string_view type, std::shared_ptr<const Authorize> authorize,
           AuthorizationQuery query)
      : authorize(std::move(authorize)), query(std::move(query)), type_(type) {}
  std::string_view type_name() const override { return type_; }
  const std::shared_ptr<const Authorize> authorize;
  const AuthorizationQuery query;

 private:
  std::string_view type_;
};

class Decision final : public Incomparable {
 public:
  explicit Decision(AuthorizationDecision decision) : decision(std::move(decision)) {}
  std::string_view type_name() const override { return kDecision; }
  const AuthorizationDecision decision;
};

const Question& question(const Value& value) {
  return static_cast<const Question&>(value.as_opaque());
}
const AuthorizationDecision& decision(const Value& value) {
  return static_cast<const Decision&>(value.as_opaque()).decision;
}

Value next(std::string_view type, const Value& from, AuthorizationQuery query) {
  return Value::opaque(new Question(type, question(from).authorize, std::move(query)));
}

Value path(const Value* arguments, std::size_t) {
  if (trim(arguments[1].text()).empty()) return Value::error("path must not be empty");
  AuthorizationQuery query = question(arguments[0]).query;
  query.path = arguments[1].text();
  return next(kPathCheck, arguments[0], std::move(query));
}

Value group(const Value* arguments, std::size_t) {
  AuthorizationQuery query = question(arguments[0]).query;
  query.group = arguments[1].text();
  return next(kGroupCheck, arguments[0], std::move(query));
}

Value service_account(const Value* arguments, std::size_t) {
  if (!is_dns1123_subdomain(arguments[2].text()).empty())
    return Value::error("Invalid service account name");
  if (!is_dns1123_label(arguments[1].text()).empty())
    return Value::error("Invalid service account namespace");
  AuthorizationQuery query = question(arguments[0]).query;
  query.service_account = {std::string(arguments[1].text()), std::string(arguments[2].text())};
  return next(kAuthorizer, arguments[0], std::move(query));
}

Value resource(const Value* arguments, std::size_t) {
  if (trim(arguments[1].text()).empty()) return Value::error("resource must not be empty");
  AuthorizationQuery query = question(arguments[0]).query;
  query.resource = arguments[1].text();
  return next(kResourceCheck, arguments[0], std::move(query));
}

template <std::string AuthorizationQuery::*Part>
Value refine(const Value* arguments, std::size_t) {
  AuthorizationQuery query = question(arguments[0]).query;
  query.*Part = arguments[1].text();
  return next(kResourceCheck, arguments[0], std::move(query));
}

template <std::optional<std::string> AuthorizationQuery::*Part>
Value refine_selector(const Value* arguments, std::size_t) {
  AuthorizationQuery query = question(arguments[0]).query;
  // An empty selector is no selector.
  query.*Part = arguments[1].text().empty()
                    ? std::nullopt
                    : std::optional<std::string>(std::string(arguments[1].text()));
  return next(kResourceCheck, arguments[0], std::move(query));
}

Value check(const Value* arguments, std::size_t) {
  AuthorizationQuery query = question(arguments[0]).query;
  query.verb = arguments[1].text();
  const Authorize& ask = *question(arguments[0]).authorize;
  return Value::opaque(new Decision(ask(query)));
}

Value allowed(const Value* arguments, std::size_t) {
  return Value::boolean(decision(arguments[0]).allowed);
}
Value reason(const Value* arguments, std::size_t) {
  return Value::string(decision(arguments[0]).reason);
}
Value errored(const Value* arguments, std::size_t) {
  return Value::boolean(!decision(arguments[0]).error.empty());
}
Value error(const Value* arguments, std::size_t) {
  return Value::string(decision(arguments[0]).error);
}

std::uint64_t cost_check(const Value*, std::size_t, const Value&) { return kAuthorizationCost; }
std::uint64_t cost_selector(const Value* arguments, std::size_t, const Value&) {
  return selector_cost(cost_size(arguments[1]));
}

}  // namespace

std::uint64_t selector_cost(std::uint64_t length) {
  // A list of requirements, one for every two characters at worst, each a struct with a list.
  const std::uint64_t requirements = scaled(scaled(length, 0.5), kListCost + kStructCost);
  return saturated_add(saturated_add(kListCost, scaled(length, kScanFactor)), requirements);
}

Type authorizer_type() { return Type::parse(kAuthorizer); }
Type resource_check_type() { return Type::parse(kResourceCheck); }

Value authorizer_value(std::shared_ptr<const Authorize> authorize) {
  return Value::opaque(new Question(kAuthorizer, std::move(authorize), {}));
}

Value resource_check_value(std::shared_ptr<const Authorize> authorize, AuthorizationQuery query) {
  return Value::opaque(new Question(kResourceCheck, std::move(authorize), std::move(query)));
}

void add_authorizer(Environment& environment) {
  const auto declare = [&](std::string_view name, std::string_view self, std::string_view arguments,
                           std::string_view result, Implementation call, CallCost cost = nullptr) {
    const std::string signature = cat(".", self, arguments, " -> ", result);
    environment.function(name, {{signature, call, cost}});
  };
  declare("path", kAuthorizer, ", string", kPathCheck, path);
  declare("group", kAuthorizer, ", string", kGroupCheck, group);
  declare("serviceAccount", kAuthorizer, ", string, string", kAuthorizer, service_account);
  declare("resource", kGroupCheck, ", string", kResourceCheck, resource);
  const auto part = [&](std::string_view name, Implementation call) {
    declare(name, kResourceCheck, ", string", kResourceCheck, call);
  };
  part("subresource", refine<&AuthorizationQuery::subresource>);
  part("namespace", refine<&AuthorizationQuery::namespace_name>);
  part("name", refine<&AuthorizationQuery::name>);
  declare("check", kPathCheck, ", string", kDecision, check, cost_check);
  declare("check", kResourceCheck, ", string", kDecision, check, cost_check);
  declare("allowed", kDecision, "", "bool", allowed);
  declare("reason", kDecision, "", "string", reason);
  declare("errored", kDecision, "", "bool", errored);
  declare("error", kDecision, "", "string", error);
}

void add_authorizer_selectors(Environment& environment) {
  const std::string signature = cat(".", kResourceCheck, ", string -> ", kResourceCheck);
  environment.function(
      "fieldSelector",
      {{signature, refine_selector<&AuthorizationQuery::field_selector>, cost_selector}});
  environment.function(
      "labelSelector",
      {{signature, refine_selector<&AuthorizationQuery::label_selector>, cost_selector}});
}

}  // namespace dibs::cel
