#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"
#include "drivers/gpu/config.h"
#include "drivers/gpu/go_random.h"
#include "drivers/gpu/profile.h"

namespace dibs::drivers {
namespace {

using driver::Device;
using json::Value;

constexpr std::int64_t kMemory = 80LL * 1024 * 1024 * 1024;
constexpr std::int64_t kCompute = 100;

std::string bytes(std::int64_t amount) {
  return Quantity(amount, 0, Quantity::Format::binary_si).canonical();
}

class GpuProfile : public Profile {
 public:
  explicit GpuProfile(const ProfileOptions& options) : options_(options) {}

  driver::Pool pool() const override {
    const auto uuids = device_uuids("gpu-", options_.node_name, options_.devices);
    driver::Pool pool;
    pool.name = options_.node_name;
    driver::SliceContent counters;
    driver::SliceContent devices;
    for (unsigned i = 0; i < options_.devices; ++i) {
      const std::string name = cat("gpu-", i);
      if (options_.gpu_partitions == 0) {
        devices.devices.push_back(make_device(name, i, uuids[i], kMemory, kCompute));
      } else {
        add_partitions(counters, devices, name, i, uuids[i]);
      }
    }
    if (options_.gpu_partitions > 0) pool.slices.push_back(std::move(counters));
    pool.slices.push_back(std::move(devices));
    return pool;
  }

  Result<Value> decode(const Value& parameters) const override {
    return decode_gpu_config(parameters);
  }

  Result<std::vector<std::string>> environment(
      const Value& config, const driver::AllocatedDevice& device) const override {
    DIBS_TRY(const auto sharing, gpu_sharing(config, device.device));
    // Without "gpu-": "0", "0_PARTITION_1".
    std::string id = to_upper(std::string_view(device.device).substr(4));
    std::replace(id.begin(), id.end(), '-', '_');
    const std::string prefix = cat("GPU_DEVICE_", id);
    std::vector<std::string> env = {cat(prefix, "=", device.device),
                                    cat(prefix, "_SHARING_STRATEGY=", sharing.strategy)};
    if (sharing.strategy == "TimeSlicing") {
      env.push_back(cat(prefix, "_TIMESLICE_INTERVAL=", sharing.interval));
    } else {
      env.push_back(cat(prefix, "_PARTITION_COUNT=", sharing.partitions));
    }
    if (device.consumed.contains("memory")) {
      env.push_back(cat(prefix, "_MEMORY=", device.consumed["memory"].as_string()));
    }
    if (device.consumed.contains("compute")) {
      env.push_back(cat(prefix, "_COMPUTE=", device.consumed["compute"].as_string()));
    }
    return env;
  }

  Value status_data(const Value& device) const override {
    if (!options_.gpu_device_status) return {};
    Value data = Value::object();
    for (const char* name : {"driverVersion", "model", "uuid"}) {
      if (device["attributes"].contains(name)) data.set(name, device["attributes"][name]);
    }
    return data;
  }

 private:
  Value policy(const std::string& value, const char* least) const {
    if (!options_.gpu_allow_multiple_allocations) return {};
    return Value::object(
        {{"default", value},
         {"validRange", Value::object({{"min", least}, {"step", least}, {"max", value}})}});
  }

  Device make_device(const std::string& name, unsigned index, const std::string& uuid,
                     std::int64_t memory, std::int64_t compute) const {
    Device device(name);
    device.attribute("index", index)
        .attribute("uuid", uuid)
        .attribute("model", "LATEST-GPU-MODEL")
        .version("driverVersion", "1.0.0")
        .capacity("memory", bytes(memory), policy(bytes(memory), "1Gi"))
        .capacity("compute", cat(compute), policy(cat(compute), "1"))
        .set("allowMultipleAllocations", options_.gpu_allow_multiple_allocations);
    if (const auto& roots = options_.gpu_pcie_roots; !roots.empty()) {
      device.attribute("resource.kubernetes.io/pcieRoot", roots[index % roots.size()]);
    }
    if (options_.binding_conditions) {
      device.set("bindingConditions", Value::array({"BindingConditions"}))
          .set("bindingFailureConditions", Value::array({"BindingFailureConditions"}));
    }
    return device;
  }

  void add_partitions(driver::SliceContent& counters, driver::SliceContent& devices,
                      const std::string& name, unsigned index, const std::string& uuid) const {
    const auto amounts = [](std::int64_t memory, std::int64_t compute) {
      return Value::object({{"memory", Value::object({{"value", bytes(memory)}})},
                            {"compute", Value::object({{"value", cat(compute)}})}});
    };
    const std::string set = cat(name, "-counters");
    counters.shared_counters.push_back(
        Value::object({{"name", set}, {"counters", amounts(kMemory, kCompute)}}));
    const auto consumes = [&](std::int64_t memory, std::int64_t compute) {
      return Value::array(
          {Value::object({{"counterSet", set}, {"counters", amounts(memory, compute)}})});
    };
    const std::int64_t memory = kMemory / options_.gpu_partitions;
    const std::int64_t compute = kCompute / options_.gpu_partitions;
    for (unsigned j = 0; j < options_.gpu_partitions; ++j) {
      Device part = make_device(cat(name, "-partition-", j), index, uuid, memory, compute);
      part.attribute("partition", j)
          .attribute("partitionable", true)
          .set("consumesCounters", consumes(memory, compute));
      devices.devices.push_back(std::move(part));
    }
    Device full = make_device(cat(name, "-full"), index, uuid, kMemory, kCompute);
    full.attribute("partitionable", true)
        .attribute("full", true)
        .set("consumesCounters", consumes(kMemory, kCompute));
    devices.devices.push_back(std::move(full));
  }

  const ProfileOptions options_;
};

}  // namespace

std::unique_ptr<Profile> make_gpu_profile(const ProfileOptions& options) {
  return std::make_unique<GpuProfile>(options);
}

}  // namespace dibs::drivers
