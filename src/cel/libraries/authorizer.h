#pragma once
// May someone do something: the authorizer of admission policies.
//
//   authorizer.group("apps").resource("deployments").namespace("n").check("create").allowed()
//
// An expression puts a question together step by step; check() asks the host, and the answer is a
// value with allowed(), reason(), errored() and error(). The engine knows neither users nor rules:
// the question goes to a function that the host gave along with the value of `authorizer`.
//
//   add_authorizer(environment);
//   environment.variable("authorizer", authorizer_type());
//   environment.variable("authorizer.requestResource", resource_check_type());
//   values = {authorizer_value(ask), resource_check_value(ask, question)};

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cel/environment.h"

namespace dibs::cel {

/// A question: may the requester (or the service account) do `verb` to this?
struct AuthorizationQuery {
  std::string verb;
  /// For paths that are no resources; empty otherwise.
  std::string path;
  std::string group;
  /// May be empty also where the question is about a resource.
  std::string resource;
  std::string subresource;
  std::string namespace_name;
  std::string name;
  /// As written; whether they parse is the host's to find out.
  std::optional<std::string> field_selector;
  std::optional<std::string> label_selector;
  struct ServiceAccount {
    std::string namespace_name;
    std::string name;
  };
  /// Asked about instead of who makes the request.
  std::optional<ServiceAccount> service_account;

  bool is_resource() const { return path.empty(); }
};

struct AuthorizationDecision {
  bool allowed = false;
  std::string reason;
  /// Empty: the question could be answered.
  std::string error;
};

/// Called during evaluation, on the thread that evaluates.
using Authorize = std::function<AuthorizationDecision(const AuthorizationQuery&)>;

Type authorizer_type();
Type resource_check_type();

/// What one check() costs: a limit of a million leaves two of them.
inline constexpr std::uint64_t kAuthorizationCost = 350'000;
/// What a selector of this many code points costs.
std::uint64_t selector_cost(std::uint64_t length);

/// What `authorizer` stands for. The function lives as long as a value that was made from it.
Value authorizer_value(std::shared_ptr<const Authorize> authorize);
/// What `authorizer.requestResource` stands for: a question about a resource but for its verb.
Value resource_check_value(std::shared_ptr<const Authorize> authorize, AuthorizationQuery query);

/// path, group, serviceAccount, resource, subresource, namespace, name, check, allowed, reason,
/// errored, error.
void add_authorizer(Environment& environment);
/// fieldSelector and labelSelector of a question about a resource.
void add_authorizer_selectors(Environment& environment);

}  // namespace dibs::cel
