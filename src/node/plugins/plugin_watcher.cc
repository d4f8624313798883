#include "node/plugins/plugin_watcher.h"

#include <dirent.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <map>
#include <set>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "runtime/blocking.h"

namespace dibs::node {
namespace {

constexpr auto kPollInterval = std::chrono::seconds(1);
constexpr unsigned kMaxDepth = 32;

/// Tells a file from one that took its place. The inode alone may be used again at once.
struct Identity {
  dev_t device = 0;
  ino_t inode = 0;
  std::int64_t changed = 0;
  friend bool operator==(const Identity&, const Identity&) = default;
};

Result<> make_folder(const std::string& folder) {
  for (std::size_t end = 1; end != std::string::npos;) {
    end = folder.find('/', end + 1);
    const std::string part = folder.substr(0, end);
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) {
      return Error::internal(cat(part, ": ", std::strerror(errno)));
    }
  }
  return success();
}

class FolderWatcher : public PluginWatcher {
 public:
  FolderWatcher(const std::string& folder, runtime::Runtime& runtime)
      : folder_(folder), runtime_(runtime) {}

  ~FolderWatcher() override {
    stop();
    if (inotify_ >= 0) ::close(inotify_);
    if (wake_ >= 0) ::close(wake_);
  }

  Result<> start(Handlers handlers) override {
    handlers_ = std::move(handlers);
    DIBS_CHECK(make_folder(folder_));
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) return Error::internal(cat("eventfd: ", std::strerror(errno)));
    inotify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (inotify_ < 0) {
      log::warn("no inotify instance is left: looking for plugins every second",
                {{"folder", folder_}, {"error", std::strerror(errno)}});
    }
    {
      const MutexLock lock(mutex_);
      running_ = true;
    }
    runtime_.executor.post([this] { run(); });
    return success();
  }

  void stop() override {
    MutexLock lock(mutex_);
    stopping_ = true;
    if (wake_ >= 0) {
      const std::uint64_t one = 1;
      if (::write(wake_, &one, sizeof one) < 0) log::warn("cannot wake the plugin watcher");
    }
    ended_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return !running_; });
  }

 private:
  void run() {
    std::set<std::string> removed;
    scan(removed);
    while (true) {
      std::array<pollfd, 2> wait = {pollfd{wake_, POLLIN, 0}, pollfd{inotify_, POLLIN, 0}};
      const int timeout =
          inotify_ >= 0
              ? -1
              : static_cast<int>(
                    std::chrono::duration_cast<std::chrono::milliseconds>(kPollInterval).count());
      {
        const runtime::Blocking blocking;
        ::poll(wait.data(), wait.size(), timeout);
      }
      {
        const MutexLock lock(mutex_);
        if (stopping_) break;
      }
      removed.clear();
      read_events(removed);
      scan(removed);
    }
    const MutexLock lock(mutex_);
    running_ = false;
    ended_.notify_all();
  }

  /// Notes what was removed; everything else shows in the folders.
  void read_events(std::set<std::string>& removed) {
    if (inotify_ < 0) return;
    alignas(inotify_event) std::array<char, 16 * 1024> buffer;
    while (true) {
      const ssize_t size = ::read(inotify_, buffer.data(), buffer.size());
      if (size <= 0) return;
      for (ssize_t at = 0; at < size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
        const auto folder = folders_.find(event->wd);
        if (folder == folders_.end() || event->len == 0) continue;
        if ((event->mask & (IN_DELETE | IN_MOVED_FROM)) != 0) {
          removed.insert(cat(folder->second, "/", std::string_view(event->name)));
        }
      }
    }
  }

  void scan(const std::set<std::string>& removed) {
    std::map<std::string, Identity> found;
    walk(folder_, found, 0);
    for (auto known = known_.begin(); known != known_.end();) {
      const auto now = found.find(known->first);
      const bool same =
          now != found.end() && now->second == known->second && removed.count(known->first) == 0;
      if (same) {
        ++known;
        continue;
      }
      const std::string path = known->first;
      known = known_.erase(known);
      if (now == found.end()) handlers_.gone(path);
    }
    for (const auto& [path, identity] : found) {
      if (known_.emplace(path, identity).second) handlers_.appeared(path);
    }
  }

  void walk(const std::string& folder, std::map<std::string, Identity>& found, unsigned depth) {
    if (inotify_ >= 0) {
      // Before reading, so that what appears meanwhile gives an event.
      const int wd = ::inotify_add_watch(
          inotify_, folder.c_str(),
          IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE_SELF | IN_ONLYDIR);
      if (wd >= 0) folders_[wd] = folder;
    }
    DIR* open = ::opendir(folder.c_str());
    if (!open) return;
    while (const dirent* entry = ::readdir(open)) {
      if (entry->d_name[0] == '.') continue;
      const std::string path = cat(folder, "/", std::string_view(entry->d_name));
      struct stat info {};
      if (::lstat(path.c_str(), &info) != 0) continue;
      if (S_ISDIR(info.st_mode) && depth < kMaxDepth) walk(path, found, depth + 1);
      if (!S_ISSOCK(info.st_mode)) continue;
      found[path] = {info.st_dev, info.st_ino,
                     info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec};
    }
    ::closedir(open);
  }

  const std::string folder_;
  runtime::Runtime& runtime_;
  Handlers handlers_;
  int inotify_ = -1;
  int wake_ = -1;
  std::map<int, std::string> folders_;  // by watch descriptor; only run() uses these two
  std::map<std::string, Identity> known_;
  Mutex mutex_;
  CondVar ended_;
  bool running_ DIBS_GUARDED_BY(mutex_) = false;
  bool stopping_ DIBS_GUARDED_BY(mutex_) = false;
};

class NetworkWatcher : public PluginWatcher {
 public:
  NetworkWatcher(rpc::MemoryNetwork& network, const std::string& folder)
      : network_(network), folder_(folder) {}
  ~NetworkWatcher() override { stop(); }

  Result<> start(Handlers handlers) override {
    end_ = network_.listen(folder_, [handlers](const std::string& path, bool there) {
      (there ? handlers.appeared : handlers.gone)(path);
    });
    for (const auto& path : network_.paths(folder_)) handlers.appeared(path);
    return success();
  }

  void stop() override {
    if (end_) end_();
    end_ = nullptr;
  }

 private:
  rpc::MemoryNetwork& network_;
  const std::string folder_;
  std::function<void()> end_;
};

}  // namespace

std::unique_ptr<PluginWatcher> watch_folder(const std::string& folder, runtime::Runtime& runtime) {
  return std::make_unique<FolderWatcher>(folder, runtime);
}

std::unique_ptr<PluginWatcher> watch_network(rpc::MemoryNetwork& network,
                                             const std::string& folder) {
  return std::make_unique<NetworkWatcher>(network, folder);
}

}  // namespace dibs::node
