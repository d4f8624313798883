#include "api/expressions/claim_expressions.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cel/evaluate/program.h"
#include "cel/json_value.h"
#include "cel/kubernetes.h"

namespace dibs::api {
namespace {

using cel::Type;
using cel::TypeKind;

// As for other expressions of the API.
constexpr std::uint64_t kLimit = 1'000'000;

const cel::Environment& environment_over(ExpressionOver over) {
  static const cel::Environment kClaims = [] {
    cel::Environment made = cel::kubernetes_environment();
    made.variable("claims", Type::map(TypeKind::string, TypeKind::any));
    return made;
  }();
  static const cel::Environment kUser = [] {
    cel::Environment made = cel::kubernetes_environment();
    const Type text = TypeKind::string;
    made.object("kubernetes.UserInfo", {{"username", text},
                                        {"uid", text},
                                        {"groups", Type::list(text)},
                                        {"extra", Type::map(text, Type::list(text))}});
    made.variable("user", Type(TypeKind::object, "kubernetes.UserInfo"));
    return made;
  }();
  return over == ExpressionOver::claims ? kClaims : kUser;
}

/// The names that are selected of claims.
std::vector<std::string> selected(const cel::Ast& tree) {
  std::vector<std::string> out;
  for (cel::NodeId id = 0; id < tree.size(); ++id) {
    const cel::AstNode& node = tree.node(id);
    if (node.kind != cel::NodeKind::select) continue;
    const cel::AstNode& of = tree.node(tree.child(node, 0));
    if (of.kind == cel::NodeKind::ident && tree.name(of) == "claims") {
      out.push_back(tree.name(node));
    }
  }
  return out;
}

Result<cel::Value> evaluate(const cel::Program& program, const json::Value& value) {
  const cel::Value variables[] = {cel::json_value(value)};
  cel::Evaluation done = program.evaluate(variables, {.cost = kLimit});
  if (done.value.is_error()) return Error::invalid(std::string(done.value.text()));
  return std::move(done.value);
}

}  // namespace

Result<ClaimExpression> ClaimExpression::compile(ExpressionOver over, std::string_view text,
                                                 bool judges) {
  const cel::Environment& environment = environment_over(over);
  cel::Compilation compiled = environment.compile(text);
  if (compiled.program == nullptr) {
    return Error::invalid(cat("compilation failed: ", cel::format_issues(text, compiled.issues)));
  }
  if (judges && compiled.type.kind() != TypeKind::boolean) {
    return Error::invalid("must evaluate to bool");
  }
  ClaimExpression out;
  out.text_ = text;
  out.program_ = std::move(compiled.program);
  std::vector<cel::Issue> issues;
  if (const auto tree = cel::parse(text, environment.options.parser, issues)) {
    out.reads_ = selected(*tree);
  }
  return out;
}

bool ClaimExpression::reads(std::string_view name) const {
  return std::find(reads_.begin(), reads_.end(), name) != reads_.end();
}

Result<bool> ClaimExpression::judge(const json::Value& value) const {
  DIBS_TRY(const cel::Value made, evaluate(*program_, value));
  if (!made.is(cel::Kind::boolean)) {
    return Error::invalid("validation expression must return a boolean");
  }
  return made.as_boolean();
}

Result<std::string> ClaimExpression::string(const json::Value& value) const {
  DIBS_TRY(const cel::Value made, evaluate(*program_, value));
  if (!made.is(cel::Kind::string)) return Error::invalid("claim expression must return a string");
  return std::string(made.text());
}

Result<std::vector<std::string>> ClaimExpression::strings(const json::Value& value) const {
  const Error wrong = Error::invalid("expression must return a string or a list of strings");
  DIBS_TRY(const cel::Value made, evaluate(*program_, value));
  std::vector<std::string> out;
  const auto add = [&](const cel::Value& one) {
    if (!one.is(cel::Kind::string)) return false;
    if (!one.text().empty()) out.emplace_back(one.text());
    return true;
  };
  if (made.is(cel::Kind::null)) return out;
  if (!made.is(cel::Kind::list)) {
    if (!add(made)) return wrong;
    return out;
  }
  const cel::List& list = made.as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!add(list.at(i))) return wrong;
  }
  return out;
}

}  // namespace dibs::api
