#include "server/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "base/time.h"

namespace dibs::server {
namespace {

namespace fs = std::filesystem;

constexpr Duration kTryAgain = std::chrono::seconds(1);
constexpr std::int64_t kMegabyte = 1024 * 1024;
constexpr std::int64_t kDay = 24 * 60 * 60;

Error failure(std::string_view path, std::string_view what) {
  return Error::unavailable(
      cat("--audit-log-path ", path, ": cannot ", what, " it: ", std::strerror(errno)));
}

/// 2026-01-02T15-04-05.000
std::string stamp_of(Time time) {
  std::string text = format_rfc3339_micro(time).substr(0, 23);
  std::replace(text.begin(), text.end(), ':', '-');
  return text;
}

}  // namespace

struct AuditLog::State : std::enable_shared_from_this<AuditLog::State> {
  State(AuditLogOptions how, runtime::Runtime& world) : options(std::move(how)), runtime(world) {}
  ~State() {
    const MutexLock lock(file_mutex);
    close_file();
  }

  const AuditLogOptions options;
  runtime::Runtime& runtime;
  std::atomic<std::uint64_t> lost{0};

  Mutex mutex;
  std::string waiting DIBS_GUARDED_BY(mutex);
  bool writing DIBS_GUARDED_BY(mutex) = false;  // a task is on its way, or waits to try again

  /// Taken before `mutex`.
  Mutex file_mutex;
  int fd DIBS_GUARDED_BY(file_mutex) = -1;
  std::int64_t size DIBS_GUARDED_BY(file_mutex) = 0;
  std::string unwritten DIBS_GUARDED_BY(file_mutex);  // the rest of what was taken

  bool to_stdout() const { return options.path == "-"; }

  void close_file() DIBS_REQUIRES(file_mutex) {
    if (fd >= 0 && !to_stdout()) ::close(fd);
    fd = -1;
  }

  Result<> open_file() DIBS_REQUIRES(file_mutex) {
    if (to_stdout()) {
      fd = STDOUT_FILENO;
      return success();
    }
    fd = ::open(options.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return failure(options.path, "open");
    struct stat now = {};
    if (::fstat(fd, &now) != 0) return failure(options.path, "look at");
    size = now.st_size;
    return success();
  }

  /// The file's name with a time put in before its extension.
  std::string aside(std::string_view stamp) const {
    const fs::path path(options.path);
    return (path.parent_path() / cat(path.stem().string(), "-", stamp, path.extension().string()))
        .string();
  }

  Result<> rotate() DIBS_REQUIRES(file_mutex) {
    close_file();
    const std::string name = aside(stamp_of(runtime.clock.now()));
    if (::rename(options.path.c_str(), name.c_str()) != 0 && errno != ENOENT) {
      return failure(options.path, "move aside");
    }
    forget_old();
    return open_file();
  }

  void forget_old() const {
    const fs::path path(options.path);
    const std::string start = cat(path.stem().string(), "-");
    const std::string end = path.extension().string();
    constexpr std::size_t kStamp = 23;
    std::vector<std::string> old;  // stamps
    std::error_code ignored;
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.size() == start.size() + kStamp + end.size() && name.starts_with(start) &&
          name.ends_with(end)) {
        old.push_back(name.substr(start.size(), kStamp));
      }
    }
    std::sort(old.rbegin(), old.rend());
    const Time oldest = runtime.clock.now() - std::chrono::seconds(options.max_age * kDay);
    const std::string limit = stamp_of(oldest);
    for (std::size_t i = 0; i < old.size(); ++i) {
      const bool many =
          options.max_backups > 0 && i >= static_cast<std::size_t>(options.max_backups);
      if (many || (options.max_age > 0 && old[i] < limit)) {
        fs::remove(aside(old[i]), ignored);
      }
    }
  }

  /// Writes lines whole: one that does not fit any more begins the next file.
  Result<> put(std::string_view lines) DIBS_REQUIRES(file_mutex) {
    unwritten.append(lines);
    while (!unwritten.empty()) {
      if (fd < 0) DIBS_CHECK(open_file());
      std::size_t count = unwritten.size();
      if (options.max_size > 0 && !to_stdout()) {
        const std::int64_t room = options.max_size * kMegabyte - size;
        if (static_cast<std::int64_t>(count) > room) {
          const auto end = room > 0 ? unwritten.rfind('\n', static_cast<std::size_t>(room) - 1)
                                    : std::string::npos;
          if (end == std::string::npos && size > 0) {
            DIBS_CHECK(rotate());
            continue;
          }
          count = (end == std::string::npos ? unwritten.find('\n') : end) + 1;
        }
      }
      const ssize_t written = ::write(fd, unwritten.data(), count);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failure(options.path, "write");
      size += written;
      unwritten.erase(0, static_cast<std::size_t>(written));
    }
    return success();
  }

  Result<> drain() {
    const MutexLock file(file_mutex);
    for (;;) {
      std::string lines;
      {
        const MutexLock lock(mutex);
        lines.swap(waiting);
        if (lines.empty() && unwritten.empty()) {
          writing = false;
          return success();
        }
      }
      DIBS_CHECK(put(lines));
    }
  }

  void work() {
    if (const auto done = drain(); !done.ok()) {
      log::error("audit log cannot be written", {{"error", done.error()}});
      runtime.timers.after(kTryAgain, [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->work();
      });
    }
  }
};

AuditLog::AuditLog(std::shared_ptr<State> state) : state_(std::move(state)) {}

AuditLog::~AuditLog() {
  if (const auto done = state_->drain(); !done.ok()) {
    log::error("audit log is not whole", {{"error", done.error()}});
  }
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(AuditLogOptions options,
                                                 runtime::Runtime& runtime) {
  auto state = std::make_shared<State>(std::move(options), runtime);
  {
    const MutexLock lock(state->file_mutex);
    DIBS_CHECK(state->open_file());
  }
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(state)));
}

void AuditLog::add(std::string_view line) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->waiting.size() + line.size() > kMostWaiting) {
      ++state_->lost;
      return;
    }
    state_->waiting.append(line);
    if (std::exchange(state_->writing, true)) return;
  }
  state_->runtime.executor.post([state = state_] { state->work(); });
}

std::uint64_t AuditLog::lost() const { return state_->lost; }

}  // namespace dibs::server
