#pragma once
// The machine that the fake library pretends to be: what a YAML file says
// (docs/formats/fake-nvml.md), checked. It does not change while the library is initialized; what
// changes is in state.h and faults.h.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/nvidia/nvml/abi.h"

namespace dibs::drivers::nvidia::fake {

struct Profile {
  /// "1g.18gb+me"
  std::string name = {};
  /// What instances are made by (19), and what a profile is asked for by (NVML's constants, 0 to
  /// 17).
  unsigned id = 0;
  unsigned index = 0;
  unsigned slices = 0;
  unsigned instances = 0;
  unsigned multiprocessors = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  unsigned encoders = 0;
  unsigned jpeg = 0;
  unsigned ofa = 0;
  std::uint64_t memory = 0;
  std::vector<nvml::abi::Placement> placements = {};
};

struct Model {
  std::string name = {};
  int brand = 0;
  unsigned architecture = 0;
  int compute_major = 0;
  int compute_minor = 0;
  unsigned pci_device = 0;
  std::uint64_t memory = 0;
  /// Of it, what the driver keeps for itself.
  std::uint64_t reserved = 0;
  /// NVML's number; -1: the GPU does not say.
  int addressing_mode = -1;
  bool ecc = false;
  bool row_remapping = false;
  unsigned long long events = 0;
  bool mig = false;
  /// Compute slices and memory slices of the whole.
  unsigned slices = 0;
  unsigned memory_slices = 0;
  /// Another MIG mode waits for a reset (`dibs-fake-nvml reset`).
  bool mode_needs_reset = false;
  /// Profiles are told only while MIG is on.
  bool queries_need_mode = false;
  std::vector<Profile> profiles = {};
};

struct Links {
  unsigned count = 0;
  unsigned version = 0;
  /// nvmlIntNvLinkDeviceType_t
  int kind = nvml::abi::kLinkToUnknown;
  /// PCI addresses of the other ends; links take them in turn.
  std::vector<std::string> remotes = {};
};

struct Gpu {
  /// Of Machine::models.
  std::size_t model = 0;
  std::string uuid = {};
  unsigned minor = 0;
  std::string pci = {};  // "0000:19:00.0"
  std::string pcie_root = {};
  int numa_node = -1;
  /// MIG as it is before anybody switches it.
  bool mig_enabled = false;
  Links links = {};
};

struct Machine {
  std::string driver = {};
  /// As NVML tells it: 13000 for 13.0.
  int cuda = 0;
  std::vector<Model> models = {};
  std::vector<Gpu> gpus = {};

  const Model& model_of(std::size_t gpu) const { return models[gpus[gpu].model]; }
};

/// `name` is what errors call the text: "machine.yaml:12: gpus[3].modle: unknown field".
Result<Machine> parse_machine(std::string_view text, std::string_view name);

/// What a list of GPUs in another file may say: an index or an uuid. Null: no such GPU.
const Gpu* find_gpu(const Machine& machine, std::string_view what);

}  // namespace dibs::drivers::nvidia::fake
