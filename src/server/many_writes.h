#pragma once
// Writes of one request, some of them under way at a time: what each waits for is mostly the disk.
//
// Every step but the commit is done by one thread at a time, one write after the other, so that
// they may share the request's context. The first refusal is the answer, and none is begun after
// it; what is under way then is still waited for.

#include <deque>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "server/objects.h"
#include "server/write.h"

namespace dibs::server {

class ManyWrites : public std::enable_shared_from_this<ManyWrites> {
 public:
  static constexpr std::size_t kAtOnce = 64;
  /// One that is not begun; null behind the last.
  using Next = std::function<Result<std::shared_ptr<Write>>()>;

  /// The context of the request must be fresh (Context::fresh), and outlive it. `forgives`: errors
  /// that are none here.
  ManyWrites(Objects& objects, Next next, std::function<bool(const Error&)> forgives);

  /// Calls `done` once, when all are through; perhaps before it returns. Errors: the first.
  void run(std::function<void(Result<>)> done);

 private:
  struct Answer {
    std::shared_ptr<Write> write;
    Result<store::Revision> revision;
  };
  void go_on();
  /// False when there is nothing to be done now.
  bool do_one();
  void begin(const std::shared_ptr<Write>& write);
  void settle(const Answer& answer);
  void note(const Error& error);

  Objects& objects_;
  const Next next_;
  const std::function<bool(const Error&)> forgives_;

  Mutex mutex_;
  bool busy_ DIBS_GUARDED_BY(mutex_) = false;  // somebody has what is below
  std::deque<Answer> answers_ DIBS_GUARDED_BY(mutex_);
  // Of whoever made it busy.
  std::function<void(Result<>)> done_;
  std::size_t open_ = 0;
  bool all_begun_ = false;
  Result<> outcome_ = success();
};

}  // namespace dibs::server
