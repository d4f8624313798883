#pragma once
// A driver as a program of its own: flags and environment variables, the API server's address,
// signals, metrics.
//
//   int main(int argc, char** argv) {
//     driver::PluginOptions options;
//     options.driver_name = "lamps.example.com";
//     int lamps = 4;
//     const driver::Flags own = {{"--lamps", &lamps, "How many there are", {.env = "LAMPS"}}};
//     const auto make = [&](const driver::PluginOptions& given) {
//       return std::make_unique<Lamps>(given.node_name, lamps);
//     };
//     return driver::run_main(argc, argv, options, make, own);
//   }
//
// run_controller_main() is the same for the controller of a classic driver; a program with more to
// run calls run_program().
//
// It ends cleanly with SIGINT, SIGTERM, SIGHUP or SIGQUIT; devices stay published for the next
// instance.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "driver/command_line.h"
#include "driver/controller.h"
#include "driver/plugin.h"

namespace dibs::driver {

struct ProcessOptions {
  std::string kubeconfig = {};  // "": $KUBECONFIG, ~/.kube/config, the pod's service account
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

/// Flags that every driver has, and every controller of a classic one.
Flags plugin_flags(PluginOptions& options);
Flags controller_flags(ControllerOptions& options);
Flags process_flags(ProcessOptions& options);

struct Program {
  std::string driver_name = {};
  /// The program's own; in --help they come first.
  Flags flags = {};
  /// Those of its kind, beside process_flags().
  Flags standard_flags = {};
  /// What is wrong with the flags as a whole: a bad_request.
  std::function<Result<>()> check = {};
  std::function<Result<Running>(const Environment& environment)> begin = {};
};
/// The whole of main(). Returns the exit status: 0, 1 when something failed, 2 for a bad_request.
int run_program(int argc, char** argv, const Program& program);

/// Called once the flags are known. Errors end the program; a bad_request says what is wrong with a
/// flag.
using MakeDriver = std::function<Result<std::unique_ptr<Driver>>(const PluginOptions& options)>;
/// The whole main() of a driver. `options` are its defaults; the flags of --help change them, and
/// set what `own` points to. Driver::started() hands the driver its Plugin.
int run_main(int argc, char** argv, PluginOptions options, const MakeDriver& make,
             const Flags& own = {});

using MakeAllocator = std::function<std::unique_ptr<Allocator>(const Environment& environment)>;
/// The same for the controller of a classic driver.
int run_controller_main(int argc, char** argv, ControllerOptions options, const MakeAllocator& make,
                        const Flags& own = {});

}  // namespace dibs::driver
