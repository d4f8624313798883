#include "controllers/endpoints/trigger_times.h"

#include <algorithm>
#include <utility>

#include "controllers/endpoints/endpoint_objects.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {

std::optional<Time> TriggerTimes::look(const std::string& key, const Value& service,
                                       const std::vector<Value>& pods) {
  Seen now;
  for (const Value& pod : pods) {
    if (const Time since = pod_ready_since(pod); since != Time{}) now.emplace(name_of(pod), since);
  }
  const MutexLock lock(mutex_);
  const auto found = services_.find(key);
  if (found == services_.end()) {
    services_.emplace(key, std::move(now));
    return created_at(service);
  }
  std::optional<Time> earliest;
  for (const auto& [pod, time] : now) {
    const auto before = found->second.find(pod);
    if (before != found->second.end() && time <= before->second) continue;
    earliest = earliest ? std::min(*earliest, time) : time;
  }
  found->second = std::move(now);
  return earliest;
}

void TriggerTimes::forget(const std::string& key) {
  const MutexLock lock(mutex_);
  services_.erase(key);
}

void set_trigger_time(Value& object, const std::optional<Time>& time) {
  Value& metadata = object.mut("metadata");
  if (time) {
    metadata.mut("annotations").set(kTriggerTime, format_rfc3339(*time));
  } else if (!metadata["annotations"][kTriggerTime].is_null()) {
    metadata.mut("annotations").erase(kTriggerTime);
  }
}

}  // namespace dibs::controllers
