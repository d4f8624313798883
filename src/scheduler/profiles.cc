#include "scheduler/profiles.h"

#include <array>

#include "base/strings.h"
#include "json/yaml.h"

namespace dibs::scheduler {
namespace {

struct Default {
  const char* name;
  bool filter;
  std::int64_t weight;  // 0: does not score
};

constexpr std::array<Default, 12> kDefaults = {{
    {"NodeUnschedulable", true, 0},
    {"NodeName", true, 0},
    {"TaintToleration", true, 3},
    {"NodeAffinity", true, 2},
    {"NodePorts", true, 0},
    {"NodeResourcesFit", true, 1},
    {"PodTopologySpread", true, 2},
    {"InterPodAffinity", true, 2},
    {"DynamicResources", true, 2},
    {"NodeResourcesBalancedAllocation", false, 1},
    {"ImageLocality", false, 1},
    {"DefaultPreemption", false, 0},
}};

const Default* find_default(std::string_view name) {
  for (const Default& known : kDefaults) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

void turn_on(Profile& profile, std::string_view name, std::int64_t weight, bool filter,
             bool score) {
  const Default* known = find_default(name);
  if (known == nullptr) return;
  if (filter && known->filter) profile.filters.insert(std::string(name));
  if (score && known->weight > 0) {
    profile.scores[std::string(name)] = weight > 0 ? weight : known->weight;
  }
  if (name == "DefaultPreemption") profile.preemption = true;
}

void turn_off(Profile& profile, std::string_view name, bool filter, bool score, bool rest) {
  if (name == "*") {
    if (filter) profile.filters.clear();
    if (score) profile.scores.clear();
    if (rest) profile.preemption = false;
    return;
  }
  if (filter) profile.filters.erase(std::string(name));
  if (score) profile.scores.erase(std::string(name));
  if (rest && name == "DefaultPreemption") profile.preemption = false;
}

Result<Duration> read_duration(const json::Value& value, std::string_view field) {
  auto read = parse_duration(value.as_string());
  if (!read.ok()) return read.error().within(field);
  return *read;
}

Result<Profile> read_profile(const json::Value& source) {
  Profile made = Profile::standard();
  if (source["schedulerName"].is_string()) made.name = source["schedulerName"].str();
  struct Point {
    const char* name;
    bool filter;
    bool score;
    bool rest;
  };
  constexpr std::array<Point, 4> kPoints = {{
      {"multiPoint", true, true, true},
      {"filter", true, false, false},
      {"score", false, true, false},
      {"postFilter", false, false, true},
  }};
  for (const Point& point : kPoints) {
    const json::Value& set = source["plugins"][point.name];
    for (const json::Value& plugin : set["disabled"].items()) {
      turn_off(made, plugin["name"].as_string(), point.filter, point.score, point.rest);
    }
    for (const json::Value& plugin : set["enabled"].items()) {
      turn_on(made, plugin["name"].as_string(), plugin["weight"].as_int(), point.filter,
              point.score);
    }
  }
  made.devices = made.filters.contains("DynamicResources");
  for (const json::Value& config : source["pluginConfig"].items()) {
    if (config["name"].as_string() != "DynamicResources") continue;
    const json::Value& timeout = config["args"]["bindingTimeout"];
    if (!timeout.is_string()) continue;
    DIBS_TRY(made.binding_timeout, read_duration(timeout, "pluginConfig.args.bindingTimeout"));
    if (made.binding_timeout < std::chrono::seconds(1)) {
      return Error::bad_request("pluginConfig.args.bindingTimeout: must be at least 1s");
    }
  }
  return made;
}

}  // namespace

Profile Profile::standard() {
  Profile made;
  for (const Default& known : kDefaults) turn_on(made, known.name, 0, true, true);
  return made;
}

std::int64_t Profile::weight(std::string_view plugin) const {
  const auto found = scores.find(plugin);
  return found != scores.end() ? found->second : 0;
}

Result<Configuration> Configuration::parse(std::string_view text) {
  DIBS_TRY(json::Value source, json::parse_yaml(text));
  if (source["kind"].as_string() != "KubeSchedulerConfiguration" ||
      source["apiVersion"].as_string() != "kubescheduler.config.k8s.io/v1") {
    return Error::bad_request(
        "must be a KubeSchedulerConfiguration of kubescheduler.config.k8s.io/v1");
  }
  Configuration made;
  if (!source["profiles"].empty()) {
    made.profiles.clear();
    std::set<std::string> names;
    for (const json::Value& item : source["profiles"].items()) {
      DIBS_TRY(Profile profile, read_profile(item));
      if (!names.insert(profile.name).second) {
        return Error::bad_request(cat("profiles: two are named ", quoted(profile.name)));
      }
      made.profiles.push_back(std::move(profile));
    }
  }
  if (source["podInitialBackoffSeconds"].is_integer()) {
    made.initial_backoff = std::chrono::seconds(source["podInitialBackoffSeconds"].as_int());
  }
  if (source["podMaxBackoffSeconds"].is_integer()) {
    made.longest_backoff = std::chrono::seconds(source["podMaxBackoffSeconds"].as_int());
  }
  const json::Value& election = source["leaderElection"];
  made.leader_elect = election["leaderElect"].as_bool(true);
  if (election["resourceName"].is_string()) made.lease_name = election["resourceName"].str();
  if (election["resourceNamespace"].is_string()) {
    made.lease_namespace = election["resourceNamespace"].str();
  }
  return made;
}

}  // namespace dibs::scheduler
