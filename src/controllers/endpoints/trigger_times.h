#pragma once
// When what made an endpoint object change happened: the annotation
// endpoints.kubernetes.io/last-change-trigger-time, from which others measure how long a change
// takes to reach them.
//
// It is the earliest change that was not seen at the last look: of a pod's readiness, or the
// Service's creation. Thread-safe; the same Service is not looked at twice at a time.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "controllers/controller.h"

namespace dibs::controllers {

class TriggerTimes {
 public:
  /// Must be called at every look, also where nothing is written. Nothing: no new cause.
  std::optional<Time> look(const std::string& key, const Value& service,
                           const std::vector<Value>& pods);
  void forget(const std::string& key);

 private:
  using Seen = std::map<std::string, Time, std::less<>>;  // by pod
  Mutex mutex_;
  std::map<std::string, Seen> services_ DIBS_GUARDED_BY(mutex_);
};

/// Sets the annotation, or takes it away.
void set_trigger_time(Value& object, const std::optional<Time>& time);

}  // namespace dibs::controllers
