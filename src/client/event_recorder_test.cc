#include "client/event_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"

namespace dibs::client {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

struct EventRecorderTest : testing::Test {
  runtime::SimRuntime sim;
  FakeApi api;
  std::unique_ptr<Transport> transport = make_in_process_transport(api.handler(), sim.runtime());
  Client client{*transport};
  EventRecorder recorder{client, sim.runtime(), {"dibs.io/scheduler", "host-1", 10}};

  EventInput input(const std::string& name, const std::string& note = "no node fits") {
    json::Value pod = fake_pod("a", name);
    pod.mut("metadata").set("uid", "u-" + name);
    return {pod, {}, true, "FailedScheduling", "Scheduling", note};
  }
  std::vector<json::Value> events() {
    return client.list({"events.k8s.io", "v1", "events"}, "")->items;
  }
};

TEST_F(EventRecorderTest, writes_an_event) {
  recorder.record(input("p"));
  sim.run_until_idle();
  const auto all = events();
  ASSERT_EQ(all.size(), 1U);
  const json::Value& event = all[0];
  EXPECT_TRUE(event["metadata"]["name"].as_string().starts_with("p."));
  EXPECT_EQ(event["metadata"]["namespace"].as_string(), "a");
  EXPECT_EQ(event["eventTime"].as_string(), "2023-11-14T22:13:20.000000Z");
  EXPECT_EQ(event["type"].as_string(), "Warning");
  EXPECT_EQ(event["reason"].as_string(), "FailedScheduling");
  EXPECT_EQ(event["action"].as_string(), "Scheduling");
  EXPECT_EQ(event["note"].as_string(), "no node fits");
  EXPECT_EQ(event["reportingController"].as_string(), "dibs.io/scheduler");
  EXPECT_EQ(event["reportingInstance"].as_string(), "host-1");
  EXPECT_EQ(json::write(event["regarding"]),
            R"({"kind":"Pod","namespace":"a","name":"p","uid":"u-p","apiVersion":"v1"})");
  EXPECT_TRUE(event["series"].is_null());
  EXPECT_TRUE(recorder.idle());
}

TEST_F(EventRecorderTest, writes_core_events_with_a_count) {
  EventRecorderOptions options;
  options.controller = "resource_claim";
  options.core = true;
  EventRecorder core(client, sim.runtime(), options);
  core.record(input("p"));
  sim.advance(seconds(10));
  core.record(input("p"));
  sim.run_until_idle();
  const auto all = client.list({"", "v1", "events"}, "")->items;
  ASSERT_EQ(all.size(), 1U);
  const json::Value& event = all[0];
  EXPECT_EQ(event["source"]["component"].as_string(), "resource_claim");
  EXPECT_EQ(event["message"].as_string(), "no node fits");
  EXPECT_EQ(event["involvedObject"]["name"].as_string(), "p");
  EXPECT_EQ(event["firstTimestamp"].as_string(), "2023-11-14T22:13:20Z");
  EXPECT_EQ(event["lastTimestamp"].as_string(), "2023-11-14T22:13:30Z");
  EXPECT_EQ(event["count"].as_int(), 2);
}

TEST_F(EventRecorderTest, counts_repeats_in_a_series) {
  for (int i = 0; i < 5; ++i) {
    recorder.record(input("p"));
    sim.advance(seconds(10));
  }
  recorder.record(input("p", "something else"));
  recorder.record(input("q"));
  sim.run_until_idle();
  const auto all = events();
  ASSERT_EQ(all.size(), 3U);
  int counted = 0;
  for (const auto& event : all) {
    if (event["series"].is_null()) continue;
    ++counted;
    EXPECT_EQ(event["series"]["count"].as_int(), 5);
    EXPECT_EQ(event["series"]["lastObservedTime"].as_string(), "2023-11-14T22:14:00.000000Z");
    EXPECT_EQ(event["eventTime"].as_string(), "2023-11-14T22:13:20.000000Z");
  }
  EXPECT_EQ(counted, 1);
}

TEST_F(EventRecorderTest, starts_a_new_event_after_a_long_silence) {
  recorder.record(input("p"));
  sim.advance(minutes(7));
  recorder.record(input("p"));
  sim.run_until_idle();
  EXPECT_EQ(events().size(), 2U);
}

TEST_F(EventRecorderTest, uses_default_for_objects_without_a_namespace) {
  json::Value node = json::Value::object(
      {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", json::Value::object({{"name", "n"}})}});
  recorder.record({node, {}, false, "Ready", "Heartbeat", std::string(5000, 'x')});
  sim.run_until_idle();
  const auto all = events();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0]["metadata"]["namespace"].as_string(), "default");
  EXPECT_EQ(all[0]["type"].as_string(), "Normal");
  EXPECT_EQ(all[0]["note"].as_string().size(), 1024U);
}

TEST_F(EventRecorderTest, tries_again_and_then_gives_up) {
  api.fail("POST", 503, "ServiceUnavailable", 2);
  recorder.record(input("p"));
  sim.advance(seconds(60));
  EXPECT_EQ(events().size(), 1U);
  EXPECT_EQ(recorder.dropped(), 0U);

  api.fail("POST", 403, "Forbidden", 1);
  recorder.record(input("q"));
  sim.run_until_idle();
  EXPECT_EQ(recorder.dropped(), 1U);
  EXPECT_TRUE(recorder.idle());
}

TEST_F(EventRecorderTest, writes_an_event_anew_that_the_server_has_forgotten) {
  recorder.record(input("p"));
  sim.run_until_idle();
  const std::string name = events()[0]["metadata"]["name"].str();
  api.remove("/apis/events.k8s.io/v1/namespaces/a/events/" + name);
  recorder.record(input("p"));
  sim.run_until_idle();
  ASSERT_EQ(events().size(), 1U);
  EXPECT_EQ(events()[0]["series"]["count"].as_int(), 2);
}

TEST_F(EventRecorderTest, bounds_its_queue) {
  api.hang("POST", 1);
  for (int i = 0; i < 30; ++i) recorder.record(input(cat("p", i)));
  sim.run_until_idle();
  EXPECT_EQ(recorder.dropped(), 20U);
}

}  // namespace
}  // namespace dibs::client
