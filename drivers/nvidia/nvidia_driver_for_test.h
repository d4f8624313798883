#pragma once
// The driver on a machine that is made up, with claims, programs and files that tests look at.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "cdi/spec.h"
#include "driver/test_world.h"
#include "drivers/nvidia/machine_for_test.h"
#include "drivers/nvidia/nvidia_driver.h"
#include "drivers/nvidia/nvidia_fakes.h"
#include "json/parse.h"

namespace dibs::drivers::nvidia {

inline constexpr const char* kLedger = "/node/plugins/gpu.nvidia.com/gpus.json";
inline constexpr const char* kSmall0 = "gpu-0-mig-1g18gb-19-0";
inline constexpr const char* kSmall4 = "gpu-0-mig-1g18gb-19-4";
inline constexpr const char* kLarge4 = "gpu-0-mig-3g71gb-9-4";

class NvidiaDriver : public testing::Test {
 protected:
  explicit NvidiaDriver(const std::string& name = "h200") : machine(name) {
    log::set_sink([](std::string_view) {});
    options = options_for_node("node-0", "/node");
    options.driver_root = machine.root();
    options.run = programs.runner();
  }
  ~NvidiaDriver() override {
    running = {};
    log::set_sink({});
  }

  void start() {
    auto started = start_nvidia_driver(world.environment(), options);
    ASSERT_TRUE(started.ok()) << started.error().message();
    running = std::move(started).value();
    world.settle();
  }
  void restart() {
    running = {};
    start();
  }
  /// Until GPUs were counted again.
  void wait() { world.settle(std::chrono::seconds(11)); }

  driver::ClaimName claim(const std::string& name, const std::vector<std::string>& devices,
                          const std::string& config = "[]", const std::string& more = "") {
    std::string results;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      append(results, i > 0 ? ", " : "",
             "{'request': 'r', 'driver': 'gpu.nvidia.com', 'pool': 'node-0', 'device': '",
             devices[i], "'", more, "}");
    }
    return driver::test::TestWorld::name_of(world.make_claim(
        name, cat("{'devices': {'results': [", results, "], 'config': ", config, "}}")));
  }
  /// As if it had been deleted while the node did not look.
  void forget(const std::string& name) { world.remove(driver::test::kClaims, "default", name); }
  static std::string opaque(const std::string& parameters, const std::string& requests = "[]") {
    return cat("{'source': 'FromClaim', 'requests': ", requests,
               ", 'opaque': {'driver': 'gpu.nvidia.com', 'parameters': ", parameters, "}}");
  }
  static std::string sharing(const std::string& kind, const std::string& what) {
    return opaque(cat("{'apiVersion': 'resource.nvidia.com/v1beta1', 'kind': '", kind,
                      "', 'sharing': ", what, "}"));
  }

  /// "", or the error.
  std::string prepare(const driver::ClaimName& name) {
    const auto response = world.prepare(*running.plugin, {name});
    return world.status.ok() ? response.claims().at(name.uid).error() : world.status.message;
  }
  std::string unprepare(const driver::ClaimName& name) {
    const auto response = world.unprepare(*running.plugin, {name});
    return world.status.ok() ? response.claims().at(name.uid).error() : world.status.message;
  }

  cdi::Spec cdi_of(const driver::ClaimName& name) {
    const auto text =
        world.files->read(cat("/node/cdi/k8s.gpu.nvidia.com-claim_", name.uid, ".yaml"));
    EXPECT_TRUE(text.ok()) << "no CDI file";
    if (!text) return {};
    auto spec = cdi::parse_spec(*text);
    EXPECT_TRUE(spec.ok());
    return spec ? *spec : cdi::Spec();
  }
  static std::vector<std::string> nodes(const cdi::Device& device) {
    std::vector<std::string> out;
    for (const auto& node : device.edits.device_nodes) out.push_back(node.path);
    return out;
  }

  std::map<std::string, json::Value> devices() {
    std::map<std::string, json::Value> out;
    for (const auto& slice : world.slices()) {
      for (const auto& device : slice["spec"]["devices"].items())
        out[device["name"].str()] = device;
    }
    return out;
  }
  /// "key=value:effect" of each.
  std::vector<std::string> taints(const std::string& device) {
    std::vector<std::string> out;
    for (const auto& taint : devices()[device]["taints"].items()) {
      out.push_back(cat(taint["key"].as_string(), "=", taint["value"].as_string(), ":",
                        taint["effect"].as_string()));
    }
    return out;
  }
  json::Value ledger() {
    const auto text = world.files->read(kLedger);
    return text ? *json::parse(*text) : json::Value();
  }

  test::Machine machine;
  test::Programs programs;
  driver::test::TestWorld world;
  NvidiaDriverOptions options;
  driver::Running running;
};

}  // namespace dibs::drivers::nvidia
