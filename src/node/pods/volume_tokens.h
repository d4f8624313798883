#pragma once
// Tokens of service accounts for pods, asked for by TokenRequest, bound to their pod, and renewed
// before they end: after 80 % of their life, or a day.
//
// Kept in memory only. Thread-safe; get() blocks.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "json/value.h"
#include "runtime/runtime.h"

namespace dibs::node {

class VolumeTokens {
 public:
  /// Both must outlive it.
  VolumeTokens(client::Client& client, runtime::Runtime& runtime)
      : client_(client), runtime_(runtime) {}

  /// `source`: audience and expirationSeconds of a serviceAccountToken. A token that could not be
  /// renewed is given out until it ends.
  Result<std::string> get(const json::Value& pod, const json::Value& source);
  /// The same, with the time that it ends.
  Result<std::pair<std::string, Time>> get_with_end(const json::Value& pod,
                                                    const json::Value& source);
  /// When the first of the pod's tokens wants to be renewed.
  std::optional<Time> next_renewal(const std::string& pod_uid) const;
  void forget(const std::string& pod_uid);

 private:
  struct Token {
    std::string text;
    Time renew;
    Time ends;
  };
  Result<Token> request(const json::Value& pod, const std::string& audience, std::int64_t seconds);

  client::Client& client_;
  runtime::Runtime& runtime_;
  mutable Mutex mutex_;
  /// By pod uid, then by audience and life.
  std::map<std::string, std::map<std::string, Token>> tokens_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::node
