#include "node/runtime/exit_watcher.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::node {

ExitWatcher::ExitWatcher(std::string folder, runtime::Executor& executor,
                         std::function<void(const std::string&, bool)> ended)
    : folder_(std::move(folder)), executor_(executor), ended_(std::move(ended)) {}

ExitWatcher::~ExitWatcher() {
  MutexLock lock(mutex_);
  if (!running_) return;
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  stopped_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return !running_; });
}

Result<> ExitWatcher::start() {
  poll_ = runtime::Fd(::epoll_create1(EPOLL_CLOEXEC));
  folder_events_ = runtime::Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  stop_ = runtime::Fd(::eventfd(0, EFD_CLOEXEC));
  if (!poll_ || !folder_events_ || !stop_ ||
      ::inotify_add_watch(folder_events_.get(), folder_.c_str(), IN_MOVED_TO | IN_CLOSE_WRITE) <
          0) {
    return Error::internal(cat("cannot watch ", folder_, ": ", std::strerror(errno)));
  }
  for (const int fd : {folder_events_.get(), stop_.get()}) {
    struct epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event);
  }
  {
    const MutexLock lock(mutex_);
    running_ = true;
  }
  executor_.post([this] { loop(); });
  return success();
}

void ExitWatcher::watch_monitor(const std::string& id, int pid) {
  runtime::Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd.ok()) return;
  const int number = fd.get();
  {
    const MutexLock lock(mutex_);
    monitors_[number] = {id, std::move(fd)};
  }
  struct epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = number;
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, number, &event);
}

void ExitWatcher::loop() {
  for (;;) {
    struct epoll_event events[32];
    const int count = ::epoll_wait(poll_.get(), events, 32, -1);
    if (count < 0 && errno == EINTR) continue;
    bool stop = count < 0;
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_.get()) {
        stop = true;
      } else if (fd == folder_events_.get()) {
        read_folder_events();
      } else {
        end_of_monitor(fd);
      }
    }
    if (stop) break;
  }
  const MutexLock lock(mutex_);
  running_ = false;
  stopped_.notify_all();
}

void ExitWatcher::read_folder_events() {
  alignas(struct inotify_event) char buffer[16384];
  for (;;) {
    const ssize_t got = ::read(folder_events_.get(), buffer, sizeof buffer);
    if (got <= 0) return;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const struct inotify_event*>(buffer + at);
      if (event->len > 0) ended_(event->name, false);
      at += static_cast<ssize_t>(sizeof(struct inotify_event) + event->len);
    }
  }
}

void ExitWatcher::end_of_monitor(int fd) {
  std::string id;
  runtime::Fd held;
  {
    const MutexLock lock(mutex_);
    const auto found = monitors_.find(fd);
    if (found == monitors_.end()) return;
    id = found->second.first;
    held = std::move(found->second.second);
    monitors_.erase(found);
  }
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  ended_(id, true);
}

}  // namespace dibs::node
