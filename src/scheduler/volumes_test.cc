// Pods with claims as volumes: where they may go, and that their volumes are bound before them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/volumes/volumes.h"
#include "controllers/controllers.h"
#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

const Gvr kVolumesOf = {"", "v1", "persistentvolumes"};
const Gvr kVolumeClaimsOf = {"", "v1", "persistentvolumeclaims"};
const Gvr kStorage = {"storage.k8s.io", "v1", "storageclasses"};
const Gvr kCsiNodes = {"storage.k8s.io", "v1", "csinodes"};

/// A cluster with a binder and the provisioner of folders.
class World : public TestCluster {
 public:
  explicit World(Options options = {}, const std::string& gates = "")
      : TestCluster(std::move(options), {}, false, gates) {
    binder_ = std::make_unique<controllers::Controllers>(*api, sim.runtime(),
                                                         controllers::ControllersOptions());
    binder_->start();
    for (const char* node : {"a", "b"}) {
      add_node(node, "{'cpu':'4','memory':'8Gi','pods':'10'}",
               cat("{'kubernetes.io/hostname':'", node, "','topology.kubernetes.io/zone':'zone-",
                   node, "'}"));
    }
    add_storage("local", "kubernetes.io/no-provisioner");
    add_storage("folders", "dibs.io/local-path");
    add_storage("slow", "slow.example.com");
    add_storage("at-once", "slow.example.com", "Immediate");
    settle(std::chrono::seconds(1));
  }
  ~World() {
    stop();
    binder_.reset();
  }

  void add_storage(const std::string& name, const std::string& provisioner,
                   const std::string& mode = "WaitForFirstConsumer", const std::string& more = "") {
    create(kStorage, "",
           cat("{'metadata':{'name':'", name, "'},'provisioner':'", provisioner,
               "','volumeBindingMode':'", mode, "'", more, "}"));
  }
  void add_volume_claim(const std::string& name, const std::string& storage,
                        const std::string& mode = "ReadWriteOnce") {
    create(kVolumeClaimsOf, "default",
           cat("{'metadata':{'name':'", name, "'},'spec':{'storageClassName':'", storage,
               "','accessModes':['", mode, "'],'resources':{'requests':{'storage':'1Gi'}}}}"));
    settle();
  }
  void add_volume(const std::string& name, const std::string& storage, const std::string& node,
                  const std::string& more = "", const std::string& labels = "{}") {
    const std::string affinity =
        node.empty()
            ? ""
            : cat(",'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
                  "'kubernetes.io/hostname','operator':'In','values':['",
                  node, "']}]}]}}");
    const bool csi = more.find("'csi'") != more.npos;
    const bool modes = more.find("'accessModes'") != more.npos;
    create(kVolumesOf, "",
           cat("{'metadata':{'name':'", name, "','labels':", labels,
               "},'spec':{'storageClassName':'", storage, "','capacity':{'storage':'1Gi'}",
               modes ? "" : ",'accessModes':['ReadWriteOnce']", affinity,
               csi ? "" : ",'hostPath':{'path':'/x'}", more, "}}"));
    settle();
  }
  Value add_volume_pod(const std::string& name, const std::vector<std::string>& claims,
                       const std::string& more = "") {
    std::string volumes;
    for (const std::string& claim : claims) {
      append(volumes, volumes.empty() ? "" : ",", "{'name':'", claim,
             "','persistentVolumeClaim':{'claimName':'", claim, "'}}");
    }
    const Value made = add_pod(name, cat("{'volumes':[", volumes, "]", more, "}"));
    settle(std::chrono::seconds(3));
    return made;
  }
  void stop_binder() { binder_.reset(); }
  /// "Bound v".
  std::string claim(const std::string& name) {
    const Value found = get(kVolumeClaimsOf, "default", name);
    return cat(found["status"]["phase"].as_string(), " ", found["spec"]["volumeName"].as_string());
  }

 private:
  std::unique_ptr<controllers::Controllers> binder_;
};

TEST(PodVolumes, hold_a_pod_back_whose_claim_is_missing) {
  World world;
  world.add_volume_pod("p", {"c"});
  EXPECT_EQ(world.node_of("p"), "");
  EXPECT_EQ(world.condition("p"),
            "Unschedulable: 0/2 nodes are available: persistentvolumeclaim \"c\" not found. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");

  world.add_volume_claim("c", "folders");
  world.settle(std::chrono::seconds(15));
  EXPECT_NE(world.node_of("p"), "");
}

TEST(PodVolumes, are_bound_on_a_node_that_reaches_them) {
  World world;
  world.add_volume("v", "local", "b");
  world.add_volume_claim("c", "local");
  world.add_volume_pod("p", {"c"});

  EXPECT_EQ(world.node_of("p"), "b");
  EXPECT_EQ(world.claim("c"), "Bound v");
}

TEST(PodVolumes, bring_all_claims_of_a_pod_to_one_node) {
  World world;
  world.add_volume("one", "local", "a");
  world.add_volume("two", "local", "b");
  world.add_volume("three", "local", "b");
  for (const char* claim : {"c", "d"}) world.add_volume_claim(claim, "local");
  world.add_volume_pod("p", {"c", "d"});

  EXPECT_EQ(world.node_of("p"), "b");
  EXPECT_THAT(world.claim("c"), HasSubstr("Bound t"));
  EXPECT_THAT(world.claim("d"), HasSubstr("Bound t"));
  EXPECT_NE(world.claim("c"), world.claim("d"));
}

TEST(PodVolumes, are_given_out_once_however_many_pods_come) {
  World world;
  for (int i = 0; i < 6; ++i) world.add_volume(cat("v", i), "local", i % 2 == 0 ? "a" : "b");
  for (int i = 0; i < 6; ++i) world.add_volume_claim(cat("c", i), "local");
  for (int i = 0; i < 6; ++i) {
    world.add_pod(cat("p", i), cat("{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':"
                                   "'c",
                                   i, "'}}]}"));
  }
  world.settle(std::chrono::seconds(30));

  std::set<std::string> used;
  for (int i = 0; i < 6; ++i) {
    EXPECT_NE(world.node_of(cat("p", i)), "") << world.condition(cat("p", i));
    used.insert(world.claim(cat("c", i)));
  }
  EXPECT_EQ(used.size(), 6U);
}

TEST(PodVolumes, are_provisioned_for_the_node) {
  World world;
  world.add_volume_claim("c", "folders");
  world.add_volume_pod("p", {"c"}, ",'nodeSelector':{'kubernetes.io/hostname':'b'}");

  EXPECT_EQ(world.node_of("p"), "b");
  const Value claim = world.get(kVolumeClaimsOf, "default", "c");
  EXPECT_EQ(claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"].str(), "b");
  EXPECT_EQ(world.claim("c"), cat("Bound pvc-", client::uid_of(claim)));

  // The next pod that wants it has no choice.
  world.add_volume_pod("q", {"c"});
  EXPECT_EQ(world.node_of("q"), "b");
  world.add_volume_pod("r", {"c"}, ",'nodeSelector':{'kubernetes.io/hostname':'a'}");
  EXPECT_EQ(world.node_of("r"), "");
  EXPECT_THAT(world.condition("r"),
              HasSubstr("1 node(s) didn't match PersistentVolume's node affinity"));
}

TEST(PodVolumes, hold_a_pod_back_until_they_are_bound) {
  World world;
  world.add_volume_claim("c", "at-once");
  world.add_volume_pod("p", {"c"});
  EXPECT_THAT(world.condition("p"), HasSubstr("0/2 nodes are available: pod has unbound immediate "
                                              "PersistentVolumeClaims. preemption: "));

  world.add_volume("v", "at-once", "a");
  world.settle(std::chrono::seconds(15));
  EXPECT_EQ(world.node_of("p"), "a");
}

TEST(PodVolumes, say_that_no_node_has_one_for_them) {
  World world;
  world.add_volume_claim("c", "local");
  world.add_volume_pod("p", {"c"});
  EXPECT_THAT(world.condition("p"),
              HasSubstr("2 node(s) didn't find available persistent volumes to bind"));

  world.add_volume("v", "local", "a");
  world.settle(std::chrono::seconds(15));
  EXPECT_EQ(world.node_of("p"), "a");
}

TEST(PodVolumes, mind_the_topologies_of_the_class) {
  World world;
  world.add_storage("zoned", "dibs.io/local-path", "WaitForFirstConsumer",
                    ",'allowedTopologies':[{'matchLabelExpressions':[{'key':"
                    "'topology.kubernetes.io/zone','values':['zone-b']}]}]");
  world.add_volume_claim("c", "zoned");
  world.add_volume_pod("p", {"c"});

  EXPECT_EQ(world.node_of("p"), "b");
}

TEST(PodVolumes, mind_the_zone_of_the_volume) {
  World world;
  world.add_volume("v", "at-once", "", "", "{'topology.kubernetes.io/zone':'zone-b__zone-c'}");
  world.add_volume_claim("c", "at-once");
  world.settle(std::chrono::seconds(1));
  world.add_volume_pod("p", {"c"});
  EXPECT_EQ(world.node_of("p"), "b");

  world.add_volume_pod("q", {"c"}, ",'nodeSelector':{'kubernetes.io/hostname':'a'}");
  EXPECT_THAT(world.condition("q"), HasSubstr("1 node(s) had no available volume zone"));
}

TEST(PodVolumes, of_one_pod_are_of_one_pod) {
  World world;
  world.add_volume("v", "local", "a", ",'accessModes':['ReadWriteOncePod']");
  world.add_volume_claim("c", "local", "ReadWriteOncePod");
  world.add_volume_pod("p", {"c"});
  ASSERT_EQ(world.node_of("p"), "a");

  world.add_volume_pod("q", {"c"});
  EXPECT_EQ(world.node_of("q"), "");
  EXPECT_THAT(world.condition("q"),
              HasSubstr("node has pod using PersistentVolumeClaim with the same name and "
                        "ReadWriteOncePod access mode"));

  world.remove(kPodsOf, "default", "p");
  world.settle(std::chrono::seconds(15));
  EXPECT_EQ(world.node_of("q"), "a");
}

TEST(PodVolumes, are_no_more_than_the_node_can_attach) {
  World world;
  for (const char* node : {"a", "b"}) {
    world.create(kCsiNodes, "",
                 cat("{'metadata':{'name':'", node,
                     "'},'spec':{'drivers':[{'name':"
                     "'csi.example.com','nodeID':'",
                     node,
                     "','topologyKeys':[],'allocatable':"
                     "{'count':1}}]}}"));
  }
  for (const char* name : {"x", "y", "z"}) {
    world.add_volume(cat("v", name), "at-once", "",
                     cat(",'csi':{'driver':'csi.example.com','volumeHandle':'", name, "'}"));
    world.add_volume_claim(name, "at-once");
    world.settle(std::chrono::seconds(1));
  }
  world.add_volume_pod("p", {"x"});
  world.add_volume_pod("q", {"y"});
  EXPECT_NE(world.node_of("p"), world.node_of("q"));
  world.add_volume_pod("r", {"z"});
  EXPECT_THAT(world.condition("r"), HasSubstr("2 node(s) exceed max volume count"));
  // The same volume again is no further one.
  world.add_volume_pod("s", {"x"});
  EXPECT_EQ(world.node_of("s"), world.node_of("p"));

  world.remove(kPodsOf, "default", "q");
  world.settle(std::chrono::seconds(15));
  EXPECT_NE(world.node_of("r"), "");
}

TEST(PodVolumes, are_looked_for_again_when_a_provisioner_gives_up) {
  World world;
  world.add_volume_claim("c", "slow");
  world.add_volume_pod("p", {"c"});
  EXPECT_EQ(world.node_of("p"), "");
  EXPECT_NE(world
                .get(kVolumeClaimsOf, "default",
                     "c")["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
                .str(),
            "");

  world.patch(kVolumeClaimsOf, "default", "c",
              "{'metadata':{'annotations':{'volume.kubernetes.io/selected-node':null}}}");
  world.settle();
  EXPECT_THAT(
      world.condition("p"),
      HasSubstr("SchedulerError: running PreBind plugin \"VolumeBinding\": binding volumes: "
                "provisioning failed for PVC \"c\""));
  world.settle(std::chrono::seconds(5));
  EXPECT_NE(world
                .get(kVolumeClaimsOf, "default",
                     "c")["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
                .str(),
            "");
}

TEST(PodVolumes, are_bound_by_their_status_before_the_pod_goes_to_its_node) {
  World world;
  world.add_volume_claim("c", "slow");
  world.add_volume_pod("p", {"c"});
  const Value claim = world.get(kVolumeClaimsOf, "default", "c");
  // As a binder that is slow, or dies before the last of its writes.
  world.stop_binder();
  world.create(kVolumesOf, "",
               cat("{'metadata':{'name':'v'},'spec':{'storageClassName':'slow','capacity':{"
                   "'storage':'1Gi'},'accessModes':['ReadWriteOnce'],'hostPath':{'path':'/x'},"
                   "'claimRef':{'namespace':'default','name':'c','uid':'",
                   client::uid_of(claim), "'}}}"));
  world.patch(kVolumeClaimsOf, "default", "c",
              "{'metadata':{'annotations':{'pv.kubernetes.io/bind-completed':'yes'}},"
              "'spec':{'volumeName':'v'}}");
  world.settle(std::chrono::seconds(3));
  EXPECT_EQ(world.node_of("p"), "");

  world.patch(kVolumeClaimsOf, "default", "c", "{'status':{'phase':'Bound'}}", "status");
  world.settle(std::chrono::seconds(3));
  EXPECT_NE(world.node_of("p"), "");
}

TEST(PodVolumes, are_not_waited_for_without_end) {
  Options options;
  options.configuration.profiles.front().volume_timeout = std::chrono::seconds(20);
  World world(std::move(options));
  world.add_volume_claim("c", "slow");
  world.add_volume_pod("p", {"c"});
  world.settle(std::chrono::seconds(20));

  EXPECT_THAT(world.events("p"),
              Contains(HasSubstr("running PreBind plugin \"VolumeBinding\": binding volumes: "
                                 "context deadline exceeded")));
}

TEST(PodVolumes, that_are_ephemeral_wait_for_their_claim) {
  World world;
  world.add_pod("p",
                "{'volumes':[{'name':'s','ephemeral':{'volumeClaimTemplate':{'spec':{"
                "'storageClassName':'folders','accessModes':['ReadWriteOnce'],'resources':{"
                "'requests':{'storage':'1Gi'}}}}}}]}");
  world.settle(std::chrono::seconds(20));
  EXPECT_NE(world.node_of("p"), "") << world.condition("p");
  EXPECT_THAT(world.claim("p-s"), HasSubstr("Bound pvc-"));
}

/// A gang of two, each with a volume of its own.
void add_gang(World& world) {
  world.create({"scheduling.k8s.io", "v1beta1", "podgroups"}, "default",
               "{'metadata':{'name':'g'},'spec':{'schedulingPolicy':{'gang':{'minCount':2}}}}");
  for (const char* name : {"c", "d"}) {
    world.add_volume_claim(name, "local");
    world.add_volume_pod(name, {name}, ",'schedulingGroup':{'podGroupName':'g'}");
  }
}

TEST(PodVolumes, are_planned_for_all_pods_of_a_gang) {
  World world({}, "GenericWorkload=true");
  world.add_volume("one", "local", "a");
  world.add_volume("two", "local", "b");
  add_gang(world);
  world.settle(std::chrono::seconds(5));

  EXPECT_NE(world.node_of("c"), "") << world.condition("c");
  EXPECT_NE(world.node_of("d"), "") << world.condition("d");
  EXPECT_NE(world.node_of("c"), world.node_of("d"));
}

TEST(PodVolumes, are_bound_for_a_gang_only_if_there_are_enough) {
  World world({}, "GenericWorkload=true");
  world.add_volume("one", "local", "a");
  add_gang(world);
  world.settle(std::chrono::seconds(5));
  for (const char* name : {"c", "d"}) {
    EXPECT_EQ(world.node_of(name), "");
    EXPECT_EQ(world.claim(name), "Pending ");
  }
  EXPECT_THAT(world.condition("d"),
              HasSubstr("2 node(s) didn't find available persistent volumes to bind"));

  // What may help a pod of the group wakes it.
  world.add_volume("two", "local", "b");
  world.settle(std::chrono::seconds(15));
  EXPECT_NE(world.node_of("c"), "") << world.condition("c");
  EXPECT_NE(world.node_of("d"), "") << world.condition("d");
}

class KilledWithVolumes : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(KilledWithVolumes, leaves_nothing_undone_to_the_next) {
  const auto [write, arrives] = GetParam();
  World world;
  world.add_volume("v", "local", "b");
  world.add_volume_claim("c", "local");
  world.add_volume_claim("d", "folders");
  world.cut->cut_at(write, arrives);
  world.add_volume_pod("p", {"c", "d"});
  world.stop();
  world.start();
  world.settle(std::chrono::seconds(30));

  EXPECT_EQ(world.node_of("p"), "b") << world.condition("p");
  EXPECT_EQ(world.claim("c"), "Bound v");
  EXPECT_THAT(world.claim("d"), HasSubstr("Bound pvc-"));
}

INSTANTIATE_TEST_SUITE_P(AtEachWrite, KilledWithVolumes,
                         testing::Combine(testing::Range(1, 5), testing::Bool()));

}  // namespace
}  // namespace dibs::scheduler::test
