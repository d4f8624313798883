#pragma once
// Devices asked for by a container's annotations, as kubelets up to 1.30 do: the key is
// `cdi.k8s.io/<plugin>_<id>`, the value a comma-separated list of qualified names.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::cdi {

inline constexpr std::string_view kAnnotationPrefix = "cdi.k8s.io/";

/// All devices that annotations name, in the order of the keys.
Result<std::vector<std::string>> annotated_devices(
    const std::map<std::string, std::string>& annotations);
/// `names`, then those of the annotations that are not among them.
Result<std::vector<std::string>> with_annotated_devices(
    std::vector<std::string> names, const std::map<std::string, std::string>& annotations);

}  // namespace dibs::cdi
