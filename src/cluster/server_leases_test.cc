#include "server/server_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "client/client.h"
#include "runtime/sim_runtime.h"
#include "server/api_server.h"
#include "store/memory_store.h"
#include "store/test_shared_store.h"

namespace dibs::cluster {
namespace {

using json::Value;
using server::ApiServer;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

class ServerLeasesTest : public testing::Test {
 protected:
  /// One server with its view of the store, and a client of it.
  struct One {
    std::unique_ptr<store::Store> store;
    std::unique_ptr<ApiServer> server;
    std::unique_ptr<client::Transport> transport;
  };

  Result<std::unique_ptr<One>> open(std::unique_ptr<store::Store> store,
                                    const std::string& advertise, const std::string& ca = "CA",
                                    const std::string& pods_place = "") {
    auto one = std::make_unique<One>();
    one->store = std::move(store);
    server::Options options;
    options.advertise = advertise;
    options.ca_pem = ca;
    options.pods_place = pods_place;
    DIBS_TRY(one->server, ApiServer::open(sim.runtime(), *one->store, options));
    client::InProcessOptions how;
    how.pump = [this] { return sim.run_until_idle() > 0; };
    one->transport = client::make_in_process_transport(one->server->handler(), sim.runtime(), how);
    return one;
  }
  std::unique_ptr<One> started(const std::string& advertise) {
    auto one = open(log.open(), advertise);
    EXPECT_TRUE(one.ok()) << one.error().message();
    return one.ok() ? std::move(one).value() : nullptr;
  }
  void end(std::unique_ptr<One>& one) {
    one->server->retire();
    sim.run_until_idle();
    one->server->close();
    one->transport.reset();
    sim.run_until_idle();
    one.reset();
  }

  std::vector<std::string> slice(One& one) {
    sim.run_until_idle();
    client::Client client(*one.transport);
    const auto found =
        client.get({"discovery.k8s.io", "v1", "endpointslices"}, "default", "kubernetes");
    std::vector<std::string> out;
    if (!found.ok()) return {found.error().message()};
    for (const Value& endpoint : (*found)["endpoints"].items())
      out.push_back(endpoint["addresses"][0].str());
    return out;
  }
  std::vector<std::string> endpoints(One& one) {
    sim.run_until_idle();
    client::Client client(*one.transport);
    const auto found = client.get({"", "v1", "endpoints"}, "default", "kubernetes");
    std::vector<std::string> out;
    if (!found.ok()) return {found.error().message()};
    for (const Value& address : (*found)["subsets"][0]["addresses"].items())
      out.push_back(address["ip"].str());
    return out;
  }

  std::int64_t port(One& one) {
    sim.run_until_idle();
    client::Client client(*one.transport);
    const auto found =
        client.get({"discovery.k8s.io", "v1", "endpointslices"}, "default", "kubernetes");
    return found.ok() ? (*found)["ports"][0]["port"].as_int() : -1;
  }

  runtime::SimRuntime sim;
  store::testing::SharedLog log{sim.runtime()};
};

TEST_F(ServerLeasesTest, names_all_servers_that_live) {
  auto a = started("10.1.0.1:6443");
  EXPECT_THAT(slice(*a), ElementsAre("10.1.0.1"));
  auto b = started("10.1.0.2:6443");
  EXPECT_THAT(slice(*a), ElementsAre("10.1.0.1", "10.1.0.2"));
  EXPECT_THAT(endpoints(*b), ElementsAre("10.1.0.1", "10.1.0.2"));
  EXPECT_TRUE(log.get("/registry/masterleases/10.1.0.1") != nullptr);
  sim.advance(seconds(120));
  EXPECT_THAT(endpoints(*a), ElementsAre("10.1.0.1", "10.1.0.2"));
  const auto before = log.get("/registry/services/endpoints/default/kubernetes");
  sim.advance(seconds(120));
  if (before) {
    EXPECT_EQ(log.get("/registry/services/endpoints/default/kubernetes")->modified,
              before->modified);
  }
  // One that ends takes itself out at once.
  end(b);
  EXPECT_THAT(slice(*a), ElementsAre("10.1.0.1"));
  EXPECT_TRUE(log.get("/registry/masterleases/10.1.0.2") == nullptr);
  end(a);
}

TEST_F(ServerLeasesTest, forgets_a_server_that_is_silent) {
  auto a = started("10.1.0.1:6443");
  auto b = started("10.1.0.2:6443");
  // As one that was killed leaves it.
  ASSERT_TRUE(
      log.commit({{"/registry/masterleases/10.1.0.3", share(std::string("k8s")), {}}}).ok());
  sim.advance(seconds(11));
  EXPECT_THAT(slice(*a), ElementsAre("10.1.0.1", "10.1.0.2", "10.1.0.3"));
  sim.advance(seconds(30));
  EXPECT_THAT(slice(*a), ElementsAre("10.1.0.1", "10.1.0.2"));
  EXPECT_THAT(endpoints(*b), ElementsAre("10.1.0.1", "10.1.0.2"));
  end(b);
  end(a);
}

TEST_F(ServerLeasesTest, does_not_begin_beside_a_server_of_another_authority) {
  auto a = started("10.1.0.1:6443");
  const auto refused = open(log.open(), "10.1.0.2:6443", "another");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("dibs pki import"));
  EXPECT_TRUE(log.get("/registry/masterleases/10.1.0.2") == nullptr);
  end(a);
}

TEST_F(ServerLeasesTest, tells_nobody_of_a_loopback_address) {
  auto a = started("127.0.0.1:6443");
  auto b = started("127.0.0.1:7443");
  sim.advance(seconds(60));
  EXPECT_THAT(slice(*b), ElementsAre("127.0.0.1"));
  EXPECT_TRUE(log.range("/registry/masterleases/").records.empty());
  end(b);
  end(a);
}

TEST_F(ServerLeasesTest, lead_pods_of_this_machine_to_the_address_and_port_of_now) {
  auto a = open(log.open(), "127.0.0.1:6443", "CA", "10.130.0.1:6443");
  ASSERT_TRUE(a.ok());
  EXPECT_THAT(slice(**a), ElementsAre("10.130.0.1"));
  EXPECT_TRUE(log.range("/registry/masterleases/").records.empty());
  end(*a);
  auto again = open(log.open(), "127.0.0.1:7443", "CA", "10.130.0.1:7443");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(port(**again), 7443);
  EXPECT_THAT(endpoints(**again), ElementsAre("10.130.0.1"));
  // Who is there for everybody goes before, and stays.
  auto b = started("10.1.0.2:6443");
  EXPECT_THAT(slice(*b), ElementsAre("10.1.0.2"));
  end(*again);
  auto third = open(log.open(), "127.0.0.1:8443", "CA", "10.130.0.1:8443");
  ASSERT_TRUE(third.ok());
  EXPECT_THAT(slice(**third), ElementsAre("10.1.0.2"));
  // One that others reach says so, whatever pods of its machine could use.
  auto c = open(log.open(), "10.1.0.3:6443", "CA", "10.130.0.1:6443");
  ASSERT_TRUE(c.ok());
  EXPECT_THAT(slice(**c), ElementsAre("10.1.0.2", "10.1.0.3"));
  end(*c);
  end(*third);
  end(b);
}

TEST_F(ServerLeasesTest, follow_the_address_where_a_store_has_one_owner) {
  auto a = open(store::make_memory_store({}), "10.1.0.1:6443");
  ASSERT_TRUE(a.ok());
  EXPECT_THAT(slice(**a), ElementsAre("10.1.0.1"));
  (*a)->server->close();
  (*a)->transport.reset();
  sim.run_until_idle();
  (*a)->server.reset();
  auto again = open(std::move((*a)->store), "10.1.0.9:6443");
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(slice(**again), ElementsAre("10.1.0.9"));
  EXPECT_THAT(endpoints(**again), ElementsAre("10.1.0.9"));
  end(*again);
}

TEST_F(ServerLeasesTest, say_on_readyz_that_it_ends) {
  auto a = started("10.1.0.1:6443");
  const auto ready = [&](const char* path) {
    const auto answer = a->transport->send(client::make_request("GET", path));
    return answer.ok() ? cat(answer->status, " ", answer->body) : answer.error().message();
  };
  EXPECT_EQ(ready("/readyz"), "200 ok");
  EXPECT_EQ(ready("/readyz/shutdown"), "200 ok");
  a->server->retire();
  EXPECT_THAT(ready("/readyz"), HasSubstr("[-]shutdown failed: process is shutting down"));
  EXPECT_EQ(ready("/livez"), "200 ok");
  EXPECT_THAT(slice(*a), ElementsAre("10.1.0.1"));
  end(a);
}

}  // namespace
}  // namespace dibs::cluster
