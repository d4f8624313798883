#include "driver/process.h"

#include <pthread.h>
#include <signal.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "base/strings.h"
#include "client/https_transport.h"
#include "client/kubeconfig.h"
#include "driver/process_servers.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::driver {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

sigset_t end_signals() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&ends, number);
  return ends;
}

Result<client::Access> find_access(const ProcessOptions& options, runtime::Files& files) {
  const std::string listed = variable("KUBECONFIG");
  if (options.kubeconfig.empty() && listed.empty()) {
    auto inside = client::in_cluster_access(files, variable("KUBERNETES_SERVICE_HOST"),
                                            variable("KUBERNETES_SERVICE_PORT"));
    if (inside) return inside;
  }
  const auto paths = client::Kubeconfig::paths(options.kubeconfig, listed, variable("HOME"));
  auto config = client::Kubeconfig::load(files, paths);
  if (!config) return config.error().within("--kubeconfig");
  return config->resolve(files, options.context);
}

std::string set_flag(const Flag& flag, const std::string& value) {
  if (flag.text != nullptr) {
    *flag.text = value;
    return "";
  }
  if (flag.on != nullptr) {
    if (value != "true" && value != "false") {
      return cat("--", flag.name, ": neither true nor false: ", value);
    }
    *flag.on = value == "true";
    return "";
  }
  const char* end = value.data() + value.size();
  const auto [stop, failed] = std::from_chars(value.data(), end, *flag.number);
  if (failed != std::errc() || stop != end) return cat("--", flag.name, ": not a number: ", value);
  return "";
}

std::string value_of(const Flag& flag) {
  if (flag.text != nullptr) return *flag.text;
  if (flag.on != nullptr) return *flag.on ? "true" : "false";
  return cat(*flag.number);
}

void print_help(const char* program, const std::string& driver, const std::vector<Flag>& flags) {
  std::printf("The driver %s.\n\nUsage: %s [flags]\n\n", driver.c_str(), program);
  for (const auto& flag : flags) {
    const std::string now = value_of(flag);
    std::printf("  --%-34s %s", flag.name, flag.help);
    if (!now.empty()) std::printf(" (default %s)", now.c_str());
    if (*flag.variable != '\0') std::printf(" [$%s]", flag.variable);
    std::printf("\n");
  }
}

/// The next argument that is a flag, and its value. Errors: what parse_flags() says.
Result<> read_flag(int& i, int argc, const char* const* argv, const std::vector<Flag>& flags) {
  std::string argument = argv[i];
  if (!argument.starts_with("--")) {
    return Error::invalid(cat("arguments not supported: ", argument));
  }
  argument.erase(0, 2);
  const std::size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  const Flag* found = nullptr;
  for (const auto& flag : flags) {
    if (name == flag.name) found = &flag;
  }
  if (found == nullptr) return Error::invalid(cat("unknown flag: --", name));
  std::string value;
  if (equals != std::string::npos) {
    value = argument.substr(equals + 1);
  } else if (found->on != nullptr) {
    value = "true";
  } else if (++i < argc) {
    value = argv[i];
  } else {
    return Error::invalid(cat("--", name, ": needs a value"));
  }
  if (std::string error = set_flag(*found, value); !error.empty()) {
    return Error::invalid(std::move(error));
  }
  return success();
}

}  // namespace

std::vector<Flag> process_flags(ProcessOptions& options) {
  return {
      {"kubeconfig", "",
       "How to reach the API server (default: $KUBECONFIG, the pod's service "
       "account, ~/.kube/config)",
       &options.kubeconfig},
      {"context", "", "Context of the kubeconfig", &options.context},
      {"metrics-port", "METRICS_PORT", "TCP port for /metrics; below 0: none", nullptr,
       &options.metrics_port},
      {"healthcheck-port", "HEALTHCHECK_PORT", "TCP port of the gRPC health service; below 0: none",
       nullptr, &options.healthcheck_port},
      {"log-level", "", "debug, info, warn, error or off", &options.log_level},
  };
}

std::vector<Flag> plugin_flags(PluginOptions& options) {
  return {
      {"node-name", "NODE_NAME", "Name of the node this runs on (required)", &options.node_name},
      {"cdi-root", "CDI_ROOT", "Folder for CDI files", &options.cdi_dir},
      {"kubelet-registrar-directory-path", "KUBELET_REGISTRAR_DIRECTORY_PATH",
       "Where the node's agent looks for plugins", &options.registry_dir},
      {"kubelet-plugins-directory-path", "KUBELET_PLUGINS_DIRECTORY_PATH",
       "Where drivers have their folders, with socket and checkpoint", &options.plugins_dir},
      {"pod-uid", "POD_UID", "Uid of the driver's pod, for rolling updates", &options.pod_uid},
  };
}

std::vector<Flag> controller_flags(ControllerOptions& options) {
  return {
      {"leader-election", "LEADER_ELECTION", "Several instances may run: one of them works",
       nullptr, nullptr, &options.leader_election},
      {"leader-election-namespace", "LEADER_ELECTION_NAMESPACE", "Where the lease is",
       &options.lease_namespace},
      {"leader-election-name", "LEADER_ELECTION_NAME",
       "Name of the lease (default: the driver's name)", &options.lease_name},
      {"identity", "POD_NAME", "Name of this instance in the lease (default: made up)",
       &options.identity},
  };
}

std::string parse_flags(int argc, const char* const* argv,
                        const std::function<const char*(const char*)>& environment,
                        const std::vector<Flag>& flags) {
  for (const auto& flag : flags) {
    const char* value = *flag.variable != '\0' ? environment(flag.variable) : nullptr;
    if (value == nullptr || *value == '\0') continue;
    if (std::string error = set_flag(flag, value); !error.empty()) return error;
  }
  for (int i = 1; i < argc; ++i) {
    if (auto read = read_flag(i, argc, argv, flags); !read) return read.error().message();
  }
  return {};
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

  runtime::Files& files = runtime::system_files();
  DIBS_TRY(const client::Access access, find_access(options, files));
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

  int number = 0;
  sigwait(&ends, &number);
  log::info("stopping", {{"signal", number}});
  // The next one ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  servers->stop();
  if (running.plugin != nullptr) running.plugin->stop();
  running.keep.reset();
  return success();
}

int run_program(int argc, char** argv, const Program& program) {
  ProcessOptions process;
  process.user_agent = program.driver_name;
  std::vector<Flag> flags = program.flags;
  for (const auto& flag : process_flags(process)) flags.push_back(flag);
  // --help is answered before anything is set: what it shows are the defaults.
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument != "--help" && argument != "-h") continue;
    print_help(argv[0], program.driver_name, flags);
    return 0;
  }
  std::string error = parse_flags(
      argc, argv, [](const char* name) { return std::getenv(name); }, flags);
  if (error.empty() && program.check) error = program.check();
  if (!error.empty()) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.c_str());
    return 2;
  }
  const auto ran = run_until_signal(process, program.begin);
  if (ran) return 0;
  std::fprintf(stderr, "%s: %s\n", argv[0], ran.error().message().c_str());
  return 1;
}

int run_main(int argc, char** argv, PluginOptions options, const MakeDriver& make) {
  Program program;
  program.driver_name = options.driver_name;
  program.flags = plugin_flags(options);
  program.check = [&] { return options.node_name.empty() ? "--node-name is required" : ""; };
  program.begin = [&](const Environment& environment) {
    return start_driver(make(options), environment, options);
  };
  return run_program(argc, argv, program);
}

int run_controller_main(int argc, char** argv, ControllerOptions options,
                        const MakeAllocator& make) {
  Program program;
  program.driver_name = options.driver_name;
  program.flags = controller_flags(options);
  program.begin = [&](const Environment& environment) {
    return start_controller(make(environment), environment, options);
  };
  return run_program(argc, argv, program);
}

}  // namespace dibs::driver
