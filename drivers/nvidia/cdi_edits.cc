#include "drivers/nvidia/cdi_edits.h"

#include "base/strings.h"

namespace dibs::drivers::nvidia {
namespace {

const std::vector<std::string> kFileOptions = {"ro", "nosuid", "nodev", "rbind", "rprivate"};
const std::vector<std::string> kSocketOptions = {"ro",    "nosuid",   "nodev",
                                                 "rbind", "rprivate", "noexec"};

void add_mounts(cdi::ContainerEdits& edits, const std::vector<DriverFile>& found,
                const std::vector<std::string>& options) {
  for (const auto& file : found) edits.mounts.push_back({file.host, file.container, options});
}

}  // namespace

CdiEdits::CdiEdits(runtime::Files& files, EditsOptions options)
    : files_(files), options_(std::move(options)) {}

cdi::DeviceNode CdiEdits::node(const std::string& path) const {
  cdi::DeviceNode out;
  out.path = path;
  if (const std::string host = below(options_.roots.dev, path); host != path) out.host_path = host;
  return out;
}

Result<cdi::ContainerEdits> CdiEdits::common(const std::string& driver_version) const {
  cdi::ContainerEdits edits;
  // Where NVIDIA's own runtime is the machine's, it must not add what was not asked for.
  edits.env = {"NVIDIA_VISIBLE_DEVICES=void"};
  edits.env.insert(edits.env.end(), options_.env.begin(), options_.env.end());
  for (const char* path :
       {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}) {
    if (files_.exists(below(options_.roots.dev, path))) edits.device_nodes.push_back(node(path));
  }
  DIBS_TRY(const auto libraries, find_libraries(files_, options_.roots, driver_version));
  add_mounts(edits, libraries, kFileOptions);
  add_mounts(edits, find_tools(files_, options_.roots), kFileOptions);
  add_mounts(edits, find_firmware(files_, options_.roots, driver_version), kFileOptions);
  add_mounts(edits, find_sockets(files_, options_.roots), kSocketOptions);
  for (const auto& path : options_.mounts) edits.mounts.push_back({path, path, kFileOptions});
  return edits;
}

Result<cdi::ContainerEdits> CdiEdits::gpu(unsigned minor) const {
  const std::string path = cat("/dev/nvidia", minor);
  if (!files_.exists(below(options_.roots.dev, path))) {
    return Error::not_found(cat(below(options_.roots.dev, path),
                                " is not there: `nvidia-modprobe -c ", minor,
                                " -u` makes the GPU's device files"));
  }
  cdi::ContainerEdits edits;
  edits.device_nodes.push_back(node(path));
  return edits;
}

/// The device file is made by the container's runtime from its numbers where the machine has none:
/// the capability is the kernel's, the file only a name for it.
Result<cdi::DeviceNode> CdiEdits::capability(const std::string& access) const {
  const std::string path = below(options_.roots.proc, access);
  auto text = files_.read(path);
  if (!text) return text.error().within(path);
  const auto minor = minor_in_access_file(*text);
  if (!minor) return Error::internal(cat(path, ": has no DeviceFileMinor"));
  cdi::DeviceNode out = node(cat("/dev/nvidia-caps/nvidia-cap", *minor));
  if (files_.exists(below(options_.roots.dev, out.path))) return out;
  const auto devices = files_.read(below(options_.roots.proc, "/proc/devices"));
  const auto major = devices ? major_of(*devices, "nvidia-caps") : std::nullopt;
  if (!major) {
    return Error::not_found(cat(below(options_.roots.dev, out.path), " is not there, and ",
                                below(options_.roots.proc, "/proc/devices"),
                                " has no nvidia-caps: is the module nvidia loaded?"));
  }
  out.host_path.clear();
  out.type = "c";
  out.major = *major;
  out.minor = *minor;
  return out;
}

Result<cdi::ContainerEdits> CdiEdits::mig(unsigned minor, MigIds ids) const {
  DIBS_TRY(auto edits, gpu(minor));
  const std::string instance =
      cat("/proc/driver/nvidia/capabilities/gpu", minor, "/mig/gi", ids.gpu_instance);
  DIBS_TRY(auto of_gpu, capability(cat(instance, "/access")));
  DIBS_TRY(auto of_compute, capability(cat(instance, "/ci", ids.compute_instance, "/access")));
  edits.device_nodes.push_back(std::move(of_gpu));
  edits.device_nodes.push_back(std::move(of_compute));
  return edits;
}

}  // namespace dibs::drivers::nvidia
