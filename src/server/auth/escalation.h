#pragma once
// Nobody grants what he does not hold.
//
// A write of a role needs every right in it, whether or not the write changes them, or the verb
// "escalate" on the role; one that lets a role gather others, or that did, needs every right there
// is. A write of a binding needs every right of the role it gives, or the verb "bind" on that role.
// Members of system:masters may do either, and everybody may change what only garbage collection
// reads.

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "server/auth/attributes.h"
#include "server/auth/rbac.h"

namespace dibs::server::auth {

/// Decides what the request's user may do; the whole authorizer, not roles alone.
using Authorize = std::function<Decision(const RequestAttributes&)>;

struct RoleWrite {
  const UserInfo& user;
  /// roles, clusterroles, rolebindings or clusterrolebindings.
  std::string_view resource;
  std::string_view name_space;
  /// Of the URL: "" on create.
  std::string_view name;
  const Value& object;
  /// Null on create.
  const Value* old = nullptr;
};

/// Errors: forbidden, with what is not held; not_found for a binding to a role that is not there.
Result<> check_role_write(const Rbac& rbac, const RoleWrite& write, const Authorize& authorize);

/// 403 `resource.group "name" is forbidden: text`.
Error forbidden_error(std::string_view group, std::string_view resource, std::string_view name,
                      std::string_view text);

}  // namespace dibs::server::auth
