#pragma once
// A folder that looks like a machine with NVIDIA's driver: device nodes, /proc/driver/nvidia,
// libraries with their cache, tools. The driver under test is pointed there, and containers get
// files out of it. What depends on the instances (capabilities, what nvidia-smi says) follows every
// change of the state.
//
// Device nodes are copies of /dev/null where this process may make nodes, else empty files.

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "drivers/nvidia/fake/machine.h"
#include "drivers/nvidia/fake/state.h"

namespace dibs::drivers::nvidia::fake {

/// Everything but what follow_state() writes. `machine_path` is what the library in the folder will
/// read, `library` the file that becomes it.
Result<> lay_out(const Machine& machine, const std::string& machine_path,
                 const std::string& library, const std::string& root);
/// Capabilities and nvidia-smi of State::root; nothing where it is "".
Result<> follow_state(const Machine& machine, const State& state);

/// The minor number of /dev/nvidia-caps/nvidia-cap<N>, as the kernel module numbers them: 15 GPU
/// instances of each GPU, 8 compute instances of each of these.
unsigned gpu_instance_cap(unsigned gpu_minor, unsigned gpu_instance);
unsigned compute_instance_cap(unsigned gpu_minor, unsigned gpu_instance, unsigned compute_instance);

/// root_scripts.cc: the texts of stand-ins for tools.
std::string nvidia_smi_script(const Machine& machine, const State& state);
std::string mps_control_script();

/// ld_cache.cc: /etc/ld.so.cache with these libraries, of which each is a file name and a path.
std::string ld_cache(const std::vector<std::pair<std::string, std::string>>& libraries);

}  // namespace dibs::drivers::nvidia::fake
