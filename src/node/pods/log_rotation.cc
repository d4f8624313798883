#include "node/pods/log_rotation.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include "base/log.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

std::string stamp(Time now) {
  const std::time_t seconds = now.nanoseconds / 1'000'000'000;
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

/// Logs that were put aside, the oldest first.
std::vector<std::string> rotated_logs(const std::string& log) {
  std::vector<std::string> out;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(fs::path(log).parent_path(), failed)) {
    const std::string path = entry.path().string();
    if (path.starts_with(log + '.')) out.push_back(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<> rotate(ContainerRuntime& containers, const ContainerStatus& container,
                const LogPolicy& policy, Time now) {
  const std::string& log = container.log_path;
  std::vector<std::string> old = rotated_logs(log);
  // Beside the one that is put aside now and the one that is written next.
  const auto kept = static_cast<std::size_t>(std::max(policy.max_files - 2, 0));
  std::error_code failed;
  while (old.size() > kept) {
    fs::remove(old.front(), failed);
    old.erase(old.begin());
  }
  for (const auto& path : old) {
    if (path.ends_with(".gz")) continue;
    // One that was broken off left both; the packed one is made anew.
    auto packed = runtime::run_checked({.argv = {"nice", "-n", "19", "gzip", "--force", path}});
    if (!packed) return packed.error().within(cat("pack ", path));
  }
  const std::string aside = cat(log, '.', stamp(now));
  if (std::rename(log.c_str(), aside.c_str()) != 0) {
    return Error::internal(cat("rename ", log, ": ", std::strerror(errno)));
  }
  if (auto reopened = containers.reopen_log(container.id); !reopened) {
    // It is written on under its old name, and tried again later.
    std::rename(aside.c_str(), log.c_str());
    return reopened.error();
  }
  return success();
}

}  // namespace

Result<LogPolicy> parse_log_policy(const std::string& max_size, int max_files) {
  const auto size = Quantity::parse(max_size);
  if (!size) return size.error().within("--container-log-max-size");
  if (size->value() <= 0) {
    return Error::bad_request(
        cat("--container-log-max-size ", max_size, ": must be greater than zero"));
  }
  if (max_files < 2) {
    return Error::bad_request(cat("--container-log-max-files ", max_files, ": must be at least 2"));
  }
  return LogPolicy{size->value(), max_files};
}

void rotate_logs(ContainerRuntime& containers, const LogPolicy& policy, Time now) {
  const auto all = containers.list_containers();
  if (!all) return;
  for (const auto& container : *all) {
    if (container.state != ContainerState::running || container.log_path.empty()) continue;
    struct stat found = {};
    Result<> done = success();
    if (::stat(container.log_path.c_str(), &found) != 0) {
      // Put aside by an agent that died before the container knew.
      if (errno == ENOENT) done = containers.reopen_log(container.id);
    } else if (found.st_size >= policy.max_size) {
      done = rotate(containers, container, policy, now);
    }
    if (!done) {
      log::warn("log cannot be rotated",
                {{"container", container.id}, {"error", done.error().message()}});
    }
  }
}

}  // namespace dibs::node
