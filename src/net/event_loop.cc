#include "net/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mutex.h"

namespace dibs::net {

EventLoop::EventLoop() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = nullptr;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  now_ = steady_ms();
}

EventLoop::~EventLoop() {
  ::close(wake_);
  ::close(epoll_);
}

std::int64_t EventLoop::steady_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void EventLoop::set_tick(std::chrono::milliseconds interval, Task tick) {
  interval_ = interval;
  tick_ = std::move(tick);
}

bool EventLoop::add(int fd, Source* source) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = source;
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void EventLoop::remove(int fd) { ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

void EventLoop::wake() {
  const std::uint64_t one = 1;
  // A full counter wakes the loop as well, so the outcome does not matter.
  [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

bool EventLoop::post(Task task) { return post_to(std::move(task), false); }
bool EventLoop::post_bulk(Task task) { return post_to(std::move(task), true); }

bool EventLoop::post_to(Task task, bool bulk) {
  bool first;
  {
    const MutexLock lock(mutex_);
    if (closed_) return false;
    first = tasks_.empty() && bulk_.empty();
    if (bulk) {
      bulk_.push_back(std::move(task));
    } else {
      tasks_.push_back(std::move(task));
    }
  }
  if (first && !on_this_thread()) wake();
  return true;
}

void EventLoop::stop() {
  stopping_ = true;
  wake();
}

void EventLoop::run_tasks() {
  {
    const MutexLock lock(mutex_);
    running_.swap(tasks_);
    if (!bulk_.empty()) {
      running_.push_back(std::move(bulk_.front()));
      bulk_.pop_front();
    }
  }
  for (auto& task : running_) {
    task();
    task = nullptr;
  }
  running_.clear();
}

void EventLoop::run() {
  thread_ = std::this_thread::get_id();
  constexpr int kBatch = 256;
  epoll_event events[kBatch];
  std::int64_t next_tick = steady_ms() + interval_.count();
  while (!stopping_) {
    bool waiting;
    {
      const MutexLock lock(mutex_);
      waiting = tasks_.empty() && bulk_.empty();
    }
    const std::int64_t left = next_tick - now_;
    const int timeout = waiting ? static_cast<int>(left > 0 ? left : 0) : 0;
    const int count = ::epoll_wait(epoll_, events, kBatch, timeout);
    now_ = steady_ms();
    for (int i = 0; i < count; ++i) {
      auto* source = static_cast<Source*>(events[i].data.ptr);
      if (source == nullptr) {
        std::uint64_t value;
        [[maybe_unused]] const auto got = ::read(wake_, &value, sizeof value);
        continue;
      }
      const auto bits = events[i].events;
      source->on_ready({.in = (bits & EPOLLIN) != 0,
                        .out = (bits & EPOLLOUT) != 0,
                        .peer_closed = (bits & (EPOLLRDHUP | EPOLLHUP)) != 0,
                        .broken = (bits & (EPOLLERR | EPOLLHUP)) != 0});
    }
    run_tasks();
    if (now_ >= next_tick) {
      if (tick_) tick_();
      next_tick = now_ + interval_.count();
    }
    retired_.clear();
  }
  // The system gives the id of a thread that was joined to the next one that begins, which must not
  // be taken for this one: it would do by itself what is for close().
  thread_ = std::thread::id();
}

void EventLoop::close() {
  thread_ = std::this_thread::get_id();
  run_tasks();
  std::vector<Task> dropped;
  std::deque<Task> dropped_bulk;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    dropped.swap(tasks_);
    dropped_bulk.swap(bulk_);
  }
  dropped.clear();
  dropped_bulk.clear();
  retired_.clear();
  tick_ = nullptr;
  thread_ = std::thread::id();
}

}  // namespace dibs::net
