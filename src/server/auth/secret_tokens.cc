// Tokens that are good because a Secret holds them: those of service accounts without an end, and
// those by which machines join a cluster.
#include <algorithm>

#include "base/strings.h"
#include "server/auth/rbac.h"
#include "server/auth/rule.h"
#include "server/auth/tokens.h"

namespace dibs::server::auth {
namespace {

using json::Value;

constexpr std::string_view kInvalidSince = "kubernetes.io/legacy-token-invalid-since";
constexpr std::string_view kBootstrapType = "bootstrap.kubernetes.io/token";
constexpr std::string_view kBootstrapGroup = "system:bootstrappers";
constexpr std::size_t kBootstrapTokenSecret = 16;

Error unauthorized(std::string message = {}) { return {Code::unauthorized, std::move(message)}; }

std::string data_of(const Value& secret, std::string_view key) {
  std::string bytes;
  if (!base64_decode(secret["data"][key].as_string(), bytes)) bytes.clear();
  return bytes;
}

/// Takes as long for a wrong guess as for a right one.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

bool is_leaving(const Value& object) { return object["metadata"].contains("deletionTimestamp"); }

/// What tokens that say nothing of audiences are for.
Result<std::vector<std::string>> own_audiences(const std::vector<std::string>& wanted,
                                               const TokenOptions& options) {
  std::vector<std::string> both = options.own_audiences(wanted);
  if (!both.empty()) return both;
  return unauthorized(cat("token audiences ", list_text(options.api_audiences()),
                          " is invalid for the target audiences ", list_text(wanted)));
}

struct LegacyClaims {
  std::string_view name_space;
  std::string_view secret;
  std::string_view account;
  std::string_view uid;
};

/// Errors: unauthorized, with what is missing.
Result<LegacyClaims> read_legacy(const Value& claims) {
  const auto of = [&](std::string_view name) {
    return claims[cat("kubernetes.io/serviceaccount/", name)].as_string();
  };
  const LegacyClaims out{of("namespace"), of("secret.name"), of("service-account.name"),
                         of("service-account.uid")};
  const std::string_view subject = claims["sub"].as_string();
  if (subject.empty()) return unauthorized("sub claim is missing");
  if (out.name_space.empty()) return unauthorized("namespace claim is missing");
  if (out.secret.empty()) return unauthorized("secretName claim is missing");
  if (out.account.empty()) return unauthorized("serviceAccountName claim is missing");
  if (out.uid.empty()) return unauthorized("serviceAccountUID claim is missing");
  if (subject != account_user_name(out.name_space, out.account))
    return unauthorized("sub claim is invalid");
  return out;
}

/// "system:bootstrappers:a-z0-9:-", ending in a letter or digit.
bool is_bootstrap_group(std::string_view group) {
  constexpr std::size_t kLongest = 256;
  if (!group.starts_with(kBootstrapGroup)) return false;
  std::string_view rest = group.substr(kBootstrapGroup.size());
  if (rest.size() < 2 || rest.front() != ':') return false;
  rest.remove_prefix(1);
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return rest.size() <= kLongest && is_plain(rest.back()) &&
         std::all_of(rest.begin(), rest.end(),
                     [&](char c) { return is_plain(c) || c == ':' || c == '-'; });
}

bool is_token_part(std::string_view text, std::size_t size) {
  return text.size() == size && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

bool has_expired(const Value& secret, Time now) {
  const std::string text = data_of(secret, "expiration");
  if (text.empty()) return false;
  const auto end = parse_rfc3339(text);
  return !end.ok() || *end <= now;
}

}  // namespace

Result<VerifiedToken> verify_legacy_claims(const Value& claims, std::string_view token,
                                           const std::vector<std::string>& audiences,
                                           const TokenOptions& options, const TokenLookup& lookup,
                                           const std::function<void(const Value& secret)>& used) {
  VerifiedToken verified;
  DIBS_TRY(verified.audiences, own_audiences(audiences, options));
  DIBS_TRY(const LegacyClaims is, read_legacy(claims));
  const auto secret = lookup("secrets", is.name_space, is.secret);
  if (!secret.ok() || is_leaving(*secret)) return unauthorized("Token has been invalidated");
  if (!same_secret(data_of(*secret, "token"), token))
    return unauthorized("Token does not match server's copy");
  const auto account = lookup("serviceaccounts", is.name_space, is.account);
  if (!account.ok()) return unauthorized(account.error().message());
  const std::string name = cat(is.name_space, "/", is.account);
  if (is_leaving(*account)) return unauthorized(cat("ServiceAccount ", name, " has been deleted"));
  const std::string_view uid = (*account)["metadata"]["uid"].as_string();
  if (uid != is.uid) {
    return unauthorized(cat("ServiceAccount UID (", uid, ") does not match claim (", is.uid, ")"));
  }
  used(*secret);
  if (!(*secret)["metadata"]["labels"][kInvalidSince].as_string().empty()) {
    return unauthorized(
        cat("the token in secret ", is.name_space, "/", is.secret, " for service account ", name,
            " has been marked invalid. Use tokens from the TokenRequest API or "
            "manually created secret-based tokens, or remove the '",
            kInvalidSince, "' label from the secret to temporarily allow use of this token"));
  }
  verified.user.name = account_user_name(is.name_space, is.account);
  verified.user.uid = is.uid;
  verified.user.groups = {"system:serviceaccounts", cat("system:serviceaccounts:", is.name_space)};
  return verified;
}

Result<VerifiedToken> verify_bootstrap_token(std::string_view token, const TokenOptions& options,
                                             const std::vector<std::string>& audiences,
                                             const TokenLookup& lookup, Time now) {
  const std::size_t dot = token.find('.');
  if (dot == std::string_view::npos) return unauthorized();
  const std::string_view id = token.substr(0, dot);
  const std::string_view given = token.substr(dot + 1);
  if (!is_token_part(id, kBootstrapTokenId) || !is_token_part(given, kBootstrapTokenSecret))
    return unauthorized();
  VerifiedToken verified;
  DIBS_TRY(verified.audiences, own_audiences(audiences, options));
  const auto secret = lookup("secrets", "kube-system", cat("bootstrap-token-", id));
  if (!secret.ok() || is_leaving(*secret) || (*secret)["type"].as_string() != kBootstrapType ||
      !same_secret(data_of(*secret, "token-secret"), given) || data_of(*secret, "token-id") != id ||
      has_expired(*secret, now) || data_of(*secret, "usage-bootstrap-authentication") != "true")
    return unauthorized();
  UserInfo& user = verified.user;
  user.name = cat("system:bootstrap:", id);
  user.groups = {std::string(kBootstrapGroup)};
  const std::string more = data_of(*secret, "auth-extra-groups");
  std::vector<std::string> groups;
  for (const std::string_view group : split(more, ',')) {
    if (more.empty()) break;
    if (!is_bootstrap_group(group)) return unauthorized();
    groups.emplace_back(group);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  user.groups.insert(user.groups.end(), groups.begin(), groups.end());
  return verified;
}

}  // namespace dibs::server::auth
