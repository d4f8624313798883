#include "scheduler/configuration.h"

#include <algorithm>
#include <array>
#include <map>

#include "api/schema/builtin.h"
#include "api/schema/decode.h"
#include "base/strings.h"
#include "json/yaml.h"

namespace dibs::scheduler {
namespace {

using api::FieldErrors;
using api::Path;
using json::Value;

constexpr const char* kVersion = "kubescheduler.config.k8s.io/v1";

const api::Schema* type_of(std::string_view name) {
  return api::builtin_type(cat("kubescheduler/v1.", name));
}

Error no_kind(const Value& source) {
  return Error::bad_request(cat("no kind ", quoted(source["kind"].as_string()),
                                " is registered for version ",
                                quoted(source["apiVersion"].as_string())));
}

/// Decodes the arguments of one plugin in place. `strict` gets what would be let pass elsewhere.
Result<> decode_args(Value& config, std::vector<std::string>& strict) {
  const std::string name = config["name"].str();
  const std::string kind = name + "Args";
  const api::Schema* type = type_of(kind);
  const Value args = config["args"];
  if (type == nullptr || args.is_null()) return success();
  const std::string decoding = cat("decoding args for plugin ", name);
  const std::string version = args["apiVersion"].str();
  if (!version.empty() && version != kVersion) return no_kind(args).within(decoding);
  if (args["kind"].is_string() && args["kind"].as_string() != kind) {
    constexpr const char* kGroup = ".kubescheduler.config.k8s.io";
    return Error::bad_request(cat("args for plugin ", name, " were not of type ", kind, kGroup,
                                  ", got ", args["kind"].as_string(), kGroup));
  }
  std::vector<std::string> unknown;
  auto made = api::decode(args, *type, api::Strictness::warn, unknown);
  if (!made.ok()) return made.error().within(decoding);
  if (!unknown.empty()) {
    strict.push_back(
        cat("strict decoding error: ", decoding, ": ", api::strict_error(unknown).message()));
  }
  config.set("args", std::move(*made));
  return success();
}

/// The file in normal form, with the arguments of plugins.
Result<Value> decode_file(std::string_view text) {
  std::vector<std::string> strict;
  std::vector<std::string> duplicates;
  DIBS_TRY(const Value source, json::parse_yaml(text, &duplicates));
  if (source["kind"].as_string() != "KubeSchedulerConfiguration" ||
      source["apiVersion"].as_string() != kVersion) {
    return no_kind(source).within(cat("must be a KubeSchedulerConfiguration of ", kVersion));
  }
  if (!duplicates.empty()) {
    strict.push_back(cat("yaml: unmarshal errors:\n  ", join(duplicates, "\n  ")));
  }
  DIBS_TRY(Value made, api::decode(source, *type_of("KubeSchedulerConfiguration"),
                                   api::Strictness::warn, strict));
  for (std::size_t i = 0; i < made["profiles"].size(); ++i) {
    for (std::size_t j = 0; j < made["profiles"][i]["pluginConfig"].size(); ++j) {
      const std::string place = cat("decoding .profiles[", i, "].pluginConfig[", j, "]");
      std::vector<std::string> unknown;
      auto decoded = decode_args(made.mut("profiles").mut(i).mut("pluginConfig").mut(j), unknown);
      if (!decoded.ok()) return decoded.error().within(place);
      for (const std::string& one : unknown) strict.push_back(cat(place, ": ", one));
    }
  }
  if (!strict.empty()) return api::strict_error(strict);
  return made;
}

/// "a", or "[a, b]", as upstream lists them.
Error to_error(const FieldErrors& found) {
  std::vector<std::string> all;
  for (const api::FieldError& one : found.errors()) all.push_back(cat(one.field, ": ", one.text));
  return Error::bad_request(all.size() == 1 ? all[0] : cat("[", join(all, ", "), "]"));
}

/// What is taken, but changes nothing here. A value that says how it is here anyway is not told.
void warn_of_no_effect(const Value& source, FieldErrors& found) {
  struct Ineffective {
    const char* field;
    const char* why;
    Value as_here = {};
  };
  const std::array kTop = {
      Ineffective{"parallelism", "one node is judged after the other"},
      Ineffective{"enableProfiling", "there is no profiling", false},
      Ineffective{"enableContentionProfiling", "there is no profiling", false},
      Ineffective{"delayCacheUntilActive", "caches are filled by the leader alone", true}};
  const std::array kConnection = {
      Ineffective{"acceptContentTypes", "the client speaks JSON"},
      Ineffective{"contentType", "the client speaks JSON", "application/json"},
      Ineffective{"qps", "requests are not limited by rate"},
      Ineffective{"burst", "requests are not limited by rate"}};
  const auto look = [&](const auto& table, const Value& in, const char* prefix) {
    for (const Ineffective& one : table) {
      const Value& given = in[one.field];
      if (given.is_null() || given == one.as_here) continue;
      found.warn(cat(prefix, one.field, " has no effect: ", one.why));
    }
  };
  look(kTop, source, "");
  look(kConnection, source["clientConnection"], "clientConnection.");
}

/// Zero means the default, as upstream has it.
void read_duration(const Value& election, const char* field, Duration& duration,
                   FieldErrors& found) {
  // Decoding has let only durations pass.
  const Duration given = parse_duration(election[field].as_string("0s")).value();
  if (given < Duration(0)) {
    found.invalid(Path("leaderElection").child(field), election[field],
                  "must be greater than zero");
  } else if (given > Duration(0)) {
    duration = given;
  }
}

void read_leader_election(const Value& election, Configuration& made, FieldErrors& found) {
  made.leader_elect = election["leaderElect"].as_bool(true);
  if (election["resourceName"].is_string()) made.election.name = election["resourceName"].str();
  if (election["resourceNamespace"].is_string()) {
    made.election.name_space = election["resourceNamespace"].str();
  }
  if (!made.leader_elect) return;
  const Path path("leaderElection");
  read_duration(election, "leaseDuration", made.election.lease_duration, found);
  read_duration(election, "renewDeadline", made.election.renew_deadline, found);
  read_duration(election, "retryPeriod", made.election.retry_period, found);
  if (made.election.lease_duration <= made.election.renew_deadline) {
    found.invalid(path.child("leaseDuration"), election["renewDeadline"].as_string("10s"),
                  "must be greater than `RenewDeadline`");
  }
  const Value& lock = election["resourceLock"];
  if (lock.as_string("leases") != "leases") {
    found.invalid(path.child("resourceLock"), lock, "resourceLock value must be \"leases\"");
  }
}

void read_percentage(const Value& source, const Path& path, std::int64_t& percentage,
                     FieldErrors& found) {
  const Value& given = source["percentageOfNodesToScore"];
  if (given.is_null()) return;
  percentage = given.as_int();
  if (percentage < 0 || percentage > 100) {
    found.invalid(path, given, "not in valid range [0-100]");
  }
}

void read_backoff(const Value& source, Configuration& made, FieldErrors& found) {
  const Value& initial = source["podInitialBackoffSeconds"];
  const Value& most = source["podMaxBackoffSeconds"];
  made.initial_backoff = std::chrono::seconds(initial.as_int(1));
  made.longest_backoff = std::chrono::seconds(most.as_int(10));
  if (initial.as_int(1) <= 0) {
    found.invalid(Path("podInitialBackoffSeconds"), initial, "must be greater than 0");
  }
  if (most.as_int(10) < initial.as_int(1)) {
    found.invalid(Path("podMaxBackoffSeconds"), most.as_int(10),
                  "must be greater than or equal to PodInitialBackoffSeconds");
  }
}

/// All that can be told about a profile before it is made.
Profile read_profile(const Value& source, bool only, const Path& path, const api::Features& gates,
                     FieldErrors& found) {
  Profile made;
  made.name = source["schedulerName"].str();
  if (only && source["schedulerName"].is_null()) made.name = "default-scheduler";
  if (made.name.empty()) found.required(path.child("schedulerName"));
  read_percentage(source, path.child("percentageOfNodesToScore"), made.percentage_to_score, found);
  const Path plugins = path.child("plugins");
  for (std::size_t i = 0; i < kPoints; ++i) {
    const char* point = info(static_cast<Point>(i)).field;
    const Path at_point = plugins.child(point);
    const Path enabled = at_point.child("enabled");
    const Value& list = source["plugins"][point]["enabled"];
    for (std::size_t j = 0; j < list.size(); ++j) {
      is_removed_plugin(list[j]["name"], enabled.index(j), found);
    }
  }
  set_plugin_args(source["pluginConfig"], path.child("pluginConfig"), gates, made, found);
  return made;
}

void read_profiles(const Value& source, const api::Features& gates, Configuration& made,
                   FieldErrors& found) {
  std::int64_t percentage = 0;
  read_percentage(source, Path("percentageOfNodesToScore"), percentage, found);
  const Path path("profiles");
  const Value none = Value::array({Value::object()});
  const Value& list = source["profiles"].empty() ? none : source["profiles"];
  made.profiles.clear();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Path at = path.index(i);
    Profile profile = read_profile(list[i], list.size() == 1, at, gates, found);
    if (list[i]["percentageOfNodesToScore"].is_null()) profile.percentage_to_score = percentage;
    const bool twice =
        std::any_of(made.profiles.begin(), made.profiles.end(),
                    [&](const Profile& other) { return other.name == profile.name; });
    if (twice) found.duplicate(at.child("schedulerName"), profile.name);
    made.profiles.push_back(std::move(profile));
  }
}

/// What kube-scheduler finds only when it makes the profiles.
Result<> make_profiles(const Value& source, Configuration& made, FieldErrors& found) {
  const Path path("profiles");
  for (std::size_t i = 0; i < made.profiles.size(); ++i) {
    Profile& profile = made.profiles[i];
    const Path at = path.index(i);
    auto set = set_plugins(source["profiles"][i]["plugins"], at.child("plugins"), profile, found);
    if (!set.ok()) {
      return set.error().within(cat("creating profile for scheduler name ", profile.name));
    }
  }
  return success();
}

/// What extenders have alone need not be on the node. Their list takes the place of a profile's
/// own, as upstream has it.
void ignore_managed(Configuration& made) {
  std::vector<std::string> ignored;
  for (const ExtenderConfig& extender : made.extenders) {
    ignored.insert(ignored.end(), extender.ignored.begin(), extender.ignored.end());
  }
  if (ignored.empty()) return;
  for (Profile& profile : made.profiles) profile.fit.ignored = ignored;
}

}  // namespace

Result<Configuration> Configuration::parse(std::string_view text, const api::Features& gates) {
  DIBS_TRY(const Value source, decode_file(text));
  Configuration made;
  FieldErrors found;
  warn_of_no_effect(source, found);
  made.kubeconfig = source["clientConnection"]["kubeconfig"].str();
  if (source["clientConnection"]["burst"].as_int() < 0) {
    found.invalid(Path("clientConnection.burst"), source["clientConnection"]["burst"],
                  "must be non-negative");
  }
  read_leader_election(source["leaderElection"], made, found);
  if (source["parallelism"].as_int(1) <= 0) {
    found.invalid(Path("parallelism"), source["parallelism"],
                  "should be an integer value greater than zero");
  }
  read_profiles(source, gates, made, found);
  read_backoff(source, made, found);
  made.extenders = read_extenders(source["extenders"], found);
  if (!found.empty()) return to_error(found);
  DIBS_CHECK(make_profiles(source, made, found));
  ignore_managed(made);
  made.warnings = found.warnings();
  return made;
}

}  // namespace dibs::scheduler
