#pragma once
// All authorizers as one: system:masters may everything, then nodes by what they need, then roles.

#include <string_view>

#include "json/value.h"
#include "server/auth/attributes.h"
#include "server/auth/node_authorizer.h"
#include "server/auth/rbac.h"

namespace dibs::server::auth {

/// Borrows its parts; thread-safe as they are.
class Authorizer {
 public:
  /// `names_judges`: false for old releases, which did not.
  Authorizer(const NodeAuthorizer& nodes, const Rbac& rbac, bool names_judges = true)
      : nodes_(nodes), rbac_(rbac), names_judges_(names_judges) {}

  /// The reason of a refusal says who had what to say: "node: no relationship found …".
  Decision authorize(const RequestAttributes& attributes) const;

  /// The status of a SelfSubjectRulesReview: what the user may do in a namespace.
  Value rules_for(const UserInfo& user, std::string_view name_space) const;

 private:
  const NodeAuthorizer& nodes_;
  const Rbac& rbac_;
  const bool names_judges_;
};

/// What is refused, in the words of the API: `User "u" cannot get resource "pods/log" in API group
/// "" in the namespace "n"`, or `User "u" cannot get path "/x"`; with ": reason" behind it when
/// there is one.
std::string refusal_text(const RequestAttributes& attributes, std::string_view reason);
/// 403 with that text.
Error refusal_error(const RequestAttributes& attributes, std::string_view reason);

}  // namespace dibs::server::auth
