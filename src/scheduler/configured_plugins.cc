// Which plugins a profile has: the default ones, changed as kube-scheduler changes them.
//
// `multiPoint` switches a plugin at all its points; a list for one point wins there over
// multiPoint, and what is enabled wins over what is disabled.

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "scheduler/configuration.h"
#include "scheduler/scores/scores.h"

namespace dibs::scheduler {
namespace {

using api::FieldErrors;
using api::Path;
using json::Value;

struct Enabled {
  std::string name;
  std::int64_t weight = 0;  // 0: not given
};

/// A list of a profile.
struct Switches {
  std::vector<Enabled> on;
  std::set<std::string, std::less<>> off;  // "*": all

  bool names(std::string_view plugin) const {
    return std::any_of(on.begin(), on.end(),
                       [&](const Enabled& one) { return one.name == plugin; });
  }
};

Error refusal(std::string text) { return Error::bad_request(std::move(text)); }

Switches read_switches(const Value& source, const Path& path, FieldErrors& found) {
  Switches made;
  const Path enabled = path.child("enabled");
  for (std::size_t i = 0; i < source["enabled"].size(); ++i) {
    const Value& one = source["enabled"][i];
    made.on.push_back({one["name"].str(), one["weight"].as_int()});
    const auto plugin = find_plugin(made.on.back().name);
    if (!plugin) continue;
    if (!info(*plugin).here) {
      found.warn(cat(enabled.index(i).str(), " has no effect: ", made.on.back().name,
                     " is not implemented"));
    } else if (made.on.back().weight != 0 && find_score(made.on.back().name) == nullptr) {
      const Path at = enabled.index(i);
      found.warn(cat(at.child("weight").str(), " has no effect: ", made.on.back().name,
                     " does not score"));
    }
  }
  const Path disabled = path.child("disabled");
  for (std::size_t i = 0; i < source["disabled"].size(); ++i) {
    const std::string name = source["disabled"][i]["name"].str();
    made.off.insert(name);
    if (name == "*" || find_plugin(name)) continue;
    found.warn(
        cat(disabled.index(i).str(), " has no effect: plugin ", quoted(name), " does not exist"));
  }
  return made;
}

/// The default plugins, less those that are switched off, with those that are switched on.
std::vector<Enabled> merge_defaults(const Switches& custom) {
  std::vector<Enabled> made;
  std::set<std::size_t> used;  // of custom.on
  for (std::size_t i = 0; i < kPlugins && !custom.off.contains("*"); ++i) {
    const PluginInfo& plugin = info(static_cast<Plugin>(i));
    if (!plugin.standard || custom.off.contains(plugin.name)) continue;
    const Score* score = find_score(plugin.name);
    Enabled kept{plugin.name, score != nullptr ? score->weight : 0};
    // Of one named twice the last counts here, and the first is told to be double below.
    for (std::size_t j = custom.on.size(); j-- > 0;) {
      if (custom.on[j].name != plugin.name) continue;
      kept = custom.on[j];
      used.insert(j);
      break;
    }
    made.push_back(std::move(kept));
  }
  for (std::size_t j = 0; j < custom.on.size(); ++j) {
    if (!used.contains(j)) made.push_back(custom.on[j]);
  }
  return made;
}

/// Adds the plugin at the point. `whole`: it must have a part there.
Result<> enable(const Enabled& one, Point point, bool whole, PluginSet& on) {
  const char* type = info(point).type;
  const auto plugin = find_plugin(one.name);
  if (!plugin) return refusal(cat(type, " ", quoted(one.name), " does not exist"));
  if ((info(*plugin).points & bit(point)) == 0) {
    if (!whole) return success();
    return refusal(cat("plugin ", quoted(one.name), " does not extend ", type, " plugin"));
  }
  if ((on & bit(*plugin)) != 0) {
    return refusal(cat("plugin ", quoted(one.name), " already registered as ", quoted(type)));
  }
  on |= bit(*plugin);
  return success();
}

/// What is one part here, though upstream can take it apart (and then fails with every pod).
struct Bond {
  Point has;
  PointSet needs;
};
constexpr Bond kBonds[] = {
    {Point::filter,
     bit(Point::pre_filter) | bit(Point::pre_enqueue) | bit(Point::reserve) | bit(Point::pre_bind)},
    {Point::reserve, bit(Point::filter)},
    {Point::pre_bind, bit(Point::filter)},
    {Point::score, bit(Point::pre_score)},
    {Point::post_filter, bit(Point::pre_enqueue)},
};

Result<> check_bonds(const Profile& profile) {
  for (std::size_t i = 0; i < kPlugins; ++i) {
    const auto plugin = static_cast<Plugin>(i);
    if (!info(plugin).here) continue;
    for (const Bond& bond : kBonds) {
      if (!profile.has(bond.has, plugin)) continue;
      for (std::size_t j = 0; j < kPoints; ++j) {
        const auto point = static_cast<Point>(j);
        const PointSet needed = bond.needs & info(plugin).points;
        if ((needed & bit(point)) == 0 || profile.has(point, plugin)) continue;
        return refusal(cat("plugin ", quoted(info(plugin).name), " is enabled as ",
                           info(bond.has).type, " and so must be as ", info(point).type));
      }
    }
  }
  return success();
}

/// A list for scores wins over multiPoint; a plugin that is named without a weight has 1.
void set_scores(const Switches& scores, const std::vector<Enabled>& multi, Profile& profile) {
  std::vector<Enabled> all = scores.on;
  all.insert(all.end(), multi.begin(), multi.end());
  for (const Enabled& one : all) {
    const Score* score = find_score(one.name);
    if (score == nullptr || !profile.has(Point::score, *find_plugin(one.name))) continue;
    if (profile.weight(one.name) != 0) continue;
    profile.scores.push_back({score, one.weight != 0 ? one.weight : 1});
  }
}

}  // namespace

Result<> set_plugins(const Value& plugins, const Path& path, Profile& profile, FieldErrors& found) {
  const std::vector<Enabled> multi =
      merge_defaults(read_switches(plugins["multiPoint"], path.child("multiPoint"), found));
  std::array<Switches, kPoints> switches;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const auto point = static_cast<Point>(i);
    const char* field = info(point).field;
    switches[i] = read_switches(plugins[field], path.child(field), found);
    for (const Enabled& one : switches[i].on) {
      DIBS_CHECK(enable(one, point, true, profile.plugins[i]));
    }
  }
  for (std::size_t i = 0; i < kPoints; ++i) {
    if (switches[i].off.contains("*")) continue;
    const PluginSet named = profile.plugins[i];
    PluginSet expanded = 0;
    for (const Enabled& one : multi) {
      if (switches[i].off.contains(one.name) || switches[i].names(one.name)) continue;
      DIBS_CHECK(enable(one, static_cast<Point>(i), false, expanded));
    }
    profile.plugins[i] = named | expanded;
  }
  if (!profile.has(Point::queue_sort, Plugin::priority_sort)) {
    return refusal(cat("only one queue sort plugin required for profile with scheduler name ",
                       quoted(profile.name), ", but got 0"));
  }
  if (!profile.has(Point::bind, Plugin::default_binder)) {
    return refusal(cat("at least one bind plugin is needed for profile with scheduler name ",
                       quoted(profile.name)));
  }
  DIBS_CHECK(check_bonds(profile));
  set_scores(switches[static_cast<std::size_t>(Point::score)], multi, profile);
  return success();
}

}  // namespace dibs::scheduler
