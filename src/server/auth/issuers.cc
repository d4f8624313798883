#include "server/auth/issuers.h"

#include <algorithm>
#include <set>

#include "api/kinds/names.h"
#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "api/schema/field_error.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "net/jwt.h"
#include "net/x509.h"
#include "server/auth/rule.h"
#include "server/auth/tokens.h"

namespace dibs::server::auth {
namespace {

using api::ClaimExpression;
using api::ExpressionOver;
using api::FieldErrors;
using api::Path;
using json::Value;

constexpr std::size_t kMostIssuers = 64;
constexpr std::int64_t kNotBeforeLeeway = 300;  // clocks of issuers

std::string trimmed_slashes(std::string_view url) {
  while (url.ends_with('/')) url.remove_suffix(1);
  return std::string(url);
}

/// Reads one JWTAuthenticator.
class Reader {
 public:
  Reader(FieldErrors& errors, const std::vector<std::string>& own_issuers)
      : errors_(errors), own_issuers_(own_issuers) {}

  JwtIssuer read(const Value& source, const Path& path) {
    JwtIssuer out;
    const Path issuer = path.child("issuer");
    read_issuer(source["issuer"], issuer, out);
    read_claim_rules(source["claimValidationRules"], path.child("claimValidationRules"), out);
    const Path mappings = path.child("claimMappings");
    read_mappings(source["claimMappings"], mappings, out);
    read_user_rules(source["userValidationRules"], path.child("userValidationRules"), out);
    out.algorithms = net::jwk_algorithms();
    return out;
  }

 private:
  void check_url(const std::string& url, const Path& path, bool is_issuer) {
    if (is_issuer &&
        std::find(own_issuers_.begin(), own_issuers_.end(), url) != own_issuers_.end()) {
      errors_.invalid(
          path, url,
          cat("URL must not overlap with disallowed issuers: ", list_text(own_issuers_)));
    }
    const auto scheme = url.find("://");
    if (scheme == std::string::npos || to_lower(url.substr(0, scheme)) != "https") {
      errors_.invalid(path, url, "URL scheme must be https");
      return;
    }
    const std::string_view rest = std::string_view(url).substr(scheme + 3);
    if (rest.substr(0, rest.find('/')).find('@') != std::string_view::npos) {
      errors_.invalid(path, url, "URL must not contain a username or password");
    }
    if (rest.find('?') != std::string_view::npos) {
      errors_.invalid(path, url, "URL must not contain a query");
    }
    if (rest.find('#') != std::string_view::npos) {
      errors_.invalid(path, url, "URL must not contain a fragment");
    }
  }

  void read_issuer(const Value& source, const Path& path, JwtIssuer& out) {
    out.url = source["url"].str();
    const Path url = path.child("url");
    if (out.url.empty()) {
      errors_.required(url);
    } else {
      check_url(out.url, url, true);
    }
    out.discovery_url = source["discoveryURL"].str();
    if (!out.discovery_url.empty()) {
      const Path discovery = path.child("discoveryURL");
      if (!out.url.empty() && trimmed_slashes(out.url) == trimmed_slashes(out.discovery_url)) {
        errors_.invalid(discovery, out.discovery_url, "discoveryURL must be different from URL");
      }
      check_url(out.discovery_url, discovery, false);
    }
    read_audiences(source, path, out);
    out.ca_pem = source["certificateAuthority"].str();
    if (!out.ca_pem.empty() && net::split_certificates(out.ca_pem).empty()) {
      errors_.invalid(path.child("certificateAuthority"), "<omitted>",
                      "data does not contain any valid RSA or ECDSA certificates");
    }
    if (!source["egressSelectorType"].as_string().empty()) {
      errors_.invalid(
          path.child("egressSelectorType"), source["egressSelectorType"],
          "there is no egress selector here: issuers are dialled from the server itself");
    }
  }

  void read_audiences(const Value& source, const Path& path, JwtIssuer& out) {
    const Path audiences = path.child("audiences");
    const Path policy_path = path.child("audienceMatchPolicy");
    const std::string_view policy = source["audienceMatchPolicy"].as_string();
    for (std::size_t i = 0; i < source["audiences"].size(); ++i) {
      const Value& one = source["audiences"][i];
      if (one.as_string().empty()) errors_.required(audiences.index(i));
      if (std::find(out.audiences.begin(), out.audiences.end(), one.as_string()) !=
          out.audiences.end()) {
        errors_.duplicate(audiences.index(i), one);
      }
      out.audiences.push_back(one.str());
    }
    if (out.audiences.empty()) {
      errors_.required(audiences, cat("at least one ", audiences.str(), " is required"));
      return;
    }
    if (policy == "MatchAny") return;
    if (out.audiences.size() > 1) {
      errors_.invalid(policy_path, policy,
                      "audienceMatchPolicy must be MatchAny for multiple audiences");
    } else if (!policy.empty()) {
      errors_.invalid(policy_path, policy,
                      "audienceMatchPolicy must be empty or MatchAny for single audience");
    }
  }

  std::optional<ClaimExpression> compile(ExpressionOver over, const Value& text, bool judges,
                                         const Path& path) {
    auto made = ClaimExpression::compile(over, text.as_string(), judges);
    if (made.ok()) return std::move(made).value();
    errors_.invalid(path, text, made.error().message());
    return std::nullopt;
  }

  void read_claim_rules(const Value& source, const Path& path, JwtIssuer& out) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < source.size(); ++i) {
      const Value& rule = source[i];
      const Path at = path.index(i);
      const bool claim = !rule["claim"].as_string().empty();
      const bool expression = !rule["expression"].as_string().empty();
      if (claim && expression) {
        errors_.invalid(at, rule["claim"], "claim and expression can't both be set");
      } else if (claim) {
        if (!rule["message"].as_string().empty()) {
          errors_.invalid(at.child("message"), rule["message"],
                          "may not be specified when claim is set");
        }
        if (!out.required_claims.emplace(rule["claim"].str(), rule["requiredValue"].str()).second) {
          errors_.duplicate(at.child("claim"), rule["claim"]);
        }
      } else if (expression) {
        if (!rule["requiredValue"].as_string().empty()) {
          errors_.invalid(at.child("requiredValue"), rule["requiredValue"],
                          "may not be specified when expression is set");
        }
        if (!seen.insert(rule["expression"].str()).second) {
          errors_.duplicate(at.child("expression"), rule["expression"]);
          continue;
        }
        if (auto made =
                compile(ExpressionOver::claims, rule["expression"], true, at.child("expression"))) {
          verifies_email_ = verifies_email_ || made->reads("email_verified");
          out.claim_rules.push_back({*std::move(made), rule["message"].str()});
        }
      } else {
        errors_.required(at, "claim or expression is required");
      }
    }
  }

  void read_mapping(const Value& source, const Path& path, bool prefixed, bool required,
                    JwtIssuer::Mapping& out) {
    out.claim = source["claim"].str();
    out.prefix = source["prefix"].str();
    const bool expression = !source["expression"].as_string().empty();
    if (expression && !out.claim.empty()) {
      errors_.invalid(path, "", "claim and expression can't both be set");
    } else if (expression) {
      if (prefixed && !source["prefix"].is_null()) {
        errors_.invalid(path.child("prefix"), source["prefix"],
                        "may not be specified when expression is set");
      }
      out.expression =
          compile(ExpressionOver::claims, source["expression"], false, path.child("expression"));
    } else if (!out.claim.empty()) {
      if (prefixed && source["prefix"].is_null()) {
        errors_.required(
            path.child("prefix"),
            "prefix is required when claim is set. It can be set to an empty string to "
            "disable prefixing");
      }
    } else if (required) {
      errors_.required(path, "claim or expression is required");
    }
  }

  void read_mappings(const Value& source, const Path& path, JwtIssuer& out) {
    read_mapping(source["username"], path.child("username"), true, true, out.username);
    read_mapping(source["groups"], path.child("groups"), true, false, out.groups);
    read_mapping(source["uid"], path.child("uid"), false, false, out.uid);
    std::set<std::string> seen;
    const Path extra = path.child("extra");
    for (std::size_t i = 0; i < source["extra"].size(); ++i) {
      const Value& mapping = source["extra"][i];
      const Path at = extra.index(i);
      const Path key_path = at.child("key");
      const std::string key = mapping["key"].str();
      if (key.empty()) {
        errors_.required(key_path);
      } else {
        for (const std::string& fault : api::is_domain_prefixed_path(key)) {
          errors_.invalid(key_path, key, fault);
        }
      }
      if (key != to_lower(key)) errors_.invalid(key_path, key, "must be lowercase");
      const std::string domain = key.substr(0, key.find('/'));
      for (const std::string_view reserved : {"kubernetes.io", "k8s.io"}) {
        if (domain == reserved || domain.ends_with(cat(".", reserved))) {
          errors_.invalid(
              key_path, key,
              "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
        }
      }
      if (!seen.insert(key).second) {
        errors_.duplicate(key_path, key);
        continue;
      }
      if (mapping["valueExpression"].as_string().empty()) {
        errors_.required(at.child("valueExpression"));
        continue;
      }
      if (auto made = compile(ExpressionOver::claims, mapping["valueExpression"], false,
                              at.child("valueExpression"))) {
        verifies_email_ = verifies_email_ || made->reads("email_verified");
        out.extra.emplace_back(key, *std::move(made));
      }
    }
    const auto& username = out.username.expression;
    if (username && username->reads("email") && !username->reads("email_verified") &&
        !verifies_email_) {
      errors_.invalid(
          path.child("username").child("expression"), username->text(),
          "claims.email_verified must be used in claimMappings.username.expression or "
          "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression "
          "when claims.email is used in claimMappings.username.expression");
    }
  }

  void read_user_rules(const Value& source, const Path& path, JwtIssuer& out) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < source.size(); ++i) {
      const Value& text = source[i]["expression"];
      const Path at = path.index(i);
      const Path expression = at.child("expression");
      if (text.as_string().empty()) {
        errors_.required(expression);
      } else if (!seen.insert(text.str()).second) {
        errors_.duplicate(expression, text);
      } else if (auto made = compile(ExpressionOver::user, text, true, expression)) {
        out.user_rules.push_back({*std::move(made), source[i]["message"].str()});
      }
    }
  }

  FieldErrors& errors_;
  const std::vector<std::string>& own_issuers_;
  bool verifies_email_ = false;
};

Error refused(std::string message) { return {Code::unauthorized, std::move(message)}; }

/// The faults on one line, as an aggregate of errors is told.
Error in_one(const FieldErrors& errors) {
  std::vector<std::string> texts;
  for (const auto& one : errors.errors()) texts.push_back(cat(one.field, ": ", one.text));
  return Error::invalid(texts.size() == 1 ? texts[0] : cat("[", join(texts, ", "), "]"));
}

Result<AuthenticationConfiguration> read_configuration(const Value& source,
                                                       const std::vector<std::string>& own) {
  AuthenticationConfiguration out;
  FieldErrors errors;
  const Path root("jwt");
  const Value& list = source["jwt"];
  if (list.size() > kMostIssuers) {
    errors.too_many(root, list.size(), kMostIssuers);
    return in_one(errors);
  }
  std::set<std::string> urls;
  std::set<std::string> discoveries;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path at = root.index(i);
    auto issuer = std::make_shared<JwtIssuer>(Reader(errors, own).read(list[i], at));
    const Path place = at.child("issuer");
    if (!urls.insert(issuer->url).second) errors.duplicate(place.child("url"), issuer->url);
    if (!issuer->discovery_url.empty() && !discoveries.insert(issuer->discovery_url).second) {
      errors.duplicate(place.child("discoveryURL"), issuer->discovery_url);
    }
    out.issuers.push_back(std::move(issuer));
  }
  if (const Value& anonymous = source["anonymous"]; anonymous.is_object()) {
    AnonymousOptions& made = out.anonymous.emplace();
    made.enabled = anonymous["enabled"].as_bool();
    for (const Value& one : anonymous["conditions"].items())
      made.paths.push_back(one["path"].str());
    if (!made.enabled && !made.paths.empty()) {
      const Path above("anonymous");
      errors.invalid(above.child("conditions"), anonymous["conditions"],
                     "enabled should be set to true when conditions are defined");
    }
  }
  if (!errors.empty()) return in_one(errors);
  return out;
}

Result<std::string> text_claim(const Value& claims, std::string_view name) {
  if (!claims.contains(name)) return Error::invalid("claim not present");
  if (!claims[name].is_string()) return Error::invalid("must be a string");
  return claims[name].str();
}

Result<std::string> username_of(const JwtIssuer& issuer, const Value& claims) {
  if (issuer.username.expression) {
    auto made = issuer.username.expression->string(claims);
    if (!made.ok()) {
      return refused(
          cat("oidc: error evaluating username claim expression: ", made.error().message()));
    }
    if (made->empty()) return refused("oidc: empty username via CEL expression is not allowed");
    return made;
  }
  const std::string& claim = issuer.username.claim;
  auto name = text_claim(claims, claim);
  if (!name.ok()) {
    return refused(
        cat("oidc: parse username claims ", quoted(claim), ": ", name.error().message()));
  }
  if (claim == "email" && claims.contains("email_verified")) {
    if (!claims["email_verified"].is_boolean()) {
      return refused("oidc: parse 'email_verified' claim: must be a boolean");
    }
    if (!claims["email_verified"].as_bool()) return refused("oidc: email not verified");
  }
  return issuer.username.prefix + *name;
}

Result<std::vector<std::string>> groups_of(const JwtIssuer& issuer, const Value& claims) {
  std::vector<std::string> out;
  if (issuer.groups.expression) {
    auto made = issuer.groups.expression->strings(claims);
    if (!made.ok()) {
      return refused(
          cat("oidc: error evaluating group claim expression: ", made.error().message()));
    }
    return made;
  }
  if (issuer.groups.claim.empty() || !claims.contains(issuer.groups.claim)) return out;
  const Value& groups = claims[issuer.groups.claim];
  if (groups.is_null()) return out;  // which issuers send for nobody's groups
  if (groups.is_string()) return std::vector{issuer.groups.prefix + groups.str()};
  const Error wrong = refused(cat("oidc: parse groups claim ", quoted(issuer.groups.claim),
                                  ": must be a string or a list of strings"));
  if (!groups.is_array()) return wrong;
  for (const Value& one : groups.items()) {
    if (!one.is_string()) return wrong;
    out.push_back(issuer.groups.prefix + one.str());
  }
  return out;
}

Result<> check_rules(const std::vector<JwtIssuer::Rule>& rules, const Value& value,
                     std::string_view what) {
  for (const JwtIssuer::Rule& rule : rules) {
    auto good = rule.expression.judge(value);
    if (!good.ok())
      return refused(cat("oidc: error evaluating ", what, ": ", good.error().message()));
    if (!*good) {
      return refused(cat("oidc: error evaluating ", what, ": validation expression '",
                         rule.expression.text(), "' failed: ", rule.message));
    }
  }
  return success();
}

/// The user as rules see him: all fields are there, also those that an answer leaves out, since a
/// rule that asks for what is not there fails.
Value rule_value(const UserInfo& user) {
  Value value = user_value(user);
  for (const char* field : {"username", "uid"}) {
    if (!value.contains(field)) value.set(field, "");
  }
  if (!value.contains("groups")) value.set("groups", Value::array());
  if (!value.contains("extra")) value.set("extra", Value::object());
  return value;
}

/// What the token says of itself: for whom and for how long it is.
Result<> check_token(const JwtIssuer& issuer, const Value& claims, Time now) {
  if (claims["iss"].as_string() != issuer.url) return refused("oidc: verify token: other issuer");
  std::vector<std::string> meant;
  if (claims["aud"].is_string()) meant.push_back(claims["aud"].str());
  for (const Value& one : claims["aud"].items()) meant.push_back(one.str());
  const bool ours = std::any_of(meant.begin(), meant.end(), [&](const std::string& one) {
    return std::find(issuer.audiences.begin(), issuer.audiences.end(), one) !=
           issuer.audiences.end();
  });
  if (!ours) {
    std::vector<std::string> shown;
    for (const std::string& one : meant) shown.push_back(quoted(one));
    if (issuer.audiences.size() == 1) {
      return refused(cat("oidc: verify token: oidc: expected audience ",
                         quoted(issuer.audiences[0]), " got [", join(shown, " "), "]"));
    }
    std::vector<std::string> expected;
    for (const std::string& one : issuer.audiences) expected.push_back(quoted(one));
    return refused(cat("oidc: verify token: oidc: expected audience in [", join(expected, " "),
                       "] got [", join(shown, " "), "]"));
  }
  if (!claims["exp"].is_number() ||
      claims["exp"].as_double() < static_cast<double>(now.seconds())) {
    return refused("oidc: verify token: oidc: token is expired");
  }
  if (claims["nbf"].is_number() &&
      claims["nbf"].as_double() > static_cast<double>(now.seconds() + kNotBeforeLeeway)) {
    return refused("oidc: verify token: oidc: current time is before the nbf (not before) time");
  }
  return success();
}

}  // namespace

std::string JwtIssuer::discovery() const {
  if (!discovery_url.empty()) return discovery_url;
  return cat(url.ends_with('/') ? url.substr(0, url.size() - 1) : url,
             "/.well-known/openid-configuration");
}

bool AnonymousOptions::allows(std::string_view target) const {
  if (!enabled || paths.empty()) return enabled;
  const std::string_view path = target.substr(0, target.find('?'));
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

Result<AuthenticationConfiguration> parse_authentication_configuration(
    std::string_view yaml, const std::vector<std::string>& own_issuers) {
  if (trim(yaml).empty()) return Error::invalid("empty config data");
  std::vector<std::string> strict;
  DIBS_TRY(const Value source, json::parse_yaml(yaml, &strict));
  const std::string_view version = source["apiVersion"].as_string();
  if (source["kind"].as_string() != "AuthenticationConfiguration" ||
      (version != "apiserver.config.k8s.io/v1" && version != "apiserver.config.k8s.io/v1beta1" &&
       version != "apiserver.config.k8s.io/v1alpha1")) {
    return Error::invalid(
        cat("no kind ", quoted(source["kind"].as_string()), " is registered for version ",
            quoted(version),
            ": must be an AuthenticationConfiguration of apiserver.config.k8s.io/v1 or v1beta1"));
  }
  DIBS_TRY(const Value made,
           api::decode(source, *api::builtin_type("apiserver/v1.AuthenticationConfiguration"),
                       api::Strictness::strict, strict));
  return read_configuration(made, own_issuers);
}

Result<AuthenticationConfiguration> configuration_of_flags(
    const OidcFlags& flags, const std::vector<std::string>& own_issuers) {
  Value issuer = Value::object({{"url", flags.issuer_url},
                                {"audiences", Value::array({flags.client_id})},
                                {"certificateAuthority", flags.ca_pem}});
  // Without a prefix of their own, names that others could have too get the issuer's; "-" is none.
  std::string prefix = flags.username_prefix;
  if (prefix.empty() && flags.username_claim != "email") prefix = flags.issuer_url + "#";
  if (prefix == "-") prefix.clear();
  Value mappings = Value::object(
      {{"username", Value::object({{"claim", flags.username_claim}, {"prefix", prefix}})}});
  if (!flags.groups_claim.empty()) {
    mappings.set("groups",
                 Value::object({{"claim", flags.groups_claim}, {"prefix", flags.groups_prefix}}));
  }
  Value rules = Value::array();
  for (const std::string& text : flags.required_claims) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error::invalid(cat("--oidc-required-claim ", quoted(text), ": must be KEY=VALUE"));
    }
    rules.push(Value::object(
        {{"claim", text.substr(0, equals)}, {"requiredValue", text.substr(equals + 1)}}));
  }
  for (const std::string& name : flags.signing_algs) {
    const auto& known = net::jwk_algorithms();
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return Error::invalid(cat("oidc: unsupported signing alg: ", quoted(name)));
    }
  }
  const Value source = Value::object(
      {{"jwt", Value::array({Value::object({{"issuer", std::move(issuer)},
                                            {"claimMappings", std::move(mappings)},
                                            {"claimValidationRules", std::move(rules)}})})}});
  DIBS_TRY(AuthenticationConfiguration out, read_configuration(source, own_issuers));
  auto made = std::make_shared<JwtIssuer>(*out.issuers[0]);
  made->algorithms = flags.signing_algs;
  out.issuers[0] = std::move(made);
  return out;
}

Result<UserInfo> user_of_claims(const JwtIssuer& issuer, const Value& claims, Time now) {
  DIBS_CHECK(check_token(issuer, claims, now));
  UserInfo user;
  DIBS_TRY(user.name, username_of(issuer, claims));
  DIBS_TRY(user.groups, groups_of(issuer, claims));
  if (issuer.uid.expression) {
    auto uid = issuer.uid.expression->string(claims);
    if (!uid.ok()) {
      return refused(cat("oidc: error evaluating uid claim expression: ", uid.error().message()));
    }
    user.uid = *uid;
  } else if (!issuer.uid.claim.empty()) {
    auto uid = text_claim(claims, issuer.uid.claim);
    if (!uid.ok()) {
      return refused(
          cat("oidc: parse uid claim ", quoted(issuer.uid.claim), ": ", uid.error().message()));
    }
    user.uid = *uid;
  }
  if (claims["jti"].is_string()) {
    user.extra["authentication.kubernetes.io/credential-id"] = {cat("JTI=", claims["jti"].str())};
  }
  for (const auto& [key, expression] : issuer.extra) {
    auto values = expression.strings(claims);
    if (!values.ok()) {
      return refused(cat("oidc: error evaluating extra claim expression: ", expression.text(), ": ",
                         values.error().message()));
    }
    if (!values->empty()) user.extra[key] = std::move(values).value();
  }
  for (const auto& [claim, value] : issuer.required_claims) {
    if (!claims.contains(claim)) {
      return refused(cat("oidc: required claim ", claim, " not present in ID token"));
    }
    auto text = text_claim(claims, claim);
    if (!text.ok()) return refused(cat("oidc: parse claim ", claim, ": ", text.error().message()));
    if (*text != value) {
      return refused(cat("oidc: required claim ", claim, " value does not match. Got = ", *text,
                         ", want = ", value));
    }
  }
  DIBS_CHECK(check_rules(issuer.claim_rules, claims, "claim validation expression"));
  if (!issuer.user_rules.empty()) {
    DIBS_CHECK(check_rules(issuer.user_rules, rule_value(user), "user info validation rule"));
  }
  return user;
}

}  // namespace dibs::server::auth
