#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>

#include "base/mutex.h"
#include "base/strings.h"
#include "base/time.h"

namespace dibs::log {

namespace {

std::atomic<Level> least{Level::info};

struct Output {
  Mutex mutex;
  Sink sink DIBS_GUARDED_BY(mutex);
};

// Never destroyed: threads may log while the program ends.
Output& output() {
  static Output* const instance = new Output;
  return *instance;
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::debug:
      return "debug";
    case Level::info:
      return "info";
    case Level::warn:
      return "warn";
    case Level::error:
      return "error";
    case Level::off:
      return "off";
  }
  return "";
}

bool is_bare(std::string_view value) {
  if (value.empty()) return false;
  for (char c : value) {
    auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '=' || c == '\\') return false;
  }
  return true;
}

void write_all(std::string_view line) {
  while (!line.empty()) {
    ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

// The log shows the machine's time even where components run on a virtual clock.
Time wall_clock() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
}

}  // namespace

void write(Level level, std::string_view message, Fields fields) {
  if (!enabled(level)) return;
  std::string line = cat("time=", format_rfc3339_micro(wall_clock()), " level=", level_name(level),
                         " msg=", is_bare(message) ? std::string(message) : quoted(message));
  for (const Field& field : fields) {
    append(line, ' ', field.key, '=', is_bare(field.value) ? field.value : quoted(field.value));
  }
  line += '\n';
  Output& out = output();
  const MutexLock lock(out.mutex);
  if (out.sink) {
    out.sink(line);
  } else {
    write_all(line);
  }
}

void set_level(Level level) { least.store(level, std::memory_order_relaxed); }

bool enabled(Level level) { return level >= least.load(std::memory_order_relaxed); }

bool parse_level(std::string_view name, Level& level) {
  for (Level candidate : {Level::debug, Level::info, Level::warn, Level::error, Level::off}) {
    if (name == level_name(candidate)) {
      level = candidate;
      return true;
    }
  }
  return false;
}

void set_sink(Sink sink) {
  Output& out = output();
  const MutexLock lock(out.mutex);
  out.sink = std::move(sink);
}

}  // namespace dibs::log
