#include "cli/run_controllers.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "base/strings.h"
#include "client/https_transport.h"
#include "client/kubeconfig.h"
#include "controllers/controllers.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

Result<client::Access> find_access(const ControllersFlags& flags, runtime::Files& files) {
  const char* variable = std::getenv("KUBECONFIG");
  const char* home = std::getenv("HOME");
  const auto paths =
      client::Kubeconfig::paths(flags.kubeconfig, variable ? variable : "", home ? home : "");
  DIBS_TRY(const auto config, client::Kubeconfig::load(files, paths));
  return config.resolve(files, flags.context);
}

std::string identity(runtime::Random& random) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return cat(std::string(host), '_', runtime::make_uuid(random));
}

Result<> run_until_signal(const ControllersFlags& flags, const sigset_t& ends) {
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(const Duration grace, parse_duration(flags.grace_period));
  DIBS_TRY(const client::Access access, find_access(flags, files));
  runtime::RealRuntime runtime;
  client::HttpsOptions https;
  https.user_agent = "kube-controller-manager";
  DIBS_TRY(auto transport,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  client::Client client(*transport);
  controllers::ControllersOptions options;
  options.ca_pem = access.tls.ca_pem;
  options.node_monitor_grace_period = grace;
  controllers::LeadingControllers controllers(client, runtime.runtime(), options,
                                              identity(runtime.runtime().random));
  controllers.start();
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  log::info("stopping", {{"signal", signal_number}});
  controllers.stop();
  return success();
}

}  // namespace

int run_controllers(const ControllersFlags& flags) {
  log::Level level = log::Level::info;
  log::parse_level(flags.log_level, level);
  log::set_level(level);
  // Threads started from here on leave the signals to this one.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  signal(SIGPIPE, SIG_IGN);
  auto ran = run_until_signal(flags, ends);
  if (!ran) {
    std::fprintf(stderr, "dibs controllers: %s\n", ran.error().message().c_str());
    return 1;
  }
  return 0;
}

}  // namespace dibs::cli
