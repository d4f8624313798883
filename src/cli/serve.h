#pragma once
// Runs an API server in this process until a signal ends it.

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace dibs::cli {

struct ServeFlags {
  std::string data_dir;
  std::string bind = "127.0.0.1:6443";
  std::string kubeconfig_out;
  std::string store = "sqlite";
  std::string release;
  std::string feature_gates;
  std::string runtime_config;
  std::vector<std::string> enabled_plugins;
  std::vector<std::string> disabled_plugins;
  std::string token_auth_file;
  std::string service_range = "10.0.0.0/24";
  std::string issuer = "https://kubernetes.default.svc";
  std::string log_level = "info";
  unsigned threads = 0;  // 0: by the number of cores
  /// Controllers too, not the server alone.
  bool whole_cluster = false;
  Duration node_monitor_grace_period = std::chrono::seconds(50);
};

/// `command` is what the user called it by, for messages. Returns the exit status.
int serve(const ServeFlags& flags, std::string_view command);

}  // namespace dibs::cli
