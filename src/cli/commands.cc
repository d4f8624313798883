#include "cli/commands.h"

#include <CLI/CLI.hpp>

#include <iostream>

#include "base/time.h"
#include "cli/run_controllers.h"
#include "cli/run_scheduler.h"
#include "cli/select.h"
#include "cli/serve.h"
#include "cli/time_zones.h"

namespace dibs::cli {
namespace {

constexpr const char* kVersion = "dibs 0.1.0";

void add_server_flags(CLI::App& command, ServeFlags& flags) {
  command.add_option("--data-dir", flags.data_dir, "Folder for everything that lasts (default: ~/.local/share/dibs)")
      ->envname("DIBS_DATA_DIR");
  command.add_option("--bind", flags.bind, "HOST:PORT to listen on; port 0 picks a free one")->capture_default_str();
  command.add_option("--kubeconfig-out", flags.kubeconfig_out,
                     "Where to write the kubeconfig (default: kubeconfig in the data folder)");
  command.add_option("--store", flags.store, "Where objects are kept")
      ->check(CLI::IsMember({"sqlite", "memory"}))
      ->capture_default_str();
  command.add_option("--emulate-release", flags.release,
                     "Kubernetes release to answer as: 1.27, 1.30, 1.32, 1.34, 1.36 or 1.37 (default: 1.37, with the "
                     "older versions of resource.k8s.io beside it)");
  command.add_option("--feature-gates", flags.feature_gates, "GATE=true|false, with commas between them");
  command.add_option("--runtime-config", flags.runtime_config,
                     "GROUP/VERSION[/RESOURCE]=true|false, api/all|ga|beta|alpha=…, with commas between them");
  command.add_option("--enable-admission-plugins", flags.enabled_plugins, "Admission plugins to run (all do)")
      ->delimiter(',');
  command.add_option("--disable-admission-plugins", flags.disabled_plugins, "Admission plugins to leave out")
      ->delimiter(',');
  command.add_option("--token-auth-file", flags.token_auth_file,
                     "CSV file of static bearer tokens: token,user,uid,\"group,group\"");
  command.add_option("--service-cluster-ip-range", flags.service_range, "CIDR of Service addresses")
      ->capture_default_str();
  command.add_option("--service-account-issuer", flags.issuer, "Issuer of service account tokens")
      ->capture_default_str();
  command.add_option("--log-level", flags.log_level, "What to log")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
  command.add_option("--threads", flags.threads, "Threads that serve connections (default: one per core)");
}

void add_controllers_flags(CLI::App& command, ControllersFlags& flags) {
  command.add_option("--kubeconfig", flags.kubeconfig, "How to reach the API server (default: as kubectl does)")
      ->type_name("FILE");
  command.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)");
  command.add_option("--node-monitor-grace-period", flags.grace_period,
                     "How long a node may be silent before it counts as unreachable")
      ->capture_default_str();
  command.add_option("--log-level", flags.log_level, "What to log")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
}

void add_scheduler_flags(CLI::App& command, SchedulerFlags& flags) {
  command.add_option("--kubeconfig", flags.kubeconfig, "How to reach the API server (default: as kubectl does)")
      ->type_name("FILE");
  command.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)");
  command.add_option("--config", flags.config, "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)")
      ->type_name("FILE");
  command.add_option("--release", flags.release, "Kubernetes release whose feature gates count")
      ->capture_default_str();
  command.add_option("--feature-gates", flags.feature_gates, "GATE=true|false, with commas between them");
  command.add_option("--leader-elect", flags.leader_elect, "Run only while this process leads")
      ->capture_default_str();
  command.add_option("--log-level", flags.log_level, "What to log")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
}

void add_select_flags(CLI::App& command, SelectFlags& flags) {
  command.add_option("EXPRESSION", flags.expression, "The selector, as in a DeviceClass or a claim (docs/cel.md)");
  command.add_option("-f,--filename", flags.files,
                     "ResourceSlices in YAML or JSON: files, folders, or - for standard input")
      ->type_name("FILE");
  command.add_option("--kubeconfig", flags.kubeconfig, "Take the ResourceSlices of this cluster instead")
      ->type_name("FILE");
  command.add_option("--context", flags.context, "Context of the kubeconfig (default: its current one)");
  command.add_option("-o,--output", flags.output, "How to print the devices")
      ->check(CLI::IsMember({"table", "json", "name"}))
      ->capture_default_str();
  command.add_flag("--explain", flags.explain, "Show all devices, with type, estimated and actual costs");
  command.add_flag("--stored", flags.stored, "Read the expression as one that was accepted before");
  command.add_option("--release", flags.release, "Kubernetes release whose language is spoken, from 1.31 on")
      ->capture_default_str();
  command.add_option("--feature-gates", flags.feature_gates, "GATE=true|false, with commas between them");
  command.add_option("--cases", flags.cases,
                     "Compare with recorded answers in these files (.json, .jsonl) instead")
      ->type_name("FILE");
  command.footer("Exit status: 0 a device matched, 1 none did, 2 wrong usage, expression or input.\n"
                 "With --cases: 0 all are the same, 1 some differ, 2 a file cannot be read.");
}

int run_select(const SelectFlags& flags) {
  const SelectOutcome outcome = select(flags, std::cin);
  std::cout << outcome.output << std::flush;
  std::cerr << outcome.errors;
  return outcome.status;
}

}  // namespace

int run(int argc, char** argv) {
  use_zones_of_this_machine();
  CLI::App app{"Dynamic Resource Allocation for Kubernetes, in one binary.", "dibs"};
  app.require_subcommand(1);
  app.set_version_flag("--version", kVersion);
  app.failure_message(CLI::FailureMessage::help);

  ServeFlags up_flags;
  auto* up = app.add_subcommand("up", "Run a cluster on this machine, until Ctrl-C");
  add_server_flags(*up, up_flags);
  std::string grace_period = "50s";
  up->add_option("--node-monitor-grace-period", grace_period,
                 "How long a node may be silent before it counts as unreachable")
      ->capture_default_str();
  ServeFlags server_flags;
  auto* apiserver = app.add_subcommand("apiserver", "Run the API server alone");
  add_server_flags(*apiserver, server_flags);
  ControllersFlags controllers_flags;
  auto* controllers = app.add_subcommand("controllers", "Run the controllers of a cluster alone");
  add_controllers_flags(*controllers, controllers_flags);
  SchedulerFlags scheduler_flags;
  auto* scheduler = app.add_subcommand("scheduler", "Run the scheduler of a cluster alone");
  add_scheduler_flags(*scheduler, scheduler_flags);
  SelectFlags select_flags;
  auto* select_command = app.add_subcommand("select", "Show which devices an expression chooses");
  add_select_flags(*select_command, select_flags);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (select_command->parsed()) return run_select(select_flags);
  if (controllers->parsed()) return run_controllers(controllers_flags);
  if (scheduler->parsed()) return run_scheduler(scheduler_flags);
  if (up->parsed()) {
    auto grace = parse_duration(grace_period);
    if (!grace) {
      std::cerr << "dibs up: --node-monitor-grace-period: " << grace.error().message() << '\n';
      return 2;
    }
    up_flags.whole_cluster = true;
    up_flags.node_monitor_grace_period = *grace;
    return serve(up_flags, "up");
  }
  return serve(server_flags, "apiserver");
}

}  // namespace dibs::cli
