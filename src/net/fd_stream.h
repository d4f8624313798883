#pragma once
// A pipe, a terminal or a socket on an event loop, both ways: no thread waits for its bytes.
//
// What is written waits here until the descriptor takes it, however long; who writes looks at
// queued() and holds back its own source. What comes is handed on until hold(true), and the other
// side then waits in the kernel.
//
// All functions are for any thread, and return at once. Handlers are called on the loop's thread,
// one at a time, and must not wait.

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/mutex.h"
#include "net/event_loop.h"

namespace dibs::net {

class FdStream final : public EventLoop::Source, public std::enable_shared_from_this<FdStream> {
 public:
  struct Handlers {
    /// Without these two it is only written to.
    std::function<void(std::string_view bytes)> data = {};
    /// Once: no bytes come any more, by the other side, or by close().
    std::function<void(bool by_peer)> ended = {};
    /// All that was written has been taken.
    std::function<void()> drained = {};
  };

  /// Takes the descriptor over and makes it non-blocking. `packet`: of a socket of packets, the
  /// most bytes of one. Null when the loop has ended.
  static std::shared_ptr<FdStream> open(std::shared_ptr<EventLoop> loop, int fd, Handlers handlers,
                                        std::size_t packet = 0);
  ~FdStream() override;

  /// Dropped once the other side takes no more.
  void write(std::string_view bytes);
  std::size_t queued() const { return queued_; }
  /// Of errno, why nothing comes any more; 0 for a proper end. To be asked in or after `ended`.
  int error() const { return error_; }
  /// The other side sees an end after what is queued. The descriptor of a pipe closes then.
  void finish();
  void hold(bool held);
  /// What has come by now is the last: whoever else holds the other end is not waited for.
  void end_of_input();
  void close();

 private:
  FdStream(std::shared_ptr<EventLoop> loop, int fd, Handlers handlers, std::size_t packet);
  void on_ready(EventLoop::Ready ready) override;
  void post(std::function<void(FdStream&)> task);
  void read();
  void end(bool by_peer);
  void flush();
  void shut();

  const std::shared_ptr<EventLoop> loop_;
  const bool is_socket_;
  const std::size_t packet_;
  const bool reads_;
  std::atomic<std::size_t> queued_ = 0;
  // On the loop's thread.
  int fd_;
  Handlers handlers_;
  std::string output_;
  bool finishing_ = false;
  bool deaf_ = false;  // the other side takes no more
  bool held_ = false;
  bool last_ = false;
  bool ended_ = false;
  int error_ = 0;
  std::shared_ptr<FdStream> self_;  // while the loop knows it
};

/// A loop with a thread of its own, which begins at the first use and ends with this.
class LoopThread {
 public:
  LoopThread() : loop_(std::make_shared<EventLoop>()) {}
  ~LoopThread();
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  const std::shared_ptr<EventLoop>& loop();

 private:
  const std::shared_ptr<EventLoop> loop_;
  Mutex mutex_;
  std::thread thread_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::net
