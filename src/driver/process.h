#pragma once
// A driver as a program of its own: flags and environment variables, the API server's address,
// signals, metrics.
//
//   int main(int argc, char** argv) {
//     driver::PluginOptions options;
//     options.driver_name = "lamps.example.com";
//     return driver::run_main(argc, argv, options, [](const driver::PluginOptions&) {
//       return std::make_unique<Lamps>();
//     });
//   }
//
// It ends cleanly with SIGINT, SIGTERM, SIGHUP or SIGQUIT; devices stay published for the next
// instance.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "driver/plugin.h"

namespace dibs::driver {

struct ProcessOptions {
  std::string kubeconfig = {};  // "": $KUBECONFIG, the pod's service account, ~/.kube/config
  std::string context = {};
  std::string user_agent = "dibs-driver";
  std::string log_level = "info";
  /// TCP ports; 0 picks one, below 0 there is none.
  int metrics_port = -1;
  int healthcheck_port = -1;
};

/// Calls `begin` with a world of its own, then waits for a signal, and ends what was begun.
Result<> run_until_signal(const ProcessOptions& options,
                          const std::function<Result<Running>(const Environment&)>& begin);

using MakeDriver = std::function<std::unique_ptr<Driver>(const PluginOptions& options)>;

/// The whole main() of a driver. `options` are its defaults; the flags of --help change them.
/// Returns the exit status: 0, 1 when something failed, 2 for a wrong flag.
int run_main(int argc, char** argv, PluginOptions options, const MakeDriver& make);

/// Of run_main: `error` is empty when all went well; `help` when it was asked for.
struct ParsedFlags {
  std::string error = {};
  bool help = false;
};
/// `environment` gives the value of a variable, or null.
ParsedFlags parse_flags(int argc, const char* const* argv,
                        const std::function<const char*(const char*)>& environment,
                        PluginOptions& plugin, ProcessOptions& process);

}  // namespace dibs::driver
