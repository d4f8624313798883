#pragma once
// For tests of the driver's objects: a cluster of some release, and a way to it that dies at a
// write.

#include <memory>
#include <optional>
#include <string>

#include "base/strings.h"
#include "driver/test_world.h"
#include "drivers/net/objects/install.h"
#include "drivers/net/objects/reconciler.h"

namespace dibs::drivers::net::test {

using cluster::test::from_text;
using json::Value;

inline const client::Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
inline const client::Gvr kDeviceClasses = {"resource.k8s.io", "v1", "deviceclasses"};
inline const client::Gvr kConfigMaps = {"", "v1", "configmaps"};

inline cluster::Options options_of(const std::string& release) {
  cluster::Options options;
  options.server.release = release;
  if (release == "1.27" || release == "1.30") {
    options.server.feature_gates = "DynamicResourceAllocation=true";
    options.server.runtime_config = "resource.k8s.io/v1alpha2=true";
  }
  return options;
}

class ObjectsWorld : public driver::test::TestWorld {
 public:
  explicit ObjectsWorld(const std::string& release = "") : TestWorld(options_of(release)) {}

  /// Until it says that it is done.
  void install_all() {
    for (int i = 0; i < 100; ++i) {
      const auto installed = install(*api);
      if (installed) return;
      ASSERT_EQ(installed.error().code(), Code::unavailable) << installed.error().message();
      settle();
    }
    FAIL() << "never established";
  }

  Result<Value> make_config(const std::string& name, const std::string& spec,
                            const std::string& annotations = "") {
    return api->create(kMultusConfigs, "kube-system",
                       from_text(cat("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': "
                                     "'SpiderMultusConfig', 'metadata': {'name': '",
                                     name, "', 'namespace': 'kube-system', 'annotations': {",
                                     annotations, "}}, 'spec': {", spec, "}}")));
  }
  Result<Value> make_pool(const std::string& name, const std::string& spec) {
    return api->create(kIpPools, "",
                       from_text(cat("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': "
                                     "'SpiderIPPool', 'metadata': {'name': '",
                                     name, "'}, 'spec': {", spec, "}}")));
  }
  Result<Value> make_parameter(const std::string& name, const std::string& rest) {
    return api->create(kClaimParameters, "default",
                       from_text(cat("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': "
                                     "'SpiderClaimParameter', 'metadata': {'name': '",
                                     name, "'}", rest, "}")));
  }
  Value definition(const std::string& name) { return get(kNetAttachDefs, "kube-system", name); }
  Value device_class(const std::string& config) {
    return get(kDeviceClasses, "", config + ".kube-system.cni.spidernet.io");
  }

  std::unique_ptr<Reconciler> reconcile() { return Reconciler::start(environment()); }
  std::unique_ptr<Reconciler> reconcile_by(client::Client& client) {
    return Reconciler::start({client, sim.runtime(), *files, nullptr, {}});
  }
  client::Transport& way() { return *transport_; }
};

/// From the n-th write on nothing gets through, as for a process that is killed; that write itself
/// may still arrive. Events do not count, nor do updates of kinds, which change nothing.
class DyingWay : public client::Transport {
 public:
  DyingWay(client::Transport& inner, int writes, bool arrives)
      : inner_(inner), left_(writes), arrives_(arrives) {}

  bool died() const { return dead_; }

  Result<client::Response> send(client::Request request) override {
    if (dead_) return lost();
    if (counts(request) && left_-- == 0) {
      dead_ = true;
      if (arrives_) (void)inner_.send(std::move(request));
      return lost();
    }
    return inner_.send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    if (!dead_) inner_.send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    if (dead_) return nullptr;
    return inner_.open_stream(std::move(request), std::move(handlers));
  }

 private:
  static bool counts(const client::Request& request) {
    const auto names = [&](std::string_view part) {
      return request.target.find(part) != std::string::npos;
    };
    if (request.method == "PUT" && names("/customresourcedefinitions/")) return false;
    return request.method != "GET" && !names("/events");
  }
  static Error lost() { return Error::unavailable("connection lost"); }

  client::Transport& inner_;
  int left_;
  const bool arrives_;
  bool dead_ = false;
};

}  // namespace dibs::drivers::net::test
