#pragma once
// For tests of this library: an API server and all controllers in one thread, under virtual time.
//
//   TestCluster cluster;
//   cluster.create(kPods, "default", R"({'metadata': {'name': 'a'}, …})");
//   cluster.settle();

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/transport.h"
#include "controllers/controllers.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"
#include "server/api_server.h"
#include "store/memory_store.h"

namespace dibs::controllers::test {

/// JSON with ' in place of ".
inline Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  auto value = json::parse(text);
  if (!value) {
    ADD_FAILURE() << value.error().message() << " in " << text;
    return {};
  }
  return std::move(value).value();
}

class TestCluster {
 public:
  explicit TestCluster(server::Options options = {}, ControllersOptions controllers_options = {})
      : store_(store::make_memory_store({})) {
    auto opened = server::ApiServer::open(sim.runtime(), *store_, std::move(options));
    if (!opened) {
      ADD_FAILURE() << opened.error().message();
      std::abort();
    }
    server_ = std::move(opened).value();
    client::InProcessOptions in_process;
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    transport_ = client::make_in_process_transport(server_->handler(), sim.runtime(), in_process);
    api = std::make_unique<client::Client>(*transport_);
    if (controllers_options.ca_pem.empty()) controllers_options.ca_pem = "CA";
    controllers = std::make_unique<Controllers>(*api, sim.runtime(), controllers_options);
    controllers->start();
    settle();
  }

  ~TestCluster() {
    controllers->stop();
    controllers.reset();
    server_->close();
    sim.run_until_idle();
  }

  /// Lets a second pass; enough for everything that waits for nobody.
  void settle(Duration time = std::chrono::seconds(1)) { sim.advance(time); }

  Value create(const Gvr& gvr, const std::string& name_space, const std::string& text) {
    return create_object(gvr, name_space, from_text(text));
  }
  Value create_object(const Gvr& gvr, const std::string& name_space, const Value& object) {
    return expect(api->create(gvr, name_space, object));
  }
  Value get(const Gvr& gvr, const std::string& name_space, const std::string& name) {
    auto found = api->get(gvr, name_space, name);
    return found ? *found : Value();
  }
  std::vector<Value> list(const Gvr& gvr, const std::string& name_space) {
    auto found = api->list(gvr, name_space);
    return found ? found->items : std::vector<Value>();
  }
  std::vector<std::string> names(const Gvr& gvr, const std::string& name_space) {
    std::vector<std::string> out;
    for (const auto& item : list(gvr, name_space)) out.emplace_back(name_of(item));
    return out;
  }
  Value patch(const Gvr& gvr, const std::string& name_space, const std::string& name,
              const std::string& text, const std::string& subresource = "") {
    client::WriteOptions options;
    options.subresource = subresource;
    return expect(
        api->patch(gvr, name_space, name, client::PatchType::merge, from_text(text), options));
  }
  Value remove(const Gvr& gvr, const std::string& name_space, const std::string& name,
               const std::string& propagation = "") {
    client::DeleteOptions options;
    options.propagation = propagation;
    return expect(api->remove(gvr, name_space, name, options));
  }
  void add_namespace(const std::string& name) {
    create(kNamespaces, "", "{'metadata': {'name': '" + name + "'}}");
    settle();
  }
  /// "type reason note" of the events about an object.
  std::vector<std::string> events(const std::string& name_space, const std::string& name) {
    std::vector<std::string> out;
    for (const auto& event : list({"events.k8s.io", "v1", "events"}, name_space)) {
      if (event["regarding"]["name"].as_string() != name) continue;
      out.push_back(event["type"].str() + " " + event["reason"].str() + " " + event["note"].str());
    }
    return out;
  }

  runtime::SimRuntime sim;

 private:
  static Value expect(Result<Value> answer) {
    if (!answer) {
      ADD_FAILURE() << answer.error().message();
      return {};
    }
    return std::move(answer).value();
  }

  std::unique_ptr<store::Store> store_;
  std::unique_ptr<server::ApiServer> server_;
  std::unique_ptr<client::Transport> transport_;

 public:
  std::unique_ptr<client::Client> api;
  std::unique_ptr<Controllers> controllers;
};

inline const Gvr kConfigMaps = {"", "v1", "configmaps"};
inline const Gvr kAccounts = {"", "v1", "serviceaccounts"};

}  // namespace dibs::controllers::test
