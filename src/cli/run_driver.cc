#include "cli/run_driver.h"

#include <filesystem>

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
    return Error::not_found(
        cat("--kubelet-registrar-directory-path: no such folder: ", given.registry));
  }
  auto sockets = driver::socket_paths(given.registry, data_dir, given.driver, given.pod_uid);
  if (!sockets) {
    const bool registry = sockets.error().message().starts_with("registry");
    return sockets.error().within(registry ? "--kubelet-registrar-directory-path"
                                           : "--kubelet-plugins-directory-path");
  }
  auto made = files.make_dirs(data_dir, 0750);
  if (!made) return made.error().within("--kubelet-plugins-directory-path");
  made = files.make_dirs(given.cdi, 0750);
  if (!made) return made.error().within("--cdi-root");
  return success();
}

Result<> check(const drivers::GpuDriverOptions& options) {
  DIBS_CHECK(check(Folders{drivers::driver_name_of(options), options.registry_dir,
                           options.plugins_dir, options.cdi_root, options.pod_uid}));
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

Result<> check(const drivers::net::NodeHalfOptions& options) {
  if (options.node_name.empty()) {
    return Error::bad_request("--node-name: is needed, unless with --controller");
  }
  for (const std::string_view name : {drivers::net::kClassicDriver, drivers::net::kDriver}) {
    DIBS_CHECK(check(Folders{std::string(name), options.registry_dir, options.plugins_dir,
                             options.cdi_root, options.pod_uid}));
  }
  runtime::Files& files = runtime::system_files();
  for (const auto& [flag, path] : {std::pair{"--resource-pools", options.resource_pools},
                                   {"--recorded-links", options.recorded_links},
                                   {"--sysfs-root", options.roots.sysfs},
                                   {"--dev-root", options.roots.dev},
                                   {"--host-device-path", options.host_device_path}}) {
    if (path.empty() || files.exists(path)) continue;
    return Error::not_found(cat(flag, ": no such file: ", path));
  }
  return success();
}

/// The driver works in folders that do not depend on where it was started.
void make_absolute(std::initializer_list<std::string*> folders) {
  for (std::string* folder : folders) {
    *folder = std::filesystem::absolute(*folder).lexically_normal().string();
  }
}

}  // namespace

int run_gpu_driver(DriverFlags flags) {
  auto& driver = flags.driver;
  make_absolute({&driver.registry_dir, &driver.plugins_dir, &driver.cdi_root});
  if (auto checked = check(flags.driver); !checked) return exit_status("driver gpu", checked);
  flags.process.user_agent = "dra-example-kubeletplugin";
  const auto begin = [&](const driver::Environment& environment) {
    return drivers::start_gpu_driver(environment, flags.driver);
  };
  return exit_status("driver gpu", driver::run_until_signal(flags.process, begin));
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
  return exit_status("driver net",
                     driver::run_until_signal(flags.process, [&](const auto& environment) {
                       const auto release = client::server_release(environment.api);
                       node.only_classic = release && *release <= 30;
                       return drivers::net::start_node_half(environment, node);
                     }));
}

}  // namespace dibs::cli
