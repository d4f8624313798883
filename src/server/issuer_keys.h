#pragma once
// The keys of issuers outside of the cluster, and who somebody is by their tokens.
//
// Keys are fetched in the background, never on the thread that asks: at first until they are there,
// then when a token is signed by one that is not known, at most every ten seconds for an issuer,
// and once an hour. A request whose token may be good after that can wait for it (await_keys).
//
// Thread-safe. stop() must precede destruction.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "net/jwt.h"
#include "runtime/runtime.h"
#include "server/auth/issuers.h"

namespace dibs::server {

/// How an issuer is asked for its keys.
class KeySource {
 public:
  virtual ~KeySource() = default;
  /// May block. Errors: whatever went wrong, for the log.
  virtual Result<net::JwkSet> fetch(const auth::JwtIssuer& issuer) = 0;
};
std::shared_ptr<KeySource> make_key_source();

class IssuerKeys {
 public:
  IssuerKeys(runtime::Runtime& runtime, std::shared_ptr<KeySource> source);
  ~IssuerKeys() { stop(); }
  void stop();

  /// From now on these. Keys of an issuer that is as it was are kept.
  void configure(std::vector<std::shared_ptr<const auth::JwtIssuer>> issuers);

  /// Whom the token speaks of. Errors: unauthorized; its message is empty for a token of no issuer
  /// that is known here.
  Result<auth::UserInfo> authenticate(std::string_view token);

  /// True where keys are on their way that may have signed the token: then `done` is called once,
  /// on the executor, when they are there or cannot be had.
  bool await_keys(std::string_view token, std::function<void()> done);

 private:
  struct Known {
    std::shared_ptr<const auth::JwtIssuer> issuer;
    std::shared_ptr<const net::JwkSet> keys = {};  // null: none yet
    bool fetching = false;
    Duration fetched{0};         // steady time of the last try
    runtime::TimerId timer = 0;  // of the next one
    std::vector<std::function<void()>> waiting = {};
  };
  struct Shared;

  static void fetch(const std::shared_ptr<Shared>& shared, const std::string& url);
  static void fetch_later(const std::shared_ptr<Shared>& shared, const std::string& url,
                          Duration delay);

  /// Outlives this while a fetch runs.
  std::shared_ptr<Shared> shared_;
};

}  // namespace dibs::server
