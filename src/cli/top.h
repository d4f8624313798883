#pragma once
// dibs top: which device is where and who has it, what claims have, how many devices of which
// driver each node has left. It reads the cluster's objects as dibs why does, and writes nothing.

#include <functional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "cli/why_objects.h"

namespace dibs::cli {

struct TopFlags {
  std::string what;  // devices, claims or nodes
  std::string name_space;
  bool all_namespaces = false;
  std::string selector;  // labels: of nodes, or of claims
  std::string driver;    // only this driver's
  std::string output = "table";
  bool watch = false;
  Duration interval = std::chrono::seconds(2);
  std::string kubeconfig;
  std::string context;
};

/// What the command prints, and its exit status: 0, or 1 where the cluster cannot be asked.
struct TopOutcome {
  int status = 0;
  std::string output = {};
  std::string errors = {};
};

/// With --watch: shows again and again, until the process is ended or an error comes.
TopOutcome top(const TopFlags& flags, const std::function<void(const TopOutcome&)>& show);

/// What is shown of these objects. `name_space` "": all.
std::string show_top(const WhyObjects& objects, const TopFlags& flags,
                     const std::string& name_space, Time now);

}  // namespace dibs::cli
