#include "server/auth/tokens.h"

#include <algorithm>

#include "api/schema/field_error.h"
#include "base/strings.h"
#include "server/auth/rbac.h"
#include "server/auth/rule.h"

namespace dibs::server::auth {
namespace {

using json::Value;

constexpr std::string_view kGroup = "authentication.k8s.io";
constexpr std::int64_t kDefaultSeconds = 3600;
constexpr std::int64_t kLeastSeconds = 600;
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 32;
/// What kubelets ask for in the volumes that admission adds to pods; nobody else asks for just
/// this.
constexpr std::int64_t kExtendedMark = 3607;
constexpr std::int64_t kExtendedSeconds = 365 * 24 * 3600;
/// Clocks may differ, and an object may have been deleted, by this much.
constexpr std::int64_t kLeewaySeconds = 60;

constexpr std::string_view kInvalidated = "service account token has been invalidated";

Error unauthorized(std::string message) { return {Code::unauthorized, std::move(message)}; }

Error conflict(std::string_view resource, std::string_view name, std::string_view text) {
  ErrorDetails details;
  details.name = name;
  std::size_t dot = resource.find('.');
  details.kind = resource.substr(0, dot);
  if (dot != std::string_view::npos) details.group = resource.substr(dot + 1);
  return Error(Code::conflict,
               cat("Operation cannot be fulfilled on ", resource, " ", quoted(name), ": ", text),
               std::move(details));
}

Value reference_to(const Value& object) {
  return Value::object({{"name", object["metadata"]["name"]}, {"uid", object["metadata"]["uid"]}});
}

std::vector<std::string> texts_of(const Value& list) {
  if (list.is_string()) return {list.str()};
  std::vector<std::string> texts;
  for (const Value& item : list.items()) texts.push_back(item.str());
  return texts;
}

bool has(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// Errors: of the request's own fields.
Result<> check_request(const Value& account, const Value& request, std::int64_t seconds) {
  const Value& own = account["metadata"];
  const Value& asked = request["metadata"];
  api::Path metadata("metadata");
  for (std::string_view key : {"name", "namespace"}) {
    if (asked[key].as_string().empty() || asked[key] == own[key]) continue;
    api::FieldErrors errors;
    errors.invalid(metadata.child(key), asked[key],
                   cat("must match the service account ", key, " if specified"));
    return errors.to_error("TokenRequest", kGroup, own["name"].as_string());
  }
  if (!asked["uid"].as_string().empty() && !(asked["uid"] == own["uid"])) {
    return conflict(
        cat("TokenRequest.", kGroup), own["name"].as_string(),
        cat("the UID in the token request (", asked["uid"].as_string(),
            ") does not match the UID of the service account (", own["uid"].as_string(), ")"));
  }
  api::FieldErrors errors;
  api::Path spec("spec");
  if (seconds < kLeastSeconds) {
    errors.invalid(spec.child("expirationSeconds"), Value(static_cast<long>(seconds)),
                   "may not specify a duration less than 10 minutes");
  }
  if (seconds > kMostSeconds) {
    errors.invalid(spec.child("expirationSeconds"), Value(static_cast<long>(seconds)),
                   "may not specify a duration larger than 2^32 seconds");
  }
  if (!errors.empty()) return errors.to_error("TokenRequest", kGroup, "");
  return success();
}

/// Puts what the token is bound to into its claims.
Result<> bind(const Value& account, const Value& bound, const TokenLookup& lookup, Value& claims) {
  std::string_view version = bound["apiVersion"].as_string();
  std::string_view kind = bound["kind"].as_string();
  std::string_view space = account["metadata"]["namespace"].as_string();
  std::string_view account_name = account["metadata"]["name"].as_string();
  std::string_view name = bound["name"].as_string();
  bool is_core = version.find('/') == std::string_view::npos;
  Value object;
  if (is_core && kind == "Pod") {
    DIBS_TRY(object, lookup("pods", space, name));
    if (object["spec"]["serviceAccountName"].as_string() != account_name) {
      return Error::bad_request(cat("cannot bind token for serviceaccount ", quoted(account_name),
                                    " to pod running with different serviceaccount name."));
    }
    claims.set("pod", reference_to(object));
    std::string node_name = object["spec"]["nodeName"].str();
    if (!node_name.empty()) {
      Result<Value> node = lookup("nodes", "", node_name);
      if (!node.ok() && node.error().code() != Code::not_found) return std::move(node).error();
      claims.set("node", node.ok() ? reference_to(*node) : Value::object({{"name", node_name}}));
    }
  } else if (is_core && kind == "Node") {
    DIBS_TRY(object, lookup("nodes", "", name));
    claims.set("node", reference_to(object));
  } else if (is_core && kind == "Secret") {
    DIBS_TRY(object, lookup("secrets", space, name));
    claims.set("secret", reference_to(object));
  } else {
    std::string group_version = is_core ? cat("/", version) : std::string(version);
    return Error::bad_request(
        cat("cannot bind token to object of type ", group_version, ", Kind=", kind));
  }
  const Value& uid = bound["uid"];
  if (!uid.as_string().empty() && !(uid == object["metadata"]["uid"])) {
    return conflict(
        kind, name,
        cat("the UID in the bound object reference (", uid.as_string(),
            ") does not match the UID in record. The object might have been deleted and "
            "then recreated"));
  }
  return success();
}

bool is_gone(const Value& object, Time now) {
  const Value& text = object["metadata"]["deletionTimestamp"];
  if (text.is_null()) return false;
  Result<Time> time = parse_rfc3339(text.as_string());
  return time.ok() && time->seconds() < now.seconds() - kLeewaySeconds;
}

/// The object that a token is bound to must be there still.
Result<> check_bound(const Value& claim, std::string_view resource, std::string_view space,
                     std::string_view shown, const TokenLookup& lookup, Time now) {
  Result<Value> object = lookup(resource, space, claim["name"].as_string());
  if (!object.ok()) return unauthorized(std::string(kInvalidated));
  const Value& uid = (*object)["metadata"]["uid"];
  if (!(uid == claim["uid"])) {
    return unauthorized(cat(shown, " UID (", uid.as_string(), ") does not match service account ",
                            shown, " ref claim (", claim["uid"].as_string(), ")"));
  }
  if (is_gone(*object, now)) return unauthorized(std::string(kInvalidated));
  return success();
}

Result<> check_times(const Value& claims, Time now) {
  std::int64_t seconds = now.seconds();
  if (claims.contains("nbf") && seconds + kLeewaySeconds < claims["nbf"].as_int()) {
    return unauthorized("service account token is not valid yet");
  }
  if (claims.contains("exp") && seconds - kLeewaySeconds > claims["exp"].as_int()) {
    return unauthorized("service account token has expired");
  }
  if (claims.contains("iat") && seconds + kLeewaySeconds < claims["iat"].as_int()) {
    return unauthorized("service account token is issued in the future");
  }
  return success();
}

Result<> check_objects(const Value& private_claims, const TokenLookup& lookup, Time now) {
  std::string_view space = private_claims["namespace"].as_string();
  const Value& account = private_claims["serviceaccount"];
  std::string_view name = account["name"].as_string();
  Result<Value> object = lookup("serviceaccounts", space, name);
  if (!object.ok()) return unauthorized(object.error().message());
  const Value& uid = (*object)["metadata"]["uid"];
  if (!(uid == account["uid"])) {
    return unauthorized(cat("service account UID (", uid.as_string(), ") does not match claim (",
                            account["uid"].as_string(), ")"));
  }
  if (is_gone(*object, now)) {
    return unauthorized(cat("service account ", space, "/", name, " has been deleted"));
  }
  const Value& secret = private_claims["secret"];
  const Value& pod = private_claims["pod"];
  const Value& node = private_claims["node"];
  if (secret.is_object()) {
    DIBS_CHECK(check_bound(secret, "secrets", space, "secret", lookup, now));
  }
  if (pod.is_object()) DIBS_CHECK(check_bound(pod, "pods", space, "pod", lookup, now));
  // The node of a pod's token is only told, not checked: the pod says where it runs.
  if (node.is_object() && !pod.is_object()) {
    DIBS_CHECK(check_bound(node, "nodes", "", "node", lookup, now));
  }
  return success();
}

void set_extra(UserInfo& user, std::string_view key, const Value& value) {
  if (value.as_string().empty()) return;
  user.extra[cat("authentication.kubernetes.io/", key)] = {value.str()};
}

/// One line of comma-separated values; quotes hold commas together and are doubled within.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted_field = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quoted_field) {
      if (c == '"' && i + 1 < line.size() && line[i + 1] == '"') {
        fields.back().push_back('"');
        ++i;
      } else if (c == '"') {
        quoted_field = false;
      } else {
        fields.back().push_back(c);
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted_field = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back().push_back(c);
    }
  }
  return fields;
}

}  // namespace

std::vector<std::string> TokenOptions::api_audiences() const {
  if (!audiences.empty()) return audiences;
  std::vector<std::string> all = {issuer};
  all.insert(all.end(), more_issuers.begin(), more_issuers.end());
  return all;
}

std::vector<std::string> TokenOptions::own_audiences(const std::vector<std::string>& wanted) const {
  std::vector<std::string> own = api_audiences();
  if (wanted.empty()) return own;
  std::erase_if(own, [&](const std::string& one) { return !has(wanted, one); });
  return own;
}

bool TokenOptions::is_issuer(std::string_view name) const {
  return name == issuer ||
         std::find(more_issuers.begin(), more_issuers.end(), name) != more_issuers.end();
}

Result<PreparedToken> prepare_token(const Value& account, const Value& request,
                                    const TokenOptions& options, const TokenLookup& lookup,
                                    Time now, std::string_view id) {
  const Value& spec = request["spec"];
  const Value& own = account["metadata"];
  std::int64_t seconds =
      spec["expirationSeconds"].is_null() ? kDefaultSeconds : spec["expirationSeconds"].as_int();
  DIBS_CHECK(check_request(account, request, seconds));
  PreparedToken prepared;
  const std::int64_t most =
      std::chrono::duration_cast<std::chrono::seconds>(options.max_life).count();
  if (most > 0 && seconds > most) {
    prepared.warnings.push_back(
        cat("requested expiration of ", seconds, " seconds shortened to ", most, " seconds"));
    seconds = most;
  }
  std::vector<std::string> api = options.api_audiences();
  std::vector<std::string> audiences = texts_of(spec["audiences"]);
  if (audiences.empty()) audiences = api;

  Value private_claims =
      Value::object({{"namespace", own["namespace"]}, {"serviceaccount", reference_to(account)}});
  const Value& bound = spec["boundObjectRef"];
  if (bound.is_object()) DIBS_CHECK(bind(account, bound, lookup, private_claims));

  std::int64_t issued = now.seconds();
  std::int64_t lifetime = seconds;
  bool is_for_api = std::all_of(audiences.begin(), audiences.end(),
                                [&](const std::string& one) { return has(api, one); });
  if (options.extend && private_claims.contains("pod") && seconds == kExtendedMark && is_for_api) {
    private_claims.set("warnafter", static_cast<long>(issued + seconds));
    lifetime = kExtendedSeconds;
  }
  Value audience_list = Value::array();
  for (const std::string& audience : audiences) audience_list.push(audience);

  prepared.claims = Value::object(
      {{"aud", audience_list},
       {"exp", static_cast<long>(issued + lifetime)},
       {"iat", static_cast<long>(issued)},
       {"iss", options.issuer},
       {"jti", id},
       {"kubernetes.io", std::move(private_claims)},
       {"nbf", static_cast<long>(issued)},
       {"sub", account_user_name(own["namespace"].as_string(), own["name"].as_string())}});
  prepared.answer = Value::object(
      {{"kind", "TokenRequest"},
       {"apiVersion", "authentication.k8s.io/v1"},
       {"metadata", Value::object({{"name", own["name"]},
                                   {"namespace", own["namespace"]},
                                   {"uid", own["uid"]},
                                   {"creationTimestamp", format_rfc3339(now)}})},
       {"spec", Value::object({{"audiences", audience_list},
                               {"expirationSeconds", static_cast<long>(seconds)},
                               {"boundObjectRef", bound.is_object() ? bound : Value()}})},
       {"status", Value::object({{"token", ""},
                                 {"expirationTimestamp",
                                  format_rfc3339(Time::from_seconds(issued + seconds))}})}});
  return prepared;
}

Result<VerifiedToken> verify_claims(const Value& claims, const std::vector<std::string>& audiences,
                                    const TokenOptions& options, const TokenLookup& lookup,
                                    Time now) {
  const Value& private_claims = claims["kubernetes.io"];
  if (!options.is_issuer(claims["iss"].as_string()) || !private_claims.is_object()) {
    return unauthorized("");
  }
  VerifiedToken verified;
  std::vector<std::string> wanted = audiences.empty() ? options.api_audiences() : audiences;
  std::vector<std::string> meant = texts_of(claims["aud"]);
  for (const std::string& audience : wanted) {
    if (has(meant, audience)) verified.audiences.push_back(audience);
  }
  if (verified.audiences.empty()) {
    return unauthorized(cat("token audiences ", list_text(meant),
                            " is invalid for the target audiences ", list_text(wanted)));
  }
  DIBS_CHECK(check_times(claims, now));
  DIBS_CHECK(check_objects(private_claims, lookup, now));

  std::string_view space = private_claims["namespace"].as_string();
  const Value& account = private_claims["serviceaccount"];
  UserInfo& user = verified.user;
  user.name = account_user_name(space, account["name"].as_string());
  user.uid = account["uid"].str();
  user.groups = {"system:serviceaccounts", cat("system:serviceaccounts:", space)};
  if (!claims["jti"].as_string().empty()) {
    set_extra(user, "credential-id", cat("JTI=", claims["jti"].as_string()));
  }
  set_extra(user, "pod-name", private_claims["pod"]["name"]);
  set_extra(user, "pod-uid", private_claims["pod"]["uid"]);
  set_extra(user, "node-name", private_claims["node"]["name"]);
  set_extra(user, "node-uid", private_claims["node"]["uid"]);
  return verified;
}

Value user_value(const UserInfo& user) {
  Value value = Value::object();
  if (!user.name.empty()) value.set("username", user.name);
  if (!user.uid.empty()) value.set("uid", user.uid);
  for (const std::string& group : user.groups) value.mut("groups").push(group);
  for (const auto& [key, texts] : user.extra) {
    Value list = Value::array();
    for (const std::string& text : texts) list.push(text);
    value.mut("extra").set(key, std::move(list));
  }
  return value;
}

Value token_review_status(const Result<VerifiedToken>& token) {
  if (!token.ok()) {
    const std::string& message = token.error().message();
    std::string text = "invalid bearer token";
    if (!message.empty()) text = cat("[invalid bearer token, ", message, "]");
    return Value::object({{"user", Value::object()}, {"error", text}});
  }
  UserInfo user = token->user;
  if (!user.in_group(kAuthenticated)) user.groups.emplace_back(kAuthenticated);
  Value status = Value::object({{"authenticated", true}, {"user", user_value(user)}});
  for (const std::string& audience : token->audiences) status.mut("audiences").push(audience);
  return status;
}

Result<std::map<std::string, UserInfo, std::less<>>> parse_static_tokens(std::string_view text) {
  std::map<std::string, UserInfo, std::less<>> tokens;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty()) continue;
    std::vector<std::string> fields = fields_of(line);
    if (fields.size() < 3) {
      return Error::bad_request(cat(
          "token file line ", number,
          ": at least 3 columns are needed (token, user name, user uid), found ", fields.size()));
    }
    std::string token(trim(fields[0]));
    if (token.empty()) {
      return Error::bad_request(cat("token file line ", number, ": the token is empty"));
    }
    UserInfo user;
    user.name = trim(fields[1]);
    user.uid = trim(fields[2]);
    if (fields.size() > 3) {
      for (std::string_view group : split(fields[3], ',')) {
        if (!trim(group).empty()) user.groups.emplace_back(trim(group));
      }
    }
    tokens[token] = std::move(user);
  }
  return tokens;
}

}  // namespace dibs::server::auth
