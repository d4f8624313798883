#pragma once
// Who else may say who somebody is: issuers of tokens outside of the cluster (OpenID Connect), as
// an AuthenticationConfiguration of apiserver.config.k8s.io or the --oidc-* flags name them, and
// whether strangers are let in at all.
//
// Here is what a configuration means; keys and signatures are of server/issuer_keys.h.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/expressions/claim_expressions.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "server/auth/user.h"

namespace dibs::server::auth {

struct JwtIssuer {
  struct Mapping {
    std::string claim = {};
    std::string prefix = {};
    std::optional<api::ClaimExpression> expression = {};
    bool is_set() const { return !claim.empty() || expression.has_value(); }
  };
  struct Rule {
    api::ClaimExpression expression;
    std::string message;
  };

  std::string url;
  std::string discovery_url;  // "": by the URL
  std::string ca_pem;         // "": the machine's
  std::vector<std::string> audiences;
  std::vector<std::string> algorithms;
  Mapping username;
  Mapping groups;
  Mapping uid;
  std::vector<std::pair<std::string, api::ClaimExpression>> extra;
  std::map<std::string, std::string> required_claims;
  std::vector<Rule> claim_rules;
  std::vector<Rule> user_rules;

  /// Where its document is.
  std::string discovery() const;
};

struct AnonymousOptions {
  bool enabled = true;
  /// Paths for which strangers are let in; none: for all.
  std::vector<std::string> paths = {};
  bool allows(std::string_view target) const;
};

struct AuthenticationConfiguration {
  std::vector<std::shared_ptr<const JwtIssuer>> issuers = {};
  /// Not set: the configuration has nothing to say of it.
  std::optional<AnonymousOptions> anonymous = {};
};

/// `own_issuers` are those of service accounts, which nobody else may be. Errors: invalid, in the
/// words of the API.
Result<AuthenticationConfiguration> parse_authentication_configuration(
    std::string_view yaml, const std::vector<std::string>& own_issuers);

/// The --oidc-* flags.
struct OidcFlags {
  std::string issuer_url;
  std::string client_id;
  std::string ca_pem;
  std::string username_claim = "sub";
  std::string username_prefix;
  std::string groups_claim;
  std::string groups_prefix;
  std::vector<std::string> required_claims;  // "key=value"
  std::vector<std::string> signing_algs = {"RS256"};
};
Result<AuthenticationConfiguration> configuration_of_flags(
    const OidcFlags& flags, const std::vector<std::string>& own_issuers);

/// Whom claims with a good signature of the issuer speak of now. Errors: unauthorized, with a
/// reason for the log and for TokenReviews.
Result<UserInfo> user_of_claims(const JwtIssuer& issuer, const json::Value& claims, Time now);

}  // namespace dibs::server::auth
