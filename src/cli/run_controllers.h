#pragma once
// `dibs controllers`: the controllers of a cluster in a process of their own, which waits until it
// leads and runs until a signal ends it.

#include <string>

namespace dibs::cli {

struct ControllersFlags {
  std::string kubeconfig;
  std::string context;
  std::string grace_period = "50s";
  std::string log_level = "info";
};

/// Returns the exit status.
int run_controllers(const ControllersFlags& flags);

}  // namespace dibs::cli
