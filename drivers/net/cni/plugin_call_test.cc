#include "drivers/net/cni/plugin_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "drivers/net/cni/coordinator_config.h"
#include "drivers/net/cni/ifacer.h"
#include "drivers/net/cni/plugins.h"
#include "drivers/net/model/coordinator.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Variables variables(std::map<std::string, std::string> known) {
  return [known = std::move(known)](const char* name) {
    const auto found = known.find(name);
    return found == known.end() ? std::string() : found->second;
  };
}

std::map<std::string, std::string> add_variables() {
  return {{"CNI_COMMAND", "ADD"},
          {"CNI_CONTAINERID", "abc"},
          {"CNI_NETNS", "/run/ns"},
          {"CNI_IFNAME", "eth0"},
          {"CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=a;K8S_POD_NAME=b;K8S_POD_UID=c"}};
}

TEST(PluginCall, reads_the_pod_and_the_configuration) {
  const auto call = read_call(variables(add_variables()), R"({"cniVersion": "0.3.1", "x": 1})");
  ASSERT_TRUE(call.ok()) << call.error().message();
  EXPECT_EQ(call->pod.name_space, "a");
  EXPECT_EQ(call->pod.name, "b");
  EXPECT_EQ(call->pod.uid, "c");
  EXPECT_EQ(call->interface, "eth0");
  EXPECT_EQ(call->version(), "0.3.1");
}

TEST(PluginCall, names_what_is_missing_or_wrong) {
  const auto why = [](const char* variable, const char* value, const char* input) {
    auto known = add_variables();
    known[variable] = value;
    const auto call = read_call(variables(known), input);
    return call.ok() ? std::string("none") : call.error().message();
  };
  const char* good = R"({"cniVersion": "1.0.0"})";
  EXPECT_EQ(why("CNI_ARGS", "", good), "none");
  EXPECT_THAT(why("CNI_COMMAND", "WHAT", good), HasSubstr("CNI_COMMAND"));
  EXPECT_THAT(why("CNI_CONTAINERID", "", good), HasSubstr("CNI_CONTAINERID"));
  EXPECT_THAT(why("CNI_NETNS", "", good), HasSubstr("CNI_NETNS"));
  EXPECT_THAT(why("CNI_IFNAME", "../x", good), HasSubstr("CNI_IFNAME"));
  EXPECT_THAT(why("CNI_IFNAME", "a-name-that-is-too-long", good), HasSubstr("CNI_IFNAME"));
  EXPECT_THAT(why("X", "", R"({"cniVersion": "9.0.0"})"), HasSubstr("9.0.0"));
  EXPECT_THAT(why("X", "", "what"), HasSubstr("not JSON"));
  EXPECT_THAT(why("X", "", "[]"), HasSubstr("no object"));
}

TEST(PluginCall, a_removal_needs_no_namespace) {
  auto known = add_variables();
  known["CNI_COMMAND"] = "DEL";
  known["CNI_NETNS"] = "";
  EXPECT_TRUE(read_call(variables(known), R"({"cniVersion": "1.0.0"})").ok());
}

TEST(IpamResult, has_the_form_of_its_version) {
  NicAddresses addresses;
  addresses.ipv4 = "172.18.30.131/16";
  addresses.ipv4_gateway = "172.18.0.1";
  addresses.ipv6 = "fd00::7/64";
  addresses.routes = {{"10.0.0.0/8", "172.18.0.2"}};
  EXPECT_EQ(json::write(ipam_result(addresses, "0.3.1")),
            R"({"cniVersion":"0.3.1","ips":[{"address":"172.18.30.131/16","version":"4",)"
            R"("gateway":"172.18.0.1"},{"address":"fd00::7/64","version":"6"}],)"
            R"("routes":[{"dst":"0.0.0.0/0","gw":"172.18.0.1"},)"
            R"({"dst":"10.0.0.0/8","gw":"172.18.0.2"}],"dns":{}})");
  addresses.clean_gateway = true;
  addresses.routes.clear();
  addresses.ipv6.clear();
  EXPECT_EQ(json::write(ipam_result(addresses, "1.0.0")),
            R"({"cniVersion":"1.0.0","ips":[{"address":"172.18.30.131/16",)"
            R"("gateway":"172.18.0.1"}],"routes":[],"dns":{}})");
}

TEST(PluginErrors, have_the_numbers_of_cni) {
  const auto number = [](const Error& error) {
    return error_value(error, "1.0.0")["code"].as_int();
  };
  EXPECT_EQ(number(Error::bad_request("")), 4);
  EXPECT_EQ(number(Error::invalid("")), 7);
  EXPECT_EQ(number(Error::unavailable("")), 11);
  EXPECT_EQ(number(Error::internal("")), 999);
  EXPECT_EQ(supported_versions()["supportedVersions"].size(), 4U);
  EXPECT_THAT(cni_plugin_names(), ElementsAre("spiderpool", "coordinator", "ifacer"));
}

Result<CoordinatorConfig> coordinator(const char* text, const CoordinatorFacts& facts = {}) {
  return read_coordinator_config(*json::parse(text), facts);
}

TEST(CoordinatorConfig, knows_both_spellings_and_the_defaults) {
  EXPECT_EQ(coordinator(R"({"mode": "disabled"})")->mode, CoordinatorMode::disabled);
  EXPECT_EQ(coordinator(R"({"mode": "disable"})")->mode, CoordinatorMode::disabled);
  const auto config = coordinator(
      R"({"type": "coordinator", "name": "n", "cniVersion": "0.3.1", "txQueueLen": 0,
          "detectIPConflict": false, "detectGateway": false, "tunePodRoutes": true,
          "mode": "auto"})");
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->mode, CoordinatorMode::automatic);
  EXPECT_EQ(config->host_table, 500);
  EXPECT_TRUE(config->tune_routes);
}

TEST(CoordinatorConfig, takes_from_the_cluster_what_it_does_not_say) {
  CoordinatorFacts facts;
  facts.spec = *json::parse(R"({"hijackCIDR": ["169.254.0.0/16"], "hostRuleTable": 600,
                                "detectGateway": true, "podCIDRType": "auto"})");
  facts.pod_cidrs = {"10.244.0.0/16"};
  facts.service_cidrs = {"10.96.0.0/12"};
  facts.default_route_nic = "net1";
  const auto config = coordinator(R"({"detectGateway": false})", facts);
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->host_table, 600);
  EXPECT_FALSE(config->detect_gateway);
  EXPECT_EQ(config->by_host.size(), 3U);
  EXPECT_EQ(config->default_route_nic, "net1");
  EXPECT_EQ(coordinator(R"({"podCIDRType": "none"})", facts)->by_host.size(), 2U);
}

TEST(CoordinatorConfig, is_what_is_made_of_a_SpiderMultusConfig) {
  const auto settings = json::parse(
      R"({"mode": "overlay", "podDefaultRouteNIC": "net2", "hijackCIDR": ["10.1.2.3", "fd00::/8"],
          "podMACPrefix": "0a:1b", "txQueueLen": 9, "hostRuleTable": 600, "hostRPFilter": -1,
          "podRPFilter": 2, "vethMTU": 1400, "detectGateway": true, "podCIDRType": "none"})");
  ASSERT_TRUE(check_coordinator(*settings, "spec").ok());

  const auto config = read_coordinator_config(coordinator_plugin(*settings), {});

  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->default_route_nic, "net2");
  EXPECT_EQ(config->by_host[0].str(), "10.1.2.3/32");
  EXPECT_EQ(config->host_table, 600);
  EXPECT_EQ(config->host_rp_filter, std::nullopt);
  EXPECT_EQ(config->pod_rp_filter, 2);
  EXPECT_EQ(config->veth_mtu, 1400);
  EXPECT_TRUE(config->detect_gateway);
}

TEST(CoordinatorConfig, refuses_what_it_would_not_do) {
  for (const char* bad :
       {R"({"mode": "both"})", R"({"mode": 1})", R"({"what": true})", R"({"podMACPrefix": "0a"})",
        R"({"podMACPrefix": "01:00"})", R"({"hijackCIDR": ["x"]})", R"({"hijackCIDR": "x"})",
        R"({"hostRuleTable": 254})", R"({"hostRuleTable": 0})", R"({"txQueueLen": -1})",
        R"({"detectGateway": "yes"})", R"({"hostRPFilter": 3})"}) {
    EXPECT_FALSE(coordinator(bad).ok()) << bad;
  }
}

TEST(CoordinatorNames, are_short_and_of_the_sandbox) {
  EXPECT_EQ(host_veth_name("abc").size(), 15U);
  EXPECT_EQ(host_veth_name("abc"), host_veth_name("abc"));
  EXPECT_NE(host_veth_name("abc"), host_veth_name("abd"));
  EXPECT_EQ(mac_with_prefix("0a:1b", *Ip::parse("172.18.30.131")), "0a:1b:ac:12:1e:83");
  EXPECT_EQ(mac_with_prefix("0a:1b", *Ip::parse("fd00::1:2")), "0a:1b:00:01:00:02");
}

TEST(IfacerConfig, is_judged) {
  const auto read = [](const char* text) { return read_ifacer_config(*json::parse(text)); };
  const auto vlan = read(R"({"interfaces": ["eth0"], "vlanID": 100})");
  ASSERT_TRUE(vlan.ok());
  EXPECT_EQ(vlan->vlan_id, 100);
  EXPECT_EQ(vlan->bond_name, "");
  const auto bond = read(
      R"({"interfaces": ["a", "b"], "bond": {"name": "bond0", "mode": 1, "options": "miimon=1"}})");
  ASSERT_TRUE(bond.ok());
  EXPECT_EQ(bond->bond.mode, 1);
  for (const char* bad :
       {"{}", R"({"interfaces": []})", R"({"interfaces": ["a"], "vlanID": 5000})",
        R"({"interfaces": ["a", "b"]})", R"({"interfaces": ["a", "b"], "bond": {"name": "x"}})",
        R"({"interfaces": ["a", "b"], "bond": {"name": "x", "mode": 7}})"}) {
    EXPECT_FALSE(read(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace dibs::drivers::net
