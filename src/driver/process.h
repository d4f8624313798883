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
// run_controller_main() is the same for the controller of a classic driver; one with flags of its
// own, or with more to run, calls run_program().
//
// It ends cleanly with SIGINT, SIGTERM, SIGHUP or SIGQUIT; devices stay published for the next
// instance.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/controller.h"
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

/// One flag: its name, its variable ("": none), and where its value goes, which is one of the
/// three. A flag that is on or off needs no value on the command line.
struct Flag {
  const char* name;
  const char* variable;
  const char* help;
  std::string* text = nullptr;
  int* number = nullptr;
  bool* on = nullptr;
};
std::vector<Flag> plugin_flags(PluginOptions& options);
std::vector<Flag> controller_flags(ControllerOptions& options);
std::vector<Flag> process_flags(ProcessOptions& options);

/// What is wrong; "" when nothing is. `environment` gives the value of a variable, or null.
std::string parse_flags(int argc, const char* const* argv,
                        const std::function<const char*(const char*)>& environment,
                        const std::vector<Flag>& flags);

struct Program {
  std::string driver_name = {};
  /// Beside those of ProcessOptions.
  std::vector<Flag> flags = {};
  /// What is wrong with the flags as a whole; "" when nothing is.
  std::function<std::string()> check = {};
  std::function<Result<Running>(const Environment& environment)> begin = {};
};
/// The whole of main(). Returns the exit status: 0, 1 when something failed, 2 for a wrong flag.
int run_program(int argc, char** argv, const Program& program);

using MakeDriver = std::function<std::unique_ptr<Driver>(const PluginOptions& options)>;
/// The whole main() of a driver. `options` are its defaults; the flags of --help change them.
int run_main(int argc, char** argv, PluginOptions options, const MakeDriver& make);

using MakeAllocator = std::function<std::unique_ptr<Allocator>(const Environment& environment)>;
/// The same for the controller of a classic driver.
int run_controller_main(int argc, char** argv, ControllerOptions options,
                        const MakeAllocator& make);

}  // namespace dibs::driver
