#include "proxy/proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/testing/fake_api.h"
#include "json/yaml.h"
#include "proxy/test_kernel.h"
#include "runtime/sim_runtime.h"

namespace dibs::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

json::Value yaml(const std::string& text) { return *json::parse_yaml(text); }

struct ProxyTest : testing::Test {
  runtime::SimRuntime sim;
  client::FakeApi api;
  std::unique_ptr<client::Transport> transport =
      client::make_in_process_transport(api.handler(), sim.runtime());
  client::Client client{*transport};
  test::Kernel kernel;
  std::unique_ptr<Proxy> proxy;

  void put_service(const std::string& name, const std::string& address,
                   const std::string& more = "") {
    api.put(cat("/api/v1/namespaces/a/services/", name),
            yaml(cat("{apiVersion: v1, kind: Service, metadata: {name: ", name,
                     ", namespace: a, uid: ", name, "}, spec: {clusterIP: ", address,
                     ", ports: [{name: p, protocol: TCP, port: 80}]", more, "}}")));
  }
  void put_slice(const std::string& service, const std::string& address,
                 const std::string& node = "node-0") {
    api.put(cat("/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/", service, "-1"),
            yaml(cat("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: ",
                     service, "-1, namespace: a, uid: ", service,
                     "-1, labels: {kubernetes.io/service-name: ", service,
                     "}}, addressType: IPv4, ports: [{name: p, protocol: TCP, port: 8080}], "
                     "endpoints: [{addresses: [",
                     address, "], nodeName: ", node, ", conditions: {ready: true}}]}")));
  }
  void put_range(const std::string& name, const std::string& range) {
    api.put(cat("/apis/networking.k8s.io/v1/servicecidrs/", name),
            yaml(cat("{apiVersion: networking.k8s.io/v1, kind: ServiceCIDR, metadata: {name: ",
                     name, ", uid: ", name, "}, spec: {cidrs: [", range, "]}}")));
  }
  void start(std::vector<std::string> nodes = {"node-0"}) {
    ProxyOptions options;
    options.nodes = std::move(nodes);
    options.bridge = "dibs-1";
    options.pods = "10.130.0.0/16";
    options.services = "10.0.0.0/24";
    options.taken = [](const Ipv4Range& range) -> std::string {
      return range.overlaps(*Ipv4Range::parse("10.8.0.0/16")) ? "another" : "";
    };
    auto started = Proxy::start(options, client, sim.runtime(), kernel);
    ASSERT_TRUE(started.ok()) << started.error().message();
    proxy = std::move(*started);
  }
  test::Ends send(const std::string& address, const std::string& from = "10.130.0.100") {
    return kernel.send("dibs-1", {from, address});
  }
};

TEST_F(ProxyTest, refuses_from_the_start_and_follows_services) {
  put_service("web", "10.0.0.9");
  put_slice("web", "10.130.0.1");
  start();
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("pass"));  // the frame alone: refused
  sim.advance(seconds(1));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080"));

  put_slice("web", "10.130.0.2");
  sim.advance(milliseconds(100));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.2:8080"));
  api.remove("/api/v1/namespaces/a/services/web");
  sim.advance(milliseconds(100));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("pass"));
}

TEST_F(ProxyTest, a_burst_is_one_transaction) {
  start();
  sim.advance(seconds(1));
  const int before = kernel.transactions;
  for (int i = 0; i < 100; ++i) {
    put_service(cat("s", i), cat("10.0.0.", i + 20));
    put_slice(cat("s", i), cat("10.130.1.", i + 1));
  }
  sim.advance(seconds(1));
  EXPECT_LE(kernel.transactions - before, 2);
  EXPECT_THAT(send("10.0.0.119"), ElementsAre("10.130.1.100:8080"));
}

TEST_F(ProxyTest, takes_over_what_another_left_when_all_is_read) {
  put_service("web", "10.0.0.9");
  put_slice("web", "10.130.0.1");
  start();
  sim.advance(seconds(1));
  proxy.reset();
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080"));  // rules stay
  put_slice("web", "10.130.0.2");
  start();
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080"));
  sim.advance(seconds(1));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.2:8080"));
}

TEST_F(ProxyTest, writes_the_whole_when_a_change_fails_and_tries_again) {
  start();
  sim.advance(seconds(1));
  kernel.tables.clear();  // somebody flushed the ruleset
  put_service("web", "10.0.0.9");
  put_slice("web", "10.130.0.1");
  sim.advance(milliseconds(100));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080"));

  kernel.fail_with = "no";
  put_slice("web", "10.130.0.2");
  sim.advance(milliseconds(200));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080"));
  kernel.fail_with = "";
  sim.advance(seconds(2));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.2:8080"));
}

TEST_F(ProxyTest, learns_where_pods_are_only_when_a_service_asks) {
  api.put("/api/v1/namespaces/a/pods/c",
          yaml("{apiVersion: v1, kind: Pod, metadata: {name: c, namespace: a, uid: c}, spec: "
               "{nodeName: node-1}, status: {podIP: 10.130.0.100}}"));
  put_service("web", "10.0.0.9");
  put_slice("web", "10.130.0.1", "node-0");
  start({"node-0", "node-1"});
  sim.advance(seconds(1));
  const auto asked_for_pods = [&] {
    for (const auto& request : api.requests()) {
      if (request.find("/pods") != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_FALSE(asked_for_pods());
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080"));
  put_service("web", "10.0.0.9", ", internalTrafficPolicy: Local");
  sim.advance(seconds(1));
  EXPECT_TRUE(asked_for_pods());
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("pass"));
  EXPECT_THAT(kernel.send("dibs-1", {"10.130.0.1", "10.0.0.9", "tcp", 80, true}),
              ElementsAre("10.130.0.1:8080"));
}

TEST_F(ProxyTest, takes_clients_from_homes_that_are_gone) {
  put_service("web", "10.0.0.9", ", sessionAffinity: ClientIP");
  put_slice("web", "10.130.0.1");
  start();
  sim.advance(seconds(1));
  auto& home = kernel.tables["dibs-1"].sets["home/svc/a/web/tcp/80"].elements;
  home["10.130.0.100"] = "10.130.0.1 . 8080";
  home["10.130.0.101"] = "10.130.0.2 . 8080";
  put_slice("web", "10.130.0.2");
  sim.advance(seconds(1));
  EXPECT_THAT(home, ElementsAre(testing::Key("10.130.0.101")));
}

TEST_F(ProxyTest, takes_added_ranges_of_services_for_its_own) {
  const auto refuses = [this](const std::string& range) {
    return kernel.tables["dibs-1"].chains["check"].at(0).find(range) != std::string::npos;
  };
  start();
  sim.advance(seconds(1));
  EXPECT_FALSE(refuses("10.7.0.0/24"));

  put_range("kubernetes", "10.0.0.0/24");
  put_range("more", "10.7.0.0/24");
  put_range("inside", "10.7.0.0/28");  // nft takes no range twice
  put_range("pods", "10.130.8.0/24");  // would take them away
  put_range("others", "10.8.7.0/24");
  put_service("web", "10.7.0.9");
  put_slice("web", "10.130.0.1");
  sim.advance(seconds(1));
  EXPECT_TRUE(refuses("10.7.0.0/24"));
  EXPECT_FALSE(refuses("10.7.0.0/28"));
  EXPECT_FALSE(refuses("10.130.8.0/24"));
  EXPECT_FALSE(refuses("10.8.7.0/24"));
  EXPECT_THAT(kernel.routes, ElementsAre("10.7.0.0/24", "10.7.0.0/28"));
  EXPECT_THAT(send("10.7.0.9"), ElementsAre("10.130.0.1:8080"));

  api.remove("/apis/networking.k8s.io/v1/servicecidrs/more");
  sim.advance(seconds(1));
  EXPECT_FALSE(refuses("10.7.0.0/24"));
  EXPECT_TRUE(refuses("10.7.0.0/28"));
}

TEST_F(ProxyTest, gives_nobody_addresses_of_added_ranges) {
  put_service("web", "10.7.0.9");
  put_slice("web", "10.130.0.1");
  put_service("thief", "10.0.0.9", ", externalIPs: [10.7.0.9], type: LoadBalancer");
  put_slice("thief", "10.130.0.66");
  start();
  sim.advance(seconds(1));
  put_range("more", "10.7.0.0/24");
  sim.advance(seconds(1));
  // From elsewhere, too.
  EXPECT_THAT(send("10.7.0.9"), ElementsAre("10.130.0.1:8080"));
  EXPECT_THAT(kernel.tables["dibs-1"].sets["external"].elements, testing::IsEmpty());
  api.remove("/apis/networking.k8s.io/v1/servicecidrs/more");
  sim.advance(seconds(1));
  EXPECT_EQ(kernel.tables["dibs-1"].sets["external"].elements.size(), 1U);
}

TEST_F(ProxyTest, leaves_pods_out_that_only_the_default_route_leads_to) {
  const auto put_pods = [this](const char* target) {
    api.put(
        "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/web-1",
        yaml(cat("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, "
                 "namespace: a, uid: web-1, labels: {kubernetes.io/service-name: web}}, "
                 "addressType: IPv4, ports: [{name: p, protocol: TCP, port: 8080}], endpoints: ["
                 "{addresses: [10.130.0.1], nodeName: node-0, targetRef: {kind: Pod, namespace: "
                 "a, name: near, uid: near}}, {addresses: [10.140.0.1], nodeName: far",
                 target, "}]}")));
  };
  const std::string target = ", targetRef: {kind: Pod, namespace: a, name: p, uid: p}";
  put_service("web", "10.0.0.9");
  put_pods(target.c_str());
  start();
  sim.advance(seconds(1));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080"));

  kernel.far_routes = true;
  sim.advance(seconds(31));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080", "10.140.0.1:8080"));

  // Addresses that are no pod's, and those of a machine itself, are as far as they are.
  kernel.far_routes = false;
  put_pods("");
  sim.advance(seconds(1));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080", "10.140.0.1:8080"));
  api.put("/api/v1/namespaces/a/pods/p",
          yaml("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a, uid: p}, spec: "
               "{nodeName: far, hostNetwork: true}}"));
  put_pods(target.c_str());
  sim.advance(seconds(1));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080", "10.140.0.1:8080"));
}

TEST_F(ProxyTest, tries_again_where_routes_to_ranges_fail) {
  put_range("more", "10.7.0.0/24");
  kernel.routes_fail = true;
  start();
  sim.advance(seconds(1));
  // Services do not wait for it.
  put_service("web", "10.7.0.9");
  put_slice("web", "10.130.0.1");
  sim.advance(milliseconds(100));
  EXPECT_THAT(send("10.7.0.9"), ElementsAre("10.130.0.1:8080"));
  EXPECT_TRUE(kernel.routes.empty());

  kernel.routes_fail = false;
  sim.advance(seconds(30));
  EXPECT_THAT(kernel.routes, ElementsAre("10.7.0.0/24"));
}

TEST_F(ProxyTest, takes_away_routes_that_another_left) {
  put_range("kubernetes", "10.0.0.0/24");
  kernel.routes = {"10.7.0.0/24"};
  start();
  sim.advance(seconds(1));
  EXPECT_TRUE(kernel.routes.empty());
}

TEST_F(ProxyTest, waits_for_ranges_but_not_for_ever) {
  put_service("web", "10.0.0.9");
  put_slice("web", "10.130.0.1");
  api.fail("/servicecidrs", 404, "NotFound", 1000);
  start();
  sim.advance(seconds(3));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("pass"));
  sim.advance(seconds(3));
  EXPECT_THAT(send("10.0.0.9"), ElementsAre("10.130.0.1:8080"));
}

TEST(Routes, are_read_from_what_ip_prints) {
  const auto routes = parse_routes(
      R"([{"dst":"10.0.0.0/24","scope":"link","metric":34580,"flags":[]},
      {"dst":"10.7.0.0/24","scope":"link","metric":65537,"flags":["linkdown"]},
      {"dst":"10.8.0.1","metric":65537},{"dst":"default","metric":65537},
      {"dst":"10.130.0.0/16","protocol":"kernel","scope":"link"}])",
      65537);
  ASSERT_TRUE(routes.ok());
  EXPECT_THAT(*routes, ElementsAre("10.7.0.0/24", "10.8.0.1/32"));
  EXPECT_TRUE(parse_routes("", 65537)->empty());
}

TEST(Homes, are_read_from_what_nft_prints) {
  const auto homes = parse_homes(
      R"({"nftables": [{"metainfo": {}}, {"map": {"family": "inet", "name": "home/x", "elem": [
      [{"elem": {"val": "10.1.0.7", "timeout": 604800, "expires": 604790}}, {"concat": ["10.1.0.5", 80]}],
      ["10.1.0.8", {"concat": ["10.1.0.6", 81]}]]}}]})");
  ASSERT_TRUE(homes.ok());
  EXPECT_THAT(*homes, ElementsAre(std::pair("10.1.0.7", "10.1.0.5 . 80"),
                                  std::pair("10.1.0.8", "10.1.0.6 . 81")));
}

}  // namespace
}  // namespace dibs::proxy
