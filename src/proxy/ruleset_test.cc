#include "proxy/ruleset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proxy/test_kernel.h"
#include "proxy/test_world.h"

namespace dibs::proxy {
namespace {

using test::backend;
using test::Ends;
using test::Kernel;
using test::machine;
using test::Packet;
using test::table;
using test::World;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ServiceView web(std::vector<Backend> backends, const std::string& protocol = "tcp") {
  ServiceView out;
  out.cluster_ip = "10.0.0.9";
  out.ports.push_back({protocol, 80, 0, std::move(backends)});
  return out;
}

/// One Service in a kernel of its own.
struct One {
  explicit One(const ServiceView& service, unsigned nodes = 2) : rules(table(nodes)) {
    put(service);
  }
  void put(const ServiceView& service) {
    rules.put("a/web", make_piece("a/web", service, machine()));
    const auto applied = kernel.apply(kernel.tables.empty() ? rules.whole() : rules.difference());
    EXPECT_TRUE(applied.ok()) << applied.error().message();
    rules.written();
  }
  Ends send(const Packet& packet) const { return kernel.send("dibs-1", packet); }

  Kernel kernel;
  Ruleset rules;
};

constexpr const char* kPod = "10.130.0.100";
constexpr const char* kStranger = "192.0.2.50";

TEST(Rules, a_cluster_address_leads_to_any_backend) {
  const One one(web({backend("10.130.0.1", "node-0"), backend("10.130.0.2", "node-1")}));
  EXPECT_THAT(one.send({kPod, "10.0.0.9"}), ElementsAre("10.130.0.1:8080", "10.130.0.2:8080"));
  EXPECT_THAT(one.send({kPod, "10.0.0.9", "udp"}), ElementsAre("pass"));
  EXPECT_THAT(one.send({kPod, "10.0.0.9", "tcp", 81}), ElementsAre("pass"));
  EXPECT_THAT(one.send({"10.130.0.1", "10.0.0.9", "tcp", 80, true}),
              ElementsAre("10.130.0.1:8080", "10.130.0.2:8080"));
  EXPECT_THAT(one.send({kStranger, "10.0.0.9"}),
              ElementsAre("10.130.0.1:8080 masqueraded", "10.130.0.2:8080 masqueraded"));
}

TEST(Rules, refuse_what_has_no_backend) {
  ServiceView service = web({});
  service.external_ips = {"192.0.2.7"};
  service.ports[0].node_port = 30080;
  const One one(service);
  EXPECT_THAT(one.send({kPod, "10.0.0.9"}), ElementsAre("pass"));
  const auto& sets = one.kernel.tables.at("dibs-1").sets;
  EXPECT_TRUE(sets.at("refused").elements.contains("192.0.2.7 . tcp . 80"));
  EXPECT_TRUE(sets.at("refused-ports").elements.contains("tcp . 30080"));
  // The frame refuses the whole range.
  EXPECT_THAT(one.rules.whole(), HasSubstr(" ip daddr 10.0.0.0/24 goto refuse\n"));
  EXPECT_THAT(one.rules.whole(), HasSubstr("oifname != { \"lo\", \"dibs-1\" } drop\n"));
}

TEST(Rules, internal_local_keeps_to_the_senders_node) {
  ServiceView service = web({backend("10.130.0.1", "node-0"), backend("10.130.0.2", "node-1"),
                             backend("10.131.0.1", "elsewhere")});
  service.internal_local = true;
  One one(service);
  EXPECT_TRUE(one.rules.needs_pods());
  one.rules.put_pod("node-0", kPod);
  ASSERT_TRUE(one.kernel.apply(one.rules.difference()).ok());
  EXPECT_THAT(one.send({kPod, "10.0.0.9"}), ElementsAre("10.130.0.1:8080"));
  EXPECT_THAT(one.send({"10.130.0.1", "10.0.0.9", "tcp", 80, true}),
              ElementsAre("10.130.0.1:8080", "10.130.0.2:8080"));
  service.ports[0].backends.erase(service.ports[0].backends.begin());
  one.put(service);
  EXPECT_THAT(one.send({kPod, "10.0.0.9"}), ElementsAre("pass"));
}

TEST(Rules, external_local_keeps_the_strangers_address) {
  ServiceView service = web({backend("10.130.0.1", "node-0"), backend("10.131.0.1", "elsewhere")});
  service.ports[0].node_port = 30080;
  service.external_local = true;
  One one(service);
  const Packet stranger{kStranger, "192.0.2.1", "tcp", 30080, false, false, true};
  EXPECT_THAT(one.send(stranger), ElementsAre("10.130.0.1:8080"));
  EXPECT_THAT(one.send({kPod, "192.0.2.1", "tcp", 30080, false, false, true}),
              ElementsAre("10.130.0.1:8080", "10.131.0.1:8080"));
  service.ports[0].backends = {backend("10.131.0.1", "elsewhere")};
  one.put(service);
  EXPECT_THAT(one.send(stranger), ElementsAre("drop"));
  service.external_local = false;
  one.put(service);
  EXPECT_THAT(one.send(stranger), ElementsAre("10.131.0.1:8080 masqueraded"));
}

TEST(Rules, balancers_addresses_have_their_own_guests) {
  ServiceView service = web({backend("10.130.0.1", "node-0")});
  service.balancer_ips = {"192.0.2.8"};
  service.external_ips = {"192.0.2.7"};
  service.balancer_sources = {"192.0.2.0/26"};
  const One one(service);
  EXPECT_THAT(one.send({kStranger, "192.0.2.8"}), ElementsAre("10.130.0.1:8080 masqueraded"));
  EXPECT_THAT(one.send({"198.51.100.1", "192.0.2.8"}), ElementsAre("drop"));
  EXPECT_THAT(one.send({"198.51.100.1", "192.0.2.7"}), ElementsAre("10.130.0.1:8080 masqueraded"));
  // The machine's own connections to addresses elsewhere are not led astray by a Service.
  EXPECT_THAT(one.send({"192.0.2.1", "192.0.2.7", "tcp", 80, true}), ElementsAre("pass"));
}

TEST(Rules, affinity_leads_a_client_home) {
  ServiceView service = web({backend("10.130.0.1", "node-0"), backend("10.130.0.2", "node-1")});
  service.sticky_seconds = 30;
  One one(service);
  auto& sets = one.kernel.tables["dibs-1"].sets;
  EXPECT_EQ(one.send({kPod, "10.0.0.9"}).size(), 2U);
  sets.at("live/svc/a/web/tcp/80").elements[kPod];
  sets.at("home/svc/a/web/tcp/80").elements[kPod] = "10.130.0.2 . 8080";
  EXPECT_THAT(one.send({kPod, "10.0.0.9"}), ElementsAre("10.130.0.2:8080"));
  EXPECT_THAT(one.rules.whole(),
              HasSubstr("update @live/svc/a/web/tcp/80 { ip saddr timeout 30s }"));

  service.ports[0].backends.pop_back();
  one.rules.put("a/web", make_piece("a/web", service, machine()));
  EXPECT_THAT(one.rules.gone_homes().at("home/svc/a/web/tcp/80"), ElementsAre("10.130.0.2 . 8080"));
}

TEST(Rules, names_that_no_service_can_have_are_left_out) {
  for (const char* key : {"a/x; flush ruleset", "a/}", "x", "a/", "/x", "a/ü", "A/x"}) {
    EXPECT_EQ(make_piece(key, web({backend("10.130.0.1", "node-0")}), machine()), Piece()) << key;
  }
}

TEST(Rules, dns_is_the_machines_own_whatever_its_service_says) {
  TableOptions how = table();
  how.dns_address = "10.0.0.10";
  how.local_dns = "10.130.0.1:5353";
  Ruleset rules(how);
  ServiceView dns = web({backend("10.130.0.77", "node-0", 53)}, "udp");
  dns.cluster_ip = "10.0.0.10";
  dns.ports[0].port = 53;
  rules.put("kube-system/kube-dns", make_piece("kube-system/kube-dns", dns, machine()));
  Kernel kernel;
  ASSERT_TRUE(kernel.apply(rules.whole()).ok());
  EXPECT_THAT(kernel.send("dibs-1", {kPod, "10.0.0.10", "udp", 53}),
              ElementsAre("10.130.0.1:5353"));
}

TEST(Ruleset, an_element_that_two_want_is_the_firsts_until_it_goes) {
  ServiceView service = web({backend("10.130.0.1", "node-0")});
  service.external_ips = {"192.0.2.7"};
  ServiceView other = web({backend("10.130.0.2", "node-0")});
  other.cluster_ip = "10.0.0.10";
  other.external_ips = {"192.0.2.7"};
  Ruleset rules(table());
  Kernel kernel;
  rules.put("b/web", make_piece("b/web", other, machine()));
  ASSERT_TRUE(kernel.apply(rules.whole()).ok());
  rules.written();
  rules.put("a/web", make_piece("a/web", service, machine()));
  ASSERT_TRUE(kernel.apply(rules.difference()).ok());
  rules.written();
  EXPECT_THAT(kernel.send("dibs-1", {kPod, "192.0.2.7"}), ElementsAre("10.130.0.1:8080"));
  rules.put("a/web", {});
  ASSERT_TRUE(kernel.apply(rules.difference()).ok());
  EXPECT_THAT(kernel.send("dibs-1", {kPod, "192.0.2.7"}), ElementsAre("10.130.0.2:8080"));
}

TEST(Ruleset, a_change_is_as_large_as_what_changed) {
  Ruleset rules(table());
  for (int i = 0; i < 200; ++i) {
    ServiceView service = web({backend(cat("10.130.1.", i), "node-0")});
    service.cluster_ip = cat("10.0.0.", i + 20);
    const std::string key = cat("a/s", i);
    rules.put(key, make_piece(key, service, machine()));
  }
  const std::size_t whole = rules.whole().size();
  rules.written();
  EXPECT_FALSE(rules.changed());
  EXPECT_EQ(rules.difference(), "");
  rules.put("a/s7", make_piece("a/s7", web({backend("10.130.2.1", "node-0")}), machine()));
  EXPECT_LT(rules.difference().size(), whole / 50);
  EXPECT_THAT(rules.difference(), Not(HasSubstr("a/s8")));
}

TEST(Ruleset, tells_udp_backends_that_are_gone) {
  ServiceView service =
      web({backend("10.130.0.1", "node-0"), backend("10.130.0.2", "node-1")}, "udp");
  service.ports[0].node_port = 30053;
  One one(service);
  service.ports[0].backends.pop_back();
  one.rules.put("a/web", make_piece("a/web", service, machine()));
  EXPECT_THAT(one.rules.gone_udp(), ElementsAre(UdpBackend{"10.130.0.2", 8080, 80},
                                                UdpBackend{"10.130.0.2", 8080, 30053}));
}

Ends ends_of(const std::vector<Backend>& backends, bool masqueraded) {
  Ends out;
  for (const Backend& one : backends) {
    out.insert(cat(one.address, ':', one.port, masqueraded ? " masqueraded" : ""));
  }
  return out.empty() ? Ends{"pass"} : out;
}

/// What must become of a packet, by the Service's words alone.
Ends expected(const ServiceView& service, const ServicePort& port, const Packet& packet,
              const std::string& node, const Machine& here) {
  const bool pod = packet.source.starts_with("10.130.");
  const auto anywhere = pick_anywhere(port.backends, node, here);
  if (packet.destination == service.cluster_ip) {
    return ends_of(service.internal_local ? pick_local(port.backends, node, here) : anywhere, !pod);
  }
  const bool balanced = packet.destination.starts_with("192.0.2.2");
  if (balanced && !anywhere.empty() && !service.balancer_sources.empty() &&
      packet.source != kStranger) {
    return {"drop"};
  }
  if (anywhere.empty()) return {"pass"};
  if (service.external_local && !pod) {
    const auto local = pick_local(port.backends, "", here);
    return local.empty() ? Ends{"drop"} : ends_of(local, false);
  }
  return ends_of(anywhere, !pod);
}

std::string key_text(unsigned index, const Packet& packet) {
  return cat("a/s", index, ": ", packet.source, " to ", packet.destination, ' ', packet.protocol,
             ' ', packet.port);
}

TEST(Ruleset, leads_every_packet_where_its_service_says_however_it_came_about) {
  for (unsigned seed = 1; seed <= 6 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    World world(seed);
    const Machine here = machine();
    Ruleset rules(table());
    Kernel kernel;
    std::map<unsigned, ServiceView> services;
    rules.put_pod("node-0", "10.130.0.100");
    rules.put_pod("node-1", "10.130.0.101");
    ASSERT_TRUE(kernel.apply(rules.whole()).ok());
    rules.written();
    for (int step = 0; step < 20; ++step) {
      for (unsigned n = 1 + world.below(3); n > 0; --n) {
        const unsigned index = world.below(6);
        const std::string key = cat("a/s", index);
        if (world.below(4) == 0) {
          services.erase(index);
          rules.put(key, {});
        } else {
          services[index] = world.service(index);
          rules.put(key, make_piece(key, services[index], here));
        }
      }
      const auto applied = kernel.apply(rules.difference());
      ASSERT_TRUE(applied.ok()) << applied.error().message() << "\n" << rules.difference();
      rules.written();
      // The way does not matter: the table is the one that would be made anew.
      Kernel fresh;
      ASSERT_TRUE(fresh.apply(rules.whole()).ok());
      ASSERT_EQ(kernel.tables, fresh.tables);
      for (const auto& [index, service] : services) {
        for (const ServicePort& port : service.ports) {
          for (const auto& [source, node] :
               {std::pair("10.130.0.100", "node-0"), {"10.130.0.101", "node-1"}, {kStranger, ""}}) {
            std::vector<std::string> addresses = {service.cluster_ip};
            for (const auto* list : {&service.external_ips, &service.balancer_ips}) {
              addresses.insert(addresses.end(), list->begin(), list->end());
            }
            for (const std::string& address : addresses) {
              const Packet packet{source, address, port.protocol, port.port};
              EXPECT_EQ(kernel.send("dibs-1", packet), expected(service, port, packet, node, here))
                  << key_text(index, packet);
            }
            if (port.node_port == 0) continue;
            const Packet packet{source, "198.51.100.1", port.protocol, port.node_port,
                                false,  false,          true};
            EXPECT_EQ(kernel.send("dibs-1", packet), expected(service, port, packet, node, here))
                << key_text(index, packet);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace dibs::proxy
