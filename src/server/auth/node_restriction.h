#pragma once
// What a node may write, beyond what it is authorized to: only about itself and its own pods.
//
// Pure functions of the write; what they need to know of other objects they ask for through
// lookups.

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/value.h"
#include "server/auth/attributes.h"
#include "server/auth/escalation.h"

namespace dibs::server::auth {

enum class NodeOperation : char { create, update, remove, connect };

struct NodeWrite {
  const UserInfo& user;
  NodeOperation operation;
  std::string_view group;
  std::string_view resource;
  std::string_view subresource;
  std::string_view name_space;
  std::string_view name;
  /// The new object, or the body of a sub-resource (Eviction, TokenRequest); null when removing.
  const Value* object = nullptr;
  /// Null when creating.
  const Value* old = nullptr;
};

struct NodeLookups {
  /// An object by resource (of any group), namespace and name. Errors: not_found, as a client would
  /// get it.
  std::function<Result<Value>(std::string_view resource, std::string_view name_space,
                              std::string_view name)>
      get;
  Authorize authorize;
};

/// Errors: forbidden; not_found for a pod or node that the write depends on. Users that are no
/// nodes pass.
Result<> check_node_write(const NodeWrite& write, const NodeLookups& lookups);

}  // namespace dibs::server::auth
