#pragma once
// Kernel settings that a pod may have of its own: those that belong to one of its namespaces.
//
// Whoever writes a setting asks here first which namespace it is in; one that is in none is the
// whole machine's.

#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::node {

enum class SysctlSpace : std::uint8_t { none, network, ipc };

/// With dots between its parts: "net/ipv4/tcp_syncookies" and "net.ipv4.tcp_syncookies" are one. A
/// name that is written with slashes has dots inside of its parts, which become slashes.
std::string normalized_sysctl(std::string_view name);
/// Of a normalized name, or of a pattern that ends in '*'.
SysctlSpace sysctl_space(std::string_view name);
/// Below /proc/sys, of a normalized name.
std::string sysctl_path(std::string_view name);

}  // namespace dibs::node
