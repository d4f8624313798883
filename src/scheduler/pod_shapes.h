#pragma once
// The shapes of the pods that one scheduler knows, each once. An entry without a pod goes when
// there are twice as many as were in use the last time. Thread-safe.

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "json/value.h"
#include "scheduler/pod.h"

namespace dibs::scheduler {

class PodShapes {
 public:
  PodShapes();
  ~PodShapes();
  PodShapes(const PodShapes&) = delete;
  PodShapes& operator=(const PodShapes&) = delete;

  /// The one that equal specs have.
  std::shared_ptr<const PodShape> get(std::string_view name_space, const json::Value& labels,
                                      const json::Value& spec);

 private:
  static constexpr std::size_t kFirstSweep = 256;
  struct Source;
  struct Entry;

  void sweep() DIBS_REQUIRES(mutex_);

  Mutex mutex_;
  std::unordered_multimap<std::uint64_t, std::unique_ptr<Entry>> known_ DIBS_GUARDED_BY(mutex_);
  std::size_t sweep_at_ DIBS_GUARDED_BY(mutex_) = kFirstSweep;
};

}  // namespace dibs::scheduler
