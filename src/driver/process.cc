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

/// One flag: its name, its variable, and where its value goes.
struct Flag {
  const char* name;
  const char* variable;
  const char* help;
  std::string* text;
  int* number;
};

std::string set_flag(const Flag& flag, const std::string& value) {
  if (flag.text != nullptr) {
    *flag.text = value;
    return "";
  }
  const char* end = value.data() + value.size();
  const auto [stop, failed] = std::from_chars(value.data(), end, *flag.number);
  if (failed != std::errc() || stop != end) return cat("--", flag.name, ": not a number: ", value);
  return "";
}

std::vector<Flag> flags_of(PluginOptions& plugin, ProcessOptions& process) {
  return {
      {"node-name", "NODE_NAME", "Name of the node this runs on (required)", &plugin.node_name,
       nullptr},
      {"kubeconfig", "",
       "How to reach the API server (default: $KUBECONFIG, the pod's service "
       "account, ~/.kube/config)",
       &process.kubeconfig, nullptr},
      {"context", "", "Context of the kubeconfig", &process.context, nullptr},
      {"cdi-root", "CDI_ROOT", "Folder for CDI files", &plugin.cdi_dir, nullptr},
      {"kubelet-registrar-directory-path", "KUBELET_REGISTRAR_DIRECTORY_PATH",
       "Where the node's agent looks for plugins", &plugin.registry_dir, nullptr},
      {"kubelet-plugins-directory-path", "KUBELET_PLUGINS_DIRECTORY_PATH",
       "Where drivers have their folders, with socket and checkpoint", &plugin.plugins_dir,
       nullptr},
      {"pod-uid", "POD_UID", "Uid of the driver's pod, for rolling updates", &plugin.pod_uid,
       nullptr},
      {"metrics-port", "METRICS_PORT", "TCP port for /metrics; below 0: none", nullptr,
       &process.metrics_port},
      {"healthcheck-port", "HEALTHCHECK_PORT", "TCP port of the gRPC health service; below 0: none",
       nullptr, &process.healthcheck_port},
      {"log-level", "", "debug, info, warn, error or off", &process.log_level, nullptr},
  };
}

void print_help(const char* program, const PluginOptions& plugin, ProcessOptions process) {
  PluginOptions shown = plugin;
  std::printf("The driver %s.\n\nUsage: %s [flags]\n\n", plugin.driver_name.c_str(), program);
  for (const auto& flag : flags_of(shown, process)) {
    const std::string now = flag.text != nullptr ? *flag.text : cat(*flag.number);
    std::printf("  --%-34s %s", flag.name, flag.help);
    if (!now.empty()) std::printf(" (default %s)", now.c_str());
    if (*flag.variable != '\0') std::printf(" [$%s]", flag.variable);
    std::printf("\n");
  }
}

}  // namespace

ParsedFlags parse_flags(int argc, const char* const* argv,
                        const std::function<const char*(const char*)>& environment,
                        PluginOptions& plugin, ProcessOptions& process) {
  const auto flags = flags_of(plugin, process);
  for (const auto& flag : flags) {
    const char* value = *flag.variable != '\0' ? environment(flag.variable) : nullptr;
    if (value == nullptr || *value == '\0') continue;
    if (const std::string error = set_flag(flag, value); !error.empty()) return {error};
  }
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") return {"", true};
    if (!argument.starts_with("--")) return {cat("arguments not supported: ", argument)};
    argument.erase(0, 2);
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const Flag* found = nullptr;
    for (const auto& flag : flags) {
      if (name == flag.name) found = &flag;
    }
    if (found == nullptr) return {cat("unknown flag: --", name)};
    std::string value;
    if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (++i < argc) {
      value = argv[i];
    } else {
      return {cat("--", name, ": needs a value")};
    }
    if (const std::string error = set_flag(*found, value); !error.empty()) return {error};
  }
  if (plugin.node_name.empty()) return {"--node-name is required"};
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
  DIBS_TRY(const auto servers, ProcessServers::start(options, registry, *running.plugin));

  int number = 0;
  sigwait(&ends, &number);
  log::info("stopping", {{"signal", number}});
  // The next one ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  servers->stop();
  running.plugin->stop();
  running.keep.reset();
  return success();
}

int run_main(int argc, char** argv, PluginOptions options, const MakeDriver& make) {
  ProcessOptions process;
  const PluginOptions defaults = options;
  const ParsedFlags parsed = parse_flags(
      argc, argv, [](const char* name) { return std::getenv(name); }, options, process);
  if (parsed.help) {
    print_help(argv[0], defaults, ProcessOptions());
    return 0;
  }
  if (!parsed.error.empty()) {
    std::fprintf(stderr, "%s: %s\n", argv[0], parsed.error.c_str());
    return 2;
  }
  process.user_agent = options.driver_name;
  const auto ran = run_until_signal(process, [&](const Environment& environment) {
    return start_driver(make(options), environment, options);
  });
  if (ran) return 0;
  std::fprintf(stderr, "%s: %s\n", argv[0], ran.error().message().c_str());
  return 1;
}

}  // namespace dibs::driver
