#include "drivers/nvidia/nvidia_driver.h"

#include <charconv>

#include "base/log.h"
#include "base/strings.h"
#include "client/resource_versions.h"
#include "client/work_queue.h"

namespace dibs::drivers::nvidia {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kDeviceClasses = {"resource.k8s.io", "v1", "deviceclasses"};
constexpr const char* kCdiClass = "claim";

Result<std::set<std::uint64_t>> xids_of(const std::vector<std::string>& words) {
  std::set<std::uint64_t> out;
  for (const auto& word : words) {
    std::uint64_t xid = 0;
    const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), xid);
    if (failed != std::errc() || end != word.data() + word.size()) {
      return Error::bad_request(
          cat("--additional-xids-to-ignore: ", quoted(word), " is no number"));
    }
    out.insert(xid);
  }
  return out;
}

runtime::Files& machine_of(const NvidiaDriverOptions& options) {
  return options.machine != nullptr ? *options.machine : runtime::system_files();
}

/// Below the driver's root where that has the file, else below "/".
std::string root_with(const NvidiaDriverOptions& options, const std::string& given,
                      const char* file) {
  if (!given.empty()) return given;
  return machine_of(options).exists(below(options.driver_root, file)) ? options.driver_root : "/";
}

Roots roots_of(const NvidiaDriverOptions& options) {
  Roots roots;
  roots.driver = options.driver_root;
  roots.dev = root_with(options, options.dev_root, "/dev/nvidiactl");
  roots.proc = root_with(options, options.proc_root, "/proc/driver/nvidia");
  return roots;
}

/// NVML of a driver that a container has installed is not where the loader of this process looks,
/// and of one that was unpacked into a folder of its own only perhaps.
Result<std::unique_ptr<nvml::Library>> open_library(const NvidiaDriverOptions& options) {
  if (!options.nvml_library.empty()) return nvml::Library::open(options.nvml_library);
  const std::string found = find_nvml(machine_of(options), roots_of(options));
  if (below(options.driver_root, "/") != "/") return nvml::Library::open(found);
  auto opened = nvml::Library::open();
  const bool missing = !opened && nvml::code_of(opened.error()) == nvml::Code::library_not_found;
  return missing && !found.empty() ? nvml::Library::open(found) : std::move(opened);
}

driver::PluginOptions plugin_options(const NvidiaDriverOptions& options) {
  driver::PluginOptions out;
  out.driver_name = kDriverName;
  out.node_name = options.node_name;
  out.registry_dir = options.registry_dir;
  out.data_dir = cat(options.plugins_dir, "/", out.driver_name);
  out.cdi_dir = options.cdi_root;
  out.cdi_class = kCdiClass;
  out.pod_uid = options.pod_uid;
  out.metadata = options.device_metadata;
  out.faults = options.faults;
  out.checkpoint_api_version = "checkpoint.nvidia.dibs.dev/v1";
  out.metrics_prefix = "nvidia_dra_driver";
  return out;
}

HandlerOptions handler_options(const NvidiaDriverOptions& options,
                               std::set<std::uint64_t> harmless_xids) {
  HandlerOptions out;
  out.node_name = options.node_name;
  out.mig = options.mig == "static" ? MigMode::fixed : MigMode::dynamic;
  out.roots = roots_of(options);
  out.sysfs_root = options.sysfs_root.empty()
                       ? below(root_with(options, "", "/sys/bus/pci/devices"), "/sys")
                       : options.sysfs_root;
  out.edits = {out.roots, options.container_env, options.container_mounts};
  out.harmless_xids = std::move(harmless_xids);
  out.data_dir = cat(options.plugins_dir, "/", kDriverName);
  out.cdi_dir = options.cdi_root;
  out.cdi_class = kCdiClass;
  out.may_have_predecessor = !options.pod_uid.empty();
  out.usage_every = options.usage_every;
  out.run = options.run ? options.run : run_program;
  return out;
}

Value class_of(const std::string& name, const std::string& type) {
  const std::string expression = cat("device.driver == '", kDriverName, "' && device.attributes['",
                                     kDriverName, "'].type == '", type, "'");
  return Value::object(
      {{"apiVersion", "resource.k8s.io/v1"},
       {"kind", "DeviceClass"},
       {"metadata", Value::object({{"name", name}})},
       {"spec", Value::object({{"selectors",
                                Value::array({Value::object(
                                    {{"cel", Value::object({{"expression", expression}})}})})}})}});
}

/// Lives as long as the driver runs.
class NvidiaDriver {
 public:
  NvidiaDriver(driver::Environment& environment, const NvidiaDriverOptions& options,
               std::unique_ptr<nvml::Library> library, std::set<std::uint64_t> harmless_xids)
      : options_(options),
        api_(environment.api),
        handler_(std::move(library), environment.files, machine_of(options), environment.runtime,
                 handler_options(options, std::move(harmless_xids))),
        setup_(environment.runtime, {}, [this](const std::string&) { return make_classes(); }) {}

  ~NvidiaDriver() {
    setup_.stop();
    if (plugin_) plugin_->stop();
  }

  Result<> start(driver::Environment environment) {
    DIBS_CHECK(environment.files.make_dirs(plugin_options(options_).data_dir, 0750));
    DIBS_CHECK(handler_.begin());
    DIBS_TRY(plugin_,
             driver::Plugin::start(handler_, std::move(environment), plugin_options(options_)));
    if (options_.create_classes) setup_.add("classes");
    return success();
  }

  driver::Plugin* plugin() { return plugin_.get(); }

 private:
  WorkOutcome make_classes() {
    bool again = false;
    for (const Value& object : device_classes(options_.extended_resource)) {
      const auto made = api_.create(kDeviceClasses, "", object);
      if (made || made.error().code() == dibs::Code::already_exists) continue;
      log::warn("class of the driver not created",
                {{"class", object["metadata"]["name"].as_string()}, {"error", made.error()}});
      // Where the driver may not, somebody else has to.
      again = again || made.error().code() != dibs::Code::forbidden;
    }
    return again ? WorkOutcome::retry() : WorkOutcome::done();
  }

  const NvidiaDriverOptions options_;
  client::ResourceClient api_;
  ClaimsHandler handler_;
  std::unique_ptr<driver::Plugin> plugin_;
  client::WorkQueue setup_;
};

}  // namespace

std::vector<Value> device_classes(const std::string& extended_resource) {
  std::vector<Value> out = {class_of("gpu.nvidia.com", "gpu"), class_of("mig.nvidia.com", "mig")};
  if (!extended_resource.empty()) {
    out.front().mut("spec").set("extendedResourceName", extended_resource);
  }
  return out;
}

NvidiaDriverOptions options_for_node(std::string node_name, const std::string& folder) {
  NvidiaDriverOptions options;
  options.node_name = std::move(node_name);
  options.registry_dir = cat(folder, "/plugins_registry");
  options.plugins_dir = cat(folder, "/plugins");
  options.cdi_root = cat(folder, "/cdi");
  return options;
}

Result<> check_options(const NvidiaDriverOptions& options) {
  if (options.mig != "dynamic" && options.mig != "static") {
    return Error::bad_request(cat("--mig: must be dynamic or static, not ", quoted(options.mig)));
  }
  DIBS_CHECK(xids_of(options.ignored_xids));
  for (const auto& env : options.container_env) {
    if (env.find('=') == std::string::npos || env.starts_with('=')) {
      return Error::bad_request(cat("--container-env: ", quoted(env), " is not NAME=VALUE"));
    }
  }
  for (const auto& path : options.container_mounts) {
    if (!path.starts_with('/')) {
      return Error::bad_request(cat("--container-mounts: ", quoted(path), " is not absolute"));
    }
  }
  return success();
}

Result<driver::Running> start_nvidia_driver(driver::Environment environment,
                                            const NvidiaDriverOptions& options) {
  DIBS_CHECK(check_options(options));
  DIBS_TRY(auto harmless, xids_of(options.ignored_xids));
  auto library = open_library(options);
  if (!library) {
    return library.error().within(
        "NVIDIA's management library cannot be used (is the driver loaded? --nvml-library names "
        "another one)");
  }
  auto running = std::make_shared<NvidiaDriver>(environment, options, std::move(library).value(),
                                                std::move(harmless));
  DIBS_CHECK(running->start(std::move(environment)));
  driver::Plugin* plugin = running->plugin();
  return driver::Running{std::move(running), plugin};
}

}  // namespace dibs::drivers::nvidia
