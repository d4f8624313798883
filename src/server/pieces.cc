#include "server/pieces.h"

#include <atomic>

#include "base/log.h"

namespace dibs::server {
namespace {

/// Until a webhook is tried again that has enough to do.
constexpr Duration kLater = std::chrono::milliseconds(100);

class Sender : public std::enable_shared_from_this<Sender> {
 public:
  Sender(runtime::Runtime& runtime, Turns& turns, std::string user,
         std::shared_ptr<net::BodyStream> stream, std::shared_ptr<Pieces> pieces,
         std::shared_ptr<const void> kept)
      : runtime_(runtime),
        turns_(turns),
        user_(std::move(user)),
        begun_(turns.begin()),
        stream_(std::move(stream)),
        kept_(std::move(kept)),
        pieces_(std::move(pieces)) {}

  void start() {
    stream_->on_closed([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->let_go();
    });
    stream_->on_drained([self = shared_from_this()] { self->go_on(); });
  }

 private:
  void go_on() {
    if (gone_ || busy_.exchange(true)) return;
    auto one = [self = shared_from_this()] { self->send_one(); };
    if (pieces_->calls_out()) return runtime_.executor.post(std::move(one));
    turns_.post(user_, begun_, std::move(one));
  }

  void send_one() {
    if (gone_) return;
    std::string piece;
    const auto more = pieces_->next(piece);
    if (!more.ok() && more.error().code() == Code::too_many_requests) {
      runtime_.timers.after(kLater, [self = shared_from_this()] {
        if (!self->gone_) self->runtime_.executor.post([self] { self->send_one(); });
      });
      return;
    }
    if (!more.ok()) {
      log::error("an answer was broken off", {{"error", more.error()}});
      return let_go();
    }
    if (!stream_->write(share(std::move(piece)))) return let_go();
    if (!*more) {
      let_go();
      return stream_->finish();
    }
    busy_ = false;
    // It may have drained meanwhile, with nobody left to tell.
    if (stream_->queued() == 0) go_on();
  }

  /// The stream holds this no longer: unless it is finished it breaks off, as nobody holds it then.
  void let_go() {
    gone_ = true;
    stream_->on_drained(nullptr);
  }

  runtime::Runtime& runtime_;
  Turns& turns_;
  const std::string user_;
  const std::uint64_t begun_;
  std::shared_ptr<net::BodyStream> stream_;
  std::shared_ptr<const void> kept_;
  const std::shared_ptr<Pieces> pieces_;  // by one thread at a time: who made busy_ true
  std::atomic<bool> busy_{false};
  std::atomic<bool> gone_{false};
};

}  // namespace

void Turns::post(const std::string& user, std::uint64_t begun, Task task) {
  {
    const MutexLock lock(mutex_);
    if (running_ == at_once_) {
      auto& mine = waiting_[user];
      if (mine.empty()) users_.push_back(user);
      mine.emplace(begun, std::move(task));
      return;
    }
    ++running_;
  }
  executor_.post([this, task = std::move(task)] { run(task); });
}

void Turns::run(const Task& task) {
  task();
  Task next;
  {
    const MutexLock lock(mutex_);
    if (users_.empty()) {
      --running_;
      return;
    }
    next = take();
  }
  executor_.post([this, next = std::move(next)] { run(next); });
}

Turns::Task Turns::take() {
  std::string user = std::move(users_.front());
  users_.pop_front();
  const auto found = waiting_.find(user);
  Task task = std::move(found->second.extract(found->second.begin()).mapped());
  if (found->second.empty()) {
    waiting_.erase(found);
  } else {
    users_.push_back(std::move(user));
  }
  return task;
}

void send_pieces(runtime::Runtime& runtime, Turns& turns, std::string user,
                 std::shared_ptr<net::BodyStream> stream, std::shared_ptr<Pieces> pieces,
                 std::shared_ptr<const void> kept) {
  std::make_shared<Sender>(runtime, turns, std::move(user), std::move(stream), std::move(pieces),
                           std::move(kept))
      ->start();
}

}  // namespace dibs::server
