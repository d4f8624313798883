#pragma once
// Bodies that are made while they are sent, so that a list of a hundred megabytes is never in
// memory as text: the next piece is made when the client has taken the last.
//
// A piece is work, and hundreds of clients may have taken their last one at once. So only a few are
// made at a time, users by turns, and each begins at the end of the executor's queue: a request of
// somebody else waits for one or two pieces, not for one of every list that is being sent. Where a
// piece waits for a webhook it has no turn, for the others not to wait as well: of those only so
// many are asked at once (conversion.h), and what is beyond is made a little later.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "net/http.h"
#include "runtime/runtime.h"

namespace dibs::server {

class Pieces {
 public:
  virtual ~Pieces() = default;
  /// Appends the next piece, at least a byte; false: it is the last one. Errors: of what the body
  /// is made of, which comes too late for the client to be told; too_many_requests, for it to be
  /// asked again.
  virtual Result<bool> next(std::string& out) = 0;
  /// To make one, a webhook may have to be waited for.
  virtual bool calls_out() const { return false; }
};

/// Lets a few tasks of all run at a time, on the executor: users take turns, each with what he
/// began first, so that it ends before the next begins to take memory. Thread-safe. Must outlive
/// its tasks.
class Turns {
 public:
  Turns(runtime::Executor& executor, unsigned at_once) : executor_(executor), at_once_(at_once) {}

  /// For what begins now, which posts one task after the other.
  std::uint64_t begin() { return begun_++; }
  void post(const std::string& user, std::uint64_t begun, std::function<void()> task);

 private:
  using Task = std::function<void()>;

  void run(const Task& task);
  /// Of the user whose turn it is; he goes to the end.
  Task take() DIBS_REQUIRES(mutex_);

  runtime::Executor& executor_;
  const unsigned at_once_;
  std::atomic<std::uint64_t> begun_{0};
  Mutex mutex_;
  unsigned running_ DIBS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::map<std::uint64_t, Task>> waiting_ DIBS_GUARDED_BY(mutex_);
  std::deque<std::string> users_ DIBS_GUARDED_BY(mutex_);  // who have something waiting
};

/// Sends all of it, in the user's turns, and ends the stream; breaks it off where a piece cannot be
/// made. `kept` lives as long as the pieces are asked for more.
void send_pieces(runtime::Runtime& runtime, Turns& turns, std::string user,
                 std::shared_ptr<net::BodyStream> stream, std::shared_ptr<Pieces> pieces,
                 std::shared_ptr<const void> kept);

}  // namespace dibs::server
