#include "server/token_tracking.h"

#include "base/log.h"
#include "base/strings.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr std::string_view kSince = "since";
constexpr std::string_view kLastUsed = "kubernetes.io/legacy-token-last-used";

/// "2006-01-02", by UTC.
std::string day_of(Time time) { return format_rfc3339(time).substr(0, 10); }

}  // namespace

Value token_tracking_object(Time now) {
  return Value::object(
      {{"metadata", Value::object({{"name", "kube-apiserver-legacy-service-account-token-tracking"},
                                   {"namespace", "kube-system"}})},
       {"data", Value::object({{kSince, day_of(now)}})}});
}

Value token_tracking_mended(const Value& there, const Value& wanted, Time) {
  const std::string_view since = there["data"][kSince].as_string();
  if (parse_rfc3339(cat(since, "T00:00:00Z")).ok()) return {};
  Value next = there;
  if (!next["data"].is_object()) next.set("data", Value::object());
  next.mut("data").set(kSince, wanted["data"][kSince]);
  return next;
}

void note_token_use(store::Store& store, const Resource& secrets, const Value& secret, Time now) {
  const std::string today = day_of(now);
  const std::string_view last = secret["metadata"]["labels"][kLastUsed].as_string();
  // Another server's clock may be ahead.
  if (last == today || last == day_of(now + std::chrono::hours(24))) return;
  const std::string key = secrets.key(secret["metadata"]["namespace"].as_string(),
                                      secret["metadata"]["name"].as_string());
  const auto record = store.get(key);
  if (!record) return;
  auto there = decode_stored(*record);
  if (!there.ok() || (*there)["metadata"]["uid"] != secret["metadata"]["uid"]) return;
  Value& metadata = there->mut("metadata");
  if (!metadata["labels"].is_object()) metadata.set("labels", Value::object());
  metadata.mut("labels").set(kLastUsed, today);
  store.commit_async({{key, share(encode_stored(*there)), record->modified}},
                     [key](const Result<store::Revision>& written) {
                       if (written.ok() || written.error().code() == Code::conflict) return;
                       log::warn("use of a token not written down",
                                 {{"secret", key}, {"error", written.error().message()}});
                     });
}

}  // namespace dibs::server
