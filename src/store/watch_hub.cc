#include "store/watch_hub.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"

namespace dibs::store {
namespace {

thread_local const Waker* calling = nullptr;

/// Up to and including the last '/'.
std::string_view directory_of(std::string_view prefix) {
  const auto slash = prefix.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : prefix.substr(0, slash + 1);
}

bool is_directory(std::string_view prefix) { return prefix.empty() || prefix.back() == '/'; }

std::deque<EventPtr>::const_iterator first_above(const std::deque<EventPtr>& events,
                                                 Revision revision) {
  return std::upper_bound(events.begin(), events.end(), revision,
                          [](Revision r, const EventPtr& event) { return r < event->revision; });
}

}  // namespace

void Waker::wake() {
  {
    const MutexLock lock(mutex_);
    if (closed_) return;
    ++calls_;
  }
  const Waker* outer = std::exchange(calling, this);
  ready_();
  calling = outer;
  const MutexLock lock(mutex_);
  if (--calls_ <= 1) idle_.notify_all();
}

void Waker::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  const int own = calling == this ? 1 : 0;
  idle_.wait(lock, [&]() DIBS_REQUIRES(mutex_) { return calls_ <= own; });
}

template <typename Visit>
void WatchHub::each_channel_of(std::string_view key, Visit visit) {
  if (channels_.empty()) return;
  for (std::size_t end = 0;;) {
    const auto directory = key.substr(0, end);
    if (auto found = channels_.find(directory); found != channels_.end()) visit(*found->second);
    if (!partial_.empty()) {
      if (auto lengths = partial_.find(directory); lengths != partial_.end()) {
        for (const auto& [length, users] : lengths->second) {
          if (length > key.size()) break;
          auto found = channels_.find(key.substr(0, length));
          if (found != channels_.end()) visit(*found->second);
        }
      }
    }
    const auto slash = key.find('/', end);
    if (slash == std::string_view::npos) return;
    end = slash + 1;
  }
}

Channel& WatchHub::open(std::string_view prefix, Revision from,
                        const std::deque<EventPtr>& history) {
  auto found = channels_.find(prefix);
  if (found == channels_.end()) {
    auto channel = std::make_unique<Channel>();
    channel->prefix = prefix;
    channel->since = history.empty() ? from : std::max(from, history.back()->revision);
    if (!is_directory(prefix)) ++partial_[std::string(directory_of(prefix))][prefix.size()];
    found = channels_.emplace(std::string(prefix), std::move(channel)).first;
  }
  Channel& channel = *found->second;
  ++channel.watchers;
  if (from < channel.since) {
    const auto begin = first_above(history, from);
    for (auto at = first_above(history, channel.since); at != begin;) {
      --at;
      if (!(*at)->key().starts_with(prefix)) continue;
      channel.events.push_front(*at);
      --channel.first;
    }
    channel.since = from;
  }
  return channel;
}

void WatchHub::leave(Channel& channel) {
  if (--channel.watchers > 0) return;
  if (!is_directory(channel.prefix)) {
    auto lengths = partial_.find(directory_of(channel.prefix));
    auto length = lengths->second.find(channel.prefix.size());
    if (--length->second == 0) lengths->second.erase(length);
    if (lengths->second.empty()) partial_.erase(lengths);
  }
  channels_.erase(channels_.find(std::string_view(channel.prefix)));
}

void WatchHub::feed(const EventPtr& event, Wakeups& wakeups) {
  each_channel_of(event->key(), [&](Channel& channel) {
    channel.events.push_back(event);
    const MutexLock lock(channel.mutex);
    for (auto& waker : channel.waiting) {
      waker->waiting = false;
      wakeups.wakers_.push_back(std::move(waker));
    }
    channel.waiting.clear();
  });
}

void WatchHub::trim(const Event& event) {
  each_channel_of(event.key(), [&](Channel& channel) {
    while (!channel.events.empty() && channel.events.front()->revision <= event.revision) {
      channel.events.pop_front();
      ++channel.first;
    }
  });
}

}  // namespace dibs::store
