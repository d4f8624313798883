#pragma once
// How a browser comes to act for somebody who has a kubeconfig.
//
// Who is known to the server asks for a code, which is good for one use within two minutes, and
// carries it to the browser in a link. The browser exchanges it for a token, which stands for the
// credentials that the code was asked with, for 12 hours at most: nobody gets a right by it that
// those do not have. A bearer token is verified anew with every request, so a session ends when
// that does; of a certificate the names are kept. Nothing of it is stored: a restart of the server
// ends all sessions.
//
// Only digests of codes and tokens are kept. Thread-safe.

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "base/time.h"
#include "net/http.h"
#include "runtime/runtime.h"
#include "server/auth/user.h"

namespace dibs::server {

class PageSessions {
 public:
  static constexpr Duration kCodeLife = std::chrono::minutes(2);
  static constexpr Duration kSessionLife = std::chrono::hours(12);
  /// Of one user. More codes are refused; a session more ends his oldest.
  static constexpr std::size_t kMostOfUser = 16;
  /// Of all users together, where more are refused.
  static constexpr std::size_t kMost = 4096;
  static constexpr std::string_view kTokenPrefix = "dibs-page-";

  explicit PageSessions(runtime::Runtime& runtime) : runtime_(runtime) {}

  struct Issued {
    std::string secret;  // the code, or the token
    Time expires;
  };
  /// A code for the sender of `request`, who is `user`. Errors: too_many_requests.
  Result<Issued> make_code(const net::Request& request, const auth::UserInfo& user);
  /// Errors: unauthorized, for a code that is used, expired or unknown; too_many_requests.
  Result<Issued> exchange(std::string_view code);
  /// Ends the session of the token, if it is one.
  void end(std::string_view token);

  /// Puts what the request's token stands for in its place. A request without a session's token,
  /// or with an expired one, stays as it is.
  void stand_in(net::Request& request);

  static bool is_session_token(std::string_view token) { return token.starts_with(kTokenPrefix); }

 private:
  /// What a code or a token stands for.
  struct Credentials {
    std::string user;
    Time expires;
    std::string authorization;  // header; "": the certificate
    net::Peer certificate;
  };
  using Table = std::map<std::string, Credentials, std::less<>>;

  std::string make_secret(std::string_view prefix);
  static std::size_t count(const Table& table, std::string_view user);

  runtime::Runtime& runtime_;
  Mutex mutex_;
  Table codes_ DIBS_GUARDED_BY(mutex_);  // by digest
  Table sessions_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
