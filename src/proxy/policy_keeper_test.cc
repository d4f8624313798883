#include "proxy/policy_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"

namespace dibs::proxy {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

struct Written final : Applier {
  std::vector<std::string> texts;
  int failures = 0;  // to come

  Result<> apply(const std::string& statements) override {
    if (failures > 0) {
      --failures;
      return Error::unavailable("no");
    }
    texts.push_back(statements);
    return success();
  }
  Result<std::map<std::string, std::string>> homes(const std::string&,
                                                   const std::string&) override {
    return std::map<std::string, std::string>();
  }
  Result<> forget_udp(const std::set<UdpBackend>&) override { return success(); }
  Result<> open_loopback(const std::string&) override { return success(); }
  Result<> keep_routes(const std::string&, const std::set<std::string>&) override {
    return success();
  }
  Result<bool> leads_away(const std::string&) override { return false; }
};

struct PolicyKeeperTest : testing::Test {
  runtime::SimRuntime sim;
  client::FakeApi api;
  std::unique_ptr<client::Transport> transport =
      client::make_in_process_transport(api.handler(), sim.runtime());
  client::Client client{*transport};
  Written kernel;
  PolicyKeeper keeper{
      {"t", "br", {"node-0"}, "10.0.0.10", "10.1.0.1:4000"}, client, sim.runtime(), kernel};

  void add_pod(const std::string& name, const std::string& address) {
    api.put("/api/v1/namespaces/a/pods/" + name,
            *json::parse(cat(R"({"metadata":{"namespace":"a","name":")", name,
                             R"("},"spec":{"nodeName":"node-0"},"status":{"podIP":")", address,
                             R"(","phase":"Running"}})")));
  }
  void add_policy(const std::string& name) {
    api.put("/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/" + name,
            *json::parse(cat(R"({"metadata":{"namespace":"a","name":")", name,
                             R"("},"spec":{"podSelector":{},"policyTypes":["Ingress"]}})")));
  }
  std::vector<std::string> take() {
    sim.advance(seconds(1));
    return std::exchange(kernel.texts, {});
  }
};

TEST_F(PolicyKeeperTest, takes_an_old_table_away_where_there_are_no_policies) {
  add_pod("x", "10.1.0.2");
  keeper.start();
  EXPECT_THAT(take(), testing::ElementsAre("add table inet t\ndelete table inet t\n"));
  EXPECT_TRUE(keeper.ready());
  add_pod("y", "10.1.0.3");
  EXPECT_THAT(take(), IsEmpty());
}

TEST_F(PolicyKeeperTest, writes_all_at_once_and_then_what_differs) {
  add_pod("x", "10.1.0.2");
  add_policy("deny");
  keeper.start();
  const auto first = take();
  ASSERT_FALSE(first.empty());
  EXPECT_THAT(first.back(), HasSubstr("10.1.0.2 : jump i-1"));

  add_pod("y", "10.1.0.3");
  const auto second = take();
  ASSERT_EQ(second.size(), 1U);
  EXPECT_THAT(second[0], HasSubstr("add element inet t policy-ingress { 10.1.0.3 : jump i-1 }"));

  api.remove("/apis/networking.k8s.io/v1/namespaces/a/networkpolicies/deny");
  const auto third = take();
  ASSERT_EQ(third.size(), 1U);
  EXPECT_THAT(third[0], HasSubstr("delete element inet t policy-ingress { 10.1.0.2, 10.1.0.3 }"));
}

TEST_F(PolicyKeeperTest, tries_again_with_all_of_it_after_a_failure) {
  add_pod("x", "10.1.0.2");
  add_policy("deny");
  keeper.start();
  take();
  kernel.failures = 1;
  add_pod("y", "10.1.0.3");
  const auto texts = take();
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0], HasSubstr("delete table inet t\ntable inet t {"));
  EXPECT_THAT(texts[0], HasSubstr("10.1.0.2 : jump i-1, 10.1.0.3 : jump i-1"));
}

}  // namespace
}  // namespace dibs::proxy
