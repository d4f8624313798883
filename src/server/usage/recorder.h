#pragma once
// Records who holds which devices, and answers how much that was: GET /dibs/usage (docs/usage.md).
//
// It follows the claims of the store, so what it does is per change of a claim, and what it says is
// what this server has seen. What was held when the server ended goes on when it is back, or ends
// when it was last seen; a claim that was allocated meanwhile has held its devices since then.
//
// Thread-safe. Runs from start() to stop(). Requests wait for nothing but each other: the disk is
// written by a task of the executor, a moment after the changes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/mutex.h"
#include "runtime/runtime.h"
#include "server/context.h"
#include "server/plugins/store_follower.h"
#include "server/resource.h"
#include "server/usage/log.h"
#include "server/usage/query.h"
#include "server/wakes.h"
#include "store/store.h"

namespace dibs::server {

class UsageRecorder {
 public:
  UsageRecorder(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources,
                std::string folder, UsageLimits limits = {});
  ~UsageRecorder() { stop(); }

  /// A folder that cannot be used is told in the log and to whoever asks.
  void start();
  /// Writes what is known; claims go on.
  void stop();

  /// Of a request whose sender may list claims. Errors: bad_request, unavailable.
  Result<Response> answer(const Context& context);

 private:
  std::int64_t now() const;
  Result<> catch_up() DIBS_REQUIRES(mutex_);
  /// Where the clock was set, what is held ends by the old time and goes on by the new one.
  void mind_clock() DIBS_REQUIRES(mutex_);
  void follow(std::string_view plural, std::unique_ptr<StoreFollower>& follower)
      DIBS_REQUIRES(mutex_);
  void take_claim(const std::string& key, const store::Record* now) DIBS_REQUIRES(mutex_);
  void change(const std::string& key, std::string holding, std::int64_t began)
      DIBS_REQUIRES(mutex_);
  void end_unseen() DIBS_REQUIRES(mutex_);
  /// Looks soon, on the executor.
  void wake();
  /// The next look that comes without being woken.
  void schedule();
  void look(bool syncs);

  runtime::Runtime& runtime_;
  store::Store& store_;
  ResourceTable& resources_;
  UsageLog log_;

  Wakes wakes_;
  Mutex woken_mutex_;
  /// When the first change came that nobody has looked at.
  std::optional<std::int64_t> woken_ DIBS_GUARDED_BY(woken_mutex_);

  Mutex flush_mutex_;  // of the file; before `mutex_`
  Mutex mutex_;
  runtime::TimerId timer_ DIBS_GUARDED_BY(mutex_) = 0;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
  Result<> usable_ DIBS_GUARDED_BY(mutex_) = Error::unavailable("usage is not recorded yet");
  bool failing_ DIBS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<StoreFollower> claims_ DIBS_GUARDED_BY(mutex_);
  std::unique_ptr<StoreFollower> slices_ DIBS_GUARDED_BY(mutex_);
  DeviceShares shares_ DIBS_GUARDED_BY(mutex_);
  UsageHolds held_ DIBS_GUARDED_BY(mutex_);
  std::int64_t changed_ DIBS_GUARDED_BY(mutex_) = 0;        // when what is taken in now happened
  std::int64_t known_ DIBS_GUARDED_BY(mutex_) = 0;          // everything is, up to then
  std::optional<Duration> steady_ DIBS_GUARDED_BY(mutex_);  // when that was; of this process
  std::int64_t marked_ DIBS_GUARDED_BY(mutex_) = 0;         // the log has heard of that
  /// While all claims are told anew: those that are still there.
  std::optional<std::unordered_set<std::string>> seen_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::server
