#include "cel/libraries/authorizer.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "cel/kubernetes.h"

namespace dibs::cel {
namespace {

std::string spelled(const AuthorizationQuery& query) {
  if (!query.is_resource()) return cat(query.verb, " ", query.path);
  std::string text = cat(query.verb, " ", query.group, "/", query.resource);
  if (!query.subresource.empty()) append(text, "/", query.subresource);
  if (!query.namespace_name.empty()) append(text, " in ", query.namespace_name);
  if (!query.name.empty()) append(text, " named ", query.name);
  if (query.field_selector) append(text, " fields ", *query.field_selector);
  if (query.label_selector) append(text, " labels ", *query.label_selector);
  if (query.service_account)
    append(text, " as ", query.service_account->namespace_name, ":", query.service_account->name);
  return text;
}

class AuthorizerTest : public testing::Test {
 protected:
  AuthorizerTest() {
    environment_.variable("authorizer", authorizer_type());
    environment_.variable("authorizer.requestResource", resource_check_type());
  }

  /// Reading is allowed, deleting cannot be answered.
  Evaluation evaluate(std::string_view source) {
    const Compilation made = environment_.compile(source);
    EXPECT_NE(made.program, nullptr) << format_issues(source, made.issues);
    if (made.program == nullptr) return {};
    const auto ask = std::make_shared<const Authorize>([this](const AuthorizationQuery& query) {
      asked_.push_back(spelled(query));
      AuthorizationDecision decision;
      decision.allowed = query.verb == "get";
      decision.reason = cat("because of ", query.verb);
      if (query.verb == "delete") decision.error = "no answer";
      return decision;
    });
    AuthorizationQuery request;
    request.group = "apps";
    request.resource = "deployments";
    request.namespace_name = "n";
    request.name = "web";
    const Value values[] = {authorizer_value(ask), resource_check_value(ask, request)};
    programs_.push_back(made.program);
    return made.program->evaluate(values);
  }

  Environment environment_ = kubernetes_environment();
  std::vector<std::shared_ptr<const Program>> programs_;
  std::vector<std::string> asked_;
};

TEST_F(AuthorizerTest, puts_questions_together) {
  const struct {
    std::string_view expression;
    std::string_view asked;
  } cases[] = {
      {"authorizer.path('/healthz').check('get').allowed()", "get /healthz"},
      {"authorizer.group('apps').resource('deployments').check('get').allowed()",
       "get apps/deployments"},
      {"authorizer.group('').resource('pods').subresource('log').namespace('n').name('p')"
       ".check('get').allowed()",
       "get /pods/log in n named p"},
      {"authorizer.group('').resource('pods').fieldSelector('spec.nodeName=a').labelSelector('b')"
       ".check('get').allowed()",
       "get /pods fields spec.nodeName=a labels b"},
      {"authorizer.group('').resource('pods').fieldSelector('x').fieldSelector('')"
       ".check('get').allowed()",
       "get /pods"},
      {"authorizer.serviceAccount('ns', 'builder').group('').resource('pods').check('get')"
       ".allowed()",
       "get /pods as ns:builder"},
      {"authorizer.requestResource.check('get').allowed()", "get apps/deployments in n named web"},
      {"authorizer.requestResource.subresource('scale').name('').check('get').allowed()",
       "get apps/deployments/scale in n"},
  };
  for (const auto& test : cases) {
    const Evaluation made = evaluate(test.expression);

    EXPECT_TRUE(made.value.is_true()) << test.expression;
    ASSERT_FALSE(asked_.empty());
    EXPECT_EQ(asked_.back(), test.asked);
  }
}

TEST_F(AuthorizerTest, decisions_have_reasons_and_errors) {
  for (const std::string_view expression :
       {"!authorizer.path('/').check('post').allowed()",
        "authorizer.path('/').check('post').reason() == 'because of post'",
        "!authorizer.path('/').check('post').errored()",
        "authorizer.path('/').check('post').error() == ''",
        "authorizer.path('/').check('delete').errored()",
        "authorizer.path('/').check('delete').error() == 'no answer'"}) {
    EXPECT_TRUE(evaluate(expression).value.is_true()) << expression;
  }
}

TEST_F(AuthorizerTest, refuses_empty_and_invalid_parts) {
  const struct {
    std::string_view expression;
    std::string_view error;
  } cases[] = {
      {"authorizer.path(' ').check('get').allowed()", "path must not be empty"},
      {"authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"},
      {"authorizer.serviceAccount('n', 'A').path('/').check('get').allowed()",
       "Invalid service account name"},
      {"authorizer.serviceAccount('a.b', 'a').path('/').check('get').allowed()",
       "Invalid service account namespace"},
      {"authorizer == authorizer", "no such overload"},
  };
  for (const auto& test : cases) {
    const Evaluation made = evaluate(test.expression);
    ASSERT_TRUE(made.value.is_error()) << test.expression;
    EXPECT_EQ(made.value.text(), test.error);
  }
}

TEST_F(AuthorizerTest, two_checks_fit_into_the_budget) {
  EXPECT_EQ(evaluate("authorizer.path('/').check('get').allowed()").cost, 1u + 1 + 350'000 + 1);
  // Ten, the scan, and forty and ten for every second character.
  EXPECT_EQ(selector_cost(15), 10u + 2 + 8 * 50);
  EXPECT_EQ(selector_cost(0), 10u);
}

}  // namespace
}  // namespace dibs::cel
