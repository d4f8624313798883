#include "server/fairness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/flow/flow_defaults.h"
#include "base/strings.h"
#include "json/yaml.h"
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
  static const FlowTable table = FlowTable::initial();
  const auto target = net::Target::parse(path);
  const RequestInfo info = parse_request_info(method, *target);
  const FlowSchema& found = table.find(who, info);
  return cat(found.name, " ", table.levels()[found.level].name, " ",
             found.distinguisher(who, info));
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

json::Value yaml(const std::string& text) { return *json::parse_yaml(text); }

json::Value schema(const std::string& name, const std::string& level, int precedence,
                   const std::string& rule) {
  return yaml(cat("{metadata: {name: ", name, "}, spec: {priorityLevelConfiguration: {name: ",
                  level, "}, matchingPrecedence: ", precedence, ", rules: [", rule, "]}}"));
}

json::Value level(const std::string& name, int shares, const std::string& more,
                  const std::string& response = "type: Reject") {
  return yaml(cat("{metadata: {name: ", name,
                  "}, spec: {type: Limited, limited: {nominalConcurrencyShares: ", shares, more,
                  ", limitResponse: {", response, "}}}}"));
}

TEST(FlowSchemas, match_by_precedence_then_by_name_and_never_without_their_level) {
  const std::string all =
      "{subjects: [{kind: User, user: {name: jane}}], resourceRules: [{verbs: ['*'], apiGroups: "
      "['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}]}";
  const FlowTable table({schema("b", "mine", 5, all), schema("a", "mine", 5, all),
                         schema("first", "nowhere", 2, all)},
                        {level("mine", 1, "")});
  const auto target = net::Target::parse("/api/v1/namespaces/x/pods");
  const RequestInfo info = parse_request_info("GET", *target);
  EXPECT_EQ(table.find(user("jane"), info).name, "a");
  EXPECT_EQ(table.find(user("joe"), info).name, "catch-all");
  EXPECT_TRUE(table.has_level("exempt"));  // though there is no object
}

TEST(FlowSchemas, match_what_their_rules_name) {
  const std::string rule =
      "{subjects: [{kind: ServiceAccount, serviceAccount: {namespace: a, name: x}}, {kind: Group, "
      "group: {name: g}}], resourceRules: [{verbs: [get], apiGroups: [''], resources: [pods/log, "
      "nodes], namespaces: [b], clusterScope: true}], nonResourceRules: [{verbs: [get], "
      "nonResourceURLs: [/healthz, /logs/*]}]}";
  const FlowTable table({schema("s", "mine", 5, rule)}, {level("mine", 1, "")});
  const auto matches = [&](const auth::UserInfo& who, const std::string& method,
                           const std::string& path) {
    const auto target = net::Target::parse(path);
    return table.find(who, parse_request_info(method, *target)).name == "s";
  };
  const auto account = user("system:serviceaccount:a:x");
  EXPECT_TRUE(matches(account, "GET", "/api/v1/namespaces/b/pods/p/log"));
  EXPECT_FALSE(matches(account, "GET", "/api/v1/namespaces/b/pods/p"));
  EXPECT_FALSE(matches(account, "GET", "/api/v1/namespaces/c/pods/p/log"));
  EXPECT_FALSE(matches(user("system:serviceaccount:a:xx"), "GET", "/api/v1/nodes/n"));
  EXPECT_TRUE(matches(user("u", {"g"}), "GET", "/api/v1/nodes/n"));
  EXPECT_FALSE(matches(user("u", {"g"}), "DELETE", "/api/v1/nodes/n"));
  EXPECT_TRUE(matches(account, "GET", "/healthz/etcd"));
  EXPECT_FALSE(matches(account, "GET", "/healthzzz"));
  EXPECT_TRUE(matches(account, "GET", "/logs/a/b"));
  EXPECT_FALSE(matches(account, "GET", "/logs"));
}

/// Requests of users, in the order that they were started.
class FairnessTest : public ::testing::Test {
 protected:
  /// One by one: a seat that is given back may start the next request.
  void TearDown() override {
    while (!held.empty()) answer();
  }
  void SetUp() override {
    // As they are, but that nobody lends.
    std::vector<json::Value> levels = api::default_priority_levels();
    for (json::Value& one : levels) {
      if (!one["spec"]["limited"].is_null())
        one.mut("spec").mut("limited").set("lendablePercent", 0);
    }
    fairness.configure(FlowTable(api::default_flow_schemas(), levels));
  }
  void enter(const std::string& who, unsigned seats = 1) { enter(flow_of(who), who, seats); }
  void enter(const Fairness::Flow& flow, std::string who, unsigned seats = 1) {
    fairness.enter(
        flow, seats,
        [this, who](Fairness::Seat seat) {
          started.push_back(who);
          held.push_back(std::move(seat));
        },
        [this, who] { refused.push_back(who); });
  }
  Fairness::Flow flow_of(const std::string& who) {
    const auto target = net::Target::parse("/api/v1/namespaces/a/pods");
    return fairness.flow_of(user(who), parse_request_info("GET", *target));
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

TEST_F(FairnessTest, starts_who_waited_behind_one_that_is_refused) {
  enter("a", 2);
  enter("b", 3);
  sim.run_for(std::chrono::seconds(5));
  enter("b");
  enter("c");
  EXPECT_THAT(started, ElementsAre("a"));

  sim.run_for(std::chrono::seconds(11));

  EXPECT_THAT(refused, ElementsAre("b"));
  EXPECT_EQ(started.size(), 2U);
}

TEST_F(FairnessTest, refuses_all_who_wait_at_the_end) {
  for (int i = 0; i < 5; ++i) enter("a");

  fairness.stop();

  EXPECT_EQ(refused.size(), 2U);
  held.clear();
}

/// Two levels of ten seats each; users of `a` and of `b`.
class LendingTest : public FairnessTest {
 protected:
  void SetUp() override {}
  void use(const std::string& more_of_a, const std::string& more_of_b) {
    const auto rule = [](const std::string& who) {
      return cat("{subjects: [{kind: User, user: {name: ", who,
                 "}}], resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], "
                 "namespaces: ['*']}]}");
    };
    const std::string queue =
        "type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 50}";
    std::vector<json::Value> levels = {level("a", 10, more_of_a, queue),
                                       level("b", 10, more_of_b, queue), level("catch-all", 0, "")};
    fairness.configure(
        FlowTable({schema("a", "a", 10, rule("a")), schema("b", "b", 10, rule("b"))}, levels));
  }
  std::size_t count(const std::string& who) const {
    return static_cast<std::size_t>(std::count(started.begin(), started.end(), who));
  }
};

TEST_F(LendingTest, lends_what_a_level_does_not_use_and_keeps_the_rest) {
  use(", lendablePercent: 40", "");
  for (int i = 0; i < 40; ++i) enter("b");
  EXPECT_EQ(count("b"), 15U + 6U);  // of fifteen each, a lends six
  for (int i = 0; i < 12; ++i) enter("a");
  EXPECT_EQ(count("a"), 9U);
  // What comes back goes to the one who has less than his share.
  for (int i = 0; i < 3; ++i) answer();
  EXPECT_EQ(count("a"), 12U);
  EXPECT_EQ(count("b"), 21U);
}

TEST_F(LendingTest, lends_no_more_than_may_be_borrowed) {
  use(", lendablePercent: 100", ", borrowingLimitPercent: 20");
  for (int i = 0; i < 40; ++i) enter("b");
  EXPECT_EQ(count("b"), 18U);
}

TEST_F(LendingTest, follows_new_objects_with_those_who_wait) {
  use("", "");
  for (int i = 0; i < 20; ++i) enter("b");
  EXPECT_EQ(count("b"), 15U);
  use(", lendablePercent: 100", "");
  EXPECT_EQ(count("b"), 20U);
  EXPECT_THAT(fairness.dump(), HasSubstr("b, 0, false, false, 0, 20, 20, 0, 0, 0"));

  // A level that is gone ends with its requests.
  fairness.configure(FlowTable({}, {}));
  EXPECT_THAT(fairness.dump(), HasSubstr("b, 0, false, true, 0, 20"));
  while (!held.empty()) answer();
  EXPECT_THAT(fairness.dump(), testing::Not(HasSubstr("\nb,")));
}

TEST_F(LendingTest, takes_those_whose_level_has_gone_meanwhile_elsewhere) {
  use("", "");
  const Fairness::Flow before = flow_of("b");
  fairness.configure(FlowTable({}, {}));
  EXPECT_THAT(fairness.dump(), testing::Not(HasSubstr("\nb,")));

  enter(before, "b");

  EXPECT_THAT(started, ElementsAre("b"));
  EXPECT_THAT(fairness.dump(), HasSubstr("catch-all, 0, false, false, 0, 1, 1"));
  // And a new one of its name is its own again.
  use("", "");
  for (int i = 0; i < 20; ++i) enter(before, "b");
  EXPECT_EQ(count("b"), 1U + 15U);
  while (!held.empty()) answer();
  EXPECT_EQ(count("b"), 21U);
  EXPECT_THAT(refused, IsEmpty());
}

}  // namespace
}  // namespace dibs::server
