#pragma once
// Something that runs in one of several processes: in the one that leads.
//
// Thread-safe.

#include <functional>
#include <memory>

#include "driver/controller.h"
#include "driver/plugin.h"

namespace dibs::driver {

class Leader {
 public:
  /// What is begun ends when it is dropped. May be called again after it ended.
  using Begin = std::function<std::shared_ptr<void>()>;

  /// Without leader election begun at once. What the environment refers to must outlive it.
  static std::unique_ptr<Leader> start(const Environment& environment,
                                       const ControllerOptions& options, Begin begin);
  /// As stop().
  ~Leader();
  Leader(const Leader&) = delete;
  Leader& operator=(const Leader&) = delete;

  /// Asks what runs; false while another process leads.
  bool is_so(const std::function<bool(void* running)>& question) const;
  /// It ends before the lease is given back.
  void stop();

 private:
  Leader();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::driver
