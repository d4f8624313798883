#include "node/streams/node_stats.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::uint64_t kNanosPerTick = 10'000'000;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
/// Two looks in quick succession tell nothing of a rate.
constexpr Duration kShortestSpan = std::chrono::milliseconds(100);

Value number(std::uint64_t value) { return Value(static_cast<std::int64_t>(value)); }

std::string seconds_text(std::uint64_t nanos) {
  std::ostringstream out;
  out.precision(9);
  out << std::fixed << static_cast<double>(nanos) / 1e9;
  return out.str();
}

std::map<std::string, std::uint64_t> read_table(const char* path) {
  std::map<std::string, std::uint64_t> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t value = 0;
    if (words >> key >> value) out[key] = value;
  }
  return out;
}

Value memory_of(const Usage& usage, Time now) {
  Value out = Value::object({{"time", format_rfc3339(now)}});
  if (usage.memory_limit > 0) {
    const std::uint64_t taken = std::min(usage.memory_working_set, usage.memory_limit);
    out.set("availableBytes", number(usage.memory_limit - taken));
  }
  out.set("usageBytes", number(usage.memory_bytes));
  out.set("workingSetBytes", number(usage.memory_working_set));
  out.set("rssBytes", number(usage.memory_rss));
  out.set("pageFaults", number(usage.page_faults));
  out.set("majorPageFaults", number(usage.major_page_faults));
  return out;
}

Value swap_of(const Usage& usage, Time now) {
  return Value::object(
      {{"time", format_rfc3339(now)}, {"swapUsageBytes", number(usage.swap_bytes)}});
}

Value interface_of(const InterfaceUsage& one) {
  return Value::object({{"name", one.name},
                        {"rxBytes", number(one.received_bytes)},
                        {"rxErrors", number(one.received_errors)},
                        {"txBytes", number(one.sent_bytes)},
                        {"txErrors", number(one.sent_errors)}});
}

/// The first stands for all, as with the kubelet's default interface.
Value network_of(const std::vector<InterfaceUsage>& interfaces, Time now) {
  Value out = Value::object({{"time", format_rfc3339(now)}});
  const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                  [](const InterfaceUsage& one) { return one.name == "eth0"; });
  const InterfaceUsage& first = found != interfaces.end() ? *found : interfaces.front();
  const Value shown = interface_of(first);
  for (const auto& [key, value] : shown.members()) out.set(key, value);
  Value list;
  for (const auto& one : interfaces) list.push(interface_of(one));
  out.set("interfaces", std::move(list));
  return out;
}

/// Lines of one family, under its help and type.
class Families {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    append(text_, "# HELP ", name, ' ', help, "\n# TYPE ", name, ' ', type, '\n');
    name_ = name;
  }
  void line(std::string_view labels, const std::string& value, Time at = {}) {
    append(text_, name_);
    if (!labels.empty()) append(text_, '{', labels, '}');
    append(text_, ' ', value);
    if (at.nanoseconds > 0) append(text_, ' ', at.nanoseconds / 1'000'000);
    text_ += '\n';
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::string name_;
};

std::string label(std::string_view name, std::string_view value) {
  std::string out = cat(name, "=\"");
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out += '"';
}

}  // namespace

struct NodeStats::Container {
  ContainerStatus status;
  Usage usage;
};

struct NodeStats::Pod {
  SandboxStatus sandbox;
  Value object;  // null: not known
  std::optional<Usage> usage;
  std::vector<InterfaceUsage> interfaces;
  std::vector<Container> containers;  // that run

  std::string labels() const {
    return cat(label("pod", sandbox.name), ',', label("namespace", sandbox.name_space));
  }
};

MachineUsage read_machine_usage() {
  MachineUsage out;
  std::ifstream stat("/proc/stat");
  std::string word;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0, steal = 0;
  stat >> word >> user >> nice >> system >> idle >> waiting >> irq >> soft >> steal;
  out.usage.cpu_user_nanos = (user + nice) * kNanosPerTick;
  out.usage.cpu_system_nanos = (system + irq + soft) * kNanosPerTick;
  out.usage.cpu_nanos =
      out.usage.cpu_user_nanos + out.usage.cpu_system_nanos + steal * kNanosPerTick;
  auto memory = read_table("/proc/meminfo");
  const auto kib = [&](const char* key) { return memory[key] * 1024; };
  out.memory_total = kib("MemTotal:");
  out.memory_available = kib("MemAvailable:");
  out.usage.memory_bytes = out.memory_total - kib("MemFree:");
  const std::uint64_t idle_files = kib("Inactive(file):");
  out.usage.memory_working_set =
      out.usage.memory_bytes > idle_files ? out.usage.memory_bytes - idle_files : 0;
  out.usage.memory_rss = kib("AnonPages:");
  out.usage.memory_cache = kib("Cached:");
  out.usage.swap_bytes = kib("SwapTotal:") - kib("SwapFree:");
  auto events = read_table("/proc/vmstat");
  out.usage.page_faults = events["pgfault"];
  out.usage.major_page_faults = events["pgmajfault"];
  std::ifstream load("/proc/loadavg");
  double ignored = 0;
  char slash = 0;
  std::uint64_t running = 0;
  load >> ignored >> ignored >> ignored >> running >> slash >> out.usage.processes;
  std::ifstream("/proc/sys/kernel/pid_max") >> out.most_processes;
  return out;
}

NodeStats::NodeStats(ContainerRuntime& containers, NodeStatsSources sources)
    : containers_(containers), sources_(std::move(sources)) {}

std::vector<NodeStats::Pod> NodeStats::look() {
  std::vector<Pod> out;
  const auto sandboxes = containers_.list_sandboxes();
  const auto all = containers_.list_containers();
  if (!sandboxes.ok() || !all.ok()) return out;
  std::map<std::string, Value> objects;
  if (sources_.pods) {
    for (auto& pod : sources_.pods()) objects[pod["metadata"]["uid"].str()] = pod;
  }
  std::set<std::string> ids = {""};
  for (const SandboxStatus& sandbox : *sandboxes) {
    if (sandbox.state != SandboxState::ready) continue;
    Pod pod{sandbox,
            objects[sandbox.uid],
            containers_.usage(sandbox.id),
            containers_.interfaces(sandbox.id),
            {}};
    ids.insert(sandbox.id);
    for (const ContainerStatus& one : *all) {
      if (one.sandbox_id != sandbox.id || one.state != ContainerState::running) continue;
      ids.insert(one.id);
      if (const auto usage = containers_.usage(one.id)) pod.containers.push_back({one, *usage});
    }
    out.push_back(std::move(pod));
  }
  std::sort(out.begin(), out.end(), [](const Pod& a, const Pod& b) {
    return std::tie(a.sandbox.name_space, a.sandbox.name) <
           std::tie(b.sandbox.name_space, b.sandbox.name);
  });
  const MutexLock lock(mutex_);
  std::erase_if(samples_, [&](const auto& entry) { return !ids.contains(entry.first); });
  return out;
}

Value NodeStats::cpu_of(const std::string& id, const Usage& usage, Time now) {
  Value out = Value::object({{"time", format_rfc3339(now)}});
  const MutexLock lock(mutex_);
  Sample& before = samples_[id];
  const Duration span = now - before.at;
  if (before.at.nanoseconds > 0 && span >= kShortestSpan && usage.cpu_nanos >= before.cpu_nanos) {
    const double grown = static_cast<double>(usage.cpu_nanos - before.cpu_nanos);
    out.set("usageNanoCores",
            static_cast<std::int64_t>(grown * static_cast<double>(kNanosPerSecond) /
                                      static_cast<double>(span.count())));
  }
  if (span >= kShortestSpan) before = {now, usage.cpu_nanos};
  out.set("usageCoreNanoSeconds", number(usage.cpu_nanos));
  return out;
}

Value NodeStats::disk_of(Time now) const {
  const auto disk = sources_.disk ? sources_.disk() : std::nullopt;
  if (!disk) return {};
  return Value::object({{"time", format_rfc3339(now)},
                        {"availableBytes", number(disk->available)},
                        {"capacityBytes", number(disk->capacity)},
                        {"usedBytes", number(disk->capacity - disk->available)},
                        {"inodesFree", number(disk->free_files)},
                        {"inodes", number(disk->files)},
                        {"inodesUsed", number(disk->files - disk->free_files)}});
}

Value NodeStats::pod_summary(const Pod& pod, Time now, bool few) {
  std::optional<PodStorage> storage;
  Value disk;
  if (!few && sources_.storage && !pod.object.is_null()) {
    storage = sources_.storage(pod.object);
    disk = disk_of(now);
  }
  const auto on_disk = [&](std::uint64_t bytes) {
    Value out = disk.is_null() ? Value::object({{"time", format_rfc3339(now)}}) : disk;
    out.set("usedBytes", number(bytes));
    out.erase("inodesUsed");
    return out;
  };
  Value list = Value::array();
  for (const Container& one : pod.containers) {
    Value entry = Value::object({{"name", one.status.name},
                                 {"startTime", format_rfc3339(one.status.started)},
                                 {"cpu", cpu_of(one.status.id, one.usage, now)},
                                 {"memory", memory_of(one.usage, now)}});
    if (storage) {
      for (const auto& stored : storage->containers) {
        if (stored.name != one.status.name) continue;
        entry.set("rootfs", on_disk(stored.written));
        entry.set("logs", on_disk(stored.logs));
      }
    }
    entry.set("swap", swap_of(one.usage, now));
    list.push(std::move(entry));
  }
  Value out = Value::object({{"podRef", Value::object({{"name", pod.sandbox.name},
                                                       {"namespace", pod.sandbox.name_space},
                                                       {"uid", pod.sandbox.uid}})},
                             {"startTime", format_rfc3339(pod.sandbox.created)},
                             {"containers", std::move(list)}});
  if (pod.usage) {
    out.set("cpu", cpu_of(pod.sandbox.id, *pod.usage, now));
    out.set("memory", memory_of(*pod.usage, now));
  }
  if (few) return out;
  if (!pod.interfaces.empty()) out.set("network", network_of(pod.interfaces, now));
  if (storage) out.set("ephemeral-storage", on_disk(storage->total));
  if (pod.usage) {
    out.set("process_stats", Value::object({{"process_count", number(pod.usage->processes)}}));
    out.set("swap", swap_of(*pod.usage, now));
  }
  return out;
}

Value NodeStats::summary(Time now, bool few) {
  const std::vector<Pod> pods = look();
  const MachineUsage machine = sources_.machine();
  Value memory = memory_of(machine.usage, now);
  memory.set("availableBytes", number(machine.memory_available));
  Value node = Value::object({{"nodeName", sources_.node_name},
                              {"startTime", format_rfc3339(sources_.started)},
                              {"cpu", cpu_of("", machine.usage, now)},
                              {"memory", std::move(memory)}});
  if (!few) {
    if (Value disk = disk_of(now); !disk.is_null()) {
      node.set("fs", disk);
      node.set("runtime", Value::object({{"imageFs", disk}}));
    }
    node.set("rlimit", Value::object({{"time", format_rfc3339(now)},
                                      {"maxpid", number(machine.most_processes)},
                                      {"curproc", number(machine.usage.processes)}}));
    node.set("swap", swap_of(machine.usage, now));
  }
  Value shown = Value::array();
  for (const Pod& pod : pods) shown.push(pod_summary(pod, now, few));
  return Value::object({{"node", std::move(node)}, {"pods", std::move(shown)}});
}

std::string NodeStats::resource_metrics(Time now) {
  const std::vector<Pod> pods = look();
  const MachineUsage machine = sources_.machine();
  Families out;
  const auto each = [&](const char* name, const char* type, const char* help, auto value) {
    out.family(name, type, help);
    for (const Pod& pod : pods) {
      for (const Container& one : pod.containers) {
        out.line(cat(label("container", one.status.name), ',', pod.labels()), value(one.usage),
                 now);
      }
    }
  };
  const auto each_pod = [&](const char* name, const char* type, const char* help, auto value) {
    out.family(name, type, help);
    for (const Pod& pod : pods) {
      if (pod.usage) out.line(pod.labels(), value(*pod.usage), now);
    }
  };
  const auto cpu = [](const Usage& usage) { return seconds_text(usage.cpu_nanos); };
  const auto memory = [](const Usage& usage) { return std::to_string(usage.memory_working_set); };
  const auto swap = [](const Usage& usage) { return std::to_string(usage.swap_bytes); };
  each("container_cpu_usage_seconds_total", "counter",
       "[STABLE] Cumulative cpu time consumed by the container in core-seconds", cpu);
  each("container_memory_working_set_bytes", "gauge",
       "[STABLE] Current working set of the container in bytes", memory);
  out.family("container_start_time_seconds", "gauge",
             "[STABLE] Start time of the container since unix epoch in seconds");
  for (const Pod& pod : pods) {
    for (const Container& one : pod.containers) {
      out.line(cat(label("container", one.status.name), ',', pod.labels()),
               seconds_text(static_cast<std::uint64_t>(one.status.started.nanoseconds)));
    }
  }
  each("container_swap_usage_bytes", "gauge",
       "[ALPHA] Current amount of the container swap usage in bytes. Reported only on non-windows "
       "systems",
       swap);
  out.family("node_cpu_usage_seconds_total", "counter",
             "[STABLE] Cumulative cpu time consumed by the node in core-seconds");
  out.line("", cpu(machine.usage), now);
  out.family("node_memory_working_set_bytes", "gauge",
             "[STABLE] Current working set of the node in bytes");
  out.line("", memory(machine.usage), now);
  out.family(
      "node_swap_usage_bytes", "gauge",
      "[ALPHA] Current swap usage of the node in bytes. Reported only on non-windows systems");
  out.line("", swap(machine.usage), now);
  each_pod("pod_cpu_usage_seconds_total", "counter",
           "[STABLE] Cumulative cpu time consumed by the pod in core-seconds", cpu);
  each_pod("pod_memory_working_set_bytes", "gauge",
           "[STABLE] Current working set of the pod in bytes", memory);
  each_pod("pod_swap_usage_bytes", "gauge",
           "[ALPHA] Current amount of the pod swap usage in bytes. Reported only on non-windows "
           "systems",
           swap);
  out.family("resource_scrape_error", "gauge",
             "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise");
  out.line("", "0");
  return out.take();
}

std::string NodeStats::cadvisor_metrics(Time now) {
  const std::vector<Pod> pods = look();
  const MachineUsage machine = sources_.machine();
  Families out;
  const auto labels_of = [](const Pod& pod, const Container* one) {
    const std::string group = cat("/kubepods/pod", pod.sandbox.uid);
    return cat(label("container", one ? one->status.name : ""), ',',
               label("id", one ? cat(group, '/', one->status.id) : group), ',',
               label("image", one ? one->status.image : ""), ',',
               label("name", one ? one->status.id : ""), ',',
               label("namespace", pod.sandbox.name_space), ',', label("pod", pod.sandbox.name));
  };
  const auto each = [&](const char* name, const char* type, const char* help,
                        const std::string& more, auto value) {
    out.family(name, type, help);
    for (const Pod& pod : pods) {
      if (pod.usage) out.line(cat(more, labels_of(pod, nullptr)), value(*pod.usage), now);
      for (const Container& one : pod.containers) {
        out.line(cat(more, labels_of(pod, &one)), value(one.usage), now);
      }
    }
  };
  const auto count = [&](const char* name, const char* type, const char* help,
                         std::uint64_t Usage::*field) {
    each(name, type, help, "",
         [field](const Usage& usage) { return std::to_string(usage.*field); });
  };
  const auto time = [&](const char* name, const char* help, std::uint64_t Usage::*field,
                        const std::string& more = "") {
    each(name, "counter", help, more,
         [field](const Usage& usage) { return seconds_text(usage.*field); });
  };
  count("container_cpu_cfs_periods_total", "counter",
        "Number of elapsed enforcement period intervals.", &Usage::cpu_periods);
  count("container_cpu_cfs_throttled_periods_total", "counter",
        "Number of throttled period intervals.", &Usage::cpu_throttled_periods);
  time("container_cpu_cfs_throttled_seconds_total",
       "Total time duration the container has been throttled.", &Usage::cpu_throttled_nanos);
  time("container_cpu_system_seconds_total", "Cumulative system cpu time consumed in seconds.",
       &Usage::cpu_system_nanos);
  time("container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.",
       &Usage::cpu_nanos, "cpu=\"total\",");
  time("container_cpu_user_seconds_total", "Cumulative user cpu time consumed in seconds.",
       &Usage::cpu_user_nanos);
  each("container_last_seen", "gauge", "Last time a container was seen by the exporter", "",
       [&](const Usage&) { return std::to_string(now.nanoseconds / kNanosPerSecond); });
  count("container_memory_cache", "gauge", "Number of bytes of page cache memory.",
        &Usage::memory_cache);
  for (const auto& [kind, field] :
       {std::pair{"pgfault", &Usage::page_faults}, {"pgmajfault", &Usage::major_page_faults}}) {
    if (field == &Usage::page_faults) {
      out.family("container_memory_failures_total", "counter",
                 "Cumulative count of memory allocation failures.");
    }
    for (const Pod& pod : pods) {
      for (const Container& one : pod.containers) {
        out.line(cat(label("failure_type", kind), ",scope=\"hierarchy\",", labels_of(pod, &one)),
                 std::to_string(one.usage.*field), now);
      }
    }
  }
  count("container_memory_mapped_file", "gauge", "Size of memory mapped files in bytes.",
        &Usage::memory_mapped);
  count("container_memory_rss", "gauge", "Size of RSS in bytes.", &Usage::memory_rss);
  count("container_memory_swap", "gauge", "Container swap usage in bytes.", &Usage::swap_bytes);
  count("container_memory_usage_bytes", "gauge",
        "Current memory usage in bytes, including all memory regardless of when it was accessed",
        &Usage::memory_bytes);
  count("container_memory_working_set_bytes", "gauge", "Current working set in bytes.",
        &Usage::memory_working_set);
  const auto network = [&](const char* name, const char* help,
                           std::uint64_t InterfaceUsage::*field) {
    out.family(name, "counter", help);
    for (const Pod& pod : pods) {
      for (const InterfaceUsage& one : pod.interfaces) {
        out.line(cat(label("interface", one.name), ',', labels_of(pod, nullptr)),
                 std::to_string(one.*field), now);
      }
    }
  };
  network("container_network_receive_bytes_total", "Cumulative count of bytes received",
          &InterfaceUsage::received_bytes);
  network("container_network_receive_errors_total",
          "Cumulative count of errors encountered while receiving",
          &InterfaceUsage::received_errors);
  network("container_network_receive_packets_dropped_total",
          "Cumulative count of packets dropped while receiving", &InterfaceUsage::received_dropped);
  network("container_network_receive_packets_total", "Cumulative count of packets received",
          &InterfaceUsage::received_packets);
  network("container_network_transmit_bytes_total", "Cumulative count of bytes transmitted",
          &InterfaceUsage::sent_bytes);
  network("container_network_transmit_errors_total",
          "Cumulative count of errors encountered while transmitting",
          &InterfaceUsage::sent_errors);
  network("container_network_transmit_packets_dropped_total",
          "Cumulative count of packets dropped while transmitting", &InterfaceUsage::sent_dropped);
  network("container_network_transmit_packets_total", "Cumulative count of packets transmitted",
          &InterfaceUsage::sent_packets);
  count("container_processes", "gauge", "Number of processes running inside the container.",
        &Usage::processes);
  out.family("container_scrape_error", "gauge",
             "1 if there was an error while getting container metrics, 0 otherwise");
  out.line("", "0");
  count("container_spec_memory_limit_bytes", "gauge", "Memory limit for the container.",
        &Usage::memory_limit);
  out.family("container_start_time_seconds", "gauge",
             "Start time of the container since unix epoch in seconds.");
  for (const Pod& pod : pods) {
    for (const Container& one : pod.containers) {
      out.line(labels_of(pod, &one),
               std::to_string(one.status.started.nanoseconds / kNanosPerSecond), now);
    }
  }
  out.family("machine_memory_bytes", "gauge", "Amount of memory installed on the machine.");
  out.line("", std::to_string(machine.memory_total));
  return out.take();
}

}  // namespace dibs::node
