#pragma once
// What pods take of the disk, for those who only want to know: measured when somebody asks, and not
// again for a minute. Thread-safe; blocks.

#include <map>
#include <string>

#include "base/mutex.h"
#include "base/time.h"
#include "node/pods/storage_usage.h"
#include "runtime/runtime.h"

namespace dibs::node {

class StorageCache {
 public:
  /// All must outlive it.
  StorageCache(runtime::Runtime& runtime, ContainerRuntime& containers, const NodeFacts& facts,
               std::string log_root);

  PodUsage of(const json::Value& pod);

 private:
  struct Entry {
    Duration at{0};
    PodUsage usage = {};
  };

  runtime::Runtime& runtime_;
  ContainerRuntime& containers_;
  const NodeFacts& facts_;
  const std::string log_root_;
  Mutex measuring_;  // one at a time; taken before the next one
  Mutex mutex_;
  std::map<std::string, Entry> entries_ DIBS_GUARDED_BY(mutex_);  // by the pod's uid
};

}  // namespace dibs::node
