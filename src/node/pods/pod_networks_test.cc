#include "node/pods/pod_networks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "node/pods/pod_test_node.h"

namespace dibs::node::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Value pod_with(const std::string& default_network, const std::string& networks) {
  Value annotations = Value::object();
  if (!default_network.empty()) annotations.set(kDefaultNetworkAnnotation, default_network);
  if (!networks.empty()) annotations.set(kNetworksAnnotation, networks);
  return Value::object({{"metadata", Value::object({{"name", "a"},
                                                    {"namespace", "team"},
                                                    {"uid", "1"},
                                                    {"annotations", std::move(annotations)}})}});
}

std::vector<std::string> named(const std::string& default_network, const std::string& networks) {
  const auto read = named_networks(pod_with(default_network, networks));
  if (!read.ok()) return {"error: " + read.error().message()};
  std::vector<std::string> out;
  for (const auto& one : *read) {
    out.push_back(cat(one.name_space, "/", one.name, "@", one.interface,
                      one.mac.empty() ? "" : cat(" ", one.mac), one.ips.empty() ? "" : " ",
                      join(one.ips, ",")));
  }
  return out;
}

TEST(NamedNetworks, have_namespaces_and_interfaces) {
  EXPECT_THAT(named("kube-system/macvlan-conf", ""), ElementsAre("kube-system/macvlan-conf@eth0"));
  EXPECT_THAT(named("macvlan-conf", ""), ElementsAre("kube-system/macvlan-conf@eth0"));
  EXPECT_THAT(named("", "a, other/b@data,c"),
              ElementsAre("team/a@net1", "other/b@data", "team/c@net3"));
  EXPECT_THAT(named("x", R"([{"name": "a", "namespace": "n", "interface": "i0",
                              "mac": "0a:00:00:00:00:01", "ips": ["10.0.0.7/16"]}])"),
              ElementsAre("kube-system/x@eth0", "n/a@i0 0a:00:00:00:00:01 10.0.0.7/16"));
  EXPECT_TRUE(named("", "").empty());
  EXPECT_TRUE(named(" ", " ").empty());
}

TEST(NamedNetworks, that_are_none_are_refused) {
  for (const char* bad : {",",
                          "a,",
                          "a/b/c",
                          "a@",
                          "/a",
                          "a/",
                          "A",
                          "../x",
                          "a@lo",
                          "a@eth0",
                          "a@veth0",
                          "a@x/y",
                          "a@averyveryverylong",
                          "a@b,c@b",
                          "a@..",
                          R"({"name": "a"})",
                          R"([{"name": "a")",
                          R"(["a"])",
                          R"([{"name": "a", "mac": "01:00:00:00:00:01"}])",
                          R"([{"name": "a", "mac": "x"}])",
                          R"([{"name": "a", "ips": ["x"]}])",
                          R"([{"name": "a", "ips": ["10.0.0.1/33"]}])",
                          R"([{"name": "a", "cni-args": {}}])",
                          R"([{"name": "a", "default-route": ["10.0.0.1"]}])",
                          R"([{"name": "a", "what": "x"}])",
                          R"([{"name": 7}])",
                          R"([{}])",
                          "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"}) {
    EXPECT_THAT(named("", bad), ElementsAre(HasSubstr("error: annotation k8s.v1.cni.cncf.io")))
        << bad;
  }
  EXPECT_THAT(named("a,b", ""), ElementsAre(HasSubstr("must name one network")));
  EXPECT_THAT(named("a@net9", ""), ElementsAre(HasSubstr("its interface is eth0")));
}

void check(const Result<Value>& made) { EXPECT_TRUE(made.ok()) << made.error().message(); }

class NetworksTest : public testing::Test {
 protected:
  void SetUp() override {
    facts.name = "node-0";
    check(node.api->create({"apiextensions.k8s.io", "v1", "customresourcedefinitions"}, "",
                           from_text(R"(
{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition',
 'metadata': {'name': 'network-attachment-definitions.k8s.cni.cncf.io'},
 'spec': {'group': 'k8s.cni.cncf.io', 'scope': 'Namespaced',
  'names': {'plural': 'network-attachment-definitions', 'kind': 'NetworkAttachmentDefinition'},
  'versions': [{'name': 'v1', 'served': true, 'storage': true, 'schema': {'openAPIV3Schema':
   {'type': 'object', 'properties': {'spec': {'type': 'object', 'properties':
     {'config': {'type': 'string'}}}}}}}]}})")));
    check(node.api->create({"rbac.authorization.k8s.io", "v1", "clusterroles"}, "", from_text(R"(
{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'ClusterRole',
 'metadata': {'name': 'networks'}, 'rules': [{'apiGroups': ['k8s.cni.cncf.io'],
 'resources': ['network-attachment-definitions'], 'verbs': ['get']}]})")));
    check(node.api->create({"rbac.authorization.k8s.io", "v1", "clusterrolebindings"}, "",
                           from_text(R"(
{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'ClusterRoleBinding',
 'metadata': {'name': 'networks'},
 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'networks'},
 'subjects': [{'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'Group', 'name': 'system:nodes'}]})")));
    check(node.api->create(
        {"", "v1", "namespaces"}, "",
        from_text("{'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'other'}}")));
    node.settle();
  }

  void define(const std::string& name_space, const std::string& name) {
    check(node.api->create(
        {"k8s.cni.cncf.io", "v1", "network-attachment-definitions"}, name_space,
        from_text(cat("{'apiVersion': 'k8s.cni.cncf.io/v1', 'kind': 'NetworkAttachmentDefinition', "
                      "'metadata': {'name': '",
                      name, "'}, 'spec': {'config': 'of ", name_space, "/", name, "'}}"))));
  }

  std::string plan(const std::string& annotations, const std::string& spec = "") {
    const std::string name = cat("p", ++made);
    const Value pod = node.create(name, cat("'containers': [{'name': 'c'}]", spec),
                                  cat("'annotations': {", annotations, "}"));
    const auto planned = plan_networks(node.agent->client, pod, facts);
    if (!planned.ok()) return "error: " + planned.error().message();
    std::string out;
    for (const auto& network : planned->networks) {
      append(out, network.interface, "=", network.config, " ");
    }
    for (const auto& [reason, note] : planned->notes) append(out, reason, " ");
    return out;
  }

  TestNode node;
  NodeFacts facts;
  int made = 0;
};

TEST_F(NetworksTest, are_those_of_their_definitions) {
  define("kube-system", "macvlan-conf");
  define("default", "data");
  EXPECT_EQ(plan("'v1.multus-cni.io/default-network': 'kube-system/macvlan-conf', "
                 "'k8s.v1.cni.cncf.io/networks': 'data@d0'"),
            "eth0=of kube-system/macvlan-conf d0=of default/data ");
  EXPECT_EQ(plan(""), "");
}

TEST_F(NetworksTest, get_the_devices_that_a_driver_has_left_for_them) {
  define("default", "vf");
  std::string pattern = testing::TempDir() + "devices.XXXXXX";
  facts.root = ::mkdtemp(pattern.data());
  const Value pod = node.create("a", "'containers': [{'name': 'c'}]",
                                "'annotations': {'k8s.v1.cni.cncf.io/networks': 'vf,vf'}");
  std::filesystem::create_directories(facts.root + "/network-devices");
  const std::string begin = cat(facts.root, "/network-devices/", uid_of(pod));
  std::ofstream(begin + "_net1") << "0000:81:00.2\n";
  const auto planned = plan_networks(node.agent->client, pod, facts);
  ASSERT_TRUE(planned.ok()) << planned.error().message();
  EXPECT_EQ(planned->networks[0].device, "0000:81:00.2");
  EXPECT_EQ(planned->networks[1].device, "");
  std::ofstream(begin + "_net2") << "../../x";
  EXPECT_FALSE(plan_networks(node.agent->client, pod, facts).ok());
  std::filesystem::remove_all(facts.root);
}

TEST_F(NetworksTest, that_are_missing_are_named) {
  EXPECT_THAT(plan("'k8s.v1.cni.cncf.io/networks': 'nothing'"),
              HasSubstr("cannot find a network-attachment-definition (nothing) in namespace "
                        "(default)"));
}

TEST_F(NetworksTest, of_other_namespaces_are_refused_unless_they_are_shared) {
  define("other", "secret");
  EXPECT_THAT(plan("'k8s.v1.cni.cncf.io/networks': 'other/secret'"),
              HasSubstr("may only use networks of their own namespace"));
  EXPECT_THAT(plan("'v1.multus-cni.io/default-network': 'other/secret'"),
              HasSubstr("may only use networks of their own namespace"));
  facts.network_namespaces = {"kube-system", "other"};
  EXPECT_EQ(plan("'k8s.v1.cni.cncf.io/networks': 'other/secret'"), "net1=of other/secret ");
  facts.network_namespaces = {"*"};
  EXPECT_EQ(plan("'k8s.v1.cni.cncf.io/networks': 'other/secret'"), "net1=of other/secret ");
}

TEST_F(NetworksTest, are_ignored_aloud_on_the_hosts_network_and_in_simulations) {
  EXPECT_EQ(plan("'k8s.v1.cni.cncf.io/networks': 'a'", ", 'hostNetwork': true"),
            "NetworksIgnored ");
  EXPECT_EQ(plan("", ", 'hostNetwork': true"), "");
  facts.simulated = true;
  EXPECT_EQ(plan("'k8s.v1.cni.cncf.io/networks': 'a'"), "NetworksIgnored ");
}

TEST_F(NetworksTest, host_ports_that_lead_nowhere_are_told) {
  define("kube-system", "x");
  const Value pod = node.create(
      "ports", "'containers': [{'name': 'c', 'ports': [{'containerPort': 80, 'hostPort': 8080}]}]",
      "'annotations': {'v1.multus-cni.io/default-network': 'x'}");
  const auto config = from_text(R"({'spec': {'config': '{\"type\": \"macvlan\"}'}})");
  node.TestCluster::patch({"k8s.cni.cncf.io", "v1", "network-attachment-definitions"},
                          "kube-system", "x", json::write(config));
  const auto planned = plan_networks(node.agent->client, pod, facts);
  ASSERT_TRUE(planned.ok()) << planned.error().message();
  ASSERT_EQ(planned->notes.size(), 1U);
  EXPECT_EQ(planned->notes[0].first, "HostPortIgnored");
}

TEST_F(NetworksTest, of_a_claims_pod_are_read_as_they_are_now) {
  define("kube-system", "x");
  check(node.api->create({"", "v1", "pods"}, "default", from_text(R"(
{'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'claims'}, 'spec': {'nodeName': 'node-0',
 'containers': [{'name': 'c', 'image': 'busybox:1.36'}],
 'resourceClaims': [{'name': 'n', 'resourceClaimName': 'n'}]}})")));
  const Value before = node.pod("claims");
  node.patch("claims",
             R"({"metadata": {"annotations": {"v1.multus-cni.io/default-network": "x"}}})");
  const auto planned = plan_networks(node.agent->client, before, facts);
  ASSERT_TRUE(planned.ok()) << planned.error().message();
  ASSERT_EQ(planned->networks.size(), 1U);
  EXPECT_EQ(planned->networks[0].interface, "eth0");
}

TEST(NetworkDefinitions, that_the_server_does_not_know_are_named) {
  TestNode node;
  NodeFacts facts;
  const Value pod = node.create("a", "'containers': [{'name': 'c'}]",
                                "'annotations': {'v1.multus-cni.io/default-network': 'x'}");
  const auto planned = plan_networks(*node.api, pod, facts);
  ASSERT_FALSE(planned.ok());
  EXPECT_THAT(planned.error().message(), HasSubstr("the server has no such kind, k8s.cni.cncf.io"));
}

TEST(NetworkStatus, is_written_into_the_pod_by_its_node) {
  TestNode node;
  node.machine.network_status = R"([{"name": "kube-system/x", "interface": "eth0"}])";
  node.create("a", "'containers': [{'name': 'c'}]");
  node.settle();
  EXPECT_EQ(node.line("a"), "Running; c running ready");
  EXPECT_EQ(node.pod("a")["metadata"]["annotations"][kNetworkStatusAnnotation].as_string(),
            node.machine.network_status);
}

TEST(NetworkStatus, is_written_by_whichever_agent_lives_to_do_it) {
  for (int actions = 0; actions < 40; ++actions) {
    TestNode node;
    node.machine.network_status = "[]";
    node.create("a", "'containers': [{'name': 'c'}]");
    node.end_agent();
    node.start_agent(actions);
    node.settle();
    node.end_agent();
    node.start_agent();
    node.settle(std::chrono::seconds(30));
    EXPECT_EQ(node.pod("a")["metadata"]["annotations"][kNetworkStatusAnnotation].as_string(), "[]")
        << actions;
  }
}

}  // namespace
}  // namespace dibs::node::test
