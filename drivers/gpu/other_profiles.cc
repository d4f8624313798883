#include "base/quantity.h"
#include "base/strings.h"
#include "drivers/gpu/config.h"
#include "drivers/gpu/go_random.h"
#include "drivers/gpu/profile.h"

namespace dibs::drivers {
namespace {

using driver::Device;
using json::Value;

/// Network interfaces, shared by bandwidth.
class NetProfile : public Profile {
 public:
  explicit NetProfile(const ProfileOptions& options) : options_(options) {}

  driver::Pool pool() const override {
    const auto uuids = device_uuids("net-", options_.node_name, options_.devices);
    const Value rate = Value::object(
        {{"default", "1G"},
         {"validRange", Value::object({{"min", "100M"}, {"max", "100G"}, {"step", "1M"}})}});
    const Value one = Value::object({{"default", "1"}, {"validValues", Value::array({"1"})}});
    std::vector<Device> devices;
    for (unsigned i = 0; i < options_.devices; ++i) {
      Device device(cat("nic-", i));
      device.attribute("index", i)
          .attribute("uuid", uuids[i])
          .attribute("model", "LATEST-NET-MODEL")
          .version("driverVersion", "1.0.0")
          .capacity("vfs", "100", one)
          .capacity("ingressBandwidth", "100G", rate)
          .capacity("egressBandwidth", "100G", rate)
          .set("allowMultipleAllocations", true);
      devices.push_back(std::move(device));
    }
    return driver::make_pool(options_.node_name, std::move(devices));
  }

  Result<Value> decode(const Value& parameters) const override {
    return decode_net_config(parameters);
  }

  Result<std::vector<std::string>> environment(
      const Value& config, const driver::AllocatedDevice& device) const override {
    DIBS_TRY(const auto burst, net_burst(config));
    const std::string prefix = cat("NET_DEVICE_", device.device.substr(4));
    std::vector<std::string> env;
    if (burst.ingress > 0) env.push_back(cat(prefix, "_INGRESS_BURST=", burst.ingress));
    if (burst.egress > 0) env.push_back(cat(prefix, "_EGRESS_BURST=", burst.egress));
    add_rate(env, cat(prefix, "_INGRESS_RATE="), device.consumed["ingressBandwidth"]);
    add_rate(env, cat(prefix, "_EGRESS_RATE="), device.consumed["egressBandwidth"]);
    return env;
  }

 private:
  static void add_rate(std::vector<std::string>& env, const std::string& begin,
                       const Value& amount) {
    const auto quantity = Quantity::parse(amount.as_string());
    if (amount.is_string() && quantity) env.push_back(cat(begin, quantity->value()));
  }

  const ProfileOptions options_;
};

/// NUMA nodes, shared by the number of CPUs.
class CpuProfile : public Profile {
 public:
  explicit CpuProfile(const ProfileOptions& options)
      : options_(options), capacity_(cat(options.driver_name, "/cpu")) {}

  driver::Pool pool() const override {
    const Value mappings = Value::object({{"cpu", Value::object({{"capacityKey", capacity_}})}});
    std::vector<Device> devices;
    for (unsigned i = 0; i < options_.cpu_numa_nodes; ++i) {
      Device device(cat("numa-", i));
      device.attribute("numaNodeID", i)
          .capacity(capacity_, cat(options_.cpus_per_numa_node))
          .set("allowMultipleAllocations", true)
          .set("nodeAllocatableResourceMappings", mappings);
      devices.push_back(std::move(device));
    }
    return driver::make_pool(options_.node_name, std::move(devices));
  }

  Result<Value> decode(const Value& parameters) const override { return refuse_config(parameters); }

  Result<std::vector<std::string>> environment(
      const Value& config, const driver::AllocatedDevice& device) const override {
    if (!config.is_null()) return Error::invalid("configuration not allowed");
    const std::string prefix = cat("CPU_DEVICE_", device.device.substr(5));
    std::vector<std::string> env = {cat(prefix, "=", device.device)};
    if (device.consumed.contains(capacity_)) {
      env.push_back(cat(prefix, "_CONSUMED_CPU=", device.consumed[capacity_].as_string()));
    }
    return env;
  }

 private:
  const ProfileOptions options_;
  const std::string capacity_;
};

}  // namespace

std::unique_ptr<Profile> make_net_profile(const ProfileOptions& options) {
  return std::make_unique<NetProfile>(options);
}

std::unique_ptr<Profile> make_cpu_profile(const ProfileOptions& options) {
  return std::make_unique<CpuProfile>(options);
}

}  // namespace dibs::drivers
