#include "server/admission.h"

namespace dibs::server {

Result<> AdmissionChain::mutate(AdmissionRequest& request) const {
  for (const auto& plugin : plugins_) DIBS_CHECK(plugin->mutate(request));
  return success();
}

Result<> AdmissionChain::validate(AdmissionRequest& request) const {
  for (const auto& plugin : plugins_) DIBS_CHECK(plugin->validate(request));
  return success();
}

void AdmissionChain::roll_back(const AdmissionRequest& request) const {
  for (const auto& plugin : plugins_) plugin->roll_back(request);
}

}  // namespace dibs::server
