#pragma once
// Tells at once when a container has ended, without asking again and again.
//
// A container's monitor writes a file named as the container when it has ended; should the monitor
// itself be killed, its end is seen too. One task of the executor waits for both.

#include <functional>
#include <map>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "runtime/processes.h"
#include "runtime/runtime.h"

namespace dibs::node {

class ExitWatcher {
 public:
  /// `ended` gets the container's id; `lost` says that its monitor is gone. It may come twice, and
  /// for ids that are no container's.
  ExitWatcher(std::string folder, runtime::Executor& executor,
              std::function<void(const std::string& id, bool lost)> ended);
  /// Waits for a call in progress.
  ~ExitWatcher();
  ExitWatcher(const ExitWatcher&) = delete;
  ExitWatcher& operator=(const ExitWatcher&) = delete;

  Result<> start();
  void watch_monitor(const std::string& id, int pid);

 private:
  void loop();
  void read_folder_events();
  void end_of_monitor(int fd);

  const std::string folder_;
  runtime::Executor& executor_;
  const std::function<void(const std::string&, bool)> ended_;
  runtime::Fd poll_;
  runtime::Fd folder_events_;
  runtime::Fd stop_;
  Mutex mutex_;
  CondVar stopped_;
  bool running_ DIBS_GUARDED_BY(mutex_) = false;
  std::map<int, std::pair<std::string, runtime::Fd>> monitors_
      DIBS_GUARDED_BY(mutex_);  // by descriptor
};

}  // namespace dibs::node
