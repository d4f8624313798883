#include "driver/driver.h"

namespace dibs::driver {

PreparedDevice prepared(const AllocatedDevice& device, cdi::ContainerEdits edits) {
  PreparedDevice out;
  out.request = device.request;
  out.pool = device.pool;
  out.device = device.device;
  out.share_id = device.share_id;
  out.edits = std::move(edits);
  return out;
}

cdi::ContainerEdits env_edits(std::vector<std::string> env) {
  cdi::ContainerEdits edits;
  edits.env = std::move(env);
  return edits;
}

}  // namespace dibs::driver
