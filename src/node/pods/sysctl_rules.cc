#include "node/pods/sysctl_rules.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "node/runtime/sysctl.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::size_t kMaxLength = 253;

struct Safe {
  std::string_view name;
  int kernel = 0;  // since which it is the namespace's
};
constexpr Safe kSafe[] = {
    {"kernel.shm_rmid_forced"},
    {"net.ipv4.ip_local_port_range"},
    {"net.ipv4.tcp_syncookies"},
    {"net.ipv4.ping_group_range"},
    {"net.ipv4.ip_unprivileged_port_start"},
    {"net.ipv4.ip_local_reserved_ports", 3'016},
    {"net.ipv4.tcp_keepalive_time", 4'005},
    {"net.ipv4.tcp_fin_timeout", 4'006},
    {"net.ipv4.tcp_keepalive_intvl", 4'005},
    {"net.ipv4.tcp_keepalive_probes", 4'005},
    {"net.ipv4.tcp_rmem", 4'015},
    {"net.ipv4.tcp_wmem", 4'015},
};

int number_at(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int kernel_number(std::string_view release) {
  const auto dot = release.find('.');
  const int minor = dot == std::string_view::npos ? 0 : number_at(release.substr(dot + 1));
  return number_at(release) * 1000 + minor;
}

bool is_word(std::string_view word) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !word.empty() && plain(word.front()) && plain(word.back()) &&
         std::all_of(word.begin(), word.end(),
                     [&](char c) { return plain(c) || c == '-' || c == '_' || c == '/'; });
}

/// A pattern: words between dots, the last of which may be cut off by a '*'.
bool is_pattern(std::string_view pattern) {
  if (pattern.empty() || pattern.size() > kMaxLength) return false;
  const bool open = pattern.ends_with('*');
  auto words = split(pattern, '.');
  if (open) {
    std::string_view last = words.back();
    last.remove_suffix(1);
    words.pop_back();
    // "kernel.shm_*" is well formed, a bare "*" says nothing.
    if (!last.empty() && !is_word(cat(last, '0'))) return false;
    if (last.empty() && words.empty()) return false;
  }
  return std::all_of(words.begin(), words.end(), is_word);
}

}  // namespace

Result<SysctlRules> SysctlRules::make(std::vector<std::string> allowed_unsafe,
                                      std::string_view kernel) {
  SysctlRules rules;
  rules.kernel_ = kernel_number(kernel);
  for (const auto& given : allowed_unsafe) {
    const std::string pattern = normalized_sysctl(given);
    if (!is_pattern(pattern)) {
      return Error::bad_request(cat("--allowed-unsafe-sysctls ", quoted(given),
                                    ": must be the name of a sysctl, or its beginning and a *"));
    }
    if (sysctl_space(pattern) == SysctlSpace::none) {
      return Error::bad_request(cat("--allowed-unsafe-sysctls: the sysctls ", quoted(given),
                                    " are not known to be namespaced (net.*, kernel.shm*, "
                                    "kernel.msg*, kernel.sem, fs.mqueue.*)"));
    }
    rules.patterns_.push_back(pattern);
  }
  return rules;
}

bool SysctlRules::allowed(std::string_view name) const {
  for (const Safe& safe : kSafe) {
    if (safe.name == name && kernel_ >= safe.kernel) return true;
  }
  return std::any_of(patterns_.begin(), patterns_.end(), [&](std::string_view pattern) {
    if (!pattern.ends_with('*')) return pattern == name;
    pattern.remove_suffix(1);
    return name.starts_with(pattern);
  });
}

std::optional<std::string> SysctlRules::forbidden(const Value& pod) const {
  const Value& spec = pod["spec"];
  for (const Value& sysctl : spec["securityContext"]["sysctls"].items()) {
    const std::string name = normalized_sysctl(sysctl["name"].as_string());
    const SysctlSpace space = sysctl_space(name);
    if (space == SysctlSpace::none || !allowed(name)) {
      return cat("forbidden sysctl: ", quoted(name), " not allowlisted");
    }
    const bool network = space == SysctlSpace::network;
    if (spec[network ? "hostNetwork" : "hostIPC"].as_bool()) {
      return cat("forbidden sysctl: ", quoted(name), " not allowed with host ",
                 network ? "net" : "ipc", " enabled");
    }
  }
  return std::nullopt;
}

}  // namespace dibs::node
