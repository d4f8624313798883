#include "node/streams/pod_lookup.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "node/streams/fake_runtime.h"

namespace dibs::node {
namespace {

json::Value pod_with(std::string_view container_status) {
  const auto pod = json::parse(cat(R"({"metadata":{"name":"p","namespace":"n","uid":"u"},)",
                                   R"("spec":{"containers":[{"name":"c"}]},)",
                                   R"("status":{"containerStatuses":[)", container_status, "]}}"));
  EXPECT_TRUE(pod.ok()) << container_status;
  return pod.ok() ? *pod : json::Value();
}

TEST(ContainerWithLog, follows_the_status) {
  const struct {
    const char* status;
    bool previous;
    const char* expected;
  } cases[] = {
      {R"({"name":"c","containerID":"r://one","state":{"running":{}}})", false, "one"},
      {R"({"name":"c","containerID":"r://one","state":{"running":{}}})", true,
       R"(previous terminated container "c" in pod "p" not found)"},
      {R"({"name":"c","containerID":"r://two","state":{"running":{}},
           "lastState":{"terminated":{"containerID":"r://one"}}})",
       true, "one"},
      {R"({"name":"c","state":{"terminated":{"containerID":"r://one"}}})", false, "one"},
      {R"({"name":"c","state":{"terminated":{}},
           "lastState":{"terminated":{"containerID":"r://zero"}}})",
       false, "zero"},
      {R"({"name":"c","state":{"terminated":{}}})", false,
       R"(container "c" in pod "p" is terminated)"},
      {R"({"name":"c","state":{"waiting":{"reason":"CrashLoopBackOff"}},
           "lastState":{"terminated":{"containerID":"r://one"}}})",
       false, "one"},
      {R"({"name":"c","state":{"waiting":{"reason":"ContainerCreating"}}})", false,
       R"(container "c" in pod "p" is waiting to start: ContainerCreating)"},
      {R"({"name":"c","state":{"waiting":{"reason":"ErrImagePull"}}})", false,
       R"(container "c" in pod "p" is waiting to start: image can't be pulled)"},
      {R"({"name":"c","state":{"waiting":{"reason":"ImagePullBackOff"}}})", false,
       R"(container "c" in pod "p" is waiting to start: trying and failing to pull image)"},
      {R"({"name":"c","state":{}})", false,
       R"(container "c" in pod "p" is waiting to start - no logs yet)"},
      {R"({"name":"other","state":{}})", false, R"(container "c" in pod "p" is not available)"},
  };
  for (const auto& one : cases) {
    const auto id = container_with_log(pod_with(one.status), "c", one.previous);
    EXPECT_EQ(id.ok() ? *id : id.error().message(), one.expected) << one.status;
    if (id.ok()) continue;
    EXPECT_EQ(id.error().code(), Code::bad_request);
  }
}

TEST(PodLookup, takes_the_newest_container_that_runs) {
  FakeRuntime runtime;
  const json::Value pod = pod_with("");
  EXPECT_FALSE(*running_container(runtime, pod, "c"));
  EXPECT_FALSE(*ready_sandbox(runtime, pod));
  const std::string first = runtime.add("u", "c", "");
  const std::string second = runtime.add("u", "c", "");
  runtime.add("other", "c", "");
  EXPECT_EQ((*running_container(runtime, pod, "c"))->id, second);
  runtime.stop(second);
  EXPECT_EQ((*running_container(runtime, pod, "c"))->id, first);
  runtime.stop(first);
  EXPECT_FALSE(*running_container(runtime, pod, "c"));
  EXPECT_EQ((*ready_sandbox(runtime, pod))->id, "sandbox-u");
}

TEST(PodLookup, knows_containers_of_every_kind) {
  const auto pod = json::parse(
      R"({"spec":{"containers":[{"name":"a"}],"initContainers":[{"name":"b"}],
          "ephemeralContainers":[{"name":"c"}]}})");
  ASSERT_TRUE(pod.ok());
  for (const char* name : {"a", "b", "c"}) EXPECT_TRUE(has_container(*pod, name));
  EXPECT_FALSE(has_container(*pod, "d"));
}

}  // namespace
}  // namespace dibs::node
