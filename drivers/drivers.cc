#include "drivers/drivers.h"

#include "drivers/gpu/gpu_driver.h"

namespace dibs::drivers {
namespace {

using driver::Environment;

constexpr DriverKind kDrivers[] = {
    {"gpu", "gpu.example.com", "make-believe GPUs",
     [](Environment environment, const std::string& node, const std::string& folder) {
       return start_gpu_driver(std::move(environment), options_for_node(node, folder, "gpu"));
     }},
    {"net", "net.example.com", "make-believe network interfaces",
     [](Environment environment, const std::string& node, const std::string& folder) {
       return start_gpu_driver(std::move(environment), options_for_node(node, folder, "net"));
     }},
    {"cpu", "cpu.example.com", "make-believe CPUs",
     [](Environment environment, const std::string& node, const std::string& folder) {
       return start_gpu_driver(std::move(environment), options_for_node(node, folder, "cpu"));
     }},
};

}  // namespace

std::span<const DriverKind> driver_kinds() { return kDrivers; }

}  // namespace dibs::drivers
