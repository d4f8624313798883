#include "node/streams/file_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <map>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "net/event_loop.h"

namespace dibs::node {
namespace {

constexpr std::uint32_t kEvents =
    IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_ATTRIB;

struct Listener {
  std::string folder;
  std::string name;
  std::function<void()> changed;
};

}  // namespace

struct FileWatch::Impl : net::EventLoop::Source, std::enable_shared_from_this<FileWatch::Impl> {
  net::EventLoop loop;
  std::thread thread;
  int fd = -1;  // of inotify; made before the thread
  Mutex mutex;
  std::map<std::string, std::pair<int, int>> folders
      DIBS_GUARDED_BY(mutex);  // descriptor and users
  std::map<int, std::string> names DIBS_GUARDED_BY(mutex);
  std::map<std::uint64_t, std::shared_ptr<Listener>> listeners DIBS_GUARDED_BY(mutex);
  std::uint64_t next DIBS_GUARDED_BY(mutex) = 0;

  ~Impl() override {
    if (fd >= 0) ::close(fd);
  }

  void begin() DIBS_REQUIRES(mutex) {
    if (fd >= 0) return;
    fd = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) return;
    loop.post([this] { loop.add(fd, this); });
    thread = std::thread([this] { loop.run(); });
  }

  void on_ready(net::EventLoop::Ready) override {
    alignas(inotify_event) char buffer[16 * 1024];
    while (true) {
      const auto got = ::read(fd, buffer, sizeof buffer);
      if (got <= 0) return;
      for (std::ptrdiff_t at = 0; at < got;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        at += static_cast<std::ptrdiff_t>(sizeof(inotify_event) + event->len);
        tell(event->wd, event->len > 0 ? event->name : "", (event->mask & IN_Q_OVERFLOW) != 0);
      }
    }
  }

  void tell(int descriptor, const std::string& name, bool everyone) {
    std::vector<std::shared_ptr<Listener>> calls;
    {
      const MutexLock lock(mutex);
      const auto folder = names.find(descriptor);
      if (folder == names.end() && !everyone) return;
      for (const auto& [id, listener] : listeners) {
        if (everyone || (listener->folder == folder->second && listener->name == name)) {
          calls.push_back(listener);
        }
      }
    }
    for (const auto& listener : calls) listener->changed();
  }

  void drop(std::uint64_t id) {
    std::shared_ptr<Listener> dropped;
    const MutexLock lock(mutex);
    const auto found = listeners.find(id);
    if (found == listeners.end()) return;
    dropped = std::move(found->second);
    listeners.erase(found);
    const auto folder = folders.find(dropped->folder);
    if (--folder->second.second > 0) return;
    ::inotify_rm_watch(fd, folder->second.first);
    names.erase(folder->second.first);
    folders.erase(folder);
  }
};

FileWatch::FileWatch() : impl_(std::make_shared<Impl>()) {}

FileWatch::~FileWatch() {
  impl_->loop.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
  impl_->loop.close();
}

FileWatch::Subscription FileWatch::watch(const std::string& path, std::function<void()> changed) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return nullptr;
  const auto listener = std::make_shared<Listener>(
      Listener{path.substr(0, slash), path.substr(slash + 1), std::move(changed)});
  const MutexLock lock(impl_->mutex);
  impl_->begin();
  if (impl_->fd < 0) return nullptr;
  auto& [descriptor, users] = impl_->folders[listener->folder];
  if (users == 0) {
    descriptor = ::inotify_add_watch(impl_->fd, listener->folder.c_str(), kEvents);
    if (descriptor < 0) {
      impl_->folders.erase(listener->folder);
      return nullptr;
    }
    impl_->names[descriptor] = listener->folder;
  }
  ++users;
  const std::uint64_t id = ++impl_->next;
  impl_->listeners[id] = listener;
  return {nullptr, [impl = impl_, id](void*) { impl->drop(id); }};
}

}  // namespace dibs::node
