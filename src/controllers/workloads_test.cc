// Workload controllers against a whole server, under virtual time. No scheduler and no kubelet:
// tests say what becomes of pods.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/job_plan.h"
#include "controllers/rollout.h"
#include "controllers/test_cluster.h"
#include "controllers/volumes/volume_objects.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr const char* kTemplate =
    "'template': {'metadata': {'labels': {'app': 'web'}}, 'spec': {"
    "'terminationGracePeriodSeconds': 0, 'containers': [{'name': 'main', 'image': 'x'}]}}";

struct WorkloadsTest : testing::Test {
  TestCluster cluster;

  WorkloadsTest() { cluster.add_namespace("a"); }

  Value create(const Gvr& gvr, const std::string& name, const std::string& spec) {
    Value made = cluster.create(gvr, "a",
                                cat("{'metadata': {'name': '", name,
                                    "'}, 'spec': {'selector': {'matchLabels': {'app': 'web'}}, ",
                                    spec, ", ", kTemplate, "}}"));
    cluster.settle();
    return made;
  }
  std::vector<Value> pods() { return cluster.list(kPods, "a"); }
  /// A pod that is gone by now is none of the test's business.
  void make_ready(const Value& pod) {
    if (is_pod_terminal(pod)) return;
    (void)cluster.api->patch(
        kPods, "a", name_of(pod), client::PatchType::merge,
        from_text("{'status': {'phase': 'Running', 'conditions': [{'type': 'Ready', 'status': "
                  "'True'}]}}"),
        {.subresource = "status"});
  }
  void all_ready() {
    for (const Value& pod : pods()) make_ready(pod);
    cluster.settle();
  }
  void end_pod(const Value& pod, const std::string& phase) {
    cluster.patch(kPods, "a", std::string(name_of(pod)),
                  cat("{'status': {'phase': '", phase, "'}}"), "status");
    cluster.settle();
  }
  void set_image(const Gvr& gvr, const std::string& name, const std::string& image) {
    cluster.patch(gvr, "a", name,
                  cat("{'spec': {'template': {'spec': {'containers': [{'name': 'main', 'image': '",
                      image, "'}]}}}}"));
    cluster.settle();
  }
  std::vector<std::string> images() {
    std::vector<std::string> out;
    for (const Value& pod : pods()) out.push_back(pod["spec"]["containers"][0]["image"].str());
    return out;
  }
  Value deployment() { return cluster.get(kDeploymentResource, "a", "web"); }
  std::string progress() {
    return condition_in(deployment()["status"]["conditions"], "Progressing")["reason"].str();
  }
};

TEST_F(WorkloadsTest, replica_set_keeps_its_number) {
  create(kReplicaSetResource, "web", "'replicas': 3");
  ASSERT_THAT(pods(), SizeIs(3));
  const Value owner = pods()[0]["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["kind"].as_string(), "ReplicaSet");
  EXPECT_TRUE(owner["controller"].as_bool());

  cluster.remove(kPods, "a", std::string(name_of(pods()[0])));
  cluster.settle();
  EXPECT_THAT(pods(), SizeIs(3));
  end_pod(pods()[0], "Failed");
  EXPECT_THAT(pods(), SizeIs(4)) << "one that failed stays, beside three that count";

  cluster.patch(kReplicaSetResource, "a", "web", "{'spec': {'replicas': 1}}");
  cluster.settle();
  all_ready();
  const Value set = cluster.get(kReplicaSetResource, "a", "web");
  EXPECT_EQ(set["status"]["replicas"].as_int(), 1);
  EXPECT_EQ(set["status"]["observedGeneration"].as_int(), 2);
  EXPECT_THAT(cluster.events("a", "web"),
              Contains(HasSubstr("Normal SuccessfulCreate Created pod: web-")));
  EXPECT_THAT(cluster.events("a", "web"),
              Contains(HasSubstr("Normal SuccessfulDelete Deleted pod: web-")));
}

TEST_F(WorkloadsTest, replica_set_adopts_and_releases) {
  cluster.create(kPods, "a",
                 "{'metadata': {'name': 'stray', 'labels': {'app': 'web'}}, 'spec': {'containers': "
                 "[{'name': 'main', 'image': 'x'}]}}");
  create(kReplicaSetResource, "web", "'replicas': 2");
  EXPECT_THAT(pods(), SizeIs(2));
  EXPECT_EQ(controller_of(cluster.get(kPods, "a", "stray"))["name"].as_string(), "web");

  cluster.patch(kPods, "a", "stray", "{'metadata': {'labels': {'app': 'other'}}}");
  cluster.settle();
  EXPECT_THAT(pods(), SizeIs(3));
  EXPECT_TRUE(controller_of(cluster.get(kPods, "a", "stray")).is_null());
}

TEST_F(WorkloadsTest, replica_set_tells_a_refusal) {
  cluster.create({"", "v1", "resourcequotas"}, "a",
                 "{'metadata': {'name': 'few'}, 'spec': {'hard': {'pods': '1'}}}");
  cluster.settle();
  create(kReplicaSetResource, "web", "'replicas': 3");
  const Value set = cluster.get(kReplicaSetResource, "a", "web");
  const Value failure = condition_in(set["status"]["conditions"], "ReplicaFailure");
  EXPECT_EQ(failure["reason"].as_string(), "FailedCreate");
  EXPECT_THAT(failure["message"].str(), HasSubstr("exceeded quota: few"));
  EXPECT_THAT(cluster.events("a", "web"),
              Contains(HasSubstr("Warning FailedCreate Error creating: pods \"web-")));

  cluster.remove({"", "v1", "resourcequotas"}, "a", "few");
  cluster.settle(std::chrono::minutes(1));
  EXPECT_THAT(pods(), SizeIs(3));
  EXPECT_TRUE(cluster.get(kReplicaSetResource, "a", "web")["status"]["conditions"].empty());
}

TEST_F(WorkloadsTest, replication_controller_does_the_same) {
  cluster.create(kReplicationControllerResource, "a",
                 cat("{'metadata': {'name': 'old'}, 'spec': {'replicas': 2, 'selector': {'app': "
                     "'web'}, ",
                     kTemplate, "}}"));
  cluster.settle();
  EXPECT_THAT(pods(), SizeIs(2));
  EXPECT_EQ(cluster.get(kReplicationControllerResource, "a", "old")["status"]["replicas"].as_int(),
            2);
}

TEST_F(WorkloadsTest, replication_controller_adopts_and_tells_a_refusal) {
  cluster.create(kPods, "a",
                 "{'metadata': {'name': 'stray', 'labels': {'app': 'web'}}, 'spec': {'containers': "
                 "[{'name': 'main', 'image': 'x'}]}}");
  cluster.create({"", "v1", "resourcequotas"}, "a",
                 "{'metadata': {'name': 'few'}, 'spec': {'hard': {'pods': '1'}}}");
  cluster.settle();
  cluster.create(kReplicationControllerResource, "a",
                 cat("{'metadata': {'name': 'old'}, 'spec': {'replicas': 2, 'selector': {'app': "
                     "'web'}, ",
                     kTemplate, "}}"));
  cluster.settle();
  EXPECT_EQ(controller_of(cluster.get(kPods, "a", "stray"))["kind"].as_string(),
            "ReplicationController");
  const auto failure = [&] {
    return condition_in(
               cluster.get(kReplicationControllerResource, "a", "old")["status"]["conditions"],
               "ReplicaFailure")["reason"]
        .str();
  };
  EXPECT_EQ(failure(), "FailedCreate");

  cluster.remove({"", "v1", "resourcequotas"}, "a", "few");
  cluster.settle(std::chrono::minutes(1));
  EXPECT_THAT(pods(), SizeIs(2));
  EXPECT_EQ(failure(), "");
}

TEST_F(WorkloadsTest, deployment_rolls_out) {
  create(kDeploymentResource, "web", "'replicas': 2");
  ASSERT_THAT(pods(), SizeIs(2));
  EXPECT_EQ(deployment()["status"]["updatedReplicas"].as_int(), 2);
  EXPECT_EQ(annotation_of(deployment(), kRevisionAnnotation), "1");
  EXPECT_EQ(deployment()["metadata"]["generation"].as_int(), 1)
      << "the annotation must not raise it";
  EXPECT_EQ(progress(), "ReplicaSetUpdated");
  all_ready();
  EXPECT_EQ(progress(), "NewReplicaSetAvailable");
  EXPECT_EQ(deployment()["status"]["availableReplicas"].as_int(), 2);
  const Value available = condition_in(deployment()["status"]["conditions"], "Available");
  EXPECT_EQ(available["message"].as_string(), "Deployment has minimum availability.");

  set_image(kDeploymentResource, "web", "x:2");
  EXPECT_THAT(images(), UnorderedElementsAre("x", "x", "x:2"));
  for (int i = 0; i < 4; ++i) all_ready();
  EXPECT_THAT(images(), UnorderedElementsAre("x:2", "x:2"));
  EXPECT_EQ(annotation_of(deployment(), kRevisionAnnotation), "2");
  EXPECT_THAT(cluster.list(kReplicaSetResource, "a"), SizeIs(2));
  EXPECT_THAT(cluster.events("a", "web"), Contains(HasSubstr("from 0 to 2")));
  EXPECT_THAT(cluster.events("a", "web"), Contains(HasSubstr("Scaled down replica set web-")));

  // Back: the old set takes the next revision.
  set_image(kDeploymentResource, "web", "x");
  for (int i = 0; i < 4; ++i) all_ready();
  EXPECT_THAT(images(), UnorderedElementsAre("x", "x"));
  EXPECT_EQ(annotation_of(deployment(), kRevisionAnnotation), "3");
  EXPECT_THAT(cluster.list(kReplicaSetResource, "a"), SizeIs(2));
  EXPECT_EQ(progress(), "NewReplicaSetAvailable");
}

TEST_F(WorkloadsTest, deployment_scales_pauses_and_resumes) {
  create(kDeploymentResource, "web", "'replicas': 2");
  all_ready();
  cluster.patch(kDeploymentResource, "a", "web", "{'spec': {'replicas': 4}}");
  cluster.settle();
  all_ready();
  EXPECT_THAT(pods(), SizeIs(4));
  cluster.patch(kDeploymentResource, "a", "web", "{'spec': {'paused': true}}");
  cluster.settle();
  EXPECT_EQ(progress(), "DeploymentPaused");
  set_image(kDeploymentResource, "web", "x:2");
  EXPECT_THAT(images(), Not(Contains("x:2")));
  cluster.patch(kDeploymentResource, "a", "web", "{'spec': {'replicas': 3}}");
  cluster.settle();
  EXPECT_THAT(pods(), SizeIs(3));
  cluster.patch(kDeploymentResource, "a", "web", "{'spec': {'paused': false}}");
  cluster.settle();
  for (int i = 0; i < 5; ++i) all_ready();
  EXPECT_THAT(images(), ElementsAre("x:2", "x:2", "x:2"));
}

TEST_F(WorkloadsTest, deployment_misses_its_deadline) {
  create(kDeploymentResource, "web", "'replicas': 1, 'progressDeadlineSeconds': 60");
  cluster.settle(std::chrono::seconds(70));
  EXPECT_EQ(progress(), "ProgressDeadlineExceeded");
  all_ready();
  EXPECT_EQ(progress(), "NewReplicaSetAvailable");
}

TEST_F(WorkloadsTest, recreate_waits_for_the_old_pods) {
  create(kDeploymentResource, "web", "'replicas': 2, 'strategy': {'type': 'Recreate'}");
  all_ready();
  const std::string held(name_of(pods()[0]));
  cluster.patch(kPods, "a", held, "{'metadata': {'finalizers': ['example.com/wait']}}");
  set_image(kDeploymentResource, "web", "x:2");
  EXPECT_THAT(images(), ElementsAre("x"));
  cluster.patch(kPods, "a", held, "{'metadata': {'finalizers': null}}");
  cluster.settle();
  EXPECT_THAT(images(), ElementsAre("x:2", "x:2"));
}

TEST_F(WorkloadsTest, job_completes) {
  cluster.create(kJobResource, "a",
                 "{'metadata': {'name': 'three'}, 'spec': {'completions': 3, 'parallelism': 2, "
                 "'template': {'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'main', "
                 "'image': 'x'}]}}}}");
  cluster.settle();
  ASSERT_THAT(pods(), SizeIs(2));
  EXPECT_TRUE(has_job_finalizer(pods()[0]));
  EXPECT_EQ(cluster.get(kJobResource, "a", "three")["status"]["active"].as_int(), 2);
  for (const Value& pod : pods()) end_pod(pod, "Succeeded");
  ASSERT_THAT(pods(), SizeIs(3));
  end_pod(pods()[0], "Succeeded");
  end_pod(pods()[1], "Succeeded");
  end_pod(pods()[2], "Succeeded");
  const Value job = cluster.get(kJobResource, "a", "three");
  EXPECT_EQ(job["status"]["succeeded"].as_int(), 3);
  EXPECT_TRUE(job["status"]["completionTime"].is_string());
  EXPECT_EQ(condition_in(job["status"]["conditions"], "Complete")["reason"].as_string(),
            "CompletionsReached");
  EXPECT_FALSE(has_job_finalizer(pods()[0]));
  EXPECT_THAT(cluster.events("a", "three"), Contains("Normal Completed Job completed"));

  cluster.remove(kJobResource, "a", "three", "Background");
  cluster.settle();
  EXPECT_THAT(pods(), SizeIs(0));
}

TEST_F(WorkloadsTest, job_fails_at_its_limits) {
  cluster.create(kJobResource, "a",
                 "{'metadata': {'name': 'fails'}, 'spec': {'backoffLimit': 0, 'template': {'spec': "
                 "{'restartPolicy': 'Never', 'containers': [{'name': 'main', 'image': 'x'}]}}}}");
  cluster.create(kJobResource, "a",
                 "{'metadata': {'name': 'slow'}, 'spec': {'activeDeadlineSeconds': 5, "
                 "'ttlSecondsAfterFinished': 60, 'template': {'spec': {'restartPolicy': 'Never', "
                 "'containers': [{'name': 'main', 'image': 'x'}]}}}}");
  cluster.settle();
  for (const Value& pod : pods())
    if (name_of(pod).substr(0, 5) == "fails") end_pod(pod, "Failed");
  cluster.settle(std::chrono::seconds(10));
  for (const auto& [name, reason] :
       {std::pair("fails", "BackoffLimitExceeded"), std::pair("slow", "DeadlineExceeded")}) {
    const Value conditions = cluster.get(kJobResource, "a", name)["status"]["conditions"];
    ASSERT_EQ(conditions.size(), 2U) << name;
    EXPECT_EQ(conditions[0]["type"].as_string(), "FailureTarget");
    EXPECT_EQ(conditions[1]["type"].as_string(), "Failed");
    EXPECT_EQ(conditions[1]["reason"].as_string(), reason);
  }
  EXPECT_EQ(cluster.get(kJobResource, "a", "fails")["status"]["failed"].as_int(), 1);
  cluster.settle(std::chrono::seconds(70));
  EXPECT_TRUE(cluster.get(kJobResource, "a", "slow").is_null());
}

TEST_F(WorkloadsTest, job_waits_and_retries) {
  cluster.create(kJobResource, "a",
                 "{'metadata': {'name': 'later'}, 'spec': {'suspend': true, 'template': {'spec': "
                 "{'restartPolicy': 'Never', 'containers': [{'name': 'main', 'image': 'x'}]}}}}");
  cluster.settle();
  EXPECT_THAT(pods(), SizeIs(0));
  Value job = cluster.get(kJobResource, "a", "later");
  EXPECT_EQ(condition_in(job["status"]["conditions"], "Suspended")["status"].as_string(), "True");
  cluster.patch(kJobResource, "a", "later", "{'spec': {'suspend': false}}");
  cluster.settle();
  ASSERT_THAT(pods(), SizeIs(1));
  end_pod(pods()[0], "Failed");
  EXPECT_THAT(pods(), SizeIs(1));
  cluster.settle(std::chrono::seconds(10));
  EXPECT_THAT(pods(), SizeIs(2)) << "ten seconds after the first failure";
  EXPECT_THAT(cluster.events("a", "later"), Contains("Normal Resumed Job resumed"));
  cluster.patch(kJobResource, "a", "later", "{'spec': {'suspend': true}}");
  cluster.settle();
  EXPECT_THAT(pods(), SizeIs(1)) << "the one that failed";
  EXPECT_EQ(cluster.get(kJobResource, "a", "later")["status"]["failed"].as_int(), 1);
}

TEST_F(WorkloadsTest, job_counts_indexes) {
  cluster.create(
      kJobResource, "a",
      "{'metadata': {'name': 'indexed'}, 'spec': {'completions': 2, 'parallelism': 2, "
      "'completionMode': 'Indexed', 'template': {'spec': {'restartPolicy': 'Never', 'containers': "
      "[{'name': 'main', 'image': 'x'}]}}}}");
  cluster.settle();
  ASSERT_THAT(pods(), SizeIs(2));
  EXPECT_THAT(std::string(name_of(pods()[0])), HasSubstr("indexed-0-"));
  EXPECT_EQ(pods()[1]["spec"]["hostname"].as_string(), "indexed-1");
  EXPECT_EQ(pods()[1]["spec"]["containers"][0]["env"][0]["name"].as_string(),
            "JOB_COMPLETION_INDEX");
  for (const Value& pod : pods()) end_pod(pod, "Succeeded");
  const Value status = cluster.get(kJobResource, "a", "indexed")["status"];
  EXPECT_EQ(status["completedIndexes"].as_string(), "0,1");
  EXPECT_EQ(status["succeeded"].as_int(), 2);
  EXPECT_FALSE(condition_in(status["conditions"], "Complete").is_null());
}

TEST_F(WorkloadsTest, stateful_set_keeps_claims_as_its_policy_says) {
  const std::string claims =
      ", 'volumeClaimTemplates': [{'metadata': {'name': 'data'}, 'spec': {'accessModes': "
      "['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}], "
      "'persistentVolumeClaimRetentionPolicy': ";
  create(kStatefulSetResource, "db",
         "'replicas': 3, 'podManagementPolicy': 'Parallel'" + claims +
             "{'whenScaled': 'Delete', 'whenDeleted': 'Retain'}");
  for (int i = 0; i < 3; ++i) all_ready();
  ASSERT_THAT(cluster.names(kVolumeClaims, "a"),
              ElementsAre("data-db-0", "data-db-1", "data-db-2"));
  EXPECT_TRUE(controller_of(cluster.get(kVolumeClaims, "a", "data-db-2")).is_null());

  cluster.patch(kStatefulSetResource, "a", "db", "{'spec': {'replicas': 1}}");
  cluster.settle(std::chrono::seconds(20));
  EXPECT_THAT(cluster.names(kVolumeClaims, "a"), ElementsAre("data-db-0"));

  // What was scaled away comes again with a claim of its own.
  cluster.patch(kStatefulSetResource, "a", "db", "{'spec': {'replicas': 2}}");
  cluster.settle(std::chrono::seconds(20));
  EXPECT_THAT(cluster.names(kPods, "a"), ElementsAre("db-0", "db-1"));
  EXPECT_THAT(cluster.names(kVolumeClaims, "a"), ElementsAre("data-db-0", "data-db-1"));

  cluster.patch(kStatefulSetResource, "a", "db",
                "{'spec': {'persistentVolumeClaimRetentionPolicy': {'whenScaled': 'Retain', "
                "'whenDeleted': 'Delete'}}}");
  cluster.settle();
  EXPECT_EQ(controller_of(cluster.get(kVolumeClaims, "a", "data-db-0"))["kind"].str(),
            "StatefulSet");
  cluster.remove(kStatefulSetResource, "a", "db");
  cluster.settle(std::chrono::seconds(30));
  EXPECT_THAT(cluster.names(kVolumeClaims, "a"), testing::IsEmpty());
}

TEST_F(WorkloadsTest, stateful_set_goes_in_order) {
  create(kStatefulSetResource, "db",
         "'replicas': 3, 'serviceName': 'db', 'volumeClaimTemplates': [{'metadata': {'name': "
         "'data'}, 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': "
         "{'storage': '1Gi'}}}}]");
  EXPECT_THAT(cluster.names(kPods, "a"), ElementsAre("db-0"));
  EXPECT_EQ(pods()[0]["spec"]["hostname"].as_string(), "db-0");
  EXPECT_EQ(label_of(pods()[0], "apps.kubernetes.io/pod-index"), "0");
  EXPECT_THAT(cluster.names(kVolumeClaims, "a"), ElementsAre("data-db-0"));
  for (int i = 0; i < 3; ++i) all_ready();
  EXPECT_THAT(cluster.names(kPods, "a"), ElementsAre("db-0", "db-1", "db-2"));
  Value set = cluster.get(kStatefulSetResource, "a", "db");
  EXPECT_EQ(set["status"]["readyReplicas"].as_int(), 3);
  EXPECT_EQ(set["status"]["currentRevision"], set["status"]["updateRevision"]);
  const std::string first_revision = set["status"]["currentRevision"].str();

  set_image(kStatefulSetResource, "db", "x:2");
  EXPECT_THAT(images(), ElementsAre("x", "x", "x:2"));
  for (int i = 0; i < 4; ++i) all_ready();
  EXPECT_THAT(images(), ElementsAre("x:2", "x:2", "x:2"));
  set = cluster.get(kStatefulSetResource, "a", "db");
  EXPECT_EQ(set["status"]["currentRevision"], set["status"]["updateRevision"]);
  EXPECT_NE(set["status"]["currentRevision"].str(), first_revision);
  EXPECT_THAT(cluster.list(kRevisionResource, "a"), SizeIs(2));

  cluster.patch(kStatefulSetResource, "a", "db", "{'spec': {'replicas': 1}}");
  cluster.settle();
  EXPECT_THAT(cluster.names(kPods, "a"), ElementsAre("db-0"));
  EXPECT_THAT(cluster.events("a", "db"),
              Contains("Normal SuccessfulCreate Create Pod db-1 in StatefulSet db successful"));
  EXPECT_THAT(cluster.events("a", "db"),
              Contains("Normal SuccessfulDelete Delete Pod db-2 in StatefulSet db successful"));
}

TEST_F(WorkloadsTest, daemon_set_follows_the_nodes) {
  const auto add_node = [&](const std::string& name) {
    cluster.create(kNodes, "",
                   cat("{'metadata': {'name': '", name, "', 'labels': {'pool': 'p'}}}"));
    cluster.settle();
  };
  add_node("n1");
  cluster.create(kDaemonSetResource, "a",
                 "{'metadata': {'name': 'agent'}, 'spec': {'selector': {'matchLabels': {'app': "
                 "'agent'}}, 'template': {'metadata': {'labels': {'app': 'agent'}}, 'spec': "
                 "{'terminationGracePeriodSeconds': 0, 'nodeSelector': {'pool': 'p'}, "
                 "'containers': [{'name': 'main', 'image': 'x'}]}}}}");
  cluster.settle();
  ASSERT_THAT(pods(), SizeIs(1));
  add_node("n2");
  ASSERT_THAT(pods(), SizeIs(2));
  Value status = cluster.get(kDaemonSetResource, "a", "agent")["status"];
  EXPECT_EQ(status["desiredNumberScheduled"].as_int(), 2);
  EXPECT_EQ(status["updatedNumberScheduled"].as_int(), 2);
  EXPECT_EQ(status["numberUnavailable"].as_int(), 2);
  all_ready();
  EXPECT_EQ(cluster.get(kDaemonSetResource, "a", "agent")["status"]["numberAvailable"].as_int(), 2);

  set_image(kDaemonSetResource, "agent", "x:2");
  EXPECT_THAT(images(), UnorderedElementsAre("x", "x:2"));
  all_ready();
  all_ready();
  EXPECT_THAT(images(), ElementsAre("x:2", "x:2"));
  EXPECT_THAT(cluster.list(kRevisionResource, "a"), SizeIs(2));

  cluster.patch(kNodes, "", "n2", "{'metadata': {'labels': {'pool': null}}}");
  cluster.settle();
  EXPECT_THAT(pods(), SizeIs(1));
  status = cluster.get(kDaemonSetResource, "a", "agent")["status"];
  EXPECT_EQ(status["desiredNumberScheduled"].as_int(), 1);
  EXPECT_EQ(status["numberMisscheduled"].as_int(), 0);
}

}  // namespace
}  // namespace dibs::controllers
