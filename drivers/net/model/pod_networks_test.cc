#include "drivers/net/model/pod_networks.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using Nics = std::vector<PodNic>;
using Annotations = std::initializer_list<std::pair<std::string_view, Value>>;

Value annotated(Annotations annotations, std::string_view name_space = "default") {
  return Value::object(
      {{"metadata", Value::object({{"name", "web-0"},
                                   {"namespace", name_space},
                                   {"annotations", Value::object(annotations)}})}});
}

Nics nics_of(Annotations annotations) {
  return pod_nics(annotated(annotations), "kube-system").value();
}
std::string refusal(Annotations annotations) {
  const auto nics = pod_nics(annotated(annotations), "kube-system");
  return nics.ok() ? "accepted" : nics.error().message();
}

TEST(PodNics, come_from_the_annotations_of_multus) {
  EXPECT_EQ(nics_of({}), Nics{});
  EXPECT_EQ(nics_of({{kDefaultNetwork, "macvlan-conf"}}),
            (Nics{{"eth0", "kube-system/macvlan-conf"}}));
  EXPECT_EQ(
      nics_of({{kDefaultNetwork, "net/macvlan-conf@eth0"}, {kNetworks, "a, other/b@data0,c"}}),
      (Nics{{"eth0", "net/macvlan-conf"},
            {"net1", "default/a"},
            {"data0", "other/b"},
            {"net3", "default/c"}}));
}

TEST(PodNics, are_read_from_json_too) {
  EXPECT_EQ(nics_of({{kNetworks, R"([{"name": "a"},
                       {"name": "b", "namespace": "n", "interface": "data0"}])"}}),
            (Nics{{"net1", "default/a"}, {"data0", "n/b"}}));
  EXPECT_EQ(nics_of({{kDefaultNetwork, R"([{"name": "a"}])"}}), (Nics{{"eth0", "kube-system/a"}}));
  EXPECT_EQ(nics_of({{kNetworks, R"([{"name": "a", "default-route": ["10.0.0.1"]}])"}}),
            (Nics{{"net1", "default/a", true}}));
}

TEST(PodNics, have_the_cluster_network_where_the_pod_is_silent) {
  const Value pod = annotated({{kNetworks, "a"}});
  EXPECT_EQ(pod_nics(pod, "kube-system", "macvlan-conf").value(),
            (Nics{{"eth0", "kube-system/macvlan-conf"}, {"net1", "default/a"}}));
  EXPECT_EQ(pod_nics(annotated({{kDefaultNetwork, "x/y"}}), "kube-system", "macvlan-conf").value(),
            (Nics{{"eth0", "x/y"}}));
}

TEST(PodNics, are_refused_when_they_cannot_be_read) {
  for (const char* text : {"a,", "a@", "a@x/y", "a@sixteen_letters_x", "A", "a/b/c", "/a", "a b",
                           "[{\"name\": 1}]", "{\"name\": \"a\"}", "[{\"name\": \"a\"", "[\"a\"]",
                           "[{}]", "a@eth0", "a,b@net1", "a@.."}) {
    EXPECT_NE(refusal({{kNetworks, text}}), "accepted") << text;
  }
  EXPECT_EQ(refusal({{kNetworks, "a,b@net1"}}),
            "invalid format of Pod annotation 'k8s.v1.cni.cncf.io/networks': duplicate interface "
            "net1");
  EXPECT_EQ(refusal({{kDefaultNetwork, "a@net1"}}),
            "invalid format of Pod annotation 'v1.multus-cni.io/default-network': the interface of "
            "the default network is eth0, not net1");
  EXPECT_NE(refusal({{kDefaultNetwork, "a,b"}}), "accepted");
}

TEST(PodNics, are_not_without_end) {
  std::string list = "n";
  std::string json = R"([{"name":"n"})";
  for (int i = 1; i < 64; ++i) {
    list += ",n";
    json += R"(,{"name":"n"})";
  }
  EXPECT_EQ(nics_of({{kNetworks, list}}).size(), 64U);
  EXPECT_EQ(nics_of({{kNetworks, json + "]"}}).size(), 64U);
  EXPECT_EQ(
      refusal({{kNetworks, list + ",n"}}),
      "invalid format of Pod annotation 'k8s.v1.cni.cncf.io/networks': more than 64 networks");
  EXPECT_NE(refusal({{kNetworks, json + R"(,{"name":"n"}])"}}), "accepted");
}

TEST(PodNics, know_the_default_route) {
  EXPECT_EQ(nics_of({{kDefaultNetwork, "a"}, {kNetworks, "b"}, {kDefaultRouteNic, "net1"}}),
            (Nics{{"eth0", "kube-system/a"}, {"net1", "default/b", true}}));
  EXPECT_EQ(nics_of({{kNetworks, "b"}, {kDefaultRouteNic, "eth0"}}), (Nics{{"net1", "default/b"}}));
  EXPECT_EQ(refusal({{kNetworks, "b"}, {kDefaultRouteNic, "net2"}}),
            "invalid format of Pod annotation 'ipam.spidernet.io/default-route-nic': the pod has "
            "no interface \"net2\"");
}

TEST(PodNics, come_from_claims) {
  const AskedNics first{.default_nic = AskedNic{"k/a"}, .secondary = {{"k/b"}}};
  const AskedNics second{.default_nic = {}, .secondary = {{"k/c", true}, {"k/d", true}}};
  const auto nics = pod_nics(annotated({}), {first, second}, "kube-system");
  EXPECT_EQ(nics.value(),
            (Nics{{"eth0", "k/a"}, {"net1", "k/b"}, {"net2", "k/c", true}, {"net3", "k/d"}}));
  const Value said = nic_annotations(*nics);
  EXPECT_EQ(json::write(said), R"({"v1.multus-cni.io/default-network":"k/a",)"
                               R"("ipam.spidernet.io/default-route-nic":"net2",)"
                               R"("k8s.v1.cni.cncf.io/networks":"k/b,k/c,k/d"})");
  // Once they are written, claims and annotations agree.
  const Value pod = Value::object({{"metadata", Value::object({{"annotations", said}})}});
  EXPECT_EQ(pod_nics(pod, {first, second}, "kube-system").value(), *nics);
}

TEST(PodNics, of_claims_and_annotations_agree_or_conflict) {
  const AskedNics claim{.default_nic = AskedNic{"k/a"}, .secondary = {{"k/b"}}};
  const auto with = [&](Annotations annotations) {
    return pod_nics(annotated(annotations), {claim}, "kube-system");
  };
  EXPECT_EQ(with({{kNetworks, "k/b@data0"}}).value(), (Nics{{"eth0", "k/a"}, {"data0", "k/b"}}));
  const auto other = with({{kDefaultNetwork, "k/x"}});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code(), Code::conflict);
  EXPECT_EQ(other.error().message(),
            "annotation v1.multus-cni.io/default-network names k/x, the claims of the pod k/a");
  EXPECT_EQ(with({{kNetworks, "k/b,k/c"}}).error().message(),
            "annotation k8s.v1.cni.cncf.io/networks names k/b,k/c, the claims of the pod k/b");
  const AskedNics again{.default_nic = AskedNic{"k/z"}, .secondary = {}};
  EXPECT_EQ(pod_nics(annotated({}), {claim, again}, "kube-system").error().message(),
            "two claims name a default interface: k/a and k/z");
  const AskedNics routed{.default_nic = {}, .secondary = {{"k/b", true}, {"k/c"}}};
  EXPECT_EQ(
      pod_nics(annotated({{kDefaultRouteNic, "net2"}}), {routed}, "kube-system").error().message(),
      "annotation ipam.spidernet.io/default-route-nic names net2, the claims of the pod net1");
}

TEST(PoolAnnotations, name_pools_per_interface) {
  const auto read = [](std::string_view text) {
    return pool_annotations(annotated({{"ipam.spidernet.io/ippools", text}}));
  };
  const auto pools = read(R"([{"interface": "eth0", "ipv4": ["a*"], "cleangateway": true},
                              {"interface": "net1", "ipv6": ["b"]}])");
  ASSERT_TRUE(pools.ok());
  EXPECT_TRUE(pools->per_nic);
  EXPECT_EQ(pools->items,
            (std::vector<PoolsOfNic>{{"eth0", {"a*"}, {}, true}, {"net1", {}, {"b"}, false}}));
  const std::string prefix =
      "wrong input, invalid format of Pod annotation 'ipam.spidernet.io/ippools': ";
  EXPECT_EQ(read("[]").error().message(), prefix + "value requires at least one item");
  EXPECT_EQ(read(R"([{"interface": "a"}, {"ipv4": ["b"]}])").error().message(),
            prefix + "NIC should be either all specified or all unspecified");
  EXPECT_EQ(read(R"([{"interface": "a"}, {"interface": "a"}])").error().message(),
            prefix + "duplicate interface a");
  EXPECT_EQ(read("[").error().message(), prefix + "unexpected end of JSON input");
  for (const char* text : {"{}", "[1]", R"([{"ipv4": "a"}])", R"([{"ipv4": [1]}])",
                           R"([{"interface": 1}])", R"([{"cleangateway": "yes"}])"}) {
    EXPECT_FALSE(read(text).ok()) << text;
  }
}

TEST(PoolAnnotations, name_pools_for_all_interfaces) {
  const auto pools =
      pool_annotations(annotated({{"ipam.spidernet.io/ippool", R"({"ipv4": ["a", "b"]})"}}));
  ASSERT_TRUE(pools.ok());
  EXPECT_FALSE(pools->per_nic);
  EXPECT_EQ(pools->items, (std::vector<PoolsOfNic>{{"", {"a", "b"}, {}, false}}));
  EXPECT_TRUE(pool_annotations(annotated({}))->items.empty());
  // The one with interfaces goes first.
  EXPECT_TRUE(pool_annotations(annotated({{"ipam.spidernet.io/ippool", "{"},
                                          {"ipam.spidernet.io/ippools", R"([{"ipv4": ["a"]}])"}}))
                  ->per_nic);
}

TEST(SubnetAnnotations, name_subnets) {
  const auto single = subnet_annotations(
      annotated({{"ipam.spidernet.io/subnet", R"({"ipv4": ["s4"], "ipv6": ["s6"]})"}}));
  EXPECT_EQ(single.value(), (std::vector<SubnetsOfNic>{{"", {"s4"}, {"s6"}}}));
  const auto read = [](std::string_view text) {
    return subnet_annotations(annotated({{"ipam.spidernet.io/subnets", text}}));
  };
  EXPECT_EQ(read(R"([{"interface": "eth0", "ipv4": ["a"]}, {"interface": "net1", "ipv4": ["b"]}])")
                .value(),
            (std::vector<SubnetsOfNic>{{"eth0", {"a"}, {}}, {"net1", {"b"}, {}}}));
  for (const char* text :
       {"[]", R"([{"interface": "eth0"}])", R"([{"ipv4": ["a"]}])",
        R"([{"interface": "eth0", "ipv4": ["a"]}, {"interface": "net1", "ipv4": ["a"]}])",
        R"([{"interface": "eth0", "ipv4": ["a"]}, {"interface": "eth0", "ipv4": ["b"]}])",
        R"([{"interface": "eth0", "ipv4": [""]}])"}) {
    EXPECT_FALSE(read(text).ok()) << text;
  }
}

TEST(RouteAnnotation, is_a_list_of_routes) {
  const auto read = [](std::string_view text) {
    return route_annotation(annotated({{"ipam.spidernet.io/routes", text}}));
  };
  const auto routes = read(R"([{"dst": "10.0.0.0/16", "gw": "192.168.1.1"}])");
  ASSERT_TRUE(routes.ok());
  EXPECT_EQ((*routes)[0].dst.str(), "10.0.0.0/16");
  EXPECT_EQ((*routes)[0].gw.str(), "192.168.1.1");
  for (const char* text : {"{}", R"([{"dst": "10.0.0.0/16"}])", R"([{"gw": "1.1.1.1"}])",
                           R"([{"dst": "10.0.0.0/16", "gw": "fd00::1"}])"}) {
    EXPECT_FALSE(read(text).ok()) << text;
  }
  EXPECT_TRUE(route_annotation(annotated({}))->empty());
}

TEST(NamespaceAnnotation, names_default_pools) {
  const Value name_space = annotated({{"ipam.spidernet.io/default-ipv4-ippool", R"(["a", "b"])"},
                                      {"ipam.spidernet.io/default-ipv6-ippool", R"({"a": 1})"}});
  EXPECT_EQ(namespace_default_pools(name_space, 4).value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(namespace_default_pools(name_space, 6).error().message(),
            "wrong input, invalid format of Namespace annotation "
            "'ipam.spidernet.io/default-ipv6-ippool': it must be a list of strings");
  EXPECT_TRUE(namespace_default_pools({}, 4)->empty());
}

TEST(PoolSizeAnnotation, is_fixed_or_flexible) {
  const auto read = [](std::string_view text) {
    return pool_size_annotation(annotated({{"ipam.spidernet.io/ippool-ip-number", text}}));
  };
  EXPECT_EQ(read("5").value(), (PoolSize{false, 5}));
  EXPECT_EQ(read("+2").value(), (PoolSize{true, 2}));
  EXPECT_EQ(pool_size_annotation(annotated({})).value(), (PoolSize{true, 1}));
  for (const char* text : {"", "+", "++1", "1+", "-1", "x", "99999999999999999999"}) {
    EXPECT_FALSE(read(text).ok()) << text;
  }
}

TEST(ReclaimAnnotation, is_true_unless_said_otherwise) {
  const auto read = [](std::string_view text) {
    return pool_reclaim_annotation(annotated({{"ipam.spidernet.io/ippool-reclaim", text}}));
  };
  EXPECT_TRUE(pool_reclaim_annotation(annotated({})).value());
  EXPECT_FALSE(read("false").value());
  EXPECT_TRUE(read("T").value());
  EXPECT_FALSE(read("no").ok());
}

}  // namespace
}  // namespace dibs::drivers::net
