#include "client/leader_election.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "runtime/sim_runtime.h"

namespace dibs::client {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* kLease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/x";

struct LeaderElectionTest : testing::Test {
  runtime::SimRuntime sim;
  FakeApi api;
  std::map<std::string, metrics::Registry> registries;  // by candidate
  std::vector<std::string> log;

  struct Candidate {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Client> client;
    std::unique_ptr<LeaderElector> elector;
  };
  /// Each has a user agent by which faults can tell it from others.
  Candidate candidate(const std::string& identity) {
    Candidate out;
    out.transport = make_in_process_transport(
        [this, identity, inner = api.handler()](calls::Request request,
                                                std::unique_ptr<calls::Exchange> exchange) {
          if (cut_off == identity) return exchange->respond({503, {}, ""});
          inner(std::move(request), std::move(exchange));
        },
        sim.runtime());
    out.client = std::make_unique<Client>(*out.transport);
    LeaderElectionOptions options;
    options.name = "x";
    options.identity = identity;
    options.metrics = &registries[identity];
    out.elector = std::make_unique<LeaderElector>(
        *out.client, sim.runtime(), options,
        LeaderCallbacks{.started = [this, identity] { log.push_back(identity + " started"); },
                        .stopped = [this, identity] { log.push_back(identity + " stopped"); },
                        .new_leader = {}});
    out.elector->start();
    return out;
  }
  bool tells_that_it_leads(const std::string& identity) {
    return registries[identity].expose().find("leader_election_master_status{name=\"x\"} 1\n") !=
           std::string::npos;
  }
  std::string cut_off;
};

TEST_F(LeaderElectionTest, leads_alone) {
  auto a = candidate("a");
  sim.run_until_idle();
  EXPECT_TRUE(a.elector->leading());
  EXPECT_EQ(a.elector->leader(), "a");
  const auto lease = api.get(kLease);
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ((*lease)["spec"]["holderIdentity"].as_string(), "a");
  EXPECT_EQ((*lease)["spec"]["leaseDurationSeconds"].as_int(), 15);
  EXPECT_EQ((*lease)["spec"]["leaseTransitions"].as_int(), 0);
  EXPECT_EQ((*lease)["spec"]["acquireTime"].as_string(), "2023-11-14T22:13:20.000000Z");
  sim.advance(minutes(1));
  EXPECT_EQ((*api.get(kLease))["spec"]["acquireTime"].as_string(), "2023-11-14T22:13:20.000000Z");
  EXPECT_NE((*api.get(kLease))["spec"]["renewTime"].as_string(), "2023-11-14T22:13:20.000000Z");
  EXPECT_THAT(log, ElementsAre("a started"));
}

TEST_F(LeaderElectionTest, hands_over_at_once_when_the_leader_stops) {
  auto a = candidate("a");
  sim.run_until_idle();
  auto b = candidate("b");
  sim.advance(minutes(1));
  EXPECT_FALSE(b.elector->leading());
  EXPECT_EQ(b.elector->leader(), "a");
  EXPECT_TRUE(tells_that_it_leads("a"));
  EXPECT_FALSE(tells_that_it_leads("b"));
  a.elector->stop();
  EXPECT_FALSE(tells_that_it_leads("a"));
  sim.advance(seconds(6));
  EXPECT_TRUE(b.elector->leading());
  EXPECT_THAT(log, ElementsAre("a started", "a stopped", "b started"));
  EXPECT_EQ((*api.get(kLease))["spec"]["leaseTransitions"].as_int(), 1);
}

TEST_F(LeaderElectionTest, stops_before_another_starts) {
  auto a = candidate("a");
  sim.run_until_idle();
  auto b = candidate("b");
  sim.advance(seconds(30));
  cut_off = "a";
  for (int i = 0; i < 400; ++i) {
    sim.advance(std::chrono::milliseconds(100));
    ASSERT_FALSE(a.elector->leading() && b.elector->leading());
  }
  EXPECT_TRUE(b.elector->leading());
  EXPECT_THAT(log, ElementsAre("a started", "a stopped", "b started"));

  cut_off = "";
  sim.advance(minutes(1));
  EXPECT_FALSE(a.elector->leading());
  EXPECT_EQ(a.elector->leader(), "b");
}

TEST_F(LeaderElectionTest, survives_a_short_outage) {
  auto a = candidate("a");
  sim.run_until_idle();
  sim.advance(seconds(10));
  cut_off = "a";
  sim.advance(seconds(5));
  cut_off = "";
  sim.advance(minutes(1));
  EXPECT_THAT(log, ElementsAre("a started"));
}

TEST_F(LeaderElectionTest, gives_up_a_lease_that_was_taken) {
  auto a = candidate("a");
  sim.run_until_idle();
  json::Value lease = *api.get(kLease);
  lease.mut("spec").set("holderIdentity", "thief");
  lease.mut("spec").set("renewTime", "2023-11-14T22:13:21.000000Z");
  api.put(kLease, lease);
  sim.advance(seconds(5));
  EXPECT_THAT(log, ElementsAre("a started", "a stopped"));
  sim.advance(seconds(30));
  EXPECT_TRUE(a.elector->leading());
}

TEST_F(LeaderElectionTest, has_one_leader_at_a_time_under_faults) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    runtime::SimRuntime world({.seed = seed, .shuffle = true});
    FakeApi server;
    int leaders = 0;
    int most = 0;
    int terms = 0;
    std::vector<std::unique_ptr<Transport>> transports;
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<std::unique_ptr<LeaderElector>> electors;
    for (int i = 0; i < 3; ++i) {
      transports.push_back(make_in_process_transport(server.handler(), world.runtime()));
      clients.push_back(std::make_unique<Client>(*transports.back()));
      LeaderElectionOptions options;
      options.name = "x";
      options.identity = cat("c", i);
      electors.push_back(
          std::make_unique<LeaderElector>(*clients.back(), world.runtime(), options,
                                          LeaderCallbacks{.started =
                                                              [&] {
                                                                ++terms;
                                                                most = std::max(most, ++leaders);
                                                              },
                                                          .stopped = [&] { --leaders; },
                                                          .new_leader = {}}));
      electors.back()->start();
    }
    for (int step = 0; step < 100; ++step) {
      if (world.runtime().random.below(3) == 0) server.fail("PUT", 503, "ServiceUnavailable", 6);
      if (world.runtime().random.below(10) == 0) server.fail("GET", 500, "InternalError", 3);
      world.advance(seconds(5));
    }
    world.advance(minutes(2));
    EXPECT_EQ(most, 1) << "seed " << seed;
    EXPECT_EQ(leaders, 1) << "seed " << seed;
    EXPECT_GE(terms, 1);
  }
}

TEST_F(LeaderElectionTest, gives_the_lease_up_whatever_it_knew_of_it) {
  auto a = candidate("a");
  sim.run_until_idle();
  // A renewal whose answer was lost.
  json::Value lease = *api.get(kLease);
  lease.mut("spec").set("renewTime", "2023-11-14T22:13:21.000000Z");
  api.put(kLease, lease);
  a.elector->stop();
  EXPECT_EQ((*api.get(kLease))["spec"]["holderIdentity"].str(), "");
  // The lease of another is left alone.
  auto b = candidate("b");
  sim.advance(seconds(5));
  ASSERT_TRUE(b.elector->leading());
  lease = *api.get(kLease);
  lease.mut("spec").set("holderIdentity", "thief");
  api.put(kLease, lease);
  b.elector->stop();
  EXPECT_EQ((*api.get(kLease))["spec"]["holderIdentity"].str(), "thief");
}

TEST(LeaderElectionOptions, are_refused_where_two_could_lead) {
  LeaderElectionOptions good{.name = "x"};
  EXPECT_TRUE(good.check().ok());
  const auto refused = [&](auto change) {
    LeaderElectionOptions bad = good;
    change(bad);
    return !bad.check().ok();
  };
  EXPECT_TRUE(refused([](auto& bad) { bad.renew_deadline = seconds(15); }));
  EXPECT_TRUE(refused([](auto& bad) { bad.retry_period = seconds(9); }));
  EXPECT_TRUE(refused([](auto& bad) { bad.retry_period = seconds(0); }));
  EXPECT_TRUE(refused([](auto& bad) { bad.lease_duration = std::chrono::milliseconds(100); }));
  EXPECT_TRUE(refused([](auto& bad) { bad.name.clear(); }));
}

}  // namespace
}  // namespace dibs::client
