#include "cli/driver_programs.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/log.h"
#include "base/strings.h"
#include "runtime/files.h"
#include "runtime/processes.h"

extern char** environ;

namespace dibs::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPlugins = "KUBELET_PLUGINS_DIRECTORY_PATH";

constexpr Duration kFirstPause = std::chrono::milliseconds(500);
constexpr Duration kLongestPause = std::chrono::seconds(30);
/// One that ran so long begins with the first pause again.
constexpr Duration kStayed = std::chrono::seconds(10);
constexpr Duration kGrace = std::chrono::seconds(5);
constexpr Duration kLook = std::chrono::milliseconds(50);

/// By the variable that they were given.
std::vector<pid_t> programs_below(const std::string& folder) {
  const std::string mark = cat(kPlugins, '=', folder, '/');
  std::vector<pid_t> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const long pid = std::atol(entry.path().filename().c_str());
    if (pid <= 1 || pid == ::getpid()) continue;
    const auto text = runtime::system_files().read(entry.path().string() + "/environ");
    if (text.ok() && text->find(mark) != std::string::npos) {
      found.push_back(static_cast<pid_t>(pid));
    }
  }
  return found;
}

}  // namespace

struct DriverPrograms::Program {
  std::string command;
  std::string node;
  std::vector<std::string> environment;
  std::thread thread;
};

Result<> check_program(const std::string& program) {
  const bool is_there = program.find('/') != std::string::npos
                            ? ::access(program.c_str(), X_OK) == 0
                            : !program.empty() && !runtime::find_program(program).empty();
  if (is_there) return success();
  return Error::bad_request(
      cat("there is no program ", quoted(program), " that can be run; give its path, ./mine"));
}

Result<> check_driver_command(const std::string& command) {
  auto checked = check_program(command.substr(0, command.find(' ')));
  return checked ? std::move(checked) : checked.error().within(cat("--driver ", quoted(command)));
}

std::vector<std::string> driver_environment(const DriverNode& node, const std::string& kubeconfig) {
  const std::vector<std::pair<std::string, std::string>> ours = {
      {"NODE_NAME", node.name},
      {"KUBECONFIG", kubeconfig},
      {"CDI_ROOT", node.folder + "/cdi"},
      {"KUBELET_REGISTRAR_DIRECTORY_PATH", node.folder + "/plugins_registry"},
      {kPlugins, node.folder + "/plugins"}};
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto name = text.substr(0, text.find('='));
    const bool is_ours = std::any_of(ours.begin(), ours.end(),
                                     [&](const auto& variable) { return variable.first == name; });
    if (!is_ours) out.emplace_back(text);
  }
  for (const auto& [name, value] : ours) out.push_back(cat(name, '=', value));
  return out;
}

void end_left_programs(const std::string& folder) {
  const auto end = Clock::now() + kGrace;
  for (auto some = programs_below(folder); !some.empty() && Clock::now() < end + kGrace;
       some = programs_below(folder)) {
    for (const pid_t pid : some) ::kill(pid, Clock::now() < end ? SIGTERM : SIGKILL);
    std::this_thread::sleep_for(kLook);
  }
}

void kill_left_programs(const std::string& folder) {
  for (const pid_t pid : programs_below(folder)) ::kill(pid, SIGKILL);
}

DriverPrograms::DriverPrograms(const std::vector<std::string>& commands,
                               const std::vector<DriverNode>& nodes,
                               const std::string& kubeconfig) {
  for (const std::string& command : commands) {
    for (const DriverNode& node : nodes) {
      auto program = std::make_unique<Program>();
      program->command = command;
      program->node = node.name;
      program->environment = driver_environment(node, kubeconfig);
      programs_.push_back(std::move(program));
    }
  }
  for (auto& program : programs_) program->thread = std::thread([&] { keep(*program); });
}

DriverPrograms::~DriverPrograms() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  for (auto& program : programs_) program->thread.join();
}

void DriverPrograms::keep(Program& program) {
  Duration pause = kFirstPause;
  const auto is_stopped = [&] {
    const MutexLock lock(mutex_);
    return stopped_;
  };
  while (!is_stopped()) {
    const auto began = Clock::now();
    auto process = runtime::Process::start({.argv = {"/bin/sh", "-c", "exec " + program.command},
                                            .env = program.environment,
                                            .out = runtime::Stdio::inherit,
                                            .err = runtime::Stdio::inherit});
    if (!process.ok()) {
      log::error("the driver cannot be started",
                 {{"driver", program.command}, {"node", program.node}, {"error", process.error()}});
    } else {
      std::optional<runtime::ExitStatus> ended;
      while (!(ended = (*process)->wait(kLook)) && !is_stopped()) {
      }
      if (!ended) {
        (*process)->kill(SIGTERM);
        if (!(*process)->wait(kGrace)) (*process)->kill(SIGKILL);
        return;
      }
      log::warn("the driver ended, it is started again",
                {{"driver", program.command}, {"node", program.node}, {"status", ended->code}});
    }
    if (Clock::now() - began > kStayed) pause = kFirstPause;
    MutexLock lock(mutex_);
    changed_.wait_for(lock, pause, [this]() DIBS_REQUIRES(mutex_) { return stopped_; });
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace dibs::cli
