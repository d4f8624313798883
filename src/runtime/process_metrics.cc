#include "runtime/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/strings.h"

namespace dibs::runtime {
namespace {

using Told = std::vector<metrics::Sample>;

std::string read_text(const char* path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

double number_in(std::string_view text) {
  double out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

/// A field of /proc/self/stat, counted as proc(5) does.
Told stat_field(std::size_t field, double unit) {
  const std::string text = read_text("/proc/self/stat");
  // The second one, the name, may have blanks in it.
  const std::size_t end = text.rfind(") ");
  if (end == std::string::npos) return {};
  const auto fields = split(std::string_view(text).substr(end + 2), ' ');
  if (fields.size() <= field - 3) return {};
  return {{{}, number_in(fields[field - 3]) * unit}};
}

Told processor_time() {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0) return {};
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {{{}, seconds(used.ru_utime) + seconds(used.ru_stime)}};
}

Told started() {
  // Since the machine did; "btime 1700000000" says when that was.
  Told ticks = stat_field(22, 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK)));
  const std::string machine = read_text("/proc/stat");
  const std::size_t at = machine.find("\nbtime ");
  if (ticks.empty() || at == std::string::npos) return {};
  ticks[0].value += number_in(std::string_view(machine).substr(at + 7));
  return ticks;
}

Told open_files() {
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return {};
  double count = -3;  // "." and "..", and that of this folder
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return {{{}, count}};
}

Told most_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  return {{{}, static_cast<double>(limit.rlim_cur)}};
}

}  // namespace

void tell_of_process(metrics::Registry& registry) {
  registry.counter_function("process_cpu_seconds_total", "Processor time of this process.", {},
                            processor_time);
  registry.gauge_function("process_resident_memory_bytes", "Memory of this process.", {}, [] {
    return stat_field(24, static_cast<double>(sysconf(_SC_PAGESIZE)));
  });
  registry.gauge_function("process_virtual_memory_bytes", "Address space of this process.", {},
                          [] { return stat_field(23, 1); });
  registry.gauge_function("process_start_time_seconds", "When it began, since 1970.", {}, started);
  registry.gauge_function("process_open_fds", "Files that it has open.", {}, open_files);
  registry.gauge_function("process_max_fds", "How many it may have open.", {}, most_files);
}

}  // namespace dibs::runtime
