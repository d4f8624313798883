#include "node/runtime/cgroups.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/strings.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMemory = "memory";
constexpr const char* kCpu = "cpu";
constexpr const char* kPages = "hugetlb";
/// What a pod's group has hierarchies of, where each controller has one.
constexpr const char* kOwnControllers[] = {kCpu, "cpuacct", kMemory, kPages, "pids"};
/// What groups below may use, where there is one hierarchy.
constexpr const char* kPassedOn[] = {"+cpu", "+memory", "+pids", "+hugetlb", "+cpuset", "+io"};
constexpr std::int64_t kPeriod = 100'000;
constexpr std::int64_t kNanosPerMicro = 1000;
constexpr std::int64_t kNanosPerTick = 10'000'000;  // of cpuacct.stat, whatever the kernel's own
/// The kernel rounds "none" down to whole pages.
constexpr std::uint64_t kNoLimit = 1ULL << 62;

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// One write(2): the kernel takes a value whole or not at all.
Result<> write_value(const std::string& path, const std::string& value) {
  const runtime::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.ok() || ::write(file.get(), value.data(), value.size()) < 0) {
    return Error::internal(cat("write ", quoted(value), " to ", path, ": ", std::strerror(errno)));
  }
  return success();
}

std::uint64_t number(std::string_view text) {
  std::uint64_t out = 0;
  const std::string_view word = trim(text);
  std::from_chars(word.data(), word.data() + word.size(), out);
  return out;
}

/// "key value" lines.
std::map<std::string, std::uint64_t, std::less<>> table(std::string_view text) {
  std::map<std::string, std::uint64_t, std::less<>> out;
  for (const std::string_view line : split(text, '\n')) {
    const auto space = line.find(' ');
    if (space == std::string_view::npos) continue;
    out[std::string(line.substr(0, space))] = number(line.substr(space + 1));
  }
  return out;
}

std::uint64_t value_of(const std::map<std::string, std::uint64_t, std::less<>>& table,
                       std::string_view key) {
  const auto found = table.find(key);
  return found == table.end() ? 0 : found->second;
}

/// Folders right below; files of a group are its settings.
std::vector<std::string> folders_of(const std::string& path) {
  std::vector<std::string> out;
  std::error_code failed;
  for (fs::directory_iterator at(path, failed), end; at != end; at.increment(failed)) {
    if (failed) break;
    if (at->is_directory(failed) && !at->is_symlink(failed)) {
      out.push_back(at->path().filename().string());
    }
  }
  return out;
}

Result<> remove_below(const std::string& path) {
  for (const auto& name : folders_of(path)) DIBS_CHECK(remove_below(cat(path, '/', name)));
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return success();
  return Error::conflict(cat("control group ", path, " cannot be removed: ", std::strerror(errno)));
}

}  // namespace

std::int64_t cpu_weight(std::int64_t shares) {
  constexpr std::int64_t kMost = 262144;
  if (shares >= kMost) return 10000;
  return 1 + std::max<std::int64_t>(shares - 2, 0) * 9999 / (kMost - 2);
}

Cgroups::Cgroups(std::string root)
    : root_(std::move(root)), unified_(exists(root_ + "/cgroup.controllers")) {}

std::string Cgroups::folder(std::string_view controller, const std::string& group) const {
  return unified_ ? cat(root_, group) : cat(root_, '/', controller, group);
}

std::string Cgroups::text(std::string_view controller, const std::string& group,
                          const char* file) const {
  auto read = runtime::system_files().read(cat(folder(controller, group), '/', file));
  return read.ok() ? *read : std::string();
}

// Two controllers may be mounted together, with a link for each: one of them is enough.
std::vector<std::string> Cgroups::hierarchies() const {
  if (unified_) return {root_};
  std::vector<std::string> out;
  std::set<std::string> seen;
  std::error_code failed;
  for (fs::directory_iterator at(root_, failed), end; at != end; at.increment(failed)) {
    if (failed) break;
    const auto real = fs::canonical(at->path(), failed);
    if (!failed && fs::is_directory(real, failed) && seen.insert(real.string()).second) {
      out.push_back(real.string());
    }
  }
  return out;
}

bool Cgroups::has(const std::string& controller, const std::string& group) const {
  if (!unified_) return exists(folder(controller, group));
  const std::string given = text("", group, "cgroup.controllers");
  const auto words = split(trim(given), ' ');
  return std::find(words.begin(), words.end(), controller) != words.end();
}

Result<> Cgroups::make(const std::string& group) const {
  std::vector<std::string> tops;
  if (unified_) {
    tops.push_back(root_);
  } else {
    for (const char* controller : kOwnControllers) {
      if (const std::string top = cat(root_, '/', controller); exists(top)) tops.push_back(top);
    }
  }
  for (const auto& top : tops) {
    std::string at = top;
    for (const std::string_view name : split(group, '/')) {
      if (name.empty()) continue;
      // A controller is for the groups below that it is passed on to; not all machines have all.
      if (unified_) {
        for (const char* one : kPassedOn)
          (void)write_value(at + "/cgroup.subtree_control", one).ok();
      }
      append(at, '/', name);
      if (::mkdir(at.c_str(), 0755) != 0 && errno != EEXIST) {
        return Error::internal(cat("make control group ", at, ": ", std::strerror(errno)));
      }
    }
  }
  if (unified_) {
    for (const char* one : kPassedOn) {
      (void)write_value(cat(root_, group, "/cgroup.subtree_control"), one).ok();
    }
  }
  return success();
}

Result<> Cgroups::limit_cpu(const std::string& group, const ContainerLimits& limits) const {
  if (!has(kCpu, group)) {
    // Without a limit there is nothing to hold; shares are then equal ones.
    if (limits.cpu_quota <= 0) return success();
    return Error::unavailable("cpu is limited, but this machine has no cpu controller");
  }
  const std::string at = folder(kCpu, group) + '/';
  const std::int64_t period = limits.cpu_period > 0 ? limits.cpu_period : kPeriod;
  if (unified_) {
    if (limits.cpu_shares > 0) {
      DIBS_CHECK(write_value(at + "cpu.weight", std::to_string(cpu_weight(limits.cpu_shares))));
    }
    const std::string quota = limits.cpu_quota > 0 ? std::to_string(limits.cpu_quota) : "max";
    return write_value(at + "cpu.max", cat(quota, ' ', period));
  }
  if (limits.cpu_shares > 0) {
    DIBS_CHECK(write_value(at + "cpu.shares", std::to_string(limits.cpu_shares)));
  }
  const std::string quota = std::to_string(limits.cpu_quota > 0 ? limits.cpu_quota : -1);
  DIBS_CHECK(write_value(at + "cpu.cfs_period_us", std::to_string(period)));
  return write_value(at + "cpu.cfs_quota_us", quota);
}

Result<> Cgroups::limit_memory(const std::string& group, const ContainerLimits& limits) const {
  if (!has(kMemory, group)) {
    if (limits.memory_bytes <= 0) return success();
    return Error::unavailable("memory is limited, but this machine has no memory controller");
  }
  const std::string at = folder(kMemory, group) + '/';
  if (limits.memory_bytes > 0) {
    // The kernel would have to kill for it (v2), or refuses in words that say nothing (v1).
    const std::uint64_t used =
        number(text(kMemory, group, unified_ ? "memory.current" : "memory.usage_in_bytes"));
    if (used > static_cast<std::uint64_t>(limits.memory_bytes)) {
      return Error::conflict(cat("attempting to set memory limit (", limits.memory_bytes,
                                 ") below current usage (", used, ")"));
    }
  }
  if (unified_) {
    return write_value(at + "memory.max",
                       limits.memory_bytes > 0 ? std::to_string(limits.memory_bytes) : "max");
  }
  return write_value(at + "memory.limit_in_bytes",
                     std::to_string(limits.memory_bytes > 0 ? limits.memory_bytes : -1));
}

Result<> Cgroups::limit_pages(const std::string& group, const ContainerLimits& limits) const {
  for (const auto& [size, bytes] : limits.huge_pages) {
    if (!has(kPages, group)) {
      return Error::unavailable(
          "huge pages are limited, but this machine has no hugetlb controller");
    }
    DIBS_CHECK(write_value(cat(folder(kPages, group), "/hugetlb.", size, pages_file()),
                           std::to_string(bytes)));
  }
  if (!limits.no_other_pages) return success();
  for (const std::string& size : page_sizes(group)) {
    const auto named = [&](const auto& one) { return one.first == size; };
    if (std::any_of(limits.huge_pages.begin(), limits.huge_pages.end(), named)) continue;
    DIBS_CHECK(write_value(cat(folder(kPages, group), "/hugetlb.", size, pages_file()), "0"));
  }
  return success();
}

std::vector<std::string> Cgroups::page_sizes(const std::string& group) const {
  std::vector<std::string> out;
  constexpr std::string_view kPrefix = "hugetlb.";
  std::error_code failed;
  for (fs::directory_iterator at(folder(kPages, group), failed), end; at != end;
       at.increment(failed)) {
    if (failed) break;
    const std::string name = at->path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(pages_file())) continue;
    std::string size = name.substr(kPrefix.size());
    size.resize(size.size() - std::string_view(pages_file()).size());
    // "hugetlb.2MB.rsvd.max" is about pages that are set aside and not used yet.
    if (size.find('.') == std::string::npos) out.push_back(std::move(size));
  }
  return out;
}

Result<> Cgroups::limit(const std::string& group, const ContainerLimits& limits) const {
  // Memory first: it is the one that may be refused for what runs there.
  DIBS_CHECK(limit_memory(group, limits));
  DIBS_CHECK(limit_cpu(group, limits));
  return limit_pages(group, limits);
}

Result<> Cgroups::remove(const std::string& group) const {
  Result<> outcome = success();
  for (const auto& top : hierarchies()) {
    if (auto removed = remove_below(top + group); !removed.ok()) outcome = removed;
  }
  return outcome;
}

void Cgroups::kill(const std::string& group) const {
  for (const auto& process : processes(group)) {
    if (const long pid = std::atol(process.c_str()); pid > 1) {
      ::kill(static_cast<pid_t>(pid), SIGKILL);
    }
  }
  for (const auto& name : children(group)) kill(cat(group, '/', name));
}

Result<> Cgroups::kill_and_remove(const std::string& group) const {
  // A killed process holds its group until its parent has taken note.
  constexpr int kLooks = 100;
  Result<> removed = success();
  for (int look = 0; look < kLooks; ++look) {
    kill(group);
    removed = remove(group);
    if (removed.ok()) return removed;
    ::usleep(20'000);
  }
  return removed;
}

void Cgroups::remove_if_empty(const std::string& group) const {
  for (const auto& top : hierarchies()) ::rmdir((top + group).c_str());
}

std::vector<std::string> Cgroups::children(const std::string& group) const {
  std::set<std::string> names;
  for (const auto& top : hierarchies()) {
    for (auto& name : folders_of(top + group)) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> Cgroups::processes(const std::string& group) const {
  std::vector<std::string> out;
  const std::string list = text(kMemory, group, "cgroup.procs");
  for (const std::string_view line : split(list, '\n')) {
    if (!line.empty()) out.emplace_back(line);
  }
  return out;
}

void Cgroups::read_cpu(const std::string& group, Usage& usage) const {
  const auto stat = table(text(kCpu, group, "cpu.stat"));
  usage.cpu_periods = value_of(stat, "nr_periods");
  usage.cpu_throttled_periods = value_of(stat, "nr_throttled");
  if (unified_) {
    usage.cpu_nanos = value_of(stat, "usage_usec") * kNanosPerMicro;
    usage.cpu_user_nanos = value_of(stat, "user_usec") * kNanosPerMicro;
    usage.cpu_system_nanos = value_of(stat, "system_usec") * kNanosPerMicro;
    usage.cpu_throttled_nanos = value_of(stat, "throttled_usec") * kNanosPerMicro;
    return;
  }
  usage.cpu_nanos = number(text("cpuacct", group, "cpuacct.usage"));
  const auto split_up = table(text("cpuacct", group, "cpuacct.stat"));
  usage.cpu_user_nanos = value_of(split_up, "user") * kNanosPerTick;
  usage.cpu_system_nanos = value_of(split_up, "system") * kNanosPerTick;
  usage.cpu_throttled_nanos = value_of(stat, "throttled_time");
}

void Cgroups::read_memory(const std::string& group, Usage& usage) const {
  const auto stat = table(text(kMemory, group, "memory.stat"));
  const auto read = [&](const char* second, const char* first) {
    return value_of(stat, unified_ ? second : first);
  };
  usage.memory_bytes =
      number(text(kMemory, group, unified_ ? "memory.current" : "memory.usage_in_bytes"));
  const std::uint64_t idle = read("inactive_file", "total_inactive_file");
  usage.memory_working_set = usage.memory_bytes > idle ? usage.memory_bytes - idle : 0;
  usage.memory_rss = read("anon", "total_rss");
  usage.memory_cache = read("file", "total_cache");
  usage.memory_mapped = read("file_mapped", "total_mapped_file");
  usage.page_faults = read("pgfault", "total_pgfault");
  usage.major_page_faults = read("pgmajfault", "total_pgmajfault");
  usage.memory_limit =
      number(text(kMemory, group, unified_ ? "memory.max" : "memory.limit_in_bytes"));
  if (usage.memory_limit >= kNoLimit) usage.memory_limit = 0;
  if (unified_) {
    usage.swap_bytes = number(text(kMemory, group, "memory.swap.current"));
    return;
  }
  const std::uint64_t with_swap = number(text(kMemory, group, "memory.memsw.usage_in_bytes"));
  usage.swap_bytes = with_swap > usage.memory_bytes ? with_swap - usage.memory_bytes : 0;
}

std::optional<Usage> Cgroups::usage(const std::string& group) const {
  if (!exists(folder(kMemory, group))) return std::nullopt;
  Usage usage;
  read_cpu(group, usage);
  read_memory(group, usage);
  usage.processes = number(text("pids", group, "pids.current"));
  return usage;
}

}  // namespace dibs::node
