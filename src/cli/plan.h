#pragma once
// dibs plan: what would become of these objects, were they applied now?
//
// What the cluster has, as far as the user may read it, is copied into an API server in memory; the
// files are applied there, and our own controllers and scheduler run over it under virtual time
// until nothing happens any more. Agents are make-believe: a pod with a node runs and is ready at
// once, one that is deleted goes. Nothing is written to the cluster.

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/why_objects.h"
#include "json/value.h"

namespace dibs::cli {

struct PlanFlags {
  std::vector<std::string> files;
  std::string name_space;
  std::string kubeconfig;
  std::string context;
  std::string config;  // file of a KubeSchedulerConfiguration
  std::string release;
  std::string feature_gates;
  std::string output = "text";
};

/// What the command prints, and its exit status: 0 all would run, 1 something would wait or cannot
/// be applied, 2 wrong usage.
struct PlanOutcome {
  int status = 0;
  std::string output = {};
  std::string errors = {};
};

PlanOutcome plan(const PlanFlags& flags, std::istream& input);

/// What is planned with: the documents come with where they are from.
struct PlanInput {
  WhyWorld world;                 // the cluster as it is
  std::vector<json::Value> more;  // what else of it admission and volumes ask for
  std::vector<std::pair<std::string, json::Value>> documents;
  std::string name_space;  // for documents that name none
  std::string release;     // "": the newest
  std::string feature_gates;
  bool as_json = false;
};

/// Errors: the server's own about a document, with where it is from.
Result<PlanOutcome> make_plan(PlanInput input);

}  // namespace dibs::cli
