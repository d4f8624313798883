#include "scheduler/plugins.h"

namespace dibs::scheduler {
namespace {

constexpr std::array<PointInfo, kPoints> kPointTable = {{
    {"preFilter", "PreFilterPlugin"},
    {"filter", "FilterPlugin"},
    {"postFilter", "PostFilterPlugin"},
    {"reserve", "ReservePlugin"},
    {"preScore", "PreScorePlugin"},
    {"score", "ScorePlugin"},
    {"preBind", "PreBindPlugin"},
    {"bind", "BindPlugin"},
    {"postBind", "PostBindPlugin"},
    {"permit", "PermitPlugin"},
    {"preEnqueue", "PreEnqueuePlugin"},
    {"queueSort", "QueueSortPlugin"},
    {"placementGenerate", "PlacementGeneratePlugin"},
    {"placementScore", "PlacementScorePlugin"},
}};

constexpr PointSet kFilter = bit(Point::filter);
constexpr PointSet kFilters = bit(Point::pre_filter) | kFilter;
constexpr PointSet kScores = bit(Point::pre_score) | bit(Point::score);
constexpr PointSet kDevices = kFilters | bit(Point::pre_enqueue) | bit(Point::post_filter) |
                              bit(Point::score) | bit(Point::reserve) | bit(Point::pre_bind);

constexpr std::array<PluginInfo, kPlugins> kTable = {{
    {"NodeUnschedulable", kFilter, true, true},
    {"NodeName", kFilter, true, true},
    {"TaintToleration", kFilter | kScores, true, true},
    {"NodeAffinity", kFilters | kScores, true, true},
    {"NodePorts", kFilters, true, true},
    {"NodeResourcesFit", kFilters | kScores | bit(Point::placement_score), true, true},
    {"VolumeRestrictions", kFilters, true, true},
    {"NodeVolumeLimits", kFilters, true, true},
    {"VolumeBinding", kFilters | kScores | bit(Point::reserve) | bit(Point::pre_bind), true, true},
    {"VolumeZone", kFilters, true, true},
    {"PodTopologySpread", kFilters | kScores, true, true},
    {"InterPodAffinity", kFilters | kScores, true, true},
    {"NodeDeclaredFeatures", kFilters, true, true},
    {"DynamicResources", kDevices, true, true},
    {"SchedulingGates", bit(Point::pre_enqueue), true, true},
    {"PrioritySort", bit(Point::queue_sort), true, true},
    {"DefaultPreemption", bit(Point::post_filter) | bit(Point::pre_enqueue), true, true},
    {"NodeResourcesBalancedAllocation", kScores, true, true},
    {"ImageLocality", bit(Point::score), true, true},
    {"DefaultBinder", bit(Point::bind), true, true},
    {"GangScheduling", bit(Point::pre_enqueue) | bit(Point::permit), false, false},
    {"TopologyPlacementGenerator", bit(Point::placement_generate), false, false},
    {"PodGroupPodsCount", bit(Point::placement_score), false, false},
}};

}  // namespace

const PointInfo& info(Point point) { return kPointTable[static_cast<std::size_t>(point)]; }

const PluginInfo& info(Plugin plugin) { return kTable[static_cast<std::size_t>(plugin)]; }

std::optional<Plugin> find_plugin(std::string_view name) {
  for (std::size_t i = 0; i < kPlugins; ++i) {
    if (kTable[i].name == name) return static_cast<Plugin>(i);
  }
  return std::nullopt;
}

}  // namespace dibs::scheduler
