#pragma once
// Programs of NVIDIA's driver and of the system that are run for what no library does: nvidia-smi,
// nvidia-cuda-mps-control, mount. Tests hand in one that only notes what was asked.

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace dibs::drivers::nvidia {

struct Program {
  std::vector<std::string> argv = {};
  /// KEY=value, besides what the driver itself was started with.
  std::vector<std::string> env = {};
  std::string input = {};
  /// What takes longer is killed; the error is of kind timeout.
  Duration patience = std::chrono::minutes(1);
};

/// What it printed. An exit status other than 0 is an error with what it said.
using RunProgram = std::function<Result<std::string>(const Program& program)>;

Result<std::string> run_program(const Program& program);

}  // namespace dibs::drivers::nvidia
