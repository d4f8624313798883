#pragma once
// Containers as processes of this machine, by an OCI runtime (runc or crun).
//
// A sandbox is a set of namespaces held by bind mounts, without a process of its own; only a shared
// pid namespace needs one. A container is a bundle below the node's root folder: its configuration,
// its layer over the image's. Starting it runs a monitor (conmon), which starts it through the OCI
// runtime, writes its log in CRI form, keeps its terminal and input open and notes how it ended.
// The monitor outlives the agent, so containers do.
//
//     <root>/sandboxes, containers  records (oci_records.h)
//     <run>/ns/<sandbox>/           namespaces, shared memory
//     <run>/exits/<container>       exit code, written by the monitor
//     <run>/s/<container>/attach    the monitor's socket
//     <run>/oci/                    state of the OCI runtime
//     <run>/owner, <root>/run-in    who has it (traces.h)
//
// <run> is /run/dibs/<short name>: socket paths are short, and nothing of it survives a reboot. A
// changed boot id tells that the machine was restarted: then everything has ended.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cdi/cache.h"
#include "net/fd_stream.h"
#include "node/runtime/cgroups.h"
#include "node/runtime/container_runtime.h"
#include "node/runtime/exit_watcher.h"
#include "node/runtime/image_store.h"
#include "node/runtime/oci_network.h"
#include "node/runtime/oci_records.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct OciOptions {
  std::string root = {};
  std::string run = {};  // "": made from root
  std::string images = {};
  ImageStoreOptions image_options = {};
  std::string program = {};  // path of runc or crun
  std::string monitor = {};  // path of conmon
  std::vector<std::string> cdi_directories = {};
  /// The latest version of CDI files that is understood (cdi/cache.h); "": all.
  std::string cdi_newest = {};
  /// Where a path that CDI files name lies on the machine, as NodeDevicesOptions has it.
  std::function<std::string(const std::string& path)> host_path = {};
  NetworkOptions network = {};
  std::string boot_id = {};  // "": the machine's
  /// A log that reaches this before it is rotated starts anew.
  std::int64_t log_bound = 100 << 20;
  /// Where control groups are mounted.
  std::string cgroups = "/sys/fs/cgroup";
};

class OciRuntime : public ContainerRuntime {
 public:
  /// Finds what an earlier one left, finishes what it began.
  static Result<std::unique_ptr<OciRuntime>> open(OciOptions options, runtime::Runtime& machine);
  /// Containers go on; streams to them end.
  ~OciRuntime() override;

  RuntimeVersion version() override;
  Result<> ready() override;
  Result<std::string> run_sandbox(const SandboxConfig& config) override;
  Result<> stop_sandbox(const std::string& id) override;
  Result<> remove_sandbox(const std::string& id) override;
  Result<SandboxStatus> sandbox_status(const std::string& id) override;
  Result<std::vector<SandboxStatus>> list_sandboxes() override;
  Result<std::string> create_container(const std::string& sandbox_id, const SandboxConfig& sandbox,
                                       const ContainerConfig& config) override;
  Result<> start_container(const std::string& id) override;
  void stop_container(const std::string& id, Duration grace,
                      std::function<void(Result<>)> done) override;
  Result<> remove_container(const std::string& id) override;
  Result<ContainerStatus> container_status(const std::string& id) override;
  Result<std::vector<ContainerStatus>> list_containers() override;
  Result<> update_container(const std::string& id, const ContainerLimits& limits,
                            const Labels& annotations) override;
  Result<> update_sandbox(const std::string& id, const ContainerLimits& limits,
                          const Labels& annotations) override;
  std::optional<Usage> usage(const std::string& id) override;
  std::vector<InterfaceUsage> interfaces(const std::string& sandbox_id) override;
  std::string written_folder(const std::string& id) override;
  std::uint64_t unlinked_bytes(const std::string& id) override;
  Result<> reopen_log(const std::string& id) override;
  Result<ExecResult> exec_sync(const std::string& id, const std::vector<std::string>& command,
                               Duration timeout) override;
  Result<std::unique_ptr<ProcessInput>> exec(const std::string& id, const ExecConfig& config,
                                             ProcessOutput output) override;
  Result<std::unique_ptr<ProcessInput>> attach(const std::string& id,
                                               ProcessOutput output) override;
  Result<std::unique_ptr<StreamInput>> connect_port(const std::string& sandbox_id, int port,
                                                    PortOutput output) override;
  Result<std::optional<ImageInfo>> image_status(const std::string& image) override;
  Result<ImageInfo> pull_image(const std::string& image, const PullLogin& login) override;
  Result<std::vector<ImageInfo>> list_images() override;
  Result<> remove_image(const std::string& image) override;
  void listen(std::function<void(const RuntimeEvent& event)> listener) override;

 private:
  struct Sandbox;
  struct Container;
  using SandboxPtr = std::shared_ptr<Sandbox>;
  using ContainerPtr = std::shared_ptr<Container>;

  OciRuntime(OciOptions options, runtime::Runtime& machine);

  Result<> load();
  /// What the first pod would wait for: the built-in image, the network's rules.
  void warm_up();
  void recover_sandbox(const std::string& id);
  void recover_container(const std::string& id);
  SandboxPtr find_sandbox(const std::string& id);
  ContainerPtr find_container(const std::string& id);
  /// `refusal`: what is said first of one that does not run.
  Result<ContainerPtr> find_running(const std::string& id, std::string_view refusal);
  std::vector<ContainerPtr> containers_of(const std::string& sandbox_id);
  std::string new_id();
  void tell(RuntimeEvent::Kind kind, const std::string& sandbox_id, const std::string& container_id,
            const std::string& pod_uid);

  std::string sandbox_folder(const std::string& id) const;
  std::string container_folder(const std::string& id) const;
  std::string namespace_folder(const std::string& sandbox_id) const;
  std::vector<std::string> runtime_command(const std::string& log) const;
  /// Runs the OCI runtime; errors are its own words.
  Result<std::string> run_oci(const std::string& id, std::vector<std::string> arguments);
  /// The last error in the runtime's log, in the words of runc.
  std::string logged_error(const std::string& log, std::string_view fallback) const;

  Result<> save(const Sandbox& sandbox);
  Result<> save(const Container& container);
  Result<> set_up_sandbox(Sandbox& sandbox, const SandboxConfig& config);
  Result<> start_pause(Sandbox& sandbox);
  // oci_groups.cc
  std::string group_of(const SandboxConfig& config) const;
  /// Of a sandbox or a container; "" where there is none.
  std::string group_of(const std::string& id);
  Result<> make_group(const SandboxConfig& config);
  /// Gives the classes above the pods their weights anew; `changed` counts as it is.
  void weigh_classes(const SandboxConfig& changed);
  /// With whatever still runs in it.
  Result<> remove_group(const Sandbox& sandbox);
  /// Of pods that no record tells of.
  void remove_unknown_groups();
  /// Above all pods, where none is left.
  void remove_empty_groups();
  void discard(Sandbox& sandbox);
  /// Somebody may have unmounted what holds the sandbox's namespaces. They are held again as those
  /// of a container that runs; without one the sandbox is not ready any more, and an error.
  Result<> keep_namespaces(Sandbox& sandbox);
  Result<> tear_down(Sandbox& sandbox);
  /// Where the files are that the mount of an image shows, mounted for the container in `folder`.
  Result<std::string> mount_image_at(const std::string& folder, std::size_t index,
                                     const Mount& mount);
  Result<> fill_bundle(Container& container, const SandboxRecord& sandbox,
                       const SandboxConfig& sandbox_config, const ContainerConfig& config);
  /// Holds at `path` the pid namespace of another container of the sandbox.
  Result<> join_processes(const std::string& id, const std::string& sandbox_id,
                          const std::string& path);
  Result<> launch(Container& container);
  Result<> release(const std::string& id);
  void finish_start(Container& container);
  void fail_start(Container& container, const Error& error);
  /// Notes the end of a container that the monitor has reported, or that is gone without a word.
  void note_exit(const std::string& id, bool lost);
  /// SIGKILL, and waits for the end.
  Result<> kill_container(const Container& container);
  /// True when it has ended, or never ran.
  bool has_ended(const ContainerPtr& container);
  void signal_container(const Container& container, int signal);
  /// One that was killed and does not end is not waited for any longer.
  void give_up_later(const ContainerPtr& container);
  /// Of one whose end nobody reported: it is gone, or an error.
  Result<> lost_or_stays(const Container& container);
  /// Calls those who wait for the container's end.
  void tell_ended(const std::string& id, const Result<>& outcome);
  /// A timer that does not outlive this.
  void later(Duration delay, std::function<void()> task);
  Result<> discard(Container& container);
  /// Streams that use this object, each with what ends it.
  std::uint64_t begin_stream(std::function<void()> stop);
  void end_stream(std::uint64_t stream);
  /// Of an attach whose connection has ended: once the container's end is known.
  void tell_exit(const ContainerPtr& container, const std::shared_ptr<ProcessOutput>& tell,
                 std::uint64_t stream, int looks);

  const OciOptions options_;
  const std::string program_name_;  // "runc" or "crun"
  const std::string boot_id_;
  runtime::Runtime& machine_;
  const Cgroups groups_;
  const std::string own_group_;              // of all pods of the node
  std::unique_ptr<runtime::FileLock> open_;  // nobody takes its traces for abandoned ones
  ImageStore images_;
  cdi::Cache cdi_;
  PodNetwork network_;

  Mutex weighing_;  // one look at all pods at a time
  Mutex saving_;    // one write of a record at a time; taken before the next one
  Mutex mutex_;     // guards records, too
  CondVar changed_;
  std::map<std::string, SandboxPtr> sandboxes_ DIBS_GUARDED_BY(mutex_);
  std::map<std::string, ContainerPtr> containers_ DIBS_GUARDED_BY(mutex_);
  std::vector<std::function<void(const RuntimeEvent&)>> listeners_ DIBS_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::function<void()>> streams_ DIBS_GUARDED_BY(mutex_);
  std::uint64_t last_stream_ DIBS_GUARDED_BY(mutex_) = 0;
  bool closing_ DIBS_GUARDED_BY(mutex_) = false;
  std::multimap<std::string, std::function<void(Result<>)>> stopping_ DIBS_GUARDED_BY(mutex_);

  std::unique_ptr<ExitWatcher> watcher_;
  net::LoopThread loop_;  // of streams
};

/// The control group of all that runs for the node with this root folder, which must be there.
std::string own_group(const std::string& root);
/// <run> of a node's root folder.
std::string oci_run_folder(const std::string& root);
/// What this machine lacks to run containers with `program`, "" when nothing.
std::string missing_for_oci(const std::string& program);

}  // namespace dibs::node
