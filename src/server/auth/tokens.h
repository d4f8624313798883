#pragma once
// Tokens of service accounts: what is asked for, what goes into them, and who they say one is.
//
// Signing and signatures are of net/jwt.h; here are the claims. A token names its account and may
// be bound to a pod, a secret or a node: it is good only as long as these exist with the same uid.
// Tokens bound to a pod also say on which node it runs, which drivers of devices depend on.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "server/auth/user.h"

namespace dibs::server::auth {

struct TokenOptions {
  std::string issuer;
  /// Audiences of the API server itself; the issuer when empty.
  std::vector<std::string> audiences;
  /// The lifetime that kubelets ask for is stretched to a year, with a note of when they should
  /// have renewed it.
  bool extend = true;

  std::vector<std::string> api_audiences() const {
    return audiences.empty() ? std::vector<std::string>{issuer} : audiences;
  }
};

/// An object by resource of the core group, namespace and name. Errors: not_found, as a client
/// would get it.
using TokenLookup = std::function<Result<json::Value>(
    std::string_view resource, std::string_view name_space, std::string_view name)>;

struct PreparedToken {
  json::Value claims;
  /// The TokenRequest to answer with; status.token is to be set.
  json::Value answer;
};

/// Checks a TokenRequest (in normal form) for an account and makes the claims. `id` becomes the
/// token's own, a uuid. Errors: invalid, bad_request, not_found, conflict.
Result<PreparedToken> prepare_token(const json::Value& account, const json::Value& request,
                                    const TokenOptions& options, const TokenLookup& lookup,
                                    Time now, std::string_view id);

struct VerifiedToken {
  UserInfo user;
  /// Those of the audiences asked for that the token is meant for.
  std::vector<std::string> audiences;
};

/// What claims with a good signature are worth now, for one of the audiences (the API's own when
/// empty). Errors: unauthorized, with a message for a TokenReview.
Result<VerifiedToken> verify_claims(const json::Value& claims,
                                    const std::vector<std::string>& audiences,
                                    const TokenOptions& options, const TokenLookup& lookup,
                                    Time now);

/// The status of a TokenReview. A message of the error is told beside "invalid bearer token"; an
/// error without one is a token of nobody here.
json::Value token_review_status(const Result<VerifiedToken>& token);

/// {"username", "uid", "groups", "extra"}
json::Value user_value(const UserInfo& user);

/// Lines of token,user,uid[,"group,group"]. Errors: bad_request, with the line.
Result<std::map<std::string, UserInfo, std::less<>>> parse_static_tokens(std::string_view text);

}  // namespace dibs::server::auth
