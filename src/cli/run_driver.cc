#include "cli/run_driver.h"

#include <filesystem>

#include "base/strings.h"
#include "cli/process.h"
#include "driver/sockets.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

/// What the flags say has to be good before anything is started, so that the error can name them.
Result<> check(const drivers::GpuDriverOptions& options) {
  const std::string name = drivers::driver_name_of(options);
  const std::string data_dir = cat(options.plugins_dir, "/", name);
  runtime::Files& files = runtime::system_files();
  if (!files.exists(options.registry_dir)) {
    return Error::not_found(
        cat("--kubelet-registrar-directory-path: no such folder: ", options.registry_dir));
  }
  auto sockets = driver::socket_paths(options.registry_dir, data_dir, name, options.pod_uid);
  if (!sockets) {
    const bool registry = sockets.error().message().starts_with("registry");
    return sockets.error().within(registry ? "--kubelet-registrar-directory-path"
                                           : "--kubelet-plugins-directory-path");
  }
  auto made = files.make_dirs(data_dir, 0750);
  if (!made) return made.error().within("--kubelet-plugins-directory-path");
  made = files.make_dirs(options.cdi_root, 0750);
  if (!made) return made.error().within("--cdi-root");
  auto profile = drivers::make_profile(options.profile, {});
  if (!profile) return profile.error().within("--device-profile");
  return success();
}

}  // namespace

int run_gpu_driver(DriverFlags flags) {
  auto& driver = flags.driver;
  for (std::string* folder : {&driver.registry_dir, &driver.plugins_dir, &driver.cdi_root}) {
    *folder = std::filesystem::absolute(*folder).lexically_normal().string();
  }
  if (auto checked = check(flags.driver); !checked) return exit_status("driver gpu", checked);
  flags.process.user_agent = "dra-example-kubeletplugin";
  const auto begin = [&](const driver::Environment& environment) {
    return drivers::start_gpu_driver(environment, flags.driver);
  };
  return exit_status("driver gpu", driver::run_until_signal(flags.process, begin));
}

}  // namespace dibs::cli
