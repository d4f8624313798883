#include "node/runtime/oci_config.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/oci_seccomp.h"

namespace dibs::node {
namespace {

using json::Value;

// By number.
constexpr std::array<std::string_view, 41> kCapabilities = {"CHOWN",
                                                            "DAC_OVERRIDE",
                                                            "DAC_READ_SEARCH",
                                                            "FOWNER",
                                                            "FSETID",
                                                            "KILL",
                                                            "SETGID",
                                                            "SETUID",
                                                            "SETPCAP",
                                                            "LINUX_IMMUTABLE",
                                                            "NET_BIND_SERVICE",
                                                            "NET_BROADCAST",
                                                            "NET_ADMIN",
                                                            "NET_RAW",
                                                            "IPC_LOCK",
                                                            "IPC_OWNER",
                                                            "SYS_MODULE",
                                                            "SYS_RAWIO",
                                                            "SYS_CHROOT",
                                                            "SYS_PTRACE",
                                                            "SYS_PACCT",
                                                            "SYS_ADMIN",
                                                            "SYS_BOOT",
                                                            "SYS_NICE",
                                                            "SYS_RESOURCE",
                                                            "SYS_TIME",
                                                            "SYS_TTY_CONFIG",
                                                            "MKNOD",
                                                            "LEASE",
                                                            "AUDIT_WRITE",
                                                            "AUDIT_CONTROL",
                                                            "SETFCAP",
                                                            "MAC_OVERRIDE",
                                                            "MAC_ADMIN",
                                                            "SYSLOG",
                                                            "WAKE_ALARM",
                                                            "BLOCK_SUSPEND",
                                                            "AUDIT_READ",
                                                            "PERFMON",
                                                            "BPF",
                                                            "CHECKPOINT_RESTORE"};
constexpr std::array<std::string_view, 14> kDefaultCapabilities = {
    "CHOWN",   "DAC_OVERRIDE", "FSETID",           "FOWNER",
    "MKNOD",   "NET_RAW",      "SETGID",           "SETUID",
    "SETFCAP", "SETPCAP",      "NET_BIND_SERVICE", "SYS_CHROOT",
    "KILL",    "AUDIT_WRITE"};
constexpr std::array<std::string_view, 12> kMasked = {
    "/proc/asound",     "/proc/acpi",        "/proc/interrupts",
    "/proc/kcore",      "/proc/keys",        "/proc/latency_stats",
    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug",
    "/proc/scsi",       "/sys/firmware",     "/sys/devices/virtual/powercap"};
constexpr std::array<std::string_view, 5> kReadOnly = {"/proc/bus", "/proc/fs", "/proc/irq",
                                                       "/proc/sys", "/proc/sysrq-trigger"};

Value texts(const std::vector<std::string>& items) {
  Value list = Value::array();
  for (const auto& item : items) list.push(item);
  return list;
}

template <std::size_t N>
Value texts(const std::array<std::string_view, N>& items) {
  Value list = Value::array();
  for (const auto item : items) list.push(item);
  return list;
}

std::vector<std::string> strings(const Value& list) {
  std::vector<std::string> out;
  for (const auto& item : list.items()) out.push_back(item.str());
  return out;
}

Result<std::vector<std::string>> arguments(const ContainerConfig& container, const Value& image) {
  std::vector<std::string> words = container.command;
  std::vector<std::string> more = container.args;
  if (words.empty()) {
    words = strings(image["Entrypoint"]);
    if (more.empty()) more = strings(image["Cmd"]);
  }
  words.insert(words.end(), more.begin(), more.end());
  if (words.empty()) return Error::invalid("no command specified");
  return words;
}

void set_env(std::vector<std::string>& env, const std::string& entry) {
  const std::string_view key = std::string_view(entry).substr(0, entry.find('=') + 1);
  for (auto& known : env) {
    if (known.starts_with(key)) {
      known = entry;
      return;
    }
  }
  env.push_back(entry);
}

std::vector<std::string> environment(const OciConfigInput& input) {
  std::vector<std::string> env = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const auto& entry : strings(input.image["config"]["Env"])) set_env(env, entry);
  if (!input.sandbox.hostname.empty()) set_env(env, "HOSTNAME=" + input.sandbox.hostname);
  if (input.container.tty) set_env(env, "TERM=xterm");
  for (const auto& [key, value] : input.container.env) set_env(env, cat(key, "=", value));
  return env;
}

std::string capability(std::string_view name) {
  std::string upper = to_upper(name);
  return upper.starts_with("CAP_") ? upper : "CAP_" + upper;
}

/// One that no kernel has would be left out by the runtime without a word.
Result<> check_capabilities(const ContainerSecurity& security) {
  for (const auto* names : {&security.add_capabilities, &security.drop_capabilities}) {
    for (const auto& name : *names) {
      const std::string full = capability(name);
      const bool known = full == "CAP_ALL" ||
                         std::any_of(kCapabilities.begin(), kCapabilities.end(),
                                     [&](std::string_view one) { return capability(one) == full; });
      if (!known) return Error::invalid(cat("unknown capability ", quoted(name)));
    }
  }
  return success();
}

std::set<std::string> capabilities(const OciConfigInput& input) {
  const ContainerSecurity& security = input.container.security;
  std::set<std::string> all;
  for (std::size_t i = 0; i < kCapabilities.size(); ++i) {
    if ((input.all_capabilities >> i & 1) != 0) all.insert(capability(kCapabilities[i]));
  }
  std::set<std::string> held;
  for (const auto name : kDefaultCapabilities) held.insert(capability(name));
  const auto has_all = [](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(),
                       [](const auto& name) { return equals_ignoring_case(name, "ALL"); });
  };
  if (security.privileged || has_all(security.add_capabilities)) held = all;
  if (!security.privileged) {
    if (has_all(security.drop_capabilities)) held.clear();
    for (const auto& name : security.add_capabilities) {
      if (!equals_ignoring_case(name, "ALL")) held.insert(capability(name));
    }
    for (const auto& name : security.drop_capabilities) {
      if (!equals_ignoring_case(name, "ALL")) held.erase(capability(name));
    }
  }
  return held;
}

// None is inherited: a program gets what its own file and user allow within the bounds.
Value capability_sets(const std::set<std::string>& held) {
  Value list = Value::array();
  for (const auto& name : held) list.push(name);
  return Value::object({{"bounding", list}, {"effective", list}, {"permitted", list}});
}

Value mount(std::string_view destination, std::string_view type, std::string_view source,
            const std::vector<std::string>& options) {
  return Value::object({{"destination", destination},
                        {"type", type},
                        {"source", source},
                        {"options", texts(options)}});
}

std::string_view propagation_option(Propagation propagation) {
  switch (propagation) {
    case Propagation::none:
      return "rprivate";
    case Propagation::host_to_container:
      return "rslave";
    case Propagation::bidirectional:
      return "rshared";
  }
  return "rprivate";
}

std::size_t depth(std::string_view path) {
  return static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

Value mounts(const OciConfigInput& input) {
  const bool privileged = input.container.security.privileged;
  const std::string access = privileged ? "rw" : "ro";
  std::vector<Value> list = {
      mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
      mount("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}),
      mount("/dev/pts", "devpts", "devpts",
            {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}),
      mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
      mount("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", access}),
      mount("/sys/fs/cgroup", "cgroup", "cgroup",
            {"nosuid", "noexec", "nodev", "relatime", access}),
  };
  if (!input.shm.empty()) list.push_back(mount("/dev/shm", "bind", input.shm, {"rbind", "rw"}));
  const std::string file_access = input.container.security.read_only_root ? "ro" : "rw";
  if (!input.resolv_conf.empty()) {
    list.push_back(
        mount("/etc/resolv.conf", "bind", input.resolv_conf, {"rbind", "rprivate", file_access}));
  }
  if (!input.hostname_file.empty()) {
    list.push_back(
        mount("/etc/hostname", "bind", input.hostname_file, {"rbind", "rprivate", file_access}));
  }
  std::vector<Mount> wanted = input.container.mounts;
  std::stable_sort(wanted.begin(), wanted.end(), [](const Mount& a, const Mount& b) {
    return depth(a.container_path) < depth(b.container_path);
  });
  for (const auto& one : wanted) {
    std::erase_if(list, [&](const Value& known) {
      return known["destination"].as_string() == one.container_path;
    });
    std::vector<std::string> options = {"rbind", std::string(propagation_option(one.propagation)),
                                        one.read_only ? "ro" : "rw"};
    // A mount of a mount keeps none of these by itself.
    if (!one.image.empty()) options.insert(options.end(), {"nosuid", "nodev", "noexec"});
    list.push_back(mount(one.container_path, "bind", one.host_path, options));
  }
  Value out = Value::array();
  for (auto& entry : list) out.push(std::move(entry));
  return out;
}

Value namespaces(const OciConfigInput& input) {
  Value list = Value::array({Value::object({{"type", "mount"}})});
  const auto join = [&](std::string_view type, const std::string& path) {
    if (!path.empty()) list.push(Value::object({{"type", type}, {"path", path}}));
  };
  join("network", input.network_namespace);
  join("ipc", input.ipc_namespace);
  join("uts", input.uts_namespace);
  if (!input.pid_namespace.empty()) {
    join("pid", input.pid_namespace);
  } else if (!input.sandbox.host_pid) {
    list.push(Value::object({{"type", "pid"}}));
  }
  if (input.cgroup_v2 && !input.container.security.privileged) {
    list.push(Value::object({{"type", "cgroup"}}));
  }
  return list;
}

Value resources(const OciConfigInput& input) {
  const ContainerLimits& limits = input.container.limits;
  const bool privileged = input.container.security.privileged;
  Value out = Value::object(
      {{"devices", Value::array({Value::object({{"allow", privileged}, {"access", "rwm"}})})}});
  if (limits.memory_bytes > 0) {
    out.set("memory", Value::object({{"limit", limits.memory_bytes}}));
  }
  Value pages = Value::array();
  for (const auto& [size, bytes] : limits.huge_pages) {
    pages.push(Value::object({{"pageSize", size}, {"limit", bytes}}));
  }
  if (!pages.empty()) out.set("hugepageLimits", std::move(pages));
  Value cpu = Value::object();
  if (limits.cpu_shares > 0) cpu.set("shares", limits.cpu_shares);
  if (limits.cpu_quota > 0) cpu.set("quota", limits.cpu_quota);
  if (limits.cpu_period > 0) cpu.set("period", limits.cpu_period);
  if (!limits.cpuset_cpus.empty()) cpu.set("cpus", limits.cpuset_cpus);
  if (!limits.cpuset_mems.empty()) cpu.set("mems", limits.cpuset_mems);
  if (!cpu.empty()) out.set("cpu", std::move(cpu));
  return out;
}

Result<> add_devices(const OciConfigInput& input, const cdi::HostNodes& nodes, Value& config) {
  cdi::ContainerEdits edits;
  if (input.container.security.privileged) {
    for (const auto& path : input.host_devices) {
      if (nodes(path).ok()) edits.device_nodes.push_back({.path = path});
    }
  }
  for (const auto& device : input.container.devices) {
    edits.device_nodes.push_back({.path = device.container_path,
                                  .host_path = device.host_path,
                                  .permissions = device.permissions});
  }
  // The same words, and the same way to fill in what is not given, as for CDI devices.
  return cdi::apply(edits, config, nodes);
}

bool shares_mounts(const ContainerConfig& container, Propagation propagation) {
  return std::any_of(container.mounts.begin(), container.mounts.end(),
                     [&](const Mount& one) { return one.propagation == propagation; });
}

/// A profile in another form than the runtime's own would lose its conditions.
Result<Value> read_profile(const std::string& text) {
  DIBS_TRY(Value profile, json::parse(text));
  if (!profile.is_object()) return Error::invalid("it is no object");
  bool conditional = profile.contains("archMap");
  for (const auto& rule : profile["syscalls"].items()) {
    conditional = conditional || !rule["includes"].empty() || !rule["excludes"].empty();
  }
  if (conditional) {
    return Error::invalid(
        "archMap, includes and excludes are no part of an OCI profile; write out what they mean");
  }
  return profile;
}

Result<Value> seccomp_of(const OciConfigInput& input, const std::set<std::string>& held) {
  const ContainerSecurity& security = input.container.security;
  if (security.privileged || security.seccomp.empty() || security.seccomp == "Unconfined") {
    return Value();
  }
  if (security.seccomp == "RuntimeDefault") return default_seccomp(held, input.machine);
  auto profile = read_profile(input.seccomp_profile);
  if (!profile.ok()) {
    return profile.error().within(cat("cannot load seccomp profile ", quoted(security.seccomp)));
  }
  return profile;
}

}  // namespace

Result<Value> build_oci_config(const OciConfigInput& input, const cdi::HostNodes& nodes) {
  const ContainerSecurity& security = input.container.security;
  const Value& image = input.image["config"];
  DIBS_TRY(const auto words, arguments(input.container, image));
  std::string directory = input.container.working_dir;
  if (directory.empty()) directory = image["WorkingDir"].str();
  if (directory.empty()) directory = "/";

  Value groups = Value::array();
  for (const auto group : input.user.groups) groups.push(group);
  Value process = Value::object({{"terminal", input.container.tty}});
  process.set("user",
              Value::object(
                  {{"uid", input.user.uid}, {"gid", input.user.gid}, {"additionalGids", groups}}));
  process.set("args", texts(words));
  process.set("env", texts(environment(input)));
  process.set("cwd", directory);
  DIBS_CHECK(check_capabilities(security));
  const std::set<std::string> held = capabilities(input);
  process.set("capabilities", capability_sets(held));
  process.set("noNewPrivileges", security.no_new_privileges);
  if (input.container.limits.oom_score_adj != 0) {
    process.set("oomScoreAdj", input.container.limits.oom_score_adj);
  }

  Value linux_part = Value::object({{"namespaces", namespaces(input)},
                                    {"resources", resources(input)},
                                    {"cgroupsPath", input.cgroup}});
  if (!security.privileged) {
    Value masked = texts(kMasked);
    for (const auto& path : input.masked) masked.push(path);
    linux_part.set("maskedPaths", std::move(masked));
    linux_part.set("readonlyPaths", texts(kReadOnly));
  }
  if (shares_mounts(input.container, Propagation::bidirectional)) {
    linux_part.set("rootfsPropagation", "rshared");
  } else if (shares_mounts(input.container, Propagation::host_to_container)) {
    linux_part.set("rootfsPropagation", "rslave");
  }
  DIBS_TRY(Value seccomp, seccomp_of(input, held));
  if (!seccomp.is_null()) linux_part.set("seccomp", std::move(seccomp));

  Value config = Value::object({{"ociVersion", "1.0.2"}});
  config.set("process", std::move(process));
  config.set("root", Value::object({{"path", input.root}, {"readonly", security.read_only_root}}));
  config.set("mounts", mounts(input));
  config.set("linux", std::move(linux_part));
  DIBS_CHECK(add_devices(input, nodes, config));
  return config;
}

void finish_oci_config(Value& config, const std::string& home, const HostPaths& host_path) {
  const std::vector<std::string> env = strings(config["process"]["env"]);
  if (std::none_of(env.begin(), env.end(),
                   [](const auto& entry) { return entry.starts_with("HOME="); })) {
    config.mut("process").mut("env").push(cat("HOME=", home.empty() ? "/" : home));
  }
  if (!host_path) return;
  const auto place = [&](Value& list, std::string_view field) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string path = list[i][field].str();
      if (std::string found = host_path(path); found != path) list.mut(i).set(field, found);
    }
  };
  place(config.mut("mounts"), "source");
  if (!config.contains("hooks")) return;
  std::vector<std::string> moments;
  for (const auto& [moment, hooks] : config["hooks"].members()) moments.emplace_back(moment);
  for (const auto& moment : moments) place(config.mut("hooks").mut(moment), "path");
}

Value build_pause_config(const std::string& root, const std::string& cgroup) {
  Value process = Value::object({{"terminal", false}, {"cwd", "/"}});
  process.set("user", Value::object({{"uid", 0}, {"gid", 0}}));
  process.set("args", Value::array({"/pause"}));
  process.set("env", Value::array({"PATH=/bin"}));
  process.set("capabilities", capability_sets({}));
  process.set("noNewPrivileges", true);
  Value spaces = Value::array();
  for (const char* type : {"mount", "pid", "ipc", "network", "uts"}) {
    spaces.push(Value::object({{"type", type}}));
  }
  Value linux_part = Value::object({{"namespaces", std::move(spaces)}, {"cgroupsPath", cgroup}});
  linux_part.set("maskedPaths", texts(kMasked));
  linux_part.set("readonlyPaths", texts(kReadOnly));
  return Value::object(
      {{"ociVersion", "1.0.2"},
       {"process", std::move(process)},
       {"root", Value::object({{"path", root}, {"readonly", true}})},
       {"mounts", Value::array({mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
                                mount("/dev", "tmpfs", "tmpfs",
                                      {"nosuid", "noexec", "mode=755", "size=64k"})})},
       {"linux", std::move(linux_part)}});
}

Value build_exec_process(const Value& config, const std::vector<std::string>& command, bool tty) {
  Value process = config["process"];
  process.set("args", texts(command));
  process.set("terminal", tty);
  if (tty) {
    std::vector<std::string> env = strings(process["env"]);
    if (std::none_of(env.begin(), env.end(),
                     [](const auto& entry) { return entry.starts_with("TERM="); })) {
      process.mut("env").push("TERM=xterm");
    }
  }
  return process;
}

int signal_number(std::string_view name) {
  int number = 0;
  if (std::from_chars(name.data(), name.data() + name.size(), number).ptr ==
          name.data() + name.size() &&
      !name.empty()) {
    return number > 0 && number < NSIG ? number : 0;
  }
  std::string bare = to_upper(name);
  if (bare.starts_with("SIG")) bare.erase(0, 3);
  if (bare.starts_with("RTMIN")) {
    const std::string_view plus = std::string_view(bare).substr(5);
    if (plus.empty()) return SIGRTMIN;
    if (plus[0] == '+' &&
        std::from_chars(plus.data() + 1, plus.data() + plus.size(), number).ec == std::errc()) {
      return SIGRTMIN + number <= SIGRTMAX ? SIGRTMIN + number : 0;
    }
    return 0;
  }
  for (int i = 1; i < NSIG; ++i) {
    const char* known = ::sigabbrev_np(i);
    if (known != nullptr && bare == known) return i;
  }
  return 0;
}

}  // namespace dibs::node
