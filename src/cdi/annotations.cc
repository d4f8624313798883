#include "cdi/annotations.h"

#include <algorithm>

#include "base/strings.h"
#include "cdi/names.h"

namespace dibs::cdi {
namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

Result<std::string> annotation_key(std::string_view plugin, std::string_view device_id) {
  constexpr std::size_t kLongest = 63;
  if (plugin.empty()) return Error::invalid("invalid plugin name, empty");
  if (device_id.empty()) return Error::invalid("invalid deviceID, empty");
  std::string name = cat(plugin, '_', device_id);
  std::replace(name.begin(), name.end(), '/', '_');
  if (name.size() > kLongest) {
    return Error::invalid(cat("invalid plugin+deviceID ", quoted(name), ", too long"));
  }
  if (!is_alphanumeric(name.front())) {
    return Error::invalid(
        cat("invalid name ", quoted(name), ", first '", name.front(), "' should be alphanumeric"));
  }
  for (const char c : name) {
    if (!is_alphanumeric(c) && c != '_' && c != '-' && c != '.') {
      return Error::invalid(cat("invalid name ", quoted(name), ", invalid character '", c, "'"));
    }
  }
  if (!is_alphanumeric(name.back())) {
    return Error::invalid(
        cat("invalid name ", quoted(name), ", last '", name.back(), "' should be alphanumeric"));
  }
  return cat(kAnnotationPrefix, name);
}

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
