#include "store/etcd/feed.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "proto/etcd.pb.h"
#include "runtime/blocking.h"
#include "store/etcd/later.h"

namespace dibs::store::etcd {
namespace {

using namespace std::chrono_literals;

constexpr auto kPage = 10s;       // for the answer with a page
constexpr int kPageKeys = 1000;   // of a listing
constexpr auto kPatience = 20s;   // of whoever waits for a revision
constexpr auto kAskAfter = 5ms;   // most revisions are of our keys and come by themselves
constexpr auto kAskAgain = 50ms;  // a member that is behind its watchers does not answer
constexpr auto kCreate = 5s;      // for a watch to be there
/// Of history that is read again at the start. etcd gives a thousand revisions in a tenth of a
/// second.
constexpr Revision kReplay = 5'000;

}  // namespace

/// What came in on a watch and is not applied yet.
class Feed::Inbox {
 public:
  using Message = etcdserverpb::WatchResponse;

  void put(std::string_view bytes) {
    Message message;
    const bool parsed = message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
    const MutexLock lock(mutex_);
    if (parsed) {
      messages_.push_back(std::move(message));
    } else {
      ended_ = "not a message of etcd";
    }
    changed_.notify_one();
  }
  void end(const std::string& why) {
    const MutexLock lock(mutex_);
    if (ended_.empty()) ended_ = why.empty() ? "the watch ended" : why;
    changed_.notify_one();
  }
  void wake() {
    const MutexLock lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  /// All that is there, waiting for something until then. The end is told after the last message.
  std::vector<Message> take(Clock::time_point until, std::string& ended) {
    MutexLock lock(mutex_);
    changed_.wait_until(lock, until, [this]() DIBS_REQUIRES(mutex_) {
      return woken_ || !messages_.empty() || !ended_.empty();
    });
    woken_ = false;
    if (messages_.empty()) ended = ended_;
    return std::exchange(messages_, {});
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<Message> messages_ DIBS_GUARDED_BY(mutex_);
  std::string ended_ DIBS_GUARDED_BY(mutex_);
  bool woken_ DIBS_GUARDED_BY(mutex_) = false;
};

Feed::Feed(Parts parts)
    : parts_(std::move(parts)),
      reader_(parts_.mvcc.commons(), parts_.at_rest, parts_.own, parts_.stale) {}
Feed::~Feed() { stop(); }

Result<> Feed::start(std::chrono::milliseconds limit) {
  thread_ = std::thread([this] { run(); });
  const runtime::Blocking blocking;
  MutexLock lock(mutex_);
  changed_.wait_for(lock, limit, [this]() DIBS_REQUIRES(mutex_) {
    return connection_ != nullptr || parts_.client.is_hopeless();
  });
  if (connection_ == nullptr) return why_not_;
  lock.unlock();
  struct Answer {
    Mutex mutex;
    CondVar changed;
    std::optional<Result<>> result DIBS_GUARDED_BY(mutex);
  };
  auto answer = std::make_shared<Answer>();
  reach(target_, true, [answer](Result<> result) {
    const MutexLock lock(answer->mutex);
    answer->result = std::move(result);
    answer->changed.notify_one();
  });
  MutexLock waiting(answer->mutex);
  answer->changed.wait(waiting, [&]() DIBS_REQUIRES(answer->mutex) { return answer->result; });
  return *answer->result;
}

void Feed::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    if (inbox_) inbox_->wake();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::multimap<Revision, Waiter> left;
  {
    const MutexLock lock(mutex_);
    connection_ = nullptr;
    why_not_ = Error::unavailable("the store is closed");
    left.swap(waiters_);
  }
  for (auto& [revision, waiter] : left) waiter.done(Error::unavailable("the store is closed"));
}

ConnectionPtr Feed::connection() const {
  const MutexLock lock(mutex_);
  return connection_;
}

Error Feed::why_not() const {
  const MutexLock lock(mutex_);
  return why_not_;
}

bool Feed::stopping() const {
  const MutexLock lock(mutex_);
  return stopping_;
}

void Feed::publish(ConnectionPtr connection, Error why) {
  const MutexLock lock(mutex_);
  connection_ = std::move(connection);
  why_not_ = std::move(why);
  changed_.notify_all();
}

void Feed::drop(const ConnectionPtr& connection, const std::string& why) {
  const MutexLock lock(mutex_);
  if (connection_ != connection) return;
  connection_ = nullptr;
  why_not_ = Error::unavailable(cat("etcd ", connection->endpoint(), ": ", why));
  if (inbox_) inbox_->end(why);
}

// --- the thread ---

void Feed::run() {
  int failures = 0;
  while (!stopping()) {
    auto connected = parts_.client.connect(parts_.mvcc.revision());
    Error why = connected.ok() ? follow(*connected) : connected.error();
    // A watch that had begun is a success, however it ended.
    const bool had_begun = std::exchange(begun_, false);
    failures = had_begun ? 0 : failures + 1;
    if (!stopping()) {
      log::warn(had_begun ? "lost the connection to etcd" : "cannot connect to etcd",
                {{"error", why}});
    }
    publish(nullptr, std::move(why));
    (void)serve_waiters();
    if (!had_begun) pause(pause_before(failures));
  }
}

void Feed::pause(std::chrono::milliseconds how_long) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, how_long, [this]() DIBS_REQUIRES(mutex_) { return stopping_; });
}

Error Feed::follow(const ConnectionPtr& connection) {
  const auto failed = [&](const std::string& why) {
    return Error::unavailable(cat("etcd ", connection->endpoint(), ": ", why));
  };
  if (!loaded_) {
    if (auto loaded = load(*connection); !loaded.ok()) return failed(loaded.error().message());
    loaded_ = true;
  }
  while (true) {
    auto inbox = std::make_shared<Inbox>();
    {
      const MutexLock lock(mutex_);
      inbox_ = inbox;
    }
    const auto watch = connection->open_watch(
        {.message = [inbox](std::string_view bytes) { inbox->put(bytes); },
         .ended = [inbox](const rpc::Status& status) { inbox->end(status.message); }});
    etcdserverpb::WatchRequest request;
    auto& create = *request.mutable_create_request();
    create.set_key(parts_.keys.first());
    create.set_range_end(parts_.keys.end());
    create.set_start_revision(parts_.mvcc.revision() + 1);
    create.set_progress_notify(connection->tells_progress());
    watch->write(request.SerializeAsString());
    const Error ended = take_messages(connection, *inbox, *watch);
    if (ended.code() != Code::expired) return failed(ended.message());
    publish(nullptr, failed("history is missing: listing everything again"));
    if (auto listed = list_again(*connection); !listed.ok()) {
      return failed(listed.error().message());
    }
  }
}

Error Feed::take_messages(const ConnectionPtr& connection, Inbox& inbox, rpc::TwoWayStream& watch) {
  bool created = false;
  const auto must_be_there = Clock::now() + kCreate;
  while (true) {
    if (stopping()) return Error::unavailable("the store is closed");
    std::string ended;
    const auto messages = inbox.take(Clock::now() + (wants_progress() ? kAskAfter : 1000ms), ended);
    if (!ended.empty()) return Error::unavailable(ended);
    const Revision before = parts_.mvcc.revision();
    Digest digest({parts_.keys, reader_, apart_, connection->tells_progress()}, before);
    std::string fault;
    for (const auto& message : messages) {
      const auto same = parts_.client.check(message.header().cluster_id(), 0, 0);
      if (!same.ok()) fault = same.error().message();
      if (!same.ok() || !digest.add(message)) break;
    }
    if (digest.reached() > before) {
      parts_.mvcc.apply(digest.take_changes(), digest.reached()).fire();
    }
    if (digest.was_created()) {
      created = true;
      begun_ = true;
      publish(connection, Error::unavailable("etcd: no connection"));
    }
    if (!serve_waiters()) return Error::unavailable("its watch does not show what was written");
    if (digest.is_expired()) return Error::expired(digest.fault());
    if (fault.empty()) fault = digest.fault();
    if (fault.empty() && !created && Clock::now() > must_be_there) fault = "no watch in time";
    if (!fault.empty()) return Error::unavailable(fault);
    if (created && wants_progress()) ask_progress(connection, watch);
    if (const Revision due = parts_.mvcc.compaction_due(); due != 0) {
      (void)parts_.mvcc.compact(due);  // cannot fail: the revision is of the history
    }
  }
}

// --- reading everything ---

template <typename Visit>
Result<Revision> Feed::read_all(const Connection& connection, Revision at, const Visit& visit) {
  etcdserverpb::RangeRequest request;
  request.set_key(parts_.keys.first());
  request.set_range_end(parts_.keys.end());
  request.set_limit(kPageKeys);
  request.set_revision(at);
  while (!stopping()) {
    const rpc::Reply reply =
        connection.call_and_wait("/etcdserverpb.KV/Range", request.SerializeAsString(), kPage);
    if (!reply.status.ok()) return error_of(fault_of(reply.status), reply.status);
    etcdserverpb::RangeResponse answer;
    if (!answer.ParseFromString(reply.bytes)) return Error::unavailable("not a message of etcd");
    DIBS_CHECK(parts_.client.check(answer.header().cluster_id(), answer.header().revision(),
                                   request.revision()));
    // The first page decides of what state all are.
    if (request.revision() == 0) request.set_revision(answer.header().revision());
    for (const auto& kv : answer.kvs()) {
      auto place = parts_.keys.in_memory(kv.key());
      if (place) visit(std::move(*place), kv);
    }
    if (!answer.more() || answer.kvs().empty()) return request.revision();
    request.set_key(answer.kvs().rbegin()->key() + '\0');
  }
  return Error::unavailable("the store is closed");
}

/// The oldest state that can be read, but not too old.
Result<Revision> Feed::oldest_revision(const Connection& connection) {
  etcdserverpb::RangeRequest probe;
  probe.set_key(parts_.keys.probe());
  probe.set_keys_only(true);
  const auto ask = [&](Revision at) -> Result<Revision> {
    probe.set_revision(at);
    const rpc::Reply reply =
        connection.call_and_wait("/etcdserverpb.KV/Range", probe.SerializeAsString(), kPage);
    if (!reply.status.ok()) return error_of(fault_of(reply.status), reply.status);
    etcdserverpb::RangeResponse answer;
    if (!answer.ParseFromString(reply.bytes)) return Error::unavailable("not a message of etcd");
    return Revision{answer.header().revision()};
  };
  DIBS_TRY(const Revision current, ask(0));
  target_ = current;
  // etcd does not say up to where it is compacted, only whether a revision is.
  Revision low = std::max(current - kReplay, Revision{1});
  Revision high = current;
  while (low < high) {
    const Revision middle = low + (high - low) / 2;
    auto answered = ask(middle);
    if (answered.ok()) {
      high = middle;
    } else if (answered.error().code() == Code::expired) {
      low = middle + 1;
    } else {
      return answered.error();
    }
  }
  return high;
}

Result<> Feed::load(const Connection& connection) {
  DIBS_TRY(const Revision at, oldest_revision(connection));
  std::vector<std::pair<Keys::Place, RecordPtr>> records;
  DIBS_CHECK(read_all(connection, at, [&](Keys::Place place, const etcdserverpb::KeyValue& kv) {
    auto made = reader_.record(place.key, kv);
    records.emplace_back(std::move(place), std::move(made));
  }));
  parts_.mvcc.start_at(at);
  std::vector<Garbage> none;
  for (auto& [place, record] : records) {
    apart_.set(place.key, place.apart);
    Change change;
    change.revision = record->modified;
    change.now = std::move(record);
    parts_.mvcc.load(std::move(change), none);
  }
  return success();
}

Result<> Feed::list_again(const Connection& connection) {
  std::vector<Change> changes;
  std::set<std::string, std::less<>> there;
  DIBS_TRY(const Revision at,
           read_all(connection, 0, [&](Keys::Place place, const etcdserverpb::KeyValue& kv) {
             apart_.set(place.key, place.apart);
             const RecordPtr known = parts_.mvcc.get(place.key);
             if (!known || known->modified != kv.mod_revision()) {
               Change change;
               change.revision = kv.mod_revision();
               change.now = reader_.record(place.key, kv);
               changes.push_back(std::move(change));
             }
             there.insert(std::move(place.key));
           }));
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.revision < b.revision; });
  DIBS_TRY(const Listing before, parts_.mvcc.range({}));
  for (const RecordPtr& record : before.records) {
    if (there.contains(record->key)) continue;
    Change change;
    change.revision = at;
    change.removed = record->key;
    apart_.set(change.removed, false);
    changes.push_back(std::move(change));
  }
  log::warn("etcd has forgotten history that was not read yet: everything was listed again",
            {{"revision", at}, {"changes", changes.size()}});
  jumped_ = at;
  parts_.mvcc.jump(std::move(changes), at).fire();
  (void)serve_waiters();
  return success();
}

// --- who waits for a revision ---

void Feed::reach(Revision revision, bool ask, std::function<void(Result<>)> done) {
  {
    const MutexLock lock(mutex_);
    if (!stopping_ && parts_.mvcc.revision() < revision) {
      const auto now = Clock::now();
      waiters_.emplace(revision, Waiter{ask ? now + kAskAfter : Clock::time_point::max(),
                                        now + kPatience, std::move(done)});
      if (ask && inbox_) inbox_->wake();
      return;
    }
  }
  if (parts_.mvcc.revision() >= revision) return done(success());
  done(Error::unavailable("the store is closed"));
}

bool Feed::serve_waiters() {
  std::vector<std::pair<std::function<void(Result<>)>, bool>> due;
  {
    const MutexLock lock(mutex_);
    if (waiters_.empty()) return true;
    const auto reached = waiters_.upper_bound(parts_.mvcc.revision());
    for (auto at = waiters_.begin(); at != reached; ++at) {
      due.emplace_back(std::move(at->second.done), true);
    }
    waiters_.erase(waiters_.begin(), reached);
    const auto now = Clock::now();
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      if (at->second.until > now) {
        ++at;
        continue;
      }
      due.emplace_back(std::move(at->second.done), false);
      at = waiters_.erase(at);
    }
  }
  bool in_time = true;
  for (auto& [done, reached] : due) {
    done(reached ? success() : Error::timeout("etcd: its watch does not come up to the write"));
    in_time = in_time && reached;
  }
  return in_time;
}

bool Feed::wants_progress() {
  const MutexLock lock(mutex_);
  return std::any_of(waiters_.begin(), waiters_.end(), [&](const auto& entry) {
    return entry.second.asks != Clock::time_point::max();
  });
}

void Feed::ask_progress(const ConnectionPtr& connection, rpc::TwoWayStream& watch) {
  const auto now = Clock::now();
  {
    const MutexLock lock(mutex_);
    if (std::none_of(waiters_.begin(), waiters_.end(),
                     [&](const auto& entry) { return entry.second.asks <= now; })) {
      return;
    }
  }
  if (now - asked_ < kAskAgain) return;
  asked_ = now;
  if (connection->tells_progress()) {
    etcdserverpb::WatchRequest request;
    request.mutable_progress_request();
    watch.write(request.SerializeAsString());
    return;
  }
  etcdserverpb::PutRequest marker;
  marker.set_key(parts_.keys.marker());
  connection->call("/etcdserverpb.KV/Put", marker.SerializeAsString(), kCreate,
                   [](const rpc::Reply&) {});
}

}  // namespace dibs::store::etcd
