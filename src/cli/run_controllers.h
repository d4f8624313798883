#pragma once
// `dibs controllers`: the controllers of a cluster in a process of their own, which waits until it
// leads and runs until a signal ends it.

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/run_elected.h"
#include "controllers/controller.h"

namespace dibs::cli {

struct ControllersFlags {
  std::string kubeconfig;
  std::string context;
  Duration grace_period = std::chrono::seconds(50);
  controllers::AutoscalerOptions autoscaler;
  /// PEM files; "": nobody signs.
  std::string account_key_file = {};
  std::string signing_certificate_file = {};
  std::string signing_key_file = {};
  /// Each controller as its own service account, not all as who the kubeconfig says.
  bool use_accounts = false;
  std::string release = {};  // whose gates; "": the newest
  std::string feature_gates = {};
  ElectionFlags election = {};
  std::string metrics_address = {};  // "": nowhere
  std::string log_level = "info";
};

/// Errors: bad_request, naming the flag.
Result<> check_autoscaler(const controllers::AutoscalerOptions& options);

/// Returns the exit status.
int run_controllers(const ControllersFlags& flags);

}  // namespace dibs::cli
