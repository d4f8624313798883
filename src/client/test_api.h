#pragma once
// For tests of what stands on this library: a whole API server over a memory store and a client of
// it, in one thread, under virtual time. Tests of a component derive a cluster from it that also
// has the component.
//
// The destructor of such a cluster stops its component, then calls close(): answers may still be on
// their way to members of it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "client/client.h"
#include "client/transport.h"
#include "json/test_text.h"
#include "runtime/sim_runtime.h"
#include "server/api_server.h"
#include "store/memory_store.h"

namespace dibs::client::test {

using json::test::from_text;

/// A way on which nothing but HTTP gets through, as to a server elsewhere.
class RemoteTransport : public Transport {
 public:
  explicit RemoteTransport(Transport& inner) : inner_(inner) {}

  Result<Response> send(Request request) override { return inner_.send(http(std::move(request))); }
  void send_async(Request request, std::function<void(Result<Response>)> done) override {
    inner_.send_async(http(std::move(request)), std::move(done));
  }
  std::unique_ptr<TransportStream> open_stream(Request request, StreamHandlers handlers) override {
    handlers.event = nullptr;
    return inner_.open_stream(http(std::move(request)), std::move(handlers));
  }

 private:
  static Request http(Request request) {
    request.write_body();
    net::Request& plain = request;
    return {std::move(plain)};
  }

  Transport& inner_;
};

class TestApi {
 public:
  explicit TestApi(server::Options options = {}, const runtime::SimOptions& world = {})
      : sim(world), store_(store::make_memory_store({})) {
    auto opened = server::ApiServer::open(sim.runtime(), *store_, std::move(options));
    if (!opened) {
      ADD_FAILURE() << opened.error().message();
      std::abort();
    }
    server_ = std::move(opened).value();
    transport_ = connect();
    remote_ = std::make_unique<RemoteTransport>(*transport_);
    api = std::make_unique<Client>(*transport_);
  }
  ~TestApi() { close(); }
  TestApi(const TestApi&) = delete;
  TestApi& operator=(const TestApi&) = delete;

  std::unique_ptr<Transport> connect(InProcessIdentity identity = {}) {
    InProcessOptions in_process;
    in_process.identity = std::move(identity);
    in_process.trees = server_->trees();
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    return make_in_process_transport(server_->handler(), sim.runtime(), in_process);
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
    WriteOptions options;
    options.subresource = subresource;
    return expect(api->patch(gvr, name_space, name, PatchType::merge, from_text(text), options));
  }
  json::Value remove(const Gvr& gvr, const std::string& name_space, const std::string& name,
                     const DeleteOptions& options = {}) {
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

 protected:
  /// Ends the server, and lets happen what is still on its way.
  void close() {
    if (std::exchange(closed_, true)) return;
    server_->close();
    sim.run_until_idle();
  }
  /// The answer; an error fails the test.
  static json::Value expect(Result<json::Value> answer) {
    if (!answer) {
      ADD_FAILURE() << answer.error().message();
      return {};
    }
    return std::move(answer).value();
  }

  bool closed_ = false;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<server::ApiServer> server_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Transport> remote_;

 public:
  std::unique_ptr<Client> api;
};

}  // namespace dibs::client::test
