#pragma once
// What a request wants to do, as authorizers see it.

#include <string>

#include "server/auth/user.h"

namespace dibs::server::auth {

struct RequestAttributes {
  UserInfo user;
  std::string verb;
  bool is_resource = true;
  // Of a resource request.
  std::string group;
  std::string version;
  std::string resource;
  std::string subresource;
  std::string name_space;
  std::string name;
  std::string label_selector;
  std::string field_selector;
  // Of any other.
  std::string path;
};

struct Decision {
  bool allowed = false;
  std::string reason;  // may be empty
};

}  // namespace dibs::server::auth
