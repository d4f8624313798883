#include "node/runtime/sysctl.h"

#include "base/strings.h"

namespace dibs::node {
namespace {

std::string swapped(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '.' ? '/' : c == '/' ? '.' : c;
  return out;
}

/// "net/../kernel/core_pattern" begins like a setting of the network.
bool climbs(std::string_view name) {
  const std::string path = swapped(name);
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return true;
  }
  return false;
}

}  // namespace

std::string normalized_sysctl(std::string_view name) {
  const auto first = name.find_first_of("./");
  const bool slashed = first != std::string_view::npos && name[first] == '/';
  return slashed ? swapped(name) : std::string(name);
}

SysctlSpace sysctl_space(std::string_view name) {
  if (climbs(name)) return SysctlSpace::none;
  if (name.starts_with("net.")) return SysctlSpace::network;
  if (name == "kernel.sem") return SysctlSpace::ipc;
  for (const std::string_view prefix : {"kernel.shm", "kernel.msg", "fs.mqueue."}) {
    if (name.starts_with(prefix)) return SysctlSpace::ipc;
  }
  return SysctlSpace::none;
}

std::string sysctl_path(std::string_view name) { return swapped(name); }

}  // namespace dibs::node
