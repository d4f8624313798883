#pragma once
// Signals that come before a process is ready, and ends that take too long.
//
// Who waits for his end by sigwait() blocks its signals before the first thread, so that none of
// them takes one. Until he waits somebody has to listen: a start may be asking a server that is
// silent.

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/time.h"

namespace dibs::runtime {

/// While it lives, each of `signals` ends the process, with the status 128 and its number, after
/// `last` is done. The thread that makes it has blocked them. Where it goes within `patience` of
/// the signal, whoever waits next gets the signal, and the end is as clean as any.
class Interruption {
 public:
  Interruption(const std::vector<int>& signals, Duration patience, std::function<void()> last);
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

/// While it lives, the process has `patience` to end by itself. Then it ends at once, with
/// `status`, after `last` is done.
class LastMoment {
 public:
  LastMoment(Duration patience, int status, std::function<void()> last);
  ~LastMoment();
  LastMoment(const LastMoment&) = delete;
  LastMoment& operator=(const LastMoment&) = delete;

 private:
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace dibs::runtime
