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

#include "client/test_api.h"
#include "controllers/controllers.h"

namespace dibs::controllers::test {

using client::test::from_text;

class TestCluster : public client::test::TestApi {
 public:
  /// `remote`: the controllers' way to the server is HTTP alone.
  explicit TestCluster(server::Options options = {}, ControllersOptions controllers_options = {},
                       bool remote = false)
      : TestApi(std::move(options)), way_(remote ? *remote_ : *transport_) {
    if (controllers_options.ca_pem.empty()) controllers_options.ca_pem = "CA";
    controllers = std::make_unique<Controllers>(way_, sim.runtime(), controllers_options);
    controllers->start();
    settle();
  }

  ~TestCluster() {
    controllers->stop();
    controllers.reset();
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
    return TestApi::remove(gvr, name_space, name, options);
  }
  void add_namespace(const std::string& name) {
    create(kNamespaces, "", "{'metadata': {'name': '" + name + "'}}");
    settle();
  }

  std::unique_ptr<Controllers> controllers;

 private:
  client::Client way_;
};

inline const Gvr kConfigMaps = {"", "v1", "configmaps"};
inline const Gvr kAccounts = {"", "v1", "serviceaccounts"};

}  // namespace dibs::controllers::test
