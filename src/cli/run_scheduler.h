#pragma once
// `dibs scheduler`: the scheduler in a process of its own, which waits until it leads and runs
// until a signal ends it.

#include <string>

#include "base/result.h"
#include "cli/run_elected.h"
#include "runtime/files.h"
#include "scheduler/profiles.h"

namespace dibs::cli {

struct SchedulerFlags {
  std::string kubeconfig;
  std::string context;
  std::string config;   // file of a KubeSchedulerConfiguration
  std::string release;  // "": the newest, and the server's ways with classic claims
  std::string feature_gates;
  ElectionFlags election = {};
  bool explain_events = false;
  std::string metrics_address = {};  // "": nowhere
  std::string log_level = "info";
};

/// The file of `flag`, "" for the default; what it asks for in vain goes to the log.
Result<scheduler::Configuration> read_scheduler_config(const std::string& file,
                                                       const api::Features& gates,
                                                       runtime::Files& files,
                                                       std::string_view flag = "--config");

/// Returns the exit status.
int run_scheduler(const SchedulerFlags& flags);

}  // namespace dibs::cli
