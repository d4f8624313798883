#include "server/event_expiry.h"

#include <algorithm>

#include "base/log.h"
#include "base/time.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr Duration kLongest = std::chrono::minutes(5);  // between two looks

/// When the event was last added to.
Time last_seen(const Value& event) {
  for (const Value* text : {&event["series"]["lastObservedTime"], &event["lastTimestamp"],
                            &event["eventTime"], &event["metadata"]["creationTimestamp"]}) {
    if (!text->is_string()) continue;
    auto time = parse_rfc3339(text->as_string());
    if (time.ok()) return *time;
  }
  return {};
}

}  // namespace

EventExpiry::EventExpiry(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources)
    : runtime_(runtime), store_(store), resources_(resources) {
  schedule();
}

void EventExpiry::schedule() {
  const ResourcePtr events = resources_.get()->find("", "v1", "events");
  const Duration lifetime = events ? events->rules->lifetime.value_or(kLongest) : kLongest;
  MutexLock lock(mutex_);
  if (stopped_) return;
  timer_ = runtime_.timers.after(std::min(kLongest, lifetime), [this] {
    sweep();
    schedule();
  });
}

void EventExpiry::stop() {
  runtime::TimerId timer = 0;
  {
    MutexLock lock(mutex_);
    if (stopped_) return;
    stopped_ = true;
    timer = timer_;
  }
  runtime_.timers.cancel(timer);
}

std::size_t EventExpiry::sweep() {
  ResourcePtr events = resources_.get()->find("", "v1", "events");
  if (!events || !events->rules->lifetime) return 0;
  store::RangeQuery query;
  query.prefix = events->storage_prefix;
  auto listing = store_.range(query);
  if (!listing.ok()) return 0;
  Time before = runtime_.clock.now() - *events->rules->lifetime;
  std::size_t removed = 0;
  std::vector<store::Op> ops;
  auto flush = [&] {
    std::size_t count = ops.size();
    // An event written meanwhile makes the group fail; the next look takes it up again.
    if (count > 0 && store_.commit(std::exchange(ops, {})).ok()) removed += count;
  };
  for (const auto& record : listing->records) {
    auto event = decode_stored(*record);
    if (!event.ok() || last_seen(*event) >= before) continue;
    ops.push_back({std::string(record->key), nullptr, record->modified});
    if (ops.size() == store::kGroupExpecting) flush();
  }
  flush();
  if (removed > 0) log::debug("old events removed", {{"count", removed}});
  return removed;
}

}  // namespace dibs::server
