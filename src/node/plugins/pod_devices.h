#pragma once
// PodClaims over both ways to devices: claims, prepared by drivers, and device plugins.
//
// Thread-safe, as both are.

#include "node/plugins/claim_manager.h"
#include "node/plugins/device_plugins.h"

namespace dibs::node {

class PodDevices : public PodClaims {
 public:
  /// Both must outlive it.
  PodDevices(ClaimManager& claims, DevicePlugins& plugins) : claims_(claims), plugins_(plugins) {}

  Result<> grant(const json::Value& pod) override { return plugins_.grant(pod); }
  std::set<std::string> granted(std::string_view pod_uid) override {
    return plugins_.granted(pod_uid);
  }
  Result<> prepare(const json::Value& pod) override { return claims_.prepare(pod); }
  Result<> unprepare(const json::Value& pod) override;
  Result<ContainerDevices> devices_of(const json::Value& pod, std::string_view container) override;
  bool holds(std::string_view pod_uid) override { return claims_.holds(pod_uid); }
  json::Value health_of(const json::Value& pod, std::string_view container) override;
  void on_health_change(std::function<void(const std::string& pod_uid)> changed) override;

 private:
  ClaimManager& claims_;
  DevicePlugins& plugins_;
};

}  // namespace dibs::node
