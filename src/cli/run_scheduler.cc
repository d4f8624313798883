#include "cli/run_scheduler.h"

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
  const bool elect = flags.election.elect && options.configuration.leader_elect;
  client::LeaderElectionOptions election;
  if (elect) {
    DIBS_TRY(election,
             election_of(flags.election, options.configuration.election, runtime.runtime().random));
  }
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
  if (!elect) {
    scheduler.start();
    wait_for_end();
    scheduler.stop();
    return success();
  }
  return run_elected(election, client::while_leading(scheduler), access, files, runtime.runtime(),
                     "kube-scheduler/leader-election");
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
