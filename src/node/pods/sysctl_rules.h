#pragma once
// Which kernel settings a pod may ask for, by the kubelet's rules: the safe ones always, others
// that are a namespace's own where the node's administrator allowed them, and none that would reach
// a namespace of the host.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::node {

class SysctlRules {
 public:
  /// The safe ones alone.
  SysctlRules() = default;
  /// `allowed_unsafe`: names, or beginnings of names with a '*' behind. `kernel`: its release; what
  /// an older one has not in the namespace is not safe there. An error names the pattern.
  static Result<SysctlRules> make(std::vector<std::string> allowed_unsafe, std::string_view kernel);

  /// Why the pod may not have what its securityContext.sysctls ask for.
  std::optional<std::string> forbidden(const json::Value& pod) const;

 private:
  bool allowed(std::string_view name) const;

  std::vector<std::string> patterns_ = {};
  int kernel_ = 1'000'000;  // major * 1000 + minor
};

}  // namespace dibs::node
