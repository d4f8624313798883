#include "drivers/net/objects/install.h"

#include <gtest/gtest.h>

#include <set>

#include "base/release.h"
#include "client/resource_versions.h"
#include "drivers/net/model/ip_pool.h"
#include "drivers/net/model/node_state.h"
#include "drivers/net/objects/test_objects.h"
#include "json/parse.h"

namespace dibs::drivers::net::test {
namespace {

std::string error_of(const Result<Value>& answer) {
  return answer ? std::string() : answer.error().message();
}

const Value* column(const Value& definition, std::string_view name) {
  for (const auto& column : definition["spec"]["versions"][0]["additionalPrinterColumns"].items()) {
    if (column["name"].as_string() == name) return &column;
  }
  return nullptr;
}

TEST(Kinds, are_complete_and_hold_no_words_of_their_own) {
  for (int release : {27, 30, 31, kNewestRelease}) {
    const auto all = crds(release);
    ASSERT_TRUE(all.ok()) << all.error().message();
    EXPECT_EQ(all->size(), 9U);
    for (const auto& definition : *all) {
      const std::string text = json::write(definition);
      EXPECT_EQ(text.find("\"include\""), std::string::npos) << text;
      EXPECT_EQ(text.find("\"since\""), std::string::npos) << text;
      EXPECT_TRUE(release >= 31 || text.find("isCIDR") == std::string::npos) << text;
      EXPECT_TRUE(release >= 28 || text.find("\"fieldPath\"") == std::string::npos) << text;
      if (definition["spec"]["group"].as_string() != kGroup) continue;
      EXPECT_EQ(definition["spec"]["names"]["categories"], Value::array({"spiderpool"}));
    }
  }
}

TEST(Install, brings_kinds_classes_and_rights_in_every_release) {
  for (const char* release :
       {"1.27", "1.28", "1.29", "1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", ""}) {
    SCOPED_TRACE(release);
    ObjectsWorld world(release);

    world.install_all();

    std::set<std::string> names;
    for (const auto& definition : world.list(kDefinitions, "")) {
      names.insert(definition["spec"]["names"]["shortNames"][0].str());
    }
    EXPECT_EQ(names, (std::set<std::string>{"scp", "smc", "sp", "ss", "sr", "se", "scc", "sns",
                                            "net-attach-def"}));
    const std::string_view named(release);
    const bool classic = !named.empty() && named <= "1.30";
    const Value resource_class = world.get({"resource.k8s.io", "v1alpha2", "resourceclasses"}, "",
                                           "netresources.spidernet.io");
    if (classic) {
      EXPECT_EQ(resource_class["driverName"].as_string(), "netresources.spidernet.io");
    } else {
      client::ResourceClient resources(*world.api);
      for (const char* name :
           {"cni.spidernet.io", "dra-static-nic.spidernet.io", "dra-dynamic-nic.spidernet.io"}) {
        EXPECT_TRUE(resources.get(kDeviceClasses, "", name).ok()) << name;
      }
    }
    const Value coordinator = world.get(kCoordinators, "", "default");
    EXPECT_EQ(coordinator["spec"]["hijackCIDR"], Value::array({"169.254.0.0/16"}));
    EXPECT_EQ(coordinator["spec"]["mode"].as_string(), "auto");
  }
}

TEST(Install, lets_nodes_get_definitions_and_nothing_more) {
  ObjectsWorld world;
  world.install_all();
  world.create(kNetAttachDefs, "kube-system",
               "{'apiVersion': 'k8s.cni.cncf.io/v1', 'kind': 'NetworkAttachmentDefinition', "
               "'metadata': {'name': 'n'}, 'spec': {'config': '{}'}}");
  const auto way = world.connect({"system:node:node-0", {"system:nodes"}});
  client::Client node(*way);

  EXPECT_TRUE(node.get(kNetAttachDefs, "kube-system", "n").ok());
  EXPECT_EQ(node.list(kNetAttachDefs, "").error().code(), Code::forbidden);
  EXPECT_EQ(node.remove(kNetAttachDefs, "kube-system", "n").error().code(), Code::forbidden);
}

/// As the token of a pod there would.
class OnNode : public client::Transport {
 public:
  explicit OnNode(client::Transport& inner) : inner_(inner) {}
  Result<client::Response> send(client::Request request) override {
    request.headers.set("X-Remote-Extra-Authentication.kubernetes.io%2fnode-name", "node-0");
    return inner_.send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    inner_.send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner_.open_stream(std::move(request), std::move(handlers));
  }

 private:
  client::Transport& inner_;
};

TEST(Install, lets_a_node_report_itself_alone) {
  ObjectsWorld world;
  world.install_all();
  world.settle();
  const auto inner = world.connect({"driver", {"system:masters"}});
  OnNode way(*inner);
  client::Client node(way);
  const auto report = [](const char* name) {
    return from_text(cat("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': ",
                         "'SpiderNodeState', 'metadata': {'name': '", name, "'}}"));
  };

  EXPECT_TRUE(node.create(kNodeStates, "", report("node-0")).ok());
  EXPECT_NE(error_of(node.create(kNodeStates, "", report("node-1")))
                .find("the report of node node-1 is not that of node-0"),
            std::string::npos);
  const auto other = world.api->create(kNodeStates, "", report("node-1"));
  ASSERT_TRUE(other.ok()) << other.error().message();
  Value forged = *other;
  forged.set("status", from_text("{'nics': 99}"));
  EXPECT_NE(error_of(node.update_status(kNodeStates, "", forged)), "");
  EXPECT_NE(error_of(node.update(kNodeStates, "", forged)), "");
  EXPECT_NE(error_of(node.remove(kNodeStates, "", "node-1")), "");
  EXPECT_TRUE(world.get(kNodeStates, "", "node-1")["status"].is_null());
  EXPECT_TRUE(node.remove(kNodeStates, "", "node-0").ok());
}

TEST(Install, lets_the_driver_of_a_node_change_pods_there_alone) {
  ObjectsWorld world;
  world.install_all();
  world.settle();
  const client::Gvr pods = {"", "v1", "pods"};
  world.create({"", "v1", "serviceaccounts"}, "default", "{'metadata': {'name': 'default'}}");
  for (const char* node : {"node-0", "node-1"}) {
    world.create(pods, "default",
                 cat("{'metadata': {'name': 'on-", node, "'}, 'spec': {'nodeName': '", node,
                     "', 'containers': [{'name': 'c', 'image': 'i'}]}}"));
  }
  world.create(pods, "default",
               "{'metadata': {'name': 'waiting'}, 'spec': {'containers': [{'name': 'c', 'image': "
               "'i'}]}}");
  const Value change = from_text("{'metadata': {'annotations': {'a': 'b'}}}");
  const auto change_as = [&](const char* user, const char* pod) {
    const auto inner = world.connect({user, {"system:masters"}});
    OnNode way(*inner);
    client::Client node(way);
    return error_of(node.patch(pods, "default", pod, client::PatchType::merge, change));
  };
  const char* driver = "system:serviceaccount:kube-system:dibs-driver-net";

  EXPECT_EQ(change_as(driver, "on-node-0"), "");
  EXPECT_NE(change_as(driver, "on-node-1").find("pod on-node-1 is not on node node-0"),
            std::string::npos);
  EXPECT_NE(change_as(driver, "waiting"), "");
  EXPECT_EQ(change_as("system:serviceaccount:default:other", "on-node-1"), "");
}

TEST(Install, changes_nothing_the_second_time_and_leaves_a_users_settings) {
  ObjectsWorld world;
  world.install_all();
  world.patch(kCoordinators, "", "default", "{'spec': {'hijackCIDR': ['10.0.0.0/8']}}");
  std::map<std::string, std::string> before;
  for (const auto& definition : world.list(kDefinitions, "")) {
    before[std::string(client::name_of(definition))] =
        definition["metadata"]["resourceVersion"].str();
  }

  world.install_all();

  for (const auto& definition : world.list(kDefinitions, "")) {
    EXPECT_EQ(definition["metadata"]["resourceVersion"].str(),
              before[std::string(client::name_of(definition))])
        << client::name_of(definition);
  }
  EXPECT_EQ(world.get(kCoordinators, "", "default")["spec"]["hijackCIDR"],
            Value::array({"10.0.0.0/8"}));
}

TEST(Install, brings_an_older_kind_up_to_date_and_leaves_the_definitions_of_others) {
  ObjectsWorld world;
  const auto older = [](const char* plural, const char* kind, const char* group,
                        const char* version) {
    return from_text(
        cat("{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', "
            "'metadata': {'name': '",
            plural, ".", group, "'}, 'spec': {'group': '", group, "', 'scope': 'Namespaced', ",
            "'names': {'plural': '", plural, "', 'kind': '", kind, "'}, 'versions': [{'name': '",
            version,
            "', 'served': true, 'storage': true, 'schema': {'openAPIV3Schema': {'type': 'object', "
            "'properties': {'spec': {'type': 'object', 'properties': {'rdmaAcc': {'type': "
            "'boolean'}, 'config': {'type': 'string'}}}}}}}]}}"));
  };
  ASSERT_TRUE(world.api
                  ->create(kDefinitions, "",
                           older("spiderclaimparameters", "SpiderClaimParameter",
                                 "spiderpool.spidernet.io", "v2beta1"))
                  .ok());
  ASSERT_TRUE(world.api
                  ->create(kDefinitions, "",
                           older("network-attachment-definitions", "NetworkAttachmentDefinition",
                                 "k8s.cni.cncf.io", "v1"))
                  .ok());

  world.install_all();

  const Value own = world.get(kDefinitions, "", "spiderclaimparameters.spiderpool.spidernet.io");
  EXPECT_EQ(own["spec"]["names"]["shortNames"], Value::array({"scp"}));
  EXPECT_TRUE(world.make_parameter("p", ", 'spec': {'enableRdma': true}").ok());
  EXPECT_TRUE(world.get(kClaimParameters, "default", "p")["spec"]["enableRdma"].as_bool());
  const Value other = world.get(kDefinitions, "", "network-attachment-definitions.k8s.cni.cncf.io");
  EXPECT_TRUE(other["spec"]["names"]["shortNames"].is_null());
}

TEST(Install, goes_on_where_it_was_killed) {
  for (int writes = 0;; ++writes) {
    ObjectsWorld world;
    DyingWay dying(world.way(), writes, writes % 2 == 0);
    client::Client client(dying);
    for (int i = 0; i < 10 && !dying.died() && !install(client).ok(); ++i) world.settle();

    world.install_all();

    EXPECT_EQ(world.list(kDefinitions, "").size(), 9U);
    EXPECT_FALSE(world.get(kCoordinators, "", "default").is_null());
    if (!dying.died()) break;
    ASSERT_LT(writes, 40);
  }
}

TEST(Install, works_with_the_rights_that_it_asks_for) {
  ObjectsWorld world;
  const auto make_account = [&](const std::string& name, const Value& rules) {
    Value role =
        from_text(cat("{'apiVersion': 'rbac.authorization.k8s.io/v1', 'kind': 'ClusterRole', "
                      "'metadata': {'name': '",
                      name, "'}}"));
    role.set("rules", rules);
    ASSERT_TRUE(
        world.api->create({"rbac.authorization.k8s.io", "v1", "clusterroles"}, "", role).ok());
    world.create({"rbac.authorization.k8s.io", "v1", "clusterrolebindings"}, "",
                 cat("{'metadata': {'name': '", name,
                     "'}, 'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': "
                     "'ClusterRole', 'name': '",
                     name,
                     "'}, 'subjects': [{'kind': 'ServiceAccount', 'namespace': "
                     "'kube-system', 'name': '",
                     name, "'}]}"));
  };
  make_account("controller", controller_rules());
  make_account("node", node_rules());
  const auto way = world.connect({"system:serviceaccount:kube-system:controller", {}});
  client::Client controller(*way);

  auto installed = install(controller);
  for (int i = 0; i < 10 && !installed; ++i) {
    ASSERT_EQ(installed.error().code(), Code::unavailable) << installed.error().message();
    world.settle();
    installed = install(controller);
  }

  EXPECT_TRUE(installed.ok());
  EXPECT_TRUE(install(controller).ok());
  const auto node_way = world.connect({"system:serviceaccount:kube-system:node", {}});
  client::Client node(*node_way);
  EXPECT_TRUE(node.list(kIpPools, "").ok());
  EXPECT_EQ(node.remove(kIpPools, "", "p").error().code(), Code::forbidden);
  EXPECT_EQ(node.list(kDefinitions, "").error().code(), Code::forbidden);
}

TEST(Kinds, print_the_columns_that_they_should) {
  const auto all = crds(kNewestRelease);
  ASSERT_TRUE(all.ok());
  for (const auto& definition : *all) {
    if (definition["spec"]["names"]["kind"].as_string() != "SpiderIPPool") continue;
    for (const char* name :
         {"VERSION", "SUBNET", "ALLOCATED-IP-COUNT", "TOTAL-IP-COUNT", "DEFAULT"}) {
      ASSERT_NE(column(definition, name), nullptr) << name;
      EXPECT_EQ((*column(definition, name))["priority"].as_int(), 0) << name;
    }
    for (const char* name : {"DISABLE", "NodeName", "MultusName", "APP-NAMESPACE"}) {
      ASSERT_NE(column(definition, name), nullptr) << name;
      EXPECT_EQ((*column(definition, name))["priority"].as_int(), 10) << name;
    }
  }
}

TEST(Kinds, take_what_the_document_says_word_for_word) {
  for (const char* release : {"1.27", "1.30", ""}) {
    ObjectsWorld world(release);
    world.install_all();

    EXPECT_EQ(error_of(world.make_parameter("demo", "")), "");
    EXPECT_EQ(error_of(world.make_config("macvlan-conf",
                                         "'cniType': 'macvlan', 'macvlan': {'master': ['eth0']}")),
              "");
    EXPECT_EQ(error_of(world.make_pool("ippool-test",
                                       "'ips': ['172.18.30.131-172.18.30.140'], 'subnet': "
                                       "'172.18.0.0/16', 'gateway': '172.18.0.1', 'multusName': "
                                       "['kube-system/macvlan-conf']")),
              "");
    const Value pool = world.get(kIpPools, "", "ippool-test");
    EXPECT_FALSE(pool["spec"]["default"].as_bool(true));
    EXPECT_FALSE(pool["spec"]["disable"].as_bool(true));
  }
}

/// As the driver writes it; the status alone where there is a subresource.
Result<Value> write_strictly(ObjectsWorld& world, const client::Gvr& gvr, const Value& object) {
  client::WriteOptions strict;
  strict.field_validation = "Strict";
  DIBS_TRY(Value made, world.api->create(gvr, client::namespace_of(object), object, strict));
  if (made["status"] == object["status"]) return made;
  made.set("status", object["status"]);
  return world.api->update_status(gvr, client::namespace_of(object), made, strict);
}

TEST(Kinds, know_all_that_is_reported_of_a_node) {
  ObjectsWorld world;
  world.install_all();
  Interface nic{.name = "ens1f0", .index = 3, .kind = "device", .mac = "0a:00:00:00:00:01"};
  nic.mtu = 9000;
  nic.admin_up = nic.is_virtual = true;
  nic.oper_state = "up";
  nic.speed_mbps = 100000;
  nic.link_layer = "infiniband";
  nic.addresses = {"172.18.0.11/16"};
  nic.subnets = {"172.18.0.0/16"};
  nic.parent = "ens1";
  nic.vlan_id = 7;
  nic.bond_members = {"a", "b"};
  nic.pci_address = "0000:81:00.0";
  nic.pcie_root = "pci0000:80";
  nic.vendor = nic.device = nic.driver = "x";
  nic.numa_node = 1;
  nic.rdma = Rdma{"mlx5_0", {"/dev/infiniband/uverbs0"}};
  nic.gpus = {"0000:82:00.0"};
  VirtualFunction function{.index = 0, .pci_address = "0000:81:00.2", .netdev = "v0"};
  function.rdma_device = function.vendor = function.device = function.driver = "y";
  function.available = function.in_use = true;
  nic.sriov = Sriov{8, 1, {function}};
  NodeState state;
  state.node = "node-7";
  state.interfaces = {nic};
  state.ovs_bridges = {"br0"};
  state.rdma_netns_mode = "exclusive";
  state.pools = {{"spidernet.io/a", PoolKind::rdma_shared, 5, {"ens1f0"}}};
  state.problem = "no netlink";

  const auto written = write_strictly(world, kNodeStates, to_object(state, "uid"));

  ASSERT_TRUE(written.ok()) << written.error().message();
  const auto read = parse_node_state(*written);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_TRUE(same_facts(*read, state));
  EXPECT_EQ(read->problem, "no netlink");
  EXPECT_EQ((*written)["status"], to_object(state, "uid")["status"]);
}

TEST(Kinds, know_all_that_is_written_of_addresses) {
  ObjectsWorld world;
  world.install_all();
  PoolStatus status;
  status.allocated[*Ip::parse("172.18.0.1")] = {};
  status.settled = *IpSet::parse({"172.18.0.2-172.18.0.9"});
  status.admitted = *IpSet::parse({"172.18.0.1-172.18.0.99"});
  Value pool = from_text(
      "{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': 'SpiderIPPool', 'metadata': "
      "{'name': 'p'}, 'spec': {'subnet': '172.18.0.0/16'}}");
  pool.set("status", to_status(status));
  const Value endpoint = from_text(
      "{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': 'SpiderEndpoint', 'metadata': "
      "{'name': 'e', 'namespace': 'default'}, 'status': {'ownerControllerType': 'Pod', "
      "'ownerControllerName': 'e', 'current': {'uid': 'u', 'node': 'n', 'ips': [{'interface': "
      "'eth0', 'mac': '0a:00:00:00:00:01', 'ipv4': '172.18.0.1/16', 'ipv4Pool': 'p', "
      "'ipv4Gateway': '172.18.0.254', 'ipv6': 'fd00::1/64', 'ipv6Pool': 'q', 'ipv6Gateway': "
      "'fd00::2', 'vlan': 0, 'cleanGateway': true, 'routes': [{'dst': '10.0.0.0/8', 'gw': "
      "'172.18.0.3'}]}]}}}");

  for (const auto& [gvr, object] : {std::pair(kIpPools, pool), std::pair(kEndpoints, endpoint)}) {
    const auto written = write_strictly(world, gvr, object);
    ASSERT_TRUE(written.ok()) << written.error().message();
    EXPECT_EQ((*written)["status"], object["status"]) << json::write(*written);
  }
}

TEST(Kinds, refuse_a_config_in_the_words_of_the_original) {
  ObjectsWorld world;
  world.install_all();
  const auto refusal = [&](const std::string& spec) {
    return error_of(world.make_config("c", spec));
  };
  const std::string invalid = "SpiderMultusConfig.spiderpool.spidernet.io \"c\" is invalid: ";

  EXPECT_EQ(refusal("'cniType': 'macvlan'"),
            invalid + "spec: Required value: no spec.macvlanConfig specified");
  EXPECT_EQ(refusal("'cniType': 'macvlan', 'macvlan': {'master': ['a']}, 'ovs': {'bridge': 'b'}"),
            invalid +
                "spec.cniType: Forbidden: the cniType macvlan only supports "
                "spec.macvlanConfig, please remove other CNI configs");
  EXPECT_NE(
      refusal("'cniType': 'macvlan', 'macvlan': {'master': []}").find("master can't be empty"),
      std::string::npos);
  EXPECT_NE(refusal("'cniType': 'macvlan', 'macvlan': {'master': ['a', 'b']}")
                .find("the bond property is nil with multiple Interfaces"),
            std::string::npos);
  EXPECT_NE(refusal("'cniType': 'sriov', 'sriov': {}")
                .find("no spec.sriovConfig[resourceName] specified"),
            std::string::npos);
  EXPECT_NE(refusal("'cniType': 'macvlan', 'macvlan': {'master': ['a'], 'vlanID': 4095}"), "");
  EXPECT_NE(refusal("'cniType': 'bridge'"), "");
  EXPECT_NE(refusal("'cniType': 'vlan', 'vlan': {'master': ['a'], 'vlanMode': 'auto'}"), "");
  EXPECT_NE(refusal("'cniType': 'custom', 'coordinator': {'mode': 'auto'}"), "");
  EXPECT_NE(refusal("'cniType': 'ipvlan', 'ipvlan': {'master': ['a']}, "
                    "'coordinator': {'podMACPrefix': '0b:00'}")
                .find("not a unicast MAC"),
            std::string::npos);
  EXPECT_NE(refusal("'cniType': 'ipvlan', 'ipvlan': {'master': ['a']}, "
                    "'coordinator': {'hijackCIDR': ['x.y']}")
                .find("invalid IP address or CIDR"),
            std::string::npos);
  EXPECT_EQ(refusal("'cniType': 'sriov', 'sriov': {'resourceName': 'a/b'}"), "");
}

TEST(Kinds, refuse_a_pool_in_the_words_of_the_original) {
  ObjectsWorld world;
  world.install_all();
  const auto refusal = [&](const std::string& spec) {
    return error_of(world.make_pool("p", spec));
  };
  const std::string invalid = "SpiderIPPool.spiderpool.spidernet.io \"p\" is invalid: ";

  EXPECT_NE(refusal("'subnet': '172.18.30.1/16'")
                .find("unformatted subnet 172.18.30.1/16, please change it to"),
            std::string::npos);
  EXPECT_NE(refusal("'subnet': '172.18.0.0/16', 'ips': ['10.0.0.1-10.0.0.3']")
                .find("not pertains to the 'spec.subnet' 172.18.0.0/16 of IPPool"),
            std::string::npos);
  EXPECT_NE(refusal("'subnet': '172.18.0.0/16', 'gateway': '10.0.0.1'").find("spec.gateway"),
            std::string::npos);
  EXPECT_NE(refusal("'subnet': '172.18.0.0/16', 'routes': [{'dst': '0.0.0.0/0', 'gw': "
                    "'172.18.0.1'}]")
                .find("please specify 'spec.gateway' to configure the default route"),
            std::string::npos);
  EXPECT_NE(refusal("'subnet': '172.18.0.0/16', 'routes': [{'dst': '10.0.0.0/8', 'gw': "
                    "'172.18.0.1'}, {'dst': '10.0.0.0/8', 'gw': '172.18.0.2'}]")
                .find("duplicate route with the same dst"),
            std::string::npos);
  EXPECT_NE(refusal("'subnet': '172.18.0.0/16', 'podAffinity': {}")
                .find("empty podAffinity is invalid for SpiderIPPool"),
            std::string::npos);
  EXPECT_NE(refusal("'ips': []"), "");
  EXPECT_NE(refusal("'subnet': '172.18.0.0/16', 'ips': ['172.18.0.0/24']"), "");
  ASSERT_EQ(refusal("'subnet': 'fd00::/64', 'ips': ['fd00::1-fd00::9'], 'gateway': 'fd00::a'"), "");

  Value pool = world.get(kIpPools, "", "p");
  pool.mut("spec").set("subnet", "fd01::/64");
  EXPECT_NE(error_of(world.api->update(kIpPools, "", pool))
                .find("spec.subnet: Forbidden: is not changeable"),
            std::string::npos);
}

TEST(Kinds, refuse_parameters_that_contradict_themselves) {
  ObjectsWorld world;
  world.install_all();

  EXPECT_NE(error_of(world.make_parameter(
                         "a",
                         ", 'spec': {'staticNics': [{'multusConfigName': '', 'namespace': "
                         "'n'}]}"))
                .find("value should not be empty"),
            std::string::npos);
  EXPECT_NE(error_of(world.make_parameter(
                         "a",
                         ", 'spec': {'multusNames': ['m'], 'secondaryNics': [{'multusName': "
                         "'m', 'namespace': 'n'}]}"))
                .find("only one of secondaryNics, staticNics and multusNames may be given"),
            std::string::npos);
  EXPECT_NE(error_of(world.make_parameter("a", ", 'spec': {'resources': {'a/b': 'x'}}")), "");
  EXPECT_EQ(error_of(world.make_parameter(
                "a",
                ", 'spec': {'resources': {'a/b': 1}, 'netResources': {'a/b': '1'}, "
                "'rdma': true, 'ippools': ['p']}")),
            "");
}

}  // namespace
}  // namespace dibs::drivers::net::test
