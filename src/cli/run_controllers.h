#pragma once
// `dibs controllers`: the controllers of a cluster in a process of their own, which waits until it
// leads and runs until a signal ends it.

#include <string>

#include "base/time.h"
#include "cli/run_elected.h"

namespace dibs::cli {

struct ControllersFlags {
  std::string kubeconfig;
  std::string context;
  Duration grace_period = std::chrono::seconds(50);
  /// Each controller as its own service account, not all as who the kubeconfig says.
  bool use_accounts = false;
  ElectionFlags election = {};
  std::string log_level = "info";
};

/// Returns the exit status.
int run_controllers(const ControllersFlags& flags);

}  // namespace dibs::cli
