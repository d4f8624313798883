// What a Job reads from its pods, and the pods it makes.

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "controllers/job_plan.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr Duration kFirstWait = std::chrono::seconds(10);
constexpr Duration kLongestWait = std::chrono::minutes(10);
constexpr std::size_t kLongestPrefix = 58;  // of a generated name, which adds five letters
constexpr std::size_t kLongestHostname = 63;
constexpr const char* kIndexVariable = "JOB_COMPLETION_INDEX";

void add_index_variable(Value& containers) {
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const Value& env = containers[i]["env"];
    const bool there = std::any_of(env.items().begin(), env.items().end(), [](const Value& entry) {
      return entry["name"].as_string() == kIndexVariable;
    });
    if (there) continue;
    const std::string path = cat("metadata.labels['", kIndexAnnotation, "']");
    const Value reference = Value::object({{"apiVersion", "v1"}, {"fieldPath", path}});
    containers.mut(i).mut("env").push(Value::object(
        {{"name", kIndexVariable}, {"valueFrom", Value::object({{"fieldRef", reference}})}}));
  }
}

bool exit_code_matches(const Value& rule, std::int64_t code) {
  const auto& values = rule["values"].items();
  const bool listed = std::any_of(values.begin(), values.end(),
                                  [&](const Value& value) { return value.as_int() == code; });
  return listed == (rule["operator"].as_string() == "In");
}

std::string match_exit_codes(const Value& rule, const Value& pod, std::string_view action,
                             std::size_t at) {
  const Value& name = rule["containerName"];
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Value& container : pod["status"][list].items()) {
      const Value& terminated = container["state"]["terminated"];
      const std::int64_t code = terminated["exitCode"].as_int();
      if (terminated.is_null() || code == 0) continue;
      if (name.is_string() && !(name == container["name"])) continue;
      if (!exit_code_matches(rule, code)) continue;
      return cat("Container ", container["name"].as_string(), " for pod ", client::key_of(pod),
                 " failed with exit code ", code, " matching ", action, " rule at index ", at);
    }
  }
  return {};
}

std::string match_conditions(const Value& patterns, const Value& pod, std::string_view action,
                             std::size_t at) {
  for (const Value& pattern : patterns.items()) {
    const Value& condition = condition_in(pod["status"]["conditions"], pattern["type"].as_string());
    if (condition.is_null()) continue;
    if (condition["status"].as_string() != pattern["status"].as_string("True")) continue;
    return cat("Pod ", client::key_of(pod), " has condition ", pattern["type"].as_string(),
               " matching ", action, " rule at index ", at);
  }
  return {};
}

}  // namespace

Duration JobBackoff::wait(Time now) const {
  if (failures <= 0) return Duration(0);
  Duration delay = kFirstWait;
  for (int i = 1; i < failures && delay < kLongestWait; ++i) delay *= 2;
  return std::max(Duration(0), last + std::min(delay, kLongestWait) - now);
}

bool has_job_finalizer(const Value& pod) {
  const auto& finalizers = pod["metadata"]["finalizers"].items();
  return std::any_of(finalizers.begin(), finalizers.end(),
                     [](const Value& text) { return text.as_string() == kJobFinalizer; });
}

std::int64_t completion_index(const Value& pod) {
  const std::string_view text = annotation_of(pod, kIndexAnnotation);
  std::int64_t index = -1;
  std::from_chars(text.data(), text.data() + text.size(), index);
  return index;
}

Value job_pod(const Value& job, std::int64_t index, std::int64_t failures) {
  Value pod = pod_of_template(job["spec"]["template"], job);
  Value& metadata = pod.mut("metadata");
  metadata.mut("finalizers").push(kJobFinalizer);
  if (index < 0) return pod;
  const std::string suffix = cat("-", index, "-");
  const std::string name(name_of(job));
  metadata.set("generateName",
               cat(name.substr(0, std::min(name.size(), kLongestPrefix - suffix.size())), suffix));
  const std::string number = std::to_string(index);
  metadata.mut("annotations").set(kIndexAnnotation, number);
  metadata.mut("labels").set(kIndexAnnotation, number);
  if (failures >= 0)
    metadata.mut("annotations").set(kIndexFailuresAnnotation, std::to_string(failures));
  Value& spec = pod.mut("spec");
  spec.set("hostname", cat(name, "-", index).substr(0, kLongestHostname));
  add_index_variable(spec.mut("containers"));
  if (!spec["initContainers"].empty()) add_index_variable(spec.mut("initContainers"));
  return pod;
}

FailureVerdict judge_failure(const Value& policy, const Value& pod) {
  std::size_t at = 0;
  for (const Value& rule : policy["rules"].items()) {
    const std::string_view action = rule["action"].as_string();
    const std::string message = rule["onExitCodes"].is_object()
                                    ? match_exit_codes(rule["onExitCodes"], pod, action, at)
                                    : match_conditions(rule["onPodConditions"], pod, action, at);
    if (!message.empty()) return {std::string(action), message};
    ++at;
  }
  return {};
}

bool job_finished(const Value& job) {
  const Value& conditions = job["status"]["conditions"];
  return condition_in(conditions, "Complete")["status"].as_string() == "True" ||
         condition_in(conditions, "Failed")["status"].as_string() == "True";
}

std::optional<Duration> job_time_left(const Value& job, Time now) {
  const Value& ttl = job["spec"]["ttlSecondsAfterFinished"];
  if (!ttl.is_integer() || !job_finished(job)) return {};
  const Value& conditions = job["status"]["conditions"];
  const Value& complete = condition_in(conditions, "Complete");
  const Value& over =
      complete["status"].as_string() == "True" ? complete : condition_in(conditions, "Failed");
  return time_at(over["lastTransitionTime"]) + std::chrono::seconds(ttl.as_int()) - now;
}

}  // namespace dibs::controllers
