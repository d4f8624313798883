#include "cli/run_driver.h"

#include <filesystem>

#include "base/log.h"
#include "base/strings.h"
#include "cli/process.h"
#include "driver/sockets.h"
#include "drivers/net/objects/install.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

/// Folders of a node's half, and the driver that they are for.
struct Folders {
  std::string driver;
  std::string registry;
  std::string plugins;
  std::string cdi;
  std::string pod_uid;
};

/// What the flags say has to be good before anything is started, so that the error can name them.
Result<> check(const Folders& given) {
  const std::string data_dir = cat(given.plugins, "/", given.driver);
  runtime::Files& files = runtime::system_files();
  if (!files.exists(given.registry)) {
    return Error::bad_request(
        cat("--kubelet-registrar-directory-path: no such folder: ", given.registry));
  }
  auto sockets = driver::socket_paths(given.registry, data_dir, given.driver, given.pod_uid);
  if (!sockets) {
    const bool registry = sockets.error().message().starts_with("registry");
    return sockets.error().within(registry ? "--kubelet-registrar-directory-path"
                                           : "--kubelet-plugins-directory-path");
  }
  return success();
}

Result<> make_folders(const Folders& given) {
  runtime::Files& files = runtime::system_files();
  auto made = files.make_dirs(cat(given.plugins, "/", given.driver), 0750);
  if (!made) return made.error().within("--kubelet-plugins-directory-path");
  made = files.make_dirs(given.cdi, 0750);
  if (!made) return made.error().within("--cdi-root");
  return success();
}

Folders folders_of(const drivers::GpuDriverOptions& options) {
  return {drivers::driver_name_of(options), options.registry_dir, options.plugins_dir,
          options.cdi_root, options.pod_uid};
}

std::vector<Folders> folders_of(const drivers::net::NodeHalfOptions& options) {
  std::vector<Folders> out;
  for (const std::string_view name : {drivers::net::kClassicDriver, drivers::net::kDriver}) {
    out.push_back({std::string(name), options.registry_dir, options.plugins_dir, options.cdi_root,
                   options.pod_uid});
  }
  return out;
}

Folders folders_of(const drivers::nvidia::NvidiaDriverOptions& options) {
  return {std::string(drivers::nvidia::kDriverName), options.registry_dir, options.plugins_dir,
          options.cdi_root, options.pod_uid};
}

template <typename Options>
Result<> check(const Options& options) {
  DIBS_CHECK(check(folders_of(options)));
  return check_values(options);
}

Result<> check(const drivers::net::NodeHalfOptions& options) {
  if (options.node_name.empty()) {
    return Error::bad_request("--node-name: is needed, unless with --controller");
  }
  for (const Folders& folders : folders_of(options)) DIBS_CHECK(check(folders));
  return check_values(options);
}

/// The driver works in folders that do not depend on where it was started.
void make_absolute(std::initializer_list<std::string*> folders) {
  for (std::string* folder : folders) {
    *folder = std::filesystem::absolute(*folder).lexically_normal().string();
  }
}

/// A library's name without a folder is looked for where the loader looks.
bool is_file(const std::string& library) { return library.find('/') != std::string::npos; }

/// A driver that has one half, that of a node.
template <typename Flags, typename Start>
int run_node_driver(const char* command, Flags& flags, Start start) {
  auto& driver = flags.driver;
  make_absolute({&driver.registry_dir, &driver.plugins_dir, &driver.cdi_root});
  if (auto checked = check(driver); !checked) return exit_status(command, checked);
  const auto begin = [&](const driver::Environment& environment) -> Result<driver::Running> {
    DIBS_CHECK(make_folders(folders_of(driver)));
    return start(environment, driver);
  };
  return exit_status(command, driver::run_until_signal(flags.process, begin));
}

}  // namespace

Result<> check_values(const drivers::GpuDriverOptions& options) {
  auto profile = drivers::make_profile(options.profile, {});
  if (!profile) return profile.error().within("--device-profile");
  for (const auto& root : options.gpu_pcie_roots) {
    if (!drivers::is_pcie_root(root)) {
      return Error::bad_request(
          cat("--gpu-pcie-roots: ", quoted(root), " is no PCIe root, such as pci0000:80"));
    }
  }
  return success();
}

Result<> check_values(const drivers::net::NodeHalfOptions& options) {
  runtime::Files& files = runtime::system_files();
  for (const auto& [flag, path] : {std::pair{"--resource-pools", options.resource_pools},
                                   {"--recorded-links", options.recorded_links},
                                   {"--sysfs-root", options.roots.sysfs},
                                   {"--dev-root", options.roots.dev},
                                   {"--host-device-path", options.host_device_path}}) {
    if (path.empty() || files.exists(path)) continue;
    return Error::bad_request(cat(flag, ": no such file: ", path));
  }
  return success();
}

Result<> check_values(const drivers::nvidia::NvidiaDriverOptions& options) {
  runtime::Files& files = runtime::system_files();
  for (const auto& [flag, path] :
       {std::pair{"--nvml-library", is_file(options.nvml_library) ? options.nvml_library : ""},
        {"--driver-root", options.driver_root},
        {"--dev-root", options.dev_root},
        {"--proc-root", options.proc_root},
        {"--sysfs-root", options.sysfs_root}}) {
    if (path.empty() || files.exists(path)) continue;
    return Error::bad_request(cat(flag, ": no such file: ", path));
  }
  return check_options(options);
}

void make_absolute(drivers::nvidia::NvidiaDriverOptions& options) {
  if (is_file(options.nvml_library)) make_absolute({&options.nvml_library});
  for (std::string* root :
       {&options.driver_root, &options.dev_root, &options.proc_root, &options.sysfs_root}) {
    if (!root->empty()) make_absolute({root});
  }
}

int run_gpu_driver(DriverFlags flags) {
  if (flags.api_qps != 0 || flags.api_burst != 0) {
    log::warn("--kube-api-qps and --kube-api-burst have no effect: requests are not limited here");
  }
  flags.process.user_agent = "dra-example-kubeletplugin";
  return run_node_driver("driver gpu", flags, drivers::start_gpu_driver);
}

int run_nvidia_driver(NvidiaDriverFlags flags) {
  make_absolute(flags.driver);
  flags.process.user_agent = "nvidia-dra-driver";
  return run_node_driver("driver nvidia", flags, drivers::nvidia::start_nvidia_driver);
}

int run_net_driver(NetDriverFlags flags) {
  flags.process.user_agent = flags.controller ? "spiderpool-controller" : "spiderpool-agent";
  const auto match = drivers::net::parse_subnet_match(flags.subnet_match);
  if (!match) return exit_status("driver net", match.error().within("--subnet-match"));
  flags.ipam.selection.subnet_match = *match;
  flags.node.ipam = flags.ipam;
  flags.control.ipam = flags.ipam;
  if (flags.controller) {
    return exit_status("driver net",
                       driver::run_until_signal(flags.process, [&](const auto& environment) {
                         return drivers::net::start_control_half(environment, flags.control);
                       }));
  }
  auto& node = flags.node;
  make_absolute(
      {&node.registry_dir, &node.plugins_dir, &node.cdi_root, &node.roots.sysfs, &node.roots.dev});
  if (auto checked = check(node); !checked) return exit_status("driver net", checked);
  const auto begin = [&](const driver::Environment& environment) -> Result<driver::Running> {
    for (const Folders& folders : folders_of(node)) DIBS_CHECK(make_folders(folders));
    const auto release = client::server_release(environment.api);
    node.only_classic = release && *release <= 30;
    return drivers::net::start_node_half(environment, node);
  };
  return exit_status("driver net", driver::run_until_signal(flags.process, begin));
}

}  // namespace dibs::cli
