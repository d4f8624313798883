#include "load/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/strings.h"
#include "load/connection.h"

namespace dibs::bench {
namespace {

constexpr double kStartSeconds = 60;
constexpr double kStopSeconds = 20;

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

double status_mb(const std::string& status, std::string_view name) {
  const auto at = status.find(name);
  return at == std::string::npos ? 0 : std::atof(status.c_str() + at + name.size()) / 1024;
}

}  // namespace

Folder::Folder() {
  const char* base = std::getenv("DIBS_BENCH_DIR");
  path_ = cat(base != nullptr ? base : "/var/tmp", "/dibs-load-XXXXXX");
  if (::mkdtemp(path_.data()) == nullptr) die(cat("cannot make ", path_));
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ServerProcess::ServerProcess(const std::string& binary, const std::string& folder,
                             const std::string& store, const std::vector<std::string>& more,
                             const char* command)
    : kubeconfig_(folder + "/kubeconfig") {
  std::vector<std::string> words = {binary,        command,   "--data-dir", folder,        "--bind",
                                    "127.0.0.1:0", "--store", store,        "--log-level", "warn"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) die("pipe");

  const double began = seconds_now();
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string said;
  while (said.find("ready at") == std::string::npos) {
    pollfd wanted{ends[0], POLLIN, 0};
    char buffer[512];
    const double left = began + kStartSeconds - seconds_now();
    if (left <= 0 || ::poll(&wanted, 1, static_cast<int>(left * 1000)) <= 0)
      die("the server does not start");
    const auto got = ::read(ends[0], buffer, sizeof buffer);
    if (got <= 0) die(cat(binary, " ended before it was ready"));
    said.append(buffer, static_cast<std::size_t>(got));
  }
  start_ms_ = (seconds_now() - began) * 1000;
  // What it says later must not fill the pipe: closing it is enough, the server ignores SIGPIPE.
  ::close(ends[0]);
}

ServerProcess::~ServerProcess() { stop(); }

void ServerProcess::stop() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  const double deadline = seconds_now() + kStopSeconds;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (seconds_now() > deadline) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      break;
    }
    ::usleep(2000);
  }
  pid_ = -1;
}

Memory ServerProcess::memory() const {
  const std::string status = read_all(cat("/proc/", pid_, "/status"));
  return {status_mb(status, "VmRSS:"), status_mb(status, "RssAnon:")};
}

double ServerProcess::cpu_seconds() const { return dibs::bench::cpu_seconds(pid_); }

double cpu_seconds(pid_t pid) {
  const std::string text = read_all(cat("/proc/", pid, "/stat"));
  // The name may hold spaces; the fields are counted from its end.
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double own_cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace dibs::bench
