#include "drivers/net/objects/reconciler.h"

#include <gtest/gtest.h>

#include "drivers/net/objects/test_objects.h"
#include "json/parse.h"

namespace dibs::drivers::net::test {
namespace {

constexpr const char* kMacvlan = "'cniType': 'macvlan', 'macvlan': {'master': ['eth0']}";

class ReconcilerWorld : public ObjectsWorld {
 public:
  explicit ReconcilerWorld(const std::string& release = "") : ObjectsWorld(release) {
    reconciler = reconcile();
    for (int i = 0; i < 30 && !reconciler->synced(); ++i) settle();
    EXPECT_TRUE(reconciler->synced());
  }
  ~ReconcilerWorld() { reconciler->stop(); }

  Value cni(const std::string& name) {
    const auto text = json::parse(definition(name)["spec"]["config"].as_string());
    return text ? *text : Value();
  }
  /// Reasons of the events about an object.
  std::vector<std::string> warnings(const std::string& name_space, const std::string& name) {
    return events(name_space, name);
  }

  std::unique_ptr<Reconciler> reconciler;
};

bool says(const std::vector<std::string>& events, std::string_view reason,
          std::string_view words = "") {
  for (const auto& event : events) {
    if (event.find(cat("Warning ", reason)) == 0 && event.find(words) != std::string::npos) {
      return true;
    }
  }
  return false;
}

TEST(Reconciler, makes_a_definition_and_a_class_of_a_config) {
  ReconcilerWorld world;

  ASSERT_TRUE(world.make_config("macvlan-conf", kMacvlan).ok());
  world.settle();

  EXPECT_EQ(world.cni("macvlan-conf")["plugins"][0],
            from_text("{'type': 'macvlan', 'master': 'eth0', 'mode': 'bridge', "
                      "'ipam': {'type': 'spiderpool'}}"));
  const Value made = world.device_class("macvlan-conf");
  EXPECT_EQ(made["spec"]["config"][0]["opaque"],
            from_text("{'driver': 'dra.spidernet.io', 'parameters': {'multusName': "
                      "'macvlan-conf', 'multusNamespace': 'kube-system'}}"));
  ASSERT_EQ(made["spec"]["selectors"].size(), 2U);
  EXPECT_EQ(made["spec"]["selectors"][1]["cel"]["expression"].as_string(),
            "device.attributes['dra.spidernet.io'].name == \"eth0\"");
}

TEST(Reconciler, makes_no_class_where_only_the_classic_model_is_served) {
  ReconcilerWorld world("1.30");

  ASSERT_TRUE(world.make_config("macvlan-conf", kMacvlan).ok());
  world.settle();

  EXPECT_FALSE(world.definition("macvlan-conf").is_null());
  EXPECT_TRUE(world.device_class("macvlan-conf").is_null());
}

TEST(Reconciler, narrows_the_class_to_the_subnets_of_named_pools) {
  ReconcilerWorld world;
  ASSERT_TRUE(world
                  .make_config("c",
                               "'cniType': 'macvlan', 'macvlan': {'master': ['eth0'], "
                               "'enableRdma': true, 'ippools': {'ipv4': ['p']}}")
                  .ok());
  world.settle();
  EXPECT_EQ(world.device_class("c")["spec"]["selectors"].size(), 3U);

  ASSERT_TRUE(world.make_pool("p", "'subnet': '172.18.0.0/16'").ok());
  world.settle();

  const Value selectors = world.device_class("c")["spec"]["selectors"];
  ASSERT_EQ(selectors.size(), 4U);
  EXPECT_NE(
      selectors[3]["cel"]["expression"].as_string().find("cidr(\"172.18.0.0/16\").containsCIDR("),
      std::string_view::npos);
}

TEST(Reconciler, narrows_the_class_to_the_subnets_of_pools_that_name_the_config) {
  ReconcilerWorld world;
  ASSERT_TRUE(world.make_config("macvlan-conf", kMacvlan).ok());
  world.settle();
  const auto selectors = [&] {
    return world.device_class("macvlan-conf")["spec"]["selectors"].size();
  };
  EXPECT_EQ(selectors(), 2U);
  ASSERT_TRUE(
      world.make_pool("p", "'subnet': '172.18.0.0/16', 'multusName': ['kube-system/macvlan-conf']")
          .ok());
  ASSERT_TRUE(world.make_pool("q", "'subnet': '10.6.0.0/16', 'multusName': ['other']").ok());
  world.settle();
  EXPECT_EQ(selectors(), 3U);

  ASSERT_TRUE(world.make_pool("d", "'subnet': '10.7.0.0/16', 'default': true").ok());
  world.settle();
  EXPECT_EQ(selectors(), 2U) << "a default pool may serve it as well";
}

TEST(Reconciler, lets_no_name_become_an_expression) {
  ReconcilerWorld world;
  // The kernel allows such an interface.
  ASSERT_TRUE(world
                  .make_config("c",
                               "'cniType': 'macvlan', 'macvlan': {'master': "
                               "['\\\"||true||\\\"']}")
                  .ok());
  world.settle();

  EXPECT_EQ(world.device_class("c")["spec"]["selectors"][1]["cel"]["expression"].as_string(),
            "device.attributes['dra.spidernet.io'].name == \"\\\"||true||\\\"\"");
}

TEST(Reconciler, leaves_classes_of_others_alone) {
  ReconcilerWorld world;
  const auto make = [&](const std::string& name, const std::string& from) {
    return world.api
        ->create(kDeviceClasses, "",
                 from_text(cat("{'apiVersion': 'resource.k8s.io/v1', 'kind': 'DeviceClass', "
                               "'metadata': {'name': '",
                               name, "', 'annotations': {'multus.spidernet.io/config': '", from,
                               "'}}, 'spec': {}}")))
        .ok();
  };

  ASSERT_TRUE(make("mine.example.com", "kube-system/gone"));
  ASSERT_TRUE(make("other.example.com", "../../x/gone"));
  ASSERT_TRUE(make("gone.kube-system.cni.spidernet.io", "default/gone"));
  world.settle();

  for (const char* name :
       {"mine.example.com", "other.example.com", "gone.kube-system.cni.spidernet.io"}) {
    EXPECT_FALSE(world.get(kDeviceClasses, "", name).is_null()) << name;
  }
  ASSERT_TRUE(world.make_config("gone", kMacvlan).ok());
  world.settle();
  EXPECT_TRUE(says(world.warnings("kube-system", "gone"), "DeviceClassExists"));
}

TEST(Reconciler, follows_changes_and_mends_what_others_changed) {
  ReconcilerWorld world;
  ASSERT_TRUE(world.make_config("c", kMacvlan).ok());
  world.settle();

  world.patch(kMultusConfigs, "kube-system", "c",
              "{'metadata': {'annotations': {'a': 'b'}}, 'spec': {'macvlan': {'master': "
              "['eth1']}}}");
  world.settle();
  EXPECT_EQ(world.cni("c")["plugins"][0]["master"].as_string(), "eth1");
  EXPECT_EQ(world.definition("c")["metadata"]["annotations"]["a"].as_string(), "b");

  world.patch(kNetAttachDefs, "kube-system", "c",
              "{'metadata': {'annotations': null, 'ownerReferences': null}, "
              "'spec': {'config': '{}'}}");
  world.patch(kDeviceClasses, "", "c.kube-system.cni.spidernet.io",
              "{'spec': {'selectors': null}}");
  world.settle();
  EXPECT_EQ(world.cni("c")["plugins"][0]["master"].as_string(), "eth1");
  EXPECT_EQ(world.definition("c")["metadata"]["annotations"]["a"].as_string(), "b");
  EXPECT_EQ(world.definition("c")["metadata"]["ownerReferences"].size(), 1U);
  EXPECT_EQ(world.device_class("c")["spec"]["selectors"].size(), 2U);

  world.remove(kNetAttachDefs, "kube-system", "c");
  world.remove(kDeviceClasses, "", "c.kube-system.cni.spidernet.io");
  world.settle();
  EXPECT_FALSE(world.definition("c").is_null());
  EXPECT_FALSE(world.device_class("c").is_null());
}

TEST(Reconciler, takes_both_away_with_the_config) {
  ReconcilerWorld world;
  ASSERT_TRUE(world.make_config("c", kMacvlan, "'multus.spidernet.io/cr-name': 'd'").ok());
  world.settle();
  ASSERT_FALSE(world.definition("d").is_null());
  ASSERT_FALSE(world.device_class("c").is_null());

  world.remove(kMultusConfigs, "kube-system", "c");
  world.settle();

  EXPECT_TRUE(world.definition("d").is_null());
  EXPECT_TRUE(world.device_class("c").is_null());
}

TEST(Reconciler, takes_away_what_was_left_while_nobody_looked) {
  ReconcilerWorld world;
  ASSERT_TRUE(world.make_config("c", kMacvlan).ok());
  world.settle();
  world.reconciler->stop();
  world.remove(kMultusConfigs, "kube-system", "c");

  world.reconciler = world.reconcile();
  world.settle(std::chrono::seconds(5));

  EXPECT_TRUE(world.definition("c").is_null());
  EXPECT_TRUE(world.device_class("c").is_null());
}

TEST(Reconciler, says_what_is_wrong_with_a_config) {
  ReconcilerWorld world;

  // Rules of the server cannot see these.
  ASSERT_TRUE(
      world.make_config("version", kMacvlan, "'multus.spidernet.io/cni-version': '9'").ok());
  ASSERT_TRUE(world.make_config("json", "'customCNI': '{'").ok());
  world.settle();

  EXPECT_TRUE(says(world.warnings("kube-system", "version"), "InvalidMultusConfig",
                   "unsupported CNI version 9"));
  EXPECT_TRUE(says(world.warnings("kube-system", "json"), "InvalidMultusConfig",
                   "customCniConfig isn't a valid JSON encoding"));
  EXPECT_TRUE(world.definition("version").is_null());
}

TEST(Reconciler, keeps_the_name_of_a_definition) {
  ReconcilerWorld world;
  ASSERT_TRUE(world.make_config("c", kMacvlan, "'multus.spidernet.io/cr-name': 'd'").ok());
  world.settle();

  world.patch(kMultusConfigs, "kube-system", "c",
              "{'metadata': {'annotations': {'multus.spidernet.io/cr-name': 'e'}}}");
  world.settle();

  EXPECT_TRUE(world.definition("e").is_null());
  EXPECT_FALSE(world.definition("d").is_null());
  EXPECT_TRUE(says(world.warnings("kube-system", "c"), "InvalidMultusConfig",
                   "it's unsupported to change customized Multus net-attach-def resource name from "
                   "'d' to 'e'"));
}

TEST(Reconciler, takes_no_definition_from_another_config) {
  ReconcilerWorld world;
  ASSERT_TRUE(world.make_config("first", kMacvlan).ok());
  world.settle();

  ASSERT_TRUE(world.make_config("second", kMacvlan, "'multus.spidernet.io/cr-name': 'first'").ok());
  world.settle();

  EXPECT_EQ(world.definition("first")["metadata"]["ownerReferences"][0]["name"].as_string(),
            "first");
  EXPECT_TRUE(says(world.warnings("kube-system", "second"), "InvalidMultusConfig",
                   "already exists and is managed by SpiderMultusConfig kube-system/first."));

  world.remove(kMultusConfigs, "kube-system", "first");
  world.settle(std::chrono::seconds(5));
  EXPECT_EQ(world.definition("first")["metadata"]["ownerReferences"][0]["name"].as_string(),
            "second");
}

TEST(Reconciler, waits_for_a_definition_that_is_going) {
  ReconcilerWorld world;
  world.create(kNetAttachDefs, "kube-system",
               "{'apiVersion': 'k8s.cni.cncf.io/v1', 'kind': 'NetworkAttachmentDefinition', "
               "'metadata': {'name': 'c', 'finalizers': ['example.com/f']}, 'spec': {}}");
  world.remove(kNetAttachDefs, "kube-system", "c");

  ASSERT_TRUE(world.make_config("c", kMacvlan).ok());
  world.settle(std::chrono::seconds(3));
  EXPECT_TRUE(says(world.warnings("kube-system", "c"), "NetAttachDefTerminating",
                   "the old net-attach-def kube-system/c is terminating, wait for a while"));

  world.patch(kNetAttachDefs, "kube-system", "c", "{'metadata': {'finalizers': null}}");
  world.settle(std::chrono::seconds(20));
  EXPECT_EQ(world.cni("c")["plugins"][0]["master"].as_string(), "eth0");
}

TEST(Reconciler, says_which_config_a_parameter_lacks) {
  ReconcilerWorld world;
  ASSERT_TRUE(world
                  .make_parameter("p",
                                  ", 'spec': {'defaultNic': {'multusName': 'absent', 'namespace': "
                                  "'kube-system'}}")
                  .ok());
  ASSERT_TRUE(world.api
                  ->create(kClaimParameters, "default",
                           from_text("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': "
                                     "'SpiderClaimParameter', 'metadata': {'name': 'v', "
                                     "'annotations': {'dra.spidernet.io/cdi-version': '0.9.9'}}}"))
                  .ok());
  world.settle();

  EXPECT_TRUE(says(world.warnings("default", "p"), "NetworkNotFound",
                   "error get spidermultusconfig kube-system/absent: not found"));
  EXPECT_TRUE(
      says(world.warnings("default", "v"), "InvalidClaimParameter", "invalid version \"0.9.9\""));
}

TEST(Reconciler, tells_where_pods_and_services_are) {
  ReconcilerWorld world;
  world.settle();
  EXPECT_EQ(world.get(kCoordinators, "", "default")["status"]["phase"].as_string(), "Synced");

  world.create(kConfigMaps, "kube-system",
               "{'metadata': {'name': 'kubeadm-config'}, 'data': {'ClusterConfiguration': "
               "'networking:\\n  podSubnet: 10.244.0.0/16,fd00::/64\\n  serviceSubnet: "
               "10.96.0.0/12\\n'}}");
  world.patch(kCoordinators, "", "default", "{'spec': {'podCIDRType': 'cluster'}}");
  world.settle();
  Value status = world.get(kCoordinators, "", "default")["status"];
  EXPECT_EQ(status["overlayPodCIDR"], Value::array({"10.244.0.0/16", "fd00::/64"}));
  // What the server says of its own range comes before what somebody wrote down.
  const Value range = world.get({"networking.k8s.io", "v1", "servicecidrs"}, "", "kubernetes");
  ASSERT_EQ(range["spec"]["cidrs"].size(), 1U);
  EXPECT_EQ(status["serviceCIDR"], range["spec"]["cidrs"]);

  world.patch(kCoordinators, "", "default", "{'spec': {'podCIDRType': 'calico'}}");
  world.settle();
  status = world.get(kCoordinators, "", "default")["status"];
  EXPECT_EQ(status["phase"].as_string(), "NotReady");
  EXPECT_EQ(status["reason"].as_string(), "no subnets of pods found by podCIDRType \"calico\"");
}

TEST(Reconciler, ends_where_it_should_wherever_it_is_killed) {
  bool finished = false;
  for (int writes = 0; !finished; ++writes) {
    for (const bool arrives : {false, true}) {
      SCOPED_TRACE(cat(writes, arrives ? " arrives" : ""));
      ObjectsWorld world;
      world.install_all();
      ASSERT_TRUE(world.make_config("a", kMacvlan).ok());
      DyingWay dying(world.way(), writes, arrives);
      {
        client::Client client(dying);
        auto doomed = world.reconcile_by(client);
        world.settle(std::chrono::seconds(3));
        world.patch(kMultusConfigs, "kube-system", "a",
                    "{'spec': {'macvlan': {'master': ['eth1']}}}");
        ASSERT_TRUE(world.make_config("b", kMacvlan).ok());
        world.settle(std::chrono::seconds(3));
        world.remove(kMultusConfigs, "kube-system", "b");
        world.settle(std::chrono::seconds(3));
        doomed->stop();
      }
      finished = finished || !dying.died();

      auto next = world.reconcile();
      world.settle(std::chrono::seconds(10));

      EXPECT_TRUE(next->synced());
      const auto cni = json::parse(world.definition("a")["spec"]["config"].as_string());
      ASSERT_TRUE(cni.ok());
      EXPECT_EQ((*cni)["plugins"][0]["master"].as_string(), "eth1");
      EXPECT_NE(
          world.device_class("a")["spec"]["selectors"][1]["cel"]["expression"].as_string().find(
              "eth1"),
          std::string_view::npos);
      EXPECT_TRUE(world.definition("b").is_null());
      EXPECT_TRUE(world.device_class("b").is_null());
      next->stop();
    }
    ASSERT_LT(writes, 60);
  }
}

}  // namespace
}  // namespace dibs::drivers::net::test
