#pragma once
// The first roles and bindings as text; bootstrap_roles.cc reads it.
//
// One role or binding a line, the rules of a role indented below it:
//
//   cluster-role NAME [to-admin|edit|view]… [from-admin|edit|view]…
//     VERBS GROUPS RESOURCES [named NAMES]
//     VERBS url URLS
//   cluster-binding NAME ROLE [user:NAME | group:NAME | account:NAMESPACE/NAME]…
//   role NAMESPACE/NAME
//   binding NAMESPACE/NAME role:NAME|cluster-role:NAME SUBJECT…
//
// "to-x" labels a role to be a part of the aggregated role x, "from-x" makes it the one that
// gathers them. A binding to "=" is to the role of its own name. The core group is "core"; read,
// write and manage stand for the usual lists of verbs. "classic:" or "structured:" before a rule is
// the model of resource.k8s.io that it is for, "groups:" one for servers with pod groups,
// "composites:" for those with groups of such. A line indented by six goes on with the one before.

#include <string_view>

namespace dibs::server::auth {

extern const std::string_view kClusterRoles;
extern const std::string_view kControllerRoles;
extern const std::string_view kClusterBindings;
extern const std::string_view kNamespaced;

}  // namespace dibs::server::auth
