#pragma once
// dibs usage: how long devices were held, by namespace, class, pod or device, as the server has
// recorded it (docs/usage.md).

#include <string>

namespace dibs::cli {

struct UsageFlags {
  std::string since;  // a time span
  std::string from;
  std::string to;
  std::string by = "namespace,class";
  std::string step;
  std::string name_space;
  bool all_namespaces = false;
  std::string output = "table";
  std::string kubeconfig;
  std::string context;
};

/// What the command prints, and its exit status: 0, 1 where the cluster cannot be asked, 2 for
/// wrong usage.
struct UsageOutcome {
  int status = 0;
  std::string output = {};
  std::string errors = {};
};

UsageOutcome usage(const UsageFlags& flags);

}  // namespace dibs::cli
