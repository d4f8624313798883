#include "scheduler/profiles.h"

#include <algorithm>

#include "scheduler/configuration.h"
#include "scheduler/resources.h"
#include "scheduler/scores/score.h"

namespace dibs::scheduler {

ScoredResource ScoredResource::of(std::string_view name, std::int64_t weight) {
  const Kind kind = name == "cpu"                 ? Kind::cpu
                    : name == "memory"            ? Kind::memory
                    : name == "ephemeral-storage" ? Kind::storage
                                                  : Kind::scalar;
  return {kind, std::string(name), weight};
}

bool FitArgs::ignores(std::string_view resource) const {
  if (ignored.empty() && ignored_groups.empty()) return false;
  if (!is_extended_resource(resource)) return false;
  const auto among = [](const std::vector<std::string>& all, std::string_view name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  return among(ignored, resource) || among(ignored_groups, resource.substr(0, resource.find('/')));
}

Profile Profile::standard() {
  Profile made;
  api::FieldErrors found;
  (void)set_plugins(json::null_value(), api::Path(), made, found).ok();
  return made;
}

std::vector<SpreadConstraint> Profile::system_constraints() {
  SpreadConstraint host;
  host.max_skew = 3;
  host.topology_key = "kubernetes.io/hostname";
  host.required = false;
  SpreadConstraint zone = host;
  zone.max_skew = 5;
  zone.topology_key = "topology.kubernetes.io/zone";
  return {std::move(host), std::move(zone)};
}

bool Profile::spread_refuses() const {
  return std::any_of(spread.begin(), spread.end(),
                     [](const SpreadConstraint& one) { return one.required; });
}

std::int64_t Profile::weight(std::string_view score) const {
  for (const WeightedScore& one : scores) {
    if (one.score->name == score) return one.weight;
  }
  return 0;
}

}  // namespace dibs::scheduler
