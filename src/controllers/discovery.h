#pragma once
// Which resources the server serves at this moment, custom ones included.
//
// Namespace deletion and the garbage collector work on everything there is, so they cannot name
// their resources; other controllers ask which version of a group to speak.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/release.h"
#include "base/result.h"
#include "base/time.h"
#include "client/client.h"

namespace dibs::controllers {

struct ServedResource {
  client::Gvr gvr;
  std::string kind;
  bool namespaced = false;
  std::vector<std::string> verbs;

  bool can(std::string_view verb) const;
};

/// Thread-safe.
class Discovery {
 public:
  /// Asks the server. What was known before stays when that fails.
  Result<> refresh(client::Client& client);
  /// The same for who looks for a kind that anybody may have named, for it may be new: asks the
  /// server now and then, however many look. `now` is steady.
  Result<> refresh_at_times(client::Client& client, Duration now);

  /// One version of each resource, the one that the server names first.
  std::vector<ServedResource> resources() const;
  bool serves(std::string_view group, std::string_view resource) const;
  /// The resource in the first version that has it.
  std::optional<ServedResource> find(std::string_view group, std::string_view resource) const;
  /// The resource in that very version.
  std::optional<ServedResource> find(const client::Gvr& gvr) const;
  /// The release that the server says it is, by its minor number; the newest where it says nothing.
  int release() const;
  /// Any served version: an owner may be named by an old one.
  std::optional<ServedResource> find_kind(std::string_view api_version,
                                          std::string_view kind) const;

 private:
  using All = std::vector<ServedResource>;
  std::shared_ptr<const All> all() const;

  mutable Mutex mutex_;
  std::shared_ptr<const All> all_ DIBS_GUARDED_BY(mutex_) = std::make_shared<const All>();
  int release_ DIBS_GUARDED_BY(mutex_) = kNewestRelease;
  std::optional<Duration> asked_ DIBS_GUARDED_BY(mutex_);  // by refresh_at_times()
};

/// "apps" of "apps/v1", "" of "v1".
std::string_view group_of(std::string_view api_version);

}  // namespace dibs::controllers
