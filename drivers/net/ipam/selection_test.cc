// Each rule against the next lower one, each filter, each step of the ranking.

#include "drivers/net/ipam/selection.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using Names = std::vector<std::string>;

Value parsed(std::string_view text) { return json::parse(text).value(); }

class Selection : public testing::Test {
 protected:
  Selection() {
    setting_.pools = &pools_;
    setting_.node = "node-a";
    setting_.pod = parsed(R"({"metadata": {"name": "web-0", "namespace": "default"}})");
    nic_.interface = "eth0";
    nic_.multus = "kube-system/macvlan-conf";
  }

  /// A pool of a subnet of its own; `spec` adds to it.
  void pool(const std::string& name, std::string_view spec = "{}", int version = 4) {
    const std::string base = version == 4 ? "10." + std::to_string(++count_) + ".0."
                                          : "fd00:" + std::to_string(++count_) + "::";
    Value object =
        Value::object({{"metadata", Value::object({{"name", name}})}, {"spec", parsed(spec)}});
    if (!object["spec"].contains("subnet")) {
      object.mut("spec").set("subnet", base + (version == 4 ? "0/24" : "/120"));
    }
    auto made = parse_ip_pool(object);
    ASSERT_TRUE(made.ok()) << made.error().message();
    pools_[name] = std::make_shared<const IpPool>(std::move(*made));
  }
  void annotate(std::string_view key, std::string_view text) {
    setting_.pod.mut("metadata").mut("annotations").set(key, text);
  }
  void annotate_namespace(std::string_view key, std::string_view text) {
    setting_.name_space.mut("metadata").mut("annotations").set(key, text);
  }

  Names v4(std::size_t index = 0) {
    const auto made = select_pools(setting_, nic_, index);
    return made.ok() ? made->v4 : Names{"error: " + made.error().message()};
  }
  Names v6() { return select_pools(setting_, nic_, 0).value().v6; }
  std::string refusal(std::size_t index = 0) {
    const auto made = select_pools(setting_, nic_, index);
    return made.ok() ? "selected" : made.error().message();
  }
  /// Why the pool alone is dropped; "" where it is taken.
  std::string dropped(std::string_view spec) {
    pools_.clear();
    pool("p", spec);
    return filter_reason(setting_, nic_, *pools_.at("p"), 4);
  }
  void controlled_by_deployment() {
    setting_.application = {"apps",    "v1",  "Deployment",
                            "default", "web", "0a1b2c3d-0000-0000-0000-abcdef012345"};
  }

  Pools pools_;
  Setting setting_;
  NicAsk nic_;
  int count_ = 0;
};

TEST_F(Selection, rule_6_takes_the_pool_that_names_the_configuration) {
  pool("ippool-test", R"({"multusName": ["kube-system/macvlan-conf"]})");
  pool("short", R"({"multusName": ["macvlan-conf"]})");
  pool("other", R"({"multusName": ["kube-system/other"]})");
  pool("nobody-s");
  EXPECT_EQ(v4(), (Names{"ippool-test", "short"}));
  setting_.options.multus_name_selects = false;
  EXPECT_EQ(refusal(), "no IPPool available, no pool selection rules of any type are specified");
}

TEST_F(Selection, rule_5_takes_default_pools_before_rule_6) {
  pool("b-default", R"({"default": true})");
  pool("a-default", R"({"default": true})");
  pool("named", R"({"multusName": ["kube-system/macvlan-conf"]})");
  EXPECT_EQ(v4(), (Names{"a-default", "b-default"}));
}

TEST_F(Selection, rule_6_serves_where_no_default_pool_fits_the_interface) {
  pool("default", R"({"default": true, "multusName": ["kube-system/other"]})");
  pool("named", R"({"multusName": ["kube-system/macvlan-conf"]})");
  EXPECT_EQ(v4(), Names{"named"});
  nic_.multus = "kube-system/third";
  EXPECT_EQ(refusal(),
            "no IPPool available, all IPv4 IPPools [default] of eth0 filtered out: the "
            "spec.multusName [kube-system/other] in the IPPool default used by the Pod interface "
            "eth0 is not matched with the multusCR kube-system/third specified by the Pod");
}

TEST_F(Selection, rule_4_takes_the_configuration_s_pools_before_rule_5) {
  pool("default", R"({"default": true})");
  pool("conf");
  nic_.ipv4_pools = {"conf"};
  EXPECT_EQ(v4(), Names{"conf"});
}

TEST_F(Selection, rule_3_takes_the_namespace_s_pools_before_rule_4) {
  pool("conf");
  pool("ns");
  pool("ns6", "{}", 6);
  nic_.ipv4_pools = {"conf"};
  annotate_namespace("ipam.spidernet.io/default-ipv4-ippool", R"(["ns"])");
  EXPECT_EQ(v4(), Names{"ns"});
  EXPECT_EQ(v6(), Names{});
  annotate_namespace("ipam.spidernet.io/default-ipv6-ippool", R"(["ns6"])");
  EXPECT_EQ(v6(), Names{"ns6"});
}

TEST_F(Selection, pools_of_the_claim_go_before_rule_3_and_are_the_only_ones) {
  pool("ns");
  pool("claim-b");
  pool("claim-a");
  pool("claim6", "{}", 6);
  annotate_namespace("ipam.spidernet.io/default-ipv4-ippool", R"(["ns"])");
  nic_.only_pools = {"claim-b", "claim6", "claim-a"};
  EXPECT_EQ(v4(), (Names{"claim-b", "claim-a"}));
  EXPECT_EQ(v6(), Names{"claim6"});
  nic_.only_pools = {"absent"};
  EXPECT_EQ(refusal(),
            "failed to get original IPPool absent: SpiderIPPool.spiderpool.spidernet.io \"absent\" "
            "not found");
}

TEST_F(Selection, rule_2_takes_the_pod_s_pools_before_the_claim_s) {
  pool("pod");
  pool("claim");
  nic_.only_pools = {"claim"};
  annotate("ipam.spidernet.io/ippool", R"({"ipv4": ["pod"]})");
  EXPECT_EQ(v4(), Names{"pod"});
  EXPECT_EQ(v4(1), Names{"pod"});
}

TEST_F(Selection, rule_2_takes_ippools_before_ippool) {
  pool("a");
  pool("b");
  pool("c");
  annotate("ipam.spidernet.io/ippool", R"({"ipv4": ["a"]})");
  annotate("ipam.spidernet.io/ippools",
           R"([{"interface": "net1", "ipv4": ["c"]}, {"interface": "eth0", "ipv4": ["b"]}])");
  EXPECT_EQ(v4(), Names{"b"});
  nic_.interface = "net2";
  EXPECT_EQ(refusal(2),
            "wrong input, invalid format of Pod annotation 'ipam.spidernet.io/ippools': interface "
            "net2 must be specified");
}

TEST_F(Selection, items_without_interfaces_serve_them_in_turn) {
  pool("a");
  pool("b");
  annotate("ipam.spidernet.io/ippools",
           R"([{"ipv4": ["a"]}, {"ipv4": ["b"], "cleangateway": true}])");
  EXPECT_EQ(v4(0), Names{"a"});
  nic_.interface = "net1";
  EXPECT_EQ(v4(1), Names{"b"});
  EXPECT_TRUE(select_pools(setting_, nic_, 1)->clean_gateway);
  EXPECT_NE(refusal(2), "selected");
}

TEST_F(Selection, rule_1_takes_the_pool_of_the_application_before_rule_2) {
  controlled_by_deployment();
  pool("pod");
  annotate("ipam.spidernet.io/ippool", R"({"ipv4": ["pod"]})");
  annotate("ipam.spidernet.io/subnet", R"({"ipv4": ["subnet-a"]})");
  EXPECT_EQ(refusal(),
            "no matching auto-created IPPool candidate auto4-web-eth0-abcde for eth0, SpiderSubnet "
            "[subnet-a] has not made it yet");
  EXPECT_EQ(select_pools(setting_, nic_, 0).error().code(), Code::unavailable);
  pool("auto4-web-eth0-abcde");
  EXPECT_EQ(v4(), Names{"auto4-web-eth0-abcde"});
  // It is for the default interface alone.
  nic_.interface = "net1";
  EXPECT_EQ(v4(1), Names{"pod"});
  annotate("ipam.spidernet.io/subnets", R"([{"interface": "eth0", "ipv4": ["subnet-a"]}])");
  EXPECT_NE(refusal(1), "selected");
}

TEST_F(Selection, rule_1_is_not_for_pods_without_a_controller) {
  annotate("ipam.spidernet.io/subnet", R"({"ipv4": ["subnet-a"]})");
  EXPECT_EQ(refusal(), "SpiderSubnet feature doesn't support no-controller pod");
  setting_.options.subnets = false;
  EXPECT_EQ(refusal(),
            "it's invalid to use 'ipam.spidernet.io/subnets' or 'ipam.spidernet.io/subnet' "
            "annotation when Auto-Pool feature is disabled");
}

TEST_F(Selection, wildcards_name_existing_pools_of_the_family) {
  pool("web-b");
  pool("web-a");
  pool("web-6", "{}", 6);
  pool("db");
  nic_.ipv4_pools = {"db", "web-*"};
  EXPECT_EQ(v4(), (Names{"db", "web-a", "web-b"}));
  nic_.ipv4_pools = {"web-b", "web-?"};
  EXPECT_EQ(v4(), (Names{"web-b", "web-a"}));
  nic_.ipv4_pools = {"web-[ab]"};
  EXPECT_EQ(v4(), (Names{"web-a", "web-b"}));
  nic_.ipv4_pools = {"x*"};
  EXPECT_EQ(refusal(), "no IPPool available, no IPv4 IPPool matches [x*] of eth0");
  nic_.ipv4_pools = {"[]a]"};
  EXPECT_EQ(refusal(),
            "failed to match wildcard: IPv4 PoolName pattern '[]a]': syntax error in pattern "
            "'[]a]'");
}

TEST_F(Selection, named_pools_must_exist_and_be_named_once) {
  pool("a");
  nic_.ipv4_pools = {"a", "a"};
  EXPECT_EQ(refusal(), "wrong input, duplicate IPPool a specified for NIC eth0");
  nic_.ipv4_pools = {"a", "b"};
  EXPECT_NE(refusal().find("failed to get original IPPool b"), std::string::npos);
}

TEST_F(Selection, refused_pools_are_dropped_with_their_reason) {
  pool("a");
  pool("overlaps");
  nic_.ipv4_pools = {"broken", "overlaps", "a"};
  setting_.refused = {{"broken", "spec.subnet: no"}, {"overlaps", "overlap with IPPool a"}};
  EXPECT_EQ(v4(), Names{"a"});
  nic_.ipv4_pools = {"broken", "overlaps"};
  EXPECT_EQ(refusal(),
            "no IPPool available, all IPv4 IPPools [broken overlaps] of eth0 filtered out: "
            "[invalid IPPool broken: spec.subnet: no, invalid IPPool overlaps: overlap with IPPool "
            "a]");
}

TEST_F(Selection, refused_pools_are_named_where_no_other_is) {
  setting_.refused = {{"a", "not admitted yet"}, {"b", "overlap with IPPool c"}};
  EXPECT_EQ(
      refusal(),
      "no IPPool available, no pool selection rules of any type are specified; invalid IPPool "
      "a: not admitted yet; invalid IPPool b: overlap with IPPool c");
  nic_.ipv4_pools = {"b*"};
  EXPECT_EQ(refusal(),
            "no IPPool available, no IPv4 IPPool matches [b*] of eth0; invalid IPPool b: overlap "
            "with IPPool c");
  nic_.ipv4_pools.clear();
  for (const char* name : {"c", "d", "e"}) setting_.refused[name] = "wrong";
  EXPECT_TRUE(refusal().ends_with("; invalid IPPool c: wrong; …"));
}

TEST_F(Selection, families_that_are_off_are_left_out) {
  pool("four", R"({"default": true})");
  pool("six", R"({"default": true})", 6);
  EXPECT_EQ(v4(), Names{"four"});
  EXPECT_EQ(v6(), Names{"six"});
  setting_.options.ipv6 = false;
  EXPECT_EQ(v4(), Names{"four"});
  EXPECT_EQ(v6(), Names{});
  setting_.options.ipv4 = false;
  EXPECT_EQ(refusal(), "no IPPool available, the IP families of all IPPools of eth0 are disabled");
}

TEST_F(Selection, a_rule_of_a_family_that_is_off_still_goes_before_the_next) {
  pool("default", R"({"default": true})");
  annotate("ipam.spidernet.io/ippool", R"({"ipv6": ["six"]})");
  setting_.options.ipv6 = false;
  EXPECT_EQ(refusal(), "no IPPool available, the IP families of all IPPools of eth0 are disabled");
}

TEST_F(Selection, a_default_pool_of_a_family_that_is_off_does_not_serve) {
  pool("four", R"({"default": true, "disable": true})");
  pool("six", R"({"default": true})", 6);
  pool("named", R"({"multusName": ["macvlan-conf"]})");
  setting_.options.ipv6 = false;
  EXPECT_EQ(v4(), Names{"named"});
}

TEST_F(Selection, lists_and_patterns_are_not_without_end) {
  pool("a");
  nic_.ipv4_pools.assign(100, "a*");
  EXPECT_EQ(v4(), Names{"a"});
  nic_.ipv4_pools.push_back("a*");
  EXPECT_EQ(refusal(), "wrong input, more than 100 IPPools specified for NIC eth0");
  nic_.ipv4_pools = {"*" + std::string(253, 'a')};
  EXPECT_NE(refusal().find("a pattern of more than 253 characters"), std::string::npos);
}

TEST_F(Selection, one_family_without_a_pool_is_an_error) {
  pool("four", R"({"default": true})");
  pool("six", R"({"default": true, "disable": true})", 6);
  pool("named", R"({"multusName": ["kube-system/macvlan-conf"]})", 6);
  EXPECT_EQ(refusal(),
            "no IPPool available, all IPv6 IPPools [six] of eth0 filtered out: disabled IPPool "
            "six");
}

TEST_F(Selection, drops_by_state_and_family) {
  EXPECT_EQ(dropped(R"({"disable": true})"), "disabled IPPool p");
  EXPECT_EQ(dropped("{}"), "");
  IpPool going = *pools_.at("p");
  going.terminating = true;
  EXPECT_EQ(filter_reason(setting_, nic_, going, 4), "terminating IPPool p");
  EXPECT_EQ(filter_reason(setting_, nic_, *pools_.at("p"), 6),
            "expect an IPv6 IPPool, but the version of the IPPool p is IPv4");
}

TEST_F(Selection, drops_by_node) {
  setting_.node_labels = parsed(R"({"zone": "a"})");
  EXPECT_EQ(dropped(R"({"nodeName": ["node-b", "node-a"]})"), "");
  EXPECT_EQ(dropped(R"({"nodeName": ["node-b"]})"), "unmatched Node name of IPPool p");
  EXPECT_EQ(dropped(R"({"nodeAffinity": {"matchLabels": {"zone": "a"}}})"), "");
  EXPECT_EQ(dropped(R"({"nodeAffinity": {"matchLabels": {"zone": "b"}}})"),
            "unmatched Node affinity of IPPool p");
  // The names go before the selector.
  EXPECT_EQ(dropped(R"({"nodeName": ["node-a"], "nodeAffinity": {"matchLabels": {"zone": "b"}}})"),
            "");
}

TEST_F(Selection, drops_by_namespace) {
  setting_.name_space = parsed(R"({"metadata": {"labels": {"team": "a"}}})");
  EXPECT_EQ(dropped(R"({"namespaceName": ["default"]})"), "");
  EXPECT_EQ(dropped(R"({"namespaceName": ["x"]})"), "unmatched Namespace name of IPPool p");
  EXPECT_EQ(dropped(R"({"namespaceAffinity": {"matchLabels": {"team": "a"}}})"), "");
  EXPECT_EQ(dropped(R"({"namespaceAffinity": {"matchLabels": {"team": "b"}}})"),
            "unmatched Namespace affinity of IPPool p");
  EXPECT_EQ(dropped(R"({"namespaceName": ["default"],
                        "namespaceAffinity": {"matchLabels": {"team": "b"}}})"),
            "");
}

TEST_F(Selection, drops_by_pod) {
  setting_.pod.mut("metadata").set("labels", parsed(R"({"app": "web"})"));
  EXPECT_EQ(dropped(R"({"podAffinity": {"matchLabels": {"app": "web"}}})"), "");
  EXPECT_EQ(dropped(R"({"podAffinity": {"matchLabels": {"app": "db"}}})"),
            "unmatched Pod affinity of IPPool p");
}

TEST_F(Selection, drops_pools_of_other_applications) {
  controlled_by_deployment();
  Value object = parsed(R"({"metadata": {"name": "auto",
      "labels": {"ipam.spidernet.io/owner-application-name": "web"}},
      "spec": {"subnet": "10.1.0.0/16", "multusName": ["x/y"], "podAffinity": {}}})");
  object.mut("spec")
      .mut("podAffinity")
      .set("matchLabels", application_labels(setting_.application));
  const IpPool own = parse_ip_pool(object).value();
  // multusName does not count for these.
  EXPECT_EQ(filter_reason(setting_, nic_, own, 4), "");
  setting_.application.name = "db";
  EXPECT_EQ(filter_reason(setting_, nic_, own, 4),
            "unmatched Pod affinity of auto-created IPPool auto");
}

TEST_F(Selection, drops_by_configuration) {
  EXPECT_EQ(dropped(R"({"multusName": ["x/y", "macvlan-conf"]})"), "");
  EXPECT_EQ(dropped(R"({"multusName": ["x/y", "z"]})"),
            "the spec.multusName [x/y z] in the IPPool p used by the Pod interface eth0 is not "
            "matched with the multusCR kube-system/macvlan-conf specified by the Pod");
  setting_.options.install_namespace = "elsewhere";
  EXPECT_NE(dropped(R"({"multusName": ["macvlan-conf"]})"), "");
  nic_.multus.clear();
  EXPECT_EQ(dropped(R"({"multusName": ["x/y"]})"),
            "cluster-network multus isn't set, the IPPool p specified multusName [x/y] unmatched");
}

TEST_F(Selection, drops_by_the_subnet_of_the_device) {
  const char* spec = R"({"subnet": "10.6.0.0/16"})";
  nic_.host_known = true;
  EXPECT_EQ(dropped(spec), "") << "no address tells nothing";
  nic_.host_subnets = {Subnet::parse("fd00::/64").value()};
  EXPECT_EQ(dropped(spec), "") << "nor does one of the other family";
  nic_.host_subnets.push_back(Subnet::parse("172.18.0.0/16").value());
  EXPECT_EQ(dropped(spec),
            "unmatched subnet of IPPool p: the device of eth0 has [172.18.0.0/16], "
            "not one of 10.6.0.0/16");
  nic_.host_subnets.push_back(Subnet::parse("10.6.0.0/24").value());
  EXPECT_EQ(dropped(spec), "");
}

TEST_F(Selection, subnets_count_as_the_option_says) {
  const char* spec = R"({"subnet": "10.6.0.0/16"})";
  nic_.host_known = true;
  setting_.options.subnet_match = SubnetMatch::strict;
  EXPECT_EQ(dropped(spec),
            "unmatched subnet of IPPool p: the device of eth0 has no address, not "
            "one of 10.6.0.0/16");
  setting_.options.subnet_match = SubnetMatch::automatic;
  nic_.match_master_subnet = true;
  EXPECT_NE(dropped(spec), "");
  nic_.match_master_subnet = false;
  setting_.options.subnet_match = SubnetMatch::off;
  nic_.host_subnets = {Subnet::parse("172.18.0.0/16").value()};
  EXPECT_EQ(dropped(spec), "");
  nic_.host_known = false;
  setting_.options.subnet_match = SubnetMatch::strict;
  EXPECT_EQ(dropped(spec), "") << "nothing is known of the device";
}

TEST_F(Selection, a_pool_of_a_wrong_subnet_leaves_the_others) {
  pool("a", R"({"subnet": "10.6.0.0/16"})");
  pool("b", R"({"subnet": "172.18.0.0/16"})");
  nic_.ipv4_pools = {"a", "b"};
  nic_.host_known = true;
  nic_.host_subnets = {Subnet::parse("172.18.0.0/16").value()};
  EXPECT_EQ(v4(), Names{"b"});
}

TEST_F(Selection, ranks_the_more_particular_first) {
  setting_.pod.mut("metadata").set("labels", parsed(R"({"app": "web"})"));
  const std::string rest = R"("nodeName": ["node-a"], "nodeAffinity": {},
      "namespaceName": ["default"], "namespaceAffinity": {}, "multusName": ["macvlan-conf"])";
  pool("none");
  pool("multus", R"({"multusName": ["macvlan-conf"]})");
  pool("namespace-affinity", R"({"namespaceAffinity": {}})");
  pool("namespace", R"({"namespaceName": ["default"]})");
  pool("node-affinity", R"({"nodeAffinity": {}})");
  pool("node", R"({"nodeName": ["node-a"]})");
  pool("all-but-pod", "{" + rest + "}");
  pool("pod", R"({"podAffinity": {"matchLabels": {"app": "web"}}})");
  nic_.ipv4_pools = {"none",          "multus", "namespace-affinity", "namespace",
                     "node-affinity", "node",   "all-but-pod",        "pod"};
  EXPECT_EQ(v4(), (Names{"pod", "all-but-pod", "node", "node-affinity", "namespace",
                         "namespace-affinity", "multus", "none"}));
}

TEST_F(Selection, keeps_the_order_of_the_rule_among_equals) {
  pool("a");
  pool("b");
  pool("c");
  nic_.ipv4_pools = {"c", "a", "b"};
  EXPECT_EQ(v4(), (Names{"c", "a", "b"}));
}

TEST(SubnetMatch, has_three_names) {
  EXPECT_EQ(parse_subnet_match("auto").value(), SubnetMatch::automatic);
  EXPECT_EQ(parse_subnet_match("strict").value(), SubnetMatch::strict);
  EXPECT_EQ(parse_subnet_match("off").value(), SubnetMatch::off);
  EXPECT_FALSE(parse_subnet_match("").ok());
}

TEST(Pattern, is_that_of_go) {
  const auto matches = [](std::string_view pattern, std::string_view name) {
    return matches_pattern(pattern, name).value();
  };
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*c*e", "abcde"));
  EXPECT_TRUE(matches("a*c*e", "acce"));
  EXPECT_FALSE(matches("a*c*e", "abcd"));
  EXPECT_FALSE(matches("a?", "a"));
  EXPECT_TRUE(matches("[a-c]x", "bx"));
  EXPECT_TRUE(matches("[^a-c]x", "dx"));
  EXPECT_FALSE(matches("[^a-c]x", "ax"));
  EXPECT_TRUE(matches(R"(\*)", "*"));
  EXPECT_TRUE(matches(R"([\]])", "]"));
  EXPECT_FALSE(matches("*", "a/b"));
  EXPECT_FALSE(matches("", "a"));
  EXPECT_TRUE(matches("", ""));
  for (const char* pattern : {"[", "[]", "[a", "[]a]", "[-]", "[a-]", "[^]", R"(\)", "[a-b-c]"}) {
    EXPECT_FALSE(matches_pattern(pattern, "a").ok()) << pattern;
  }
  // No pattern makes it slow.
  const std::string many(200, 'a');
  std::string stars;
  for (int i = 0; i < 100; ++i) stars += "a*";
  EXPECT_FALSE(matches(stars + "b", many));
}

}  // namespace
}  // namespace dibs::drivers::net
