#include "api/expressions/policy_environment.h"

#include <map>

#include "base/strings.h"
#include "cel/kubernetes.h"
#include "cel/libraries/authorizer.h"
#include "cel/libraries/patches.h"

namespace dibs::api {
namespace {

using cel::Type;
using cel::TypeKind;
using Fields = std::map<std::string, Type>;

constexpr const char* kVariables = "kubernetes.variables";

Type object_type(const char* name) { return {TypeKind::object, name}; }

void declare_request(cel::Environment& environment) {
  const Type text = TypeKind::string;
  environment.object("kubernetes.GroupVersionKind",
                     Fields{{"group", text}, {"version", text}, {"kind", text}});
  environment.object("kubernetes.GroupVersionResource",
                     Fields{{"group", text}, {"version", text}, {"resource", text}});
  environment.object("kubernetes.UserInfo", Fields{{"username", text},
                                                   {"uid", text},
                                                   {"groups", Type::list(text)},
                                                   {"extra", Type::map(text, Type::list(text))}});
  environment.object("kubernetes.AdmissionRequest",
                     Fields{{"kind", object_type("kubernetes.GroupVersionKind")},
                            {"resource", object_type("kubernetes.GroupVersionResource")},
                            {"subResource", text},
                            {"requestKind", object_type("kubernetes.GroupVersionKind")},
                            {"requestResource", object_type("kubernetes.GroupVersionResource")},
                            {"requestSubResource", text},
                            {"name", text},
                            {"namespace", text},
                            {"operation", text},
                            {"userInfo", object_type("kubernetes.UserInfo")},
                            {"dryRun", TypeKind::boolean},
                            {"options", TypeKind::dyn}});
}

void declare_namespace(cel::Environment& environment) {
  const Type text = TypeKind::string;
  const Type time = TypeKind::timestamp;
  environment.object("kubernetes.NamespaceSpec", Fields{{"finalizers", Type::list(text)}});
  environment.object("kubernetes.NamespaceCondition", Fields{{"status", text},
                                                             {"type", text},
                                                             {"lastTransitionTime", time},
                                                             {"message", text},
                                                             {"reason", text}});
  environment.object(
      "kubernetes.NamespaceStatus",
      Fields{{"conditions", Type::list(object_type("kubernetes.NamespaceCondition"))},
             {"phase", text}});
  environment.object("kubernetes.NamespaceMetadata",
                     Fields{{"name", text},
                            {"generateName", text},
                            {"namespace", text},
                            {"labels", Type::map(text, text)},
                            {"annotations", Type::map(text, text)},
                            {"UID", text},
                            {"creationTimestamp", time},
                            {"deletionGracePeriodSeconds", TypeKind::integer},
                            {"deletionTimestamp", time},
                            {"generation", TypeKind::integer},
                            {"resourceVersion", text},
                            {"finalizers", Type::list(text)}});
  environment.object("kubernetes.Namespace",
                     Fields{{"metadata", object_type("kubernetes.NamespaceMetadata")},
                            {"spec", object_type("kubernetes.NamespaceSpec")},
                            {"status", object_type("kubernetes.NamespaceStatus")}});
}

/// The type that others see of a variable: upstream loses all but the plain ones and containers.
Type seen_type(const Type& type) {
  switch (type.kind()) {
    case TypeKind::any:
    case TypeKind::boolean:
    case TypeKind::bytes:
    case TypeKind::real:
    case TypeKind::duration:
    case TypeKind::integer:
    case TypeKind::null:
    case TypeKind::string:
    case TypeKind::timestamp:
    case TypeKind::uinteger:
      return type;
    case TypeKind::list:
      return Type::list(seen_type(type.parameter(0)));
    case TypeKind::map:
      return Type::map(seen_type(type.parameter(0)), seen_type(type.parameter(1)));
    default:
      return TypeKind::dyn;
  }
}

std::vector<Type> allowed_types(ExpressionRole role) {
  switch (role) {
    case ExpressionRole::match_condition:
    case ExpressionRole::validation:
      return {TypeKind::boolean};
    case ExpressionRole::message:
      return {TypeKind::string};
    case ExpressionRole::annotation:
      return {TypeKind::string, TypeKind::null};
    case ExpressionRole::configuration:
      return {cel::made_object_type()};
    case ExpressionRole::operations:
      return {Type::list(cel::patch_operation_type())};
    case ExpressionRole::variable:
      break;
  }
  return {};
}

/// Why the type does not do, or "".
std::string type_fault(ExpressionRole role, const Type& type) {
  const std::vector<Type> allowed = allowed_types(role);
  if (allowed.empty()) return {};
  std::string names;
  for (const Type& one : allowed) {
    if (type == one) return {};
    append(names, names.empty() ? "" : " ", one.full_name());
  }
  if (allowed.size() > 1) names = cat("one of [", names, "]");
  return cat("must evaluate to ", names, " but got ", type.full_name());
}

}  // namespace

PolicyEnvironment::PolicyEnvironment(Options options)
    : options_(options), environment_(cel::kubernetes_environment()) {
  if (environment_.find_function("serviceAccount") == nullptr) {
    cel::add_authorizer(environment_);
    cel::add_authorizer_selectors(environment_);
  }
  if (options.patches) cel::add_patches(environment_);
  declare_request(environment_);
  declare_namespace(environment_);
  // arrange() follows the order of these.
  const auto known = [&](const TypedSchema* schema) {
    if (schema == nullptr) return Type();
    declare_types(*schema, environment_);
    return schema->type;
  };
  const Type object = known(options.object);
  environment_.variable("object", object);
  environment_.variable("oldObject", object);
  environment_.variable("namespaceObject", object_type("kubernetes.Namespace"));
  environment_.variable("request", object_type("kubernetes.AdmissionRequest"));
  if (options.params) environment_.variable("params", known(options.params_schema));
  if (options.variables) {
    environment_.object(kVariables, {});
    environment_.variable("variables", object_type(kVariables));
  }
  if (options.authorizer) {
    environment_.variable("authorizer", cel::authorizer_type());
    if (options.request_resource)
      environment_.variable("authorizer.requestResource", cel::resource_check_type());
  }
}

std::shared_ptr<const PolicyEnvironment> PolicyEnvironment::shared(bool params, bool authorizer) {
  static const std::shared_ptr<const PolicyEnvironment> kAll[2][2] = {
      {std::make_shared<PolicyEnvironment>(Options{false, false, false}),
       std::make_shared<PolicyEnvironment>(Options{false, false, true})},
      {std::make_shared<PolicyEnvironment>(Options{true, false, false}),
       std::make_shared<PolicyEnvironment>(Options{true, false, true})}};
  return kAll[params ? 1 : 0][authorizer ? 1 : 0];
}

void PolicyEnvironment::add_variable(std::string_view name, const Type& type) {
  variables_[std::string(name)] = seen_type(type);
  environment_.object(kVariables, variables_);
}

std::vector<cel::Value> PolicyEnvironment::arrange(const PolicyValues& values) const {
  std::vector<cel::Value> out{values.object, values.old_object, values.namespace_object,
                              values.request};
  if (options_.params) out.push_back(values.params);
  if (options_.variables) out.push_back(values.variables);
  if (options_.authorizer) {
    out.push_back(values.authorizer);
    if (options_.request_resource) out.push_back(values.request_resource);
  }
  return out;
}

PolicyExpression compile_policy_expression(const PolicyEnvironment& environment,
                                           ExpressionRole role, std::string_view text) {
  PolicyExpression made;
  made.text = text;
  cel::Compilation compiled = environment.cel().compile(text);
  if (compiled.program == nullptr) {
    made.fault = cat("compilation failed: ", cel::format_issues(text, compiled.issues));
    return made;
  }
  made.fault = type_fault(role, compiled.type);
  if (!made.fault.empty()) return made;
  made.program = std::move(compiled.program);
  made.type = compiled.type;
  return made;
}

}  // namespace dibs::api
