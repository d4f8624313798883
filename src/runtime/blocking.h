#pragma once
// A task that waits for another thread says so, while one of these lives.
//
// The pool behind RealRuntime keeps as many threads running as there are cores; a thread that waits
// does not count, and another one goes on with what is queued. A task that waits without a word
// costs the others a millisecond or more, until the pool notices. On threads that are not of a pool
// it does nothing.

namespace dibs::runtime {

class Blocking {
 public:
  Blocking();
  ~Blocking();
  Blocking(const Blocking&) = delete;
  Blocking& operator=(const Blocking&) = delete;
};

}  // namespace dibs::runtime
