#include "node/pods/pod_workers.h"

#include <gmock/gmock.h>

#include "node/pods/pod_test_node.h"
#include "node/pods/volume_test_support.h"

namespace dibs::node::test {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(PodWorkers, run_a_pod_and_tell_of_it) {
  TestNode node;

  node.create("a", "'containers': [{'name': 'c'}]");
  node.settle();

  EXPECT_EQ(node.line("a"), "Running; c running ready");
  const Value status = node.pod("a")["status"];
  EXPECT_EQ(status["hostIP"].as_string(), "192.0.2.1");
  EXPECT_EQ(status["podIP"].as_string(), status["podIPs"][0]["ip"].as_string());
  EXPECT_EQ(status["qosClass"].as_string(), "BestEffort");
  EXPECT_TRUE(status["startTime"].is_string());
  EXPECT_EQ(status["observedGeneration"].as_int(), 1);
  EXPECT_TRUE(status["containerStatuses"][0]["started"].as_bool());
  EXPECT_THAT(status["containerStatuses"][0]["containerID"].str(), HasSubstr("fake://container-"));
  for (const char* type :
       {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}) {
    EXPECT_EQ(node.condition("a", type), "True") << type;
    EXPECT_EQ(find_condition(status, type)["observedGeneration"].as_int(), 1) << type;
  }
  EXPECT_THAT(node.events("a"),
              ElementsAre("Normal Created: Container created",
                          "Normal Pulled: Container image \"busybox:1.36\" already present on "
                          "machine and can be accessed by the pod",
                          "Normal Started: Container started"));
}

TEST(PodWorkers, delete_a_pod_finally_when_all_of_it_has_ended) {
  TestNode node;
  node.create("a", "'containers': [{'name': 'c'}], 'terminationGracePeriodSeconds': 7");
  node.settle();

  node.remove("a");
  node.settle();

  EXPECT_EQ(node.line("a"), "gone");
  EXPECT_TRUE(node.machine.sandboxes.empty());
  EXPECT_TRUE(node.machine.containers.empty());
  EXPECT_THAT(node.machine.log, ElementsAre("run a", "start c 0", "stop c 7", "stop sandbox a"));
  EXPECT_THAT(node.events("a"), Contains("Normal Killing: Stopping container c"));
}

TEST(PodWorkers, leave_an_object_with_finalizers_to_its_finalizers) {
  TestNode node;
  node.machine.signal_codes["c"] = 6;
  node.create("a", "'containers': [{'name': 'c'}]", "'finalizers': ['example.com/look']");
  node.settle();

  node.remove("a");
  node.settle();

  EXPECT_EQ(node.line("a"), "Failed; c Error(6)");
  EXPECT_EQ(node.pod("a")["metadata"]["deletionGracePeriodSeconds"].as_int(-1), 0);
  EXPECT_EQ(node.condition("a", "Ready"), "False PodFailed");
  EXPECT_EQ(node.condition("a", "PodReadyToStartContainers"),
            "False PodSandboxNotReady: pod sandbox is not ready");

  node.patch("a", "{'metadata': {'finalizers': null}}");
  node.settle();
  EXPECT_EQ(node.line("a"), "gone");
  EXPECT_TRUE(node.machine.sandboxes.empty());
}

TEST(PodWorkers, end_what_was_deleted_by_force) {
  TestNode node;
  node.create("a", "'containers': [{'name': 'c'}]");
  node.settle();

  node.remove("a", 0);
  node.settle();

  EXPECT_THAT(node.machine.log, Contains("stop c 1"));
  EXPECT_TRUE(node.machine.sandboxes.empty());
  EXPECT_THAT(node.events("a"), Contains("Normal Killing: Stopping container c"));
}

TEST(PodWorkers, count_a_pod_until_it_has_ended_whatever_others_say) {
  TestNode node;
  node.create("a",
              "'restartPolicy': 'Never', 'containers': [{'name': 'c'}],"
              "'resourceClaims': [{'name': 'x', 'resourceClaimName': 'x'}]");
  node.settle();
  node.drivers.unprepare_error = Error::internal("driver is away");

  // As the garbage collector does with pods of a node that it holds for lost.
  Value pod = node.pod("a");
  pod.mut("status").set("phase", "Failed");
  ASSERT_TRUE(node.api->update_status(kPodResource, "default", pod).ok());
  node.settle();
  EXPECT_EQ(node.pod("a")["status"]["phase"].str(), "Failed");
  EXPECT_EQ(node.agent->workers->unended().size(), 1U);

  node.drivers.unprepare_error.reset();
  node.settle(seconds(3));
  EXPECT_THAT(node.drivers.log, ElementsAre("prepare a", "unprepare a"));
  EXPECT_EQ(node.agent->workers->unended().size(), 0U);
}

struct EndCase {
  const char* policy;
  int code;
  const char* expected;

  friend void PrintTo(const EndCase& c, std::ostream* out) { *out << c.policy << ' ' << c.code; }
};

class Ends : public testing::TestWithParam<EndCase> {};

TEST_P(Ends, follow_the_restart_policy) {
  TestNode node;
  node.machine.exits["c"] = {GetParam().code};

  node.create("a",
              cat("'restartPolicy': '", GetParam().policy, "', 'containers': [{'name': 'c'}]"));
  node.settle();

  EXPECT_EQ(node.line("a"), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, Ends,
    testing::Values(EndCase{"Never", 0, "Succeeded; c Completed(0)"},
                    EndCase{"Never", 3, "Failed; c Error(3)"},
                    EndCase{"OnFailure", 0, "Succeeded; c Completed(0)"},
                    EndCase{"OnFailure", 5, "Running; c CrashLoopBackOff restarts=1 last=Error(5)"},
                    EndCase{"Always", 0,
                            "Running; c CrashLoopBackOff restarts=1 last=Completed(0)"}));

TEST(PodWorkers, wait_longer_before_each_restart) {
  TestNode node;
  node.machine.exits["c"] = {1};
  node.create("a", "'containers': [{'name': 'c'}]");
  node.settle();
  const std::string uid = node.pod("a")["metadata"]["uid"].str();
  const auto message = [&] {
    return node.pod("a")["status"]["containerStatuses"][0]["state"]["waiting"]["message"].str();
  };
  const auto restarts = [&] {
    return node.pod("a")["status"]["containerStatuses"][0]["restartCount"].as_int();
  };

  EXPECT_EQ(message(), cat("back-off 10s restarting failed container=c pod=a_default(", uid, ")"));
  node.settle(seconds(10));
  EXPECT_EQ(restarts(), 2);
  EXPECT_EQ(message(), cat("back-off 20s restarting failed container=c pod=a_default(", uid, ")"));
  node.settle(seconds(20));
  EXPECT_EQ(restarts(), 3);
  node.settle(seconds(40));
  EXPECT_EQ(restarts(), 4);
  node.settle(seconds(80));
  node.settle(seconds(160));
  EXPECT_EQ(restarts(), 6);
  EXPECT_EQ(message(), cat("back-off 5m0s restarting failed container=c pod=a_default(", uid, ")"));
  EXPECT_THAT(node.events("a"), Contains(cat("Warning BackOff: Back-off restarting failed "
                                             "container c in pod a_default(",
                                             uid, ")")));
  // Only the last two are kept.
  EXPECT_EQ(node.machine.containers.size(), 2U);
}

TEST(PodWorkers, run_init_containers_one_after_another_and_sidecars_beside) {
  TestNode node;
  node.machine.exits["one"] = {0};
  node.machine.exits["two"] = {0};

  node.create("a",
              "'restartPolicy': 'Never',"
              "'initContainers': [{'name': 'one'}, {'name': 'side', 'restartPolicy': 'Always'},"
              " {'name': 'two'}], 'containers': [{'name': 'main'}]");
  node.settle();

  EXPECT_THAT(node.machine.log,
              ElementsAre("run a", "start one 0", "start side 0", "start two 0", "start main 0"));
  EXPECT_EQ(node.line("a"),
            "Running; one Completed(0) ready; side running ready; two Completed(0) ready; "
            "main running ready");

  node.machine.signal_codes["side"] = 0;
  node.machine.end("main", 0);
  node.settle();
  EXPECT_EQ(node.line("a"),
            "Succeeded; one Completed(0) ready; side Completed(0); two Completed(0) ready; "
            "main Completed(0)");
  EXPECT_EQ(node.condition("a", "Initialized"), "True PodCompleted");
  EXPECT_THAT(node.events("a"), Contains("Normal Killing: Stopping container side"));
}

TEST(PodWorkers, fail_a_pod_whose_init_container_failed) {
  TestNode node;
  node.machine.exits["one"] = {9};

  node.create("a",
              "'restartPolicy': 'Never', 'initContainers': [{'name': 'one'}, {'name': 'two'}],"
              "'containers': [{'name': 'main'}]");
  node.settle();

  EXPECT_EQ(node.line("a"), "Failed; one Error(9); two PodInitializing; main PodInitializing");
  EXPECT_EQ(node.condition("a", "Initialized"),
            "False ContainersNotInitialized: containers with incomplete status: [one two]");
  EXPECT_EQ(node.condition("a", "ContainersReady"), "False PodFailed");
}

TEST(PodWorkers, show_a_command_that_cannot_be_started) {
  TestNode node;
  node.machine.start_errors.emplace("c", Error::internal("exec: \"nosuch\": not found"));

  node.create("never", "'restartPolicy': 'Never', 'containers': [{'name': 'c'}]");
  node.settle();

  EXPECT_EQ(node.line("never"), "Failed; c StartError(128)");
  EXPECT_THAT(node.events("never"), Contains("Warning Failed: Error: exec: \"nosuch\": not found"));
}

TEST(PodWorkers, prepare_claims_before_the_sandbox_and_unprepare_before_the_last_status) {
  TestNode node;
  node.drivers.prepare_error = Error::internal(
      "prepare dynamic resources: DRA driver d is not "
      "registered");
  node.create("a",
              "'restartPolicy': 'Never', 'containers': [{'name': 'c'}],"
              "'resourceClaims': [{'name': 'x', 'resourceClaimName': 'x'}]");
  node.settle();
  EXPECT_EQ(node.line("a"), "Pending; c ContainerCreating");
  EXPECT_EQ(node.condition("a", "PodReadyToStartContainers"),
            "False PodSandboxNotReady: no pod sandbox exists");
  EXPECT_THAT(node.events("a"),
              ElementsAre("Warning FailedPrepareDynamicResources: Failed to prepare dynamic "
                          "resources: prepare dynamic resources: DRA driver d is not registered"));

  node.drivers.prepare_error.reset();
  node.agent->workers->wake_all();
  node.settle();
  EXPECT_EQ(node.line("a"), "Running; c running ready");

  node.drivers.unprepare_error = Error::internal("driver is away");
  node.machine.end("c", 0);
  node.settle();
  EXPECT_EQ(node.line("a"), "Running; c Completed(0)");

  node.drivers.unprepare_error.reset();
  node.agent->workers->wake_all();
  node.settle();
  EXPECT_EQ(node.line("a"), "Succeeded; c Completed(0)");
  EXPECT_THAT(node.machine.log,
              ElementsAre("prepare a", "run a", "start c 0", "stop sandbox a", "unprepare a"));
}

TEST(PodWorkers, give_a_container_its_devices_and_what_annotates_them) {
  TestNode node;
  node.drivers.devices = {{"v/c=x"}, {{"cdi.k8s.io/d_uid", "v/c=x"}}};
  node.create("a",
              "'containers': [{'name': 'c'}],"
              "'resourceClaims': [{'name': 'x', 'resourceClaimName': 'x'}]");
  node.settle();

  const auto* container = node.machine.find("c");
  ASSERT_NE(container, nullptr);
  EXPECT_THAT(container->config.cdi_devices, ElementsAre("v/c=x"));
  EXPECT_EQ(container->config.annotations.at("cdi.k8s.io/d_uid"), "v/c=x");
}

TEST(PodWorkers, end_a_pod_that_is_active_for_too_long) {
  TestNode node;
  node.create("a", "'activeDeadlineSeconds': 5, 'containers': [{'name': 'c'}]");
  node.settle();
  EXPECT_EQ(node.line("a"), "Running; c running ready");

  node.settle(seconds(6));

  EXPECT_EQ(node.line("a"), "Failed; c Error(143)");
  EXPECT_EQ(node.pod("a")["status"]["reason"].as_string(), "DeadlineExceeded");
  EXPECT_THAT(node.events("a"),
              Contains("Normal DeadlineExceeded: Pod was active on the node longer than the "
                       "specified deadline"));
}

TEST(PodWorkers, run_hooks_after_the_start_and_before_the_end) {
  TestNode node;
  node.create("a",
              "'containers': [{'name': 'c', 'lifecycle': {"
              "'postStart': {'exec': {'command': ['up']}},"
              "'preStop': {'exec': {'command': ['down']}}}}]");
  node.settle();
  EXPECT_EQ(node.line("a"), "Running; c running ready");
  node.remove("a");
  node.settle();

  EXPECT_EQ(node.line("a"), "gone");
  EXPECT_THAT(node.machine.log, ElementsAre("run a", "start c 0", "exec c up", "exec c down",
                                            "stop c 30", "stop sandbox a"));
}

TEST(PodWorkers, kill_a_container_whose_start_hook_failed) {
  TestNode node;
  node.machine.on_exec = [](const std::string&, const std::vector<std::string>&) {
    return ExecResult{"", "no", 1};
  };
  node.create("a",
              "'restartPolicy': 'Never', 'containers': [{'name': 'c', 'lifecycle': {"
              "'postStart': {'exec': {'command': ['up']}}}}]");
  node.settle();

  EXPECT_EQ(node.line("a"), "Failed; c Error(143)");
  EXPECT_THAT(node.events("a"), Contains("Warning FailedPostStartHook: PostStartHook failed"));
}

TEST(PodWorkers, restart_a_container_that_is_not_alive) {
  TestNode node;
  bool well = true;
  node.machine.on_exec = [&](const std::string&, const std::vector<std::string>&) {
    // A second container is well again.
    const bool alive = well || node.machine.containers.size() > 1;
    return ExecResult{"", alive ? "" : "gone", alive ? 0 : 1};
  };
  node.machine.signal_codes["c"] = 137;
  node.create("a",
              "'containers': [{'name': 'c', 'livenessProbe': {'exec': {'command': ['look']},"
              "'periodSeconds': 1, 'failureThreshold': 2}}]");
  node.settle(seconds(3));
  EXPECT_EQ(node.line("a"), "Running; c running ready");

  well = false;
  node.settle(seconds(5));

  EXPECT_EQ(node.line("a"), "Running; c running ready restarts=1 last=Error(137)");
  EXPECT_THAT(node.events("a"),
              Contains("Normal Killing: Container c failed liveness probe, will be restarted"));
}

TEST(PodWorkers, tell_of_volumes_that_cannot_be_unmounted) {
  const TemporaryFolder root;
  TestNode node;
  const Value pod = node.create("a", "'restartPolicy': 'Never', 'containers': [{'name': 'c'}]");
  node.settle();
  // One that still has contents is not taken away.
  const std::string place =
      cat(root.path(), "/pods/", client::uid_of(pod), "/volumes/kubernetes.io~local-volume/pv");
  ASSERT_TRUE(make_folder(place, 0750).ok());
  ASSERT_TRUE(write_file(place + "/file", "1", 0600).ok());
  node.agent->facts.root = root.path();
  node.agent->facts.simulated = false;
  node.machine.end("c", 0);
  node.settle(std::chrono::minutes(1));

  EXPECT_THAT(node.events("a"),
              Contains(HasSubstr("Warning FailedUnmount: Unable to unmount volumes: ")));
  EXPECT_EQ(node.line("a"), "Running; c Completed(0)");

  std::filesystem::remove(place + "/file");
  node.settle(seconds(11));
  EXPECT_EQ(node.line("a"), "Succeeded; c Completed(0)");
}

TEST(PodWorkers, ask_a_driver_that_is_gone_less_and_less) {
  TestNode node;
  node.create("a",
              "'restartPolicy': 'Never', 'containers': [{'name': 'c'}],"
              "'resourceClaims': [{'name': 'x', 'resourceClaimName': 'x'}]");
  node.settle();
  node.drivers.unprepare_error = Error::internal("driver is away");
  const auto tries_within = [&](Duration time) {
    const int before = node.drivers.unprepare_tries;
    node.settle(time);
    return node.drivers.unprepare_tries - before;
  };
  node.machine.end("c", 0);
  EXPECT_GE(tries_within(std::chrono::minutes(2)), 5);
  EXPECT_LE(tries_within(std::chrono::minutes(30)), 16);
  EXPECT_THAT(node.events("a"), Contains("Warning FailedUnprepareDynamicResources: Failed to "
                                         "unprepare dynamic resources: driver is away"));
  EXPECT_EQ(node.line("a"), "Running; c Completed(0)");

  node.drivers.unprepare_error.reset();
  node.agent->workers->wake_all();
  node.settle();
  EXPECT_EQ(node.line("a"), "Succeeded; c Completed(0)");
}

TEST(PodWorkers, refuse_what_does_not_fit) {
  TestNode node;
  node.node_object = from_text(
      "{'metadata': {'name': 'node-0', 'labels': {'disk': 'slow'}},"
      "'status': {'allocatable': {'cpu': '1', 'memory': '1Gi', 'pods': '110'}}}");
  node.create("big", "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '2'}}}]");
  node.create("other", "'nodeSelector': {'disk': 'fast'}, 'containers': [{'name': 'c'}]");
  node.settle();

  EXPECT_EQ(node.pod("big")["status"]["phase"].as_string(), "Failed");
  EXPECT_EQ(node.pod("big")["status"]["reason"].as_string(), "OutOfcpu");
  EXPECT_EQ(node.pod("big")["status"]["message"].as_string(),
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 0, "
            "capacity: 1000");
  EXPECT_EQ(node.pod("other")["status"]["reason"].as_string(), "NodeAffinity");
  EXPECT_TRUE(node.machine.log.empty());
}

TEST(PodWorkers, wait_for_the_room_of_pods_that_were_deleted_by_force) {
  TestNode node;
  node.node_object = from_text(
      "{'metadata': {'name': 'node-0'},"
      "'status': {'allocatable': {'cpu': '1', 'memory': '1Gi', 'pods': '110'}}}");
  node.create("a",
              "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '1'}}}],"
              "'resourceClaims': [{'name': 'x', 'resourceClaimName': 'x'}]");
  node.settle();
  node.drivers.unprepare_error = Error::internal("driver is away");
  node.remove("a", 0);
  node.settle();
  ASSERT_EQ(node.line("a"), "gone");

  const char* const wants_all =
      "'containers': [{'name': 'c', 'resources': {'requests': {'cpu': '1'}}}]";
  node.create("b", wants_all);
  node.settle();
  EXPECT_EQ(node.pod("b")["status"]["phase"].as_string(), "Pending");
  EXPECT_THAT(node.events("b"),
              Contains("Normal WaitingForRoom: Node didn't have enough resource: cpu, requested: "
                       "1000, used: 1000, capacity: 1000; pods that were deleted by force are "
                       "ending"));

  node.drivers.unprepare_error.reset();
  node.agent->workers->wake_all();
  node.settle(seconds(1));
  EXPECT_EQ(node.pod("b")["status"]["phase"].as_string(), "Running");

  // Not for that of pods that stay.
  node.create("c", wants_all);
  node.settle();
  EXPECT_EQ(node.pod("c")["status"]["reason"].as_string(), "OutOfcpu");
}

TEST(PodWorkers, take_a_pod_for_a_label_that_was_just_set) {
  TestNode node;
  node.node_object = from_text("{'metadata': {'name': 'node-0'}}");
  node.fresh_object = from_text("{'metadata': {'name': 'node-0', 'labels': {'disk': 'fast'}}}");
  node.create("a", "'nodeSelector': {'disk': 'fast'}, 'containers': [{'name': 'c'}]");
  node.settle();

  EXPECT_EQ(node.pod("a")["status"]["phase"].as_string(), "Running");
}

TEST(PodWorkers, refuse_what_does_not_tolerate_that_nothing_runs_here) {
  TestNode node;
  node.node_object = from_text(
      "{'metadata': {'name': 'node-0'}, 'spec': {'taints': [{'key': 'away', 'value': 'x', "
      "'effect': 'NoExecute'}, {'key': 'k', 'effect': 'NoSchedule'}]}}");
  node.create("a", "'containers': [{'name': 'c'}]");
  node.create("b",
              "'tolerations': [{'key': 'away', 'operator': 'Equal', 'value': 'x'}], "
              "'containers': [{'name': 'c'}]");
  node.settle();

  EXPECT_EQ(node.pod("a")["status"]["reason"].as_string(), "TaintToleration");
  EXPECT_EQ(node.pod("b")["status"]["phase"].as_string(), "Running");
}

TEST(PodWorkers, refuse_what_they_cannot_honour) {
  TestNode node;
  node.create("sysctl",
              "'securityContext': {'sysctls': [{'name': 'kernel.core_pattern', 'value': '|/x'}]},"
              "'containers': [{'name': 'c'}]");
  node.create("users", "'hostUsers': false, 'containers': [{'name': 'c'}]");
  node.settle();

  EXPECT_EQ(node.pod("sysctl")["status"]["phase"].as_string(), "Failed");
  EXPECT_EQ(node.pod("sysctl")["status"]["reason"].as_string(), "SysctlForbidden");
  EXPECT_EQ(node.pod("sysctl")["status"]["message"].as_string(),
            "Pod was rejected: forbidden sysctl: \"kernel.core_pattern\" not allowlisted");
  EXPECT_EQ(node.pod("users")["status"]["reason"].as_string(), "PodFeatureUnsupported");
  EXPECT_TRUE(node.machine.log.empty());
}

TEST(PodWorkers, go_on_with_running_containers_under_a_new_agent) {
  TestNode node;
  node.create("a", "'containers': [{'name': 'c'}]");
  node.create("b", "'containers': [{'name': 'c'}]");
  node.settle();
  node.end_agent();
  node.remove("b", 0);
  node.machine.log.clear();

  node.start_agent();
  node.settle();

  EXPECT_EQ(node.line("a"), "Running; c running ready");
  EXPECT_THAT(node.machine.log, ElementsAre("stop c 1", "stop sandbox b"));
  EXPECT_EQ(node.machine.sandboxes.size(), 1U);
}

TEST(PodWorkers, stay_ready_under_a_new_agent) {
  TestNode node;
  node.create("a",
              "'containers': [{'name': 'c', 'startupProbe': {'exec': {'command': ['s']}},"
              "'readinessProbe': {'exec': {'command': ['r']}, 'initialDelaySeconds': 5}}]");
  node.settle(seconds(20));
  EXPECT_EQ(node.line("a"), "Running; c running ready");
  const Value before = node.pod("a");
  const std::string since = find_condition(before["status"], "Ready")["lastTransitionTime"].str();
  node.end_agent();
  node.settle(seconds(20));

  node.start_agent();
  node.settle(seconds(20));

  EXPECT_EQ(node.line("a"), "Running; c running ready");
  const Value after = node.pod("a");
  EXPECT_EQ(find_condition(after["status"], "Ready")["lastTransitionTime"].str(), since);
}

TEST(PodWorkers, make_a_new_sandbox_after_a_reboot) {
  TestNode node;
  node.create("a", "'containers': [{'name': 'c'}]");
  node.create("once", "'restartPolicy': 'Never', 'containers': [{'name': 'c'}]");
  node.settle();
  node.end_agent();
  node.machine.reboot();

  node.start_agent();
  node.settle();

  EXPECT_EQ(node.line("a"), "Running; c running ready restarts=1 last=Unknown(255)");
  EXPECT_EQ(node.line("once"), "Failed; c Unknown(255)");
}

/// Everything between birth and death of a pod with a claim, with an agent that dies after so many
/// actions and comes back.
TEST(PodWorkers, survive_an_agent_that_dies_between_any_two_actions) {
  int actions = 0;
  for (int dies_after = 0; dies_after < 60; ++dies_after) {
    SCOPED_TRACE(cat("dies after ", dies_after, " actions"));
    TestNode node;
    node.end_agent();
    node.machine.exits["init"] = {0};
    node.start_agent(dies_after);
    node.create("a",
                "'restartPolicy': 'Never', 'initContainers': [{'name': 'init'}],"
                "'containers': [{'name': 'c'}, {'name': 'd'}],"
                "'resourceClaims': [{'name': 'x', 'resourceClaimName': 'x'}]");
    node.settle(seconds(2));
    if (node.agent->budget.dead) {
      node.end_agent();
      node.start_agent();
      node.settle(seconds(30));
    }
    EXPECT_THAT(node.line("a"), HasSubstr("Running"));
    EXPECT_EQ(node.drivers.prepared.size(), 1U);
    EXPECT_EQ(std::count(node.drivers.log.begin(), node.drivers.log.end(), "prepare a"), 1);
    int running = 0;
    for (const auto& [id, container] : node.machine.containers) {
      running += container.status.state == ContainerState::running ? 1 : 0;
    }
    EXPECT_EQ(running, 2);

    node.remove("a", 1);
    node.settle(seconds(2));
    const bool died = node.agent->budget.dead;
    actions = node.agent->budget.used;
    if (died) {
      node.end_agent();
      node.start_agent();
      node.settle(seconds(30));
    }
    EXPECT_EQ(node.line("a"), "gone");
    EXPECT_TRUE(node.machine.sandboxes.empty());
    EXPECT_TRUE(node.machine.containers.empty());
    EXPECT_TRUE(node.drivers.prepared.empty());
    if (!died && dies_after > actions) break;
  }
  EXPECT_GT(actions, 10);
}

}  // namespace
}  // namespace dibs::node::test
