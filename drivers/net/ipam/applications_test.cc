#include "drivers/net/ipam/applications.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using Texts = std::vector<std::string>;

Value parsed(std::string_view text) { return json::parse(text).value(); }

const Application kWeb{"apps",    "v1",  "Deployment",
                       "default", "Web", "0a1b2c3d-0000-0000-0000-ABCDEF012345"};

TEST(Application, is_the_top_controller) {
  const Value pod = parsed(R"({"metadata": {"namespace": "default", "ownerReferences": [
      {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u0"},
      {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u1",
       "controller": true}]}})");
  const Value set = parsed(R"({"metadata": {"namespace": "default", "name": "web-1", "uid": "u1",
      "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                           "uid": "u2", "controller": true}]}})");
  const Application top = application_of(pod, set);
  EXPECT_EQ(top.kind, "Deployment");
  EXPECT_EQ(top.api_group, "apps");
  EXPECT_EQ(top.api_version, "v1");
  EXPECT_EQ(top.name, "web");
  EXPECT_EQ(top.uid, "u2");
  EXPECT_EQ(top.name_space, "default");
  EXPECT_EQ(application_of(pod, {}).kind, "ReplicaSet");
  Value other = set;
  other.mut("metadata").set("uid", "u9");
  EXPECT_EQ(application_of(pod, other).kind, "ReplicaSet") << "another of the same name";
  EXPECT_TRUE(application_of(parsed(R"({"metadata": {}})"), {}).orphan());
}

TEST(AutoPool, has_upstreams_name) {
  EXPECT_EQ(auto_pool_name(kWeb, "eth0", 4), "auto4-web-eth0-abcde");
  EXPECT_EQ(auto_pool_name(kWeb, "Data_0", 6), "auto6-web-data-0-abcde");
  Application large = kWeb;
  large.name = std::string(300, 'x');
  const std::string name = auto_pool_name(large, "eth0", 4);
  EXPECT_EQ(name.size(), 253U);
  EXPECT_TRUE(name.ends_with("x-eth0-abcde"));
  large.uid = "abc";
  EXPECT_TRUE(auto_pool_name(large, "eth0", 4).ends_with("-eth0-abc"));
}

TEST(AutoPool, is_as_large_as_asked) {
  EXPECT_EQ(wanted_addresses({true, 1}, 3), 4);
  EXPECT_EQ(wanted_addresses({false, 2}, 3), 2);
  EXPECT_EQ(wanted_addresses({true, INT64_MAX}, 3), INT64_MAX);
  EXPECT_EQ(replicas_of(parsed(R"({"kind": "Deployment", "spec": {"replicas": 3}})")), 3);
  EXPECT_EQ(replicas_of(parsed(R"({"kind": "Deployment", "spec": {}})")), 1);
  EXPECT_EQ(replicas_of(parsed(R"({"kind": "DaemonSet",
      "status": {"desiredNumberScheduled": 5}})")),
            5);
  EXPECT_EQ(replicas_of(parsed(R"({"kind": "Job", "spec": {"parallelism": 2}})")), 2);
  EXPECT_EQ(replicas_of(parsed(R"({"kind": "Job", "spec": {"parallelism": 2, "completions": 6}})")),
            6);
  EXPECT_EQ(replicas_of(parsed(R"({"kind": "Job", "spec": {"completions": 0}})")), 1);
  EXPECT_EQ(replicas_of(parsed(R"({"kind": "CronJob",
      "spec": {"jobTemplate": {"spec": {"completions": 4}}}})")),
            4);
}

class AutoPoolOfSubnet : public testing::Test {
 protected:
  Value object_ = parsed(R"({"apiVersion": "spiderpool.spidernet.io/v2beta1",
      "kind": "SpiderSubnet", "metadata": {"name": "subnet-a", "uid": "su"},
      "spec": {"subnet": "172.18.0.0/16", "ips": ["172.18.30.131-172.18.30.140"],
               "gateway": "172.18.0.1", "routes": [{"dst": "10.0.0.0/8", "gw": "172.18.0.2"}]}})");
  IpSubnet subnet_ = parse_ip_subnet(object_).value();
  IpSet held_ = IpSet::parse({"172.18.30.131", "172.18.30.133"}).value();
};

TEST_F(AutoPoolOfSubnet, takes_the_lowest_that_no_other_pool_holds) {
  const Value made = make_auto_pool(subnet_, object_, kWeb, "eth0", 3, true, held_).value();
  EXPECT_EQ(json::write(made["spec"]["ips"]), R"(["172.18.30.132","172.18.30.134-172.18.30.135"])");
  EXPECT_EQ(made["metadata"]["name"].as_string(), "auto4-web-eth0-abcde");
  EXPECT_EQ(made["spec"]["gateway"].as_string(), "172.18.0.1");
  EXPECT_EQ(made["spec"]["routes"], object_["spec"]["routes"]);
  EXPECT_EQ(made["metadata"]["ownerReferences"][0]["uid"].as_string(), "su");
  const IpPool pool = parse_ip_pool(made).value();
  EXPECT_TRUE(is_auto_pool(pool));
  EXPECT_TRUE(is_pool_of(pool, kWeb));
  EXPECT_EQ(made["metadata"]["labels"][kLabelOwnerSubnet].as_string(), "subnet-a");
  EXPECT_EQ(with_derived_fields(made, &object_), made) << "nothing is left to derive";
  Application other = kWeb;
  other.name = "db";
  EXPECT_FALSE(is_pool_of(pool, other));
  EXPECT_FALSE(is_pool_of(pool, {}));
}

TEST_F(AutoPoolOfSubnet, needs_enough_of_them) {
  EXPECT_TRUE(make_auto_pool(subnet_, object_, kWeb, "eth0", 8, true, held_).ok());
  EXPECT_EQ(make_auto_pool(subnet_, object_, kWeb, "eth0", 9, true, held_).error().message(),
            "insufficient subnet FreeIPs, required '9' but only left '8'");
}

TEST_F(AutoPoolOfSubnet, keeps_long_names_out_of_labels) {
  Application large = kWeb;
  large.name = std::string(61, 'x') + ".-y";
  const Value made = make_auto_pool(subnet_, object_, large, "eth0", 1, true, {}).value();
  EXPECT_EQ(made["metadata"]["labels"][kLabelApplicationName].as_string(), std::string(61, 'x'));
  EXPECT_TRUE(is_pool_of(parse_ip_pool(made).value(), large));
}

TEST_F(AutoPoolOfSubnet, grows_and_shrinks) {
  const Value made = make_auto_pool(subnet_, object_, kWeb, "eth0", 3, true, held_).value();
  const IpPool pool = parse_ip_pool(made).value();
  PoolStatus status;
  const auto resized = [&](std::int64_t wanted) {
    return resize_auto_pool(pool, status, subnet_, wanted, held_);
  };
  EXPECT_EQ(resized(3)->to_strings(), (Texts{"172.18.30.132", "172.18.30.134-172.18.30.135"}));
  EXPECT_EQ(resized(4)->to_strings(), (Texts{"172.18.30.132", "172.18.30.134-172.18.30.136"}));
  EXPECT_EQ(resized(9).error().message(),
            "insufficient subnet FreeIPs, required '6' but only left '5'");
  EXPECT_EQ(resized(1)->to_strings(), Texts{"172.18.30.132"});
  status.allocated[Ip::parse("172.18.30.135").value()] = {"default/web-1", "u"};
  EXPECT_EQ(resized(2)->to_strings(), (Texts{"172.18.30.132", "172.18.30.135"}));
  status.settled.add(Ip::parse("172.18.30.134").value());
  EXPECT_EQ(resized(1)->to_strings(), Texts{"172.18.30.134-172.18.30.135"}) << "in use";
  EXPECT_EQ(resized(0)->to_strings(), Texts{"172.18.30.134-172.18.30.135"});
}

TEST_F(AutoPoolOfSubnet, gives_way_to_a_pool_that_was_faster) {
  const Value made = make_auto_pool(subnet_, object_, kWeb, "eth0", 3, true, {}).value();
  const IpPool pool = parse_ip_pool(made).value();
  PoolStatus status;
  EXPECT_EQ(resize_auto_pool(pool, status, subnet_, 3, held_)->to_strings(),
            (Texts{"172.18.30.132", "172.18.30.134-172.18.30.135"}));
  status.allocated[Ip::parse("172.18.30.131").value()] = {"default/web-1", "u"};
  EXPECT_EQ(resize_auto_pool(pool, status, subnet_, 2, held_)->to_strings(),
            Texts{"172.18.30.131-172.18.30.132"})
      << "what is in use stays";
  status = {};
  status.admitted = pool.total;
  EXPECT_EQ(resize_auto_pool(pool, status, subnet_, 3, held_).value(), pool.ips);
}

TEST_F(AutoPoolOfSubnet, goes_with_its_application) {
  const Value made = make_auto_pool(subnet_, object_, kWeb, "eth0", 1, true, {}).value();
  const Value stays = make_auto_pool(subnet_, object_, kWeb, "eth0", 1, false, {}).value();
  PoolStatus used;
  used.settled.add(Ip::parse("172.18.30.131").value());
  EXPECT_TRUE(is_reclaimable(made, {}, false));
  EXPECT_FALSE(is_reclaimable(made, {}, true));
  EXPECT_FALSE(is_reclaimable(made, used, false));
  EXPECT_FALSE(is_reclaimable(stays, {}, false));
  EXPECT_FALSE(is_reclaimable(object_, {}, false));
}

TEST(StatefulSetPod, has_an_ordinal) {
  EXPECT_EQ(ordinal_of("web-3", "web"), 3);
  EXPECT_EQ(ordinal_of("web-0", "web"), 0);
  EXPECT_EQ(ordinal_of("a-b-12", "a-b"), 12);
  for (const char* pod : {"web", "web-", "web-a", "web-01", "web--1", "web-1a", "webs-1", "web-+1",
                          "web-99999999999999999999"}) {
    EXPECT_EQ(ordinal_of(pod, "web"), std::nullopt) << pod;
  }
}

TEST(StatefulSetPod, keeps_addresses_while_its_set_will_make_it_again) {
  Value set = parsed(R"({"metadata": {"name": "web"}, "spec": {"replicas": 3}})");
  EXPECT_TRUE(keeps_addresses("web-0", set));
  EXPECT_TRUE(keeps_addresses("web-2", set));
  EXPECT_FALSE(keeps_addresses("web-3", set));
  EXPECT_FALSE(keeps_addresses("db-0", set));
  EXPECT_FALSE(keeps_addresses("web-0", {}));
  set.mut("spec").mut("ordinals").set("start", 5);
  EXPECT_FALSE(keeps_addresses("web-4", set));
  EXPECT_TRUE(keeps_addresses("web-7", set));
  EXPECT_FALSE(keeps_addresses("web-8", set));
  set.mut("spec").set("replicas", 0);
  EXPECT_FALSE(keeps_addresses("web-5", set));
  set.mut("spec").erase("replicas");
  EXPECT_TRUE(keeps_addresses("web-5", set));
  set.mut("metadata").set("deletionTimestamp", "2024-01-01T00:00:00Z");
  EXPECT_FALSE(keeps_addresses("web-5", set));
}

}  // namespace
}  // namespace dibs::drivers::net
