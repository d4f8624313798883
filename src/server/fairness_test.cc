#include "server/fairness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "runtime/sim_runtime.h"

namespace dibs::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

auth::UserInfo user(std::string name, std::vector<std::string> groups = {}) {
  groups.emplace_back(auth::kAuthenticated);
  return {std::move(name), "", std::move(groups), {}};
}

std::string flow(const auth::UserInfo& who, const std::string& method, const std::string& path) {
  const auto target = net::Target::parse(path);
  const Flow found = flow_of(who, parse_request_info(method, *target));
  return cat(found.schema, " ", priority_levels()[found.level].name, " ", found.distinguisher);
}

TEST(FlowSchemas, tell_users_and_requests_apart) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n";
  const std::string pods = "/api/v1/namespaces/a/pods";
  EXPECT_EQ(flow(user("admin", {"system:masters"}), "GET", pods), "exempt exempt ");
  EXPECT_EQ(flow({"system:anonymous", "", {"system:unauthenticated"}, {}}, "GET", "/readyz"),
            "probes exempt ");
  EXPECT_EQ(flow(user("system:kube-scheduler"), "PUT", leases),
            "system-leader-election leader-election system:kube-scheduler");
  EXPECT_EQ(flow(user("system:kube-scheduler"), "POST", pods), "kube-scheduler workload-high a");
  const auto node = user("system:node:n", {"system:nodes"});
  EXPECT_EQ(flow(node, "PUT", leases), "system-node-high node-high system:node:n");
  EXPECT_EQ(flow(node, "PATCH", "/api/v1/nodes/n/status"),
            "system-node-high node-high system:node:n");
  EXPECT_EQ(flow(node, "GET", pods), "system-nodes system system:node:n");
  EXPECT_EQ(
      flow(user("system:serviceaccount:kube-system:x", {"system:serviceaccounts"}), "GET", pods),
      "kube-system-service-accounts workload-high a");
  EXPECT_EQ(flow(user("system:serviceaccount:a:x", {"system:serviceaccounts"}), "GET", pods),
            "service-accounts workload-low system:serviceaccount:a:x");
  EXPECT_EQ(flow(user("jane"), "GET", pods), "global-default global-default jane");
  EXPECT_EQ(flow({"odd", "", {}, {}}, "GET", pods), "catch-all catch-all odd");
}

TEST(FlowSchemas, let_streams_pass) {
  const auto is_long = [](const char* path) {
    const auto target = net::Target::parse(path);
    return is_long_running(parse_request_info("GET", *target));
  };
  EXPECT_TRUE(is_long("/api/v1/namespaces/a/pods/p/exec?command=x"));
  EXPECT_TRUE(is_long("/api/v1/namespaces/a/pods/p/log?follow=true"));
  EXPECT_TRUE(is_long("/api/v1/namespaces/a/pods/p/log"));
  EXPECT_FALSE(is_long("/api/v1/namespaces/a/pods?watch=true"));
}

Flow of(std::string_view who) { return {6, "global-default", std::string(who)}; }

/// Requests of users, in the order that they were started.
class FairnessTest : public ::testing::Test {
 protected:
  /// One by one: a seat that is given back may start the next request.
  void TearDown() override {
    while (!held.empty()) answer();
  }
  void enter(std::string who, unsigned seats = 1) {
    fairness.enter(
        of(who), seats,
        [this, who](Fairness::Seat seat) {
          started.push_back(who);
          held.push_back(std::move(seat));
        },
        [this, who] { refused.push_back(who); });
  }
  /// The oldest one is answered.
  void answer() {
    auto seat = std::move(held.front());
    held.erase(held.begin());
    seat.reset();
  }
  std::size_t seats_of(std::string_view name) {
    const std::string text = metrics.expose();
    const std::string key =
        cat("apiserver_flowcontrol_nominal_limit_seats{priority_level=\"", name, "\"} ");
    return std::strtoul(text.c_str() + text.find(key) + key.size(), nullptr, 10);
  }

  runtime::SimRuntime sim;
  metrics::Registry metrics;
  std::vector<std::string> started;
  std::vector<std::string> refused;
  Fairness fairness{sim.runtime(), metrics, 30};  // global-default has three of them
  std::vector<Fairness::Seat> held;
};

TEST_F(FairnessTest, gives_each_level_its_share) {
  EXPECT_EQ(seats_of("global-default"), 3U);
  EXPECT_EQ(seats_of("workload-low"), 13U);
  EXPECT_EQ(seats_of("catch-all"), 1U);
}

TEST_F(FairnessTest, lets_wait_who_finds_no_seat) {
  for (int i = 0; i < 5; ++i) enter("a");
  EXPECT_EQ(started.size(), 3U);

  answer();

  EXPECT_EQ(started.size(), 4U);
  EXPECT_THAT(refused, IsEmpty());
}

TEST_F(FairnessTest, lets_users_take_turns) {
  for (int i = 0; i < 100; ++i) enter("greedy");
  enter("jane");
  enter("jane");
  started.clear();

  for (int i = 0; i < 20; ++i) answer();

  EXPECT_EQ(std::count(started.begin(), started.end(), "jane"), 2);
}

TEST_F(FairnessTest, refuses_who_fills_his_queues_and_nobody_else) {
  for (int i = 0; i < 1000; ++i) enter("greedy");
  EXPECT_EQ(refused.size(), 1000U - 3 - 6 * 50);
  refused.clear();

  for (int i = 0; i < 40; ++i) enter(cat("user-", i));

  EXPECT_THAT(refused, IsEmpty());
  EXPECT_THAT(metrics.expose(),
              HasSubstr("apiserver_flowcontrol_rejected_requests_total{priority_level=\"global-"
                        "default\",flow_schema=\"global-default\",reason=\"queue-full\"} 697"));
}

TEST_F(FairnessTest, refuses_who_has_waited_too_long) {
  for (int i = 0; i < 4; ++i) enter("a");

  sim.run_for(std::chrono::seconds(14));
  EXPECT_THAT(refused, IsEmpty());
  sim.run_for(std::chrono::seconds(2));

  EXPECT_THAT(refused, ElementsAre("a"));
}

TEST_F(FairnessTest, counts_seats_not_requests) {
  enter("a", 2);
  enter("b", 2);
  EXPECT_THAT(started, ElementsAre("a"));

  answer();

  EXPECT_THAT(started, ElementsAre("a", "b"));
  // More than there are would wait for ever.
  answer();
  enter("c", 10);
  EXPECT_THAT(started, ElementsAre("a", "b", "c"));
}

TEST_F(FairnessTest, refuses_all_who_wait_at_the_end) {
  for (int i = 0; i < 5; ++i) enter("a");

  fairness.stop();

  EXPECT_EQ(refused.size(), 2U);
  held.clear();
}

}  // namespace
}  // namespace dibs::server
