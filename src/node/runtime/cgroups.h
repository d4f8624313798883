#pragma once
// Control groups of this machine: one hierarchy with all controllers (v2), or one for each (v1).
//
// A group is named by its path below every hierarchy, "/dibs/1a2b3c4d/kubepods/burstable/pod<uid>".
// Nothing is remembered here: the kernel is asked and told, so calls may come from any thread and
// be repeated. `root` is where the hierarchies are mounted; tests hand in a folder of files.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

class Cgroups {
 public:
  explicit Cgroups(std::string root = "/sys/fs/cgroup");

  /// One hierarchy: v2.
  bool unified() const { return unified_; }

  /// With all groups above it; one that is there already is fine.
  Result<> make(const std::string& group) const;
  /// All of `limits`, where 0 is none, but for shares: there it leaves them. What a controller
  /// that this machine lacks would have to limit is an error that names it. A limit of memory that
  /// is below what is in use already is refused, and changes nothing.
  Result<> limit(const std::string& group, const ContainerLimits& limits) const;
  /// With those below it; an error where something runs in one of them.
  Result<> remove(const std::string& group) const;
  /// Ends all that runs in it and below, and removes it with those below.
  Result<> kill_and_remove(const std::string& group) const;

  /// It alone, where nothing is in it or below.
  void remove_if_empty(const std::string& group) const;

  /// Names of the groups right below it.
  std::vector<std::string> children(const std::string& group) const;
  std::vector<std::string> processes(const std::string& group) const;
  /// Nothing where there is no such group.
  std::optional<Usage> usage(const std::string& group) const;

 private:
  /// The group's folder of the controller; of v1 each has its own.
  std::string folder(std::string_view controller, const std::string& group) const;
  std::string text(std::string_view controller, const std::string& group, const char* file) const;
  std::vector<std::string> hierarchies() const;
  void kill(const std::string& group) const;
  bool has(const std::string& controller, const std::string& group) const;
  Result<> limit_cpu(const std::string& group, const ContainerLimits& limits) const;
  Result<> limit_memory(const std::string& group, const ContainerLimits& limits) const;
  Result<> limit_pages(const std::string& group, const ContainerLimits& limits) const;
  /// Of huge pages, as the kernel names them.
  std::vector<std::string> page_sizes(const std::string& group) const;
  const char* pages_file() const { return unified_ ? ".max" : ".limit_in_bytes"; }
  void read_cpu(const std::string& group, Usage& usage) const;
  void read_memory(const std::string& group, Usage& usage) const;

  const std::string root_;
  const bool unified_;
};

/// From cpu.shares of v1 to cpu.weight of v2, as the kubelet does it.
std::int64_t cpu_weight(std::int64_t shares);

}  // namespace dibs::node
