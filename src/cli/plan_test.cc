#include "cli/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "json/test_text.h"

namespace dibs::cli {
namespace {

using json::Value;
using json::test::from_text;
using testing::HasSubstr;

constexpr const char* kUid = "','uid':'00000000-0000-0000-0000-0000000000";

struct Plan : PlanInput {
  Plan() {
    name_space = "default";
    world.now = *parse_rfc3339("2026-03-01T12:00:00Z");
    world.objects.add(
        from_text(cat("{'kind':'Namespace','apiVersion':'v1','metadata':{'name':"
                      "'default",
                      kUid, "01'},'spec':{},'status':{'phase':'Active'}}")));
    for (const char* node : {"n1", "n2"}) {
      world.objects.add(from_text(
          cat("{'kind':'Node','apiVersion':'v1','metadata':{'name':'", node, kUid, node[1],
              "2'},'spec':{},'status':{'allocatable':{'cpu':'2','memory':'8Gi','pods':'10'},"
              "'conditions':[{'type':'Ready','status':'True'}]}}")));
    }
    world.objects.add(
        from_text(cat("{'kind':'DeviceClass','apiVersion':'resource.k8s.io/v1','metadata':{'name':"
                      "'gpu",
                      kUid, "03'},'spec':{}}")));
    world.objects.add(
        from_text(cat("{'kind':'ResourceSlice','apiVersion':'resource.k8s.io/v1','metadata':{"
                      "'name':'s",
                      kUid,
                      "04'},'spec':{'driver':'gpu.io','nodeName':'n1','pool':{'name':'n1',"
                      "'generation':1,'resourceSliceCount':1},'devices':[{'name':'a'},"
                      "{'name':'b'}]}}")));
  }

  void add(const std::string& text) {
    documents.emplace_back(cat("document ", documents.size() + 1), from_text(text));
  }
  PlanOutcome run() {
    auto made = make_plan(*this);
    if (made.ok()) return *made;
    return {-1, "", made.error().message()};
  }
};

std::string pod_with(const std::string& name, const std::string& spec) {
  return cat("{'kind':'Pod','apiVersion':'v1','metadata':{'name':'", name,
             "'},'spec':{'containers':[{'name':'m','image':'x'", spec, "}");
}

constexpr const char* kTemplate =
    "{'kind':'ResourceClaimTemplate','apiVersion':'resource.k8s.io/v1','metadata':{'name':'t'},"
    "'spec':{'spec':{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':'gpu'}}]}}}}";

std::string deployment(int replicas) {
  return cat(
      "{'kind':'Deployment','apiVersion':'apps/v1','metadata':{'name':'web'},'spec':{'replicas':",
      replicas,
      ",'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{"
      "'resourceClaims':[{'name':'c','resourceClaimTemplateName':'t'}],'containers':[{'name':'m',"
      "'image':'x','resources':{'claims':[{'name':'c'}]}}]}}}}");
}

TEST(Plan, tells_nodes_and_devices_and_what_would_wait) {
  Plan plan;
  plan.add(kTemplate);
  plan.add(deployment(3));

  const PlanOutcome made = plan.run();

  EXPECT_EQ(made.status, 1) << made.errors;
  EXPECT_THAT(made.output, HasSubstr("pod 1 of deployment default/web would go to n1\n  "));
  EXPECT_THAT(made.output, HasSubstr("a of pool n1 (gpu.io)\n"));
  EXPECT_THAT(made.output, HasSubstr("b of pool n1 (gpu.io)\n"));
  EXPECT_THAT(made.output, HasSubstr("pod 3 of deployment default/web would wait: none of 2"));
  EXPECT_THAT(made.output, HasSubstr("\n2 pods would run, 1 would wait\n"));
}

TEST(Plan, counts_what_the_cluster_has_already) {
  Plan plan;
  plan.world.objects.add(from_text(cat(
      "{'kind':'ResourceClaim','apiVersion':'resource.k8s.io/v1','metadata':{'name':'held", kUid,
      "05','namespace':'default','finalizers':['resource.kubernetes.io/delete-protection']},"
      "'spec':{'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':'gpu',"
      "'allocationMode':'ExactCount','count':1}}]}},'status':{'allocation':{'devices':{"
      "'results':[{'request':'r','driver':'gpu.io','pool':'n1','device':'a'}]}}}}")));
  plan.add(kTemplate);
  plan.add(deployment(2));

  const PlanOutcome made = plan.run();

  EXPECT_EQ(made.status, 1) << made.errors;
  EXPECT_THAT(made.output, HasSubstr("  b of pool n1 (gpu.io)\n"));
  EXPECT_THAT(made.output, HasSubstr("1 pod would run, 1 would wait"));
}

TEST(Plan, pods_of_a_stateful_set_follow_each_other) {
  Plan plan;
  plan.add(
      "{'kind':'StatefulSet','apiVersion':'apps/v1','metadata':{'name':'set'},'spec':{"
      "'replicas':3,'serviceName':'s','selector':{'matchLabels':{'a':'b'}},'template':{"
      "'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'m','image':'x',"
      "'resources':{'requests':{'cpu':'1'}}}]}}}}");

  const PlanOutcome made = plan.run();

  EXPECT_EQ(made.status, 0) << made.output << made.errors;
  EXPECT_THAT(made.output, HasSubstr("3 pods would run, 0 would wait"));
}

TEST(Plan, volumes_that_somebody_would_provision_are_taken_as_made) {
  Plan plan;
  plan.add(
      "{'kind':'StorageClass','apiVersion':'storage.k8s.io/v1','metadata':{'name':'fast'},"
      "'provisioner':'disks.example.com','volumeBindingMode':'WaitForFirstConsumer'}");
  plan.add(
      "{'kind':'PersistentVolumeClaim','apiVersion':'v1','metadata':{'name':'v'},'spec':{"
      "'storageClassName':'fast','accessModes':['ReadWriteOnce'],'resources':{'requests':{"
      "'storage':'1Gi'}}}}");
  plan.add(cat(pod_with("p", ""),
               "],'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'v'}}]}}"));
  plan.add(cat(pod_with("q", ""),
               "],'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'none'}}]}}"));

  const PlanOutcome made = plan.run();

  EXPECT_THAT(made.output, HasSubstr("pod default/p would go to n")) << made.errors;
  EXPECT_THAT(made.output, HasSubstr("pod default/q would wait: persistentvolumeclaim"));
}

TEST(Plan, names_pods_that_would_be_evicted) {
  Plan plan;
  for (const char* node : {"n1", "n2"}) {
    plan.world.objects.add(from_text(
        cat("{'kind':'Pod','apiVersion':'v1','metadata':{'name':'low-", node, kUid, node[1],
            "6','namespace':'default'},'spec':{'nodeName':'", node,
            "','schedulerName':'default-scheduler','priority':0,'containers':[{'name':'m','image':"
            "'x','resources':{'requests':{'cpu':'2'}}}]},'status':{'phase':'Running'}}")));
  }
  plan.add(
      "{'kind':'PriorityClass','apiVersion':'scheduling.k8s.io/v1','metadata':{'name':'high'},"
      "'value':1000}");
  plan.add(cat(pod_with("p", ",'resources':{'requests':{'cpu':'1'}}"),
               "],'priorityClassName':'high'}}"));

  const PlanOutcome made = plan.run();

  EXPECT_EQ(made.status, 0) << made.output << made.errors;
  EXPECT_THAT(made.output, HasSubstr("pod default/p would go to n"));
  EXPECT_THAT(made.output, HasSubstr("pod default/low-n"));
  EXPECT_THAT(made.output, HasSubstr("would be evicted to make room"));
}

TEST(Plan, hands_on_what_the_server_says_about_a_wrong_object) {
  Plan plan;
  plan.add(cat(pod_with("p", ",'foo':1"), "]}}"));
  const PlanOutcome strict = plan.run();
  EXPECT_EQ(strict.status, -1);
  EXPECT_THAT(strict.errors, HasSubstr("document 1: "));
  EXPECT_THAT(strict.errors, HasSubstr("unknown field \"spec.containers[0].foo\""));

  plan.documents.clear();
  plan.add(
      "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'p','namespace':'nowhere'},'spec':{"
      "'containers':[{'name':'m','image':'x'}]}}");
  EXPECT_THAT(plan.run().errors, HasSubstr("namespaces \"nowhere\" not found"));
}

TEST(Plan, leaves_out_kinds_that_it_does_not_have_and_says_so) {
  Plan plan;
  plan.add("{'kind':'Widget','apiVersion':'example.com/v1','metadata':{'name':'w'}}");
  plan.add(cat(pod_with("p", ""), "]}}"));
  plan.as_json = true;

  const PlanOutcome made = plan.run();

  EXPECT_EQ(made.status, 0) << made.errors;
  EXPECT_THAT(made.errors, HasSubstr("document 1: example.com/v1 Widget is left out"));
  const Value document = *json::parse(made.output);
  EXPECT_EQ(document["running"].as_int(), 1);
  EXPECT_EQ(document["pods"][0]["state"].as_string(), "Placed");
}

}  // namespace
}  // namespace dibs::cli
