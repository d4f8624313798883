#include "drivers/nvidia/programs.h"

#include "runtime/blocking.h"
#include "runtime/processes.h"

namespace dibs::drivers::nvidia {

Result<std::string> run_program(const Program& program) {
  runtime::ProcessOptions options;
  if (!program.env.empty()) {
    // `env` adds to what this process has, which a list of its own would replace.
    options.argv.emplace_back("env");
    options.argv.insert(options.argv.end(), program.env.begin(), program.env.end());
  }
  options.argv.insert(options.argv.end(), program.argv.begin(), program.argv.end());
  const runtime::Blocking blocking;
  return runtime::run_checked(std::move(options), program.input, program.patience);
}

}  // namespace dibs::drivers::nvidia
