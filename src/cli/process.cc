#include "cli/process.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "runtime/files.h"

// Of tcmalloc, in builds that have it.
extern "C" {
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char* property,
                                                             std::size_t* value);
__attribute__((weak)) void MallocExtension_ReleaseFreeMemory();
}

namespace dibs::cli {
namespace {

sigset_t end_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  return ends;
}

/// The soft limit is for programs that use select(), which this is none of.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    log::warn("the limit of open files cannot be raised", {{"limit", limit.rlim_max}});
}

}  // namespace

void begin_process(std::string_view log_level) {
  log::Level level = log::Level::info;
  log::parse_level(log_level, level);
  log::set_level(level);
  // Threads started from here on leave the signals to this one.
  const sigset_t ends = end_signals();
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  signal(SIGPIPE, SIG_IGN);
  raise_file_limit();
}

void give_memory_back() {
  constexpr std::size_t kWorthIt = 64UL * 1024 * 1024;
  if (MallocExtension_ReleaseFreeMemory != nullptr) {
    std::size_t unused = 0;
    MallocExtension_GetNumericProperty("tcmalloc.pageheap_free_bytes", &unused);
    if (unused > kWorthIt) MallocExtension_ReleaseFreeMemory();
  } else if (mallinfo2().fordblks > kWorthIt) {
    malloc_trim(0);
  }
}

int wait_for_end() {
  const sigset_t ends = end_signals();
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  log::info("stopping", {{"signal", signal_number}});
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  return signal_number;
}

std::unique_ptr<runtime::LastMoment> hurry(int signal, Duration more, std::function<void()> last) {
  constexpr Duration kMoment = std::chrono::milliseconds(700);
  if (signal != SIGINT) return nullptr;
  return std::make_unique<runtime::LastMoment>(kMoment + more, 0, std::move(last));
}

void end_from_within() { kill(getpid(), SIGTERM); }

Result<client::Access> find_access(const std::string& kubeconfig, const std::string& context) {
  auto found =
      client::find_access(runtime::system_files(), kubeconfig, context, [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value != nullptr ? value : "");
      });
  if (found.ok() || found.error().code() != Code::not_found || !kubeconfig.empty()) return found;
  return Error::not_found(cat(found.error().message(),
                              ": name one by --kubeconfig or KUBECONFIG; `dibs up --merge` puts "
                              "its cluster into yours, `dibs list` shows those of this machine"));
}

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

Result<std::string> data_folder(const std::string& flag) {
  if (!flag.empty()) return flag;
  const char* home = std::getenv("HOME");
  if (!home || !*home) return Error::bad_request("--data-dir: must be given where HOME is not set");
  return cat(home, "/.local/share/dibs");
}

Error as_usage(const Error& error, std::string_view flag) {
  return Error::bad_request(error.message()).within(flag);
}

int exit_status(std::string_view command, const Result<>& ran) {
  if (ran.ok()) return 0;
  std::fprintf(stderr, "dibs %.*s: %s\n", static_cast<int>(command.size()), command.data(),
               ran.error().message().c_str());
  return ran.error().code() == Code::bad_request ? 2 : 1;
}

}  // namespace dibs::cli
