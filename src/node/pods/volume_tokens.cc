#include "node/pods/volume_tokens.h"

#include <algorithm>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kAccounts{"", "v1", "serviceaccounts"};

}  // namespace

Result<VolumeTokens::Token> VolumeTokens::request(const Value& pod, const std::string& audience,
                                                  std::int64_t seconds) {
  const Value& metadata = pod["metadata"];
  Value spec =
      Value::object({{"audiences", audience.empty() ? Value::array() : Value::array({audience})},
                     {"expirationSeconds", static_cast<long long>(seconds)},
                     {"boundObjectRef", Value::object({{"kind", "Pod"},
                                                       {"apiVersion", "v1"},
                                                       {"name", metadata["name"]},
                                                       {"uid", metadata["uid"]}})}});
  const Value body = Value::object({{"apiVersion", "authentication.k8s.io/v1"},
                                    {"kind", "TokenRequest"},
                                    {"spec", std::move(spec)}});
  std::string_view account = pod["spec"]["serviceAccountName"].as_string();
  if (account.empty()) account = "default";
  const Time now = runtime_.clock.now();
  DIBS_TRY(
      auto answer,
      client_.call(client::make_request(
          "POST", client::path_of(kAccounts, metadata["namespace"].as_string(), account, "token"),
          body)));
  Token token;
  token.text = answer["status"]["token"].str();
  auto ends = parse_rfc3339(answer["status"]["expirationTimestamp"].as_string());
  token.ends = ends ? *ends : now + std::chrono::seconds(seconds);
  const Duration life = token.ends - now;
  const Duration keep = std::min<Duration>(life * 4 / 5, std::chrono::hours(24));
  token.renew = now + std::max<Duration>(keep, std::chrono::seconds(1));
  return token;
}

Result<std::string> VolumeTokens::get(const Value& pod, const Value& source) {
  DIBS_TRY(auto token, get_with_end(pod, source));
  return std::move(token.first);
}

Result<std::pair<std::string, Time>> VolumeTokens::get_with_end(const Value& pod,
                                                                const Value& source) {
  const std::string uid = pod["metadata"]["uid"].str();
  const std::string audience = source["audience"].str();
  const std::int64_t seconds = source["expirationSeconds"].as_int(3600);
  const std::string key = cat(seconds, ' ', audience);
  const Time now = runtime_.clock.now();
  std::optional<Token> known;
  {
    const MutexLock lock(mutex_);
    const auto tokens = tokens_.find(uid);
    if (tokens != tokens_.end()) {
      if (const auto at = tokens->second.find(key); at != tokens->second.end()) known = at->second;
    }
  }
  if (known && now < known->renew) return std::pair(known->text, known->ends);
  auto fresh = request(pod, audience, seconds);
  if (!fresh) {
    if (!known || now >= known->ends) return fresh.error();
    // Tried again soon; until then the old one serves.
    fresh = *known;
    fresh->renew = std::min(known->ends, now + std::chrono::seconds(30));
  }
  const MutexLock lock(mutex_);
  tokens_[uid][key] = *fresh;
  return std::pair(fresh->text, fresh->ends);
}

std::optional<Time> VolumeTokens::next_renewal(const std::string& pod_uid) const {
  const MutexLock lock(mutex_);
  const auto tokens = tokens_.find(pod_uid);
  if (tokens == tokens_.end()) return std::nullopt;
  std::optional<Time> first;
  for (const auto& [key, token] : tokens->second) {
    if (!first || token.renew < *first) first = token.renew;
  }
  return first;
}

void VolumeTokens::forget(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  tokens_.erase(pod_uid);
}

}  // namespace dibs::node
