#pragma once
// What the expressions of admission policies and webhooks may refer to.
//
//   object, oldObject    what is written and what was there, or null; of no known type but
//                        where types are checked (type_check.h)
//   namespaceObject      the namespace it lies in, or null
//   request              the request but for the objects
//   params               of a policy with a paramKind; of no known type
//   variables            of a policy that has some, each of the type its expression gives
//   authorizer           questions about what the requester may do; not in messages
//
// Mutations also have the types Object and JSONPatch (cel/libraries/patches.h).
//
// Programs keep pointers into the environment that compiled them, which must outlive them.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/expressions/schema_types.h"
#include "api/kinds/admission/expressions.h"
#include "cel/environment.h"

namespace dibs::api {

/// The values of an evaluation, by name; those that the environment does not declare are left out.
struct PolicyValues {
  cel::Value object;
  cel::Value old_object;
  cel::Value namespace_object;
  cel::Value request;
  cel::Value params;
  cel::Value variables;
  cel::Value authorizer;
  cel::Value request_resource;
};

class PolicyEnvironment {
 public:
  struct Options {
    bool params = false;
    bool variables = false;
    bool authorizer = true;
    bool patches = false;
    bool request_resource = true;  // authorizer.requestResource, where there is an authorizer
    // Types of objects and parameters where they are known; they must outlive the environment.
    const TypedSchema* object = nullptr;
    const TypedSchema* params_schema = nullptr;
  };
  explicit PolicyEnvironment(Options options);
  /// One that is made once and shared. Requires no variables, since those differ by policy.
  static std::shared_ptr<const PolicyEnvironment> shared(bool params, bool authorizer);

  /// Declares variables.<name> for what is compiled from now on.
  void add_variable(std::string_view name, const cel::Type& type);
  /// As programs of this environment want them.
  std::vector<cel::Value> arrange(const PolicyValues& values) const;
  const cel::Environment& cel() const { return environment_; }

 private:
  Options options_;
  cel::Environment environment_;
  std::map<std::string, cel::Type> variables_;
};

struct PolicyExpression {
  std::string text;
  std::shared_ptr<const cel::Program> program;  // null when there is a fault
  std::string fault;
  cel::Type type;
};

/// Compiles the text and checks that its type is one that the role allows.
PolicyExpression compile_policy_expression(const PolicyEnvironment& environment,
                                           ExpressionRole role, std::string_view text);

}  // namespace dibs::api
