#pragma once
// One thread's readiness loop over sockets, with a queue of tasks from other threads and a coarse
// tick.
//
// Sockets are registered once, edge-triggered, for both directions: a request costs no system call
// for registration. Sources run on the loop's thread only. A source that ends during a round is
// handed to retire(), so that events already fetched in that round find it alive.
//
// post() works from any thread until close(); afterwards tasks are dropped, which lets objects that
// hold the loop outlive the server without keeping a thread.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"

namespace dibs::net {

class EventLoop {
 public:
  struct Ready {
    bool in = false;
    bool out = false;
    bool peer_closed = false;  // no more bytes will come after those already here
    bool broken = false;
  };
  class Source {
   public:
    virtual ~Source() = default;
    virtual void on_ready(Ready ready) = 0;
  };
  using Task = std::function<void()>;

  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// `tick` runs on the loop about every `interval`.
  void set_tick(std::chrono::milliseconds interval, Task tick);

  /// Serves until stop(); the caller's thread becomes the loop's.
  void run();
  /// From any thread.
  void stop();
  /// After run() has returned: runs what was posted, then drops everything posted later.
  void close();

  /// False when the loop is closed; the task is dropped then.
  bool post(Task task);
  /// The same for one that takes long, such as encrypting a large piece of an answer: one a round,
  /// so that hundreds of them do not come before what is short.
  bool post_bulk(Task task);
  bool on_this_thread() const { return std::this_thread::get_id() == thread_; }

  // On the loop's thread only.
  bool add(int fd, Source* source);
  void remove(int fd);
  void retire(std::shared_ptr<void> source) { retired_.push_back(std::move(source)); }
  /// Milliseconds on the steady clock, as of the start of this round.
  std::int64_t now() const { return now_; }
  static std::int64_t steady_ms();

 private:
  void wake();
  bool post_to(Task task, bool bulk);
  void run_tasks();

  int epoll_ = -1;
  int wake_ = -1;
  std::atomic<std::thread::id> thread_;
  std::int64_t now_ = 0;
  std::chrono::milliseconds interval_{500};
  Task tick_;
  std::vector<std::shared_ptr<void>> retired_;
  std::vector<Task> running_;
  std::atomic<bool> stopping_ = false;

  Mutex mutex_;
  std::vector<Task> tasks_ DIBS_GUARDED_BY(mutex_);
  std::deque<Task> bulk_ DIBS_GUARDED_BY(mutex_);
  bool closed_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::net
