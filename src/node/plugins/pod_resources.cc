#include "node/plugins/pod_resources.h"

#include <algorithm>
#include <memory>
#include <set>

#include "base/mutex.h"
#include "base/strings.h"
#include "node/plugins/claim_rules.h"
#include "proto/pod_resources_v1.pb.h"
#include "proto/pod_resources_v1alpha1.pb.h"

namespace dibs::node {
namespace {

using json::Value;

/// 100 calls a second, 10 at once.
class RateLimit {
 public:
  explicit RateLimit(runtime::Clock& clock) : clock_(clock), last_(clock.steady()) {}

  bool take() {
    const MutexLock lock(mutex_);
    const Duration now = clock_.steady();
    tokens_ =
        std::min(kBurst, tokens_ + kPerSecond * std::chrono::duration<double>(now - last_).count());
    last_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  static constexpr double kPerSecond = 100;
  static constexpr double kBurst = 10;
  runtime::Clock& clock_;
  Mutex mutex_;
  double tokens_ DIBS_GUARDED_BY(mutex_) = kBurst;
  Duration last_ DIBS_GUARDED_BY(mutex_);
};

void tell(const DeviceShare& share, v1::ContainerDevices* out) {
  out->set_resource_name(share.resource);
  for (const auto& id : share.ids) out->add_device_ids(id);
  for (const auto node : share.numa_nodes) out->mutable_topology()->add_nodes()->set_id(node);
}

class PodResourcesService {
 public:
  PodResourcesService(PodResourcesSource source, runtime::Clock& clock)
      : source_(std::move(source)), limit_(clock) {}

  bool admit() { return limit_.take(); }
  bool has_get() const { return source_.get; }

  std::vector<Value> pods() const {
    auto known = source_.pods ? source_.pods() : std::nullopt;
    return known ? std::move(*known) : std::vector<Value>();
  }

  std::vector<DeviceShare> allocatable() const {
    return source_.allocatable ? source_.allocatable() : std::vector<DeviceShare>();
  }
  std::vector<DeviceShare> devices(const Value& pod, const Value& container) const {
    if (!source_.devices) return {};
    return source_.devices(pod["metadata"]["uid"].as_string(), container["name"].as_string());
  }

  void describe(const Value& pod, v1::PodResources* out) const {
    out->set_name(pod["metadata"]["name"].str());
    out->set_namespace_(pod["metadata"]["namespace"].str());
    for (const auto& container : pod["spec"]["initContainers"].items()) {
      if (container["restartPolicy"].as_string() == "Always") {
        describe(pod, container, out->add_containers());
      }
    }
    for (const auto& container : pod["spec"]["containers"].items()) {
      describe(pod, container, out->add_containers());
    }
  }

 private:
  void describe(const Value& pod, const Value& container, v1::ContainerResources* out) const {
    out->set_name(container["name"].str());
    for (const auto& share : devices(pod, container)) tell(share, out->add_devices());
    if (!source_.claims) return;
    const std::string name_space = pod["metadata"]["namespace"].str();
    std::set<std::string> told;
    for (const auto& use : uses_of(pod, container, source_.release)) {
      if (!told.insert(use.claim).second) continue;
      const auto info = source_.claim(name_space, use.claim);
      if (!info) continue;
      auto* claim = out->add_dynamic_resources();
      claim->set_class_name(info->class_name);
      claim->set_claim_name(info->name);
      claim->set_claim_namespace(info->name_space);
      for (const auto& [driver, state] : info->drivers) {
        for (const auto& device : state.devices) {
          auto* resource = claim->add_claim_resources();
          for (const auto& id : device.cdi_ids) resource->add_cdi_devices()->set_name(id);
          if (source_.release.classic()) continue;
          resource->set_driver_name(driver);
          resource->set_pool_name(device.pool);
          resource->set_device_name(device.device);
          if (!device.share_id.empty()) resource->set_share_id(device.share_id);
        }
      }
    }
  }

  PodResourcesSource source_;
  RateLimit limit_;
};

rpc::Reply list(PodResourcesService& service, std::string_view) {
  v1::ListPodResourcesResponse response;
  for (const auto& pod : service.pods()) service.describe(pod, response.add_pod_resources());
  return {{}, response.SerializeAsString()};
}

rpc::Reply get(PodResourcesService& service, std::string_view bytes) {
  if (!service.has_get()) {
    return {{rpc::Code::unknown, "PodResources API Get method disabled"}, {}};
  }
  v1::GetPodResourcesRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return {{rpc::Code::internal, "grpc: error unmarshalling request"}, {}};
  }
  for (const auto& pod : service.pods()) {
    const Value& metadata = pod["metadata"];
    if (metadata["name"].as_string() != request.pod_name() ||
        metadata["namespace"].as_string() != request.pod_namespace()) {
      continue;
    }
    v1::GetPodResourcesResponse response;
    service.describe(pod, response.mutable_pod_resources());
    return {{}, response.SerializeAsString()};
  }
  return {{rpc::Code::unknown, cat("pod ", request.pod_name(), " in namespace ",
                                   request.pod_namespace(), " not found")},
          {}};
}

rpc::Reply list_v1alpha1(PodResourcesService& service, std::string_view) {
  v1alpha1::ListPodResourcesResponse response;
  for (const auto& pod : service.pods()) {
    auto* out = response.add_pod_resources();
    out->set_name(pod["metadata"]["name"].str());
    out->set_namespace_(pod["metadata"]["namespace"].str());
    for (const auto& container : pod["spec"]["containers"].items()) {
      auto* one = out->add_containers();
      one->set_name(container["name"].str());
      for (const auto& share : service.devices(pod, container)) {
        auto* devices = one->add_devices();
        devices->set_resource_name(share.resource);
        for (const auto& id : share.ids) devices->add_device_ids(id);
      }
    }
  }
  return {{}, response.SerializeAsString()};
}

rpc::Reply allocatable(PodResourcesService& service, std::string_view) {
  v1::AllocatableResourcesResponse response;
  for (const auto& share : service.allocatable()) tell(share, response.add_devices());
  return {{}, response.SerializeAsString()};
}

}  // namespace

rpc::Methods pod_resources_methods(PodResourcesSource source, runtime::Clock& clock) {
  const auto service = std::make_shared<PodResourcesService>(std::move(source), clock);
  using Answer = rpc::Reply (*)(PodResourcesService&, std::string_view);
  const auto limited = [service](Answer answer) {
    return [service, answer](std::string_view request) -> rpc::Reply {
      if (!service->admit()) {
        return {{rpc::Code::resource_exhausted, "rejected by rate limit"}, {}};
      }
      return answer(*service, request);
    };
  };
  rpc::Methods methods;
  methods.unary["/v1.PodResourcesLister/List"] = limited(list);
  methods.unary["/v1.PodResourcesLister/Get"] = limited(get);
  methods.unary["/v1.PodResourcesLister/GetAllocatableResources"] = limited(allocatable);
  methods.unary["/v1alpha1.PodResourcesLister/List"] = limited(list_v1alpha1);
  return methods;
}

}  // namespace dibs::node
