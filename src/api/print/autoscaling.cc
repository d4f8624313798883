// Autoscalers and scales.
#include "api/kinds/workload/autoscaler.h"
#include "api/print/printer.h"
#include "base/strings.h"

namespace dibs::api::print {

namespace {

using json::Value;

constexpr std::size_t kShown = 2;

std::string percent(const Value& share, std::string_view fallback) {
  return share.is_null() ? std::string(fallback) : cat(share.as_int(), '%');
}

/// One target of an autoscaler and what was last measured of it.
std::string target_text(const Value& metric, const Value& measured) {
  const std::string_view type = metric["type"].as_string();
  const bool of_resource = type == "Resource" || type == "ContainerResource";
  const std::string_view field = type == "Resource"            ? "resource"
                                 : type == "ContainerResource" ? "containerResource"
                                 : type == "Pods"              ? "pods"
                                 : type == "Object"            ? "object"
                                 : type == "External"          ? "external"
                                                               : "";
  if (field.empty()) return "<unknown type>";
  const Value& target = metric[field]["target"];
  const Value& current = measured[field]["current"];
  const std::string name =
      of_resource ? cat(metric[field]["name"].as_string(), ": ") : std::string();
  if (!target["averageValue"].is_null()) {
    const bool marked = type == "Object" || type == "External";
    return cat(name, text_or(current["averageValue"], "<unknown>"), '/',
               target["averageValue"].as_string(), marked ? " (avg)" : "");
  }
  if (of_resource) {
    return cat(name, percent(current["averageUtilization"], "<unknown>"), '/',
               percent(target["averageUtilization"], "<auto>"));
  }
  return cat(text_or(current["value"], "<unknown>"), '/', target["value"].as_string());
}

std::string targets_text(const Value& object) {
  const Value& metrics = object["spec"]["metrics"];
  if (metrics.empty()) return "<none>";
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < metrics.size() && i < kShown; ++i)
    texts.push_back(target_text(metrics[i], object["status"]["currentMetrics"][i]));
  std::string out = join(texts, ", ");
  if (metrics.size() > kShown) append(out, " + ", metrics.size() - kShown, " more...");
  return out;
}

void add_cells(Row& row, const Value& object) {
  const Value& spec = object["spec"];
  row.name();
  row.add(cat(spec["scaleTargetRef"]["kind"].as_string(), '/',
              spec["scaleTargetRef"]["name"].as_string()));
  row.add(targets_text(object));
  row.add(spec["minReplicas"].is_null() ? std::string("<unset>")
                                        : cat(spec["minReplicas"].as_int()));
  row.integer(spec["maxReplicas"]);
  row.integer(object["status"]["currentReplicas"]);
  row.age();
}

void print_autoscaler(Row& row) { add_cells(row, row.object); }

/// All versions show the same.
void print_older_autoscaler(Row& row) { add_cells(row, autoscaler_from_v1(row.object)); }

void print_scale(Row& row) {
  row.name();
  row.integer(row.object["spec"]["replicas"]);
  row.integer(row.object["status"]["replicas"]);
  row.age();
}

}  // namespace

void add_autoscaling(Printers& printers) {
  const std::vector<Column> columns = {
      name_column(),
      text_column("Reference", "What is scaled"),
      text_column("Targets", "What was measured, and what is wanted"),
      text_column("MinPods", "How few pods there may be"),
      text_column("MaxPods", "How many pods there may be"),
      text_column("Replicas", "How many pods there are"),
      age_column()};
  printers.add("autoscaling", "HorizontalPodAutoscaler", columns, print_autoscaler);
  printers.add_version("autoscaling", "v1", "HorizontalPodAutoscaler", columns,
                       print_older_autoscaler);
  printers.add("autoscaling", "Scale",
               {text_column("Name", "Name of the scaled object"),
                integer_column("Desired", "How many pods are wanted"),
                integer_column("Available", "How many pods were seen"), age_column()},
               print_scale);
}

}  // namespace dibs::api::print
