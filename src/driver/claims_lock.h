#pragma once
// One prepare or unprepare at a time, in this process and, where a file is named, among all
// processes that name it: during a rolling update two instances of a driver share one node.

#include <memory>
#include <mutex>
#include <string>

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
    Held(std::unique_lock<std::mutex> inside, std::unique_ptr<runtime::FileLock> outside)
        : inside_(std::move(inside)), outside_(std::move(outside)) {}

   private:
    std::unique_lock<std::mutex> inside_;
    std::unique_ptr<runtime::FileLock> outside_;
  };

  /// Waits. Errors: timeout when another process has the file for longer than the agent would wait.
  Result<std::unique_ptr<Held>> acquire();

 private:
  runtime::Files& files_;
  runtime::Runtime& runtime_;
  std::string path_;
  std::mutex mutex_;
};

}  // namespace dibs::driver
