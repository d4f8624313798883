#include <algorithm>
#include <charconv>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/spec.h"
#include "api/kinds/workload/job.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::int64_t kMaxParallelismIndexed = 100'000;
constexpr std::int64_t kMaxFailedIndexes = 100'000;
constexpr std::int64_t kCompletionsSoftLimit = 100'000;
constexpr std::int64_t kParallelismForHighCompletions = 10'000;
constexpr std::int64_t kMaxFailedForHighCompletions = 10'000;
constexpr std::size_t kMaxFailureRules = 20;
constexpr std::size_t kMaxExitCodes = 255;
constexpr std::size_t kMaxPodConditions = 20;
constexpr std::size_t kMaxSuccessRules = 20;
constexpr std::size_t kMaxManagedBy = 63;
constexpr std::size_t kMaxIndexesText = 64 * 1024;

struct Interval {
  std::int64_t first;
  std::int64_t last;
};

Result<std::int64_t> parse_index(std::string_view text, std::int64_t completions) {
  std::int64_t number = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size()) {
    return Error::bad_request(cat("cannot convert string to integer for index: ", quoted(text)));
  }
  if (number >= completions) return Error::bad_request(cat("too large index: ", quoted(text)));
  return number;
}

Result<Interval> parse_interval(std::string_view text, std::int64_t completions) {
  std::vector<std::string_view> limits = split(text, '-');
  if (limits.size() > 2) {
    return Error::bad_request(cat("the fragment ", quoted(text),
                                  " violates the requirement that an index interval can have at "
                                  "most two parts separated by '-'"));
  }
  DIBS_TRY(std::int64_t first, parse_index(limits[0], completions));
  if (limits.size() == 1) return Interval{first, first};
  DIBS_TRY(std::int64_t last, parse_index(limits[1], completions));
  if (first >= last) {
    return Error::bad_request(cat("non-increasing order, previous: ", first, ", current: ", last));
  }
  return Interval{first, last};
}

/// `valid values: ["a" "b"]`
std::string valid_values_text(const std::vector<std::string>& values) {
  std::string out = "valid values: [";
  for (const std::string& value : values) append(out, out.back() == '[' ? "" : " ", quoted(value));
  return out + "]";
}

void validate_exit_codes(const Value& rule, const Path& path,
                         const std::set<std::string_view>& containers, FieldErrors& errors) {
  const std::vector<std::string> operators = {"In", "NotIn"};
  std::string_view op = rule["operator"].as_string();
  if (op.empty()) {
    errors.required(path.child("operator"), valid_values_text(operators));
  } else if (!is_one_of(op, {"In", "NotIn"})) {
    errors.not_supported(path.child("operator"), rule["operator"], operators);
  }
  const Value& name = rule["containerName"];
  if (!name.is_null() && !containers.contains(name.as_string())) {
    errors.invalid(path.child("containerName"), name,
                   "must be one of the container or initContainer names in the pod template");
  }
  Path values_path = path.child("values");
  const Value& values = rule["values"];
  if (values.empty()) {
    errors.invalid(values_path, values, "at least one value is required");
  } else if (values.size() > kMaxExitCodes) {
    errors.too_many(values_path, values.size(), kMaxExitCodes);
  }
  std::set<std::int64_t> seen;
  bool is_ordered = true;
  std::size_t i = 0;
  std::int64_t previous = 0;
  for (const Value& value : values.items()) {
    Path at = values_path.index(i);
    std::int64_t code = value.as_int();
    if (op == "In" && code == 0) errors.invalid(at, value, "must not be 0 for the In operator");
    if (!seen.insert(code).second) errors.duplicate(at, value);
    if (i > 0 && previous > code) is_ordered = false;
    previous = code;
    ++i;
  }
  if (!is_ordered) errors.invalid(values_path, values, "must be ordered");
}

void validate_pod_conditions(const Value& patterns, const Path& path, FieldErrors& errors) {
  const std::vector<std::string> statuses = {"False", "True", "Unknown"};
  if (patterns.size() > kMaxPodConditions) {
    errors.too_many(path, patterns.size(), kMaxPodConditions);
  }
  std::size_t i = 0;
  for (const Value& pattern : patterns.items()) {
    Path at = path.index(i++);
    add_invalid(is_qualified_name(pattern["type"].as_string()), pattern["type"].str(),
                at.child("type"), errors);
    std::string_view status = pattern["status"].as_string();
    if (status.empty()) {
      errors.required(at.child("status"), valid_values_text(statuses));
    } else if (!is_one_of(status, {"False", "True", "Unknown"})) {
      errors.not_supported(at.child("status"), pattern["status"], statuses);
    }
  }
}

void validate_failure_policy(const Value& spec, const Path& path, FieldErrors& errors) {
  const std::vector<std::string> actions = {"Count", "FailIndex", "FailJob", "Ignore"};
  const Value& rules = spec["podFailurePolicy"]["rules"];
  Path rules_path = path.child("rules");
  if (rules.size() > kMaxFailureRules) errors.too_many(rules_path, rules.size(), kMaxFailureRules);
  std::set<std::string_view> containers;
  for (std::string_view list : {"containers", "initContainers"}) {
    for (const Value& container : spec["template"]["spec"][list].items()) {
      containers.insert(container["name"].as_string());
    }
  }
  std::size_t i = 0;
  for (const Value& rule : rules.items()) {
    Path at = rules_path.index(i++);
    std::string_view action = rule["action"].as_string();
    if (action.empty()) {
      errors.required(at.child("action"), valid_values_text(actions));
    } else if (action == "FailIndex") {
      if (!is_set(spec, "backoffLimitPerIndex")) {
        errors.invalid(at.child("action"), rule["action"],
                       "requires the backoffLimitPerIndex to be set");
      }
    } else if (!is_one_of(action, {"Count", "FailJob", "Ignore"})) {
      errors.not_supported(at.child("action"), rule["action"], actions);
    }
    bool by_code = is_set(rule, "onExitCodes");
    bool by_condition = !rule["onPodConditions"].empty();
    if (by_code)
      validate_exit_codes(rule["onExitCodes"], at.child("onExitCodes"), containers, errors);
    if (by_condition) {
      validate_pod_conditions(rule["onPodConditions"], at.child("onPodConditions"), errors);
    }
    if (by_code && by_condition) {
      invalid_without_value(at, "specifying both OnExitCodes and OnPodConditions is not supported",
                            errors);
    }
    if (!by_code && !by_condition) {
      invalid_without_value(at, "specifying one of OnExitCodes and OnPodConditions is required",
                            errors);
    }
  }
}

void validate_success_policy(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& rules = spec["successPolicy"]["rules"];
  std::int64_t completions = spec["completions"].as_int();
  Path rules_path = path.child("rules");
  if (rules.empty()) {
    errors.required(rules_path,
                    "at least one rules must be specified when the successPolicy is specified");
  }
  if (rules.size() > kMaxSuccessRules) errors.too_many(rules_path, rules.size(), kMaxSuccessRules);
  std::size_t i = 0;
  for (const Value& rule : rules.items()) {
    Path at = rules_path.index(i++);
    const Value& indexes = rule["succeededIndexes"];
    const Value& count = rule["succeededCount"];
    if (indexes.is_null() && count.is_null()) {
      errors.required(at, "at least one of succeededCount or succeededIndexes must be specified");
    }
    std::int64_t total = 0;
    if (!indexes.is_null()) {
      if (indexes.as_string().size() > kMaxIndexesText) {
        errors.too_long(at.child("succeededIndexes"), kMaxIndexesText);
      }
      Result<std::int64_t> parsed = parse_job_indexes(indexes.as_string(), completions);
      if (parsed.ok()) {
        total = *parsed;
      } else {
        errors.invalid(at.child("succeededIndexes"), indexes,
                       cat("error parsing succeededIndexes: ", parsed.error().message()));
      }
    }
    if (count.is_null()) continue;
    Path count_path = at.child("succeededCount");
    check_nonnegative_value(count, count_path, errors);
    if (count.as_int() > completions) {
      errors.invalid(count_path, count,
                     cat("must be less than or equal to ", completions,
                         " (the number of specified completions)"));
    }
    if (!indexes.is_null() && count.as_int() > total) {
      errors.invalid(count_path, count,
                     cat("must be less than or equal to ", total,
                         " (the number of indexes in the specified succeededIndexes field)"));
    }
  }
}

void validate_indexed(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& completions = spec["completions"];
  const Value& parallelism = spec["parallelism"];
  const Value& max_failed = spec["maxFailedIndexes"];
  Path parallelism_path = path.child("parallelism");
  Path failed_path = path.child("maxFailedIndexes");
  if (completions.is_null()) {
    errors.required(path.child("completions"), "when completion mode is Indexed");
  }
  if (parallelism.as_int() > kMaxParallelismIndexed) {
    errors.invalid(parallelism_path, parallelism,
                   cat("must be less than or equal to ", kMaxParallelismIndexed,
                       " when completion mode is Indexed"));
  }
  if (!completions.is_null() && !max_failed.is_null() &&
      max_failed.as_int() > completions.as_int()) {
    errors.invalid(failed_path, max_failed, "must be less than or equal to completions");
  }
  if (max_failed.as_int() > kMaxFailedIndexes) {
    errors.invalid(failed_path, max_failed,
                   cat("must be less than or equal to ", kMaxFailedIndexes));
  }
  if (completions.as_int() <= kCompletionsSoftLimit || !is_set(spec, "backoffLimitPerIndex")) {
    return;
  }
  if (max_failed.is_null()) {
    errors.required(failed_path,
                    cat("must be specified when completions is above ", kCompletionsSoftLimit));
  }
  auto too_high = [&](std::int64_t limit) {
    return cat("must be less than or equal to ", limit, " when completions are above ",
               kCompletionsSoftLimit, " and used with backoff limit per index");
  };
  if (parallelism.as_int() > kParallelismForHighCompletions) {
    errors.invalid(parallelism_path, parallelism, too_high(kParallelismForHighCompletions));
  }
  if (max_failed.as_int() > kMaxFailedForHighCompletions) {
    errors.invalid(failed_path, max_failed, too_high(kMaxFailedForHighCompletions));
  }
}

void validate_modes(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& mode = spec["completionMode"];
  bool is_indexed = mode.as_string() == "Indexed";
  if (!mode.is_null() && !is_indexed && mode.as_string() != "NonIndexed") {
    errors.not_supported(path.child("completionMode"), mode, {"NonIndexed", "Indexed"});
  }
  if (is_indexed) validate_indexed(spec, path, errors);
  if (mode.is_null() || mode.as_string() == "NonIndexed") {
    for (std::string_view key : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
      if (is_set(spec, key)) {
        errors.invalid(path.child(key), spec[key], "requires indexed completion mode");
      }
    }
  }
  if (is_set(spec, "podFailurePolicy")) {
    validate_failure_policy(spec, path.child("podFailurePolicy"), errors);
  }
  if (is_set(spec, "successPolicy")) {
    if (is_indexed) {
      validate_success_policy(spec, path.child("successPolicy"), errors);
    } else {
      errors.invalid(path.child("successPolicy"),
                     go_form(spec["successPolicy"], *builtin_type("batch/v1.SuccessPolicy")),
                     "requires indexed completion mode");
    }
  }
  const Value& replacement = spec["podReplacementPolicy"];
  if (replacement.is_null()) return;
  if (is_set(spec, "podFailurePolicy")) {
    if (replacement.as_string() != "Failed") {
      errors.not_supported(path.child("podReplacementPolicy"), replacement, {"Failed"});
    }
  } else if (!is_one_of(replacement.as_string(), {"Failed", "TerminatingOrFailed"})) {
    errors.not_supported(path.child("podReplacementPolicy"), replacement,
                         {"Failed", "TerminatingOrFailed"});
  }
}

void validate_restart_policy(const Value& spec, const Path& path, FieldErrors& errors) {
  Path pod_template = path.child("template");
  Path pod = pod_template.child("spec");
  Path at = pod.child("restartPolicy");
  const Value& policy = spec["template"]["spec"]["restartPolicy"];
  std::string_view text = policy.as_string();
  if (text.empty() || text == "Always") {
    errors.required(at, "valid values: \"OnFailure\", \"Never\"");
  } else if (!is_one_of(text, {"OnFailure", "Never"})) {
    errors.not_supported(at, policy, {"OnFailure", "Never"});
  } else if (is_set(spec, "podFailurePolicy") && text != "Never") {
    errors.invalid(at, policy, "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

}  // namespace

Result<std::int64_t> parse_job_indexes(std::string_view text, std::int64_t completions) {
  if (text.empty()) return std::int64_t{0};
  std::int64_t total = 0;
  std::int64_t last = -1;
  for (std::string_view piece : split(text, ',')) {
    DIBS_TRY(Interval interval, parse_interval(piece, completions));
    if (last >= interval.first) {
      return Error::bad_request(
          cat("non-increasing order, previous: ", last, ", current: ", interval.first));
    }
    total += interval.last - interval.first + 1;
    last = interval.last;
  }
  return total;
}

void validate_job_spec(const Value& spec, const Path& path, FieldErrors& errors,
                       const Value* old_spec) {
  for (std::string_view key :
       {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
        "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"}) {
    check_nonnegative(spec, key, path, errors);
  }
  const Value& manager = spec["managedBy"];
  if (!manager.is_null()) {
    check_domain_prefixed_path(manager, path.child("managedBy"), errors);
    if (manager.as_string().size() > kMaxManagedBy) {
      errors.too_long(path.child("managedBy"), kMaxManagedBy);
    }
  }
  validate_modes(spec, path, errors);
  validate_pod_template(spec["template"], path.child("template"), errors,
                        old_spec ? &(*old_spec)["template"] : nullptr);
  validate_restart_policy(spec, path, errors);
  if (is_set(spec, "maxFailedIndexes") && !is_set(spec, "backoffLimitPerIndex")) {
    errors.required(path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  }
}

}  // namespace dibs::api
