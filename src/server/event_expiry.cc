#include "server/event_expiry.h"

#include "base/log.h"
#include "base/time.h"
#include "server/stored.h"

namespace dibs::server {
namespace {

constexpr Duration kEvery = std::chrono::minutes(5);
constexpr std::size_t kGroup = 60;  // etcd takes 128 operations, some of which need two

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
  MutexLock lock(mutex_);
  if (stopped_) return;
  timer_ = runtime_.timers.after(kEvery, [this] {
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
    if (ops.size() == kGroup) flush();
  }
  flush();
  if (removed > 0) log::debug("old events removed", {{"count", removed}});
  return removed;
}

}  // namespace dibs::server
