// Arguments of plugins: what they may be, and what they change in a profile.

#include <algorithm>
#include <array>
#include <set>

#include "base/names.h"
#include "base/strings.h"
#include "scheduler/configuration.h"
#include "scheduler/resources.h"

namespace dibs::scheduler {
namespace {

using api::FieldErrors;
using api::Path;
using json::Value;

std::string range_text(std::int64_t least, std::int64_t most) {
  return cat("not in valid range [", least, ", ", most, "]");
}

void read_preemption(const Value& args, const Path& path, Profile& profile, FieldErrors& found) {
  const Value& percentage = args["minCandidateNodesPercentage"];
  const Value& absolute = args["minCandidateNodesAbsolute"];
  if (percentage.is_null() && absolute.is_null()) return;
  profile.victims_percentage = percentage.as_int(10);
  profile.victims_absolute = absolute.as_int(100);
  const Path percentage_path = path.child("minCandidateNodesPercentage");
  const Path absolute_path = path.child("minCandidateNodesAbsolute");
  if (profile.victims_percentage < 0 || profile.victims_percentage > 100) {
    found.invalid(percentage_path, percentage, range_text(0, 100));
  }
  if (profile.victims_absolute < 0) {
    found.invalid(absolute_path, absolute, "not in valid range [0, inf)");
  }
  if (profile.victims_percentage == 0 && profile.victims_absolute == 0) {
    found.invalid(percentage_path, percentage,
                  "cannot be zero at the same time as minCandidateNodesAbsolute");
    found.invalid(absolute_path, absolute,
                  "cannot be zero at the same time as minCandidateNodesPercentage");
  }
}

void read_devices(const Value& args, const Path& path, Profile& profile, FieldErrors& found) {
  // Decoding has let only durations pass.
  const Value& filter = args["filterTimeout"];
  const Duration limit = parse_duration(filter.as_string("0s")).value();
  if (limit < Duration(0)) {
    found.invalid(path.child("filterTimeout"), filter, "must be zero or positive");
  } else if (limit > Duration(0)) {
    found.warn(cat(path.child("filterTimeout").str(),
                   " has no effect: the search for devices reads no clock"));
  }
  const Value& binding = args["bindingTimeout"];
  if (binding.is_null()) return;
  profile.binding_timeout = parse_duration(binding.as_string()).value();
  if (profile.binding_timeout < std::chrono::seconds(1)) {
    found.invalid(path.child("bindingTimeout"), binding, "must be at least 1 second");
  }
}

void read_shape(const Value& shape, const Path& path, std::vector<ShapePoint>& points,
                FieldErrors& found) {
  // A score is given from 0 to 10.
  constexpr std::int64_t kMostGiven = 10;
  if (shape.empty()) return found.required(path, "at least one point must be specified");
  points.clear();
  for (const Value& point : shape.items()) {
    points.push_back({point["utilization"].as_int(), point["score"].as_int() * 100 / kMostGiven});
  }
  for (std::size_t i = 1; i < shape.size(); ++i) {
    if (points[i - 1].use < points[i].use) continue;
    const Path at = path.index(i);
    found.invalid(at.child("utilization"), points[i].use,
                  "values must be sorted in increasing order");
    break;
  }
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Path at = path.index(i);
    const std::int64_t use = shape[i]["utilization"].as_int();
    const std::int64_t score = shape[i]["score"].as_int();
    if (use < 0 || use > 100) found.invalid(at.child("utilization"), use, range_text(0, 100));
    if (score < 0 || score > kMostGiven) {
      found.invalid(at.child("score"), score, range_text(0, kMostGiven));
    }
  }
}

void read_volumes(const Value& args, const Path& path, Profile& profile, FieldErrors& found) {
  const Value& timeout = args["bindTimeoutSeconds"];
  profile.volume_timeout = std::chrono::seconds(timeout.as_int(600));
  if (timeout.as_int() < 0) {
    found.invalid(path.child("bindTimeoutSeconds"), timeout,
                  "invalid BindTimeoutSeconds, should not be a negative value");
  }
  if (!args["shape"].empty())
    read_shape(args["shape"], path.child("shape"), profile.volume_shape, found);
}

void read_pod_affinity(const Value& args, const Path& path, Profile& profile, FieldErrors& found) {
  const Value& weight = args["hardPodAffinityWeight"];
  profile.hard_affinity_weight = weight.as_int(profile.hard_affinity_weight);
  if (profile.hard_affinity_weight < 0 || profile.hard_affinity_weight > 100) {
    found.invalid(path.child("hardPodAffinityWeight"), weight, range_text(0, 100));
  }
  profile.ignore_preferred_terms = args["ignorePreferredTermsOfExistingPods"].as_bool();
}

/// What cannot be read of it is told, in upstream's words as far as it is about an operator.
void check_selector(const alloc::NodeSelector& selector, const Path& path, FieldErrors& found) {
  if (!selector.error.empty()) found.invalid(path, selector.source, selector.error);
}

void read_node_affinity(const Value& args, const Path& path, Profile& profile, FieldErrors& found) {
  const Value& added = args["addedAffinity"];
  const Path at = path.child("addedAffinity");
  constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  if (added[kRequired].is_object()) {
    profile.added_affinity = alloc::NodeSelector::read(added[kRequired]);
    check_selector(*profile.added_affinity, at.child(kRequired), found);
  }
  profile.added_preferences = read_preferred_nodes(added[kPreferred]);
  const Path preferred = at.child(kPreferred);
  for (std::size_t i = 0; i < profile.added_preferences.size(); ++i) {
    check_selector(profile.added_preferences[i].selector, preferred.index(i), found);
  }
}

void read_constraint(const Value& source, const Path& path, FieldErrors& found) {
  if (source["maxSkew"].as_int() <= 0) {
    found.invalid(path.child("maxSkew"), source["maxSkew"].as_int(), "not in valid range (0, inf)");
  }
  const std::string key = source["topologyKey"].str();
  if (key.empty()) {
    found.required(path.child("topologyKey"), "can not be empty");
  } else {
    for (const std::string& fault : is_qualified_name(key)) {
      found.invalid(path.child("topologyKey"), key, fault);
    }
  }
  const std::string action = source["whenUnsatisfiable"].str();
  const Path action_path = path.child("whenUnsatisfiable");
  if (action.empty()) {
    found.required(action_path, "can not be empty");
  } else if (action != "DoNotSchedule" && action != "ScheduleAnyway") {
    found.not_supported(action_path, action, {"DoNotSchedule", "ScheduleAnyway"});
  }
  if (!source["labelSelector"].is_null()) {
    found.forbidden(path.child("labelSelector"),
                    "constraint must not define a selector, as they deduced for each pod");
  }
}

void read_constraints(const Value& list, const Path& path, Profile& profile, FieldErrors& found) {
  profile.system_spread = false;
  profile.spread.clear();
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path at = path.index(i);
    read_constraint(list[i], at, found);
    const std::string pair = cat("{", list[i]["topologyKey"].as_string(), ", ",
                                 list[i]["whenUnsatisfiable"].as_string(), "}");
    if (!seen.insert(pair).second) found.duplicate(at, pair);
    profile.spread.push_back(read_spread_constraint(list[i], json::null_value()));
  }
}

void read_spread(const Value& args, const Path& path, Profile& profile, FieldErrors& found) {
  const std::string type = args["defaultingType"].str();
  const Path type_path = path.child("defaultingType");
  const bool listed = !args["defaultConstraints"].empty();
  if (!type.empty() && type != "System" && type != "List") {
    found.not_supported(type_path, type, {"System", "List"});
  } else if (listed && type != "List") {
    found.invalid(type_path, "System", "when .defaultConstraints are not empty");
  } else if (type == "List") {
    read_constraints(args["defaultConstraints"], path.child("defaultConstraints"), profile, found);
  }
}

/// Of a list of names and weights; the default where it is empty.
void read_resources(const Value& list, const Path& path, std::vector<ScoredResource>& resources,
                    FieldErrors& found) {
  if (list.empty()) return;
  resources.clear();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string name = list[i]["name"].str();
    const std::int64_t weight = list[i]["weight"].as_int();
    resources.push_back(ScoredResource::of(name, weight == 0 ? 1 : weight));
    if (!is_extended_resource(name)) continue;
    const Path at = path.index(i);
    found.warn(cat(at.child("name").str(), ": ", name,
                   " counts where nodes have it, not where devices of a class stand for it"));
  }
}

void read_balanced(const Value& args, const Path& path, Profile& profile, FieldErrors& found) {
  const Path list = path.child("resources");
  read_resources(args["resources"], list, profile.balanced, found);
  std::set<std::string> seen;
  for (std::size_t i = 0; i < profile.balanced.size(); ++i) {
    const ScoredResource& resource = profile.balanced[i];
    const Path at = list.index(i);
    if (!seen.insert(resource.name).second) found.duplicate(at.child("name"), resource.name);
    if (resource.weight != 1) found.invalid(at.child("weight"), resource.weight, "must be 1");
  }
}

void read_strategy(const Value& strategy, const Path& path, FitArgs& fit, FieldErrors& found) {
  const std::vector<std::string> names = {"LeastAllocated", "MostAllocated",
                                          "RequestedToCapacityRatio"};
  const auto named = std::find(names.begin(), names.end(), strategy["type"].as_string());
  if (named == names.end()) {
    found.not_supported(path.child("type"), strategy["type"].str(), names);
  } else {
    fit.strategy = static_cast<FitArgs::Strategy>(named - names.begin());
  }
  const Path resources = path.child("resources");
  read_resources(strategy["resources"], resources, fit.resources, found);
  for (std::size_t i = 0; i < fit.resources.size(); ++i) {
    const ScoredResource& resource = fit.resources[i];
    if (resource.weight > 0 && resource.weight <= 100) continue;
    const Path at = resources.index(i);
    found.invalid(at.child("weight"), resource.weight,
                  cat("resource weight of ", resource.name, " not in valid range (0, 100]"));
  }
  const Value& ratio = strategy["requestedToCapacityRatio"];
  const Path ratio_path = path.child("requestedToCapacityRatio");
  const bool drawn = fit.strategy == FitArgs::Strategy::requested_to_capacity;
  if (drawn && ratio.is_null()) {
    found.required(ratio_path, "must be specified when type is RequestedToCapacityRatio");
  } else if (drawn) {
    read_shape(ratio["shape"], ratio_path.child("shape"), fit.shape, found);
  } else if (!ratio.is_null()) {
    found.forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio");
  }
}

void read_fit(const Value& args, const Path& path, Profile& profile, FieldErrors& found) {
  const Path ignored = path.child("ignoredResources");
  for (const Value& name : args["ignoredResources"].items()) {
    for (const std::string& fault : is_qualified_name(name.as_string())) {
      found.invalid(ignored.index(profile.fit.ignored.size()), name, fault);
    }
    profile.fit.ignored.push_back(name.str());
  }
  const Path groups = path.child("ignoredResourceGroups");
  for (const Value& name : args["ignoredResourceGroups"].items()) {
    if (name.as_string().find('/') != std::string_view::npos) {
      found.invalid(groups.index(profile.fit.ignored_groups.size()), name,
                    "resource group name can't contain '/'");
    }
    profile.fit.ignored_groups.push_back(name.str());
  }
  if (args["scoringStrategy"].is_null()) return;
  read_strategy(args["scoringStrategy"], path.child("scoringStrategy"), profile.fit, found);
}

struct ArgsReader {
  Plugin plugin;
  void (*read)(const Value& args, const Path& path, Profile& profile, FieldErrors& found);
};
constexpr std::array kReaders = {
    ArgsReader{Plugin::default_preemption, read_preemption},
    ArgsReader{Plugin::dynamic_resources, read_devices},
    ArgsReader{Plugin::volume_binding, read_volumes},
    ArgsReader{Plugin::inter_pod_affinity, read_pod_affinity},
    ArgsReader{Plugin::node_affinity, read_node_affinity},
    ArgsReader{Plugin::topology_spread, read_spread},
    ArgsReader{Plugin::balanced_allocation, read_balanced},
    ArgsReader{Plugin::resources_fit, read_fit},
};

/// What may be said only where features are on.
struct GatedArg {
  Plugin plugin;
  const char* field;
  std::array<const char*, 2> gates;
  const char* refusal;  // in upstream's words, which once misname the gate
  bool shows_value = false;
};
constexpr std::array kGated = {
    GatedArg{Plugin::dynamic_resources,
             "filterTimeout",
             {"DRASchedulerFilterTimeout", nullptr},
             "DRASchedulingFilterTimeout feature gate is disabled"},
    GatedArg{Plugin::dynamic_resources,
             "bindingTimeout",
             {"DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"},
             "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"},
    GatedArg{Plugin::volume_binding,
             "shape",
             {"StorageCapacityScoring", nullptr},
             "unexpected field `shape`, remove it or turn on the feature gate "
             "StorageCapacityScoring",
             true},
};

bool are_forbidden(Plugin plugin, const Value& args, const Path& path, const api::Features& gates,
                   FieldErrors& found) {
  bool any = false;
  for (const GatedArg& one : kGated) {
    if (one.plugin != plugin || args[one.field].is_null()) continue;
    const bool on = std::all_of(one.gates.begin(), one.gates.end(), [&](const char* gate) {
      return gate == nullptr || gates.on(gate);
    });
    if (on) continue;
    any = true;
    if (one.shows_value) {
      found.invalid(path.child(one.field), args[one.field], one.refusal);
    } else {
      found.forbidden(path.child(one.field), one.refusal);
    }
  }
  return any;
}

}  // namespace

bool is_removed_plugin(const Value& name, const Path& path, FieldErrors& found) {
  constexpr std::array<std::string_view, 4> kRemoved = {"AzureDiskLimits", "CinderLimits",
                                                        "EBSLimits", "GCEPDLimits"};
  if (std::find(kRemoved.begin(), kRemoved.end(), name.as_string()) == kRemoved.end()) return false;
  found.invalid(path, name,
                "was invalid in version \"v1\" (KubeSchedulerConfiguration is version "
                "\"kubescheduler.config.k8s.io/v1\")");
  return true;
}

void set_plugin_args(const Value& plugin_config, const Path& path, const api::Features& gates,
                     Profile& profile, FieldErrors& found) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < plugin_config.size(); ++i) {
    const Value& name = plugin_config[i]["name"];
    const Value& args = plugin_config[i]["args"];
    const Path at = path.index(i);
    const Path args_path = at.child("args");
    if (!seen.insert(name.str()).second) found.duplicate(at, name);
    if (is_removed_plugin(name, at, found)) continue;
    const auto plugin = find_plugin(name.as_string());
    if (!plugin) {
      found.invalid(at, name, "plugin does not exist");
    } else if (!info(*plugin).here) {
      found.warn(cat(at.str(), " has no effect: ", name.as_string(), " is not implemented"));
    } else if (!are_forbidden(*plugin, args, args_path, gates, found)) {
      const auto reader =
          std::find_if(kReaders.begin(), kReaders.end(),
                       [&](const ArgsReader& one) { return one.plugin == *plugin; });
      if (reader != kReaders.end()) {
        reader->read(args, args_path, profile, found);
      } else if (!args.empty()) {
        found.forbidden(args_path, cat("plugin ", name.as_string(), " takes no arguments"));
      }
    }
  }
}

}  // namespace dibs::scheduler
