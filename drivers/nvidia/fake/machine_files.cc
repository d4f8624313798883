#include "drivers/nvidia/fake/machine_files.h"

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/strings.h"
#include "drivers/nvidia/fake/root.h"
#include "drivers/nvidia/nvml/library.h"

namespace dibs::drivers::nvidia::fake {
namespace {

constexpr auto kUnknown = static_cast<nvml::abi::Return>(nvml::Code::unknown);

void tell(const Error& error) { std::fprintf(stderr, "fake NVML: %s\n", error.message().c_str()); }

/// The last part of a path, by which errors call a file.
std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string state_path(const std::string& machine_path) { return cat(machine_path, ".state"); }
std::string faults_path(const std::string& machine_path) { return cat(machine_path, ".faults"); }

std::vector<std::size_t> Snapshot::present() const {
  std::vector<std::size_t> gpus;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    if (!faults->gpus[i].gone) gpus.push_back(i);
  }
  return gpus;
}

MachineFiles::MachineFiles(std::string path, Machine machine)
    : path_(std::move(path)),
      machine_(std::move(machine)),
      state_(std::make_shared<const State>(fresh_state(machine_))),
      faults_(std::make_shared<const Faults>(no_faults(machine_))) {}

Result<std::shared_ptr<MachineFiles>> MachineFiles::open(const std::string& path) {
  char whole[PATH_MAX];
  if (realpath(path.c_str(), whole) == nullptr) {
    return Error::not_found(
        cat("there is no machine description ", path, "; DIBS_FAKE_NVML names the file"));
  }
  DIBS_TRY(const std::string text, read_file(whole));
  DIBS_TRY(Machine machine, parse_machine(text, whole));
  return std::shared_ptr<MachineFiles>(new MachineFiles(whole, std::move(machine)));
}

Snapshot MachineFiles::look() {
  MutexLock lock(mutex_);
  const std::string state = state_path(path_);
  if (const Stamp now = stamp_of(state); now != state_stamp_) {
    state_stamp_ = now;
    const auto text = now == Stamp{} ? Result<std::string>(std::string("{}")) : read_file(state);
    auto parsed = text.ok() ? parse_state(machine_, *text, name_of(state)) : text.error();
    if (parsed.ok()) {
      state_ = std::make_shared<const State>(std::move(*parsed));
    } else {
      tell(parsed.error());
    }
  }
  const std::string faults = faults_path(path_);
  if (const Stamp now = stamp_of(faults); now != faults_stamp_) {
    faults_stamp_ = now;
    const auto text = now == Stamp{} ? Result<std::string>(std::string()) : read_file(faults);
    auto parsed = text.ok() ? parse_faults(machine_, *text, name_of(faults)) : text.error();
    if (parsed.ok()) {
      faults_ = std::make_shared<const Faults>(std::move(*parsed));
    } else {
      tell(parsed.error());
    }
  }
  return {machine_, state_, faults_};
}

Result<> MachineFiles::change_or_tell(const std::function<Result<>(State&)>& change) {
  const std::string path = state_path(path_);
  DIBS_TRY(const FileLock lock, FileLock::take(cat(path_, ".lock")));
  State state = fresh_state(machine_);
  if (stamp_of(path) != Stamp{}) {
    DIBS_TRY(const std::string text, read_file(path));
    DIBS_TRY(state, parse_state(machine_, text, path));
  }
  DIBS_CHECK(change(state));
  DIBS_CHECK(write_file(path, write_state(machine_, state)));
  // The change stands, whatever becomes of the folder.
  if (const auto followed = follow_state(machine_, state); !followed.ok()) tell(followed.error());
  return success();
}

nvml::abi::Return MachineFiles::change(const std::function<nvml::abi::Return(State&)>& change) {
  nvml::abi::Return answer = 0;
  const auto changed = change_or_tell([&](State& state) -> Result<> {
    answer = change(state);
    if (answer != 0) return Error::conflict("refused");
    return success();
  });
  if (changed.ok() || answer != 0) return answer;
  tell(changed.error());
  return kUnknown;
}

}  // namespace dibs::drivers::nvidia::fake
