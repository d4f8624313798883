#include "node/plugins/pod_devices.h"

#include <algorithm>

namespace dibs::node {

using json::Value;

Result<> PodDevices::unprepare(const Value& pod) {
  // No container has them any more, whatever drivers say of its claims.
  plugins_.release(pod["metadata"]["uid"].as_string());
  return claims_.unprepare(pod);
}

Result<ContainerDevices> PodDevices::devices_of(const Value& pod, std::string_view container) {
  DIBS_TRY(ContainerDevices out, claims_.devices_of(pod, container));
  DIBS_TRY(auto more, plugins_.start_container(pod["metadata"]["uid"].as_string(), container));
  out.cdi_ids.insert(out.cdi_ids.end(), more.cdi_ids.begin(), more.cdi_ids.end());
  out.annotations.merge(more.annotations);
  out.env = std::move(more.env);
  out.mounts = std::move(more.mounts);
  out.nodes = std::move(more.nodes);
  return out;
}

Value PodDevices::health_of(const Value& pod, std::string_view container) {
  // Only regular containers have the field.
  const auto& containers = pod["spec"]["containers"].items();
  if (std::none_of(containers.begin(), containers.end(), [&](const Value& candidate) {
        return candidate["name"].as_string() == container;
      })) {
    return {};
  }
  Value out = claims_.health_of(pod, container);
  const Value more = plugins_.health_of(pod["metadata"]["uid"].as_string(), container);
  for (const Value& entry : more.items()) out.push(entry);
  return out;
}

void PodDevices::on_health_change(std::function<void(const std::string& pod_uid)> changed) {
  plugins_.on_health_change(changed);
  claims_.on_health_change(std::move(changed));
}

}  // namespace dibs::node
