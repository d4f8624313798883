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
  /// Whose tokens are believed besides.
  std::vector<std::string> more_issuers = {};
  /// Audiences of the API server itself; the issuer when empty.
  std::vector<std::string> audiences;
  /// The lifetime that kubelets ask for is stretched to a year, with a note of when they should
  /// have renewed it.
  bool extend = true;
  /// 0: whatever is asked for.
  Duration max_life{0};

  std::vector<std::string> api_audiences() const;
  /// Those of the audiences asked for (the API's own when empty) that are the API's own.
  std::vector<std::string> own_audiences(const std::vector<std::string>& wanted) const;
  bool is_issuer(std::string_view name) const;
};

/// An object by resource of the core group, namespace and name. Errors: not_found, as a client
/// would get it.
using TokenLookup = std::function<Result<json::Value>(
    std::string_view resource, std::string_view name_space, std::string_view name)>;

struct PreparedToken {
  json::Value claims;
  /// The TokenRequest to answer with; status.token is to be set.
  json::Value answer;
  std::vector<std::string> warnings = {};
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

/// Who issues tokens that Secrets hold (type kubernetes.io/service-account-token).
inline constexpr std::string_view kLegacyIssuer = "kubernetes/serviceaccount";
/// The same for the claims of such a token: it has no end and no audience of its own, and is good
/// as long as its Secret holds it. `used` is told of the Secret when its token was shown, also
/// where it is not taken any more.
Result<VerifiedToken> verify_legacy_claims(
    const json::Value& claims, std::string_view token, const std::vector<std::string>& audiences,
    const TokenOptions& options, const TokenLookup& lookup,
    const std::function<void(const json::Value& secret)>& used);

/// Length of the part of a bootstrap token that is no secret.
inline constexpr std::size_t kBootstrapTokenId = 6;
/// Whom a bootstrap token ("abcdef.0123456789abcdef") speaks for: system:bootstrap:ID, as its
/// Secret in kube-system says. Errors: unauthorized, without a message.
Result<VerifiedToken> verify_bootstrap_token(std::string_view token, const TokenOptions& options,
                                             const std::vector<std::string>& audiences,
                                             const TokenLookup& lookup, Time now);

/// The status of a TokenReview. A message of the error is told beside "invalid bearer token"; an
/// error without one is a token of nobody here.
json::Value token_review_status(const Result<VerifiedToken>& token);

/// {"username", "uid", "groups", "extra"}
json::Value user_value(const UserInfo& user);

/// Lines of token,user,uid[,"group,group"]. Errors: bad_request, with the line.
Result<std::map<std::string, UserInfo, std::less<>>> parse_static_tokens(std::string_view text);

}  // namespace dibs::server::auth
