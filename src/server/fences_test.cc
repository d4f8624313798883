// What only one object may have, given out by several servers over one store at once.
#include "server/fences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "base/strings.h"
#include "server/test_servers.h"

namespace dibs::server {
namespace {

using json::Value;
using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::kPods;
using test::make_request;
using test::Reply;
using test::Servers;

constexpr std::uint64_t kSeeds = 4;  // opening three servers is most of the work
constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
constexpr const char* kClassicClaims =
    "/apis/resource.k8s.io/v1alpha2/namespaces/default/resourceclaims";
constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";
constexpr const char* kServices = "/api/v1/namespaces/default/services";
constexpr std::string_view kClaimKeys = "/registry/resourceclaims/";

/// Runs a world of three servers for each seed; `check` after each transaction.
void in_many_worlds(const std::function<void(Servers&)>& prepare,
                    const std::function<void(Servers&, int step)>& act,
                    const std::function<void(Servers&)>& check, int steps = 150,
                    std::uint64_t seeds = kSeeds) {
  for (std::uint64_t seed = 1; seed <= seeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    Servers world(3, seed, test::random_delays());
    prepare(world);
    world.log.on_written([&](const auto&) { check(world); });
    for (int step = 0; step < steps; ++step) {
      act(world, step);
      world.sim.advance(std::chrono::milliseconds(world.below(12)));
    }
    world.settle();
    world.log.on_written(nullptr);
    check(world);
  }
}

Value claim(std::string_view name) {
  Value object = from_text(
      "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','metadata':{},'spec':{'devices':{"
      "'requests':[{'name':'gpu','exactly':{'deviceClassName':'c'}}]}}}");
  object.mut("metadata").set("name", name);
  return object;
}

constexpr int kClaimCount = 8;

void make_claims(Servers& world) {
  for (int i = 0; i < kClaimCount; ++i)
    ASSERT_EQ(world.post(0, kClaims, claim(cat("c", i))).status, 201);
}

/// Allocates or frees some claim through some server; answers are counted by nobody.
void allocate_some(Servers& world, const std::function<Value()>& result) {
  const std::string target = cat(kClaims, "/c", world.below(kClaimCount), "/status");
  Value allocation;
  if (world.below(3) != 0) {
    Value results = Value::array({result()});
    allocation = Value::object({{"devices", Value::object({{"results", results}})}});
  }
  world.begin_patch(world.below(3), target,
                    Value::object({{"status", Value::object({{"allocation", allocation}})}}));
}

Value result_of(std::string_view device) {
  return Value::object({{"request", "gpu"}, {"driver", "d"}, {"pool", "p"}, {"device", device}});
}

/// Calls for each device that a claim holds in truth.
void each_held(const Servers& world, const std::function<void(const Value& result)>& call) {
  for (const Value& one : world.truth(kClaimKeys)) {
    for (const Value& result : one["status"]["allocation"]["devices"]["results"].items())
      call(result);
  }
}

TEST(Fences, keep_a_device_in_one_allocation) {
  int held = 0;
  in_many_worlds(
      make_claims,
      [](Servers& world, int) {
        allocate_some(world, [&] { return result_of(cat("gpu-", world.below(3))); });
      },
      [&](const Servers& world) {
        std::set<std::string> seen;
        each_held(world, [&](const Value& result) {
          ++held;
          EXPECT_TRUE(seen.insert(result["device"].str()).second)
              << result["device"].str() << " is in two allocations";
        });
      });
  EXPECT_GT(held, 100) << "little happened";
}

TEST(Fences, keep_a_named_resource_of_the_classic_model_in_one_allocation) {
  int held = 0;
  in_many_worlds(
      [](Servers& world) {
        for (int i = 0; i < kClaimCount; ++i) {
          ASSERT_EQ(world
                        .post(0, kClassicClaims,
                              from_text(cat("{'apiVersion':'resource.k8s.io/v1alpha2','kind':"
                                            "'ResourceClaim','metadata':{'name':'c",
                                            i, "'},'spec':{'resourceClassName':'c'}}")))
                        .status,
                    201);
        }
      },
      [](Servers& world, int) {
        Value allocation;
        if (world.below(3) != 0) {
          allocation =
              from_text(cat("{'resourceHandles':[{'driverName':'d','structuredData':{"
                            "'nodeName':'n','results':[{'namedResources':{'name':'gpu-",
                            world.below(3), "'}}]}}]}"));
        }
        world.begin_patch(
            world.below(3), cat(kClassicClaims, "/c", world.below(kClaimCount), "/status"),
            Value::object(
                {{"status", Value::object({{"driverName", "d"}, {"allocation", allocation}})}}));
      },
      [&](const Servers& world) {
        std::set<std::string> seen;
        for (const Value& one : world.truth(kClaimKeys)) {
          for (const Value& handle : one["status"]["allocation"]["resourceHandles"].items()) {
            ++held;
            const Value& named = handle["structuredData"]["results"][0]["namedResources"];
            EXPECT_TRUE(seen.insert(named["name"].str()).second) << "in two allocations";
          }
        }
      });
  EXPECT_GT(held, 100) << "little happened";
}

TEST(Fences, keep_shares_within_the_capacity) {
  int most = 0;
  in_many_worlds(
      [](Servers& world) {
        const Reply slice = world.post(
            0, kSlices,
            from_text("{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{"
                      "'name':'s'},'spec':{'driver':'d','pool':{'name':'p','generation':1,"
                      "'resourceSliceCount':1},'allNodes':true,'devices':[{'name':'gpu-0',"
                      "'allowMultipleAllocations':true,'capacity':{'memory':{'value':'10Gi',"
                      "'requestPolicy':{'default':'1Gi'}}}}]}}"));
        ASSERT_EQ(slice.status, 201) << slice.text;
        make_claims(world);
      },
      [](Servers& world, int step) {
        allocate_some(world, [&] {
          Value result = result_of("gpu-0");
          result.set("shareID", cat("00000000-0000-4000-8000-", 100000000000 + step));
          result.set("consumedCapacity",
                     Value::object({{"memory", cat(2 + world.below(4), "Gi")}}));
          return result;
        });
      },
      [&](const Servers& world) {
        int sum = 0;
        each_held(world, [&](const Value& result) {
          sum += std::atoi(result["consumedCapacity"]["memory"].str().c_str());
        });
        most = std::max(most, sum);
        EXPECT_LE(sum, 10);
      });
  EXPECT_GE(most, 9) << "little happened";
}

TEST(Fences, keep_devices_within_the_counters_that_they_are_made_of) {
  int most = 0;
  in_many_worlds(
      [](Servers& world) {
        Value devices = Value::array();
        for (int i = 0; i < 6; ++i) {
          devices.push(from_text(cat("{'name':'part-", i,
                                     "','consumesCounters':[{'counterSet':'card','counters':{"
                                     "'memory':{'value':'4'}}}]}")));
        }
        Value counters = from_text(
            "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'s'},"
            "'spec':{'driver':'d','pool':{'name':'p','generation':1,'resourceSliceCount':2},"
            "'allNodes':true,'sharedCounters':[{'name':'card','counters':{'memory':{'value':"
            "'10'}}}]}}");
        Reply made = world.post(0, kSlices, counters);
        ASSERT_EQ(made.status, 201) << made.text;
        counters.mut("metadata").set("name", "t");
        counters.mut("spec").erase("sharedCounters");
        counters.mut("spec").set("devices", devices);
        made = world.post(0, kSlices, counters);
        ASSERT_EQ(made.status, 201) << made.text;
        make_claims(world);
      },
      [](Servers& world, int) {
        allocate_some(world, [&] { return result_of(cat("part-", world.below(6))); });
      },
      [&](const Servers& world) {
        int sum = 0;
        each_held(world, [&](const Value&) { sum += 4; });
        most = std::max(most, sum);
        EXPECT_LE(sum, 10);
      });
  EXPECT_EQ(most, 8) << "little happened";
}

// Who does not know the slices would not know which counters to guard.
TEST(Fences, guard_counters_that_were_published_a_moment_ago) {
  using namespace std::chrono_literals;
  Servers world(2);
  make_claims(world);
  world.settle();
  world.views[1]->set_delays({{50ms, 50ms}});
  Value slice = from_text(
      "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'s'},"
      "'spec':{'driver':'d','pool':{'name':'p','generation':1,'resourceSliceCount':2},"
      "'allNodes':true,'sharedCounters':[{'name':'card','counters':{'memory':{'value':'10'}}}]}}");
  ASSERT_EQ(world.post(0, kSlices, slice).status, 201);
  slice.mut("metadata").set("name", "t");
  slice.mut("spec").erase("sharedCounters");
  slice.mut("spec").set(
      "devices",
      from_text("[{'name':'a','consumesCounters':[{'counterSet':'card','counters':{'memory':{"
                "'value':'8'}}}]},{'name':'b','consumesCounters':[{'counterSet':'card','counters':"
                "{'memory':{'value':'8'}}}]}]"));
  ASSERT_EQ(world.post(0, kSlices, slice).status, 201);
  const auto allocate = [&](std::size_t at, std::string_view name, std::string_view device) {
    const Value devices = Value::object({{"results", Value::array({result_of(device)})}});
    const Value status = Value::object({{"allocation", Value::object({{"devices", devices}})}});
    return world.patch(at, cat(kClaims, "/", name, "/status"), Value::object({{"status", status}}))
        .status;
  };
  EXPECT_EQ(allocate(0, "c0", "a"), 200);
  EXPECT_EQ(allocate(1, "c1", "b"), 403);
}

// One claim may hold more devices than a transaction of etcd has operations.
TEST(Fences, of_a_large_claim_fit_into_one_transaction) {
  std::size_t most = 0;
  in_many_worlds(
      make_claims,
      [](Servers& world, int) {
        Value results = Value::array();
        const auto first = world.below(400);
        const auto count = 1 + world.below(200);
        for (auto i = first; i < first + count; ++i) results.push(result_of(cat("gpu-", i)));
        const Value allocation =
            Value::object({{"devices", Value::object({{"results", results}})}});
        world.begin_patch(world.below(3), cat(kClaims, "/c", world.below(kClaimCount), "/status"),
                          Value::object({{"status", Value::object({{"allocation", allocation}})}}));
      },
      [&](const Servers& world) {
        std::set<std::string> seen;
        each_held(world, [&](const Value& result) {
          EXPECT_TRUE(seen.insert(result["device"].str()).second) << "in two allocations";
        });
        most = std::max(most, world.log.range(kFencePrefix).records.size());
      },
      20, 2);
  EXPECT_LE(most + 1, 128U);
}

Value service(std::string_view name, std::string_view spec) {
  Value object = from_text("{'apiVersion':'v1','kind':'Service','metadata':{}}");
  object.mut("metadata").set("name", name);
  object.set("spec", from_text(spec));
  return object;
}

TEST(Fences, give_each_address_and_port_to_one_service) {
  in_many_worlds(
      [](Servers&) {},
      [](Servers& world, int step) {
        const std::size_t at = world.below(3);
        const std::string name = cat("s", world.below(30));
        const auto create = [&](std::string_view spec) {
          world.begin(at, make_request("POST", kServices, json::write(service(name, spec))));
        };
        switch (world.below(4)) {
          case 0:  // any address, any port
            return create("{'type':'NodePort','ports':[{'port':80},{'port':81,'name':'b'}]}");
          case 1:  // chosen ones
            return create(cat("{'type':'NodePort','clusterIP':'10.0.0.", 20 + world.below(3),
                              "','ports':[{'port':80,'nodePort':", 30000 + world.below(3), "}]}"));
          case 2:
            world.begin(at, make_request("DELETE", cat(kServices, "/", name)));
            return;
          default:
            world.begin_patch(
                at, cat(kServices, "/", name),
                from_text(cat("{'spec':{'type':'NodePort','ports':[{'port':80,'nodePort':",
                              30000 + (step + world.below(2)) % 4, "}]}}")));
        }
      },
      [](const Servers& world) {
        std::set<std::string> addresses;
        std::set<std::int64_t> ports;
        std::set<std::string> told;
        for (const Value& one : world.truth("/registry/ipaddresses/"))
          told.insert(cat(one["metadata"]["name"].str(), " ",
                          one["spec"]["parentRef"]["name"].as_string()));
        EXPECT_EQ(told.size(), world.truth("/registry/services/specs/").size());
        for (const Value& one : world.truth("/registry/services/specs/")) {
          EXPECT_TRUE(told.contains(
              cat(one["spec"]["clusterIP"].as_string(), " ", one["metadata"]["name"].as_string())))
              << one["spec"]["clusterIP"].str() << " has no IPAddress";
          EXPECT_TRUE(addresses.insert(one["spec"]["clusterIP"].str()).second)
              << one["spec"]["clusterIP"].str() << " is given out twice";
          for (const Value& port : one["spec"]["ports"].items()) {
            const auto number = port["nodePort"].as_int();
            if (number == 0) continue;
            EXPECT_TRUE(ports.insert(number).second) << number << " is given out twice";
          }
        }
      });
}

// A range that is all but full: whoever is told that there is no room must be told the truth.
TEST(Fences, give_out_the_last_address) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    Options options;
    options.service_range = "10.0.0.0/29";  // five are left
    Servers world(3, seed, test::random_delays(), options);
    for (int i = 0; i < 5; ++i) {
      const Reply made =
          world.post(world.below(3), kServices, service(cat("s", i), "{'ports':[{'port':80}]}"));
      EXPECT_EQ(made.status, 201) << "seed " << seed << " " << made.text;
    }
    EXPECT_EQ(world.post(0, kServices, service("t", "{'ports':[{'port':80}]}")).status, 422);
    EXPECT_EQ(world.remove(1, cat(kServices, "/s2")).status, 200);
    EXPECT_EQ(world.post(2, kServices, service("t", "{'ports':[{'port':80}]}")).status, 201);
  }
}

/// A quota of `room` config maps, with nothing used.
void make_quota(Servers& world, int room) {
  const std::string quotas = "/api/v1/namespaces/default/resourcequotas";
  Value quota = from_text(
      cat("{'apiVersion':'v1','kind':'ResourceQuota','metadata':{'name':'q'},'spec':{'hard':{"
          "'configmaps':'",
          room, "'}}}"));
  Reply made = world.post(0, quotas, quota);
  ASSERT_EQ(made.status, 201) << made.text;
  made.body.set("status",
                from_text(cat("{'hard':{'configmaps':'", room, "'},'used':{'configmaps':'0'}}")));
  ASSERT_EQ(world.put(0, cat(quotas, "/q/status"), made.body).status, 200);
  world.settle();
}

/// A charge and its object are there together, or neither: at every revision.
void check_charges(Servers& world) {
  const auto used = world.truth("/registry/resourcequotas/default/");
  ASSERT_EQ(used.size(), 1U);
  EXPECT_EQ(used[0]["status"]["used"]["configmaps"].as_string(),
            cat(world.truth("/registry/configmaps/default/").size()));
}

TEST(SeveralServers, keep_within_a_quota_and_use_all_of_it) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    Servers world(3, seed, test::random_delays());
    make_quota(world, 10);
    world.log.on_written([&](const auto&) { check_charges(world); });
    std::vector<Servers::Pending> tries;
    for (int i = 0; i < 30; ++i) {
      tries.push_back(world.begin(
          world.below(3), make_request("POST", kConfigMaps, json::write(config_map(cat("m", i))))));
      world.sim.advance(std::chrono::milliseconds(world.below(5)));
    }
    int created = 0;
    for (const auto& one : tries) {
      const int status = world.wait(one).status;
      EXPECT_THAT(status, testing::AnyOf(201, 403));
      created += status == 201 ? 1 : 0;
    }
    EXPECT_EQ(created, 10);
    EXPECT_EQ(world.truth("/registry/configmaps/default/").size(), 10U);
    world.log.on_written(nullptr);
  }
}

TEST(SeveralServers, let_many_who_are_charged_at_once_go_one_after_the_other) {
  Servers world(2, 1, test::random_delays());
  make_quota(world, 150);
  std::vector<Servers::Pending> tries;
  for (int i = 0; i < 200; ++i) {
    tries.push_back(world.begin(
        i % 2, make_request("POST", kConfigMaps, json::write(config_map(cat("m", i))))));
  }
  std::map<int, int> answers;
  for (const auto& one : tries) ++answers[world.wait(one).status];
  EXPECT_EQ(answers, (std::map<int, int>{{201, 150}, {403, 50}}));
}

TEST(SeveralServers, spend_a_budget_once) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    Servers world(2, seed, test::random_delays());
    ASSERT_EQ(world
                  .post(0, "/api/v1/namespaces/default/serviceaccounts",
                        from_text("{'apiVersion':'v1','kind':'ServiceAccount','metadata':{'name':"
                                  "'default'}}"))
                  .status,
              201);
    for (const char* name : {"p0", "p1"}) {
      Value pod = test::simple_pod(name, "{'nodeName':'n1'}");
      pod.mut("metadata").set("labels", from_text("{'a':'b'}"));
      Reply made = world.post(1, kPods, pod);
      ASSERT_EQ(made.status, 201) << made.text;
      made.body.set("status", from_text("{'phase':'Running','conditions':[{'type':'Ready',"
                                        "'status':'True'}]}"));
      ASSERT_EQ(world.put(0, cat(kPods, "/", name, "/status"), made.body).status, 200);
    }
    const std::string budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    Reply made = world.post(
        1, budgets,
        from_text("{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'b'},"
                  "'spec':{'minAvailable':1,'selector':{'matchLabels':{'a':'b'}}}}"));
    ASSERT_EQ(made.status, 201) << made.text;
    made.body.set("status", from_text("{'observedGeneration':1,'disruptionsAllowed':1,"
                                      "'currentHealthy':2,'desiredHealthy':1,'expectedPods':2}"));
    ASSERT_EQ(world.put(0, cat(budgets, "/b/status"), made.body).status, 200);
    std::vector<Servers::Pending> evictions;
    for (std::size_t at : {0, 1}) {
      evictions.push_back(world.begin(
          at, make_request("POST", cat(kPods, "/p", at, "/eviction"),
                           cat(R"({"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":)",
                               R"("p)", at, R"("}})"))));
    }
    std::multiset<int> statuses;
    for (const auto& one : evictions) statuses.insert(world.wait(one).status);
    EXPECT_EQ(statuses, (std::multiset<int>{201, 429}));
  }
}

TEST(Fences, are_no_part_of_a_store_with_one_owner) {
  test::TestServer server;
  server.post(kClaims, claim("a"));
  ASSERT_EQ(server
                .patch(cat(kClaims, "/a/status"), "merge",
                       R"({"status":{"allocation":{"devices":{"results":[{"request":"gpu",)"
                       R"("driver":"d","pool":"p","device":"g"}]}}}})")
                .status,
            200);
  EXPECT_EQ(server.store->count(kFencePrefix), 0U);
}

}  // namespace
}  // namespace dibs::server
