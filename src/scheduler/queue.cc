#include "scheduler/queue.h"

#include <algorithm>

namespace dibs::scheduler {
namespace {

// Why a pod enters a queue, as kube-scheduler names it.
constexpr const char* kAdded = "PodAdd";
constexpr const char* kUpdated = "PodUpdate";
constexpr const char* kFailed = "ScheduleAttemptFailure";

}  // namespace

Queue::Entry& Queue::enter(const PodPtr& pod, Duration now) {
  Entry& entry = entries_[pod->key];
  if (entry.pod == nullptr || entry.pod->uid != pod->uid) {
    if (entry.pod != nullptr) take_out(entry);
    entry = Entry();
    entry.entered = now;
    entry.order.number = ++numbers_;
  }
  if (entry.place != Place::out && entry.order.negative_priority != -pod->priority) {
    const Place place = entry.place;
    take_out(entry);
    entry.order.negative_priority = -pod->priority;
    entry.pod = pod;
    if (place == Place::held) {
      entry.place = Place::held;
      ++held_;
    } else {
      make_ready(entry, now, kUpdated);
    }
    return entry;
  }
  entry.order.negative_priority = -pod->priority;
  entry.pod = pod;
  return entry;
}

void Queue::take_out(Entry& entry) {
  switch (entry.place) {
    case Place::active:
      active_.erase(entry.order);
      break;
    case Place::backoff:
      if (entry.error) {
        backoff_.erase({entry.until, entry.order});
      } else {
        early_.erase(entry.order);
      }
      break;
    case Place::parked: {
      parked_.erase({entry.tried, entry.order});
      const auto group = groups_.find(entry.group);
      group->second.pods.erase(entry.order);
      if (group->second.pods.empty()) groups_.erase(group);
      if (on_parked_) on_parked_(*entry.pod, entry.rejected_by, false);
      break;
    }
    case Place::held:
      --held_;
      break;
    case Place::out:
      break;
  }
  entry.place = Place::out;
}

Duration Queue::backoff_of(const Entry& entry) const {
  Duration delay = options_.initial_backoff;
  for (int i = 1; i < entry.attempts && delay < options_.longest_backoff; ++i) delay *= 2;
  return std::min(delay, options_.longest_backoff);
}

void Queue::make_ready(Entry& entry, Duration now, const char* why) {
  take_out(entry);
  entry.until = entry.tried + backoff_of(entry);
  if (entry.attempts == 0 || entry.until <= now) {
    entry.place = Place::active;
    active_[entry.order] = &entry;
    enters("active", why);
    return;
  }
  entry.place = Place::backoff;
  enters("backoff", why);
  if (entry.error) {
    backoff_[{entry.until, entry.order}] = &entry;
  } else {
    early_[entry.order] = &entry;
  }
}

void Queue::add(const PodPtr& pod, Duration now) {
  Entry& entry = enter(pod, now);
  if (entry.place == Place::out) make_ready(entry, now, kAdded);
}

void Queue::hold(const PodPtr& pod, Duration now) {
  Entry& entry = enter(pod, now);
  if (entry.place == Place::held) return;
  take_out(entry);
  entry.place = Place::held;
  ++held_;
  enters("unschedulable", kAdded);
}

void Queue::release(std::string_view key, Duration now) {
  const auto found = entries_.find(std::string(key));
  if (found == entries_.end() || found->second.place != Place::held) return;
  make_ready(found->second, now, kUpdated);
}

void Queue::remove(std::string_view key) {
  const auto found = entries_.find(std::string(key));
  if (found == entries_.end()) return;
  take_out(found->second);
  entries_.erase(found);
}

bool Queue::held(std::string_view key) const {
  const auto found = entries_.find(std::string(key));
  return found != entries_.end() && found->second.place == Place::held;
}

bool Queue::is_out(const Pod& pod) const {
  const auto found = entries_.find(pod.key);
  return found != entries_.end() && found->second.place == Place::out &&
         found->second.pod->uid == pod.uid;
}

void Queue::judged(std::string_view key) {
  const auto found = entries_.find(std::string(key));
  if (found == entries_.end()) return;
  found->second.judged = events_;
  found->second.missed = false;
}

bool Queue::missed_any(const Entry& entry) const {
  if (entry.missed) return true;
  for (std::size_t i = 0; i < last_event_.size(); ++i) {
    if ((entry.rejected_by >> i & 1U) != 0 && last_event_[i] > entry.judged) return true;
  }
  return false;
}

Queue::Popped Queue::pop(Duration now) {
  while (!backoff_.empty() && backoff_.begin()->first.first <= now) {
    Entry& due = *backoff_.begin()->second;
    take_out(due);
    due.place = Place::active;
    active_[due.order] = &due;
    enters("active", "BackoffComplete");
  }
  Entry* entry = nullptr;
  if (!active_.empty()) {
    entry = active_.begin()->second;
  } else if (!early_.empty()) {
    entry = early_.begin()->second;
  } else {
    return {};
  }
  take_out(*entry);
  ++entry->attempts;
  entry->tried = now;
  entry->judged = events_;
  entry->missed = false;
  return {entry->pod, entry->attempts, now - entry->entered};
}

void Queue::fail(const PodPtr& pod, Duration now) {
  Entry& entry = enter(pod, now);
  if (entry.place == Place::parked) take_out(entry);
  if (entry.place != Place::out) return;
  entry.error = true;
  entry.tried = now;
  entry.attempts = std::max(entry.attempts, 1);
  make_ready(entry, now, kFailed);
}

void Queue::delay(const PodPtr& pod, int attempts, Duration now) {
  Entry& entry = enter(pod, now);
  take_out(entry);
  entry.attempts = std::max(entry.attempts, attempts);
  fail(pod, now);
}

void Queue::park(const PodPtr& pod, const std::string& group, PluginSet rejected_by, Duration now) {
  Entry& entry = enter(pod, now);
  if (entry.place != Place::out) return;
  entry.error = false;
  entry.tried = now;
  entry.group = group;
  entry.rejected_by = rejected_by;
  if (missed_any(entry)) return make_ready(entry, now, kFailed);
  entry.place = Place::parked;
  enters("unschedulable", kFailed);
  if (on_parked_) on_parked_(*pod, rejected_by, true);
  Group& equals = groups_[group];
  equals.rejected_by |= rejected_by;
  equals.pods[entry.order] = &entry;
  parked_[{now, entry.order}] = &entry;
}

std::size_t Queue::wake(PluginSet plugins, const std::function<bool(const Pod&)>& helps,
                        Duration now, const char* why) {
  ++events_;
  for (std::size_t i = 0; i < last_event_.size(); ++i) {
    if ((plugins >> i & 1U) != 0) last_event_[i] = events_;
  }
  std::vector<Entry*> woken;
  for (const auto& [name, group] : groups_) {
    if ((group.rejected_by & plugins) == 0) continue;
    Entry* first = group.pods.begin()->second;
    if ((first->rejected_by & plugins) != 0 && (!helps || helps(*first->pod))) {
      woken.push_back(first);
    }
  }
  for (Entry* entry : woken) make_ready(*entry, now, why);
  return woken.size();
}

bool Queue::wake_pod(std::string_view key, Duration now, const char* why, bool patient) {
  const auto found = entries_.find(std::string(key));
  if (found == entries_.end()) return false;
  if (found->second.place == Place::out) found->second.missed = true;
  if (found->second.place != Place::parked) return false;
  found->second.error = patient;
  make_ready(found->second, now, why);
  return true;
}

void Queue::next_of(const std::string& group, Duration now) {
  const auto found = groups_.find(group);
  if (found != groups_.end())
    make_ready(*found->second.pods.begin()->second, now, "AssignedPodAdd");
}

void Queue::flush(Duration now) {
  while (!parked_.empty() && parked_.begin()->first.first + options_.patience <= now) {
    make_ready(*parked_.begin()->second, now, "UnschedulableTimeout");
  }
}

Duration Queue::next_due(Duration now) const {
  if (!active_.empty() || !early_.empty()) return Duration(0);
  Duration due(-1);
  const auto consider = [&](Duration at) {
    const Duration delay = std::max(Duration(0), at - now);
    if (due < Duration(0) || delay < due) due = delay;
  };
  if (!backoff_.empty()) consider(backoff_.begin()->first.first);
  if (!parked_.empty()) consider(parked_.begin()->first.first + options_.patience);
  return due;
}

Queue::Sizes Queue::sizes() const {
  return {active_.size(), backoff_.size() + early_.size(), parked_.size(), held_};
}

}  // namespace dibs::scheduler
