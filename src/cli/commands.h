#pragma once
// The dibs command: parse, call, print.

#include "cli/command_line.h"

namespace dibs::cli {

/// All commands and flags there are: what help, man pages and completions are made of. Each call
/// makes new values for flags to point to.
CommandLine dibs_command_line();

/// Returns the exit status: 0, 1 for a failure, 2 for a wrong command line.
int run(int argc, char** argv);

}  // namespace dibs::cli
