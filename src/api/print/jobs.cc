// Jobs and cron jobs.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

std::string job_status(const json::Value& job) {
  const json::Value& status = job["status"];
  for (std::string_view ended : {"Complete", "Failed"}) {
    if (has_condition(status, ended)) return std::string(ended);
  }
  if (!job["metadata"]["deletionTimestamp"].is_null()) return "Terminating";
  for (std::string_view other : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (has_condition(status, other)) return std::string(other);
  }
  return "Running";
}

std::string completions(const json::Value& job) {
  std::int64_t succeeded = job["status"]["succeeded"].as_int();
  const json::Value& wanted = job["spec"]["completions"];
  if (wanted.is_integer()) return cat(succeeded, '/', wanted.as_int());
  std::int64_t parallelism = job["spec"]["parallelism"].as_int();
  if (parallelism > 1) return cat(succeeded, "/1 of ", parallelism);
  return cat(succeeded, "/1");
}

std::string job_duration(const json::Value& status, Time now) {
  if (status["startTime"].is_null()) return "";
  const json::Value& completed = status["completionTime"];
  if (completed.is_null()) return since(status["startTime"], now);
  auto end = parse_rfc3339(completed.as_string());
  return end.ok() ? since(status["startTime"], *end) : "";
}

void add_containers(Row& row, const json::Value& job_spec) {
  const json::Value& containers = job_spec["template"]["spec"]["containers"];
  row.add(containers_text(containers, "name"));
  row.add(containers_text(containers, "image"));
  row.add(selector_text(job_spec["selector"]));
}

void print_job(Row& row) {
  row.name();
  row.add(job_status(row.object));
  row.add(completions(row.object));
  row.add(job_duration(row.object["status"], row.now));
  row.age();
  add_containers(row, row.object["spec"]);
}

void print_cron_job(Row& row) {
  const json::Value& spec = row.object["spec"];
  const json::Value& status = row.object["status"];
  const json::Value& last = status["lastScheduleTime"];
  row.name();
  row.add(spec["schedule"].as_string());
  row.add(text_or(spec["timeZone"], "<none>"));
  row.add(yes_or_no(spec["suspend"]));
  row.add(static_cast<std::int64_t>(status["active"].size()));
  row.add(last.is_null() ? "<none>" : since(last, row.now));
  row.age();
  add_containers(row, spec["jobTemplate"]["spec"]);
}

}  // namespace

void add_jobs(Printers& printers) {
  Column containers = wide(text_column("Containers", "Names of the containers"));
  Column images = wide(text_column("Images", "Images of the containers"));
  Column selector = wide(text_column("Selector", "Which pods belong to it"));
  printers.add("batch", "Job",
               {name_column(), text_column("Status", "What the job does"),
                text_column("Completions", "Pods that succeeded, of those wanted"),
                text_column("Duration", "How long it has run, or took"), age_column(), containers,
                images, selector},
               print_job);
  printers.add("batch", "CronJob",
               {name_column(), text_column("Schedule", "When it runs, as in cron"),
                text_column("Timezone", "The zone the schedule is read in"),
                boolean_column("Suspend", "Whether it is held"),
                integer_column("Active", "Jobs of it that run now"),
                text_column("Last Schedule", "Time since it last started a job"), age_column(),
                containers, images, selector},
               print_cron_job);
}

}  // namespace dibs::api::print
