#pragma once
// For tests of anything that needs an API server: a cluster over a memory store and a client of it,
// in one thread, under virtual time, with those parts that the options name. Tests of a component
// that they kill and start again derive from it and have the component themselves.
//
// The destructor of such a cluster stops its component, then calls close(): answers may still be on
// their way to members of it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "cluster/cluster.h"
#include "json/test_text.h"
#include "runtime/sim_runtime.h"
#include "store/memory_store.h"

namespace dibs::cluster::test {

using client::Gvr;
using json::test::from_text;

/// A way on which nothing but HTTP gets through, as to a server elsewhere.
class RemoteTransport : public client::Transport {
 public:
  explicit RemoteTransport(client::Transport& inner) : inner_(inner) {}

  Result<client::Response> send(client::Request request) override {
    return inner_.send(http(std::move(request)));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    inner_.send_async(http(std::move(request)), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    handlers.event = nullptr;
    return inner_.open_stream(http(std::move(request)), std::move(handlers));
  }

 private:
  static client::Request http(client::Request request) {
    request.write_body();
    net::Request& plain = request;
    return {std::move(plain)};
  }

  client::Transport& inner_;
};

class TestCluster {
 public:
  explicit TestCluster(Options options = {}, const runtime::SimOptions& world = {})
      : sim(world), files(runtime::make_memory_files()) {
    auto started =
        Cluster::start(sim_world(sim, *files), store::make_memory_store({}), std::move(options));
    if (!started) {
      ADD_FAILURE() << started.error().message();
      std::abort();
    }
    cluster_ = std::move(started).value();
    api = &cluster_->client();
    transport_ = connect();
    remote_ = std::make_unique<RemoteTransport>(*transport_);
  }
  explicit TestCluster(server::Options options) : TestCluster(Options{std::move(options)}) {}
  ~TestCluster() { close(); }
  TestCluster(const TestCluster&) = delete;
  TestCluster& operator=(const TestCluster&) = delete;

  std::unique_ptr<client::Transport> connect(const client::InProcessIdentity& identity = {}) {
    return cluster_->connect(identity);
  }

  json::Value create(const Gvr& gvr, const std::string& name_space, const std::string& text) {
    return expect(api->create(gvr, name_space, from_text(text)));
  }
  /// Null when there is none.
  json::Value get(const Gvr& gvr, const std::string& name_space, const std::string& name) {
    auto found = api->get(gvr, name_space, name);
    return found ? *found : json::Value();
  }
  std::vector<json::Value> list(const Gvr& gvr, const std::string& name_space) {
    auto found = api->list(gvr, name_space);
    return found ? found->items : std::vector<json::Value>();
  }
  json::Value patch(const Gvr& gvr, const std::string& name_space, const std::string& name,
                    const std::string& text, const std::string& subresource = "") {
    client::WriteOptions options;
    options.subresource = subresource;
    return expect(
        api->patch(gvr, name_space, name, client::PatchType::merge, from_text(text), options));
  }
  json::Value remove(const Gvr& gvr, const std::string& name_space, const std::string& name,
                     const client::DeleteOptions& options = {}) {
    return expect(api->remove(gvr, name_space, name, options));
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
  std::unique_ptr<runtime::Files> files;
  client::Client* api = nullptr;

 protected:
  /// Ends the cluster, and lets happen what is still on its way.
  void close() { cluster_->stop(); }
  /// The answer; an error fails the test.
  static json::Value expect(Result<json::Value> answer) {
    if (!answer) {
      ADD_FAILURE() << answer.error().message();
      return {};
    }
    return std::move(answer).value();
  }

  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<client::Transport> transport_;  // of system:admin
  std::unique_ptr<client::Transport> remote_;
};

}  // namespace dibs::cluster::test
