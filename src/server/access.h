#pragma once
// Authentication and authorization of this server, over the objects they depend on.
//
// Keeps roles, bindings and what nodes may see in memory, brought up to date by watching the store:
// a decision never reads the store. Thread-safe.

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "runtime/runtime.h"
#include "server/auth/node_restriction.h"
#include "server/authentication.h"
#include "server/context.h"
#include "server/objects.h"
#include "server/options.h"
#include "server/resource.h"

namespace dibs::server {

class Access {
 public:
  /// Errors: of options (a token file or key that cannot be read).
  static Result<std::unique_ptr<Access>> open(runtime::Runtime& runtime, Objects& objects,
                                              ResourceTable& resources, const Options& options);
  ~Access();

  /// Reads the roles, bindings and pods there are and follows their changes.
  Result<> load();
  void stop();
  /// Decides from now on by all that is in the store.
  void catch_up();

  /// Who sends the request. Errors: unauthorized.
  Result<auth::UserInfo> authenticate(const net::Request& request);
  /// True where the request's token may be good in a moment, with keys that its issuer is being
  /// asked for: then `done` is called, on the executor, and it may be authenticated again.
  bool await_keys(const net::Request& request, std::function<void()> done);
  /// Who may come in by which tokens from now on.
  void configure(const auth::AuthenticationConfiguration& configuration);
  /// Who `sender` wants to be: himself, unless he says otherwise and may. Errors: forbidden.
  Result<auth::UserInfo> impersonate(const net::Request& request, const auth::UserInfo& sender);
  /// Errors: forbidden, in the words of the API.
  Result<> authorize_request(const Context& context);
  /// The same for a request that comes to a creation, whatever its method says.
  Result<> authorize_creation(const Context& context);
  /// The same for what the request comes to, whatever its path says.
  Result<> authorize_for(const Context& context, const auth::RequestAttributes& what);
  auth::Decision authorize(const auth::RequestAttributes& attributes);
  /// How often a part of this process was refused what it asked for: never, unless its role was
  /// changed or it asks for too much. Each time is in the log.
  std::uint64_t own_refusals() const;

  /// The status of a TokenReview, for one of the audiences (none: this server's own).
  Value review_token(std::string_view token, const std::vector<std::string>& audiences);
  /// The answer to a TokenRequest for the service account.
  Result<Value> issue_token(Context& context, const Value& account, const Value& token_request);
  /// SelfSubjectRulesReview's status.
  Value rules_for(const auth::UserInfo& user, std::string_view name_space);
  json::Value jwks();
  /// Of the keys there, each once.
  std::vector<std::string> jwt_algorithms();

  /// Errors: forbidden, when the write of a role or binding would grant what the user does not
  /// hold.
  Result<> check_escalation(const Write& write);
  /// Errors: forbidden, when a node writes what is not its own.
  Result<> check_node(const Write& write);
  /// The same for a write that does not pass admission; `object` is the body of the sub-resource.
  Result<> check_node_write(const auth::UserInfo& user, auth::NodeOperation operation,
                            const Resource& resource, std::string_view subresource,
                            std::string_view name_space, std::string_view name, const Value* object,
                            const Value* old);

 private:
  Result<> authorize_as(const Context& context, std::string_view verb);

  struct Parts;
  explicit Access(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace dibs::server
