#pragma once
// For tests of this library: an API server and all controllers in one thread, under virtual time.
//
//   TestCluster cluster;
//   cluster.create(kPods, "default", R"({'metadata': {'name': 'a'}, …})");
//   cluster.settle();

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cluster/test_cluster.h"
#include "controllers/controllers.h"

namespace dibs::controllers::test {

using cluster::test::from_text;

class TestCluster : public cluster::test::TestCluster {
 public:
  /// `remote`: the controllers' way to the server is HTTP alone.
  explicit TestCluster(server::Options options = {}, bool remote = false)
      : cluster::test::TestCluster(with_controllers(std::move(options), !remote)),
        controllers(cluster_->controllers()) {
    if (remote) {
      way_ = std::make_unique<client::Client>(*remote_);
      ControllersOptions own;
      own.ca_pem = "CA";
      own_ = std::make_unique<Controllers>(*way_, sim.runtime(), own);
      own_->start();
      controllers = own_.get();
    }
    settle();
  }

  ~TestCluster() {
    if (own_) own_->stop();
    own_.reset();
    close();
  }

  /// Lets a second pass; enough for everything that waits for nobody.
  void settle(Duration time = std::chrono::seconds(1)) { sim.advance(time); }

  Value create_object(const Gvr& gvr, const std::string& name_space, const Value& object) {
    return expect(api->create(gvr, name_space, object));
  }
  std::vector<std::string> names(const Gvr& gvr, const std::string& name_space) {
    std::vector<std::string> out;
    for (const auto& item : list(gvr, name_space)) out.emplace_back(name_of(item));
    return out;
  }
  Value remove(const Gvr& gvr, const std::string& name_space, const std::string& name,
               const std::string& propagation = "") {
    client::DeleteOptions options;
    options.propagation = propagation;
    return cluster::test::TestCluster::remove(gvr, name_space, name, options);
  }
  void add_namespace(const std::string& name) {
    create(kNamespaces, "", "{'metadata': {'name': '" + name + "'}}");
    settle();
  }

  Controllers* controllers;

 private:
  static cluster::Options with_controllers(server::Options server, bool in_process) {
    if (server.ca_pem.empty()) server.ca_pem = "CA";
    cluster::Options options;
    options.server = std::move(server);
    if (in_process) options.controllers.emplace();
    return options;
  }

  std::unique_ptr<client::Client> way_;  // of those below
  std::unique_ptr<Controllers> own_;     // where the cluster has none
};

inline const Gvr kConfigMaps = {"", "v1", "configmaps"};
inline const Gvr kAccounts = {"", "v1", "serviceaccounts"};

}  // namespace dibs::controllers::test
