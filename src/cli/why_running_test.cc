#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/why_story.h"
#include "json/test_text.h"

namespace dibs::cli {
namespace {

using json::Value;
using json::test::from_text;
using testing::HasSubstr;
using testing::Not;

struct World : WhyWorld {
  World() {
    now = *parse_rfc3339("2026-03-01T12:00:00Z");
    add("{'kind':'Node','metadata':{'name':'n1'},'status':{'allocatable':{'cpu':'4',"
        "'memory':'8Gi','pods':'10'},'conditions':[{'type':'Ready','status':'True'}]}}");
  }

  void add(const std::string& text) { objects.add(from_text(text)); }
  void add_pod(const std::string& status, const std::string& spec = "",
               const std::string& metadata = "") {
    add(cat("{'kind':'Pod','metadata':{'name':'p','namespace':'default','uid':'p'", metadata,
            "},'spec':{'nodeName':'n1','schedulerName':'default-scheduler','containers':[{'name':"
            "'main','image':'nope:1','resources':{'limits':{'memory':'64Mi'}},'readinessProbe':"
            "{'httpGet':{'path':'/up','port':80}}}]",
            spec, "},'status':{'phase':'Pending'", status.empty() ? "" : ",", status, "}}"));
  }
  /// The state of the container main.
  void add_pod_in(const std::string& state) {
    add_pod(
        cat("'containerStatuses':[{'name':'main','image':'nope:1','restartCount':3,", state, "}]"));
  }
  void add_event(const std::string& reason, const std::string& message,
                 const std::string& time = "2026-03-01T11:00:00Z", const std::string& uid = "p") {
    add(cat("{'kind':'Event','type':'Warning','reason':'", reason, "','message':'", message,
            "','lastTimestamp':'", time, "','involvedObject':{'kind':'Pod','namespace':'default',",
            "'name':'p','uid':'", uid, "','fieldPath':'spec.containers{main}'}}"));
  }
  void add_claim() {
    add("{'kind':'ResourceClaim','metadata':{'name':'c','namespace':'default','uid':'c'},'spec':{"
        "'devices':{'requests':[{'name':'r','exactly':{'deviceClassName':'gpu'}}]}},'status':{"
        "'allocation':{'devices':{'results':[{'request':'r','driver':'gpu.example.com','pool':'n1',"
        "'device':'gpu-0'}]}},'reservedFor':[{'resource':'pods','name':'p','uid':'p'}]}}");
  }
  WhyStory pod() const { return tell_pod(*this, *find_object(objects.pods, "default", "p")); }
};

constexpr const char* kUsesClaim = ",'resourceClaims':[{'name':'c','resourceClaimName':'c'}]";

std::string first_line(const WhyStory& story) {
  return story.page.text().substr(0, story.page.text().find("\n\n"));
}

TEST(WhyRunning, an_image_that_cannot_be_pulled_is_told_with_the_answer_of_the_registry) {
  World world;
  world.add_pod_in("'state':{'waiting':{'reason':'ImagePullBackOff','message':'Back-off'}}");
  world.add_event("Failed", "Failed to pull image: unauthorized");
  world.add_event("Failed", "Error: ErrImagePull", "2026-03-01T10:00:00Z");

  const WhyStory story = world.pod();

  EXPECT_EQ(story.status, 2);
  EXPECT_EQ(story.document["reason"].as_string(), "ImagePull");
  EXPECT_EQ(story.document["message"].as_string(),
            "is on n1 and does not run: container main: image \"nope:1\" cannot be pulled: Failed "
            "to pull image: unauthorized");
  EXPECT_THAT(story.page.text(), HasSubstr("spec.imagePullSecrets"));
  EXPECT_THAT(story.page.text(), Not(HasSubstr("why there")));
}

TEST(WhyRunning, a_container_that_crashes_is_told_with_its_end) {
  World world;
  world.add_pod_in(
      "'state':{'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{'terminated':{'exitCode':137,"
      "'reason':'OOMKilled','finishedAt':'2026-03-01T11:59:00Z'}}");

  const WhyStory story = world.pod();

  EXPECT_EQ(story.document["reason"].as_string(), "CrashLoop");
  EXPECT_THAT(story.document["message"].str(),
              HasSubstr("3 restarts, the last time with exit code 137 (OOMKilled)"));
  EXPECT_THAT(story.page.text(), HasSubstr("give container main more memory than 64Mi"));
  EXPECT_THAT(story.page.text(), HasSubstr("kubectl logs -n default p -c main --previous"));
}

TEST(WhyRunning, a_command_that_is_not_there_has_said_nothing) {
  World world;
  world.add_pod_in(
      "'state':{'waiting':{'reason':'CrashLoopBackOff'}},'lastState':{'terminated':{'exitCode':128,"
      "'reason':'StartError','message':'no such file'}}");

  const WhyStory story = world.pod();

  EXPECT_THAT(story.page.text(), HasSubstr("check command and args"));
  EXPECT_THAT(story.page.text(), Not(HasSubstr("kubectl logs")));
}

TEST(WhyRunning, a_container_that_was_started_again_is_told_while_it_runs) {
  World world;
  world.add_pod_in(
      "'ready':true,'state':{'running':{}},'lastState':{'terminated':{'exitCode':137,'reason':"
      "'Error'}}");
  world.objects.pods[0].mut("status").set("phase", "Running");
  world.add_event("Unhealthy", "Liveness probe failed: dead");

  const WhyStory story = world.pod();

  EXPECT_EQ(story.status, 0);
  EXPECT_EQ(story.document["restarts"][0].as_string(),
            "container main was started again 3 times; it had ended with exit code 137 (Error); "
            "its probe: Liveness probe failed: dead");
  EXPECT_THAT(first_line(story), HasSubstr("container main was started again 3 times"));
}

TEST(WhyRunning, a_probe_that_fails_is_told_with_what_it_asks) {
  World world;
  world.add("{'kind':'Pod','metadata':{'name':'x'}}");
  world.objects.pods.clear();
  world.add_pod_in("'ready':false,'started':true,'state':{'running':{}}");
  world.objects.pods[0].mut("status").set("phase", "Running");
  world.add_event("Unhealthy", "Readiness probe failed: 500");

  const WhyStory story = world.pod();

  EXPECT_EQ(story.document["reason"].as_string(), "ReadinessProbe");
  EXPECT_THAT(first_line(story), HasSubstr("is not ready: Readiness probe failed: 500"));
  EXPECT_THAT(story.page.text(), HasSubstr("readinessProbe, GET /up at port 80"));
}

TEST(WhyRunning, devices_that_cannot_be_prepared_lead_to_their_driver) {
  World world;
  world.add_claim();
  world.add_pod(
      "'containerStatuses':[{'name':'main','state':{'waiting':{'reason':"
      "'ContainerCreating'}}}]",
      kUsesClaim);
  world.add_event("FailedPrepareDynamicResources", "Failed to prepare dynamic resources: no");

  const WhyStory story = world.pod();

  EXPECT_EQ(story.document["reason"].as_string(), "Prepare");
  EXPECT_THAT(story.page.text(), HasSubstr("start driver gpu.example.com on n1"));

  // What happened before the containers ran is over.
  world.objects.pods[0].set("status", from_text("{'phase':'Running','containerStatuses':[{'name':"
                                                "'main','ready':true,'state':{'running':{}}}]}"));
  EXPECT_EQ(world.pod().status, 0);
}

TEST(WhyRunning, a_pod_that_cannot_go_is_told_with_its_driver) {
  World world;
  world.add_claim();
  world.add_pod("", kUsesClaim, ",'deletionTimestamp':'2026-03-01T11:00:00Z'");
  const WhyStory late = world.pod();
  EXPECT_EQ(late.document["reason"].as_string(), "EndLate");
  EXPECT_THAT(first_line(late), HasSubstr("cannot go: it should have ended by"));

  world.add_event("FailedUnprepareDynamicResources", "DRA driver gpu.example.com not registered");
  const WhyStory story = world.pod();
  EXPECT_EQ(story.document["reason"].as_string(), "Unprepare");
  EXPECT_THAT(story.page.text(), HasSubstr("start driver gpu.example.com on n1"));
}

TEST(WhyRunning, the_rest_of_what_can_be_wrong) {
  struct Case {
    const char* reason;
    const char* status;
    const char* says;
  };
  for (const Case& one : {
           Case{"ContainerConfig",
                "'containerStatuses':[{'name':'main','state':{'waiting':{'reason':"
                "'CreateContainerConfigError','message':'secret s not found'}}}]",
                "secret s not found"},
           Case{"InvalidImageName",
                "'containerStatuses':[{'name':'main','state':{'waiting':{'reason':"
                "'InvalidImageName','message':'bad'}}}]",
                "is no valid name"},
           Case{"RunContainerError",
                "'initContainerStatuses':[{'name':'i','state':{'waiting':{'reason':"
                "'RunContainerError','message':'no such file'}}}]",
                "container i cannot be started: no such file"},
           Case{"DeviceUnhealthy",
                "'containerStatuses':[{'name':'main','ready':true,'state':{'running':{}},"
                "'allocatedResourcesStatus':[{'name':'claim:c/r','resources':[{'resourceID':"
                "'gpu-0','health':'Unhealthy','message':'hot'}]}]}]",
                "gpu-0 of claim:c/r: hot"},
           Case{"ContainerEnded",
                "'containerStatuses':[{'name':'main','state':{'terminated':{'exitCode':127}}}]",
                "has ended with exit code 127"},
       }) {
    SCOPED_TRACE(one.reason);
    World world;
    world.add_pod(one.status);

    const WhyStory story = world.pod();

    EXPECT_EQ(story.document["reason"].as_string(), one.reason);
    EXPECT_THAT(story.document["message"].str(), HasSubstr(one.says));
    EXPECT_EQ(story.document["troubles"][0]["reason"].as_string(), one.reason);
  }
}

TEST(WhyRunning, a_node_that_is_away_comes_first) {
  World world;
  world.add_pod("'containerStatuses':[{'name':'main','ready':true,'state':{'running':{}}}]");
  world.objects.nodes[0].mut("status").set(
      "conditions", from_text("[{'type':'Ready','status':'Unknown','lastTransitionTime':'T'}]"));
  EXPECT_EQ(world.pod().document["reason"].as_string(), "NodeNotReady");

  world.objects.nodes[0].mut("metadata").set("name", "n2");
  EXPECT_EQ(world.pod().document["reason"].as_string(), "NodeGone");
}

TEST(WhyRunning, one_that_has_failed_says_how) {
  World world;
  world.add_pod(
      "'containerStatuses':[{'name':'main','state':{'terminated':{'exitCode':3,"
      "'reason':'Error'}}}]");
  world.objects.pods[0].mut("status").set("phase", "Failed");
  world.objects.pods[0].mut("status").set("reason", "Evicted");
  world.objects.pods[0].mut("status").set("message", "low on memory");

  EXPECT_EQ(world.pod().page.text(),
            "pod default/p has ended (Failed) on n1\n"
            "  Evicted: low on memory\n"
            "  container main ended with exit code 3 (Error)\n");
}

TEST(WhyRunning, a_driver_that_does_not_answer_is_to_be_started) {
  World world;
  world.add_claim();
  world.add_pod("'startTime':'2026-03-01T11:59:00Z'", kUsesClaim,
                ",'deletionTimestamp':'2026-03-01T11:59:30Z'");
  world.add(
      "{'kind':'ResourceSlice','metadata':{'name':'s'},'spec':{'driver':'gpu.example.com',"
      "'nodeName':'n1','pool':{'name':'n1','generation':1,'resourceSliceCount':1},"
      "'devices':[{'name':'gpu-0'}]}}");
  world.add_event("FailedUnprepareDynamicResources",
                  "rpc error: code = Unavailable desc = connection error: connection refused");

  EXPECT_THAT(world.pod().page.text(),
              HasSubstr("start the driver on n1: the node's agent does not reach it"));
}

TEST(WhyRunning, devices_that_somebody_has_made_slow_are_named_with_the_remedy) {
  World world;
  world.objects.nodes[0]
      .mut("metadata")
      .set("annotations",
           Value::object({{"faults.dibs.dev/gpu.example.com",
                           R"({"n1/gpu-0": {"slow": {"prepare": "30s", "unprepare": "5s",)"
                           R"( "since": "2026-03-01T11:00:00Z"}}})"}}));
  world.add_claim();
  world.add_pod("'startTime':'2026-03-01T11:59:00Z'", kUsesClaim);

  const WhyStory starts = world.pod();
  EXPECT_EQ(starts.status, 2);
  EXPECT_EQ(starts.document["reason"].as_string(), "SlowDevice");
  EXPECT_THAT(starts.page.text(), HasSubstr("(gpu.example.com) takes 30s to prepare"));
  EXPECT_THAT(starts.page.text(), HasSubstr("dibs device heal n1/gpu.example.com/gpu-0"));

  world.objects.pods[0].mut("metadata").set("deletionTimestamp", "2026-03-01T11:59:30Z");
  EXPECT_THAT(world.pod().page.text(), HasSubstr("takes 5s to unprepare"));
}

}  // namespace
}  // namespace dibs::cli
