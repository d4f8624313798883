#pragma once
// `dibs driver test`: a driver is tried without a cluster (trial/trial.h), and what was found is
// printed.

#include <string>
#include <vector>

#include "base/time.h"
#include "cli/command_line.h"

namespace dibs::cli {

struct TrialFlags {
  std::vector<std::string> program = {};  // with its arguments
  std::vector<std::string> only = {};
  std::vector<std::string> skip = {};
  std::string output = "text";
  std::string node_name = "node-0";
  std::string data_dir = {};  // "": one in /tmp, which goes when nothing failed
  Duration start_timeout = std::chrono::seconds(30);
  Duration call_timeout = std::chrono::seconds(45);
  Duration stop_timeout = std::chrono::seconds(30);
};

Flags trial_flags(TrialFlags& flags);
/// For --help: what is checked.
std::string trial_footer();

/// The exit status: 1 when a check failed, 2 when nothing can be tried.
int run_trial(const TrialFlags& flags);

}  // namespace dibs::cli
