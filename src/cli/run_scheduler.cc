#include "cli/run_scheduler.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "base/log.h"
#include "base/strings.h"
#include "cli/process.h"
#include "client/https_transport.h"
#include "client/leader_election.h"
#include "client/resource_versions.h"
#include "runtime/real_runtime.h"
#include "scheduler/scheduler.h"

namespace dibs::cli {
namespace {

Result<scheduler::Options> make_options(const SchedulerFlags& flags, runtime::Files& files) {
  scheduler::Options options;
  DIBS_TRY(
      const api::Features gates,
      api::Features::parse(flags.release.empty() ? api::known_releases().back() : flags.release,
                           flags.feature_gates));
  DIBS_TRY(options.configuration, read_scheduler_config(flags.config, gates, files));
  options.features = alloc::Features::from_gates(gates);
  options.release = gates.minor();
  options.claims = gates.on("DynamicResourceAllocation");
  options.instance = host_name();
  options.explain_events = flags.explain_events;
  return options;
}

Result<> run_until_signal(const SchedulerFlags& flags) {
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(scheduler::Options options, make_options(flags, files));
  const std::string& kubeconfig =
      flags.kubeconfig.empty() ? options.configuration.kubeconfig : flags.kubeconfig;
  DIBS_TRY(const client::Access access, find_access(kubeconfig, flags.context));
  runtime::RealRuntime runtime;
  client::HttpsOptions https;
  https.user_agent = "kube-scheduler";
  DIBS_TRY(auto connection,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  const auto transport = client::make_resource_transport(std::move(connection));
  client::Client client(*transport);
  if (flags.release.empty()) {
    if (const auto release = client::server_release(client)) {
      options.release = *release;
    } else {
      log::warn("the server does not tell its release: --release says which one it is",
                {{"error", release.error()}, {"taken for", options.release}});
    }
  }
  scheduler::Scheduler scheduler(client, runtime.runtime(), options);
  std::atomic<bool> ending = false;  // the lease is given up because the process ends
  std::unique_ptr<client::LeaderElector> elector;
  const scheduler::Configuration& configuration = options.configuration;
  if (flags.leader_elect && configuration.leader_elect) {
    client::LeaderElectionOptions election;
    election.name = configuration.lease_name;
    election.name_space = configuration.lease_namespace;
    election.lease_duration = configuration.lease_duration;
    election.renew_deadline = configuration.renew_deadline;
    election.retry_period = configuration.retry_period;
    election.identity = cat(host_name(), '_', runtime::make_uuid(runtime.runtime().random));
    client::LeaderCallbacks callbacks;
    callbacks.started = [&] { scheduler.start(); };
    // Another one may lead already: nothing decided here may be written any more.
    callbacks.stopped = [&] {
      scheduler.stop();
      if (!ending) kill(getpid(), SIGTERM);
    };
    elector = std::make_unique<client::LeaderElector>(client, runtime.runtime(), election,
                                                      std::move(callbacks));
    elector->start();
  } else {
    scheduler.start();
  }
  wait_for_end();
  ending = true;
  scheduler.stop();
  if (elector) elector->stop();
  return success();
}

}  // namespace

Result<scheduler::Configuration> read_scheduler_config(const std::string& file,
                                                       const api::Features& gates,
                                                       runtime::Files& files,
                                                       std::string_view flag) {
  if (file.empty()) return scheduler::Configuration();
  const auto text = files.read(file);
  if (!text.ok()) return text.error().within(flag);
  auto read = scheduler::Configuration::parse(*text, gates);
  if (!read.ok()) return read.error().within(cat(flag, " ", file));
  for (const std::string& warning : read->warnings) log::warn(warning, {{"config", file}});
  return read;
}

int run_scheduler(const SchedulerFlags& flags) {
  begin_process(flags.log_level);
  return exit_status("scheduler", run_until_signal(flags));
}

}  // namespace dibs::cli
