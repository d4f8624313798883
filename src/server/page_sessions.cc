#include "server/page_sessions.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "server/authentication.h"

namespace dibs::server {
namespace {

constexpr std::size_t kSecretBytes = 24;

std::string digest_of(std::string_view secret) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), hash.data());
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

template <typename Table>
void drop_expired(Table& table, Time now) {
  std::erase_if(table, [now](const auto& entry) { return entry.second.expires <= now; });
}

Error too_many(std::string_view what) {
  return Error(Code::too_many_requests, cat("too many ", what, " at once: try again later"));
}

}  // namespace

std::string PageSessions::make_secret(std::string_view prefix) {
  std::array<std::uint8_t, kSecretBytes> bytes{};
  runtime_.random.fill(bytes);
  return cat(prefix, base64url_encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

std::size_t PageSessions::count(const Table& table, std::string_view user) {
  return static_cast<std::size_t>(std::count_if(
      table.begin(), table.end(), [user](const auto& entry) { return entry.second.user == user; }));
}

Result<PageSessions::Issued> PageSessions::make_code(const net::Request& request,
                                                     const auth::UserInfo& user) {
  const Time now = runtime_.clock.now();
  Credentials made;
  made.user = user.name;
  made.expires = now + kCodeLife;
  // A certificate counts before a token, and so do the words of a front proxy, whose own rights are
  // not those of whom it speaks for: then the names that came of it are kept.
  if (!request.peer.certificate && !token_of(request).empty()) {
    made.authorization = cat("Bearer ", token_of(request));
  } else {
    made.certificate.certificate = true;
    made.certificate.common_name = user.name;
    made.certificate.uid = user.uid;
    made.certificate.organizations = user.groups;
    if (request.peer.common_name == user.name) {
      made.certificate.credential_id = request.peer.credential_id;
    }
  }
  Issued issued{make_secret(""), made.expires};
  const MutexLock lock(mutex_);
  drop_expired(codes_, now);
  if (codes_.size() >= kMost || count(codes_, user.name) >= kMostOfUser) return too_many("codes");
  codes_.emplace(digest_of(issued.secret), std::move(made));
  return issued;
}

Result<PageSessions::Issued> PageSessions::exchange(std::string_view code) {
  const Time now = runtime_.clock.now();
  Issued issued{make_secret(kTokenPrefix), now + kSessionLife};
  const MutexLock lock(mutex_);
  drop_expired(codes_, now);
  drop_expired(sessions_, now);
  const auto found = codes_.find(digest_of(code));
  if (found == codes_.end()) {
    return Error(Code::unauthorized,
                 "the code is used, expired or unknown: a link is good once, within two minutes; "
                 "`dibs open` prints a new one");
  }
  Credentials credentials = std::move(found->second);
  codes_.erase(found);
  if (count(sessions_, credentials.user) >= kMostOfUser) {
    auto oldest = sessions_.end();
    for (auto one = sessions_.begin(); one != sessions_.end(); ++one) {
      if (one->second.user != credentials.user) continue;
      if (oldest == sessions_.end() || one->second.expires < oldest->second.expires) oldest = one;
    }
    sessions_.erase(oldest);
  }
  if (sessions_.size() >= kMost) return too_many("sessions");
  credentials.expires = issued.expires;
  sessions_.emplace(digest_of(issued.secret), std::move(credentials));
  return issued;
}

void PageSessions::end(std::string_view token) {
  const MutexLock lock(mutex_);
  sessions_.erase(digest_of(token));
}

void PageSessions::stand_in(net::Request& request) {
  const std::string token = token_of(request);
  if (!is_session_token(token)) return;
  const Time now = runtime_.clock.now();
  const MutexLock lock(mutex_);
  const auto found = sessions_.find(digest_of(token));
  if (found == sessions_.end() || found->second.expires <= now) return;
  const Credentials& one = found->second;
  net::Peer& peer = request.peer;
  peer.certificate = one.certificate.certificate;
  peer.certificate_invalid = false;
  peer.common_name = one.certificate.common_name;
  peer.organizations = one.certificate.organizations;
  peer.uid = one.certificate.uid;
  peer.credential_id = one.certificate.credential_id;
  if (one.authorization.empty()) {
    request.headers.remove("Authorization");
  } else {
    request.headers.set("Authorization", one.authorization);
  }
}

}  // namespace dibs::server
