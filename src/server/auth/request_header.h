#pragma once
// Users whom a front proxy vouches for: it shows a certificate of an authority of its own and says
// in headers for whom it asks.

#include <optional>
#include <string>
#include <vector>

#include "net/http.h"
#include "server/auth/user.h"

namespace dibs::server::auth {

inline constexpr std::string_view kFrontProxyClient = "front-proxy-client";

struct RequestHeaderOptions {
  /// Of whose certificates headers are believed; "": of nobody's.
  std::string ca_pem = {};
  /// Common names of those certificates; none: whatever they say.
  std::vector<std::string> allowed_names = {};
  // The first of the headers that is there counts; of groups and extra ones all do.
  std::vector<std::string> username_headers = {"X-Remote-User"};
  std::vector<std::string> uid_headers = {"X-Remote-Uid"};
  std::vector<std::string> group_headers = {"X-Remote-Group"};
  std::vector<std::string> extra_prefixes = {"X-Remote-Extra-"};
};

/// Whom the request is for, where a front proxy that may say so sends it; nobody where it does not,
/// or where it names no user.
std::optional<UserInfo> front_proxy_user(const net::Request& request,
                                         const RequestHeaderOptions& options);

/// Takes out what only a front proxy may say, before a request is handed on to anybody.
void clear_front_proxy_headers(net::Headers& headers, const RequestHeaderOptions& options);

}  // namespace dibs::server::auth
