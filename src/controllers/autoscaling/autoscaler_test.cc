// The autoscaler: its decisions as functions, and against a whole server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/autoscaling/replica_plan.h"
#include "controllers/autoscaling/scaling_history.h"
#include "controllers/autoscaling/selector_index.h"
#include "controllers/test_cluster.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

const Time kNow = *parse_rfc3339("2026-01-01T01:00:00Z");
const Gvr kAutoscalers = {"autoscaling", "v2", "horizontalpodautoscalers"};
const Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
const Gvr kPodMetrics = {"metrics.k8s.io", "v1beta1", "pods"};

// --- functions ---

Value pod(const std::string& name, const std::string& phase = "Running", bool ready = true) {
  return from_text(
      cat("{'metadata':{'name':'", name, "'},'spec':{'containers':[{'name':'c','resources':",
          "{'requests':{'cpu':'100m'}}},{'name':'d','resources':{'requests':{'cpu':'100m'}}}]},",
          "'status':{'phase':'", phase,
          "','startTime':'2026-01-01T00:00:00Z','conditions':[{'type':", "'Ready','status':'",
          ready ? "True" : "False", "','lastTransitionTime':'2026-01-01T00:00:10Z'}]}}"));
}

Measured measured(std::vector<Value> pods) {
  const auto count = std::ssize(pods);
  return {count, std::move(pods), {}, {}, kNow};
}

PodUsages usages(std::initializer_list<std::pair<const char*, int>> values) {
  PodUsages out;
  for (const auto& [name, value] : values) out[name] = {kNow, std::chrono::seconds(15), value};
  return out;
}

TEST(ReplicaPlan, follows_the_share_of_what_is_requested) {
  const auto two = measured({pod("a"), pod("b")});

  const auto grown = propose_by_utilization(two, usages({{"a", 200}, {"b", 100}}), "cpu", "", 50);
  const auto same = propose_by_utilization(two, usages({{"a", 108}, {"b", 108}}), "cpu", "", 50);
  const auto fewer = propose_by_utilization(two, usages({{"a", 20}, {"b", 20}}), "cpu", "", 50);
  const auto one = propose_by_utilization(two, usages({{"a", 100}, {"b", 100}}), "cpu", "d", 50);

  EXPECT_EQ(grown->replicas, 3);
  EXPECT_EQ(grown->utilization, 75);
  EXPECT_EQ(grown->usage, 150);
  EXPECT_EQ(same->replicas, 2);
  EXPECT_EQ(fewer->replicas, 1);
  EXPECT_EQ(one->replicas, 4);
  EXPECT_EQ(propose_by_utilization(two, usages({{"a", 1}}), "memory", "", 50).error().message(),
            "missing request for memory in container c of Pod a");
  EXPECT_EQ(propose_by_utilization(two, usages({{"a", 1}}), "cpu", "x", 50).error().message(),
            "container x not found in Pod a");
  EXPECT_EQ(propose_by_utilization(measured({}), {}, "cpu", "", 50).error().message(),
            "no pods returned by selector while calculating replica count");
}

TEST(ReplicaPlan, counts_pods_that_are_not_measured_against_the_change) {
  // Growing: as idle, so three instead of four.
  EXPECT_EQ(propose_by_average(measured({pod("a"), pod("b")}), usages({{"a", 300}}), "cpu", 100)
                ->replicas,
            3);
  // Shrinking: as busy, so no change.
  EXPECT_EQ(
      propose_by_average(measured({pod("a"), pod("b")}), usages({{"a", 20}}), "cpu", 100)->replicas,
      2);
  // Growth that turns into the opposite is none.
  EXPECT_EQ(
      propose_by_average(measured({pod("a"), pod("b"), pod("c")}), usages({{"a", 150}}), "cpu", 100)
          ->replicas,
      3);
}

TEST(ReplicaPlan, leaves_out_pods_that_are_not_ready) {
  const auto mixed = measured({pod("a"), pod("b", "Pending"), pod("c", "Failed")});
  EXPECT_EQ(
      propose_by_average(mixed, usages({{"a", 500}, {"b", 500}, {"c", 900}}), "cpu", 100)->replicas,
      5);
  auto fresh = measured({pod("a")});
  fresh.now = *parse_rfc3339("2026-01-01T00:01:00Z");
  PodUsages early = {{"a", {*parse_rfc3339("2026-01-01T00:00:20Z"), std::chrono::seconds(15), 9}}};
  EXPECT_EQ(propose_by_average(fresh, early, "cpu", 1).error().message(),
            "did not receive metrics for targeted pods (pods might be unready)");
  early["a"].at = *parse_rfc3339("2026-01-01T00:00:25Z");
  EXPECT_EQ(propose_by_average(fresh, early, "cpu", 1)->replicas, 9);
}

TEST(ReplicaPlan, divides_values_that_belong_to_no_pod) {
  const auto two = measured({pod("a"), pod("b")});
  EXPECT_EQ(propose_by_value(two, 3000, 1000)->replicas, 6);
  EXPECT_EQ(propose_by_value(two, 1050, 1000)->replicas, 2);
  EXPECT_EQ(propose_by_value(measured({}), 2500, 1000)->replicas, 3);
  EXPECT_EQ(propose_by_value(measured({}), 0, 1000)->replicas, 0);
  EXPECT_EQ(propose_by_share(2, {}, 9000, 1000).replicas, 9);
  EXPECT_EQ(propose_by_share(2, {}, 9001, 1000).usage, 4501);
  EXPECT_EQ(propose_by_share(0, {}, 3000, 1000).replicas, 3);
}

Value spec_of(const std::string& more) {
  return from_text(cat("{'minReplicas':1,'maxReplicas':20", more, "}"));
}

TEST(ScalingHistory, goes_down_to_the_most_of_the_last_minutes) {
  ScalingHistory history;
  const Value spec = spec_of("");
  const Duration window = std::chrono::minutes(5);
  history.begin(5, kNow);

  const auto early = history.settle(spec, 5, 2, window, kNow + std::chrono::minutes(4));
  const auto late = history.settle(spec, 5, 1, window, kNow + std::chrono::minutes(6));

  EXPECT_EQ(early.replicas, 5);
  EXPECT_EQ(early.able.reason, "ScaleDownStabilized");
  EXPECT_EQ(late.replicas, 2);
}

TEST(ScalingHistory, grows_to_the_double_or_to_four) {
  ScalingHistory history;
  const Value spec = spec_of("");
  const auto small = history.settle(spec, 1, 10, Duration(0), kNow);
  EXPECT_EQ(small.replicas, 4);
  EXPECT_TRUE(small.limited);
  EXPECT_EQ(small.limit.reason, "ScaleUpLimit");
  const auto large = history.settle(spec, 15, 40, Duration(0), kNow);
  EXPECT_EQ(large.replicas, 20);
  EXPECT_EQ(large.limit.reason, "TooManyReplicas");
}

TEST(ScalingHistory, keeps_to_policies_over_their_periods) {
  ScalingHistory history;
  const Value spec = spec_of(
      ",'behavior':{'scaleUp':{'stabilizationWindowSeconds':0,'selectPolicy':'Min','policies':["
      "{'type':'Pods','value':2,'periodSeconds':60},{'type':'Percent','value':100,"
      "'periodSeconds':60}]},'scaleDown':{'stabilizationWindowSeconds':0,'selectPolicy':'Max',"
      "'policies':[{'type':'Pods','value':1,'periodSeconds':30}]}}");

  const auto first = history.settle(spec, 4, 10, Duration(0), kNow);
  history.scaled(4, 6, kNow);
  const auto second = history.settle(spec, 6, 10, Duration(0), kNow + std::chrono::seconds(30));
  const auto third = history.settle(spec, 6, 10, Duration(0), kNow + std::chrono::seconds(61));
  const auto down = history.settle(spec, 6, 1, Duration(0), kNow + std::chrono::seconds(100));
  history.scaled(6, 5, kNow + std::chrono::seconds(100));
  const auto again = history.settle(spec, 5, 1, Duration(0), kNow + std::chrono::seconds(115));

  EXPECT_EQ(first.replicas, 6);
  EXPECT_EQ(second.replicas, 6);
  EXPECT_EQ(second.limit.reason, "ScaleUpLimit");
  EXPECT_EQ(third.replicas, 8);
  EXPECT_EQ(down.replicas, 5);
  EXPECT_EQ(down.limit.reason, "ScaleDownLimit");
  EXPECT_EQ(again.replicas, 5);
}

TEST(ScalingHistory, a_direction_can_be_closed) {
  ScalingHistory history;
  const Value spec = spec_of(
      ",'behavior':{'scaleUp':{'stabilizationWindowSeconds':0,'selectPolicy':'Max','policies':["
      "{'type':'Pods','value':9,'periodSeconds':15}]},'scaleDown':{'stabilizationWindowSeconds':0,"
      "'selectPolicy':'Disabled','policies':[{'type':'Pods','value':1,'periodSeconds':15}]}}");
  EXPECT_EQ(history.settle(spec, 6, 1, Duration(0), kNow).replicas, 6);
  EXPECT_EQ(history.settle(spec, 6, 9, Duration(0), kNow + std::chrono::seconds(1)).replicas, 9);
}

TEST(SelectorIndex, finds_all_that_select_a_pod) {
  SelectorIndex index;
  index.put("ns", "one", *api::parse_label_selector("app=web"));
  index.put("ns", "two", *api::parse_label_selector("app in (web,db)"));
  index.put("ns", "other", *api::parse_label_selector("app=db"));
  index.put("elsewhere", "three", *api::parse_label_selector("app=web"));
  const std::vector<Value> pods = {from_text("{'metadata':{'labels':{'app':'web','x':'y'}}}")};

  EXPECT_THAT(index.selecting("ns", pods, 5), ElementsAre("one", "two"));
  EXPECT_THAT(index.selecting("ns", pods, 1).size(), 1);
  index.put("ns", "one", *api::parse_label_selector("app=db"));
  index.erase("ns", "other");
  EXPECT_THAT(index.selecting("ns", pods, 5), ElementsAre("two"));
}

// --- against a server ---

/// A cluster in which somebody serves metrics: definitions of their groups.
class World : public TestCluster {
 public:
  World() {
    define("metrics.k8s.io", "pods", "PodMetrics");
    create(kDeploymentResource, "default",
           "{'metadata':{'name':'web'},'spec':{'replicas':1,'selector':{'matchLabels':{'app':'web'"
           "}},'template':{'metadata':{'labels':{'app':'web'}},'spec':{'containers':[{'name':'c',"
           "'image':'i','resources':{'requests':{'cpu':'100m'}}}]}}}}");
    settle();
    run_pods();
  }

  void define(const std::string& group, const std::string& plural, const std::string& kind) {
    create(kDefinitions, "",
           cat("{'metadata':{'name':'", plural, ".", group,
               "','annotations':{'api-approved.kubernetes.io':'unapproved, for a test'}},'spec':{",
               "'group':'", group, "','scope':'Namespaced','names':{'plural':'", plural,
               "','kind':'", kind, "'},'versions':[{'name':'v1beta1','served':true,'storage':true,",
               "'schema':{'openAPIV3Schema':{'type':'object',",
               "'x-kubernetes-preserve-unknown-fields':true}}}]}}"));
    settle();
  }

  std::int64_t replicas() {
    return get(kDeploymentResource, "default", "web")["spec"]["replicas"].as_int();
  }

  /// All pods run, are ready, and have been for long.
  void run_pods() {
    settle();
    for (const Value& one : list(kPods, "default")) {
      patch(kPods, "default", std::string(name_of(one)),
            "{'status':{'phase':'Running','startTime':'2000-01-01T00:00:00Z','conditions':[{'type':"
            "'Ready','status':'True','lastTransitionTime':'2000-01-01T00:00:01Z'}]}}",
            "status");
    }
    settle();
  }

  void measure(const std::string& cpu) {
    for (const Value& old : list(kPodMetrics, "default"))
      remove(kPodMetrics, "default", std::string(name_of(old)));
    for (const Value& one : list(kPods, "default")) {
      create(kPodMetrics, "default",
             cat("{'apiVersion':'metrics.k8s.io/v1beta1','kind':'PodMetrics','metadata':{'name':'",
                 name_of(one), "','labels':{'app':'web'}},'timestamp':'",
                 format_rfc3339(sim.runtime().clock.now()), "','window':'15s','containers':[{",
                 "'name':'c','usage':{'cpu':'", cpu, "','memory':'1Mi'}}]}"));
    }
  }

  void autoscale(const std::string& more = "") {
    create(kAutoscalers, "default",
           cat("{'metadata':{'name':'web'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind':"
               "'Deployment','name':'web'},'minReplicas':1,'maxReplicas':5",
               more, "}}"));
    settle();
  }

  Value autoscaler(const std::string& name = "web") { return get(kAutoscalers, "default", name); }
  std::string condition(std::string_view type) {
    const Value& one = condition_in(autoscaler()["status"]["conditions"], type);
    return cat(one["status"].as_string(), ' ', one["reason"].as_string(), ' ',
               one["message"].as_string());
  }
};

TEST(Autoscaler, grows_with_the_load_and_shrinks_when_it_has_been_gone_for_minutes) {
  World world;
  world.measure("200m");
  world.autoscale();

  EXPECT_EQ(world.replicas(), 3);
  const Value status = world.autoscaler()["status"];
  EXPECT_EQ(status["currentReplicas"].as_int(), 1);
  EXPECT_EQ(status["desiredReplicas"].as_int(), 3);
  EXPECT_EQ(status["observedGeneration"].as_int(), 1);
  EXPECT_TRUE(status.contains("lastScaleTime"));
  EXPECT_EQ(json::write(status["currentMetrics"]),
            R"([{"type":"Resource","resource":{"name":"cpu","current":)"
            R"({"averageValue":"200m","averageUtilization":200}}}])");
  EXPECT_EQ(world.condition("AbleToScale"),
            "True SucceededRescale the HPA controller was able to update the target scale to 3");
  EXPECT_EQ(world.condition("ScalingActive"),
            "True ValidMetricFound the HPA was able to successfully calculate a replica count from "
            "cpu resource utilization (percentage of request)");
  EXPECT_EQ(world.condition("ScaledToZero"),
            "False NotScaledToZero the HPA controller did not scale the workload to zero");
  EXPECT_THAT(world.events("default", "web"),
              Contains("Normal SuccessfulRescale New size: 3; reason: cpu resource utilization "
                       "(percentage of request) above target"));

  world.run_pods();
  world.measure("8m");
  world.settle(std::chrono::minutes(4));
  EXPECT_EQ(world.replicas(), 3);
  EXPECT_THAT(world.condition("AbleToScale"), StartsWith("True ScaleDownStabilized"));
  world.settle(std::chrono::minutes(2));
  EXPECT_EQ(world.replicas(), 1);
  EXPECT_THAT(world.events("default", "web"),
              Contains("Normal SuccessfulRescale New size: 1; reason: All metrics below target"));
}

TEST(Autoscaler, says_why_it_cannot_measure) {
  World world;
  world.autoscale();

  EXPECT_EQ(world.replicas(), 1);
  EXPECT_EQ(world.condition("ScalingActive"),
            "False FailedGetResourceMetric the HPA was unable to compute the replica count: failed "
            "to get cpu utilization: unable to get metrics for resource cpu: no metrics returned "
            "from resource metrics API");
  EXPECT_THAT(
      world.events("default", "web"),
      Contains("Warning FailedComputeMetricsReplicas invalid metrics (1 invalid out of 1), first "
               "error is: failed to get cpu resource metric value: failed to get cpu utilization: "
               "unable to get metrics for resource cpu: no metrics returned from resource metrics "
               "API"));
}

TEST(Autoscaler, says_that_nobody_serves_other_metrics) {
  World world;
  world.autoscale(
      ",'metrics':[{'type':'External','external':{'metric':{'name':'queue'},'target':{'type':"
      "'AverageValue','averageValue':'10'}}}]");
  EXPECT_EQ(world.condition("ScalingActive"),
            "False FailedGetExternalMetric the HPA was unable to compute the replica count: unable "
            "to get external metric default/queue/nil: unable to fetch metrics from external "
            "metrics API: the server could not find the requested resource (get "
            "queue.external.metrics.k8s.io)");
  world.patch(kAutoscalers, "default", "web",
              "{'spec':{'metrics':[{'type':'Pods','pods':{'metric':{'name':'hits'},'target':{'type'"
              ":'AverageValue','averageValue':'10'}}}]}}");
  world.settle();
  EXPECT_EQ(world.condition("ScalingActive"),
            "False FailedGetPodsMetric the HPA was unable to compute the replica count: unable to "
            "get metric hits: unable to fetch metrics from custom metrics API: no custom metrics "
            "API (custom.metrics.k8s.io) registered");
}

TEST(Autoscaler, goes_to_zero_and_comes_back_by_an_external_metric) {
  World world;
  world.define("external.metrics.k8s.io", "queues", "Queue");
  const Gvr queues = {"external.metrics.k8s.io", "v1beta1", "queues"};
  world.create(
      queues, "default",
      "{'apiVersion':'external.metrics.k8s.io/v1beta1','kind':'Queue','metadata':{'name':'q'},"
      "'value':'0'}");
  world.autoscale(
      ",'metrics':[{'type':'External','external':{'metric':{'name':'queues'},'target':{'type':"
      "'Value','value':'10'}}}],'behavior':{'scaleDown':{'stabilizationWindowSeconds':0}}");
  EXPECT_EQ(world.replicas(), 1);

  world.patch(kAutoscalers, "default", "web", "{'spec':{'minReplicas':0}}");
  world.settle(std::chrono::seconds(16));
  EXPECT_EQ(world.replicas(), 0);
  EXPECT_THAT(world.condition("ScaledToZero"), StartsWith("True ScaledToZero"));

  world.patch(queues, "default", "q", "{'value':'25'}");
  world.settle(std::chrono::seconds(16));
  EXPECT_EQ(world.replicas(), 3);
  EXPECT_THAT(world.condition("ScaledToZero"), StartsWith("False NotScaledToZero"));
}

TEST(Autoscaler, adds_external_metrics_of_any_size) {
  World world;
  world.define("external.metrics.k8s.io", "queues", "Queue");
  const auto put = [&](const char* name, const char* value) {
    world.create({"external.metrics.k8s.io", "v1beta1", "queues"}, "default",
                 cat("{'apiVersion':'external.metrics.k8s.io/v1beta1','kind':'Queue','metadata':{"
                     "'name':'",
                     name, "'},'value':'", value, "'}"));
  };
  put("q", "-9223372036854775");
  put("r", "-9223372036854775");
  world.autoscale(
      ",'metrics':[{'type':'External','external':{'metric':{'name':'queues'},'target':{'type':"
      "'Value','value':'10'}}}]");
  EXPECT_EQ(world.replicas(), 1);
}

TEST(Autoscaler, leaves_a_target_alone_that_somebody_else_scaled_to_zero) {
  World world;
  world.patch(kDeploymentResource, "default", "web", "{'spec':{'replicas':0}}");
  world.autoscale();
  world.settle(std::chrono::seconds(31));
  EXPECT_EQ(world.replicas(), 0);
  EXPECT_EQ(world.condition("ScalingActive"),
            "False ScalingDisabled scaling is disabled since the replica count of the target is "
            "zero");
}

TEST(Autoscaler, keeps_a_target_within_its_bounds_whatever_is_measured) {
  World world;
  world.autoscale(",'behavior':{'scaleUp':{'tolerance':'0'}}");
  world.patch(kDeploymentResource, "default", "web", "{'spec':{'replicas':9}}");
  world.settle(std::chrono::seconds(16));
  EXPECT_EQ(world.replicas(), 5);
  EXPECT_THAT(world.events("default", "web"),
              Contains("Normal SuccessfulRescale New size: 5; reason: Current number of replicas "
                       "above Spec.MaxReplicas"));
}

TEST(Autoscaler, says_that_two_fight_over_the_same_pods) {
  World world;
  world.measure("100m");
  world.autoscale();
  world.create(kAutoscalers, "default",
               "{'metadata':{'name':'zweb'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind'"
               ":'Deployment','name':'web'},'maxReplicas':5}}");
  world.settle(std::chrono::seconds(16));
  EXPECT_EQ(world.condition("ScalingActive"),
            "False AmbiguousSelector pods by selector app=web are controlled by more than one HPA "
            "(e.g. [{web default} {zweb default}])");
}

TEST(Autoscaler, says_that_its_target_is_not_there) {
  World world;
  world.create(kAutoscalers, "default",
               "{'metadata':{'name':'none'},'spec':{'scaleTargetRef':{'apiVersion':'apps/v1','kind'"
               ":'Deployment','name':'none'},'maxReplicas':5}}");
  world.create(kAutoscalers, "default",
               "{'metadata':{'name':'odd'},'spec':{'scaleTargetRef':{'apiVersion':'odd.io/v1',"
               "'kind':'Odd','name':'none'},'maxReplicas':5}}");
  world.settle();
  EXPECT_THAT(world.events("default", "none"),
              Contains("Warning FailedGetScale deployments.apps \"none\" not found"));
  EXPECT_THAT(world.events("default", "odd"),
              Contains("Warning FailedGetScale no matches for kind \"Odd\" in group \"odd.io\""));
  EXPECT_THAT(
      json::write(world.autoscaler("none")["status"]["conditions"][0]),
      HasSubstr(
          "the HPA controller was unable to get the target's current scale: deployments.apps"));
}

}  // namespace
}  // namespace dibs::controllers
