#pragma once
// What the outside world is to a component: clock, timers, chance, a place to run.
//
// No component reads the wall clock, sleeps, starts threads or draws random numbers by itself: it
// is handed a Runtime. real_runtime.h gives the machine's, sim_runtime.h a virtual one in one
// thread, replayable from a seed.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/time.h"

namespace dibs::runtime {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
  /// Never goes back; only differences mean something.
  virtual Duration steady() const = 0;
};

class Random {
 public:
  virtual ~Random() = default;
  /// Thread-safe. The real one is cryptographically strong.
  virtual void fill(std::span<std::uint8_t> bytes) = 0;
  std::uint64_t next();
  /// Uniform in [0, bound). Requires bound > 0.
  std::uint64_t below(std::uint64_t bound);
};

/// A random version 4 UUID.
std::string make_uuid(Random& random);
/// n characters of "bcdfghjklmnpqrstvwxz2456789", as generated names end.
std::string make_suffix(Random& random, std::size_t n = 5);

using TimerId = std::uint64_t;

class Timers {
 public:
  virtual ~Timers() = default;
  /// Runs `task` once on the runtime's executor, `delay` from now.
  virtual TimerId after(Duration delay, std::function<void()> task) = 0;
  /// False when it ran already or is running now.
  virtual bool cancel(TimerId id) = 0;
};

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(std::function<void()> task) = 0;
};

struct Runtime {
  Clock& clock;
  Random& random;
  Timers& timers;
  /// May run tasks at once in several threads. A task may block.
  Executor& executor;
};

}  // namespace dibs::runtime
