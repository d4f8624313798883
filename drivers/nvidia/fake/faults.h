#pragma once
// What somebody wants to go wrong on the fake machine: a YAML file beside the machine's that is
// read anew whenever it has changed (docs/formats/fake-nvml.md). No file: nothing.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "drivers/nvidia/fake/machine.h"

namespace dibs::drivers::nvidia::fake {

struct EventFault {
  /// Of Machine::gpus.
  std::size_t gpu = 0;
  unsigned long long type = 0;
  unsigned long long data = 0;
  unsigned gpu_instance = nvml::abi::kNoInstanceId;
  unsigned compute_instance = nvml::abi::kNoInstanceId;
  /// The entry as it is written; an event set is told each once.
  std::string text = {};
};

enum class Kill : std::uint8_t { no, before, after };

struct CallFault {
  std::string function = {};
  std::optional<std::size_t> gpu = {};
  nvml::abi::Return code = 0;
  Duration takes = {};
  Kill kill = Kill::no;
  /// The first `after` calls go well, then `times` do not; 0: all.
  std::uint64_t after = 0;
  std::uint64_t times = 0;
  std::string text = {};

  bool is_counted() const { return after > 0 || times > 0; }
};

struct GpuFaults {
  bool lost = false;
  bool gone = false;
  bool busy = false;
  unsigned correctable_rows = 0;
  unsigned uncorrectable_rows = 0;
  bool row_pending = false;
  bool row_failed = false;
  std::uint64_t corrected = 0;
  std::uint64_t uncorrected = 0;
  unsigned links_down = 0;
  unsigned gpu_percent = 0;
  unsigned memory_percent = 0;
  std::uint64_t memory_used = 0;
};

struct Faults {
  /// One for each GPU of the machine.
  std::vector<GpuFaults> gpus = {};
  /// "MIG-…" of instances that a process runs in, and what memory it has.
  std::map<std::string, std::uint64_t, std::less<>> busy_instances = {};
  std::vector<EventFault> events = {};
  std::vector<CallFault> calls = {};
};

Faults no_faults(const Machine& machine);
Result<Faults> parse_faults(const Machine& machine, std::string_view text, std::string_view name);

/// NVML's number of "in_use", "NVML_ERROR_IN_USE" or "19"; nothing for anything else.
std::optional<nvml::abi::Return> parse_code(std::string_view text);

}  // namespace dibs::drivers::nvidia::fake
