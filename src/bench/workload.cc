#include "bench/workload.h"

#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml.h"

namespace dibs::bench {
namespace {

using json::Value;

constexpr std::string_view kParam = "Param";

/// "$name" or "$name|fallback"; the fallback is read as YAML, nothing as null.
Result<Value> resolve(const Value& params, std::string_view text) {
  if (!text.starts_with('$')) return Value(text);
  text.remove_prefix(1);
  const auto bar = text.find('|');
  const std::string_view name = text.substr(0, bar);
  if (const Value* found = params.find(name)) return *found;
  if (bar == std::string_view::npos) {
    return Error::bad_request(cat("parameter ", quoted(name), " is not given"));
  }
  return json::parse_yaml(text.substr(bar + 1));
}

Result<WorkloadOp> read_op(const Value& source, const Value& params) {
  WorkloadOp made;
  made.code = source["opcode"].str();
  made.fields = Value::object();
  for (const auto& [key, value] : source.members()) {
    if (key == "opcode" || key == "templateParams") continue;
    std::string name(key);
    Value resolved = value;
    if (value.as_string().starts_with('$')) {
      auto found = resolve(params, value.as_string());
      if (!found.ok()) return found.error().within(cat(made.code, ".", key));
      resolved = *found;
      if (name.ends_with(kParam)) name.resize(name.size() - kParam.size());
    }
    made.fields.set(name, std::move(resolved));
  }
  made.template_params = Value::object();
  for (const auto& [key, value] : source["templateParams"].members()) {
    Value resolved = value;
    if (value.is_string()) {
      auto found = resolve(params, value.as_string());
      if (!found.ok()) return found.error().within(cat(made.code, ".templateParams.", key));
      resolved = *found;
    }
    made.template_params.set(key, std::move(resolved));
  }
  return made;
}

void read_gates(const Value& gates, std::map<std::string, bool>& out) {
  for (const auto& [name, on] : gates.members()) out[std::string(name)] = on.as_bool();
}

void read_labels(const Value& labels, std::vector<std::string>& out) {
  for (const Value& label : labels.items()) out.push_back(label.str());
}

}  // namespace

Result<std::vector<Workload>> read_workloads(std::string_view yaml) {
  DIBS_TRY(const Value cases, json::parse_yaml(yaml));
  if (!cases.is_array()) return Error::bad_request("must be a list of test cases");
  std::vector<Workload> made;
  for (const Value& test : cases.items()) {
    for (const Value& source : test["workloads"].items()) {
      Workload workload;
      workload.name = cat(test["name"].as_string(), "/", source["name"].as_string());
      read_gates(test["featureGates"], workload.gates);
      read_gates(source["featureGates"], workload.gates);
      read_labels(test["labels"], workload.labels);
      read_labels(source["labels"], workload.labels);
      workload.scheduler_config = test["schedulerConfigPath"].str();
      workload.pod_template = test["defaultPodTemplatePath"].str();
      for (const Value& op : test["workloadTemplate"].items()) {
        auto read = read_op(op, source["params"]);
        if (!read.ok()) {
          // Upstream has such workloads; the others of the file are none the worse for it.
          workload.problem = read.error().message();
          break;
        }
        workload.ops.push_back(std::move(read).value());
      }
      made.push_back(std::move(workload));
    }
  }
  return made;
}

}  // namespace dibs::bench
