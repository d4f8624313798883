// The decisions of the workload controllers, as functions of objects and time.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "api/merge/selectors.h"
#include "base/strings.h"
#include "controllers/daemon_plan.h"
#include "controllers/expectations.h"
#include "controllers/job_indexes.h"
#include "controllers/job_plan.h"
#include "controllers/node_fit.h"
#include "controllers/replica_set.h"
#include "controllers/revisions.h"
#include "controllers/rollout.h"
#include "controllers/rollout_status.h"
#include "controllers/stateful_plan.h"
#include "controllers/test_cluster.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const Time kNow = Time::from_seconds(1'700'000'000);

std::vector<std::string> names_of(const std::vector<Value>& objects) {
  std::vector<std::string> names;
  for (const Value& object : objects) names.emplace_back(name_of(object));
  return names;
}

Value pod(const std::string& name, const std::string& more) {
  Value made = from_text(more);
  made.mut("metadata").set("name", name);
  made.mut("metadata").set("namespace", "a");
  made.mut("metadata").set("uid", cat("uid-", name));
  if (made["metadata"]["creationTimestamp"].is_null())
    made.mut("metadata").set("creationTimestamp", format_rfc3339(kNow - std::chrono::hours(1)));
  return made;
}

TEST(Shares, round_as_asked) {
  struct Case {
    const char* value;
    std::int64_t total;
    bool up;
    std::int64_t expected;
  };
  for (const Case& c :
       {Case{"3", 10, true, 3}, Case{"'25%'", 10, true, 3}, Case{"'25%'", 10, false, 2},
        Case{"'0%'", 10, true, 0}, Case{"'100%'", 7, false, 7}})
    EXPECT_EQ(scaled_value(from_text(c.value), c.total, c.up), c.expected) << c.value;
}

TEST(Hashes, are_stable_and_readable) {
  const Value a = from_text("{'spec': {'x': 1, 'y': 2}}");
  const Value b = from_text("{'spec': {'y': 2, 'x': 1}}");
  EXPECT_EQ(template_hash(a, {}), template_hash(b, {}));
  EXPECT_NE(template_hash(a, {}), template_hash(a, 1));
  EXPECT_EQ(safe_encode(1234567890), "56789bcdf4");
  EXPECT_EQ(fnv1_32("a"), 0x050c5d7eU);
  EXPECT_EQ(fnv1a_32("a"), 0xe40c292cU);
}

TEST(Availability, counts_from_the_condition) {
  const Value ready = pod("p", cat("{'status': {'conditions': [{'type': 'Ready', 'status': 'True', "
                                   "'lastTransitionTime': '",
                                   format_rfc3339(kNow - std::chrono::seconds(4)), "'}]}}"));
  EXPECT_TRUE(pod_available(ready, 4, kNow));
  EXPECT_FALSE(pod_available(ready, 5, kNow));
  EXPECT_EQ(next_available({ready}, 10, kNow), std::chrono::seconds(6));
  EXPECT_FALSE(next_available({ready}, 3, kNow));
}

TEST(ExpectationsTest, hold_back_until_seen_or_old) {
  Expectations expectations;
  EXPECT_TRUE(expectations.satisfied("k", kNow));
  expectations.expect_creations("k", 2, kNow);
  expectations.creation_seen("k");
  EXPECT_FALSE(expectations.satisfied("k", kNow));
  expectations.creation_seen("k");
  EXPECT_TRUE(expectations.satisfied("k", kNow));
  expectations.expect_deletion("k", "u", kNow);
  EXPECT_FALSE(expectations.satisfied("k", kNow));
  EXPECT_TRUE(expectations.satisfied("k", kNow + std::chrono::minutes(6)));
  expectations.deletion_seen("k", "u");
  EXPECT_TRUE(expectations.satisfied("k", kNow));
}

TEST(ReplicaPlans, give_up_the_least_useful_pods) {
  const std::string ready = "'conditions': [{'type': 'Ready', 'status': 'True'}]";
  const std::vector<Value> pods = {
      pod("ready",
          cat("{'spec': {'nodeName': 'n1'}, 'status': {'phase': 'Running', ", ready, "}}")),
      pod("crowded",
          cat("{'spec': {'nodeName': 'n2'}, 'status': {'phase': 'Running', ", ready, "}}")),
      pod("crowded2",
          cat("{'spec': {'nodeName': 'n2'}, 'status': {'phase': 'Running', ", ready, "}}")),
      pod("cheap", cat("{'metadata': {'annotations': "
                       "{'controller.kubernetes.io/pod-deletion-cost': '-5'}}, 'spec': "
                       "{'nodeName': 'n1'}, 'status': {'phase': 'Running', ",
                       ready, "}}")),
      pod("starting", "{'spec': {'nodeName': 'n1'}, 'status': {'phase': 'Running'}}"),
      pod("pending", "{'spec': {'nodeName': 'n1'}, 'status': {'phase': 'Pending'}}"),
      pod("nowhere", "{'spec': {}, 'status': {'phase': 'Pending'}}")};
  EXPECT_THAT(
      names_of(removal_order(pods, pods, kNow)),
      ElementsAre("nowhere", "pending", "starting", "cheap", "ready", "crowded", "crowded2"));
  const ReplicaPlan fewer = plan_replicas(from_text("{'spec': {'replicas': 5}}"), pods, pods, kNow);
  EXPECT_THAT(names_of(fewer.remove), ElementsAre("nowhere", "pending"));
  EXPECT_EQ(plan_replicas(from_text("{'spec': {'replicas': 9}}"), pods, pods, kNow).create, 2);
  EXPECT_EQ(plan_replicas(from_text("{'spec': {'replicas': 9000}}"), pods, pods, kNow).create, 500);
}

// A Deployment of `replicas` with sets given as "template replicas available".
RolloutPlan roll(int replicas, const std::string& surge, const std::string& unavailable,
                 const std::vector<std::array<int, 3>>& sets) {
  RolloutInput input;
  input.now = kNow;
  input.deployment = from_text(cat(
      "{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': 'web', 'namespace': "
      "'a', 'uid': 'd', 'generation': 1}, 'spec': {'replicas': ",
      replicas,
      ", 'progressDeadlineSeconds': 600, 'revisionHistoryLimit': 2, 'selector': {'matchLabels': "
      "{'app': 'web'}}, 'strategy': {'type': 'RollingUpdate', 'rollingUpdate': {'maxSurge': ",
      surge, ", 'maxUnavailable': ", unavailable,
      "}}, 'template': {'metadata': {'labels': {'app': 'web'}}, 'spec': {'v': 9}}}, 'status': "
      "{'replicas': 4, 'availableReplicas': 4}}"));
  int number = 0;
  for (const auto& [version, size, available] : sets) {
    ++number;
    Value set = from_text(
        cat("{'metadata': {'name': 'web-", number, "', 'uid': 's", number,
            "', 'creationTimestamp': '", format_rfc3339(kNow + std::chrono::seconds(number)),
            "', 'annotations': {'deployment.kubernetes.io/revision': '", number,
            "', 'deployment.kubernetes.io/desired-replicas': '", replicas,
            "', 'deployment.kubernetes.io/max-replicas': '", replicas, "'}}, 'spec': {'replicas': ",
            size, ", 'template': {'metadata': {'labels': {'app': 'web', 'pod-template-hash': 'h",
            version, "'}}, 'spec': {'v': ", version, "}}}, 'status': {'replicas': ", size,
            ", 'availableReplicas': ", available, "}}"));
    input.sets.push_back(std::move(set));
  }
  return plan_rollout(input);
}

std::vector<std::string> notes_of(const RolloutPlan& plan) {
  std::vector<std::string> notes;
  for (const SetWrite& write : plan.writes)
    for (const std::string& note : write.notes)
      notes.push_back(note.substr(0, 12) + note.substr(note.find(" web-")));
  return notes;
}

TEST(Rollouts, move_within_surge_and_unavailability) {
  struct Case {
    int replicas;
    const char *surge, *unavailable;
    std::vector<std::array<int, 3>> sets;
    std::vector<std::string> expected;
  };
  const std::vector<Case> cases = {
      {10, "'25%'", "'25%'", {{1, 10, 10}, {9, 0, 0}}, {"Scaled up re web-2 from 0 to 3"}},
      {10, "'25%'", "'25%'", {{1, 10, 10}, {9, 3, 0}}, {"Scaled down  web-1 from 10 to 8"}},
      {10, "'25%'", "'25%'", {{1, 8, 8}, {9, 3, 0}}, {"Scaled up re web-2 from 3 to 5"}},
      {1, "'25%'", "'25%'", {{1, 1, 1}, {9, 0, 0}}, {"Scaled up re web-2 from 0 to 1"}},
      {1, "'25%'", "'25%'", {{1, 1, 1}, {9, 1, 0}}, {}},
      {1, "'25%'", "'25%'", {{1, 1, 1}, {9, 1, 1}}, {"Scaled down  web-1 from 1 to 0"}},
      {4, "0", "1", {{1, 4, 4}, {9, 0, 0}}, {"Scaled down  web-1 from 4 to 3"}},
      {4, "0", "1", {{1, 3, 3}, {9, 0, 0}}, {"Scaled up re web-2 from 0 to 1"}},
      {4, "1", "0", {{1, 4, 2}, {9, 1, 1}}, {"Scaled down  web-1 from 4 to 3"}},
      {2, "1", "0", {{1, 1, 1}, {2, 1, 1}, {9, 1, 1}}, {"Scaled down  web-1 from 1 to 0"}},
  };
  for (const Case& c : cases) {
    const RolloutPlan plan = roll(c.replicas, c.surge, c.unavailable, c.sets);
    EXPECT_EQ(notes_of(plan), c.expected) << c.replicas << " " << c.surge << " " << c.sets.size();
  }
}

TEST(Rollouts, make_the_new_set) {
  const RolloutPlan plan = roll(4, "1", "1", {{1, 4, 4}});
  ASSERT_THAT(plan.writes, SizeIs(2));
  EXPECT_EQ(plan.writes[0].verb, SetWrite::Verb::create);
  const Value& set = plan.writes[0].set;
  EXPECT_EQ(set["spec"]["replicas"].as_int(), 1);
  EXPECT_EQ(revision_of(set), 2);
  EXPECT_EQ(revision_of(plan.deployment), 2);
  const std::string hash(label_of(set, kTemplateHashLabel));
  EXPECT_EQ(name_of(set), cat("web-", hash));
  EXPECT_EQ(set["spec"]["selector"]["matchLabels"][kTemplateHashLabel].as_string(), hash);
  const Value& progress = condition_in(plan.deployment["status"]["conditions"], "Progressing");
  EXPECT_EQ(progress["message"].str(), cat("Created new replica set \"web-", hash, "\""));
  EXPECT_TRUE(plan.again.has_value());
}

TEST(Rollouts, forget_old_sets) {
  const RolloutPlan plan =
      roll(1, "1", "0", {{1, 0, 0}, {2, 0, 0}, {3, 0, 0}, {4, 0, 0}, {9, 1, 1}});
  std::vector<Value> removed;
  for (const SetWrite& write : plan.writes)
    if (write.verb == SetWrite::Verb::remove) removed.push_back(write.set);
  EXPECT_THAT(names_of(removed), ElementsAre("web-1", "web-2"));
}

TEST(Rollouts, scale_in_proportion) {
  RolloutInput input;
  input.now = kNow;
  input.deployment = from_text(
      "{'metadata': {'name': 'web'}, 'spec': {'replicas': 20, 'strategy': {'type': "
      "'RollingUpdate', 'rollingUpdate': {'maxSurge': 0, 'maxUnavailable': 5}}, 'template': "
      "{'spec': {'v': 2}}}}");
  for (const auto& [version, size] : {std::pair(1, 7), std::pair(2, 3)})
    input.sets.push_back(
        from_text(cat("{'metadata': {'name': 'web-", version,
                      "', 'annotations': {'deployment.kubernetes.io/revision': '", version,
                      "', 'deployment.kubernetes.io/desired-replicas': '10', "
                      "'deployment.kubernetes.io/max-replicas': '10'}}, 'spec': {'replicas': ",
                      size, ", 'template': {'spec': {'v': ", version, "}}}}")));
  EXPECT_THAT(notes_of(plan_rollout(input)),
              ElementsAre("Scaled up re web-1 from 7 to 14", "Scaled up re web-2 from 3 to 6"));
}

TEST(Indexes, print_as_ranges) {
  EXPECT_EQ(IndexSet::parse("0,2-4,9", 100).str(), "0,2-4,9");
  IndexSet set = IndexSet::parse("1,3-5", 5);
  EXPECT_EQ(set.str(), "1,3,4");
  set.add(2);
  EXPECT_EQ(set.str(), "1-4");
  set.add(0);
  set.add(0);
  EXPECT_EQ(set.str(), "0-4");
  EXPECT_EQ(set.count(), 5);
  EXPECT_FALSE(set.contains(5));
  EXPECT_EQ(IndexSet::parse("x,-1", 9).count(), 0);
}

Value failed_pod(const std::string& name, int code) {
  return pod(name, cat("{'metadata': {'finalizers': ['batch.kubernetes.io/job-tracking'], "
                       "'annotations': {'batch.kubernetes.io/job-completion-index': '0'}}, "
                       "'status': {'phase': 'Failed', 'containerStatuses': [{'name': 'main', "
                       "'state': {'terminated': {'exitCode': ",
                       code,
                       "}}}], 'conditions': [{'type': 'DisruptionTarget', 'status': "
                       "'True'}]}}"));
}

TEST(FailurePolicies, take_the_first_rule_that_matches) {
  const Value exit_codes = from_text(
      "{'rules': [{'action': 'Ignore', 'onExitCodes': {'operator': 'In', 'values': [3]}}, "
      "{'action': 'FailJob', 'onExitCodes': {'containerName': 'main', 'operator': 'NotIn', "
      "'values': [4]}}]}");
  EXPECT_EQ(judge_failure(exit_codes, failed_pod("p", 3)).action, "Ignore");
  EXPECT_EQ(judge_failure(exit_codes, failed_pod("p", 4)).action, "");
  EXPECT_EQ(judge_failure(exit_codes, failed_pod("p", 5)).message,
            "Container main for pod a/p failed with exit code 5 matching FailJob rule at index 1");
  const Value conditions = from_text(
      "{'rules': [{'action': 'Count', 'onPodConditions': [{'type': 'DisruptionTarget', 'status': "
      "'True'}]}]}");
  EXPECT_EQ(judge_failure(conditions, failed_pod("p", 3)).message,
            "Pod a/p has condition DisruptionTarget matching Count rule at index 0");
}

JobPlan plan(const std::string& spec, std::vector<Value> pods, const std::string& status = "{}") {
  JobInput input;
  input.now = kNow;
  input.pods = std::move(pods);
  input.job =
      from_text(cat("{'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': 'j', "
                    "'namespace': 'a', 'uid': 'j'}, 'spec': ",
                    spec, ", 'status': ", status, "}"));
  return plan_job(input);
}

std::string first_condition(const JobPlan& plan) {
  const Value& condition = plan.status["conditions"][0];
  return cat(condition["type"].as_string(), " ", condition["reason"].as_string());
}

TEST(JobPlans, start_what_is_wanted) {
  EXPECT_THAT(plan("{'completions': 3, 'parallelism': 2}", {}).create, SizeIs(2));
  EXPECT_THAT(plan("{'completions': 1, 'parallelism': 5}", {}).create, SizeIs(1));
  EXPECT_THAT(plan("{'parallelism': 5}", {}).create, SizeIs(5));
  EXPECT_THAT(plan("{'parallelism': 5}", {}, "{'succeeded': 1}").create, IsEmpty());
  EXPECT_THAT(plan("{'completions': 3, 'parallelism': 2, 'suspend': true}", {}).create, IsEmpty());
}

TEST(JobPlans, dismiss_what_is_too_many) {
  const std::string running =
      "{'metadata': {'finalizers': ['batch.kubernetes.io/job-tracking']}, 'status': {'phase': "
      "'Running'}}";
  const std::vector<Value> pods = {pod("p1", running), pod("p2", running)};
  const JobPlan fewer = plan("{'completions': 5, 'parallelism': 1}", pods);
  EXPECT_THAT(fewer.dismiss, SizeIs(1));
  EXPECT_THAT(fewer.remove, IsEmpty());
  EXPECT_EQ(fewer.status["active"].as_int(), 1);
  const JobPlan none = plan("{'completions': 5, 'parallelism': 2, 'suspend': true}", pods);
  EXPECT_THAT(none.dismiss, SizeIs(2));
  EXPECT_EQ(none.status["conditions"][0]["reason"].as_string(), "JobSuspended");
}

TEST(JobPlans, count_in_two_steps) {
  const Value done = pod("p",
                         "{'metadata': {'finalizers': ['batch.kubernetes.io/job-tracking']}, "
                         "'status': {'phase': 'Succeeded'}}");
  const JobPlan first = plan("{'completions': 1, 'parallelism': 1, 'backoffLimit': 6}", {done});
  EXPECT_THAT(names_of(first.untrack), ElementsAre("p"));
  EXPECT_EQ(first.status["uncountedTerminatedPods"]["succeeded"][0].as_string(), "uid-p");
  EXPECT_EQ(first.status["succeeded"].as_int(), 0);
  EXPECT_EQ(first_condition(first), "SuccessCriteriaMet CompletionsReached");
  EXPECT_EQ(first.status["conditions"].size(), 1U);

  Value counted = done;
  counted.mut("metadata").erase("finalizers");
  JobInput input;
  input.now = kNow;
  input.pods = {counted};
  input.job = from_text("{'spec': {'completions': 1, 'parallelism': 1}}");
  input.job.set("status", first.status);
  const JobPlan second = plan_job(input);
  EXPECT_EQ(second.status["succeeded"].as_int(), 1);
  EXPECT_EQ(second.status["conditions"][1]["type"].as_string(), "Complete");
  EXPECT_THAT(second.events, SizeIs(1));
}

TEST(JobPlans, fail_for_reasons) {
  struct Case {
    const char* spec;
    const char* expected;
  };
  for (const Case& c :
       {Case{"{'completions': 1, 'parallelism': 1, 'backoffLimit': 0}",
             "FailureTarget BackoffLimitExceeded"},
        Case{"{'completions': 1, 'parallelism': 1, 'backoffLimit': 6, 'podFailurePolicy': "
             "{'rules': [{'action': 'FailJob', 'onExitCodes': {'operator': 'In', 'values': "
             "[1]}}]}}",
             "FailureTarget PodFailurePolicy"},
        Case{"{'completions': 2, 'parallelism': 1, 'completionMode': 'Indexed', "
             "'backoffLimitPerIndex': 0, 'maxFailedIndexes': 0}",
             "FailureTarget MaxFailedIndexesExceeded"},
        Case{"{'completions': 1, 'parallelism': 1, 'completionMode': 'Indexed', "
             "'backoffLimitPerIndex': 0}",
             "FailureTarget FailedIndexes"},
        Case{"{'completions': 1, 'parallelism': 1, 'backoffLimit': 6}", " "}})
    EXPECT_EQ(first_condition(plan(c.spec, {failed_pod("p", 1)})), c.expected) << c.spec;
}

TEST(JobPlans, succeed_by_policy) {
  const JobPlan met = plan(
      "{'completions': 3, 'parallelism': 3, 'completionMode': 'Indexed', 'successPolicy': "
      "{'rules': [{'succeededIndexes': '1-2', 'succeededCount': 2}, {'succeededIndexes': "
      "'0'}]}}",
      {}, "{'completedIndexes': '0', 'succeeded': 1}");
  EXPECT_EQ(first_condition(met), "SuccessCriteriaMet SuccessPolicy");
  EXPECT_EQ(met.status["conditions"][0]["message"].as_string(), "Matched rules at index 1");
}

TEST(JobPlans, wait_longer_after_each_failure) {
  EXPECT_EQ((JobBackoff{0, kNow}.wait(kNow)), Duration(0));
  EXPECT_EQ((JobBackoff{1, kNow}.wait(kNow)), std::chrono::seconds(10));
  EXPECT_EQ((JobBackoff{3, kNow}.wait(kNow + std::chrono::seconds(5))), std::chrono::seconds(35));
  EXPECT_EQ((JobBackoff{50, kNow}.wait(kNow)), std::chrono::minutes(10));
}

StatefulPlan stateful(const std::string& spec, const std::vector<Value>& pods) {
  StatefulInput input;
  input.now = kNow;
  input.set =
      from_text(cat("{'apiVersion': 'apps/v1', 'kind': 'StatefulSet', 'metadata': {'name': "
                    "'db', 'namespace': 'a', 'uid': 's'}, 'spec': ",
                    spec, "}"));
  input.pods = pods;
  input.current_revision = from_text("{'metadata': {'name': 'db-old'}}");
  input.update_revision = from_text("{'metadata': {'name': 'db-new'}}");
  return plan_stateful_set(input);
}

Value member(int ordinal, const std::string& revision, bool ready) {
  return pod(cat("db-", ordinal),
             cat("{'metadata': {'labels': {'controller-revision-hash': 'db-", revision,
                 "'}}, 'status': {'phase': 'Running', 'conditions': [{'type': 'Ready', 'status': '",
                 ready ? "True" : "False", "'}]}}"));
}

TEST(StatefulPlans, keep_their_order) {
  const auto created = [](const StatefulPlan& plan) {
    std::vector<std::string> names;
    for (const StatefulPod& wanted : plan.create) names.emplace_back(name_of(wanted.pod));
    return names;
  };
  EXPECT_THAT(created(stateful("{'replicas': 3}", {})), ElementsAre("db-0"));
  EXPECT_THAT(created(stateful("{'replicas': 3, 'podManagementPolicy': 'Parallel'}", {})),
              ElementsAre("db-0", "db-1", "db-2"));
  EXPECT_THAT(created(stateful("{'replicas': 1, 'ordinals': {'start': 5}}", {})),
              ElementsAre("db-5"));
  EXPECT_THAT(created(stateful("{'replicas': 3}", {member(0, "new", false)})), IsEmpty());
  EXPECT_THAT(created(stateful("{'replicas': 3}", {member(0, "new", true)})), ElementsAre("db-1"));

  const std::vector<Value> three = {member(0, "old", true), member(1, "old", true),
                                    member(2, "old", true)};
  EXPECT_THAT(names_of(stateful("{'replicas': 1}", three).remove), ElementsAre("db-2"));
  EXPECT_THAT(names_of(stateful("{'replicas': 3}", three).remove), ElementsAre("db-2"));
  EXPECT_THAT(
      names_of(stateful("{'replicas': 3, 'updateStrategy': {'type': 'OnDelete'}}", three).remove),
      IsEmpty());
  EXPECT_THAT(names_of(stateful("{'replicas': 3, 'updateStrategy': {'rollingUpdate': "
                                "{'partition': 3}}}",
                                three)
                           .remove),
              IsEmpty());
  EXPECT_THAT(names_of(stateful("{'replicas': 3, 'updateStrategy': {'rollingUpdate': "
                                "{'maxUnavailable': 2}}}",
                                three)
                           .remove),
              ElementsAre("db-2", "db-1"));
  const StatefulPlan halfway =
      stateful("{'replicas': 3}", {three[0], three[1], member(2, "new", false)});
  EXPECT_THAT(halfway.remove, IsEmpty());
  EXPECT_EQ(halfway.status["updatedReplicas"].as_int(), 1);
  EXPECT_EQ(halfway.status["currentRevision"].as_string(), "db-old");
}

TEST(StatefulPods, have_their_own_volumes) {
  const Value set = from_text(
      "{'metadata': {'name': 'db', 'namespace': 'a'}, 'spec': {'serviceName': 'svc', 'selector': "
      "{'matchLabels': {'app': 'db'}}, 'volumeClaimTemplates': [{'metadata': {'name': 'data'}, "
      "'spec': {}}]}}");
  const Value revision = from_text(
      "{'metadata': {'name': 'db-r'}, 'data': {'spec': {'template': {'$patch': 'replace', 'spec': "
      "{'volumes': [{'name': 'data', 'emptyDir': {}}, {'name': 'tmp', 'emptyDir': {}}]}}}}}");
  const StatefulPod made = stateful_pod(set, revision, 4);
  EXPECT_EQ(name_of(made.pod), "db-4");
  EXPECT_EQ(made.pod["spec"]["subdomain"].as_string(), "svc");
  ASSERT_EQ(made.pod["spec"]["volumes"].size(), 2U);
  EXPECT_EQ(made.pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"].as_string(),
            "data-db-4");
  ASSERT_THAT(made.volume_claims, SizeIs(1));
  EXPECT_EQ(label_of(made.volume_claims[0], "app"), "db");
}

TEST(Revisions, come_back_with_a_new_number) {
  const Value set = from_text(
      "{'apiVersion': 'apps/v1', 'kind': 'DaemonSet', 'metadata': {'name': 'ds'}, 'spec': "
      "{'template': {'spec': {'v': 1}}}}");
  const RevisionPlan first = plan_revisions(set, {}, "h");
  EXPECT_TRUE(first.create);
  EXPECT_EQ(first.current["revision"].as_int(), 1);
  EXPECT_EQ(revision_template(first.current), set["spec"]["template"]);
  Value other = first.current;
  other.mut("metadata").set("name", "ds-2");
  other.set("revision", 2);
  other.set("data", from_text("{}"));
  const RevisionPlan back = plan_revisions(set, {first.current, other}, "h");
  EXPECT_FALSE(back.create);
  EXPECT_TRUE(back.update);
  EXPECT_EQ(back.current["revision"].as_int(), 3);
  EXPECT_THAT(names_of(back.past), ElementsAre("ds-2"));
  Value keeps_none = set;
  keeps_none.mut("spec").set("revisionHistoryLimit", 0);
  EXPECT_THAT(names_of(surplus_revisions(keeps_none, back.past, {})), ElementsAre("ds-2"));
  EXPECT_THAT(surplus_revisions(keeps_none, back.past, {"ds-2"}), IsEmpty());
}

TEST(NodeFits, follow_labels_fields_and_taints) {
  const Value node = from_text(
      "{'metadata': {'name': 'n1', 'labels': {'zone': 'a', 'size': '5'}}, 'spec': {'taints': "
      "[{'key': 'k', 'value': 'v', 'effect': 'NoSchedule'}]}}");
  struct Case {
    const char* term;
    bool expected;
  };
  for (const Case& c :
       {Case{"{'matchExpressions': [{'key': 'zone', 'operator': 'In', 'values': ['a', 'b']}]}",
             true},
        Case{"{'matchExpressions': [{'key': 'zone', 'operator': 'NotIn', 'values': ['a']}]}",
             false},
        Case{"{'matchExpressions': [{'key': 'size', 'operator': 'Gt', 'values': ['4']}]}", true},
        Case{"{'matchExpressions': [{'key': 'none', 'operator': 'DoesNotExist'}]}", true},
        Case{"{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n1']}]}",
             true},
        Case{"{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n2']}]}",
             false},
        Case{"{}", false}})
    EXPECT_EQ(
        api::node_selector_matches(from_text(cat("{'nodeSelectorTerms': [", c.term, "]}")), node),
        c.expected)
        << c.term;
  const auto fit = [&](const std::string& spec) {
    return daemon_fit(from_text(cat("{'spec': {'template': {'spec': ", spec, "}}}")), node);
  };
  EXPECT_FALSE(fit("{}").start);
  EXPECT_TRUE(fit("{}").stay);
  EXPECT_TRUE(fit("{'tolerations': [{'key': 'k', 'operator': 'Exists'}]}").start);
  EXPECT_TRUE(fit("{'tolerations': [{'key': 'k', 'value': 'v'}]}").start);
  EXPECT_FALSE(fit("{'nodeSelector': {'zone': 'b'}}").stay);
}

TEST(DaemonPlans, replace_within_the_budget) {
  const auto daemon = [](const std::string& name, const std::string& hash, bool ready) {
    return pod(name, cat("{'metadata': {'labels': {'controller-revision-hash': '", hash,
                         "'}}, 'spec': {'nodeName': '", name.substr(0, 2),
                         "'}, 'status': {'phase': 'Running', 'conditions': [{'type': 'Ready', "
                         "'status': '",
                         ready ? "True" : "False", "'}]}}"));
  };
  DaemonInput input;
  input.now = kNow;
  input.hash = "new";
  for (const char* name : {"n1", "n2", "n3"})
    input.nodes.push_back(from_text(cat("{'metadata': {'name': '", name, "'}}")));
  const auto with = [&](const std::string& rolling, std::vector<Value> pods) {
    input.set =
        from_text(cat("{'metadata': {'name': 'ds'}, 'spec': {'updateStrategy': {'type': "
                      "'RollingUpdate', 'rollingUpdate': ",
                      rolling, "}}}"));
    input.pods = std::move(pods);
    return plan_daemon_set(input);
  };
  EXPECT_THAT(with("{'maxUnavailable': 1}", {}).create, ElementsAre("n1", "n2", "n3"));
  EXPECT_THAT(names_of(with("{'maxUnavailable': 1}",
                            {daemon("n1a", "old", true), daemon("n2a", "old", true),
                             daemon("n3a", "old", false)})
                           .remove),
              ElementsAre("n3a", "n1a"));
  EXPECT_THAT(with("{'maxUnavailable': 1}", {daemon("n1a", "old", true), daemon("n2a", "old", true),
                                             daemon("n3a", "new", false)})
                  .remove,
              IsEmpty());
  const std::vector<Value> old_ones = {daemon("n1a", "old", true), daemon("n2a", "old", true),
                                       daemon("n3a", "old", true)};
  const DaemonPlan surge = with("{'maxSurge': 1, 'maxUnavailable': 0}", old_ones);
  EXPECT_THAT(surge.create, ElementsAre("n1"));
  EXPECT_THAT(surge.remove, IsEmpty());
  const DaemonPlan landed =
      with("{'maxSurge': 1, 'maxUnavailable': 0}",
           {old_ones[0], daemon("n1b", "new", true), old_ones[1], old_ones[2]});
  EXPECT_THAT(names_of(landed.remove), ElementsAre("n1a"));
  EXPECT_EQ(landed.status["updatedNumberScheduled"].as_int(), 1);
}

}  // namespace
}  // namespace dibs::controllers
