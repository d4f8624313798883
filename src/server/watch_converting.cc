// Watches whose objects a webhook converts: the same steps as those of others, but nobody waits for
// the lock of the stream while the webhook is asked, and one that is too busy is asked again later.
#include <algorithm>

#include "base/strings.h"
#include "server/conversion.h"
#include "server/presenting.h"
#include "server/status.h"
#include "server/stored.h"
#include "server/watch_stream.h"

namespace dibs::server {
namespace {

// Who finds too many waiting for a webhook asks again after this, and up to twice as much.
constexpr std::int64_t kRetryMilliseconds = 50;

template <class T>
bool is_busy(const Result<T>& result) {
  return !result.ok() && result.error().code() == Code::too_many_requests;
}

}  // namespace

void WatchStream::send_initial_converted() {
  for (;;) {
    std::shared_ptr<InitialState> initial;
    std::size_t next = 0;
    {
      MutexLock lock(mutex_);
      if (ended_ || !initial_ || !watch_ || waits_) return;
      // The end of it calls nobody.
      if (next_piece_ == initial_->pieces()) break;
      if (body_->queued() >= kWatchInitialBytes) return;
      initial = initial_;
      next = next_piece_;
    }
    const auto piece = initial->piece(next, owner_.runtime_.clock.now());
    if (is_busy(piece)) return try_later();
    MutexLock lock(mutex_);
    if (ended_) return;
    if (!piece.ok()) body_->write(share(error_event(*context_, piece.error())));
    if (!piece.ok() || !body_->write(*piece)) {
      lock.unlock();
      return stop(!piece.ok());
    }
    ++next_piece_;
    first_ = false;
  }
  send_initial();
}

void WatchStream::run_alone() {
  for (;;) {
    turn_ = Turn::runs;
    const bool ends = ends_;  // read before the events: what came before the end is among them
    if (waits_for_state()) {
      if (const auto alike = owner_.begin_reading(*this)) {
        const auto state = read_state();
        is_busy(state) ? try_later() : adopt(state);
        for (const auto& one : *alike) {
          if (is_busy(state)) break;
          one->adopt(state);
          owner_.ready(one);
        }
        owner_.end_reading(*this);
      } else {
        give_up_seat();
        try_later();
      }
    }
    if (is_starting()) send_initial_converted();
    pump_converted();
    if (ends && !is_put_off()) return stop(true);
    Turn expected = Turn::runs;
    if (turn_.compare_exchange_strong(expected, Turn::none)) return;
  }
}

void WatchStream::give_up_seat() {
  MutexLock lock(mutex_);
  context_->seat.reset();
}

bool WatchStream::is_put_off() {
  MutexLock lock(mutex_);
  return waits_;
}

void WatchStream::pump_converted() {
  for (;;) {
    std::vector<store::EventPtr> events;
    {
      MutexLock lock(mutex_);
      if (ended_ || !watch_ || starting_ || waits_ || body_->queued() >= kWatchQueuedBytes) return;
      events.swap(put_off_);
      store::Revision known = 0;
      auto next = events.empty() ? watch_->next(kWatchBatch, &known) : std::move(events);
      if (!next.ok()) {
        body_->write(share(error_event(*context_, too_old())));
      } else if (next->empty()) {
        known_ = std::max(known_, known);
        return;
      } else {
        events = std::move(next).value();
      }
    }
    if (events.empty()) return stop(true);
    auto served = converted(events);
    MutexLock lock(mutex_);
    if (ended_) return;
    if (is_busy(served)) {
      put_off_ = std::move(events);
      lock.unlock();
      return try_later();
    }
    bool open = served.ok();
    if (!open) body_->write(share(error_event(*context_, served.error())));
    for (std::size_t i = 0; open && i < events.size(); ++i) {
      known_ = events[i]->revision;
      if (known_ > skip_until_) open = send(*events[i], &*served);
    }
    lock.unlock();
    if (!open) return stop(!served.ok());
  }
}

void WatchStream::try_later() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(waits_, true)) return;
  }
  const auto more = owner_.runtime_.random.below(kRetryMilliseconds);
  after(std::chrono::milliseconds(kRetryMilliseconds + static_cast<std::int64_t>(more)),
        [](WatchStream& self) {
          {
            MutexLock lock(self.mutex_);
            self.waits_ = false;
          }
          self.owner_.ready(self.weak_from_this());
        });
}

Result<WatchStream::Served> WatchStream::converted(
    const std::vector<store::EventPtr>& events) const {
  RecentlyConverted& recent = resource().conversion->recent();
  const std::string_view form = context_->request.omits_managed_fields ? "kept" : "whole";
  const auto name_of = [&](const store::Record& record) {
    return cat(resource().version, "|", form, "|", record.modified, "|", record.key);
  };
  Served out;
  std::vector<const store::Record*> records;
  std::vector<Value> objects;
  std::vector<bool> asks;
  const auto add = [&](const store::RecordPtr& record) -> Result<> {
    if (!record) return success();
    if (auto known = recent.find(name_of(*record))) {
      out[record.get()] = std::move(*known);
      return success();
    }
    DIBS_TRY(Value object, read_record(*context_, *record));
    asks.push_back(object["apiVersion"].as_string() != resource().api_version());
    records.push_back(record.get());
    objects.push_back(std::move(object));
    return success();
  };
  for (const store::EventPtr& event : events) {
    if (!may_match(event->key())) continue;
    DIBS_CHECK(add(event->now));
    // What was there before is only looked at where it may have left a selection.
    if (!event->now || !selection_.everything()) DIBS_CHECK(add(event->before));
  }
  DIBS_TRY(objects, to_served_all(resource(), std::move(objects)));
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (asks[i]) recent.keep(name_of(*records[i]), objects[i], records[i]->value->size());
    out[records[i]] = std::move(objects[i]);
  }
  return out;
}

}  // namespace dibs::server
