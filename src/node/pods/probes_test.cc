#include "node/pods/probes.h"

#include <gmock/gmock.h>

#include "node/pods/volume_test_support.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

using json::Value;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::from_text;
using testing::ElementsAre;
using testing::IsEmpty;
using Outcome = ProbeAnswer::Outcome;

struct ProbesTest : testing::Test {
  runtime::SimRuntime sim;
  std::vector<std::string> log;
  std::map<std::string, ProbeAnswer> answers;  // by the command's first word
  std::map<std::string, int> asked;
  Probes probes{
      sim.runtime(),
      [this](const ProbedContainer&, const Value& probe, Duration) {
        const std::string word = probe["exec"]["command"][0].str();
        ++asked[word];
        return answers[word];
      },
      {.changed = [this](const std::string& uid) { log.push_back("changed " + uid); },
       .failed =
           [this](const ProbedContainer& container, ProbeKind kind) {
             log.push_back("kill " + container.id + " " + std::string(probe_name(kind)));
           },
       .event = [this](const ProbedContainer&, const std::string& reason,
                       const std::string& note) { log.push_back(reason + ": " + note); }}};

  void add(const std::string& container, const std::string& id = "1") {
    ProbedContainer probed;
    probed.pod = from_text("{'metadata': {'name': 'p', 'namespace': 'ns', 'uid': 'u'}}");
    probed.container = from_text(container);
    probed.id = id;
    probed.started = sim.now();
    probes.add(probed);
  }
  bool ready(const std::string& id = "1") { return probes.ready("u", "c", id); }
  bool started(const std::string& id = "1") { return probes.started("u", "c", id); }
};

constexpr const char* kReadiness =
    "{'name': 'c', 'readinessProbe': {'exec': {'command': ['ready']}, 'periodSeconds': 1, "
    "'failureThreshold': 2}}";

TEST_F(ProbesTest, without_probes_a_container_is_ready_at_once) {
  add("{'name': 'c'}");
  EXPECT_TRUE(ready());
  EXPECT_TRUE(started());
  EXPECT_FALSE(ready("other"));
  EXPECT_EQ(sim.pending_timers(), 0U);
}

TEST_F(ProbesTest, readiness_passes_at_the_first_answer) {
  add(kReadiness);
  EXPECT_TRUE(started());
  EXPECT_FALSE(ready());
  sim.run_until_idle();
  EXPECT_TRUE(ready());
  EXPECT_THAT(log, ElementsAre("changed u"));
}

TEST_F(ProbesTest, readiness_is_lost_after_the_threshold) {
  add(kReadiness);
  sim.run_until_idle();
  log.clear();
  answers["ready"] = {Outcome::failure, "no\n"};
  sim.advance(seconds(1));
  EXPECT_TRUE(ready());
  EXPECT_THAT(log, ElementsAre("Unhealthy: Readiness probe failed: no\n"));
  sim.advance(seconds(1));
  EXPECT_FALSE(ready());
  EXPECT_THAT(log, ElementsAre("Unhealthy: Readiness probe failed: no\n",
                               "Unhealthy: Readiness probe failed: no\n", "changed u"));
}

TEST_F(ProbesTest, waits_for_the_initial_delay) {
  add("{'name': 'c', 'readinessProbe': {'exec': {'command': ['ready']}, "
      "'initialDelaySeconds': 5}}");
  sim.advance(seconds(4));
  EXPECT_EQ(asked["ready"], 0);
  sim.advance(seconds(1));
  EXPECT_EQ(asked["ready"], 1);
  sim.advance(seconds(10));
  EXPECT_EQ(asked["ready"], 2);
}

TEST_F(ProbesTest, success_may_need_several_answers) {
  add("{'name': 'c', 'readinessProbe': {'exec': {'command': ['ready']}, 'periodSeconds': 1, "
      "'successThreshold': 3}}");
  sim.advance(seconds(1));
  EXPECT_FALSE(ready());
  sim.advance(seconds(1));
  EXPECT_TRUE(ready());
}

TEST_F(ProbesTest, startup_holds_the_others_back) {
  answers["start"] = {Outcome::failure, "not yet"};
  add("{'name': 'c', 'startupProbe': {'exec': {'command': ['start']}, 'periodSeconds': 1, "
      "'failureThreshold': 60}, 'readinessProbe': {'exec': {'command': ['ready']}}, "
      "'livenessProbe': {'exec': {'command': ['live']}}}");
  sim.advance(seconds(10));
  EXPECT_FALSE(started());
  EXPECT_EQ(asked["ready"] + asked["live"], 0);

  answers["start"] = {};
  sim.advance(seconds(1));
  EXPECT_TRUE(started());
  EXPECT_TRUE(ready());
  EXPECT_EQ(asked["live"], 1);
  const int before = asked["start"];
  sim.advance(seconds(30));
  EXPECT_EQ(asked["start"], before);
}

TEST_F(ProbesTest, a_startup_that_never_comes_kills) {
  answers["start"] = {Outcome::failure, "no"};
  add("{'name': 'c', 'startupProbe': {'exec': {'command': ['start']}, 'periodSeconds': 1, "
      "'failureThreshold': 2}}");
  sim.advance(seconds(10));
  EXPECT_THAT(log, ElementsAre("Unhealthy: Startup probe failed: no",
                               "Unhealthy: Startup probe failed: no", "kill 1 Startup"));
}

TEST_F(ProbesTest, what_has_just_started_has_a_period_before_it_is_killed) {
  answers["live"] = answers["start"] = {Outcome::failure, "not yet"};
  add("{'name': 'c', 'livenessProbe': {'exec': {'command': ['live']}, 'failureThreshold': 1}}");
  sim.advance(seconds(9));
  EXPECT_EQ(asked["live"], 0);
  EXPECT_THAT(log, IsEmpty());
  sim.advance(seconds(1));
  EXPECT_THAT(log, ElementsAre("Unhealthy: Liveness probe failed: not yet", "kill 1 Liveness"));
  log.clear();

  add("{'name': 'c', 'startupProbe': {'exec': {'command': ['start']}, 'failureThreshold': 1}}",
      "2");
  sim.advance(seconds(9));
  EXPECT_EQ(asked["start"], 1);
  EXPECT_THAT(log, IsEmpty());
  sim.advance(seconds(1));
  EXPECT_THAT(log, ElementsAre("Unhealthy: Startup probe failed: not yet", "kill 2 Startup"));
}

TEST_F(ProbesTest, what_starts_at_once_is_not_kept_waiting) {
  add("{'name': 'c', 'startupProbe': {'exec': {'command': ['start']}, 'periodSeconds': 60}}");
  sim.run_until_idle();
  EXPECT_TRUE(started());
}

TEST_F(ProbesTest, liveness_is_asked_for_after_the_delay_where_that_is_longer_than_a_period) {
  add("{'name': 'c', 'livenessProbe': {'exec': {'command': ['live']}, 'periodSeconds': 2, "
      "'initialDelaySeconds': 5}}");
  sim.advance(seconds(4));
  EXPECT_EQ(asked["live"], 0);
  sim.advance(seconds(1));
  EXPECT_EQ(asked["live"], 1);
}

TEST_F(ProbesTest, liveness_kills_once_and_starts_over_with_the_next_container) {
  const char* container =
      "{'name': 'c', 'livenessProbe': {'exec': {'command': ['live']}, 'periodSeconds': 1, "
      "'failureThreshold': 2}}";
  add(container);
  sim.run_until_idle();
  EXPECT_TRUE(ready());
  answers["live"] = {Outcome::failure, "dead"};
  sim.advance(seconds(60));
  EXPECT_THAT(log, ElementsAre("Unhealthy: Liveness probe failed: dead",
                               "Unhealthy: Liveness probe failed: dead", "kill 1 Liveness"));
  log.clear();

  add(container, "2");
  EXPECT_FALSE(ready("1"));
  EXPECT_TRUE(ready("2"));
  sim.advance(seconds(60));
  EXPECT_THAT(log, ElementsAre("Unhealthy: Liveness probe failed: dead",
                               "Unhealthy: Liveness probe failed: dead", "kill 2 Liveness"));
}

TEST_F(ProbesTest, a_probe_that_cannot_be_asked_is_tried_again_and_then_fails) {
  answers["ready"] = {Outcome::unknown, "no such container"};
  add(kReadiness);
  sim.run_until_idle();
  EXPECT_EQ(asked["ready"], 3);
  EXPECT_THAT(log, ElementsAre("Unhealthy: Readiness probe errored and resulted in unknown state: "
                               "no such container"));
}

TEST_F(ProbesTest, warnings_pass) {
  answers["ready"] = {Outcome::warning, "elsewhere"};
  add(kReadiness);
  sim.run_until_idle();
  EXPECT_TRUE(ready());
  EXPECT_THAT(log, ElementsAre("ProbeWarning: Readiness probe warning: elsewhere", "changed u"));
}

TEST_F(ProbesTest, asks_no_more_after_the_end) {
  add(kReadiness);
  sim.run_until_idle();
  probes.remove("u", "c");
  EXPECT_FALSE(ready());
  sim.advance(seconds(10));
  EXPECT_EQ(asked["ready"], 1);
  EXPECT_EQ(sim.pending_timers(), 0U);
}

TEST_F(ProbesTest, terminating_pods_are_asked_for_readiness_only) {
  answers["live"] = {Outcome::failure, "dead"};
  add("{'name': 'c', 'livenessProbe': {'exec': {'command': ['live']}, 'periodSeconds': 1, "
      "'failureThreshold': 5}, 'readinessProbe': {'exec': {'command': ['ready']}, "
      "'periodSeconds': 1}}");
  sim.advance(seconds(1));
  probes.pod_terminating("u");
  const int live = asked["live"];
  const int ready_before = asked["ready"];
  sim.advance(seconds(10));
  EXPECT_EQ(asked["live"], live);
  EXPECT_GT(asked["ready"], ready_before);
  probes.remove_pod("u");
  sim.advance(seconds(10));
  EXPECT_EQ(sim.pending_timers(), 0U);
}

TEST_F(ProbesTest, repeating_a_container_keeps_what_is_known) {
  add(kReadiness);
  sim.run_until_idle();
  add(kReadiness);
  EXPECT_TRUE(ready());
  EXPECT_EQ(sim.pending_timers(), 1U);
}

}  // namespace
}  // namespace dibs::node
