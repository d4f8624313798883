#pragma once
// For tests of the node's half: machines with made-up hardware in a cluster under virtual time,
// with the cluster's half beside them.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "drivers/net/control/test_control.h"
#include "drivers/net/host/testing/fake_host.h"
#include "drivers/net/node/node_half.h"
#include "proto/dra_v1alpha3.pb.h"

namespace dibs::drivers::net::test {

class NodeWorld : public ControlWorld {
 public:
  explicit NodeWorld(const std::string& release = "") : ControlWorld(release) {}
  ~NodeWorld() { nodes_.clear(); }

  /// The machine of the node, to be furnished before it starts.
  FakeHost& host(const std::string& node) {
    auto& made = hosts_[node];
    if (!made) made = std::make_unique<FakeHost>();
    return *made;
  }

  NodeHalfOptions options_of_node(const std::string& node) {
    NodeHalfOptions options = options_for_node(node, "/" + node);
    const FactsOptions facts = host(node).options(node);
    options.roots = facts.roots;
    options.recorded_links = cat("/", node, "/links.json");
    return options;
  }

  driver::Plugin& start_node(const std::string& node) { return start_node(options_of_node(node)); }
  driver::Plugin& start_node(const NodeHalfOptions& options) {
    const std::string& node = options.node_name;
    EXPECT_TRUE(files->make_dirs(options.registry_dir).ok());
    host(node).record();
    const auto links = runtime::system_files().read(host(node).path() + "/links.json");
    EXPECT_TRUE(links.ok());
    EXPECT_TRUE(files->write(options.recorded_links, *links).ok());
    nodes_.erase(node);
    auto started = start_node_half(environment(), options);
    EXPECT_TRUE(started.ok()) << (started ? "" : started.error().message());
    nodes_[node] = std::move(started).value();
    settle(std::chrono::seconds(3));
    return *nodes_[node].plugin;
  }
  void stop_node(const std::string& node) { nodes_.erase(node); }

  std::vector<std::string> cdi_files(const std::string& node) {
    const auto listed = files->list(cat("/", node, "/cdi"));
    return listed ? *listed : std::vector<std::string>();
  }
  std::string cdi_text(const std::string& node, std::string_view driver, const std::string& uid) {
    const auto text = files->read(cat("/", node, "/cdi/k8s.", driver, "-claim_", uid, ".yaml"));
    return text ? *text : "";
  }

  /// A classic claim; "" and the error where it is refused.
  std::string prepare_classic(const driver::Plugin& plugin, const Value& claim) {
    v1alpha3::NodePrepareResourcesRequest request;
    auto* entry = request.add_claims();
    entry->set_namespace_("default");
    entry->set_name(claim["metadata"]["name"].str());
    entry->set_uid(claim["metadata"]["uid"].str());
    entry->set_resource_handle("x");
    const auto channel = network.connect(plugin.service_socket());
    const auto reply = channel->call("/v1alpha3.Node/NodePrepareResources",
                                     request.SerializeAsString(), std::chrono::seconds(45));
    if (!reply.status.ok()) return cat("error: ", reply.status.message);
    v1alpha3::NodePrepareResourcesResponse response;
    EXPECT_TRUE(response.ParseFromString(reply.bytes));
    const auto& answer = response.claims().at(claim["metadata"]["uid"].str());
    if (!answer.error().empty()) return cat("error: ", answer.error());
    std::string ids;
    for (const auto& id : answer.cdi_devices()) append(ids, ids.empty() ? "" : " ", id);
    return ids;
  }

  /// A classic claim that is allocated with this handle.
  Value allocated_classic(const std::string& name, const std::string& handle,
                          const std::string& more = "") {
    Value claim =
        create(driver::kClassicClaims, "default",
               cat("{'metadata': {'name': '", name,
                   "'}, 'spec': {'resourceClassName': 'netresources.spidernet.io'", more, "}}"));
    Value status = from_text("{'driverName': 'netresources.spidernet.io', 'allocation': {}}");
    if (!handle.empty()) {
      status.mut("allocation")
          .set("resourceHandles",
               Value::array({Value::object({{"driverName", "netresources.spidernet.io"},
                                            {"data", json::write(from_text(handle))}})}));
    }
    claim.set("status", std::move(status));
    return expect(api->update_status(driver::kClassicClaims, "default", claim));
  }

 private:
  std::map<std::string, std::unique_ptr<FakeHost>> hosts_;
  std::map<std::string, driver::Running> nodes_;
};

}  // namespace dibs::drivers::net::test
