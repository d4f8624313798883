#include "drivers/drivers.h"

#include "drivers/gpu/gpu_driver.h"
#include "drivers/net/control/control_half.h"
#include "drivers/net/node/node_half.h"
#include "drivers/net/objects/install.h"
#include "drivers/nvidia/nvidia_driver.h"

namespace dibs::drivers {
namespace {

using driver::Environment;

Result<driver::Running> start_profile(Environment environment, const Place& place,
                                      std::string profile) {
  auto options = options_for_node(place.node_name, place.folder, std::move(profile));
  options.named_resources = place.named_resources;
  options.old_agents = place.old_agent;
  if (place.tuning != nullptr && place.tuning->gpu) place.tuning->gpu(options);
  return start_gpu_driver(std::move(environment), options);
}

constexpr ClusterHalf kNet = {[](Environment environment, bool elect, const Tuning& tuning) {
                                net::ControlHalfOptions options;
                                if (tuning.net_control) tuning.net_control(options);
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
       if (place.tuning != nullptr && place.tuning->net_node) place.tuning->net_node(options);
       return net::start_node_half(std::move(environment), options);
     },
     &kNet},
    {"nvidia", nvidia::kDriverName, "NVIDIA's GPUs of the machine",
     [](Environment environment, const Place& place) -> Result<driver::Running> {
       if (place.named_resources || place.old_agent || place.only_classic) {
         return Error::bad_request(
             "--drivers nvidia: is for releases from 1.32 on, whose nodes know such drivers");
       }
       auto options = nvidia::options_for_node(place.node_name, place.folder);
       if (place.tuning != nullptr && place.tuning->nvidia) place.tuning->nvidia(options);
       return nvidia::start_nvidia_driver(std::move(environment), options);
     },
     nullptr, true},
};

}  // namespace

std::span<const DriverKind> driver_kinds() { return kDrivers; }

}  // namespace dibs::drivers
