#include "api/kinds/workload/job.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/spec.h"
#include "api/kinds/rule_table.h"
#include "api/kinds/workload/cron.h"
#include "api/kinds/workload/parts.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kNameLabel = "batch.kubernetes.io/job-name";
constexpr std::string_view kUidLabel = "batch.kubernetes.io/controller-uid";
constexpr std::string_view kOldNameLabel = "job-name";
constexpr std::string_view kOldUidLabel = "controller-uid";

void set_failure_policy_defaults(Value& spec) {
  if (spec["podFailurePolicy"]["rules"].empty()) return;
  Value& rules = spec.mut("podFailurePolicy").mut("rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i]["onPodConditions"].empty()) continue;
    Value& patterns = rules.mut(i).mut("onPodConditions");
    for (std::size_t j = 0; j < patterns.size(); ++j) {
      set_default_text(patterns.mut(j), "status", "True");
    }
  }
}

// --- Job ---

void set_job_defaults(Value& object) {
  Value& spec = object.mut("spec");
  if (!is_set(spec, "completions") && !is_set(spec, "parallelism")) spec.set("completions", 1);
  set_default(spec, "parallelism", 1);
  set_default(spec, "backoffLimit",
              is_set(spec, "backoffLimitPerIndex") ? std::numeric_limits<std::int32_t>::max() : 6);
  set_failure_policy_defaults(spec);
  set_default(spec, "completionMode", "NonIndexed");
  set_default(spec, "suspend", false);
  set_default(spec, "podReplacementPolicy",
              is_set(spec, "podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
  set_default(spec, "manualSelector", false);
  set_pod_template_defaults(spec.mut("template"));
  Value labels = spec["template"]["metadata"]["labels"];
  Value& metadata = object.mut("metadata");
  if (!labels.empty() && metadata["labels"].empty()) metadata.set("labels", labels);
}

/// Sets what is absent; the map keeps its order, which is that of its keys.
void add_labels(Value& labels, std::initializer_list<std::pair<std::string_view, Value>> more) {
  for (const auto& [key, value] : more) set_default(labels, key, value);
  labels = sorted_map(labels);
}

/// The labels by which a Job knows its pods, and the selector that goes with them.
void generate_selector(Value& object) {
  Value name = object["metadata"]["name"];
  Value uid = object["metadata"]["uid"];
  Value& spec = object.mut("spec");
  add_labels(spec.mut("template").mut("metadata").mut("labels"),
             {{kOldNameLabel, name}, {kNameLabel, name}, {kOldUidLabel, uid}, {kUidLabel, uid}});
  add_labels(spec.mut("selector").mut("matchLabels"), {{kUidLabel, uid}});
}

void prepare_job(Value& object, const RuleContext&) {
  object.set("status", Value::object());
  const Value& labels = object["metadata"]["labels"];
  // Labels that the Job has only because its template has them grow with the template's.
  bool follow =
      labels.empty() || labels.same_node(object["spec"]["template"]["metadata"]["labels"]);
  if (!object["spec"]["manualSelector"].as_bool()) generate_selector(object);
  Value template_labels = object["spec"]["template"]["metadata"]["labels"];
  // Faults of labels are told of the template alone.
  FieldErrors faults;
  validate_labels(template_labels, Path("labels"), faults);
  if (follow && faults.empty() && !template_labels.empty()) {
    object.mut("metadata").set("labels", template_labels);
  }
}

void check_label(const Value& labels, std::string_view key, const Value& expected, const Path& path,
                 FieldErrors& errors) {
  Path labels_path = path.child("labels");
  if (!labels.contains(key)) {
    errors.required(labels_path.key(key), cat("must be '", expected.as_string(), "'"));
  } else if (!(labels[key] == expected)) {
    errors.invalid(labels_path.key(key), labels[key], cat("must be '", expected.as_string(), "'"));
  }
}

void validate_generated_selector(const Value& job, FieldErrors& errors) {
  const Value& spec = job["spec"];
  if (spec["manualSelector"].as_bool() || !is_set(spec, "selector")) return;
  const Value& name = job["metadata"]["name"];
  const Value& uid = job["metadata"]["uid"];
  if (uid.as_string().empty()) {
    Path metadata("metadata");
    errors.required(metadata.child("uid"));
  }
  const Value& labels = spec["template"]["metadata"]["labels"];
  Path spec_path("spec");
  Path pod_template = spec_path.child("template");
  Path metadata = pod_template.child("metadata");
  check_label(labels, kOldUidLabel, uid, metadata, errors);
  check_label(labels, kOldNameLabel, name, metadata, errors);
  check_label(labels, kUidLabel, uid, metadata, errors);
  check_label(labels, kNameLabel, name, metadata, errors);
  Value expected = Value::object(
      {{kOldUidLabel, uid}, {kOldNameLabel, name}, {kUidLabel, uid}, {kNameLabel, name}});
  if (!label_selector_matches(spec["selector"], expected)) {
    errors.invalid(spec_path.child("selector"), spec["selector"], "`selector` not auto-generated");
  }
}

void validate_whole_spec(const Value& spec, const Value* old_spec, FieldErrors& errors) {
  Path path("spec");
  validate_job_spec(spec, path, errors, old_spec);
  if (!is_set(spec, "selector")) {
    errors.required(path.child("selector"));
  } else {
    validate_label_selector(spec["selector"], path.child("selector"), errors);
  }
  const Value& labels = spec["template"]["metadata"]["labels"];
  if (workload::selector_parses(spec["selector"]) &&
      !label_selector_matches(spec["selector"], labels)) {
    Path pod_template = path.child("template");
    Path metadata = pod_template.child("metadata");
    errors.invalid(metadata.child("labels"), sorted_map(labels),
                   "`selector` does not match template `labels`");
  }
}

/// Pods of an indexed job have the index in their hostname.
void check_hostnames(const Value& job, FieldErrors& errors) {
  const Value& spec = job["spec"];
  std::int64_t completions = spec["completions"].as_int();
  if (spec["completionMode"].as_string() != "Indexed" || completions <= 0) return;
  const Value name = job["metadata"]["name"].str();
  std::string longest = cat(name.as_string(), "-", completions - 1);
  if (is_dns1123_label(longest).empty()) return;
  Path metadata("metadata");
  errors.invalid(metadata.child("name"), name,
                 cat("will not able to create pod with invalid DNS label: ", longest));
}

/// A suspended job that runs nothing: its pods may still be told where to run and what to ask for.
bool template_is_open(const Value& job) {
  const Value& status = job["status"];
  bool idle = !is_set(status, "startTime") || condition_is_true(status["conditions"], "Suspended");
  return job["spec"]["suspend"].as_bool() && idle && status["active"].as_int() == 0;
}

void copy_member(Value& to, const Value& from, std::string_view key) {
  if (const Value* value = from.find(key)) {
    to.set(key, *value);
  } else {
    to.erase(key);
  }
}

void copy_resources(Value& to, const Value& from, std::string_view list) {
  if (to[list].empty() || to[list].size() != from[list].size()) return;
  Value& containers = to.mut(list);
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (containers[i]["name"] == from[list][i]["name"]) {
      copy_member(containers.mut(i), from[list][i], "resources");
    }
  }
}

void check_template_unchanged(const Value& job, const Value& old, FieldErrors& errors) {
  const Value& pod_template = job["spec"]["template"];
  Value allowed = old["spec"]["template"];
  Path spec("spec");
  Path path = spec.child("template");
  if (!template_is_open(old)) {
    validate_immutable(pod_template, allowed, path, errors);
    return;
  }
  const Value& pod = pod_template["spec"];
  copy_member(allowed.mut("metadata"), pod_template["metadata"], "annotations");
  copy_member(allowed.mut("metadata"), pod_template["metadata"], "labels");
  Value& allowed_pod = allowed.mut("spec");
  for (std::string_view key : {"nodeSelector", "tolerations", "schedulingGates"}) {
    copy_member(allowed_pod, pod, key);
  }
  if (is_set(pod, "affinity") || is_set(allowed_pod, "affinity")) {
    Value& affinity = allowed_pod.mut("affinity");
    copy_member(affinity, pod["affinity"], "nodeAffinity");
    if (affinity.empty() && !is_set(pod, "affinity")) allowed_pod.erase("affinity");
  }
  copy_resources(allowed_pod, pod, "containers");
  copy_resources(allowed_pod, pod, "initContainers");
  validate_immutable(pod, allowed_pod, path.child("spec"), errors);
}

void validate_job_update(const Value& job, const Value& old, FieldErrors& errors) {
  const Value& spec = job["spec"];
  const Value& before = old["spec"];
  validate_whole_spec(spec, &before, errors);
  Path path("spec");
  const Value& completions = spec["completions"];
  if (spec["completionMode"].as_string() != "Indexed") {
    validate_immutable(completions, before["completions"], path.child("completions"), errors);
  } else if (!(completions == before["completions"]) && !completions.is_null() &&
             !(completions == spec["parallelism"])) {
    errors.invalid(path.child("completions"), completions,
                   "can only be modified in tandem with spec.parallelism");
  }
  check_selector_immutable(spec["selector"], before["selector"], path.child("selector"), errors);
  check_template_unchanged(job, old, errors);
  const Schema& schema = *builtin_type("batch/v1.JobSpec");
  for (std::string_view key : {"completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                               "managedBy", "successPolicy"}) {
    if (spec[key] == before[key]) continue;
    errors.invalid(path.child(key), go_form(spec[key], *schema.field(key)->schema),
                   "field is immutable");
  }
  check_hostnames(job, errors);
}

/// About a job's spec at `path`; `old` is null on create.
void append_spec_warnings(const Value& spec, const Path& path, const Value* old,
                          std::vector<std::string>& warnings) {
  constexpr std::int64_t kMany = 100'000;
  constexpr std::int64_t kMuch = 10'000;
  if (spec["completionMode"].as_string() == "Indexed" && spec["completions"].as_int() > kMany &&
      spec["parallelism"].as_int() > kMuch) {
    warnings.push_back(cat(
        path.str(),
        ": In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher "
        "than 10^4, Kubernetes might not be able to track completedIndexes when a big number of "
        "indexes fail"));
  }
  Path pod_template = path.child("template");
  const Value* old_template = old ? &(*old)["template"] : nullptr;
  for (std::string& text : pod_template_warnings(spec["template"], &pod_template, old_template)) {
    warnings.push_back(std::move(text));
  }
}

KindRules job_rules() {
  KindRules rules;
  rules.set_defaults = set_job_defaults;
  rules.prepare_create = prepare_job;
  rules.validate = [](const Value& job, FieldErrors& errors) {
    validate_generated_selector(job, errors);
    validate_whole_spec(job["spec"], nullptr, errors);
    check_hostnames(job, errors);
  };
  rules.validate_update = validate_job_update;
  rules.validate_status = validate_job_status;
  rules.warnings = [](const Value& job, const Value* old) {
    std::vector<std::string> warnings;
    if (!old) warnings = workload::pod_name_warnings(job);
    Path path("spec");
    if (!old || !(job["spec"] == (*old)["spec"])) {
      append_spec_warnings(job["spec"], path, old ? &(*old)["spec"] : nullptr, warnings);
    }
    return warnings;
  };
  rules.orphans_by_default = true;
  rules.orphans_warning =
      "child pods are preserved by default when jobs are deleted; set "
      "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress "
      "this warning";
  rules.tracks_generation = true;
  rules.has_status = true;
  rules.refuse_selector = [](std::string_view field) {
    return cat("field label ", quoted(field), " not supported for Job");
  };
  rules.selectable = {{"status.successful", [](const Value& job) {
                         return std::to_string(job["status"]["succeeded"].as_int());
                       }}};
  return rules;
}

// --- CronJob ---

void set_cron_job_defaults(Value& object) {
  Value& spec = object.mut("spec");
  set_default_text(spec, "concurrencyPolicy", "Allow");
  set_default(spec, "suspend", false);
  set_default(spec, "successfulJobsHistoryLimit", 3);
  set_default(spec, "failedJobsHistoryLimit", 1);
  Value& job = spec.mut("jobTemplate").mut("spec");
  set_failure_policy_defaults(job);
  set_pod_template_defaults(job.mut("template"));
}

void validate_schedule(const Value& spec, const Value* old_spec, const Path& path,
                       FieldErrors& errors) {
  const Value& schedule = spec["schedule"];
  std::string_view text = schedule.as_string();
  if (Result<CronSchedule> parsed = parse_cron(text); !parsed.ok()) {
    errors.invalid(path, schedule, parsed.error().message());
  }
  auto names_zone = [](std::string_view t) { return t.find("TZ") != std::string_view::npos; };
  if (!names_zone(text)) return;
  bool may = old_spec && names_zone((*old_spec)["schedule"].as_string());
  if (!may) {
    errors.invalid(path, schedule,
                   "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  } else if (is_set(spec, "timeZone")) {
    errors.invalid(path, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
  }
}

bool is_zone_part(std::string_view part) {
  if (part.empty() || part.size() > 14 || part == "." || part == ".." || part.front() == '-') {
    return false;
  }
  return std::all_of(part.begin(), part.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_' ||
           c == '+';
  });
}

void validate_zone(const Value& zone, const Path& path, FieldErrors& errors) {
  if (zone.is_null()) return;
  std::string_view text = zone.as_string();
  if (text.empty()) {
    errors.invalid(path, zone, "timeZone must be nil or non-empty string");
    return;
  }
  std::string unknown = cat("unknown time zone ", text);
  for (std::string_view part : split(text, '/')) {
    if (is_zone_part(part)) continue;
    errors.invalid(path, zone, unknown);
    return;
  }
  if (equals_ignoring_case(text, "Local")) {
    errors.invalid(path, zone,
                   "timeZone must be an explicit time zone as defined in "
                   "https://www.iana.org/time-zones");
  }
  if (text != "Local" && !is_time_zone(text)) errors.invalid(path, zone, unknown);
}

void validate_cron_job_spec(const Value& spec, const Value* old_spec, FieldErrors& errors) {
  Path path("spec");
  bool is_scheduled = !spec["schedule"].as_string().empty();
  if (is_scheduled) validate_schedule(spec, old_spec, path.child("schedule"), errors);
  check_nonnegative(spec, "startingDeadlineSeconds", path, errors);
  if (!old_spec || !((*old_spec)["timeZone"] == spec["timeZone"])) {
    validate_zone(spec["timeZone"], path.child("timeZone"), errors);
  }
  const Value& policy = spec["concurrencyPolicy"];
  if (policy.as_string().empty()) {
    errors.required(path.child("concurrencyPolicy"));
  } else if (!is_one_of(policy.as_string(), {"Allow", "Forbid", "Replace"})) {
    errors.not_supported(path.child("concurrencyPolicy"), policy, {"Allow", "Forbid", "Replace"});
  }
  Path job_template = path.child("jobTemplate");
  Path job_path = job_template.child("spec");
  const Value& job = spec["jobTemplate"]["spec"];
  validate_job_spec(job, job_path, errors,
                    old_spec ? &(*old_spec)["jobTemplate"]["spec"] : nullptr);
  if (is_set(job, "selector")) {
    errors.invalid(job_path.child("selector"), job["selector"],
                   "`selector` will be auto-generated");
  }
  if (job["manualSelector"].as_bool()) {
    errors.not_supported(job_path.child("manualSelector"), job["manualSelector"], {"nil", "false"});
  }
  check_nonnegative(spec, "successfulJobsHistoryLimit", path, errors);
  check_nonnegative(spec, "failedJobsHistoryLimit", path, errors);
  if (!is_scheduled) errors.required(path.child("schedule"));
}

std::vector<std::string> cron_job_warnings(const Value& object, const Value* old) {
  std::vector<std::string> warnings;
  if (!old) warnings = workload::pod_name_warnings(object);
  Path spec("spec");
  Path job_template = spec.child("jobTemplate");
  Path path = job_template.child("spec");
  if (!old || !(object["spec"] == (*old)["spec"])) {
    append_spec_warnings(object["spec"]["jobTemplate"]["spec"], path,
                         old ? &(*old)["spec"]["jobTemplate"]["spec"] : nullptr, warnings);
  }
  if (old && object["spec"]["schedule"].as_string().find("TZ") != std::string_view::npos) {
    warnings.push_back(
        "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
        "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
  }
  return warnings;
}

KindRules cron_job_rules() {
  KindRules rules;
  rules.set_defaults = set_cron_job_defaults;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_cron_job_spec(object["spec"], nullptr, errors);
    const Value& name = object["metadata"]["name"];
    // The controller adds "-" and ten digits for the names of jobs.
    constexpr std::size_t kLongest = 52;
    if (name.as_string().size() > kLongest) {
      Path metadata("metadata");
      errors.invalid(metadata.child("name"), name, "must be no more than 52 characters");
    }
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_cron_job_spec(object["spec"], &old["spec"], errors);
  };
  rules.warnings = cron_job_warnings;
  rules.tracks_generation = true;
  rules.has_status = true;
  return rules;
}

}  // namespace

void add_job_rules(RuleTable& table) {
  table[{"batch", "Job"}] = job_rules();
  table[{"batch", "CronJob"}] = cron_job_rules();
}

}  // namespace dibs::api
