#include "server/issuer_keys.h"

#include <map>

#include "base/log.h"
#include "base/strings.h"
#include "json/parse.h"
#include "net/http_client.h"
#include "runtime/blocking.h"

namespace dibs::server {
namespace {

constexpr Duration kTimeout = std::chrono::seconds(30);
constexpr std::size_t kMostBytes = 1024 * 1024;
/// Between two fetches of an issuer's keys, whatever tokens come.
constexpr Duration kLeast = std::chrono::seconds(10);
constexpr Duration kMost = std::chrono::hours(1);
constexpr std::size_t kCachedUsers = 4096;
/// Of longer tokens the users are made out each time.
constexpr std::size_t kLongestCached = std::size_t{8} << 10;
/// Requests that wait for one issuer; more are refused.
constexpr std::size_t kMostWaiting = 1024;

Result<json::Value> get_json(const std::string& url, const std::string& ca_pem) {
  const auto scheme = url.find("://");
  const auto slash = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  if (!url.starts_with("https://")) return Error::invalid(cat(url, ": must be https"));
  net::ClientOptions options;
  options.url = url.substr(0, slash);
  options.tls.ca_pem = ca_pem;
  options.max_idle = 0;
  options.max_response = kMostBytes;
  DIBS_TRY(const auto client, net::HttpClient::open(std::move(options)));
  net::Request request;
  request.method = "GET";
  request.target = slash == std::string::npos ? "/" : url.substr(slash);
  request.headers.add("Accept", "application/json");
  request.headers.add("User-Agent", "dibs-oidc");
  request.headers.add("Connection", "close");
  const runtime::Blocking waits;
  DIBS_TRY(const net::Response answer, client->send(request, kTimeout));
  if (answer.status != 200) {
    return Error::unavailable(cat("Get ", quoted(url), ": answered ", answer.status));
  }
  auto value = json::parse(answer.body);
  if (!value.ok() || !value->is_object()) {
    return Error::invalid(cat("Get ", quoted(url), ": no JSON object"));
  }
  return value;
}

class HttpsKeys final : public KeySource {
 public:
  Result<net::JwkSet> fetch(const auth::JwtIssuer& issuer) override {
    DIBS_TRY(const json::Value document, get_json(issuer.discovery(), issuer.ca_pem));
    if (document["issuer"].as_string() != issuer.url) {
      return Error::invalid(
          cat("oidc: issuer did not match the issuer returned by provider, expected ",
              quoted(issuer.url), " got ", quoted(document["issuer"].as_string())));
    }
    DIBS_TRY(const json::Value keys, get_json(document["jwks_uri"].str(), issuer.ca_pem));
    return net::JwkSet::parse(keys);
  }
};

}  // namespace

struct IssuerKeys::Shared {
  Shared(runtime::Runtime& the_runtime, std::shared_ptr<KeySource> the_source)
      : runtime(the_runtime), source(std::move(the_source)) {}

  runtime::Runtime& runtime;
  const std::shared_ptr<KeySource> source;
  Mutex mutex;
  bool stopped DIBS_GUARDED_BY(mutex) = false;
  std::map<std::string, Known, std::less<>> issuers DIBS_GUARDED_BY(mutex);
  /// Users of tokens that were good with the keys of now: a signature costs more than the rest of a
  /// small request.
  struct User {
    auth::UserInfo info;
    double until;
  };
  std::unordered_map<std::string, User> users DIBS_GUARDED_BY(mutex);
};

std::shared_ptr<KeySource> make_key_source() { return std::make_shared<HttpsKeys>(); }

IssuerKeys::IssuerKeys(runtime::Runtime& runtime, std::shared_ptr<KeySource> source)
    : shared_(std::make_shared<Shared>(runtime, std::move(source))) {}

void IssuerKeys::stop() {
  std::vector<std::function<void()>> waiting;
  std::vector<runtime::TimerId> timers;
  {
    const MutexLock lock(shared_->mutex);
    shared_->stopped = true;
    for (auto& [url, known] : shared_->issuers) {
      timers.push_back(known.timer);
      for (auto& one : known.waiting) waiting.push_back(std::move(one));
      known.waiting.clear();
    }
  }
  for (const runtime::TimerId timer : timers) shared_->runtime.timers.cancel(timer);
  for (const auto& one : waiting) one();
}

void IssuerKeys::configure(std::vector<std::shared_ptr<const auth::JwtIssuer>> issuers) {
  std::vector<std::string> fresh;
  std::vector<std::function<void()>> waiting;
  {
    const MutexLock lock(shared_->mutex);
    if (shared_->stopped) return;
    auto before = std::exchange(shared_->issuers, {});
    shared_->users.clear();
    for (auto& issuer : issuers) {
      const std::string url = issuer->url;
      Known& known = shared_->issuers[url];
      known.issuer = std::move(issuer);
      const auto old = before.find(url);
      if (old != before.end()) {
        const auth::JwtIssuer& was = *old->second.issuer;
        if (was.discovery() == known.issuer->discovery() && was.ca_pem == known.issuer->ca_pem) {
          known.keys = old->second.keys;
        }
      }
      if (!known.keys) fresh.push_back(url);
    }
    // Also those of issuers that are gone: they are refused, and must hear it.
    for (auto& [url, known] : before) {
      for (auto& one : known.waiting) waiting.push_back(std::move(one));
    }
  }
  for (const auto& one : waiting) shared_->runtime.executor.post(one);
  for (const std::string& url : fresh) {
    shared_->runtime.executor.post([shared = shared_, url] { fetch(shared, url); });
  }
}

void IssuerKeys::fetch_later(const std::shared_ptr<Shared>& shared, const std::string& url,
                             Duration delay) {
  runtime::TimerId before = 0;
  {
    const MutexLock lock(shared->mutex);
    const auto found = shared->issuers.find(url);
    if (shared->stopped || found == shared->issuers.end()) return;
    const std::weak_ptr<Shared> weak = shared;
    before = std::exchange(found->second.timer, shared->runtime.timers.after(delay, [weak, url] {
      if (const auto there = weak.lock()) fetch(there, url);
    }));
  }
  shared->runtime.timers.cancel(before);
}

void IssuerKeys::fetch(const std::shared_ptr<Shared>& shared, const std::string& url) {
  std::shared_ptr<const auth::JwtIssuer> issuer;
  {
    const MutexLock lock(shared->mutex);
    const auto found = shared->issuers.find(url);
    if (shared->stopped || found == shared->issuers.end()) return;
    Known& known = found->second;
    if (known.fetching) return;
    known.fetching = true;
    issuer = known.issuer;
  }
  auto keys = shared->source->fetch(*issuer);
  if (!keys.ok()) {
    log::warn("keys of an issuer cannot be had", {{"issuer", url}, {"error", keys.error()}});
  }
  std::vector<std::function<void()>> waiting;
  bool again = false;
  {
    const MutexLock lock(shared->mutex);
    const auto found = shared->issuers.find(url);
    if (found == shared->issuers.end()) return;
    Known& known = found->second;
    known.fetching = false;
    known.fetched = shared->runtime.clock.steady();
    if (known.issuer != issuer) {
      again = true;  // it was configured anew meanwhile
    } else if (keys.ok()) {
      known.keys = std::make_shared<const net::JwkSet>(std::move(keys).value());
      shared->users.clear();
    }
    again = again || !known.keys;
    waiting.swap(known.waiting);
  }
  for (const auto& one : waiting) one();
  fetch_later(shared, url, again ? kLeast : kMost);
}

Result<auth::UserInfo> IssuerKeys::authenticate(std::string_view token) {
  const Error nobody(Code::unauthorized, "");
  std::shared_ptr<const auth::JwtIssuer> issuer;
  std::shared_ptr<const net::JwkSet> keys;
  const Time now = shared_->runtime.clock.now();
  {
    const MutexLock lock(shared_->mutex);
    if (shared_->issuers.empty()) return nobody;
    if (const auto found = shared_->users.find(std::string(token)); found != shared_->users.end()) {
      if (found->second.until >= static_cast<double>(now.seconds())) return found->second.info;
      shared_->users.erase(found);
    }
  }
  const auto said = net::unverified_claims(token);
  if (!said.ok()) return nobody;
  {
    const MutexLock lock(shared_->mutex);
    const auto found = shared_->issuers.find((*said)["iss"].as_string());
    if (found == shared_->issuers.end()) return nobody;
    issuer = found->second.issuer;
    keys = found->second.keys;
  }
  if (!keys) return Error(Code::unauthorized, "oidc: authenticator not initialized");
  const auto claims = keys->verify(token, issuer->algorithms);
  if (!claims.ok()) {
    return Error(Code::unauthorized, cat("oidc: verify token: ", claims.error().message()));
  }
  DIBS_TRY(auth::UserInfo user, auth::user_of_claims(*issuer, *claims, now));
  if (token.size() > kLongestCached) return user;
  const MutexLock lock(shared_->mutex);
  const auto found = shared_->issuers.find(issuer->url);
  if (found != shared_->issuers.end() && found->second.keys == keys &&
      found->second.issuer == issuer) {
    if (shared_->users.size() >= kCachedUsers) shared_->users.clear();
    shared_->users.emplace(token, Shared::User{user, (*claims)["exp"].as_double()});
  }
  return user;
}

bool IssuerKeys::await_keys(std::string_view token, std::function<void()> done) {
  {
    const MutexLock lock(shared_->mutex);
    if (shared_->issuers.empty() || shared_->stopped) return false;
  }
  const auto said = net::unverified_claims(token);
  if (!said.ok()) return false;
  std::shared_ptr<const auth::JwtIssuer> issuer;
  std::shared_ptr<const net::JwkSet> keys;
  {
    const MutexLock lock(shared_->mutex);
    const auto found = shared_->issuers.find((*said)["iss"].as_string());
    if (found == shared_->issuers.end()) return false;
    issuer = found->second.issuer;
    keys = found->second.keys;
  }
  // Refused for another reason than its key: nothing will change that.
  if (keys) {
    const auto claims = keys->verify(token, issuer->algorithms);
    if (claims.ok() || claims.error().code() != Code::not_found) return false;
  }
  bool begins = false;
  {
    const MutexLock lock(shared_->mutex);
    const auto found = shared_->issuers.find(issuer->url);
    if (shared_->stopped || found == shared_->issuers.end()) return false;
    Known& known = found->second;
    if (known.waiting.size() >= kMostWaiting) return false;
    const bool lately =
        known.fetched != Duration(0) && shared_->runtime.clock.steady() - known.fetched < kLeast;
    if (!known.fetching && lately) return false;
    begins = !known.fetching;
    known.waiting.push_back(std::move(done));
  }
  if (begins) {
    shared_->runtime.executor.post([shared = shared_, url = issuer->url] { fetch(shared, url); });
  }
  return true;
}

}  // namespace dibs::server
