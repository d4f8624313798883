#include "drivers/gpu/gpu_driver.h"

#include "base/log.h"
#include "base/strings.h"
#include "client/resource_versions.h"
#include "client/work_queue.h"
#include "drivers/gpu/binding_controller.h"
#include "drivers/gpu/claims_handler.h"

namespace dibs::drivers {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kDeviceClasses = {"resource.k8s.io", "v1", "deviceclasses"};
const client::Gvr kResourceClasses = {"resource.k8s.io", "v1alpha2", "resourceclasses"};

ProfileOptions profile_options(const GpuDriverOptions& options) {
  ProfileOptions out;
  out.driver_name = driver_name_of(options);
  out.node_name = options.node_name;
  out.devices = options.devices;
  out.gpu_partitions = options.gpu_partitions;
  out.gpu_pcie_roots = options.gpu_pcie_roots;
  out.gpu_allow_multiple_allocations = options.gpu_allow_multiple_allocations;
  out.gpu_device_status = options.gpu_device_status;
  out.binding_conditions = options.binding_conditions;
  out.cpu_numa_nodes = options.cpu_numa_nodes;
  out.cpus_per_numa_node = options.cpus_per_numa_node;
  return out;
}

driver::PluginOptions plugin_options(const GpuDriverOptions& options) {
  driver::PluginOptions out;
  out.driver_name = driver_name_of(options);
  out.node_name = options.node_name;
  out.registry_dir = options.registry_dir;
  out.data_dir = cat(options.plugins_dir, "/", out.driver_name);
  out.cdi_dir = options.cdi_root;
  out.cdi_class = options.profile;
  out.common_edits.env = {cat("KUBERNETES_NODE_NAME=", options.node_name),
                          cat("DRA_RESOURCE_DRIVER_NAME=", out.driver_name)};
  out.pod_uid = options.pod_uid;
  // The file's format is the one of upstream, which remembers uids only.
  out.guard_devices = false;
  out.checkpoint_api_version = "checkpoint.internal.example.com/v1";
  out.metrics_prefix = "dra_example_driver";
  out.named_resources = options.named_resources;
  out.classic = options.old_agents;
  out.metadata = options.device_metadata;
  out.faults = options.faults;
  return out;
}

Value resource_class_of(const GpuDriverOptions& options) {
  return Value::object({{"apiVersion", "resource.k8s.io/v1alpha2"},
                        {"kind", "ResourceClass"},
                        {"metadata", Value::object({{"name", driver_name_of(options)}})},
                        {"driverName", driver_name_of(options)},
                        {"structuredParameters", true}});
}

Value device_class_of(const GpuDriverOptions& options) {
  const std::string expression = cat("device.driver == '", driver_name_of(options), "'");
  Value spec = Value::object(
      {{"selectors",
        Value::array({Value::object({{"cel", Value::object({{"expression", expression}})}})})}});
  if (!options.extended_resource.empty()) {
    spec.set("extendedResourceName", options.extended_resource);
  }
  return Value::object({{"apiVersion", "resource.k8s.io/v1"},
                        {"kind", "DeviceClass"},
                        {"metadata", Value::object({{"name", driver_name_of(options)}})},
                        {"spec", std::move(spec)}});
}

/// Lives as long as the driver runs.
class GpuDriver {
 public:
  GpuDriver(driver::Environment& environment, const GpuDriverOptions& options,
            std::unique_ptr<Profile> profile)
      : options_(options),
        api_(environment.api),
        handler_(std::move(profile), options.profile, driver_name_of(options), api_),
        setup_(environment.runtime, {}, [this](const std::string&) { return make_class(); }) {
    if (options.binding_conditions && options.binding_controller) {
      binding_ = std::make_unique<BindingController>(api_, environment.runtime,
                                                     driver_name_of(options), options.node_name);
    }
  }

  ~GpuDriver() {
    setup_.stop();
    if (binding_) binding_->stop();
    if (plugin_) plugin_->stop();
  }

  Result<> start(driver::Environment environment) {
    DIBS_TRY(plugin_,
             driver::Plugin::start(handler_, std::move(environment), plugin_options(options_)));
    if (options_.create_class) setup_.add(driver_name_of(options_));
    if (binding_) binding_->start();
    return success();
  }

  driver::Plugin* plugin() { return plugin_.get(); }

 private:
  WorkOutcome make_class() {
    const auto made = options_.named_resources
                          ? api_.create(kResourceClasses, "", resource_class_of(options_))
                          : api_.create(kDeviceClasses, "", device_class_of(options_));
    if (made || made.error().code() == Code::already_exists) return WorkOutcome::done();
    log::warn("class of the driver not created",
              {{"class", driver_name_of(options_)}, {"error", made.error()}});
    // Where the driver may not, somebody else has to.
    return made.error().code() == Code::forbidden ? WorkOutcome::done() : WorkOutcome::retry();
  }

  const GpuDriverOptions options_;
  client::ResourceClient api_;
  ClaimsHandler handler_;
  std::unique_ptr<driver::Plugin> plugin_;
  std::unique_ptr<BindingController> binding_;
  client::WorkQueue setup_;
};

}  // namespace

std::string driver_name_of(const GpuDriverOptions& options) {
  return options.driver_name.empty() ? cat(options.profile, ".example.com") : options.driver_name;
}

GpuDriverOptions options_for_node(std::string node_name, const std::string& folder,
                                  std::string profile) {
  GpuDriverOptions options;
  options.node_name = std::move(node_name);
  options.registry_dir = cat(folder, "/plugins_registry");
  options.plugins_dir = cat(folder, "/plugins");
  options.cdi_root = cat(folder, "/cdi");
  options.gpu_device_status = true;
  if (profile == "gpu") options.extended_resource = "example.com/gpu";
  options.profile = std::move(profile);
  return options;
}

Result<driver::Running> start_gpu_driver(driver::Environment environment,
                                         const GpuDriverOptions& options) {
  DIBS_TRY(auto profile, make_profile(options.profile, profile_options(options)));
  auto running = std::make_shared<GpuDriver>(environment, options, std::move(profile));
  DIBS_CHECK(running->start(std::move(environment)));
  driver::Plugin* plugin = running->plugin();
  return driver::Running{std::move(running), plugin};
}

}  // namespace dibs::drivers
