// Groups of pods on a server: waiting, placing, binding, conditions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Gvr kGroups = {"scheduling.k8s.io", "v1beta1", "podgroups"};
const Gvr kVolumesOf = {"", "v1", "persistentvolumes"};
const Gvr kVolumeClaimsOf = {"", "v1", "persistentvolumeclaims"};
const Gvr kStorage = {"storage.k8s.io", "v1", "storageclasses"};

class GroupCluster : public TestCluster {
 public:
  explicit GroupCluster(const std::string& gates = "", Options options = {})
      : TestCluster(std::move(options), {}, false,
                    cat("GenericWorkload=true,DRAWorkloadResourceClaims=true", gates)) {}

  void add_group(const std::string& name, int min_count, const std::string& more = "") {
    create(kGroups, "default",
           cat("{'metadata':{'name':'", name, "'},'spec':{'schedulingPolicy':{",
               min_count > 0 ? cat("'gang':{'minCount':", min_count, "}") : "'basic':{}", "}", more,
               "}}"));
  }
  void add_member(const std::string& name, const std::string& group, const std::string& more = "",
                  const std::string& resources = "{}") {
    add_pod(name, cat("{'schedulingGroup':{'podGroupName':'", group, "'}", more, "}"), resources);
  }
  /// A claim that somebody is asked to provision for the node of its first pod, and does not.
  void add_slow_volume(const std::string& name) {
    if (!api->get(kStorage, "", "slow").ok()) {
      create(kStorage, "",
             "{'metadata':{'name':'slow'},'provisioner':'slow.example.com','volumeBindingMode':"
             "'WaitForFirstConsumer'}");
    }
    create(kVolumeClaimsOf, "default",
           cat("{'metadata':{'name':'", name,
               "'},'spec':{'storageClassName':'slow','accessModes':['ReadWriteOnce'],'resources':{"
               "'requests':{'storage':'1Gi'}}}}"));
    settle();
  }
  void provision(const std::string& name) {
    const Value claim = get(kVolumeClaimsOf, "default", name);
    create(kVolumesOf, "",
           cat("{'metadata':{'name':'", name,
               "'},'spec':{'storageClassName':'slow','capacity':{'storage':'1Gi'},'accessModes':["
               "'ReadWriteOnce'],'hostPath':{'path':'/x'},'claimRef':{'namespace':'default',"
               "'name':'",
               name, "','uid':'", client::uid_of(claim), "'}}}"));
    patch(kVolumeClaimsOf, "default", name,
          cat("{'metadata':{'annotations':{'pv.kubernetes.io/bind-completed':'yes'}},'spec':{"
              "'volumeName':'",
              name, "'}}"));
    patch(kVolumeClaimsOf, "default", name, "{'status':{'phase':'Bound'}}", "status");
    settle();
  }
  /// A member that uses the claim for devices "c" and a volume.
  void add_volume_member(const std::string& name, const std::string& group,
                         const std::string& volume) {
    add_member(name, group,
               cat(",'resourceClaims':[{'name':'d','resourceClaimName':'c'}],'volumes':[{'name':"
                   "'v','persistentVolumeClaim':{'claimName':'",
                   volume, "'}}]"));
  }
  std::string group_state(const std::string& name) {
    const Value group = get(kGroups, "default", name);
    for (const Value& condition : group["status"]["conditions"].items()) {
      return cat(condition["type"].as_string(), " ", condition["status"].as_string(), " ",
                 condition["reason"].as_string(), ": ", condition["message"].as_string());
    }
    return "";
  }
};

TEST(Groups, wait_for_the_group_and_for_enough_pods) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_member("a", "g");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "") << "there is no such group";

  cluster.add_group("g", 2);
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "") << "one of two pods is there";

  cluster.add_member("b", "g");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "n");
  EXPECT_EQ(cluster.node_of("b"), "n");
  EXPECT_EQ(cluster.group_state("g"), "PodGroupInitiallyScheduled True Scheduled: ");

  cluster.add_member("c", "g");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("c"), "n") << "later pods join";
}

TEST(Groups, are_bound_as_a_whole_or_not_at_all) {
  GroupCluster cluster;
  cluster.add_node("n", "{'cpu':'2','memory':'8Gi','pods':'10'}");
  cluster.add_group("g", 3);
  for (const char* name : {"a", "b", "c"}) {
    cluster.add_member(name, "g", "", "{'requests':{'cpu':'1'}}");
  }
  cluster.settle();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(cluster.node_of(name), "");
  EXPECT_EQ(cluster.group_state("g"),
            "PodGroupInitiallyScheduled False Unschedulable: minCount (3) cannot be satisfied: 2 "
            "scheduled, 0 remaining, pod group preemption: No preemption victims found for "
            "incoming preemptor");
  EXPECT_THAT(cluster.condition("c"), HasSubstr("Insufficient cpu"));

  cluster.add_node("m", "{'cpu':'1','memory':'8Gi','pods':'10'}");
  cluster.settle(std::chrono::seconds(15));
  for (const char* name : {"a", "b", "c"}) EXPECT_NE(cluster.node_of(name), "");
  EXPECT_THAT(cluster.group_state("g"), HasSubstr("True"));
}

TEST(Groups, without_a_gang_go_as_far_as_there_is_room) {
  GroupCluster cluster;
  cluster.add_node("n", "{'cpu':'2','memory':'8Gi','pods':'10'}");
  cluster.add_group("g", 0);
  for (const char* name : {"a", "b", "c"}) {
    cluster.add_member(name, "g", "", "{'requests':{'cpu':'1'}}");
  }
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "n");
  EXPECT_EQ(cluster.node_of("b"), "n");
  EXPECT_EQ(cluster.node_of("c"), "");
  EXPECT_THAT(cluster.condition("c"), HasSubstr("Insufficient cpu"));
}

// One device that can be had whole or in halves: whoever takes it whole leaves the other without.
TEST(Groups, leave_devices_to_each_other) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_class();
  cluster.create(
      kSlices, "",
      "{'metadata':{'name':'counters'},'spec':{'driver':'gpu.example.com','nodeName':'n','pool':{"
      "'name':'n','generation':1,'resourceSliceCount':2},'sharedCounters':[{'name':'card',"
      "'counters':{'memory':{'value':'2'}}}]}}");
  const auto device = [](const char* name, int memory) {
    return cat("{'name':'", name, "','attributes':{'size':{'int':", memory,
               "}},'consumesCounters':[{'counterSet':'card','counters':{'memory':{'value':'",
               memory, "'}}}]}");
  };
  cluster.create(
      kSlices, "",
      cat("{'metadata':{'name':'devices'},'spec':{'driver':'gpu.example.com',"
          "'nodeName':'n','pool':{'name':'n','generation':1,'resourceSliceCount':2},"
          "'devices':[",
          device("whole", 2), ",", device("half-0", 1), ",", device("half-1", 1), "]}}"));
  cluster.add_group("g", 2);
  for (const char* name : {"a", "b"}) {
    Value claim = from_text(cat("{'metadata':{'name':'", name,
                                "'},'spec':{'devices':{'requests':[{'name':'d','firstAvailable':[]"
                                "}]}}}"));
    Value list = Value::array();
    for (const auto& [word, size] : {std::pair{"whole", 2}, std::pair{"half", 1}}) {
      list.push(Value::object(
          {{"name", word},
           {"deviceClassName", "gpu"},
           {"selectors",
            Value::array({Value::object(
                {{"cel", Value::object(
                             {{"expression", cat("device.attributes[\"gpu.example.com\"].size == ",
                                                 size)}})}})})}}));
    }
    Value request = Value::object({{"name", "d"}, {"firstAvailable", list}});
    claim.mut("spec").mut("devices").set("requests", Value::array({request}));
    ASSERT_TRUE(cluster.api->create(kClaimsOf, "default", claim).ok());
    cluster.add_member(name, "g",
                       cat(",'resourceClaims':[{'name':'d','resourceClaimName':'", name, "'}]"));
  }
  cluster.settle();

  EXPECT_EQ(cluster.node_of("a"), "n") << cluster.condition("a");
  EXPECT_EQ(cluster.node_of("b"), "n") << cluster.condition("b");
  EXPECT_THAT(cluster.held_devices(), ElementsAre("n/half-0", "n/half-1"));
}

TEST(Groups, share_a_claim_that_is_reserved_for_the_group) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("c");
  cluster.add_group("g", 2, ",'resourceClaims':[{'name':'d','resourceClaimName':'c'}]");
  for (const char* name : {"a", "b"}) {
    cluster.add_member(name, "g", ",'resourceClaims':[{'name':'d','resourceClaimName':'c'}]");
  }
  cluster.settle();

  EXPECT_EQ(cluster.node_of("a"), "n") << cluster.condition("a");
  EXPECT_EQ(cluster.node_of("b"), "n") << cluster.condition("b");
  const Value users = cluster.get(kClaimsOf, "default", "c")["status"]["reservedFor"];
  ASSERT_EQ(users.size(), 1U);
  EXPECT_EQ(users[0]["resource"].as_string(), "podgroups");
  EXPECT_EQ(users[0]["name"].as_string(), "g");
}

TEST(Groups, share_a_claim_of_no_group_pod_by_pod) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("c");
  cluster.add_group("g", 2);
  for (const char* name : {"a", "b"}) {
    cluster.add_member(name, "g", ",'resourceClaims':[{'name':'d','resourceClaimName':'c'}]");
  }
  cluster.settle();

  EXPECT_EQ(cluster.node_of("a"), "n") << cluster.condition("a");
  EXPECT_EQ(cluster.node_of("b"), "n") << cluster.condition("b");
  EXPECT_EQ(cluster.get(kClaimsOf, "default", "c")["status"]["reservedFor"].size(), 2U);
}

// The claim of one pod goes in the moment of the decision: the others must not be bound either.
TEST(Groups, bind_nobody_when_one_claim_cannot_be_written) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_devices("n", 2);
  cluster.add_class();
  cluster.add_claim("c");
  cluster.add_claim("d");
  cluster.add_group("g", 2);
  cluster.add_member("a", "g", ",'resourceClaims':[{'name':'d','resourceClaimName':'c'}]");
  cluster.settle();
  // What the scheduler believes to be free is taken: its write is refused.
  cluster.cut->refuse_next("/resourceclaims/d/status");
  cluster.add_member("b", "g", ",'resourceClaims':[{'name':'d','resourceClaimName':'d'}]");
  cluster.settle(std::chrono::milliseconds(500));
  EXPECT_EQ(cluster.node_of("a"), "");
  EXPECT_EQ(cluster.node_of("b"), "");

  cluster.settle(std::chrono::seconds(20));
  EXPECT_EQ(cluster.node_of("a"), "n") << "tried again";
  EXPECT_EQ(cluster.node_of("b"), "n");
}

/// Two pods that share the claim "c" for the only device, both waiting for their volumes.
void start_sharers(GroupCluster& cluster, int min_count) {
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("c");
  cluster.add_claim("other");
  for (const char* name : {"a", "b"}) cluster.add_slow_volume(name);
  for (const char* name : {"a", "b"}) cluster.add_volume_member(name, "g", name);
  cluster.settle();
  cluster.add_group("g", min_count);
  cluster.settle();
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(cluster.get(kVolumeClaimsOf, "default", name)["metadata"]["annotations"].contains(
                  "volume.kubernetes.io/selected-node"),
              true);
  }
}

// The first writes the allocation of the claim; that the second ends does not make it free.
TEST(Groups, keep_the_devices_of_a_shared_claim_for_whoever_allocates_it) {
  GroupCluster cluster;
  start_sharers(cluster, 0);
  cluster.remove(kPodsOf, "default", "b");
  cluster.add_claim_pod("x", "other");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.node_of("x"), "");

  cluster.provision("a");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.node_of("a"), "n") << cluster.condition("a");
  EXPECT_EQ(cluster.node_of("x"), "");
  EXPECT_THAT(cluster.held_devices(), ElementsAre("n/gpu-0"));
}

TEST(Groups, decide_anew_about_a_shared_claim_that_its_first_user_did_not_allocate) {
  GroupCluster cluster;
  start_sharers(cluster, 0);
  cluster.provision("b");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.node_of("b"), "") << "the other one is about to allocate it";

  cluster.remove(kPodsOf, "default", "a");
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(cluster.node_of("b"), "n") << cluster.condition("b");
  EXPECT_THAT(cluster.held_devices(), ElementsAre("n/gpu-0"));
}

TEST(Groups, write_nothing_for_a_gang_that_has_failed) {
  GroupCluster cluster;
  start_sharers(cluster, 2);
  cluster.remove(kPodsOf, "default", "b");
  cluster.add_claim_pod("x", "other");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.condition("a"),
            "SchedulerError: failed to schedule other pod from a pod group: pod is gone")
      << "nobody waits for its volume";
  cluster.provision("a");
  cluster.settle(std::chrono::seconds(3));

  EXPECT_EQ(cluster.node_of("x"), "n") << cluster.condition("x");
  EXPECT_EQ(cluster.node_of("a"), "");
  // The server would have noticed.
  EXPECT_THAT(cluster.events("a"), Not(Contains(HasSubstr("is forbidden"))));
  EXPECT_THAT(cluster.held_devices(), ElementsAre("n/gpu-0"));
}

TEST(Groups, wait_for_binding_conditions_no_longer_than_all_their_pods_do) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_devices("n", 1,
                      ",'bindsToNode':true,'bindingConditions':['x.io/ok'],"
                      "'bindingFailureConditions':['x.io/bad']");
  cluster.add_class();
  cluster.add_claim("c");
  cluster.add_slow_volume("v");
  cluster.add_group("g", 2);
  cluster.add_member("a", "g", ",'resourceClaims':[{'name':'d','resourceClaimName':'c'}]");
  cluster.add_member("b", "g",
                     ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'v'}}]");
  cluster.settle();
  ASSERT_EQ(cluster.get(kClaimsOf, "default", "c")["status"]["reservedFor"].size(), 1U);
  cluster.remove(kPodsOf, "default", "b");
  cluster.settle(std::chrono::milliseconds(500));

  EXPECT_EQ(cluster.condition("a"),
            "SchedulerError: failed to schedule other pod from a pod group: pod is gone");
  EXPECT_EQ(cluster.get(kClaimsOf, "default", "c")["status"]["reservedFor"].size(), 0U);
}

// The claim was allocated when the pod was decided about, and is being allocated anew for somebody
// else when the pod comes to write.
TEST(Groups, wait_only_for_allocations_of_their_own_pods) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("c");
  for (const char* name : {"a", "x"}) cluster.add_slow_volume(name);
  cluster.add_claim_pod("first", "c");
  cluster.settle();
  ASSERT_EQ(cluster.node_of("first"), "n");
  cluster.add_group("g", 0);
  cluster.add_volume_member("a", "g", "a");
  cluster.settle();
  cluster.remove(kPodsOf, "default", "first");
  cluster.patch(kClaimsOf, "default", "c", "{'status':{'allocation':null,'reservedFor':null}}",
                "status");
  cluster.settle();
  cluster.add_pod("x",
                  "{'resourceClaims':[{'name':'d','resourceClaimName':'c'}],'volumes':[{'name':"
                  "'v','persistentVolumeClaim':{'claimName':'x'}}]}");
  cluster.settle();
  cluster.provision("a");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.node_of("a"), "");
  cluster.provision("x");
  cluster.settle(std::chrono::seconds(15));

  EXPECT_EQ(cluster.node_of("x"), "n") << cluster.condition("x");
  EXPECT_EQ(cluster.node_of("a"), "n") << cluster.condition("a");
}

TEST(Groups, that_wait_for_one_of_many_pods_stop_nobody_else) {
  GroupCluster cluster;
  cluster.add_node("n", "{'cpu':'4','memory':'8Gi','pods':'200'}");
  cluster.add_slow_volume("v");
  cluster.add_group("g", 70);
  cluster.add_member("slow", "g",
                     ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'v'}}]");
  for (int i = 1; i < 70; ++i) cluster.add_member(cat("p", i), "g");
  cluster.settle();
  cluster.add_pod("other");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("other"), "n");
  EXPECT_EQ(cluster.node_of("p1"), "");

  cluster.provision("v");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.node_of("p1"), "n");
  EXPECT_EQ(cluster.node_of("p69"), "n");
}

TEST(Groups, are_complete_when_the_missing_pod_comes_on_a_node) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_group("g", 2);
  cluster.add_member("a", "g");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "");

  cluster.add_member("b", "g", ",'nodeName':'n'");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "n");
}

TEST(Groups, that_are_half_placed_go_on_after_a_restart) {
  GroupCluster cluster;
  cluster.add_node("n", "{'cpu':'1','memory':'8Gi','pods':'10'}");
  cluster.add_group("g", 2);
  for (const char* name : {"y", "z"}) {
    cluster.add_member(name, "g", "", "{'requests':{'cpu':'500m'}}");
  }
  cluster.settle();
  ASSERT_EQ(cluster.node_of("z"), "n");
  cluster.stop();
  // Comes before the one that is on a node, by name.
  cluster.remove(kPodsOf, "default", "y");
  cluster.add_member("a", "g", "", "{'requests':{'cpu':'500m'}}");
  cluster.start();
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "n") << cluster.condition("a");
}

// What belongs to a group is known when the group is there.
TEST(Groups, look_at_their_pods_claims_again_when_they_appear) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class();
  const std::string claims = ",'resourceClaims':[{'name':'d','resourceClaimTemplateName':'t'}]";
  const auto claim_for_group = [&] {
    const Value group = cluster.get(kGroups, "default", "g");
    cluster.create(kClaimsOf, "default",
                   cat("{'metadata':{'name':'made','ownerReferences':[{'apiVersion':"
                       "'scheduling.k8s.io/v1beta1','kind':'PodGroup','name':'g','controller':true,"
                       "'uid':'",
                       client::uid_of(group),
                       "'}]},'spec':{'devices':{'requests':[{'name':'d','exactly':{"
                       "'deviceClassName':'gpu'}}]}}}"));
  };
  cluster.stop();
  cluster.add_group("g", 1, claims);
  claim_for_group();
  cluster.add_member("a", "g", claims);
  cluster.patch(kPodsOf, "default", "a",
                "{'status':{'resourceClaimStatuses':[{'name':'d','resourceClaimName':'made'}]}}",
                "status");
  cluster.start("/podgroups");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "n") << cluster.condition("a");
}

TEST(Groups, whose_binding_fails_again_and_again_are_tried_less_and_less) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.add_devices("n", 1);
  cluster.add_class();
  cluster.add_claim("c");
  cluster.add_group("g", 1);
  cluster.cut->refuse_next("/resourceclaims/c/status");
  cluster.add_member("a", "g", ",'resourceClaims':[{'name':'d','resourceClaimName':'c'}]");
  int refused = 0;
  for (int tenth = 0; tenth < 100; ++tenth) {
    cluster.settle();
    if (cluster.cut->refuses()) continue;
    ++refused;
    cluster.cut->refuse_next("/resourceclaims/c/status");
  }
  // After one second, two, and four.
  EXPECT_LE(refused, 4);
  EXPECT_GE(refused, 3);
}

TEST(Groups, that_are_full_say_so_to_a_late_pod_in_the_words_of_kubernetes) {
  GroupCluster cluster;
  cluster.add_node("n", "{'cpu':'1','memory':'8Gi','pods':'10'}");
  cluster.add_group("g", 1);
  cluster.add_member("a", "g", "", "{'requests':{'cpu':'1'}}");
  cluster.settle();
  ASSERT_EQ(cluster.node_of("a"), "n");
  cluster.add_member("b", "g", "", "{'requests':{'cpu':'1'}}");
  cluster.settle();
  EXPECT_THAT(cluster.condition("b"), HasSubstr("Insufficient cpu. pod group is unschedulable"));
}

TEST(Groups, of_another_priority_than_their_pods_are_refused) {
  GroupCluster cluster;
  cluster.add_node("n");
  cluster.create({"scheduling.k8s.io", "v1", "priorityclasses"}, "",
                 "{'metadata':{'name':'high'},'value':100}");
  cluster.add_group("g", 1, ",'priorityClassName':'high'");
  cluster.add_member("a", "g");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("a"), "");
  EXPECT_THAT(cluster.group_state("g"),
              HasSubstr("False SchedulerError: all pods in a single pod group should have the same "
                        "priority as the pod group's priority, got 0 and 100"));
}

TEST(Groups, drive_out_pods_of_lower_priority_when_that_makes_room_for_all) {
  metrics::Registry registry;
  Options options;
  options.metrics = &registry;
  GroupCluster cluster("", options);
  cluster.create({"scheduling.k8s.io", "v1", "priorityclasses"}, "",
                 "{'metadata':{'name':'high'},'value':100}");
  const std::string room = "{'cpu':'2','memory':'8Gi','pods':'10'}";
  cluster.add_node("n", room);
  cluster.add_node("m", room);
  for (const char* name : {"low-1", "low-2", "low-3"}) {
    cluster.add_pod(name, "{}", "{'requests':{'cpu':'1'}}");
  }
  cluster.settle();
  cluster.add_group("g", 2, ",'priorityClassName':'high'");
  for (const char* name : {"a", "b"}) {
    cluster.add_member(name, "g", ",'priorityClassName':'high'", "{'requests':{'cpu':'1'}}");
  }
  cluster.settle(std::chrono::seconds(30));

  EXPECT_NE(cluster.node_of("a"), "") << cluster.condition("a");
  EXPECT_NE(cluster.node_of("b"), "") << cluster.condition("b");
  EXPECT_EQ(cluster.api->list(kPodsOf, "default")->items.size(), 4U) << "one of three had to go";
  EXPECT_THAT(registry.expose(), HasSubstr("scheduler_podgroup_schedule_attempts_total{result="
                                           "\"waiting_on_preemption\",profile="));
}

TEST(Groups, that_go_as_one_are_driven_out_whole) {
  GroupCluster cluster;
  cluster.create({"scheduling.k8s.io", "v1", "priorityclasses"}, "",
                 "{'metadata':{'name':'high'},'value':100}");
  const std::string room = "{'cpu':'1','memory':'8Gi','pods':'10'}";
  cluster.add_node("n", room);
  cluster.add_node("m", room);
  cluster.add_group("g", 2, ",'disruptionMode':{'all':{}}");
  for (const char* name : {"a", "b"}) {
    cluster.add_member(name, "g", "", "{'requests':{'cpu':'1'}}");
  }
  cluster.settle();
  EXPECT_NE(cluster.node_of("b"), "");
  cluster.add_pod("one", "{'priorityClassName':'high'}", "{'requests':{'cpu':'1'}}");
  cluster.settle(std::chrono::seconds(30));

  EXPECT_NE(cluster.node_of("one"), "") << cluster.condition("one");
  EXPECT_EQ(cluster.api->list(kPodsOf, "default")->items.size(), 1U);
}

TEST(Groups, stay_in_one_domain_of_a_topology) {
  GroupCluster cluster(",TopologyAwareWorkloadScheduling=true");
  const std::string room = "{'cpu':'2','memory':'8Gi','pods':'10'}";
  cluster.add_node("a1", room, "{'rack':'a'}");
  cluster.add_node("b1", room, "{'rack':'b'}");
  cluster.add_node("b2", room, "{'rack':'b'}");
  cluster.add_group("g", 3, ",'schedulingConstraints':{'topology':[{'key':'rack'}]}");
  for (const char* name : {"x", "y", "z"}) {
    cluster.add_member(name, "g", "", "{'requests':{'cpu':'1'}}");
  }
  cluster.settle();
  for (const char* name : {"x", "y", "z"}) {
    EXPECT_EQ(cluster.node_of(name).substr(0, 1), "b") << cluster.condition(name);
  }
}

}  // namespace
}  // namespace dibs::scheduler::test
