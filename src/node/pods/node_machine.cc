#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/quantity.h"
#include "base/strings.h"
#include "node/pods/node_object.h"
#include "node/pods/node_status.h"
#include "node/pods/volume_files.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFile = 1 << 20;

std::string line_of(const char* path) {
  return std::string(trim(read_file(path, kMaxFile).value_or("")));
}

/// "MemTotal:  123 kB" in bytes.
std::int64_t memory_total() {
  const std::string text = read_file("/proc/meminfo", kMaxFile).value_or("");
  for (const auto line : split(text, '\n')) {
    if (line.starts_with("MemTotal:")) {
      return std::strtoll(std::string(trim(line.substr(9))).c_str(), nullptr, 10) * 1024;
    }
  }
  return 0;
}

std::string os_name() {
  const std::string text = read_file("/etc/os-release", kMaxFile).value_or("");
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    auto name = trim(line.substr(12));
    if (name.size() >= 2 && name.front() == '"') name = name.substr(1, name.size() - 2);
    return std::string(name);
  }
  return "Linux";
}

std::string go_architecture(std::string_view machine) {
  if (machine == "x86_64") return "amd64";
  if (machine == "aarch64") return "arm64";
  return std::string(machine);
}

std::map<std::string, std::int64_t> huge_pages() {
  std::map<std::string, std::int64_t> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/kernel/mm/hugepages", error)) {
    const std::string name = entry.path().filename().string();  // hugepages-2048kB
    if (!name.starts_with("hugepages-")) continue;
    const std::int64_t size = std::strtoll(name.c_str() + 10, nullptr, 10) * 1024;
    const std::int64_t count =
        std::strtoll(line_of((entry.path() / "nr_hugepages").c_str()).c_str(), nullptr, 10);
    const std::string unit = Quantity(size, 0, Quantity::Format::binary_si).canonical();
    out[cat("hugepages-", unit)] = size * count;
  }
  return out;
}

/// Lowering takes CAP_SYS_RESOURCE, which root lacks in many a container.
std::int64_t lowest_oom_score() {
  constexpr unsigned kSysResource = 24;
  const std::string text = read_file("/proc/self/status", kMaxFile).value_or("");
  for (const auto line : split(text, '\n')) {
    if (!line.starts_with("CapEff:")) continue;
    const auto bits = std::strtoull(std::string(trim(line.substr(7))).c_str(), nullptr, 16);
    if ((bits >> kSysResource & 1U) != 0) return -1000;
  }
  return std::strtoll(line_of("/proc/self/oom_score_adj").c_str(), nullptr, 10);
}

/// The interface of the route to everywhere.
std::string default_interface() {
  const std::string text = read_file("/proc/net/route", kMaxFile).value_or("");
  for (const auto line : split(text, '\n')) {
    const auto fields = split(line, '\t');
    if (fields.size() > 7 && fields[1] == "00000000" && fields[7] == "00000000") {
      return std::string(fields[0]);
    }
  }
  return {};
}

}  // namespace

std::string machine_address() {
  const std::string wanted = default_interface();
  std::string found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "127.0.0.1";
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & IFF_LOOPBACK) != 0 || (at->ifa_flags & IFF_UP) == 0) continue;
    char text[INET_ADDRSTRLEN] = "";
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    if (wanted == at->ifa_name) {
      found = text;
      break;
    }
  }
  ::freeifaddrs(list);
  // Without a route there is nobody to tell another address to.
  return found.empty() ? "127.0.0.1" : found;
}

Machine read_machine() {
  Machine out;
  utsname kernel{};
  ::uname(&kernel);
  out.machine_id = line_of("/etc/machine-id");
  out.system_uuid = to_lower(line_of("/sys/class/dmi/id/product_uuid"));
  if (out.system_uuid.empty()) out.system_uuid = out.machine_id;
  out.boot_id = line_of("/proc/sys/kernel/random/boot_id");
  out.kernel_version = kernel.release;
  out.os_image = os_name();
  out.architecture = go_architecture(kernel.machine);
  out.cpus = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  out.memory_bytes = memory_total();
  out.huge_pages = huge_pages();
  out.selinux = ::access("/sys/fs/selinux/enforce", F_OK) == 0;
  out.lowest_oom_score = lowest_oom_score();
  out.address = machine_address();
  return out;
}

void fill_amounts(NodeFacts& facts, const NodeOptions& options) {
  facts.selinux = options.machine.selinux;
  facts.lowest_oom_score = options.machine.lowest_oom_score;
  const json::Value capacity = node_capacity(options);
  if (auto cpu = Quantity::parse(capacity["cpu"].as_string())) {
    facts.allocatable_milli_cpu = cpu->milli_value();
  }
  if (auto memory = Quantity::parse(capacity["memory"].as_string())) {
    facts.memory_bytes = memory->value();
  }
}

}  // namespace dibs::node
