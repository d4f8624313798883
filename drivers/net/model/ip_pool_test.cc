#include "drivers/net/model/ip_pool.h"

#include <gtest/gtest.h>

#include "drivers/net/model/reserved_ip.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using Texts = std::vector<std::string>;

Value parsed(std::string_view text) { return json::parse(text).value(); }

/// The pool of the document, with a spec that `more` adds to.
Value pool_object(std::string_view more = "{}", std::string_view name = "ippool-test") {
  Value object = Value::object({{"apiVersion", "spiderpool.spidernet.io/v2beta1"},
                                {"kind", "SpiderIPPool"},
                                {"metadata", Value::object({{"name", name}})},
                                {"spec", parsed(R"({"subnet": "172.18.0.0/16",
                                     "ips": ["172.18.30.131-172.18.30.140"],
                                     "multusName": ["kube-system/macvlan-conf"]})")}});
  const Value added = parsed(more);
  for (const auto& [key, value] : added.members()) object.mut("spec").set(key, value);
  return object;
}

IpPool pool_of(std::string_view more = "{}", std::string_view name = "ippool-test") {
  return parse_ip_pool(pool_object(more, name)).value();
}

std::string refusal(std::string_view more) {
  const auto pool = parse_ip_pool(pool_object(more));
  return pool.ok() ? "accepted" : pool.error().message();
}

TEST(IpPool, reads_the_document_s) {
  const IpPool pool = pool_of();
  EXPECT_EQ(pool.name, "ippool-test");
  EXPECT_EQ(pool.version, 4);
  EXPECT_EQ(pool.subnet.str(), "172.18.0.0/16");
  EXPECT_EQ(pool.total.count(), 10);
  EXPECT_EQ(pool.multus_names, Texts{"kube-system/macvlan-conf"});
  EXPECT_FALSE(pool.is_default || pool.disabled || pool.terminating || pool.automatic);
}

TEST(IpPool, leaves_out_what_is_excluded) {
  const IpPool pool = pool_of(R"({"excludeIPs": ["172.18.30.132-172.18.30.134", "172.18.99.1"]})");
  EXPECT_EQ(pool.total.to_strings(), (Texts{"172.18.30.131", "172.18.30.135-172.18.30.140"}));
}

TEST(IpPool, reads_all_of_the_spec) {
  const IpPool pool = pool_of(R"({"gateway": "172.18.0.1", "vlan": 7, "default": true,
      "disable": true, "nodeName": ["a"], "namespaceName": ["x", "y"],
      "routes": [{"dst": "10.0.0.0/8", "gw": "172.18.0.2"}],
      "podAffinity": {"matchLabels": {"app": "web"}},
      "nodeAffinity": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
      "namespaceAffinity": {}})");
  EXPECT_EQ(pool.gateway->str(), "172.18.0.1");
  ASSERT_EQ(pool.routes.size(), 1U);
  EXPECT_EQ(pool.routes[0].dst.str(), "10.0.0.0/8");
  EXPECT_EQ(pool.routes[0].gw.str(), "172.18.0.2");
  EXPECT_TRUE(pool.is_default && pool.disabled);
  EXPECT_EQ(pool.namespace_names, (Texts{"x", "y"}));
  EXPECT_TRUE(pool.pod_affinity->matches(parsed(R"({"app": "web"})")));
  EXPECT_FALSE(pool.node_affinity->matches(parsed(R"({"zone": "b"})")));
  EXPECT_TRUE(pool.namespace_affinity->matches({}));
}

TEST(IpPool, judges_version_and_subnet) {
  EXPECT_EQ(refusal(R"({"ipVersion": 5})"),
            "spec.ipVersion: Unsupported value: 5: supported values: \"4\", \"6\"");
  EXPECT_EQ(refusal(R"({"subnet": "nonsense"})"),
            "spec.ipVersion: Invalid value: null: is not generated correctly, 'spec.subnet' may be "
            "invalid");
  EXPECT_EQ(refusal(R"({"ipVersion": 6})"),
            "spec.subnet: Invalid value: \"172.18.0.0/16\": invalid CIDR format in IPv6 "
            "'172.18.0.0/16'");
  EXPECT_EQ(refusal(R"({"subnet": "172.18.1.0/16"})"),
            "spec.subnet: Invalid value: \"172.18.1.0/16\": unformatted subnet 172.18.1.0/16, "
            "please change it to 172.18.0.0/16");
  EXPECT_EQ(parse_ip_pool(pool_object(), {.v4 = false}).error().message(),
            "spec.ipVersion: Forbidden: IPv4 is disabled");
  EXPECT_EQ(parse_ip_pool(pool_object(R"({"subnet": "fd00::/120", "ips": []})"), {.v6 = false})
                .error()
                .message(),
            "spec.ipVersion: Forbidden: IPv6 is disabled");
}

TEST(IpPool, judges_ranges) {
  EXPECT_EQ(refusal(R"({"ips": ["172.18.0.5", "10.0.0.1"]})"),
            "spec.ips[1]: Invalid value: \"10.0.0.1\": not pertains to the 'spec.subnet' "
            "172.18.0.0/16 of IPPool");
  EXPECT_EQ(refusal(R"({"ips": ["172.18.0.0/24"]})"),
            "spec.ips[0]: Invalid value: \"172.18.0.0/24\": invalid IP range format in IPv4 "
            "'172.18.0.0/24'");
  EXPECT_EQ(refusal(R"({"excludeIPs": ["fd00::1"]})"),
            "spec.excludeIPs[0]: Invalid value: \"fd00::1\": invalid IP range format in IPv4 "
            "'fd00::1'");
  EXPECT_EQ(refusal(R"({"ips": [7]})"), "spec.ips[0]: Invalid value: 7: must be a string");
  EXPECT_EQ(refusal(R"({"ips": "172.18.0.5"})"),
            "spec.ips: Invalid value: \"172.18.0.5\": must be a list of strings");
}

TEST(IpPool, keeps_the_gateway_from_pods) {
  EXPECT_EQ(refusal(R"({"gateway": "10.0.0.1"})"),
            "spec.gateway: Invalid value: \"10.0.0.1\": not pertains to the 'spec.subnet' "
            "172.18.0.0/16 of IPPool");
  EXPECT_EQ(refusal(R"({"gateway": "172.18.30.133"})"),
            "spec.ips[0]: Invalid value: \"172.18.30.131-172.18.30.140\": conflicts with "
            "'spec.gateway' 172.18.30.133, add the gateway IP address to 'spec.excludeIPs' or "
            "remove it from 'spec.ips'");
  EXPECT_EQ(refusal(R"({"gateway": "172.18.30.133", "excludeIPs": ["172.18.30.133"]})"),
            "accepted");
  EXPECT_EQ(refusal(R"({"gateway": "fd00::1"})"),
            "spec.gateway: Invalid value: \"fd00::1\": invalid IP format in IPv4 'fd00::1'");
}

TEST(IpPool, judges_routes_and_vlan) {
  EXPECT_EQ(refusal(R"({"routes": [{"dst": "0.0.0.0/0", "gw": "172.18.0.1"}]})"),
            "spec.routes[0].dst: Invalid value: \"0.0.0.0/0\": please specify 'spec.gateway' to "
            "configure the default route");
  EXPECT_EQ(refusal(R"({"routes": [{"dst": "10.0.0.0/8", "gw": "172.18.0.1"},
                                   {"dst": "10.0.0.0/8", "gw": "172.18.0.2"}]})"),
            "spec.routes[1].dst: Invalid value: \"10.0.0.0/8\": duplicate route with the same dst");
  EXPECT_EQ(refusal(R"({"routes": [{"dst": "fd00::/8", "gw": "172.18.0.1"}]})"),
            "spec.routes[0].dst: Invalid value: \"fd00::/8\": invalid CIDR format in IPv4 "
            "'fd00::/8'");
  EXPECT_EQ(refusal(R"({"routes": [{"dst": "10.0.0.0/8", "gw": "10.0.0.1"}]})"),
            "spec.routes[0].gw: Invalid value: \"10.0.0.1\": not pertains to the 'spec.subnet' "
            "172.18.0.0/16 of IPPool");
  EXPECT_EQ(refusal(R"({"vlan": 4095})"),
            "spec.vlan: Invalid value: 4095: must be between 0 and 4094");
}

TEST(IpPool, judges_affinities) {
  EXPECT_EQ(refusal(R"({"podAffinity": {}})"),
            "spec.podAffinity: Invalid value: {}: empty podAffinity is invalid for SpiderIPPool");
  EXPECT_NE(refusal(R"({"podAffinity": {"matchLabels": {"a b": "c"}}})"), "accepted");
  EXPECT_NE(refusal(R"({"nodeAffinity": {"matchExpressions": [{"key": "k", "operator": "Is"}]}})"),
            "accepted");
  Value automatic = pool_object(R"({"podAffinity": {"matchLabels": {"app": "web"}}})");
  automatic.mut("metadata").mut("labels").set(kLabelApplicationName, "web");
  EXPECT_EQ(parse_ip_pool(automatic).error().message(),
            "spec.podAffinity: Invalid value: {\"matchLabels\":{\"app\":\"web\"}}: it's invalid to "
            "add additional podAffinity matchLabels for auto-created SpiderIPPool");
}

TEST(IpPool, tells_overlaps) {
  const IpPool pool = pool_of();
  const IpPool apart = pool_of(R"({"ips": ["172.18.1.1"]})", "apart");
  const IpPool inside = pool_of(R"({"subnet": "172.18.0.0/24", "ips": []})", "inside");
  const IpPool same =
      pool_of(R"({"ips": ["172.18.30.139-172.18.30.150", "172.18.30.131"]})", "same");
  const IpPool six = pool_of(R"({"subnet": "fd00::/120", "ips": ["fd00::1"]})", "six");
  EXPECT_EQ(conflicts(pool, {pool, apart, six}), Texts{});
  EXPECT_EQ(conflicts(pool, {pool, inside}),
            Texts{"spec.subnet: Invalid value: \"172.18.0.0/16\": overlap with IPPool inside which "
                  "'spec.subnet' is 172.18.0.0/24"});
  EXPECT_EQ(conflicts(pool, {pool, same}),
            Texts{"spec.ips: Forbidden: overlap with IPPool same in IP ranges [172.18.30.131 "
                  "172.18.30.139-172.18.30.140], total IP addresses of an IPPool are jointly "
                  "determined by 'spec.ips' and 'spec.excludeIPs'"});
}

TEST(IpPool, may_not_lose_what_is_in_use) {
  PoolStatus status;
  status.allocated[Ip::parse("172.18.30.131").value()] = {"default/a", "u1"};
  status.settled.add(Ip::parse("172.18.30.140").value());
  EXPECT_EQ(use_faults(pool_of(R"({"ips": ["172.18.30.131", "172.18.30.140"]})"), status), Texts{});
  EXPECT_EQ(
      use_faults(pool_of(R"({"ips": ["172.18.30.135"]})"), status),
      (Texts{"spec.ips: Forbidden: remove an IP address 172.18.30.131 that is being used by Pod "
             "default/a, total IP addresses of an IPPool are jointly determined by 'spec.ips' and "
             "'spec.excludeIPs'",
             "spec.ips: Forbidden: remove an IP address 172.18.30.140 that is being used by a Pod, "
             "total IP addresses of an IPPool are jointly determined by 'spec.ips' and "
             "'spec.excludeIPs'"}));
}

TEST(PoolStatus, reads_and_prints_upstreams_records) {
  const Value object = Value::object({{"status", parsed(R"({"allocatedIPs":
        "{\"172.18.30.131\":{\"pod\":\"default/a\",\"podUid\":\"u1\"},\"172.18.30.9\":{\"pod\":\"default/b\",\"podUid\":\"u2\",\"takenUp\":2}}",
        "settledIPs": ["172.18.30.132-172.18.30.135"], "totalIPCount": 10, "allocatedIPCount": 1,
        "admittedIPs": ["172.18.30.131-172.18.30.140"]})")}});
  const PoolStatus status = parse_pool_status(object).value();
  ASSERT_EQ(status.allocated.size(), 2U);
  EXPECT_EQ(status.allocated.at(Ip::parse("172.18.30.9").value()),
            (PoolRecord{"default/b", "u2", 2}));
  EXPECT_EQ(status.used().count(), 6);
  EXPECT_EQ(status.admitted.count(), 10);
  const Value written = to_status(status);
  EXPECT_EQ(written["allocatedIPs"], object["status"]["allocatedIPs"]);
  EXPECT_EQ(written["settledIPs"], object["status"]["settledIPs"]);
  EXPECT_EQ(written["admittedIPs"], object["status"]["admittedIPs"]);
  EXPECT_EQ(written["allocatedIPCount"].as_int(), 6);
  EXPECT_EQ(json::write(to_status({})), R"({"totalIPCount":0,"allocatedIPCount":0})");
}

TEST(PoolStatus, refuses_what_it_cannot_read) {
  for (const char* text : {R"({"allocatedIPs": "{"})", R"({"allocatedIPs": "[]"})",
                           R"({"allocatedIPs": {}})", R"({"allocatedIPs": "{\"x\":{}}"})",
                           R"({"settledIPs": ["x"]})", R"({"settledIPs": "1.1.1.1"})"}) {
    EXPECT_FALSE(parse_pool_status(Value::object({{"status", parsed(text)}})).ok()) << text;
  }
  EXPECT_TRUE(
      parse_pool_status(Value::object({{"status", parsed(R"({"allocatedIPs": "null"})")}})).ok());
  EXPECT_TRUE(parse_pool_status({}).ok());
}

TEST(PoolStatus, counts_an_address_once) {
  const PoolStatus status = parse_pool_status(Value::object({{"status", parsed(R"({"allocatedIPs":
        "{\"172.18.30.131\":{\"pod\":\"default/a\",\"podUid\":\"u1\"}}",
        "settledIPs": ["172.18.30.131-172.18.30.132"]})")}}))
                                .value();
  EXPECT_EQ(to_status(status)["allocatedIPCount"].as_int(), 2);
}

TEST(DerivedFields, are_those_of_upstream) {
  const Value made = with_derived_fields(
      pool_object(R"({"ips": ["172.18.0.9", "172.18.0.8"], "excludeIPs": ["172.18.0.9"]})"),
      nullptr);
  EXPECT_EQ(json::write(made["metadata"]["finalizers"]), R"(["spiderpool.spidernet.io"])");
  EXPECT_EQ(made["metadata"]["labels"][kLabelPoolCidr].as_string(), "172-18-0-0-16");
  EXPECT_EQ(made["spec"]["ipVersion"].as_int(), 4);
  EXPECT_EQ(json::write(made["spec"]["ips"]), R"(["172.18.0.8-172.18.0.9"])");
  EXPECT_EQ(json::write(made["spec"]["excludeIPs"]), R"(["172.18.0.9"])");
  EXPECT_EQ(with_derived_fields(made, nullptr), made);
  const Value six =
      with_derived_fields(pool_object(R"({"subnet": "fd00:1::/120", "ips": []})"), nullptr);
  EXPECT_EQ(six["metadata"]["labels"][kLabelPoolCidr].as_string(), "fd00-1---120");
}

TEST(DerivedFields, are_labels_that_the_server_takes) {
  const Value made = with_derived_fields(pool_object(R"({"subnet": "::/64", "ips": []})"), nullptr);
  EXPECT_EQ(made["metadata"]["labels"][kLabelPoolCidr].as_string(), "0---64");
  Value subnet = pool_object("{}", std::string(62, 'x') + "-y");
  EXPECT_EQ(with_derived_fields(pool_object(), &subnet)["metadata"]["labels"][kLabelOwnerSubnet]
                .as_string(),
            std::string(62, 'x'));
}

TEST(DerivedFields, stay_away_from_what_goes_or_is_wrong) {
  Value going = pool_object();
  going.mut("metadata").set("deletionTimestamp", "2024-01-01T00:00:00Z");
  EXPECT_EQ(with_derived_fields(going, nullptr), going);
  const Value wrong = pool_object(R"({"ips": ["10.0.0.1"]})");
  EXPECT_EQ(with_derived_fields(wrong, nullptr), wrong);
}

TEST(DerivedFields, give_a_pool_to_its_subnet) {
  Value subnet = pool_object(R"({"gateway": "172.18.0.1",
      "routes": [{"dst": "10.0.0.0/8", "gw": "172.18.0.2"}]})",
                             "subnet-a");
  subnet.set("kind", "SpiderSubnet");
  subnet.mut("metadata").set("uid", "u-1");
  const Value made = with_derived_fields(pool_object(), &subnet);
  EXPECT_EQ(json::write(made["metadata"]["ownerReferences"]),
            R"([{"apiVersion":"spiderpool.spidernet.io/v2beta1","kind":"SpiderSubnet",)"
            R"("name":"subnet-a","uid":"u-1","controller":true,"blockOwnerDeletion":true}])");
  EXPECT_EQ(made["metadata"]["labels"][kLabelOwnerSubnet].as_string(), "subnet-a");
  EXPECT_EQ(made["spec"]["gateway"].as_string(), "172.18.0.1");
  EXPECT_EQ(made["spec"]["routes"], subnet["spec"]["routes"]);
  EXPECT_EQ(with_derived_fields(made, &subnet), made);
  const Value own =
      with_derived_fields(pool_object(R"({"gateway": "172.18.0.9", "routes": []})"), &subnet);
  EXPECT_EQ(own["spec"]["gateway"].as_string(), "172.18.0.9");
  EXPECT_TRUE(own["spec"]["routes"].empty());
  subnet.mut("spec").set("subnet", "172.19.0.0/16");
  EXPECT_FALSE(with_derived_fields(pool_object(), &subnet)["metadata"].contains("ownerReferences"));
}

IpSubnet subnet_of(std::string_view more, std::string_view name) {
  return parse_ip_subnet(pool_object(more, name)).value();
}

TEST(IpSubnet, tells_overlaps_and_what_pools_hold) {
  const IpSubnet subnet = subnet_of("{}", "a");
  const IpSubnet other = subnet_of(R"({"subnet": "172.16.0.0/12", "ips": []})", "b");
  EXPECT_EQ(conflicts(subnet, {subnet, other}),
            Texts{"spec.subnet: Invalid value: \"172.18.0.0/16\": overlap with Subnet b which "
                  "'spec.subnet' is 172.16.0.0/12"});
  EXPECT_EQ(conflicts(pool_of(R"({"ips": ["172.18.30.140-172.18.30.141"]})"), subnet),
            Texts{"spec.ips: Forbidden: add some IP ranges [172.18.30.141] that are not contained "
                  "in controller Subnet a, total IP addresses of an IPPool are jointly determined "
                  "by 'spec.ips' and 'spec.excludeIPs'"});
  EXPECT_EQ(conflicts(pool_of(), subnet), Texts{});
  const std::map<std::string, ControlledPool> held{
      {"p", {IpSet::parse({"172.18.30.131"}).value(), ""}}};
  EXPECT_EQ(use_faults(subnet, held), Texts{});
  EXPECT_EQ(use_faults(subnet_of(R"({"ips": ["172.18.30.132"]})", "a"), held),
            Texts{"spec.ips: Forbidden: remove some IP ranges [172.18.30.131] that is being used "
                  "by IPPool p, total IP addresses of an Subnet are jointly determined by "
                  "'spec.ips' and 'spec.excludeIPs'"});
}

TEST(IpSubnet, keeps_its_pools_in_its_status) {
  const IpSubnet subnet = subnet_of("{}", "a");
  const std::map<std::string, ControlledPool> pools{
      {"auto4-web-eth0-1a2b3",
       {IpSet::parse({"172.18.30.131-172.18.30.133"}).value(), "apps_v1_Deployment_default_web"}}};
  const Value status = to_subnet_status(subnet, pools);
  EXPECT_EQ(status["controlledIPPools"].as_string(),
            R"({"auto4-web-eth0-1a2b3":{"ips":["172.18.30.131-172.18.30.133"],)"
            R"("application":"apps_v1_Deployment_default_web"}})");
  EXPECT_EQ(status["totalIPCount"].as_int(), 10);
  EXPECT_EQ(status["allocatedIPCount"].as_int(), 3);
  EXPECT_FALSE(to_subnet_status(subnet, {}).contains("controlledIPPools"));
}

TEST(ReservedIp, reads_and_judges) {
  const auto reserved = [](std::string_view spec) {
    return parse_reserved_ip(Value::object({{"spec", parsed(spec)}}));
  };
  EXPECT_EQ(reserved(R"({"ips": ["10.0.0.2", "10.0.0.1"]})")->ips.to_strings(),
            Texts{"10.0.0.1-10.0.0.2"});
  EXPECT_EQ(reserved(R"({"ips": ["fd00::1"]})")->version, 6);
  EXPECT_EQ(reserved(R"({"ips": ["10.0.0.1", "fd00::1"]})").error().message(),
            "spec.ips[1]: Invalid value: \"fd00::1\": invalid IP range format in IPv4 'fd00::1'");
  EXPECT_EQ(reserved(R"({"ips": []})").error().message(),
            "spec.ipVersion: Invalid value: null: is not generated correctly, 'spec.ips' is empty "
            "or 'spec.ips[0]' may be invalid");
  EXPECT_FALSE(reserved(R"({"ipVersion": 5, "ips": ["10.0.0.1"]})").ok());
  const Value made = reserved_with_derived_fields(
      Value::object({{"spec", parsed(R"({"ips": ["10.0.0.2", "10.0.0.1"]})")}}));
  EXPECT_EQ(json::write(made["spec"]), R"({"ips":["10.0.0.1-10.0.0.2"],"ipVersion":4})");
}

}  // namespace
}  // namespace dibs::drivers::net
