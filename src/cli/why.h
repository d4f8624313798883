#pragma once
// dibs why: why is a pod not placed, why there, why does it not run; what is a claim waiting for,
// or who has it; which pods of a workload wait; what is wrong with a node or a driver; what waits
// at all?
//
// Everything is computed from the objects that the API server has, by the code that schedules
// (scheduler/explain.h): nothing is written, and the cluster's own scheduler need not be ours.

#include <string>

namespace dibs::cli {

struct WhyFlags {
  std::string what;  // KIND/NAME; the kind alone where `name` is given; "": all that waits
  std::string name;
  bool all_namespaces = false;
  std::string name_space;
  std::string kubeconfig;
  std::string context;
  std::string config;   // file of a KubeSchedulerConfiguration
  std::string release;  // "": the newest, and the server's ways with classic claims
  std::string feature_gates;
  std::string output = "text";
};

/// What the command prints, and its exit status: 0 nothing is wanting, 1 it is not there or
/// cannot be read, 2 it waits, or the command line is wrong.
struct WhyOutcome {
  int status = 0;
  std::string output = {};
  std::string errors = {};
};

WhyOutcome why(const WhyFlags& flags);

}  // namespace dibs::cli
