#pragma once
// One watch: where it stands in the history, what it is still to be sent of the state that it began
// with, and the socket or the caller that takes its events.
//
// Whatever sends is called from tasks of its owner, Watches (watching.h), one at a time. Where a
// webhook converts, each step waits for that: such a stream has a task of its own, which holds no
// lock while the webhook is asked (watch_converting.cc).

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "server/event_lines.h"
#include "server/initial_state.h"
#include "server/list_options.h"
#include "server/selection.h"
#include "server/watching.h"

namespace dibs::server {

inline constexpr std::size_t kWatchBatch = 128;
inline constexpr std::size_t kWatchQueuedBytes = 1 << 20;
// Of the state at the start a little at a time: there may be a thousand who want it.
inline constexpr std::size_t kWatchInitialBytes = 64 * 1024;

class WatchStream : public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(Watches& owner, std::shared_ptr<Context> context, ListOptions options,
              Selection selection);

  /// Sends through `events`, where the client takes those, and through `body`, which may be the
  /// same stream.
  void start(std::shared_ptr<net::BodyStream> body, std::shared_ptr<calls::EventStream> events);

  /// True until it has got the state that it begins with.
  bool is_starting() const { return starting_; }
  bool waits_for_state();
  /// Equal for those that begin with the same.
  const std::string& begins_with() const { return begins_with_; }
  Result<std::shared_ptr<InitialState>> read_state() const;
  void adopt(const Result<std::shared_ptr<InitialState>>& state);

  /// Sends of the state at the start what the socket has room for. Called from the owner's tasks.
  void send_initial();
  /// Sends what there is. Called from the owner's task, one at a time.
  void pump();
  /// Sends what there is, and ends.
  void end();
  void stop(bool properly);

  bool is_under(const std::string& prefix) const { return resource().storage_prefix == prefix; }

  /// Every step of it waits for a webhook, so it has a task of its own.
  bool calls_out() const { return resource().conversion != nullptr; }
  /// True for whoever is to post that task; one that runs goes round once more.
  bool take_turn() { return turn_.exchange(Turn::again) == Turn::none; }
  void run_alone();

 private:
  using Served = std::map<const store::Record*, Value>;

  const Resource& resource() const { return *context_->resource; }
  Error too_old() const;
  void begin();
  /// Where the selection names one object, and can say where it lies, changes of others wake
  /// nobody.
  std::string prefix() const;
  /// Whatever happens after that revision.
  void follow(store::Revision from) DIBS_REQUIRES(mutex_);
  /// The stream began before its fault was known, so the fault is an event.
  void fail(const Error& error);

  void arm_timers();
  static void regular_bookmark(WatchStream& self);
  void after(Duration delay, void (*what)(WatchStream&));
  void bookmark();
  void write_bookmark(store::Revision revision, bool initial_end) DIBS_REQUIRES(mutex_);
  Context copy_for_bookmark() const;

  bool may_match(std::string_view key) const;
  /// False when the client is gone.
  bool send(const store::Event& event, const Served* served = nullptr) DIBS_REQUIRES(mutex_);
  /// What the event is to this client; nothing when it does not concern it.
  std::optional<Change> change_of(const store::Event& event, const Served* served) const;
  bool matches(const store::Record& record, const Served* served) const;

  // Where a webhook converts (watch_converting.cc).
  void send_initial_converted();
  void pump_converted();
  void give_up_seat();
  bool is_put_off();
  /// Goes on when fewer wait for the webhook: whoever watches is not to begin anew for that.
  void try_later();
  /// The objects of events as a webhook converts them, in one call, unless it has done so for
  /// somebody else who watches.
  Result<Served> converted(const std::vector<store::EventPtr>& events) const;

  Watches& owner_;
  std::shared_ptr<Context> context_;
  ListOptions options_;
  Selection selection_;
  std::optional<std::string> name_;
  std::uint64_t form_ = 0;
  std::string begins_with_;
  std::shared_ptr<net::BodyStream> body_;
  std::shared_ptr<calls::EventStream> events_;  // null: the client takes bytes

  Mutex mutex_;
  std::unique_ptr<store::Watch> watch_ DIBS_GUARDED_BY(mutex_);
  std::vector<runtime::TimerId> timers_ DIBS_GUARDED_BY(mutex_);
  std::atomic<bool> starting_ = false;
  std::shared_ptr<InitialState> initial_ DIBS_GUARDED_BY(mutex_);  // until it is sent
  std::size_t next_piece_ DIBS_GUARDED_BY(mutex_) = 0;
  store::Revision initial_bookmark_ DIBS_GUARDED_BY(mutex_) = 0;
  store::Revision known_ DIBS_GUARDED_BY(mutex_) = 0;
  store::Revision skip_until_ DIBS_GUARDED_BY(mutex_) = 0;
  bool first_ DIBS_GUARDED_BY(mutex_) = false;  // the first event of a Table carries its columns
  bool ended_ DIBS_GUARDED_BY(mutex_) = false;
  std::vector<store::EventPtr> put_off_ DIBS_GUARDED_BY(mutex_);  // to be converted later
  bool waits_ DIBS_GUARDED_BY(mutex_) = false;                    // until then
  /// Of the task of one that calls out.
  enum class Turn : char { none, runs, again };
  std::atomic<Turn> turn_ = Turn::none;
  std::atomic<bool> ends_ = false;
};

}  // namespace dibs::server
