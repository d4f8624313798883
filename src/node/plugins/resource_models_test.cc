#include "node/plugins/resource_models.h"

#include <gmock/gmock.h>

#include <set>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "client/transport.h"
#include "json/parse.h"
#include "proto/dra_v1alpha3.pb.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
namespace old = v1alpha3;

struct Offer {
  class Channel : public rpc::Channel {
   public:
    explicit Channel(Offer& offer) : offer_(offer) {}
    rpc::Reply call(const std::string&, std::string_view, Duration) override { return {}; }
    std::unique_ptr<rpc::Stream> open_stream(const std::string&, std::string_view,
                                             rpc::StreamHandlers handlers) override {
      ++offer_.opened;
      offer_.handlers = std::move(handlers);
      return std::make_unique<rpc::Stream>();
    }
    void watch_connection(std::function<void(bool)>) override {}

   private:
    Offer& offer_;
  };

  /// One model with one instance of each name.
  void send(const std::vector<std::string>& names) const {
    old::NodeListAndWatchResourcesResponse response;
    for (const auto& name : names) {
      auto* instance = response.add_resources()->mutable_named_resources()->add_instances();
      instance->set_name(name);
      auto* attribute = instance->add_attributes();
      attribute->set_name("size");
      attribute->mutable_attribute_value()->mutable_quantity()->set_string("1Gi");
    }
    handlers.message(response.SerializeAsString());
  }

  int opened = 0;
  rpc::StreamHandlers handlers;
};

class Models : public testing::Test {
 protected:
  Models() : metrics(nullptr) {
    client::InProcessOptions in_process;
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    transport = client::make_in_process_transport(api.handler(), sim.runtime(), in_process);
    client = std::make_unique<client::Client>(*transport);
    models = std::make_unique<ResourceModels>(
        "node-0", *client, sim.runtime(),
        [this](const std::string& driver) { return registered.count(driver) != 0; });
    api.put("/api/v1/nodes/node-0",
            *json::parse(R"({"kind":"Node","metadata":{"name":"node-0","uid":"node-uid"}})"));
    plugin = instance("/d.sock");
    models->add(plugin);
    sim.run_until_idle();
  }
  std::shared_ptr<DraPlugin> instance(const std::string& socket) {
    Negotiated spoken;
    spoken.semver = "1.0.0";
    return std::make_shared<DraPlugin>(PluginInfo{"DRAPlugin", "d.example.com", socket, {}}, spoken,
                                       std::make_unique<Offer::Channel>(offer), sim.runtime().clock,
                                       metrics);
  }
  /// As an agent or a user before left it.
  void put_slice(const std::string& name, const std::string& driver) {
    api.put(cat(kSlicesPath, name),
            json::Value::object({{"apiVersion", "resource.k8s.io/v1alpha2"},
                                 {"kind", "ResourceSlice"},
                                 {"metadata", json::Value::object({{"name", name}})},
                                 {"nodeName", "node-0"},
                                 {"driverName", driver},
                                 {"namedResources", json::Value::object()}}));
  }
  ~Models() override { models->stop(); }

  std::vector<std::string> slices() {
    std::vector<std::string> out;
    const auto list = client->list({"resource.k8s.io", "v1alpha2", "resourceslices"}, "");
    for (const auto& slice : list->items) {
      out.push_back(cat(slice["driverName"].as_string(), " ", slice["nodeName"].as_string(), " ",
                        json::write(slice["namedResources"]["instances"][0])));
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  static std::string row(const std::string& name) {
    return cat("d.example.com node-0 {\"name\":\"", name,
               "\",\"attributes\":[{\"name\":\"size\",\"quantity\":\"1Gi\"}]}");
  }

  static constexpr const char* kSlicesPath = "/apis/resource.k8s.io/v1alpha2/resourceslices/";
  runtime::SimRuntime sim;
  client::FakeApi api;
  std::set<std::string> registered = {"d.example.com"};
  PluginMetrics metrics;
  Offer offer;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
  std::shared_ptr<DraPlugin> plugin;
  std::unique_ptr<ResourceModels> models;
};

TEST_F(Models, become_slices_and_follow_the_driver) {
  offer.send({"a"});
  sim.advance(1s);
  EXPECT_THAT(slices(), ElementsAre(row("a")));
  offer.send({"b"});
  sim.advance(1s);
  EXPECT_THAT(slices(), ElementsAre(row("b")));
  offer.send({});
  sim.advance(1s);
  EXPECT_THAT(slices(), IsEmpty());
}

TEST_F(Models, go_when_the_driver_deregisters) {
  offer.send({"a"});
  sim.advance(1s);

  models->remove(plugin);
  sim.advance(1s);

  EXPECT_THAT(slices(), IsEmpty());
}

TEST_F(Models, stay_while_another_instance_is_there) {
  const auto second = instance("/e.sock");
  models->add(second);
  sim.run_until_idle();
  offer.send({"a"});
  sim.advance(1s);

  models->remove(plugin);
  sim.advance(1s);

  EXPECT_THAT(slices(), ElementsAre(row("a")));
}

TEST_F(Models, come_back_when_somebody_deletes_them) {
  offer.send({"a"});
  sim.advance(1s);
  const auto list = client->list({"resource.k8s.io", "v1alpha2", "resourceslices"}, "");
  api.remove(cat(kSlicesPath, list->items[0]["metadata"]["name"].as_string()));
  sim.advance(1s);
  EXPECT_THAT(slices(), ElementsAre(row("a")));
}

TEST_F(Models, of_drivers_that_do_not_come_back_go) {
  registered.insert("silent.example.com");
  put_slice("old", "gone.example.com");
  put_slice("kept", "silent.example.com");
  models->clean_up();
  sim.advance(29s);
  EXPECT_EQ(slices().size(), 2U);
  sim.advance(2s);
  EXPECT_THAT(slices(), ElementsAre(testing::StartsWith("silent.example.com")));

  put_slice("new", "gone.example.com");
  sim.advance(1s);
  EXPECT_THAT(slices(), ElementsAre(testing::StartsWith("silent.example.com")));
}

TEST_F(Models, of_others_stay_where_drivers_publish_themselves) {
  put_slice("other", "gone.example.com");
  offer.send({"a"});
  sim.advance(60s);
  EXPECT_EQ(slices().size(), 2U);
}

TEST_F(Models, a_broken_stream_is_opened_again_and_one_that_ended_is_not) {
  offer.handlers.ended({rpc::Code::unavailable, ""});
  sim.advance(6s);
  EXPECT_EQ(offer.opened, 2);
  offer.handlers.ended({rpc::Code::unimplemented, ""});
  sim.advance(60s);
  EXPECT_EQ(offer.opened, 2);
}

}  // namespace
}  // namespace dibs::node
