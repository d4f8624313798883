#pragma once
// Who sends a request: client certificate, bearer token, or nobody; then whom he impersonates.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"
#include "server/auth/attributes.h"
#include "server/auth/request_header.h"
#include "server/auth/user.h"

namespace dibs::server {

/// Verifies a bearer token. Errors: unauthorized.
using TokenVerifier = std::function<Result<auth::UserInfo>(std::string_view token)>;
/// Decides whether the attributes are allowed.
using Authorize = std::function<auth::Decision(const auth::RequestAttributes&)>;

/// From a part of this process: its transport says so in place of an address, which nobody outside
/// can.
bool is_inside(const net::Request& request);
/// What a token would say of a part beside its name and groups, from X-Remote-Extra-KEY headers. Of
/// strangers they are never read.
void take_extra(const net::Request& request, auth::UserInfo& user);

class Authenticator {
 public:
  using Allows = std::function<bool(const net::Request&)>;
  /// `anonymous` says whether a request needs no credentials; null: none does.
  explicit Authenticator(std::vector<TokenVerifier> tokens,
                         auth::RequestHeaderOptions front_proxies = {}, Allows anonymous = {})
      : tokens_(std::move(tokens)),
        front_proxies_(std::move(front_proxies)),
        anonymous_(std::move(anonymous)) {}

  /// Errors: unauthorized, for credentials that do not hold. Without any: the anonymous user.
  Result<auth::UserInfo> authenticate(const net::Request& request) const;
  Result<auth::UserInfo> authenticate_token(std::string_view token) const;

 private:
  std::vector<TokenVerifier> tokens_;
  auth::RequestHeaderOptions front_proxies_;
  Allows anonymous_;
};

/// Browsers cannot set headers on a WebSocket: there a token comes behind this, as a sub-protocol.
inline constexpr std::string_view kTokenProtocol = "base64url.bearer.authorization.k8s.io.";

/// The bearer token of a request; "" where it shows none.
std::string token_of(const net::Request& request);

/// The user that Impersonate-* headers ask for, when `user` may. Without such headers: `user`.
Result<auth::UserInfo> impersonate(const net::Request& request, const auth::UserInfo& user,
                                   const Authorize& authorize);

Error unauthorized_error();

}  // namespace dibs::server
