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

/// A profile's own wins over that of all.
Result<> read_percentage(const json::Value& source, Profile& profile) {
  const json::Value& given = source["percentageOfNodesToScore"];
  if (given.is_null()) return success();
  if (!given.is_integer() || given.as_int() < 0 || given.as_int() > 100) {
    return Error::bad_request("percentageOfNodesToScore: not in valid range [0-100]");
  }
  profile.percentage_to_score = given.as_int();
  return success();
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

/// Of leaderElection.
Result<> read_duration(const json::Value& election, const char* field, Duration& duration) {
  if (!election[field].is_string()) return success();
  auto read = parse_duration(election[field].as_string());
  if (!read.ok() || *read <= Duration(0)) {
    return Error::bad_request(cat("leaderElection.", field,
                                  ": must be a duration such as 15s, not ",
                                  quoted(election[field].as_string())));
  }
  duration = *read;
  return success();
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
  DIBS_CHECK(read_percentage(source, made.profiles.front()));
  if (!source["profiles"].empty()) {
    made.profiles.clear();
    std::set<std::string> names;
    for (const json::Value& item : source["profiles"].items()) {
      DIBS_TRY(Profile profile, read_profile(item));
      DIBS_CHECK(read_percentage(source, profile));
      DIBS_CHECK(read_percentage(item, profile));
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
  DIBS_CHECK(read_duration(election, "leaseDuration", made.lease_duration));
  DIBS_CHECK(read_duration(election, "renewDeadline", made.renew_deadline));
  DIBS_CHECK(read_duration(election, "retryPeriod", made.retry_period));
  if (made.lease_duration <= made.renew_deadline) {
    return Error::bad_request("leaderElection.leaseDuration: must be longer than renewDeadline");
  }
  return made;
}

}  // namespace dibs::scheduler
