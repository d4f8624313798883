#pragma once
// One request on its way through the server.

#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"
#include "net/http.h"
#include "server/auth/user.h"
#include "server/negotiate.h"
#include "server/request_info.h"
#include "server/resource.h"

namespace dibs::server {

enum class FieldValidation : char { ignore, warn, strict };

struct Context {
  net::Request request;
  net::Target target;
  RequestInfo info;
  auth::UserInfo user;
  ResourcePtr resource;  // null for requests that are not about a resource
  ResourceSetPtr resources;
  Answer answer;
  Time now;
  std::vector<std::string> warnings;
  bool by_server = false;  // a write that follows from one that admission policies have judged

  // Options of writes.
  bool dry_run = false;
  FieldValidation validation = FieldValidation::warn;
  std::string field_manager;     // as given, or from the User-Agent
  bool forget_managers = false;  // the body empties metadata.managedFields
  Value sent;                    // the body before it was brought to normal form
  Value as_sent;                 // what rules judge of a new object, where it is not the object

  void warn(std::string text) { warnings.push_back(std::move(text)); }
};

}  // namespace dibs::server
