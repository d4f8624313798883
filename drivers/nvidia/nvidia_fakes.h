#pragma once
// For tests: GPUs as values, as NVML would tell them, and programs that only note what they are
// asked.

#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "drivers/nvidia/inventory.h"
#include "drivers/nvidia/programs.h"

namespace dibs::drivers::nvidia::test {

inline nvml::MigProfile make_profile(unsigned id, std::string name, unsigned slices,
                                     unsigned multiprocessors, std::uint64_t gib, unsigned size,
                                     const std::vector<unsigned>& starts) {
  nvml::MigProfile profile;
  profile.id = id;
  profile.name = std::move(name);
  profile.slices = slices;
  profile.instances = static_cast<unsigned>(starts.size());
  profile.multiprocessors = multiprocessors;
  profile.copy_engines = slices;
  profile.decoders = slices;
  profile.jpeg = slices;
  profile.memory_bytes = gib << 30;
  for (const unsigned start : starts) profile.placements.push_back({start, size});
  return profile;
}

/// A Hopper with a few of its profiles.
inline Gpu make_gpu(unsigned minor, bool mig_enabled = false) {
  Gpu gpu;
  gpu.info.index = minor;
  gpu.info.minor = minor;
  gpu.info.uuid = cat("GPU-0000000", minor);
  gpu.info.name = "NVIDIA H200";
  gpu.info.brand = "Nvidia";
  gpu.info.architecture = "Hopper";
  gpu.info.compute_capability = "9.0";
  gpu.info.pci_bus_id = cat("0000:", 19 + minor, ":00.0");
  gpu.info.memory_bytes = 140ULL << 30;
  gpu.info.mig_capable = true;
  gpu.info.mig_enabled = mig_enabled;
  gpu.pcie_root = "pci0000:16";
  gpu.numa_node = 1;
  gpu.profiles = {make_profile(19, "1g.18gb", 1, 16, 16, 1, {0, 1, 2, 3, 4, 5, 6}),
                  make_profile(20, "1g.18gb+me", 1, 16, 16, 1, {0, 1, 2, 3, 4, 5, 6}),
                  make_profile(9, "3g.71gb", 3, 60, 70, 4, {0, 4}),
                  make_profile(0, "7g.141gb", 7, 132, 140, 8, {0})};
  // One instance of it at a time.
  gpu.profiles[1].instances = 1;
  return gpu;
}

inline nvml::MigInstance make_instance(unsigned id, unsigned profile, nvml::Placement placement) {
  return {id, 0, profile, placement, cat("MIG-", id)};
}

/// Notes what is run, and says that it went well unless it was told otherwise.
struct Programs {
  std::vector<Program> ran = {};
  /// Programs whose first argument ends with one of these fail.
  std::vector<std::string> broken = {};
  /// These take longer than anybody waits.
  std::vector<std::string> hung = {};

  RunProgram runner() {
    return [this](const Program& program) -> Result<std::string> {
      ran.push_back(program);
      for (const auto& name : broken) {
        if (program.argv.front().ends_with(name)) return Error::internal(cat(name, " failed"));
      }
      for (const auto& name : hung) {
        if (program.argv.back().ends_with(name)) return Error(Code::timeout, cat(name, " hangs"));
      }
      return std::string();
    };
  }
  /// "nvidia-smi compute-policy …", what was fed to it behind a '<'. MPS's control program, which
  /// is run in mounts of its own, is "mps", with -d and the folders where it starts a daemon.
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const auto& program : ran) {
      std::vector<std::string> words = program.argv;
      words.front() = words.front().substr(words.front().rfind('/') + 1);
      if (words.front() == "unshare" && words.back().ends_with("/nvidia-cuda-mps-control")) {
        const bool starts = words[6].find("-d") != std::string::npos;
        words.erase(words.begin() + 1, words.begin() + 8);
        words.resize(words.size() - (starts ? 2 : 3));
        words.front() = starts ? "mps -d" : "mps";
      }
      out.push_back(join(words, " "));
      if (!program.input.empty()) append(out.back(), " < ", trim(program.input));
    }
    return out;
  }
};

}  // namespace dibs::drivers::nvidia::test
