#include "drivers/nvidia/slices.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/semver.h"
#include "base/strings.h"

namespace dibs::drivers::nvidia {
namespace {

using driver::Device;
using json::Value;

std::string bytes_text(std::uint64_t bytes) {
  return Quantity(static_cast<std::int64_t>(bytes), 0, Quantity::Format::binary_si).canonical();
}

std::string amount_text(std::string_view counter, std::uint64_t amount) {
  return counter == "memory" ? bytes_text(amount) : cat(amount);
}

/// "copyEngines" of "copy-engines": capacities are in camel case, counters may not be.
std::string capacity_name(std::string_view counter) {
  std::string out;
  bool raise = false;
  for (const char c : counter) {
    if (c == '-') {
      raise = true;
      continue;
    }
    out.push_back(raise ? static_cast<char>(c - 'a' + 'A') : c);
    raise = false;
  }
  return out;
}

void add_capacities(Device& device, const Amounts& amounts) {
  for (const auto& [name, amount] : amounts) {
    device.capacity(capacity_name(name), amount_text(name, amount));
  }
}

std::string counter_set(const Gpu& gpu) { return cat(gpu_name(gpu.info.minor), "-counter-set"); }

Value counters_value(const Amounts& amounts, unsigned slices_from, unsigned slices_to) {
  Value out = Value::object();
  for (const auto& [name, amount] : amounts) {
    out.set(name, Value::object({{"value", amount_text(name, amount)}}));
  }
  for (unsigned i = slices_from; i < slices_to; ++i) {
    out.set(cat("memory-slice-", i), Value::object({{"value", "1"}}));
  }
  return out;
}

Value consumption(const Gpu& gpu, Value counters) {
  return Value::array(
      {Value::object({{"counterSet", counter_set(gpu)}, {"counters", std::move(counters)}})});
}

bool takes_from_counters(const KnownGpu& known) {
  return std::any_of(known.parts.begin(), known.parts.end(),
                     [](const Part& part) { return part.is_mig() && !part.is_found(); });
}

/// All that the GPU has but for what instances of others have.
Value counters_left(const KnownGpu& known, const Totals& totals) {
  Amounts left = totals.counters;
  std::vector<bool> taken(totals.memory_slices, false);
  for (const Part& part : known.parts) {
    if (!part.is_found()) continue;
    const Amounts amounts = amounts_of(*part.profile);
    for (std::size_t i = 0; i < left.size(); ++i) {
      left[i].second -= std::min(left[i].second, amounts[i].second);
    }
    for (unsigned i = 0; i < part.placement.size; ++i) {
      if (part.placement.start + i < taken.size()) taken[part.placement.start + i] = true;
    }
  }
  Value counters = counters_value(left, 0, totals.memory_slices);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i]) counters.set(cat("memory-slice-", i), Value::object({{"value", "0"}}));
  }
  return counters;
}

void add_common(Device& device, const SlicesInput& input, const Gpu& gpu) {
  const nvml::GpuInfo& info = gpu.info;
  device.attribute("productName", info.name)
      .attribute("brand", info.brand)
      .attribute("architecture", info.architecture)
      .version("cudaComputeCapability", three_numbers(info.compute_capability))
      .version("driverVersion", three_numbers(input.driver_version))
      .version("cudaDriverVersion", three_numbers(input.cuda_version));
  if (!info.addressing_mode.empty()) device.attribute("addressingMode", info.addressing_mode);
  if (!info.pci_bus_id.empty()) {
    device.attribute("resource.kubernetes.io/pciBusID", info.pci_bus_id);
  }
  if (!gpu.pcie_root.empty()) device.attribute("resource.kubernetes.io/pcieRoot", gpu.pcie_root);
  if (gpu.numa_node >= 0) device.attribute("resource.kubernetes.io/numaNode", gpu.numa_node);
}

}  // namespace

std::string three_numbers(std::string_view version) {
  const auto parsed = SemanticVersion::parse_tolerant(version);
  return parsed ? parsed->str() : "0.0.0";
}

Device device_of(const SlicesInput& input, const KnownGpu& known, const Part& part) {
  Device device(part.name);
  device.attribute("type", part.is_mig() ? "mig" : "gpu");
  if (!part.is_mig()) {
    device.attribute("uuid", part.gpu_uuid);
    add_common(device, input, known.gpu);
    const Totals totals = totals_of(known.gpu);
    if (takes_from_counters(known)) {
      add_capacities(device, totals.whole);
    } else {
      device.capacity("memory", bytes_text(known.gpu.info.memory_bytes));
    }
    return device;
  }
  if (part.is_found()) device.attribute("uuid", part.mig_uuid);
  device.attribute("parentUUID", part.gpu_uuid).attribute("profile", part.profile->name);
  add_common(device, input, known.gpu);
  add_capacities(device, amounts_of(*part.profile));
  if (part.is_found()) {
    // They say where it lies, which is fixed; of a place for an instance the counters do.
    for (unsigned i = 0; i < part.placement.size; ++i) {
      device.capacity(cat("memorySlice", part.placement.start + i), "1");
    }
  }
  return device;
}

driver::Pool pool_of(const SlicesInput& input, const Health& health) {
  driver::Pool pool;
  pool.name = input.pool;
  driver::SliceContent counters;
  for (const KnownGpu& known : input.gpus) {
    if (!takes_from_counters(known)) continue;
    counters.shared_counters.push_back(
        Value::object({{"name", counter_set(known.gpu)},
                       {"counters", counters_left(known, totals_of(known.gpu))}}));
  }
  if (!counters.shared_counters.empty()) pool.slices.push_back(std::move(counters));
  // GPUs that are whole go together, one with many parts has a slice of its own: then little is
  // written when one of them changes.
  driver::SliceContent whole;
  for (const KnownGpu& known : input.gpus) {
    driver::SliceContent own;
    const bool counted = takes_from_counters(known);
    const Totals totals = totals_of(known.gpu);
    for (const Part& part : known.parts) {
      Device device = device_of(input, known, part);
      if (counted && !part.is_mig()) {
        device.set(
            "consumesCounters",
            consumption(known.gpu, counters_value(totals.counters, 0, totals.memory_slices)));
      } else if (counted && !part.is_found()) {
        device.set(
            "consumesCounters",
            consumption(known.gpu, counters_value(amounts_of(*part.profile), part.placement.start,
                                                  part.placement.start + part.placement.size)));
      }
      for (const Mark& mark : health.marks_of(part)) {
        device.taint(mark.key, mark.effect, mark.value);
      }
      (counted ? own : whole).devices.push_back(std::move(device));
    }
    if (!own.devices.empty()) pool.slices.push_back(std::move(own));
  }
  if (!whole.devices.empty()) pool.slices.push_back(std::move(whole));
  if (pool.slices.empty()) pool.slices.emplace_back();
  return pool;
}

}  // namespace dibs::drivers::nvidia
