#include "cdi/annotations.h"

#include <algorithm>

#include "base/strings.h"
#include "cdi/names.h"

namespace dibs::cdi {

Result<std::vector<std::string>> annotated_devices(
    const std::map<std::string, std::string>& annotations) {
  std::vector<std::string> devices;
  for (const auto& [key, value] : annotations) {
    if (!key.starts_with(kAnnotationPrefix)) continue;
    for (const auto name : split(value, ',')) {
      if (!parse_qualified_name(name).ok()) {
        return Error::invalid(cat("invalid CDI device name ", quoted(name)));
      }
      devices.emplace_back(name);
    }
  }
  return devices;
}

Result<std::vector<std::string>> with_annotated_devices(
    std::vector<std::string> names, const std::map<std::string, std::string>& annotations) {
  DIBS_TRY(const auto more, annotated_devices(annotations));
  for (const auto& name : more) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace dibs::cdi
