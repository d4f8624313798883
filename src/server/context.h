#pragma once
// One request on its way through the server.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "calls/call.h"
#include "json/value.h"
#include "server/auth/user.h"
#include "server/negotiate.h"
#include "server/request_info.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

using calls::Request;
using calls::Response;

/// A write that is prepared but not committed: whoever serves the request commits it, without a
/// thread that waits, and then makes the answer.
struct DeferredWrite {
  store::Op op;
  Value object;  // as it will be, but for its resourceVersion; of a deletion: as it is shown
  /// Of a deletion: the object's bytes, and the version it is shown at; 0: that of the write.
  SharedBytes shown = {};
  store::Revision shown_at = 0;
  Value old;  // null when it is new
  std::function<void()> stored;
  std::function<void()> roll_back;        // it was not committed
  int status = 200;                       // of an answer with the object
  std::function<Response()> answer = {};  // where that is another one
};

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
  std::vector<std::string> warnings;
  bool by_server = false;  // a write that follows from one that admission policies have judged

  // Options of writes.
  bool dry_run = false;
  FieldValidation validation = FieldValidation::warn;
  std::string field_manager;     // as given, or from the User-Agent
  bool forget_managers = false;  // the body empties metadata.managedFields
  Value sent;                    // the body before it was brought to normal form
  Value as_sent;                 // what rules judge of a new object, where it is not the object

  /// Set beside a refusal that holds only until a controller has made what is missing.
  bool try_later = false;
  int tries = 0;
  bool can_defer = false;  // who serves this request can commit for its handler
  bool may_defer = false;  // the handler has nothing to do after its commit but to answer
  std::shared_ptr<DeferredWrite> deferred;

  void warn(std::string text) { warnings.push_back(std::move(text)); }
};

}  // namespace dibs::server
