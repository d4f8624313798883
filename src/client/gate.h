#pragma once
// Lets a component that runs on an executor end for good: after close() no task is inside it and
// none gets in, so that what its callbacks refer to may go.

#include <thread>
#include <vector>

#include "base/mutex.h"

namespace dibs::client {

class Gate {
 public:
  /// False when closed.
  bool enter();
  void leave();
  /// Waits until everybody is out, except for itself when the caller is inside.
  void close();
  bool closed() const;

 private:
  mutable Mutex mutex_;
  CondVar left_;
  std::vector<std::thread::id> inside_ DIBS_GUARDED_BY(mutex_);
  bool closed_ DIBS_GUARDED_BY(mutex_) = false;
};

/// enter() and leave() around a scope; false when closed.
class GateEntry {
 public:
  explicit GateEntry(Gate& gate) : gate_(gate), entered_(gate.enter()) {}
  ~GateEntry() {
    if (entered_) gate_.leave();
  }
  GateEntry(const GateEntry&) = delete;
  GateEntry& operator=(const GateEntry&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  Gate& gate_;
  bool entered_;
};

}  // namespace dibs::client
