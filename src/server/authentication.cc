#include "server/authentication.h"

#include "base/strings.h"
#include "server/status.h"

namespace dibs::server {
namespace {

using auth::RequestAttributes;
using auth::UserInfo;

constexpr std::string_view kAccountPrefix = "system:serviceaccount:";

void add_group(UserInfo& user, std::string_view group) {
  if (!user.in_group(group)) user.groups.emplace_back(group);
}

/// "Bearer x": x; nothing for other schemes.
std::string_view bearer(std::string_view header) {
  header = trim(header);
  auto space = header.find(' ');
  if (space == std::string_view::npos || !equals_ignoring_case(header.substr(0, space), "bearer"))
    return {};
  return trim(header.substr(space + 1));
}

/// Browsers cannot set headers on a WebSocket: there the token comes as a sub-protocol.
std::string websocket_token(const net::Request& request) {
  for (std::string_view protocol : split(request.headers.get("Sec-WebSocket-Protocol"), ',')) {
    protocol = trim(protocol);
    std::string token;
    if (protocol.starts_with(kTokenProtocol) &&
        base64url_decode(protocol.substr(kTokenProtocol.size()), token))
      return token;
  }
  return {};
}

Error refused(const UserInfo& user, const RequestAttributes& what, const auth::Decision& decision) {
  std::string message =
      cat("User ", quoted(user.name), " cannot impersonate resource ", quoted(what.resource));
  if (!what.subresource.empty()) {
    message = cat("User ", quoted(user.name), " cannot impersonate resource ",
                  quoted(cat(what.resource, "/", what.subresource)));
  }
  append(message, " in API group ", quoted(what.group),
         what.name_space.empty() ? std::string(" at the cluster scope")
                                 : cat(" in the namespace ", quoted(what.name_space)));
  if (!decision.reason.empty()) append(message, ": ", decision.reason);
  return forbidden_error(what.group, what.resource, what.name, message);
}

}  // namespace

bool is_inside(const net::Request& request) { return request.peer.address == "in-process"; }

void take_extra(const net::Request& request, UserInfo& user) {
  constexpr std::string_view kExtra = "x-remote-extra-";
  for (const auto& [key, value] : request.headers.fields()) {
    const std::string lower = to_lower(key);
    std::string name;
    if (lower.starts_with(kExtra) && percent_decode(lower.substr(kExtra.size()), false, name)) {
      user.extra[name].push_back(value);
    }
  }
}

std::string token_of(const net::Request& request) {
  std::string token(bearer(request.headers.get("Authorization")));
  return token.empty() ? websocket_token(request) : token;
}

Error unauthorized_error() { return Error(Code::unauthorized, "Unauthorized"); }

Result<UserInfo> Authenticator::authenticate_token(std::string_view token) const {
  for (const TokenVerifier& verify : tokens_) {
    auto user = verify(token);
    if (user.ok()) {
      add_group(*user, auth::kAuthenticated);
      return user;
    }
  }
  return unauthorized_error();
}

Result<UserInfo> Authenticator::authenticate(const net::Request& request) const {
  if (auto user = auth::front_proxy_user(request, front_proxies_)) {
    add_group(*user,
              user->name == auth::kAnonymous ? auth::kUnauthenticated : auth::kAuthenticated);
    return *std::move(user);
  }
  // One without a name is of nobody: what else is shown counts.
  if (request.peer.certificate && !request.peer.common_name.empty()) {
    UserInfo user;
    user.name = request.peer.common_name;
    user.groups = request.peer.organizations;
    user.uid = request.peer.uid;
    if (!request.peer.credential_id.empty()) {
      user.extra["authentication.kubernetes.io/credential-id"] = {request.peer.credential_id};
    }
    add_group(user, auth::kAuthenticated);
    return user;
  }
  if (request.peer.certificate_invalid) return unauthorized_error();
  if (const std::string token = token_of(request); !token.empty()) return authenticate_token(token);
  if (anonymous_ && !anonymous_(request)) return unauthorized_error();
  UserInfo anonymous;
  anonymous.name = auth::kAnonymous;
  anonymous.groups = {std::string(auth::kUnauthenticated)};
  return anonymous;
}

Result<UserInfo> impersonate(const net::Request& request, const UserInfo& user,
                             const Authorize& authorize) {
  std::string_view name = request.headers.get("Impersonate-User");
  auto groups = request.headers.all("Impersonate-Group");
  std::string_view uid = request.headers.get("Impersonate-Uid");
  constexpr std::string_view kExtra = "impersonate-extra-";
  std::vector<std::pair<std::string, std::string>> extras;
  for (const auto& [key, value] : request.headers.fields()) {
    std::string lower = to_lower(key);
    if (!lower.starts_with(kExtra)) continue;
    std::string decoded;
    if (!percent_decode(lower.substr(kExtra.size()), false, decoded))
      decoded = lower.substr(kExtra.size());
    extras.emplace_back(decoded, value);
  }
  if (name.empty()) {
    if (!groups.empty() || !extras.empty() || !uid.empty()) {
      std::string shown_groups = "[]string(nil)";
      if (!groups.empty()) {
        shown_groups = "[]string{";
        for (std::size_t i = 0; i < groups.size(); ++i)
          append(shown_groups, i ? ", " : "", quoted(groups[i]));
        shown_groups.push_back('}');
      }
      std::string shown_extra = "map[string][]string(nil)";
      if (!extras.empty()) {
        shown_extra = "map[string][]string{";
        for (std::size_t i = 0; i < extras.size(); ++i) {
          append(shown_extra, i ? ", " : "", quoted(extras[i].first), ":[]string{",
                 quoted(extras[i].second), "}");
        }
        shown_extra.push_back('}');
      }
      return Error::bad_request(cat("requested &user.DefaultInfo{Name:\"\", UID:", quoted(uid),
                                    ", Groups:", shown_groups, ", Extra:", shown_extra,
                                    "} without impersonating a user name"));
    }
    return user;
  }

  auto allowed = [&](RequestAttributes what) -> Result<> {
    what.user = user;
    what.verb = "impersonate";
    auto decision = authorize(what);
    if (decision.allowed) return success();
    return refused(user, what, decision);
  };
  UserInfo wanted;
  wanted.name = name;
  RequestAttributes what;
  if (name.starts_with(kAccountPrefix)) {
    auto rest = name.substr(kAccountPrefix.size());
    auto colon = rest.find(':');
    what.resource = "serviceaccounts";
    what.name_space = rest.substr(0, colon);
    what.name = colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
    if (groups.empty()) {
      wanted.groups = {"system:serviceaccounts", cat("system:serviceaccounts:", what.name_space)};
    }
  } else {
    what.resource = "users";
    what.name = name;
  }
  DIBS_CHECK(allowed(what));
  for (std::string_view group : groups) {
    RequestAttributes of_group;
    of_group.resource = "groups";
    of_group.name = group;
    DIBS_CHECK(allowed(of_group));
    wanted.groups.emplace_back(group);
  }
  for (const auto& [key, value] : extras) {
    RequestAttributes of_extra;
    of_extra.group = "authentication.k8s.io";
    of_extra.resource = "userextras";
    of_extra.subresource = key;
    of_extra.name = value;
    DIBS_CHECK(allowed(of_extra));
    wanted.extra[key].push_back(value);
  }
  if (!uid.empty()) {
    RequestAttributes of_uid;
    of_uid.group = "authentication.k8s.io";
    of_uid.resource = "uids";
    of_uid.name = uid;
    DIBS_CHECK(allowed(of_uid));
    wanted.uid = uid;
  }
  if (wanted.name == auth::kAnonymous) {
    add_group(wanted, auth::kUnauthenticated);
  } else if (!wanted.in_group(auth::kUnauthenticated)) {
    add_group(wanted, auth::kAuthenticated);
  }
  return wanted;
}

}  // namespace dibs::server
