#include "drivers/net/model/multus_config.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "json/test_text.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using json::test::from_text;

/// A config macvlan-conf in kube-system with this spec.
Value object(const std::string& spec, const std::string& annotations = "") {
  return from_text(
      cat("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': 'SpiderMultusConfig', "
          "'metadata': {'name': 'macvlan-conf', 'namespace': 'kube-system', 'uid': 'u-1'",
          annotations.empty() ? "" : cat(", 'annotations': {", annotations, "}"), "}, 'spec': {",
          spec, "}}"));
}

std::string error_of(const std::string& spec, const std::string& annotations = "") {
  const auto config = parse_multus_config(object(spec, annotations));
  return config ? "" : config.error().message();
}

MultusConfig config_of(const std::string& spec, const std::string& annotations = "") {
  auto config = parse_multus_config(object(spec, annotations));
  EXPECT_TRUE(config.ok()) << config.error().message();
  return config ? *config : MultusConfig();
}

std::string cni(const std::string& spec, const std::string& annotations = "") {
  const Value made = net_attach_def_of(config_of(spec, annotations), object(spec, annotations));
  return made["spec"]["config"].str();
}

constexpr const char* kCoordinator =
    R"({"txQueueLen":0,"detectIPConflict":false,"detectGateway":false,)"
    R"("tunePodRoutes":true,"mode":"auto","type":"coordinator"})";

TEST(MultusConfig, of_the_document_becomes_macvlan_and_coordinator) {
  const std::string spec = "'cniType': 'macvlan', 'macvlan': {'master': ['eth0']}";

  EXPECT_EQ(
      cni(spec),
      cat(R"({"cniVersion":"0.3.1","name":"macvlan-conf","plugins":[)"
          R"({"type":"macvlan","master":"eth0","mode":"bridge","ipam":{"type":"spiderpool"}},)",
          kCoordinator, "]}"));
  EXPECT_EQ(traffic_device(config_of(spec)), "eth0");
}

TEST(MultusConfig, makes_a_definition_that_it_owns) {
  const std::string spec = "'cniType': 'macvlan', 'macvlan': {'master': ['eth0']}";
  const std::string annotations =
      "'multus.spidernet.io/cr-name': 'other', 'multus.spidernet.io/cni-version': '1.0.0', "
      "'kubectl.kubernetes.io/last-applied-configuration': '{}', 'a': 'b'";

  const Value made = net_attach_def_of(config_of(spec, annotations), object(spec, annotations));

  EXPECT_EQ(made["apiVersion"].as_string(), "k8s.cni.cncf.io/v1");
  EXPECT_EQ(made["kind"].as_string(), "NetworkAttachmentDefinition");
  EXPECT_EQ(made["metadata"],
            from_text("{'name': 'other', 'namespace': 'kube-system', 'annotations': {"
                      "'multus.spidernet.io/cr-name': 'other', "
                      "'multus.spidernet.io/cni-version': '1.0.0', 'a': 'b'}, 'ownerReferences': [{"
                      "'apiVersion': 'spiderpool.spidernet.io/v2beta1', "
                      "'kind': 'SpiderMultusConfig', 'name': 'macvlan-conf', 'uid': 'u-1', "
                      "'controller': true, 'blockOwnerDeletion': true}]}"));
  const auto text = json::parse(made["spec"]["config"].as_string());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ((*text)["cniVersion"].as_string(), "1.0.0");
  EXPECT_EQ((*text)["name"].as_string(), "other");
}

TEST(MultusConfig, lets_ifacer_make_bond_and_vlan_first) {
  const std::string spec =
      "'cniType': 'ipvlan', 'enableCoordinator': false, 'ipvlan': {'master': ['eth0', 'eth1'], "
      "'vlanID': 100, 'mtu': 1400, 'bond': {'name': 'bond0', 'mode': 1}, "
      "'ippools': {'ipv4': ['a', 'b'], 'ipv6': []}}";

  EXPECT_EQ(cni(spec), R"({"cniVersion":"0.3.1","name":"macvlan-conf","plugins":[)"
                       R"({"vlanID":100,"type":"ifacer","interfaces":["eth0","eth1"],)"
                       R"("bond":{"name":"bond0","mode":1,"options":""}},)"
                       R"({"type":"ipvlan","master":"bond0.100","mtu":1400,)"
                       R"("ipam":{"type":"spiderpool","default_ipv4_ippool":["a","b"]}}]})");
  EXPECT_EQ(traffic_device(config_of(spec)), "bond0.100");
}

TEST(MultusConfig, of_sriov_names_its_resource) {
  const std::string spec =
      "'cniType': 'sriov', 'disableIPAM': true, 'enableCoordinator': false, 'sriov': {"
      "'resourceName': 'spidernet.io/a', 'vlanID': 7, 'maxTxRateMbps': 100, 'enableRdma': true}";

  EXPECT_EQ(cni(spec),
            R"({"cniVersion":"0.3.1","name":"macvlan-conf","plugins":[)"
            R"({"vlan":7,"min_tx_rate":0,"max_tx_rate":100,"type":"sriov"},{"type":"rdma"}]})");
  const Value made = net_attach_def_of(config_of(spec), object(spec));
  EXPECT_EQ(made["metadata"]["annotations"],
            from_text("{'k8s.v1.cni.cncf.io/resourceName': 'spidernet.io/a'}"));
  EXPECT_TRUE(config_of(spec).rdma_isolation);
  EXPECT_EQ(traffic_device(config_of(spec)), "");
}

TEST(MultusConfig, of_every_other_type_has_its_plugin) {
  EXPECT_EQ(cni("'cniType': 'ib-sriov', 'enableCoordinator': false, "
                "'ibsriov': {'resourceName': 'r/x'}"),
            R"({"cniVersion":"0.3.1","name":"macvlan-conf","plugins":[)"
            R"({"type":"ib-sriov","pkey":"","link_state":"enable","rdmaIsolation":true,)"
            R"("ibKubernetesEnabled":false,"ipam":{"type":"spiderpool"}}]})");
  EXPECT_EQ(cni("'cniType': 'ipoib', 'enableCoordinator': false, 'ipoib': {'master': 'ib0'}"),
            R"({"cniVersion":"0.3.1","name":"macvlan-conf","plugins":[)"
            R"({"type":"ipoib","master":"ib0","ipam":{"type":"spiderpool"}}]})");
  EXPECT_EQ(cni("'cniType': 'ovs', 'enableCoordinator': false, 'ovs': {'bridge': 'br1', "
                "'deviceID': '0000:00:01.0', 'trunk': [{'id': 3}]}"),
            R"({"cniVersion":"0.3.1","name":"macvlan-conf","plugins":[)"
            R"({"vlan":0,"type":"ovs","bridge":"br1","deviceID":"0000:00:01.0",)"
            R"("ipam":{"type":"spiderpool"},"trunk":[{"id":3}]}]})");
  EXPECT_EQ(cni("'cniType': 'vlan', 'enableCoordinator': false, 'chainCNIJsonData': "
                "['{\\\"type\\\":\\\"tuning\\\"}'], 'vlan': {'master': ['eth0'], 'vlanID': 5}"),
            R"({"cniVersion":"0.3.1","name":"macvlan-conf","plugins":[)"
            R"({"type":"vlan","master":"eth0","vlanId":5,"ipam":{"type":"spiderpool"}},)"
            R"({"type":"tuning"}]})");
}

TEST(MultusConfig, of_type_custom_is_taken_word_for_word) {
  const std::string text = R"({"plugins": [{"type":"macvlan", "master":"eth7",
      "ipam":{"type":"spiderpool", "default_ipv4_ippool":["p"]}}]})";
  const Value custom =
      Value::object({{"metadata", Value::object({{"name", "c"}, {"namespace", "n"}})},
                     {"spec", Value::object({{"customCNI", text}, {"enableCoordinator", true}})}});

  const auto config = parse_multus_config(custom);

  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(net_attach_def_of(*config, custom)["spec"]["config"].as_string(), text);
  EXPECT_EQ(config->masters, std::vector<std::string>{"eth7"});
  EXPECT_EQ(config->ipv4_pools, std::vector<std::string>{"p"});
  EXPECT_FALSE(config->disable_ipam);
  EXPECT_EQ(net_attach_def_of(config_of(""), object(""))["spec"], Value::object());
  EXPECT_TRUE(config_of("").disable_ipam);
}

TEST(MultusConfig, hands_settings_on_to_the_coordinator) {
  const std::string spec =
      "'cniType': 'macvlan', 'macvlan': {'master': ['eth0']}, 'coordinator': {'mode': 'overlay', "
      "'podDefaultRouteNIC': 'net1', 'podMACPrefix': '0a:1b', 'txQueueLen': 9, "
      "'tunePodRoutes': false, 'hijackCIDR': ['1.2.3.4'], 'hostRuleTable': 600}";

  const auto made = json::parse(cni(spec));

  ASSERT_TRUE(made.ok());
  EXPECT_EQ((*made)["plugins"][1],
            from_text("{'type': 'coordinator', 'mode': 'overlay', 'podDefaultRouteNic': 'net1', "
                      "'podMACPrefix': '0a:1b', 'txQueueLen': 9, 'tunePodRoutes': false, "
                      "'detectIPConflict': false, 'detectGateway': false, "
                      "'hijackCIDR': ['1.2.3.4'], 'hostRuleTable': 600}"));
}

TEST(MultusConfig, is_refused_in_the_words_of_the_original) {
  EXPECT_EQ(error_of("'cniType': 'macvlan'"),
            "spec.macvlanConfig: Required value: no spec.macvlanConfig specified");
  EXPECT_EQ(error_of("'cniType': 'macvlan', 'macvlan': {'master': ['eth0']}, 'ovs': {}"),
            "spec.cniType: Forbidden: the cniType macvlan only supports spec.macvlanConfig, please "
            "remove other CNI configs");
  EXPECT_EQ(error_of("'cniType': 'macvlan', 'macvlan': {'master': []}"),
            "spec.macvlanConfig: Invalid value: master can't be empty");
  EXPECT_EQ(error_of("'cniType': 'macvlan', 'macvlan': {'master': ['a', 'b']}"),
            "spec.macvlanConfig: Invalid value: the bond property is nil with multiple Interfaces");
  EXPECT_EQ(error_of("'cniType': 'macvlan', 'macvlan': {'master': ['a', 'b'], "
                     "'bond': {'name': '', 'mode': 1}}"),
            "spec.macvlanConfig: Invalid value: bond name can't be empty");
  EXPECT_EQ(error_of("'cniType': 'ipvlan', 'ipvlan': {'master': ['a'], 'vlanID': 4095}"),
            "spec.ipvlanConfig.vlanID: Invalid value: 4095: invalid vlanId 4095, please make sure "
            "vlanId in range [0,4094]");
  EXPECT_EQ(error_of("'cniType': 'sriov', 'sriov': {}"),
            "spec.sriovConfig: Required value: no spec.sriovConfig[resourceName] specified");
  EXPECT_EQ(error_of("'customCNI': '{'"),
            "spec.customCniTypeConfig: Forbidden: customCniConfig isn't a valid JSON encoding");
  EXPECT_EQ(error_of("", "'multus.spidernet.io/cni-version': '0.2.0'"),
            "metadata.annotations: Invalid value: \"0.2.0\": unsupported CNI version 0.2.0");
  EXPECT_NE(error_of("", "'multus.spidernet.io/cr-name': ''"), "");
  EXPECT_EQ(error_of("'cniType': 'macvlan', 'macvlan': {'master': ['a']}, "
                     "'coordinator': {'podMACPrefix': '0b:00'}"),
            "spec.coordinator.podMACPrefix: Invalid value: \"0b:00\": not a unicast MAC: the "
            "lowest bit of the first byte must be 0");
}

TEST(MultusConfig, is_refused_where_it_would_have_no_effect) {
  for (const char* spec :
       {"'cniType': 'macvlan', 'macvlan': {'master': ['a'], 'bond': {'name': 'b', 'mode': 0}}",
        "'cniType': 'macvlan', 'macvlan': {'master': ['a', 'a'], 'bond': {'name': 'b', 'mode': 0}}",
        "'cniType': 'macvlan', 'macvlan': {'master': ['../x']}",
        "'cniType': 'macvlan', 'macvlan': {'master': ['fifteen-letters'], 'vlanID': 3}",
        "'cniType': 'macvlan', 'macvlan': {'master': 'eth0'}",
        "'cniType': 'macvlan', 'macvlan': {'master': ['a'], 'ippools': {'matchMasterSubnet': "
        "true}}",
        "'cniType': 'vlan', 'vlan': {'master': ['a'], 'vlanMode': 'auto'}",
        "'cniType': 'custom', 'coordinator': {'mode': 'auto'}",
        "'cniType': 'custom', 'chainCNIJsonData': ['{\\\"type\\\": \\\"x\\\"}']",
        "'cniType': 'ipoib', 'ipoib': {'master': 'ib0'}, 'chainCNIJsonData': ['{}']",
        "'cniType': 'ovs', 'ovs': {'bridge': 'b', 'trunk': [{'minID': 5, 'maxID': 4}]}",
        "'cniType': 'macvlan', 'macvlan': {'master': ['eth0:1']}",
        "'cniType': 'sriov', 'sriov': {'resourceName': 'a || true'}",
        "'cniType': 'macvlan', 'macvlan': {'master': ['a']}, 'coordinator': {'podCIDRType': "
        "'calico'}",
        "'cniType': 'macvlan', 'macvlan': {'master': ['a']}, 'coordinator': {'vethLinkAddress': "
        "'169.254.1.1'}",
        "'cniType': 'macvlan', 'macvlan': {'master': ['a']}, 'coordinator': {'hostRuleTable': 254}",
        "'cniType': 'bridge'"}) {
    EXPECT_NE(error_of(spec), "") << spec;
  }
}

TEST(MultusConfig, of_a_definition_that_nobody_made_is_a_custom_one) {
  const auto config = config_of_definition(from_text(
      "{'metadata': {'name': 'n', 'namespace': 's'}, "
      "'spec': {'config': '{\\\"type\\\": \\\"macvlan\\\", \\\"master\\\": \\\"eth3\\\"}'}}"));

  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->cni_type, "custom");
  EXPECT_EQ(config->key(), "s/n");
  EXPECT_EQ(traffic_device(*config), "eth3");
  EXPECT_TRUE(config->disable_ipam);
}

}  // namespace
}  // namespace dibs::drivers::net
