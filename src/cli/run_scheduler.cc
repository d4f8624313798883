#include "cli/run_scheduler.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/log.h"
#include "base/strings.h"
#include "client/https_transport.h"
#include "client/kubeconfig.h"
#include "client/leader_election.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"
#include "scheduler/scheduler.h"

namespace dibs::cli {
namespace {

Result<client::Access> find_access(const SchedulerFlags& flags, runtime::Files& files) {
  const char* variable = std::getenv("KUBECONFIG");
  const char* home = std::getenv("HOME");
  const auto paths =
      client::Kubeconfig::paths(flags.kubeconfig, variable ? variable : "", home ? home : "");
  DIBS_TRY(const auto config, client::Kubeconfig::load(files, paths));
  return config.resolve(files, flags.context);
}

std::string host_name() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return host;
}

Result<scheduler::Options> make_options(const SchedulerFlags& flags, runtime::Files& files) {
  scheduler::Options options;
  if (!flags.config.empty()) {
    DIBS_TRY(const std::string text, files.read(flags.config));
    auto configuration = scheduler::Configuration::parse(text);
    if (!configuration.ok()) return configuration.error().within(cat("--config ", flags.config));
    options.configuration = std::move(configuration).value();
  }
  DIBS_TRY(const api::Features gates, api::Features::parse(flags.release, flags.feature_gates));
  options.features = alloc::Features::from_gates(gates);
  options.instance = host_name();
  return options;
}

Result<> run_until_signal(const SchedulerFlags& flags, const sigset_t& ends) {
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(const scheduler::Options options, make_options(flags, files));
  DIBS_TRY(const client::Access access, find_access(flags, files));
  runtime::RealRuntime runtime;
  client::HttpsOptions https;
  https.user_agent = "kube-scheduler";
  DIBS_TRY(auto transport,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  client::Client client(*transport);
  scheduler::Scheduler scheduler(client, runtime.runtime(), options);
  std::unique_ptr<client::LeaderElector> elector;
  const scheduler::Configuration& configuration = options.configuration;
  if (flags.leader_elect && configuration.leader_elect) {
    client::LeaderElectionOptions election;
    election.name = configuration.lease_name;
    election.name_space = configuration.lease_namespace;
    election.identity = cat(host_name(), '_', runtime::make_uuid(runtime.runtime().random));
    client::LeaderCallbacks callbacks;
    callbacks.started = [&] { scheduler.start(); };
    // Another one may lead already: nothing decided here may be written any more.
    callbacks.stopped = [&] {
      scheduler.stop();
      kill(getpid(), SIGTERM);
    };
    elector = std::make_unique<client::LeaderElector>(client, runtime.runtime(), election,
                                                      std::move(callbacks));
    elector->start();
  } else {
    scheduler.start();
  }
  int signal_number = 0;
  sigwait(&ends, &signal_number);
  log::info("stopping", {{"signal", signal_number}});
  scheduler.stop();
  if (elector) elector->stop();
  return success();
}

}  // namespace

int run_scheduler(const SchedulerFlags& flags) {
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
    std::fprintf(stderr, "dibs scheduler: %s\n", ran.error().message().c_str());
    return 1;
  }
  return 0;
}

}  // namespace dibs::cli
