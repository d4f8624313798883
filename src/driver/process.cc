#include "driver/process.h"

#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "client/https_transport.h"
#include "client/kubeconfig.h"
#include "driver/process_servers.h"
#include "runtime/files.h"
#include "runtime/interruption.h"
#include "runtime/real_runtime.h"

namespace dibs::driver {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

constexpr int kEnds[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
/// A start that waits for nobody is over by then, and ends as it should.
constexpr Duration kMoment = std::chrono::milliseconds(500);
constexpr Duration kPatience = std::chrono::milliseconds(700);

sigset_t end_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : kEnds) sigaddset(&ends, number);
  return ends;
}

/// Errors that somebody can mend on the command line say where it is explained, as those of dibs
/// do.
int exit_status(const char* program, const Result<>& ran) {
  if (ran) return 0;
  const bool wrong_usage = ran.error().code() == Code::bad_request;
  std::string hint;
  if (wrong_usage) hint = cat(" (", quoted(cat(program, " --help")), " lists all)");
  std::fprintf(stderr, "%s: %s%s\n", program, ran.error().message().c_str(), hint.c_str());
  return wrong_usage ? 2 : 1;
}

void print_help(const char* called, const Program& program, const Flags& standard) {
  std::string out =
      cat("The driver ", program.driver_name, ".\n\nUsage: ", called, " [FLAG...]\n\n");
  if (!program.flags.empty())
    append(out, help_of_flags("Flags of this driver", program.flags), "\n");
  append(out, help_of_flags("Flags of every driver", standard));
  std::fputs(out.c_str(), stdout);
}

}  // namespace

Flags process_flags(ProcessOptions& options) {
  return {
      {"--kubeconfig",
       &options.kubeconfig,
       "How to reach the API server (default: $KUBECONFIG, ~/.kube/config, the pod's service "
       "account)",
       {.type = "FILE"}},
      {"--context", &options.context, "Context of the kubeconfig (default: its current one)"},
      {"--metrics-port",
       &options.metrics_port,
       "TCP port for /metrics; below 0: none",
       {.env = "METRICS_PORT", .least = -1, .most = 65535}},
      {"--healthcheck-port",
       &options.healthcheck_port,
       "TCP port of the gRPC health service; below 0: none",
       {.env = "HEALTHCHECK_PORT", .least = -1, .most = 65535}},
      {"--log-level",
       &options.log_level,
       "What to log",
       {.one_of = {"debug", "info", "warn", "error", "off"}}},
  };
}

Flags plugin_flags(PluginOptions& options) {
  return {
      {"--node-name",
       &options.node_name,
       "Name of the node this runs on",
       {.env = "NODE_NAME", .required = options.node_name.empty()}},
      {"--cdi-root", &options.cdi_dir, "Folder for CDI files", {.env = "CDI_ROOT"}},
      {"--kubelet-registrar-directory-path",
       &options.registry_dir,
       "Where the node's agent looks for plugins",
       {.env = "KUBELET_REGISTRAR_DIRECTORY_PATH"}},
      {"--kubelet-plugins-directory-path",
       &options.plugins_dir,
       "Where drivers have their folders, with socket and checkpoint",
       {.env = "KUBELET_PLUGINS_DIRECTORY_PATH"}},
      {"--pod-uid",
       &options.pod_uid,
       "Uid of the driver's pod, for rolling updates",
       {.env = "POD_UID"}},
  };
}

Flags controller_flags(ControllerOptions& options) {
  return {
      {"--leader-election",
       &options.leader_election,
       "Several instances may run: one of them works",
       {.env = "LEADER_ELECTION"}},
      {"--leader-election-namespace",
       &options.lease_namespace,
       "Where the lease is",
       {.env = "LEADER_ELECTION_NAMESPACE"}},
      {"--leader-election-name",
       &options.lease_name,
       "Name of the lease (default: the driver's name)",
       {.env = "LEADER_ELECTION_NAME"}},
      {"--identity",
       &options.identity,
       "Name of this instance in the lease (default: made up)",
       {.env = "POD_NAME"}},
  };
}

Result<> run_until_signal(const ProcessOptions& options,
                          const std::function<Result<Running>(const Environment&)>& begin) {
  log::Level level = log::Level::info;
  log::parse_level(options.log_level, level);
  log::set_level(level);
  // Threads started from here on leave the signals to this one.
  const sigset_t ends = end_signals();
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  signal(SIGPIPE, SIG_IGN);

  auto interruption = std::make_optional<runtime::Interruption>(
      std::vector<int>(std::begin(kEnds), std::end(kEnds)), kMoment,
      [] { log::info("interrupted before it was ready"); });
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(const client::Access access,
           client::find_access(files, options.kubeconfig, options.context, variable));
  runtime::RealRuntime runtime;
  client::HttpsOptions https;
  https.user_agent = options.user_agent;
  DIBS_TRY(const auto transport,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  client::Client api(*transport);
  metrics::Registry registry;
  Environment environment{api, runtime.runtime(), files, &registry, {}};
  DIBS_TRY(auto running, begin(environment));
  DIBS_TRY(const auto servers, ProcessServers::start(options, registry, running.plugin));

  interruption.reset();
  int number = 0;
  sigwait(&ends, &number);
  log::info("stopping", {{"signal", number}});
  // The next one ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  // Who presses Ctrl-C does not wait for a server that is silent; others may have a claim under
  // way.
  std::optional<runtime::LastMoment> limit;
  if (number == SIGINT) limit.emplace(kPatience, 0, nullptr);
  servers->stop();
  if (running.plugin != nullptr) running.plugin->stop();
  running.keep.reset();
  return success();
}

int run_program(int argc, char** argv, const Program& program) {
  ProcessOptions process;
  process.user_agent = program.driver_name;
  Flags standard = program.standard_flags;
  for (const auto& flag : process_flags(process)) standard.push_back(flag);
  // --help is answered before anything is set: what it shows are the defaults.
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument != "--help" && argument != "-h") continue;
    print_help(argv[0], program, standard);
    return 0;
  }
  Flags all = program.flags;
  all.insert(all.end(), standard.begin(), standard.end());
  auto parsed = parse_flags(
      argc, argv, [](const char* name) { return std::getenv(name); }, all);
  if (parsed && program.check) parsed = program.check();
  if (!parsed) return exit_status(argv[0], parsed);
  return exit_status(argv[0], run_until_signal(process, program.begin));
}

int run_main(int argc, char** argv, PluginOptions options, const MakeDriver& make,
             const Flags& own) {
  Program program;
  program.driver_name = options.driver_name;
  program.flags = own;
  program.standard_flags = plugin_flags(options);
  program.begin = [&](const Environment& environment) -> Result<Running> {
    DIBS_TRY(auto driver, make(options));
    return start_driver(std::move(driver), environment, options);
  };
  return run_program(argc, argv, program);
}

int run_controller_main(int argc, char** argv, ControllerOptions options, const MakeAllocator& make,
                        const Flags& own) {
  Program program;
  program.driver_name = options.driver_name;
  program.flags = own;
  program.standard_flags = controller_flags(options);
  program.begin = [&](const Environment& environment) {
    return start_controller(make(environment), environment, options);
  };
  return run_program(argc, argv, program);
}

}  // namespace dibs::driver
