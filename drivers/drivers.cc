#include "drivers/drivers.h"

#include "drivers/gpu/gpu_driver.h"
#include "drivers/net/control/control_half.h"
#include "drivers/net/node/node_half.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers {
namespace {

using driver::Environment;

Result<driver::Running> start_profile(Environment environment, const Place& place,
                                      std::string profile) {
  auto options = options_for_node(place.node_name, place.folder, std::move(profile));
  options.named_resources = place.named_resources;
  return start_gpu_driver(std::move(environment), options);
}

constexpr ClusterHalf kNet = {[](Environment environment, bool elect) {
                                net::ControlHalfOptions options;
                                options.election.leader_election = elect;
                                return net::start_control_half(std::move(environment),
                                                               std::move(options));
                              },
                              net::controller_rules, net::node_rules};

constexpr DriverKind kDrivers[] = {
    {"gpu", "gpu.example.com", "make-believe GPUs",
     [](Environment environment, const Place& place) {
       return start_profile(std::move(environment), place, "gpu");
     }},
    {"sim-net", "net.example.com", "make-believe network interfaces",
     [](Environment environment, const Place& place) {
       return start_profile(std::move(environment), place, "net");
     }},
    {"cpu", "cpu.example.com", "make-believe CPUs",
     [](Environment environment, const Place& place) {
       return start_profile(std::move(environment), place, "cpu");
     }},
    {"net", net::kDriver, "addresses and interfaces of the machine's networks, as Spiderpool",
     [](Environment environment, const Place& place) {
       auto options = net::options_for_node(place.node_name, place.folder);
       options.only_classic = place.only_classic;
       return net::start_node_half(std::move(environment), options);
     },
     &kNet},
};

}  // namespace

std::span<const DriverKind> driver_kinds() { return kDrivers; }

}  // namespace dibs::drivers
