// Priorities, runtimes, workloads and groups of pods.
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

void print_priority_class(Row& row) {
  row.name();
  row.integer(row.object["value"]);
  row.add(row.object["globalDefault"].as_bool());
  row.age();
  row.add(row.object["preemptionPolicy"].as_string());
}

void print_runtime_class(Row& row) {
  row.name();
  row.add(row.object["handler"].as_string());
  row.age();
}

std::string group_policy(const json::Value& policy) {
  return policy["gang"].is_object() ? "Gang" : "Basic";
}

/// Releases differ in how a group names the workload it was made from.
std::string group_workload(const json::Value& spec) {
  const json::Value& direct = spec["workloadRef"];
  const json::Value& by_template = spec["podGroupTemplateRef"]["workload"];
  return text_or((direct.is_null() ? by_template : direct)["workloadName"], "<none>");
}

std::string group_status(const json::Value& status) {
  std::string shown = "Pending";
  for (const json::Value& condition : status["conditions"].items()) {
    std::string_view type = condition["type"].as_string();
    // The name that 1.36 has for the same.
    if (type == "PodGroupInitiallyScheduled" || type == "PodGroupScheduled") {
      shown = condition["status"].as_string() == "True" ? "Scheduled" : "Unschedulable";
    }
  }
  for (const json::Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() == "DisruptionTarget") return condition["reason"].str();
  }
  return shown;
}

void print_pod_group(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(group_policy(spec["schedulingPolicy"]));
  row.add(group_workload(spec));
  row.add(group_status(row.object["status"]));
  row.age();
}

void print_composite_pod_group(Row& row) {
  const json::Value& spec = row.object["spec"];
  row.name();
  row.add(group_policy(spec["schedulingPolicy"]));
  row.add(group_workload(spec));
  row.age();
}

void print_name_and_age(Row& row) {
  row.name();
  row.age();
}

}  // namespace

void add_scheduling(Printers& printers) {
  printers.add("scheduling.k8s.io", "PriorityClass",
               {name_column(), integer_column("Value", "The priority of pods in it"),
                boolean_column("Global-Default", "Whether pods without a class get it"),
                age_column(), text_column("PreemptionPolicy", "Whether its pods push others out")},
               print_priority_class);
  printers.add(
      "node.k8s.io", "RuntimeClass",
      {name_column(), text_column("Handler", "The runtime's own name for it"), age_column()},
      print_runtime_class);
  printers.add("scheduling.k8s.io", "PodGroup",
               {name_column(), text_column("Policy", "Gang or Basic"),
                text_column("Workload", "The workload it was made from"),
                text_column("Status", "Whether it is scheduled"), age_column()},
               print_pod_group);
  printers.add("scheduling.k8s.io", "CompositePodGroup",
               {name_column(), text_column("Policy", "Gang or Basic"),
                text_column("Workload", "The workload it was made from"), age_column()},
               print_composite_pod_group);
  printers.add("scheduling.k8s.io", "Workload", {name_column(), age_column()}, print_name_and_age);
}

}  // namespace dibs::api::print
