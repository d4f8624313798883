#pragma once
// Workload files of scheduler_perf, the scheduling benchmark of Kubernetes: test cases that are
// lists of operations with parameters, and per case the workloads that give values to those.
//
// "xParam: $name" stands for "x: value of name"; in templateParams a value may be
// "$name|fallback". Both are resolved here, so an operation holds plain values.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::bench {

struct WorkloadOp {
  std::string code;    // "createPods"
  json::Value fields;  // without opcode, with params resolved
  json::Value template_params;
};

struct Workload {
  std::string name;  // "TestCase/workload"
  std::vector<std::string> labels;
  std::map<std::string, bool> gates;
  std::string scheduler_config;  // path, "" for none
  std::string pod_template;      // default of createPods, "" for none
  std::vector<WorkloadOp> ops;
  std::string problem;  // why it cannot run: a parameter that it does not give
};

/// All workloads of a file, in its order. Errors: bad_request.
Result<std::vector<Workload>> read_workloads(std::string_view yaml);

}  // namespace dibs::bench
