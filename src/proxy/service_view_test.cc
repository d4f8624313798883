#include "proxy/service_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"

namespace dibs::proxy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

json::Value yaml(const std::string& text) { return *json::parse_yaml(text); }

Machine machine() {
  Machine out;
  out.nodes = {{"node-0", "zone-a"}, {"node-1", "zone-b"}};
  out.pods = *Ipv4Range::parse("10.130.0.0/16");
  out.services = *Ipv4Range::parse("10.0.0.0/24");
  out.bridge = "dibs-1";
  return out;
}

std::vector<std::string> addresses(const std::vector<Backend>& backends) {
  std::vector<std::string> out;
  for (const auto& backend : backends) out.push_back(backend.address);
  return out;
}

TEST(ServiceView, reads_what_counts) {
  const auto service = yaml(R"(
metadata: {name: web, namespace: a}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.9
  externalIPs: [192.0.2.7, 10.0.0.77, 10.130.0.5, 127.0.0.1, 169.254.169.254]
  loadBalancerSourceRanges: [192.168.3.4/16]
  internalTrafficPolicy: Local
  externalTrafficPolicy: Local
  healthCheckNodePort: 32000
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}
  ports:
  - {name: http, protocol: TCP, port: 80, nodePort: 30080}
  - {name: dns, protocol: UDP, port: 53}
status: {loadBalancer: {ingress: [{ip: 192.0.2.8}, {ip: 192.0.2.9, ipMode: Proxy}]}}
)");
  const auto slice = yaml(R"(
addressType: IPv4
ports: [{name: http, protocol: TCP, port: 8080}]
endpoints:
- {addresses: [10.130.0.5], nodeName: node-0, conditions: {ready: true}}
- {addresses: [10.130.0.5], nodeName: node-0, conditions: {ready: false}}
- {addresses: [127.0.0.1], conditions: {ready: true}}
- {addresses: [10.130.0.6], nodeName: node-1, conditions: {ready: false, serving: true, terminating: true}}
)");
  const auto six = yaml(
      "{addressType: IPv6, ports: [{name: http, port: 80}], endpoints: [{addresses: "
      "['fd00::1']}]}");

  const ServiceView view = read_service(service, {slice, six}, machine());

  EXPECT_EQ(view.cluster_ip, "10.0.0.9");
  // The cluster's own addresses, and those of the machine itself, belong to nobody outside.
  EXPECT_THAT(view.external_ips, ElementsAre("192.0.2.7"));
  EXPECT_THAT(view.balancer_ips, ElementsAre("192.0.2.8"));
  EXPECT_THAT(view.balancer_sources, ElementsAre("192.168.0.0/16"));
  EXPECT_TRUE(view.internal_local && view.external_local);
  EXPECT_EQ(view.sticky_seconds, 60);
  EXPECT_EQ(view.health_port, 32000);
  ASSERT_EQ(view.ports.size(), 2U);
  EXPECT_THAT(addresses(view.ports[0].backends), ElementsAre("10.130.0.5", "10.130.0.6"));
  EXPECT_TRUE(view.ports[0].backends[0].ready);
  EXPECT_EQ(view.ports[0].backends[0].element(), "10.130.0.5 . 8080");
  EXPECT_THAT(view.ports[1].backends, IsEmpty());
}

TEST(ServiceView, knows_added_ranges_for_the_clusters_own) {
  const auto service = yaml(
      "{spec: {type: LoadBalancer, clusterIP: 10.0.0.9, externalIPs: [10.7.0.9, 192.0.2.7], ports: "
      "[{port: 80}]}, status: {loadBalancer: {ingress: [{ip: 10.7.0.10}, {ip: 192.0.2.8}]}}}");
  Machine here = machine();
  here.more_services = {*Ipv4Range::parse("10.6.0.0/24"), *Ipv4Range::parse("10.7.0.0/24")};
  const ServiceView view = read_service(service, {}, here);
  EXPECT_THAT(view.external_ips, ElementsAre("192.0.2.7"));
  EXPECT_THAT(view.balancer_ips, ElementsAre("192.0.2.8"));
}

TEST(ServiceView, leaves_out_what_is_not_ours) {
  for (const char* text :
       {"{spec: {clusterIP: None}}", "{spec: {type: ExternalName, externalName: x}}",
        "{spec: {clusterIP: ''}}", "{spec: {clusterIP: 'fd00::9'}}",
        "{metadata: {labels: {service.kubernetes.io/service-proxy-name: x}}, spec: {clusterIP: "
        "10.0.0.9}}"}) {
    EXPECT_EQ(read_service(yaml(text), {}, machine()).cluster_ip, "") << text;
  }
  EXPECT_EQ(service_of(yaml("{metadata: {labels: {kubernetes.io/service-name: web}}}")), "web");
  EXPECT_EQ(service_of(yaml("{metadata: {labels: {kubernetes.io/service-name: web, "
                            "service.kubernetes.io/headless: ''}}}")),
            "");
}

Backend backend(const char* address, const char* node) {
  Backend out;
  out.address = address;
  out.port = 80;
  out.node = node;
  out.ready = out.serving = true;
  return out;
}

TEST(Picking, falls_back_to_those_that_end_and_still_serve) {
  std::vector<Backend> all = {backend("10.130.0.1", "node-0"), backend("10.130.0.2", "node-1"),
                              backend("10.130.0.3", "node-1")};
  all[0].terminating = true;
  all[0].ready = false;
  all[2].ready = all[2].serving = false;
  EXPECT_THAT(addresses(pick_anywhere(all, "", machine())), ElementsAre("10.130.0.2"));
  EXPECT_THAT(addresses(pick_local(all, "node-0", machine())), ElementsAre("10.130.0.1"));
  all[1].ready = false;
  EXPECT_THAT(addresses(pick_anywhere(all, "", machine())), ElementsAre("10.130.0.1"));
  EXPECT_THAT(pick_local(all, "node-1", machine()), IsEmpty());
}

TEST(Picking, heeds_hints_where_all_have_them_and_one_is_for_the_sender) {
  std::vector<Backend> all = {backend("10.130.0.1", "node-0"), backend("10.130.0.2", "node-1")};
  all[0].for_zones = {"zone-a"};
  EXPECT_EQ(pick_anywhere(all, "node-0", machine()).size(), 2U);
  all[1].for_zones = {"zone-c"};
  EXPECT_THAT(addresses(pick_anywhere(all, "node-0", machine())), ElementsAre("10.130.0.1"));
  EXPECT_EQ(pick_anywhere(all, "node-1", machine()).size(), 2U);
  EXPECT_EQ(pick_anywhere(all, "", machine()).size(), 2U);
  all[0].for_nodes = {"node-1"};
  all[1].for_nodes = {"node-1", "node-0"};
  EXPECT_THAT(addresses(pick_anywhere(all, "node-0", machine())), ElementsAre("10.130.0.2"));
}

}  // namespace
}  // namespace dibs::proxy
