#pragma once
// The dibs command: parse, call, print.

namespace dibs::cli {

/// Returns the exit status: 0, 1 for a failure, 2 for a wrong command line.
int run(int argc, char** argv);

}  // namespace dibs::cli
