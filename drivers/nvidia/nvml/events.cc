#include <algorithm>
#include <chrono>
#include <map>

#include "base/strings.h"
#include "drivers/nvidia/nvml/loaded.h"

namespace dibs::drivers::nvidia::nvml {
namespace {

constexpr unsigned long long kWanted =
    abi::kEventXid | abi::kEventDoubleBitEcc | abi::kEventSingleBitEcc;

std::optional<unsigned> instance_of(unsigned id) {
  if (id == abi::kNoInstanceId) return std::nullopt;
  return id;
}

class NvmlEventSet : public EventSet {
 public:
  NvmlEventSet(std::shared_ptr<const Loaded> nvml, abi::EventSet set)
      : nvml_(std::move(nvml)), set_(set) {}
  ~NvmlEventSet() override { nvml_->nvmlEventSetFree(set_); }

  Result<> add(const std::string& uuid) {
    DIBS_TRY(const abi::Device device, find_gpu(*nvml_, uuid));
    unsigned long long types = 0;
    DIBS_NVML_CHECK(nvml_->nvmlDeviceGetSupportedEventTypes(device, &types),
                    cat("ask for the events of GPU ", uuid));
    // NVML takes all of what it is asked for or nothing.
    types &= kWanted;
    DIBS_NVML_CHECK(types == 0 ? static_cast<int>(Code::not_supported)
                               : nvml_->nvmlDeviceRegisterEvents(device, types, set_),
                    cat("watch the events of GPU ", uuid));
    uuids_[device] = uuid;
    return success();
  }
  void leave_out(const std::string& uuid, std::string why) {
    unwatched_.emplace_back(uuid, std::move(why));
  }

  Result<std::optional<Event>> wait(Duration timeout) override {
    const auto milliseconds = std::clamp<std::int64_t>(
        std::chrono::ceil<std::chrono::milliseconds>(timeout).count(), 0, 3'600'000);
    abi::EventData data = {};
    data.gpu_instance = abi::kNoInstanceId;
    data.compute_instance = abi::kNoInstanceId;
    const abi::Return code =
        nvml_->nvmlEventSetWait_v2(set_, &data, static_cast<unsigned>(milliseconds));
    if (code == static_cast<int>(Code::timeout)) return std::optional<Event>();
    DIBS_NVML_CHECK(code, "wait for events of the GPUs");
    Event event;
    event.gpu_uuid = uuid_of(data.device);
    event.gpu_instance = instance_of(data.gpu_instance);
    event.compute_instance = instance_of(data.compute_instance);
    event.data = data.data;
    switch (data.type) {
      case abi::kEventXid:
        event.kind = EventKind::xid;
        break;
      case abi::kEventSingleBitEcc:
        event.kind = EventKind::ecc_single;
        break;
      case abi::kEventDoubleBitEcc:
        event.kind = EventKind::ecc_double;
        break;
      default:
        event.data = data.type;
        break;
    }
    return std::optional<Event>(std::move(event));
  }

  const std::vector<std::pair<std::string, std::string>>& unwatched() const override {
    return unwatched_;
  }

 private:
  /// As it was when the watch began: a GPU that just died does not tell its uuid.
  std::string uuid_of(abi::Device device) const {
    const auto found = uuids_.find(device);
    if (found != uuids_.end()) return found->second;
    char uuid[abi::kUuidSize] = {};
    if (nvml_->nvmlDeviceGetUUID(device, uuid, sizeof uuid) != 0) return {};
    return uuid;
  }

  const std::shared_ptr<const Loaded> nvml_;
  const abi::EventSet set_;
  std::map<abi::Device, std::string> uuids_;
  std::vector<std::pair<std::string, std::string>> unwatched_;
};

}  // namespace

Result<std::unique_ptr<EventSet>> watch(std::shared_ptr<const Loaded> nvml,
                                        const std::vector<std::string>& uuids) {
  abi::EventSet handle = nullptr;
  DIBS_NVML_CHECK(nvml->nvmlEventSetWait_v2 == nullptr ? static_cast<int>(Code::not_supported)
                                                       : nvml->nvmlEventSetCreate(&handle),
                  "make a set of events");
  auto set = std::make_unique<NvmlEventSet>(std::move(nvml), handle);
  for (const std::string& uuid : uuids) {
    if (const auto added = set->add(uuid); !added.ok()) {
      set->leave_out(uuid, added.error().message());
    }
  }
  return std::unique_ptr<EventSet>(std::move(set));
}

}  // namespace dibs::drivers::nvidia::nvml
