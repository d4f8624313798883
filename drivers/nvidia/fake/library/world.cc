#include "drivers/nvidia/fake/library/world.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/strings.h"

namespace dibs::drivers::nvidia::fake {
namespace {

/// Whether this is one of the calls that the fault is about: counts it, if it needs to be.
bool strikes(MachineFiles& files, const Faults& faults, const CallFault& fault) {
  if (!fault.is_counted()) return true;
  std::uint64_t met = 0;
  const abi::Return counted = files.change([&](State& state) {
    // Faults that nobody wants any more are forgotten.
    std::erase_if(state.met, [&](const auto& entry) {
      for (const CallFault& other : faults.calls) {
        if (other.text == entry.first) return false;
      }
      return true;
    });
    met = ++state.met[fault.text];
    return 0;
  });
  if (counted != 0 || met <= fault.after) return false;
  return fault.times == 0 || met <= fault.after + fault.times;
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

}  // namespace

World& World::get() {
  static World world;
  return world;
}

std::string machine_path() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it while the library is being initialized
  if (const char* named = std::getenv("DIBS_FAKE_NVML"); named != nullptr && *named != 0) {
    return named;
  }
  Dl_info info = {};
  char whole[PATH_MAX];
  if (dladdr(reinterpret_cast<const void*>(&machine_path), &info) == 0 ||
      realpath(info.dli_fname, whole) == nullptr) {
    return "fake-nvml.yaml";
  }
  const std::string_view library = whole;
  return cat(library.substr(0, library.rfind('/')), "/fake-nvml.yaml");
}

abi::Return World::init() {
  MutexLock lock(mutex_);
  if (users_++ > 0) return 0;
  auto files = MachineFiles::open(machine_path());
  if (files.ok()) {
    files_ = std::move(*files);
    return 0;
  }
  users_ = 0;
  std::fprintf(stderr, "fake NVML: %s\n", files.error().message().c_str());
  return number(files.error().code() == dibs::Code::not_found ? nvml::Code::driver_not_loaded
                                                              : nvml::Code::unknown);
}

abi::Return World::shutdown() {
  MutexLock lock(mutex_);
  if (users_ == 0) return number(nvml::Code::uninitialized);
  if (--users_ > 0) return 0;
  files_ = nullptr;
  handles_.clear();
  known_.clear();
  sets_.clear();
  return 0;
}

std::shared_ptr<MachineFiles> World::files() {
  MutexLock lock(mutex_);
  return files_;
}

void* World::handle_of(const Handle& what) {
  MutexLock lock(mutex_);
  std::unique_ptr<Handle>& handle = handles_[what];
  if (handle == nullptr) {
    handle = std::make_unique<Handle>(what);
    known_.insert(handle.get());
  }
  return handle.get();
}

std::optional<Handle> World::what_is(const void* handle, Kind kind) {
  MutexLock lock(mutex_);
  if (!known_.contains(handle)) return std::nullopt;
  const Handle what = *static_cast<const Handle*>(handle);
  if (what.kind != kind) return std::nullopt;
  return what;
}

abi::EventSet World::add_set() {
  MutexLock lock(mutex_);
  auto set = std::make_shared<Watched>();
  auto* const handle = reinterpret_cast<abi::EventSet>(set.get());
  sets_[handle] = std::move(set);
  return handle;
}

std::shared_ptr<Watched> World::find_set(abi::EventSet set) {
  MutexLock lock(mutex_);
  const auto found = sets_.find(set);
  return found == sets_.end() ? nullptr : found->second;
}

bool World::remove_set(abi::EventSet set) {
  MutexLock lock(mutex_);
  return sets_.erase(set) > 0;
}

bool World::is_watched(std::size_t gpu) {
  MutexLock lock(mutex_);
  for (const auto& [handle, set] : sets_) {
    MutexLock set_lock(set->mutex);
    if (set->types.contains(gpu)) return true;
  }
  return false;
}

abi::Return call(std::string_view name, std::optional<std::size_t> gpu,
                 const std::function<abi::Return(MachineFiles&)>& work) {
  const auto files = World::get().files();
  if (files == nullptr) return number(nvml::Code::uninitialized);
  const auto faults = files->look().faults;
  bool kill_after = false;
  for (const CallFault& fault : faults->calls) {
    if (fault.function != name || (fault.gpu && fault.gpu != gpu)) continue;
    if (!strikes(*files, *faults, fault)) continue;
    std::this_thread::sleep_for(fault.takes);
    if (fault.kill == Kill::before) die();
    if (fault.code != 0) return fault.code;
    kill_after = kill_after || fault.kill == Kill::after;
  }
  if (gpu && (faults->gpus[*gpu].lost || faults->gpus[*gpu].gone)) {
    return number(nvml::Code::gpu_is_lost);
  }
  const abi::Return answer = work(*files);
  if (kill_after) die();
  return answer;
}

}  // namespace dibs::drivers::nvidia::fake
