#include "drivers/drivers.h"

#include "drivers/gpu/gpu_driver.h"

namespace dibs::drivers {
namespace {

using driver::Environment;

Result<driver::Running> start_profile(Environment environment, const Place& place,
                                      std::string profile) {
  auto options = options_for_node(place.node_name, place.folder, std::move(profile));
  options.named_resources = place.named_resources;
  return start_gpu_driver(std::move(environment), options);
}

constexpr DriverKind kDrivers[] = {
    {"gpu", "gpu.example.com", "make-believe GPUs",
     [](Environment environment, const Place& place) {
       return start_profile(std::move(environment), place, "gpu");
     }},
    {"net", "net.example.com", "make-believe network interfaces",
     [](Environment environment, const Place& place) {
       return start_profile(std::move(environment), place, "net");
     }},
    {"cpu", "cpu.example.com", "make-believe CPUs",
     [](Environment environment, const Place& place) {
       return start_profile(std::move(environment), place, "cpu");
     }},
};

}  // namespace

std::span<const DriverKind> driver_kinds() { return kDrivers; }

}  // namespace dibs::drivers
