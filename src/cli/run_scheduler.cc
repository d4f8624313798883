#include "cli/run_scheduler.h"

#include <optional>

#include "base/log.h"
#include "base/strings.h"
#include "cli/part_port.h"
#include "cli/process.h"
#include "cli/starting.h"
#include "cli/values.h"
#include "client/https_transport.h"
#include "client/leader_election.h"
#include "client/refusals.h"
#include "client/resource_versions.h"
#include "runtime/real_runtime.h"
#include "scheduler/scheduler.h"

namespace dibs::cli {
namespace {

Result<scheduler::Options> make_options(const SchedulerFlags& flags, runtime::Files& files) {
  scheduler::Options options;
  DIBS_TRY(const api::Features gates, parse_gates(flags.release, flags.feature_gates));
  DIBS_TRY(options.configuration, read_scheduler_config(flags.config, gates, files));
  scheduler::follow_gates(gates, options);
  options.instance = host_name();
  options.explain_events = flags.explain_events;
  return options;
}

Result<> run_until_signal(const SchedulerFlags& flags) {
  auto interruption = std::make_optional<Interruption>("scheduler");
  DIBS_CHECK(check_part_port(flags.metrics_address));
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(scheduler::Options options, make_options(flags, files));
  const std::string& kubeconfig =
      flags.kubeconfig.empty() ? options.configuration.kubeconfig : flags.kubeconfig;
  runtime::RealRuntime runtime;
  const bool elect = flags.election.elect && options.configuration.leader_elect;
  client::LeaderElectionOptions election;
  if (elect) {
    DIBS_TRY(election,
             election_of(flags.election, options.configuration.election, runtime.runtime().random));
  }
  DIBS_TRY(const client::Access access, find_access(kubeconfig, flags.context));
  client::HttpsOptions https;
  https.user_agent = "kube-scheduler";
  DIBS_TRY(auto connection,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  const auto transport = client::make_resource_transport(
      client::warn_of_refusals(std::move(connection), runtime.runtime()));
  client::Client client(*transport);
  if (flags.release.empty()) {
    if (const auto release = client::server_release(client)) {
      options.release = *release;
    } else {
      log::warn("the server does not tell its release: --release says which one it is",
                {{"error", release.error()}, {"taken for", options.release}});
    }
  }
  DIBS_TRY(options.extender_ways,
           scheduler::connect_extenders(options.configuration.extenders, files, runtime.runtime()));
  metrics::Registry registry;
  options.metrics = &registry;
  election.metrics = &registry;
  scheduler::Scheduler scheduler(client, runtime.runtime(), options);
  LeadingPart part(scheduler);
  DIBS_TRY(const auto port,
           open_part_port(flags.metrics_address, registry, [&part] { return part.ready(); }));
  interruption.reset();
  if (!elect) {
    part.start();
    const auto limit = hurry(wait_for_end());
    part.stop();
    return success();
  }
  return run_elected(election, client::while_leading(part), access, files, runtime.runtime(),
                     "kube-scheduler/leader-election");
}

}  // namespace

Result<scheduler::Configuration> read_scheduler_config(const std::string& file,
                                                       const api::Features& gates,
                                                       runtime::Files& files,
                                                       std::string_view flag) {
  if (file.empty()) return scheduler::Configuration();
  const auto text = files.read(file);
  if (!text.ok()) return as_usage(text.error(), flag);
  auto read = scheduler::Configuration::parse(*text, gates);
  if (!read.ok()) return as_usage(read.error(), cat(flag, " ", file));
  for (const std::string& warning : read->warnings) log::warn(warning, {{"config", file}});
  return read;
}

int run_scheduler(const SchedulerFlags& flags) {
  begin_process(flags.log_level);
  return exit_status("scheduler", run_until_signal(flags));
}

}  // namespace dibs::cli
