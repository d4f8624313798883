#include "cli/commands.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/strings.h"
#include "bench/allocator.h"
#include "bench/scheduler.h"
#include "cli/backup.h"
#include "cli/clusters.h"
#include "cli/common_flags.h"
#include "cli/device.h"
#include "cli/driver_flags.h"
#include "cli/etcd_flags.h"
#include "cli/image.h"
#include "cli/join.h"
#include "cli/manual.h"
#include "cli/open.h"
#include "cli/part_flags.h"
#include "cli/pki.h"
#include "cli/plan.h"
#include "cli/process.h"
#include "cli/run_trial.h"
#include "cli/select.h"
#include "cli/store_commands.h"
#include "cli/token.h"
#include "cli/top.h"
#include "cli/up_config.h"
#include "cli/usage.h"
#include "cli/version.h"
#include "cli/why.h"
#include "drivers/net/cni/plugins.h"

namespace dibs::cli {
namespace {

Flags select_flags(SelectFlags& flags) {
  return {
      {"EXPRESSION", &flags.expression,
       "The selector, as in a DeviceClass or a claim (docs/cel.md)"},
      {"-f,--filename", &flags.files,
       "ResourceSlices in YAML or JSON: files, folders, or - for standard input", kFile},
      {"--kubeconfig", &flags.kubeconfig, "Take the ResourceSlices of this cluster instead", kFile},
      context(flags.context),
      {"-o,--output", &flags.output, "How to print the devices", one_of({"table", "json", "name"})},
      {"--explain", &flags.explain, "Show all devices, with type, estimated and actual costs"},
      {"--stored", &flags.stored, "Read the expression as one that was accepted before"},
      {"--release", &flags.release, "Kubernetes release whose language is spoken, from 1.31 on"},
      feature_gates(flags.feature_gates),
      {"--cases", &flags.cases,
       "Compare with recorded answers in these files (.json, .jsonl) instead", kFile},
  };
}

Flags why_flags(WhyFlags& flags) {
  return {
      {"WHAT", &flags.what,
       "KIND/NAME, of pod, claim, deployment, replicaset, statefulset, daemonset, job, cronjob, "
       "node, driver (default: all that waits)"},
      {"NAME", &flags.name, "The name, where it does not stand behind a slash"},
      {"-n,--namespace", &flags.name_space, "Namespace (default: that of the context)"},
      {"-A,--all-namespaces", &flags.all_namespaces, "All that waits, in every namespace"},
      kubeconfig(flags.kubeconfig),
      context(flags.context),
      {"-o,--output", &flags.output, "How to print the answer (docs/why.md)",
       one_of({"text", "json"})},
      {"--config", &flags.config, "The scheduler's KubeSchedulerConfiguration, where it has one",
       kFile},
      release_of_gates(flags.release),
      feature_gates(flags.feature_gates),
  };
}

Flags clusters_flags(ListFlags& flags) {
  return {{"-o,--output", &flags.output, "How to print them", one_of({"table", "json", "name"})}};
}

Flags down_flags(DownFlags& flags) {
  return {
      {"NAME", &flags.name, "Its name, where it has one"},
      data_dir(flags.data_dir),
      {"--keep", &flags.keep, "End its process only, as Ctrl-C does: data and containers stay"},
      {"--keep-data", &flags.keep_data,
       "End process and containers: objects and the files of volumes stay"},
  };
}

Flags top_flags(TopFlags& flags) {
  return {
      {"WHAT",
       &flags.what,
       "What to show",
       {.one_of = {"devices", "claims", "nodes"}, .required = true}},
      {"-n,--namespace", &flags.name_space,
       "Claims of this namespace, devices that they have (default: claims of the context's "
       "namespace, all devices)"},
      {"-A,--all-namespaces", &flags.all_namespaces, "Claims of every namespace"},
      {"-l,--selector", &flags.selector, "Labels of nodes: only these, and devices on them"},
      {"--driver", &flags.driver, "Only what is of this driver"},
      {"-o,--output", &flags.output, "How to print it (docs/top.md)",
       one_of({"table", "wide", "json", "yaml"})},
      {"-w,--watch", &flags.watch, "Show it again and again, until Ctrl-C"},
      {"--interval", &flags.interval, "With --watch: how often"},
      kubeconfig(flags.kubeconfig),
      context(flags.context),
  };
}

Flags usage_flags(UsageFlags& flags) {
  return {
      {"--since", &flags.since, "How far back: 90m, 12h, 7d (default: 1h)"},
      {"--from", &flags.from, "Instead, from this time on: 2026-01-02T15:04:05Z"},
      {"--to", &flags.to, "Until this time (default: now)"},
      {"--by", &flags.by,
       "What a row is of: namespace, class, pod, device, or several with commas"},
      {"--step", &flags.step, "Rows for every 5m, 1h, 1d, instead of one for all of the time"},
      {"-n,--namespace", &flags.name_space,
       "Claims of this namespace (default: the context's namespace)"},
      {"-A,--all-namespaces", &flags.all_namespaces, "Claims of every namespace"},
      {"-o,--output", &flags.output, "How to print it", one_of({"table", "csv", "json"})},
      kubeconfig(flags.kubeconfig),
      context(flags.context),
  };
}

Flags plan_flags(PlanFlags& flags) {
  return {
      {"-f,--filename",
       &flags.files,
       "Objects in YAML or JSON: files, folders, or - for standard input",
       {.type = "FILE", .required = true}},
      {"-n,--namespace", &flags.name_space,
       "Namespace of objects that name none (default: that of the context)"},
      kubeconfig(flags.kubeconfig),
      context(flags.context),
      {"-o,--output", &flags.output, "How to print the answer (docs/plan.md)",
       one_of({"text", "json"})},
      {"--config", &flags.config, "The scheduler's KubeSchedulerConfiguration, where it has one",
       kFile},
      release_of_gates(flags.release),
      feature_gates(flags.feature_gates),
  };
}

Flags open_flags(OpenFlags& flags) {
  return {kubeconfig(flags.kubeconfig), context(flags.context)};
}

Flag image_folder(ImageFlags& flags) {
  return {"--images", &flags.folder, "Folder of the image store (default: the machine's own)",
          env("DIBS_IMAGES")};
}

Flags pull_flags(ImageFlags& flags) {
  return {
      image_folder(flags),
      {"NAME", &flags.names, "Names of images", kRequired},
      insecure_registries(flags.insecure_registries),
      {"--authfile", &flags.logins, "Logins to registries, as `docker login` writes them", kFile},
  };
}

Flags load_flags(ImageFlags& flags) {
  return {
      image_folder(flags),
      {"FILE", &flags.file,
       "docker archive, OCI archive, folder of an OCI layout, or - for standard input", kRequired},
      {"NAME", &flags.name, "Name to give it, where it has none or another one is wanted"},
  };
}

Flags list_flags(ImageFlags& flags) { return {image_folder(flags)}; }

Flags remove_flags(ImageFlags& flags) {
  return {image_folder(flags), {"NAME", &flags.names, "Names or ids", kRequired}};
}

// Flags of commands about places where objects are kept.

Flags place_flags(PlaceFlags& flags) {
  Flags etcd = etcd_flags(flags.etcd);
  // The place says that.
  std::erase_if(etcd, [](const Flag& flag) { return flag.name.starts_with("--etcd-endpoints"); });
  return both(std::move(etcd),
              {
                  {"--encryption-provider-config", &flags.encryption_provider_config,
                   "EncryptionConfiguration that values are encrypted with", kFile},
              });
}

Flag resume(bool& resume) {
  return {"--resume", &resume, "Go on with what was begun and not ended"};
}

Flag overwrite(bool& overwrite) {
  return {"--overwrite", &overwrite, "Replace what is there already"};
}

Flags copy_flags(CopyFlags& flags) {
  return both({{"--from", &flags.from, "sqlite:FOLDER or etcd:URL,URL", kRequired},
               {"--to", &flags.to, "The same, and empty", kRequired},
               resume(flags.resume),
               overwrite(flags.overwrite)},
              place_flags(flags.place));
}

Flags check_flags(CheckFlags& flags) {
  return both({{"PLACE", &flags.place_text, "sqlite:FOLDER or etcd:URL,URL", kRequired}},
              place_flags(flags.place));
}

Flags backup_flags(BackupFlags& flags) {
  return both({{"--to",
                &flags.to,
                "File to write, mode 0600; it holds all secrets",
                {.type = "FILE", .required = true}},
               kubeconfig(flags.kubeconfig),
               context(flags.context),
               {"--from", &flags.from, "sqlite:FOLDER or etcd:URL,URL, where no server runs"},
               {"--data-dir", &flags.data_dir,
                "Data folder of the server, whose keys and certificates (pki) go into it, too"}},
              place_flags(flags.place));
}

Flags restore_flags(RestoreFlags& flags) {
  return both(
      {{"--from", &flags.from, "File that `dibs backup` wrote", {.type = "FILE", .required = true}},
       {"--data-dir", &flags.data_dir, "Data folder to make: objects, keys and certificates"},
       {"--to", &flags.to, "sqlite:FOLDER or etcd:URL,URL for the objects instead, empty"},
       {"--kubeconfig", &flags.kubeconfig, "Restore on this live server instead", kFile},
       context(flags.context),
       resume(flags.resume),
       overwrite(flags.overwrite),
       {"--abandon", &flags.abandon,
        "With --kubeconfig: end a restore that was begun, as far as it came"}},
      place_flags(flags.place));
}

Flags pki_flags(PkiFlags& flags) { return {data_dir(flags.data_dir)}; }

Flags pki_kubeconfig_flags(PkiFlags& flags) {
  return {
      {"WHO", &flags.who, "node/NAME, scheduler or controllers", kRequired},
      data_dir(flags.data_dir),
      {"--server", &flags.server,
       "URL of the server (default: that of the kubeconfig in the data folder)"},
      {"--out", &flags.out, "File to write, mode 0600 (default: standard output)"},
  };
}

Flags token_flags(TokenFlags& flags) {
  return {
      kubeconfig(flags.kubeconfig),
      context(flags.context),
      {"--server", &flags.server,
       "URL by which the other machine reaches the server (default: that of the kubeconfig)"},
      {"--ttl", &flags.life, "How long the token is good; 0: until it is removed"},
  };
}

using Files = std::vector<std::string>;

Flags bench_allocator_flags(Files& files) {
  return {
      {"FILE", &files, "Cases: .json, .jsonl, either packed with gzip", kRequired},
  };
}

Flags bench_scheduler_flags(bench::SchedulerOptions& flags) {
  return {
      {"FILE", &flags.files, "Workloads: performance-config.yaml of scheduler_perf", kRequired},
      {"--workload", &flags.workload, "Only those named so: TestCase/workload, or a part of it"},
      {"--label", &flags.label, "Only those with this label"},
      {"--emulate-release", &flags.release, "Kubernetes release to be (default: 1.37)"},
      store(flags.store),
      {"--etcd-endpoints", &flags.etcd_endpoints, "With --store etcd: URLs of its members",
       kCommas},
      {"--all-controllers", &flags.all_controllers, "Run all controllers, not only that of claims"},
      {"--kubeconfig", &flags.kubeconfig,
       "Of an empty cluster that runs with its scheduler, instead of one in here"},
      {"--list", &flags.list, "Name the workloads and their labels, run none"},
  };
}

/// Of a command that returns its text: print, and exit as it says.
template <typename Outcome>
int print(const Outcome& outcome) {
  std::cout << outcome.output << std::flush;
  std::cerr << outcome.errors;
  return outcome.status;
}

int bench_scheduler(const bench::SchedulerOptions& options) {
  begin_process("error");
  return print(bench::bench_scheduler(options, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }));
}

/// `table` names the flags, `run` takes what they were set to.
template <typename Values, typename Run>
Command command(const char* path, const char* about, Flags (*table)(Values&), Run run,
                std::string footer = "") {
  const auto values = std::make_shared<Values>();
  return {path, about, table(*values), [values, run] { return run(*values); }, std::move(footer)};
}

int show_top(const TopFlags& flags) {
  return print(top(flags, [](const TopOutcome& outcome) {
    // A terminal shows the newest alone; a file has one after the other.
    if (isatty(STDOUT_FILENO) != 0) std::cout << "\x1b[H\x1b[2J";
    print(outcome);
    if (isatty(STDOUT_FILENO) == 0) std::cout << std::endl;
  }));
}

Command up_command() {
  const auto values = std::make_shared<ServeFlags>();
  values->whole_cluster = true;
  Command out{"up", "Run a cluster on this machine, until Ctrl-C", up_flags(*values),
              [values] { return serve(*values, "up"); }};
  out.complete = [values](const Flags& table, const std::set<std::string>& given) -> Result<> {
    DIBS_CHECK(read_up_config(*values, table, given));
    values->idle = idle_flags(*values, given);
    // A cluster that answers as a release writes the events of that release.
    if (!given.contains(kExplainEvents) && !values->places.contains(kExplainEvents)) {
      values->explain_events = values->release.empty();
    }
    return success();
  };
  return out;
}

Command cni_command(const std::string& name, const char* about) {
  return {cat("cni ", name), about, {}, [name] { return drivers::net::run_cni_plugin(name); }};
}

std::string version_text() {
  const BuildInfo built = build_info();
  return cat("dibs ", built.version, " (commit ", built.commit, ", ", built.date, ")");
}

std::vector<Command> all_commands() {
  return {
      up_command(),
      command("list", "Show the clusters of this machine", clusters_flags, list_clusters),
      command("down", "End a cluster, and take away all of it", down_flags, take_down,
              "Exit status: 0 it is gone, 1 there is none, or something cannot be taken away."),
      command("apiserver", "Run the API server alone", server_flags,
              [](const ServeFlags& flags) { return serve(flags, "apiserver"); }),
      command("controllers", "Run the controllers of a cluster alone", controllers_flags,
              run_controllers),
      command("scheduler", "Run the scheduler of a cluster alone", scheduler_flags, run_scheduler),
      command("node", "Run the agent of a node alone", node_flags, run_node,
              "`dibs node join` makes this machine a node of a cluster in one step."),
      command("node join", "Make this machine a node of a cluster that runs elsewhere", join_flags,
              join_node,
              "Run again it goes on with what it has; then it needs neither server nor token "
              "(docs/several-machines.md)."),
      command("token create", "Print the command by which another machine joins the cluster",
              token_flags, create_token),
      command(
          "select", "Show which devices an expression chooses", select_flags,
          [](const SelectFlags& flags) { return print(select(flags, std::cin)); },
          "Exit status: 0 a device matched, 1 none did, 2 wrong usage, expression or input.\n"
          "With --cases: 0 all are the same, 1 some differ, 2 a file cannot be read."),
      command(
          "why", "Say what a pod, claim, workload, node or driver waits for, or all that waits",
          why_flags, [](const WhyFlags& flags) { return print(why(flags)); },
          "Exit status: 0 nothing is wanting, 1 not found or an error, 2 something waits."),
      command("top", "Show which devices are where and who has them", top_flags, show_top,
              "Exit status: 0, 1 the cluster cannot be asked, 2 wrong usage."),
      command(
          "usage", "Show how long devices were held, by whom", usage_flags,
          [](const UsageFlags& flags) { return print(usage(flags)); },
          "Exit status: 0, 1 the cluster cannot be asked, 2 wrong usage."),
      command(
          "plan", "Say where the pods of these files would go, without doing it", plan_flags,
          [](const PlanFlags& flags) { return print(plan(flags, std::cin)); },
          "Exit status: 0 all would run, 1 something would wait or cannot be applied, 2 wrong "
          "usage."),
      command("open", "Print a link to the server's page, for a browser on its machine", open_flags,
              open_page, "The link is good once, within two minutes (docs/page.md)."),
      command("driver gpu", "Make-believe GPUs, network interfaces or CPUs", driver_flags,
              run_gpu_driver),
      command("driver net", "Interfaces and addresses of the machines' networks, as Spiderpool",
              net_driver_flags, run_net_driver),
      command("driver nvidia", "NVIDIA's GPUs, and MIG instances made for claims",
              nvidia_driver_flags, run_nvidia_driver),
      command("driver test", "Try a driver of your own without a cluster", trial_flags, run_trial,
              trial_footer()),
      cni_command("spiderpool", "CNI plugin: addresses from pools"),
      cni_command("coordinator", "CNI plugin: ways to the host, routes of several interfaces"),
      cni_command("ifacer", "CNI plugin: bonds and VLAN devices of the host"),
      command("store copy", "Copy a cluster's objects from one place to another, and compare",
              copy_flags, copy_store),
      command("store check", "Say what is wrong with a cluster's objects where they are kept",
              check_flags, check_store,
              "Nothing is changed; a server may be running on it.\n"
              "Exit status: 0 nothing is wrong, 1 something is or it cannot be read."),
      command("backup", "Write all objects of a cluster to a file", backup_flags, take_backup),
      command("restore", "Make a cluster of what `dibs backup` wrote", restore_flags,
              restore_backup),
      command("image pull", "Take images from their registries", pull_flags, pull_images),
      command("image load", "Take images from an archive or an OCI layout", load_flags, load_image),
      command("image import", "The same as load", load_flags, load_image),
      command("image list", "Show what is there", list_flags, list_images),
      command("image remove", "Remove images", remove_flags, remove_images),
      command("image rm", "The same as remove", remove_flags, remove_images),
      command("pki export", "Print the keys that all servers of a cluster share, into a pipe",
              pki_flags, export_pki),
      command("pki import", "Take them, before this machine's first server starts", pki_flags,
              import_pki),
      command("pki kubeconfig", "Make a kubeconfig for a part of the cluster on another machine",
              pki_kubeconfig_flags, make_part_kubeconfig),
      command(
          "bench allocator", "Recorded cases of the allocator of Kubernetes", bench_allocator_flags,
          [](const Files& files) { return print(bench::bench_allocator(files)); },
          "Exit status: 0 all are the same, 1 some differ or have no answer, 2 a file cannot be "
          "read."),
      command("bench scheduler-perf", "Scheduling workloads of Kubernetes, on a cluster in here",
              bench_scheduler_flags, bench_scheduler,
              "Exit status: 0 all ran or were skipped, 1 one failed, 2 a file cannot be read. "
              "Files of "
              "the store lie in DIBS_BENCH_DIR (default: /var/tmp) while it runs."),
  };
}

}  // namespace

CommandLine dibs_command_line() {
  CommandLine line = {
      "dibs",
      "Dynamic Resource Allocation for Kubernetes, in one binary.",
      version_text(),
      {{"driver", "Run a device driver of a node, or try one"},
       {"cni", "What CNI runtimes call as a plugin, by a link of that name"},
       {"token", "By which other machines join a cluster"},
       {"store", "Where the objects of a cluster are kept"},
       {"image", "Images that containers on this machine can run"},
       {"pki", "Keys of the cluster, for more machines"},
       {"bench", "Compare with recorded answers, and measure"}},
      all_commands(),
  };
  add_device_commands(line);
  add_manual_commands(line);
  return line;
}

int run(int argc, char** argv) {
  // Under the name of a plugin it is that plugin.
  const std::string called = std::filesystem::path(argc > 0 ? argv[0] : "").filename();
  const auto plugins = drivers::net::cni_plugin_names();
  if (std::find(plugins.begin(), plugins.end(), called) != plugins.end()) {
    return drivers::net::run_cni_plugin(called);
  }
  return run(dibs_command_line(), argc, argv);
}

}  // namespace dibs::cli
