#pragma once
// The plugins of kube-scheduler by name, and the points of scheduling that each has a part in: what
// a profile can switch on and off.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace dibs::scheduler {

/// Those that can refuse a pod come first, in the order in which they judge a node.
enum class Plugin : std::uint8_t {
  node_unschedulable,
  node_name,
  taint_toleration,
  node_affinity,
  node_ports,
  resources_fit,
  volume_restrictions,
  node_volume_limits,
  volume_binding,
  volume_zone,
  topology_spread,
  inter_pod_affinity,
  node_declared_features,
  dynamic_resources,
  scheduling_gates,
  priority_sort,
  default_preemption,
  balanced_allocation,
  image_locality,
  default_binder,
  // Known, but not here.
  gang_scheduling,
  topology_placement_generator,
  pod_group_pods_count,
};
inline constexpr std::size_t kPlugins = 23;
using PluginSet = std::uint32_t;
constexpr PluginSet bit(Plugin plugin) { return 1U << static_cast<unsigned>(plugin); }

/// In the order in which kube-scheduler sets them up, and so tells what is wrong.
enum class Point : std::uint8_t {
  pre_filter,
  filter,
  post_filter,
  reserve,
  pre_score,
  score,
  pre_bind,
  bind,
  post_bind,
  permit,
  pre_enqueue,
  queue_sort,
  placement_generate,
  placement_score,
};
inline constexpr std::size_t kPoints = 14;
using PointSet = std::uint32_t;
constexpr PointSet bit(Point point) { return 1U << static_cast<unsigned>(point); }

struct PointInfo {
  const char* field;  // of a profile's plugins
  const char* type;   // in messages
};
const PointInfo& info(Point point);

struct PluginInfo {
  const char* name;
  PointSet points;
  bool here;      // false: switching it on changes nothing
  bool standard;  // on in a profile that does not name it
};
const PluginInfo& info(Plugin plugin);
/// The name in KubeSchedulerConfiguration and in messages.
inline const char* plugin_name(Plugin plugin) { return info(plugin).name; }
std::optional<Plugin> find_plugin(std::string_view name);

}  // namespace dibs::scheduler
