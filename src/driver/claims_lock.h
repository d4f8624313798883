#pragma once
// One prepare or unprepare at a time, in this process and, where a file is named, among all
// processes that name it: during a rolling update two instances of a driver share one node.

#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/result.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::driver {

class ClaimsLock {
 public:
  /// `path` "": this process only.
  ClaimsLock(runtime::Files& files, runtime::Runtime& runtime, std::string path);

  class Held {
   public:
    explicit Held(ClaimsLock& lock) : lock_(lock) {}
    ~Held();
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

   private:
    friend class ClaimsLock;
    ClaimsLock& lock_;
    std::unique_ptr<runtime::FileLock> file_;
  };

  /// Waits. Errors: timeout when another has it for longer than the agent would wait; conflict when
  /// the calling thread has it itself, as it can be in a simulation.
  Result<std::unique_ptr<Held>> acquire();

 private:
  Result<std::unique_ptr<Held>> enter();

  runtime::Files& files_;
  runtime::Runtime& runtime_;
  std::string path_;
  Mutex mutex_;
  CondVar left_;
  std::thread::id inside_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::driver
