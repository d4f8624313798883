#include "drivers/net/cni/pod_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::drivers::net {
namespace {

using testing::ElementsAre;

Ip ip(const char* text) { return *Ip::parse(text); }
Subnet subnet(const char* text) { return *Subnet::parse(text); }

KernelRoute route(const char* dst, int device, const char* gateway = "") {
  KernelRoute out;
  out.dst = subnet(dst);
  out.device = device;
  if (*gateway != '\0') out.gateway = ip(gateway);
  return out;
}

PodInterface interface(const char* name, int device, const char* address, const char* gateway) {
  PodInterface out;
  out.name = name;
  out.device = device;
  out.ips = {ip(address)};
  if (*gateway != '\0') out.gateways = {ip(gateway)};
  return out;
}

std::vector<std::string> texts(const std::vector<KernelRoute>& routes) {
  std::vector<std::string> out;
  for (const auto& one : routes) {
    out.push_back(cat(one.dst.str(), " dev ", one.device,
                      one.gateway ? cat(" via ", one.gateway->str()) : "", " table ", one.table));
  }
  return out;
}

TEST(PodTables, are_counted_from_a_hundred) {
  EXPECT_EQ(table_of(interface("eth0", 2, "10.0.0.1", ""), {}), 100);
  EXPECT_EQ(table_of(interface("net1", 3, "10.0.0.1", ""), {}), 101);
  EXPECT_EQ(table_of(interface("net12", 3, "10.0.0.1", ""), {}), 112);
  const int other = table_of(interface("data", 3, "10.0.0.1", ""), {});
  EXPECT_EQ(other, 250);
  // The one that it has, and not that of somebody else.
  const KernelRule mine{false, Subnet{ip("10.0.0.1"), 32}, 251, kRulePriority};
  const KernelRule theirs{false, Subnet{ip("10.0.0.2"), 32}, 250, kRulePriority};
  EXPECT_EQ(table_of(interface("data", 3, "10.0.0.1", ""), {theirs, mine}), 251);
  EXPECT_EQ(table_of(interface("data", 3, "10.0.0.1", ""), {theirs}), 251);
}

TEST(PodTables, have_the_routes_of_their_interface_and_of_the_way_to_the_host) {
  const std::vector<KernelRoute> present = {route("0.0.0.0/0", 2, "172.18.0.1"),
                                            route("172.18.0.0/16", 2),
                                            route("10.6.0.0/16", 3),
                                            route("172.18.0.11/32", 9),
                                            route("10.96.0.0/12", 9, "172.18.0.11"),
                                            route("fe80::/64", 3)};

  const PodRouting routing =
      routing_of(interface("net1", 3, "10.6.0.7", "10.6.0.1"), 101, 9, present);

  EXPECT_THAT(texts(routing.routes),
              ElementsAre("10.6.0.0/16 dev 3 table 101", "172.18.0.11/32 dev 9 table 101",
                          "10.96.0.0/12 dev 9 via 172.18.0.11 table 101",
                          "0.0.0.0/0 dev 3 via 10.6.0.1 table 101"));
  ASSERT_EQ(routing.rules.size(), 1U);
  EXPECT_EQ(routing.rules[0].from->str(), "10.6.0.7/32");
  EXPECT_EQ(routing.rules[0].table, 101);
}

TEST(PodDefaultRoute, stays_where_it_was_or_goes_where_it_is_wanted) {
  const std::vector<KernelRoute> present = {route("0.0.0.0/0", 3, "10.6.0.1"),
                                            route("0.0.0.0/0", 2, "172.18.0.1")};
  const PodInterface net1 = interface("net1", 3, "10.6.0.7", "10.6.0.1");

  const auto stays = change_defaults(net1, false, present);
  EXPECT_THAT(texts(stays.set), ElementsAre());
  EXPECT_THAT(texts(stays.remove), ElementsAre("0.0.0.0/0 dev 3 via 10.6.0.1 table 254"));

  const auto goes = change_defaults(net1, true, present);
  EXPECT_THAT(texts(goes.set), ElementsAre());
  EXPECT_THAT(texts(goes.remove), ElementsAre("0.0.0.0/0 dev 2 via 172.18.0.1 table 254"));

  // Nobody else has one: it is better than none.
  const auto alone = change_defaults(net1, false, {present[0]});
  EXPECT_TRUE(alone.set.empty() && alone.remove.empty());
  // And one without a gateway cannot have it.
  const auto no_gateway = change_defaults(interface("net1", 3, "10.6.0.7", ""), true, {present[1]});
  EXPECT_TRUE(no_gateway.set.empty() && no_gateway.remove.empty());
  const auto new_one = change_defaults(net1, true, {present[1]});
  EXPECT_THAT(texts(new_one.set), ElementsAre("0.0.0.0/0 dev 3 via 10.6.0.1 table 254"));
}

TEST(PodTables, of_the_first_interface_keep_its_default_route) {
  const std::vector<KernelRoute> present = {route("0.0.0.0/0", 2, "172.18.0.1"),
                                            route("172.18.0.0/16", 2)};

  const PodRouting routing = routing_of(interface("eth0", 2, "172.18.0.7", ""), 100, 0, present);

  EXPECT_THAT(texts(routing.routes), ElementsAre("172.18.0.0/16 dev 2 table 100",
                                                 "0.0.0.0/0 dev 2 via 172.18.0.1 table 100"));
}

}  // namespace
}  // namespace dibs::drivers::net
