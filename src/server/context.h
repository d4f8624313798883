#pragma once
// One request on its way through the server.

#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "calls/call.h"
#include "json/share.h"
#include "json/value.h"
#include "server/auth/user.h"
#include "server/negotiate.h"
#include "server/request_info.h"
#include "server/resource.h"

namespace dibs::server {

using calls::Request;
using calls::Response;

class AuditEntry;

enum class FieldValidation : char { ignore, warn, strict };

struct Context {
  Request request;
  net::Target target;
  RequestInfo info;
  auth::UserInfo user;
  ResourcePtr resource;  // null for requests that are not about a resource
  ResourceSetPtr resources;
  Answer answer;
  Time now;
  /// What is in memory is at least as new as the request (Store::sync). Says nothing where the
  /// store has no other writers.
  bool fresh = false;
  json::Pool* trees = nullptr;  // the server's
  std::vector<std::string> warnings;
  std::shared_ptr<AuditEntry> audit;  // null: nothing is told of it (audit.h)

  // Options of writes.
  bool dry_run = false;
  FieldValidation validation = FieldValidation::warn;
  std::string field_manager;  // as given, or from the User-Agent

  /// Held until it is answered (fairness.h).
  std::shared_ptr<void> seat;

  void warn(std::string text) { warnings.push_back(std::move(text)); }
};

}  // namespace dibs::server
