#include "drivers/net/node/node_half.h"

#include "base/strings.h"
#include "drivers/net/node/claims_driver.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

/// Lives as long as the half runs.
class NodeHalf {
 public:
  NodeHalf(const driver::Environment& environment, NodeHalfOptions options)
      : options_(std::move(options)),
        classic_(environment.api, claims_options(kClassicDriver)),
        today_(environment.api, claims_options(kDriver)) {}

  ~NodeHalf() {
    for (auto* plugin : {&classic_plugin_, &today_plugin_}) {
      if (*plugin) (*plugin)->stop();
    }
  }

  Result<> start(const driver::Environment& environment) {
    DIBS_TRY(classic_plugin_,
             driver::Plugin::start(classic_, environment, plugin_options(kClassicDriver)));
    DIBS_TRY(today_plugin_, driver::Plugin::start(today_, environment, plugin_options(kDriver)));
    return success();
  }

  driver::Plugin* plugin() { return today_plugin_.get(); }

 private:
  ClaimsDriverOptions claims_options(std::string_view driver) const {
    ClaimsDriverOptions out;
    out.driver_name = driver;
    out.node_name = options_.node_name;
    out.host_device_path = options_.host_device_path;
    return out;
  }

  driver::PluginOptions plugin_options(std::string_view driver) const {
    driver::PluginOptions out;
    out.driver_name = driver;
    out.node_name = options_.node_name;
    out.registry_dir = options_.registry_dir;
    out.plugins_dir = options_.plugins_dir;
    out.cdi_dir = options_.cdi_root;
    out.cdi_per_claim = true;
    out.pod_uid = options_.pod_uid;
    // The interfaces of a node are shared by all, and of virtual functions the allocation takes
    // care: nothing here is prepared for one claim alone.
    out.guard_devices = false;
    out.classic = true;
    out.publish = driver == kDriver;
    return out;
  }

  const NodeHalfOptions options_;
  ClaimsDriver classic_;
  ClaimsDriver today_;
  std::unique_ptr<driver::Plugin> classic_plugin_;
  std::unique_ptr<driver::Plugin> today_plugin_;
};

}  // namespace

NodeHalfOptions options_for_node(std::string node_name, const std::string& folder) {
  NodeHalfOptions options;
  options.node_name = std::move(node_name);
  options.registry_dir = cat(folder, "/plugins_registry");
  options.plugins_dir = cat(folder, "/plugins");
  options.cdi_root = cat(folder, "/cdi");
  return options;
}

Result<driver::Running> start_node_half(driver::Environment environment,
                                        const NodeHalfOptions& options) {
  auto half = std::make_shared<NodeHalf>(environment, options);
  DIBS_CHECK(half->start(environment));
  driver::Plugin* plugin = half->plugin();
  return driver::Running{std::move(half), plugin};
}

}  // namespace dibs::drivers::net
