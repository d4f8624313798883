#pragma once
// What runs containers, as the node agent sees it. The shape is that of CRI v1, so that a CRI
// runtime fits behind it too.
//
// A sandbox is what a pod's containers share: namespaces, addresses, a log folder. It is run before
// and removed after them. Sandboxes and containers survive the agent: a new agent on the same
// folders finds them by list_*() with the labels they were made with. All calls may block, may come
// from any thread, and may be repeated: stopping what is stopped and removing what is gone succeed.
//
// Errors carry a message for the user, as events and container statuses show it.
// runtime_contract_test.h is the suite that every implementation passes.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace dibs::node {

using Labels = std::map<std::string, std::string>;

struct PortMapping {
  std::string protocol = "TCP";
  int container_port = 0;
  int host_port = 0;
  std::string host_ip = {};
};

/// A network that the pod names: as eth0 instead of the node's own, else beside it.
struct SandboxNetwork {
  std::string name = {};  // "kube-system/macvlan-conf"
  std::string interface = {};
  /// CNI configuration; "": that of the node whose network has the name behind the slash.
  std::string config = {};
  /// For plugins with these capabilities; where none of them has it, run_sandbox fails.
  std::string mac = {};
  std::vector<std::string> ips = {};
  /// PCI address of the device that becomes the interface, for plugins that move one; "": none.
  std::string device = {};
};

struct ContainerLimits {
  std::int64_t cpu_period = 0;  // microseconds; 0: none
  std::int64_t cpu_quota = 0;
  std::int64_t cpu_shares = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t oom_score_adj = 0;
  std::string cpuset_cpus = {};
  std::string cpuset_mems = {};
  /// Bytes by page size, as the kernel writes it: "2MB", "1GB".
  std::vector<std::pair<std::string, std::int64_t>> huge_pages = {};
  /// Huge pages of sizes that are not named above: none, instead of any number.
  bool no_other_pages = false;
};

/// What a container, or a pod with all of them, takes of the machine. Counters count from its
/// start.
struct Usage {
  std::uint64_t cpu_nanos = 0;
  std::uint64_t cpu_user_nanos = 0;
  std::uint64_t cpu_system_nanos = 0;
  std::uint64_t cpu_periods = 0;
  std::uint64_t cpu_throttled_periods = 0;
  std::uint64_t cpu_throttled_nanos = 0;
  std::uint64_t memory_bytes = 0;
  /// Without what the kernel would give up first.
  std::uint64_t memory_working_set = 0;
  std::uint64_t memory_rss = 0;
  std::uint64_t memory_cache = 0;
  std::uint64_t memory_mapped = 0;
  std::uint64_t memory_limit = 0;  // 0: none
  std::uint64_t swap_bytes = 0;
  std::uint64_t page_faults = 0;
  std::uint64_t major_page_faults = 0;
  std::uint64_t processes = 0;
};

/// Counters of one interface of a sandbox.
struct InterfaceUsage {
  std::string name = {};
  std::uint64_t received_bytes = 0;
  std::uint64_t received_packets = 0;
  std::uint64_t received_errors = 0;
  std::uint64_t received_dropped = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t sent_packets = 0;
  std::uint64_t sent_errors = 0;
  std::uint64_t sent_dropped = 0;
};

struct SandboxConfig {
  std::string name = {};  // the pod's
  std::string name_space = {};
  std::string uid = {};
  unsigned attempt = 0;
  std::string hostname = {};
  std::string log_directory = {};
  std::vector<PortMapping> ports = {};
  bool host_network = false;
  bool host_pid = false;
  bool host_ipc = false;
  /// One pid namespace for all containers.
  bool share_pid = false;
  /// Of the sandbox's own namespaces; a name that is in none of them fails run_sandbox.
  std::vector<std::pair<std::string, std::string>> sysctls = {};
  /// Written to /etc/resolv.conf of the pod; all empty: the host's.
  std::vector<std::string> dns_servers = {};
  std::vector<std::string> dns_searches = {};
  std::vector<std::string> dns_options = {};
  /// Simulated containers have no interfaces: there it has no effect.
  std::vector<SandboxNetwork> networks = {};
  /// Where its control group lies below those of all pods of the node: "burstable/pod<uid>". "":
  /// none of its own.
  std::string group = {};
  /// Of all containers together, at any moment.
  ContainerLimits limits = {};
  Labels labels = {};
  Labels annotations = {};
};

enum class SandboxState : std::uint8_t { ready, not_ready };

struct SandboxStatus {
  std::string id = {};
  SandboxState state = SandboxState::not_ready;
  std::string name = {};
  std::string name_space = {};
  std::string uid = {};
  unsigned attempt = 0;
  Time created = {};
  std::vector<std::string> ips = {};  // empty with the host's network
  /// Of a pod that names networks: all its interfaces, as k8s.v1.cni.cncf.io/network-status has it.
  std::string network_status = {};
  Labels labels = {};
  Labels annotations = {};
};

enum class Propagation : std::uint8_t { none, host_to_container, bidirectional };

struct Mount {
  std::string container_path = {};
  std::string host_path = {};
  bool read_only = false;
  Propagation propagation = Propagation::none;
  /// The id of an image whose files are mounted instead of host_path, never to be executed: all of
  /// them, or what `image_path` names.
  std::string image = {};
  std::string image_path = {};
};

struct HostDevice {
  std::string container_path = {};
  std::string host_path = {};
  std::string permissions = "rwm";
};

struct ContainerSecurity {
  bool privileged = false;
  bool read_only_root = false;
  bool no_new_privileges = false;
  std::optional<std::int64_t> run_as_user = {};
  std::string run_as_username = {};
  std::optional<std::int64_t> run_as_group = {};
  std::vector<std::int64_t> supplemental_groups = {};
  /// Only these groups, not those that the image gives the user.
  bool strict_groups = false;
  std::vector<std::string> add_capabilities = {};
  std::vector<std::string> drop_capabilities = {};
  /// "" or "RuntimeDefault", "Unconfined", or a path of a profile.
  std::string seccomp = {};
};

struct ContainerConfig {
  std::string name = {};
  unsigned attempt = 0;
  std::string image = {};  // what pull_image or image_status returned as id
  std::vector<std::string> command = {};
  std::vector<std::string> args = {};
  std::string working_dir = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  std::vector<Mount> mounts = {};
  std::vector<HostDevice> devices = {};
  /// Qualified CDI names; repeated ones count once. Unknown ones fail create_container.
  std::vector<std::string> cdi_devices = {};
  /// Relative to the sandbox's log_directory; CRI log format.
  std::string log_path = {};
  /// Sees the processes of this running container of the sandbox; "" : its own.
  std::string target_id = {};
  bool stdin_open = false;
  bool stdin_once = false;
  bool tty = false;
  std::string stop_signal = {};  // "" : the image's, else SIGTERM
  ContainerLimits limits = {};
  ContainerSecurity security = {};
  Labels labels = {};
  Labels annotations = {};
};

enum class ContainerState : std::uint8_t { created, running, exited, unknown };

struct ContainerStatus {
  std::string id = {};  // without "containerd://"-like prefix
  std::string sandbox_id = {};
  std::string name = {};
  unsigned attempt = 0;
  ContainerState state = ContainerState::unknown;
  Time created = {};
  Time started = {};
  Time finished = {};
  int exit_code = 0;
  int signal = 0;
  std::string image = {};     // as the pod named it
  std::string image_id = {};  // as status.containerStatuses[].imageID shows it
  std::string reason = {};    // "OOMKilled", "Completed", "Error", "StartError", ...
  std::string message = {};
  std::string log_path = {};  // absolute
  Labels labels = {};
  Labels annotations = {};
};

/// What a registry is shown of who pulls.
struct PullLogin {
  std::string auth = {};  // base64 of user:password; "": nothing
};

struct ImageInfo {
  std::string id = {};  // sha256:...
  std::vector<std::string> tags = {};
  std::vector<std::string> digests = {};
  std::uint64_t size = 0;
  /// From the image's config.
  std::optional<std::int64_t> user_id = {};
  std::string user_name = {};
  /// Digests of the logins that it may be used with, each a PullLogin's; none: by everybody.
  std::vector<std::string> logins = {};
  /// It stays when room is wanted: no registry could give it again.
  bool pinned = false;
  /// Of an image that was pulled: "", or why it is the one that comes with the program and not
  /// what the registry has.
  std::string stands_in_because = {};
};

struct ExecResult {
  std::string out = {};
  std::string err = {};
  int exit_code = 0;
};

struct TerminalSize {
  unsigned width = 0;
  unsigned height = 0;
};

/// What comes of a process in a container. Called one at a time; must not wait.
struct ProcessOutput {
  std::function<void(std::string_view bytes)> out = {};
  std::function<void(std::string_view bytes)> err = {};  // never with a terminal
  /// Once. The exit code; an error when the process could not be started or was lost. Of an attach:
  /// when the container's process ended.
  std::function<void(Result<int> exit_code)> ended = {};
  /// All input was taken.
  std::function<void()> drained = {};
};

/// What goes to a process or a port. Nothing here waits: input that is not taken yet is queued, and
/// who writes looks at queued(). Thread-safe.
class StreamInput {
 public:
  virtual ~StreamInput() = default;
  /// Dropped where nobody reads any more; the output says how it ended.
  virtual void write(std::string_view bytes) = 0;
  virtual std::size_t queued() const = 0;
  /// No more input comes after what is queued.
  virtual void close() = 0;
  /// No more output is wanted, for now.
  virtual void hold(bool held) = 0;
  /// What the destructor does, for a caller that cannot destroy it yet.
  virtual void abandon() = 0;
};

/// Destroying it detaches; of an exec it also ends the process.
class ProcessInput : public StreamInput {
 public:
  virtual void resize(TerminalSize size) = 0;
};

struct ExecConfig {
  std::vector<std::string> command = {};
  bool tty = false;
  bool stdin_open = false;
};

/// As ProcessOutput, of a port inside a sandbox.
struct PortOutput {
  std::function<void(std::string_view bytes)> data = {};
  std::function<void(Result<> outcome)> ended = {};
  std::function<void()> drained = {};
};

struct RuntimeEvent {
  enum class Kind : std::uint8_t { created, started, stopped, removed };
  Kind kind = Kind::stopped;
  std::string sandbox_id = {};
  std::string container_id = {};  // "" : the sandbox itself
  std::string pod_uid = {};
};

struct RuntimeVersion {
  std::string name = {};  // "dibs-oci", "containerd": the prefix of container ids in pod statuses
  std::string version = {};  // node.status.nodeInfo.containerRuntimeVersion is name://version
};

class ContainerRuntime {
 public:
  virtual ~ContainerRuntime() = default;

  virtual RuntimeVersion version() = 0;
  /// An error says what is missing on this machine.
  virtual Result<> ready() = 0;

  /// What runs goes on without the agent, and is found again by the next one.
  virtual bool outlives_agent() const { return true; }

  /// The sandbox's id.
  virtual Result<std::string> run_sandbox(const SandboxConfig& config) = 0;
  /// Ends what runs in it and frees its network.
  virtual Result<> stop_sandbox(const std::string& id) = 0;
  /// With its containers.
  virtual Result<> remove_sandbox(const std::string& id) = 0;
  virtual Result<SandboxStatus> sandbox_status(const std::string& id) = 0;
  virtual Result<std::vector<SandboxStatus>> list_sandboxes() = 0;

  virtual Result<std::string> create_container(const std::string& sandbox_id,
                                               const SandboxConfig& sandbox,
                                               const ContainerConfig& config) = 0;
  virtual Result<> start_container(const std::string& id) = 0;
  /// The stop signal, then SIGKILL after `grace`. Does not wait for it: `done` is called once, at
  /// once or later on any thread, and must not wait; not at all when the runtime goes away first.
  virtual void stop_container(const std::string& id, Duration grace,
                              std::function<void(Result<>)> done) = 0;
  virtual Result<> remove_container(const std::string& id) = 0;
  virtual Result<ContainerStatus> container_status(const std::string& id) = 0;
  /// Of all sandboxes, dead ones too.
  virtual Result<std::vector<ContainerStatus>> list_containers() = 0;

  /// New limits for a running container or a ready sandbox, at once and without a restart; what is
  /// in `annotations` replaces its own of these names, in what it was made with, too. The score for
  /// lack of memory stays. An error changes no annotation.
  virtual Result<> update_container(const std::string& /*id*/, const ContainerLimits& /*limits*/,
                                    const Labels& /*annotations*/) {
    return Error::internal("this runtime's containers cannot be resized");
  }
  virtual Result<> update_sandbox(const std::string& /*id*/, const ContainerLimits& /*limits*/,
                                  const Labels& /*annotations*/) {
    return Error::internal("this runtime's sandboxes cannot be resized");
  }
  /// Of a container, or of a sandbox with all its containers; nothing where nobody counts.
  virtual std::optional<Usage> usage(const std::string& /*id*/) { return std::nullopt; }
  virtual std::vector<InterfaceUsage> interfaces(const std::string& /*sandbox_id*/) { return {}; }

  /// The folder of what a container wrote over its image, or of a sandbox's files that its
  /// containers can write to; "" where there is none.
  virtual std::string written_folder(const std::string& /*id*/) { return {}; }
  /// Of files on the disk that a container's processes hold, but that no folder has any more.
  virtual std::uint64_t unlinked_bytes(const std::string& /*id*/) { return 0; }
  /// Its log file was moved away: when this returns, it writes to a new one.
  virtual Result<> reopen_log(const std::string& /*id*/) {
    return Error::internal("this runtime's logs cannot be reopened");
  }

  /// Kills the command at the timeout (0: none), with an error of kind timeout.
  virtual Result<ExecResult> exec_sync(const std::string& id,
                                       const std::vector<std::string>& command,
                                       Duration timeout) = 0;
  virtual Result<std::unique_ptr<ProcessInput>> exec(const std::string& id,
                                                     const ExecConfig& config,
                                                     ProcessOutput output) = 0;
  virtual Result<std::unique_ptr<ProcessInput>> attach(const std::string& id,
                                                       ProcessOutput output) = 0;
  /// Destroying it closes.
  virtual Result<std::unique_ptr<StreamInput>> connect_port(const std::string& sandbox_id, int port,
                                                            PortOutput output) = 0;

  /// Nothing when the image is not here.
  virtual Result<std::optional<ImageInfo>> image_status(const std::string& image) = 0;
  /// Asks the registry, whatever is here.
  virtual Result<ImageInfo> pull_image(const std::string& image, const PullLogin& login) = 0;
  virtual Result<std::vector<ImageInfo>> list_images() = 0;
  virtual Result<> remove_image(const std::string& image) = 0;

  /// Called on the runtime's executor whenever something changed by itself or by a call. One
  /// listener per pod_uid prefix is not needed: all listeners get all events.
  virtual void listen(std::function<void(const RuntimeEvent& event)> listener) = 0;
};

}  // namespace dibs::node
