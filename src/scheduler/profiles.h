#pragma once
// Profiles of a scheduler, as KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1) has them:
// which plugins judge the pods that name the profile, with which weight, and the timings shared by
// all profiles.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::scheduler {

struct Profile {
  std::string name = "default-scheduler";
  std::set<std::string, std::less<>> filters;
  std::map<std::string, std::int64_t, std::less<>> scores;  // weight by plugin
  bool preemption = true;
  bool devices = true;
  Duration binding_timeout = std::chrono::seconds(600);
  /// Of all nodes, so many that can take a pod are compared, but never fewer than 100. 0: 100.
  std::int64_t percentage_to_score = 0;

  /// All default plugins.
  static Profile standard();
  bool filters_by(std::string_view plugin) const { return filters.contains(plugin); }
  std::int64_t weight(std::string_view plugin) const;
};

struct Configuration {
  std::vector<Profile> profiles = {Profile::standard()};
  Duration initial_backoff = std::chrono::seconds(1);
  Duration longest_backoff = std::chrono::seconds(10);
  bool leader_elect = true;
  std::string lease_name = "kube-scheduler";
  std::string lease_namespace = "kube-system";
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);

  /// YAML or JSON. Errors: bad_request, naming the field.
  static Result<Configuration> parse(std::string_view text);
};

}  // namespace dibs::scheduler
