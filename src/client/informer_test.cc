#include "client/informer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "runtime/real_runtime.h"
#include "runtime/sim_runtime.h"

namespace dibs::client {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct InformerTest : testing::Test {
  runtime::SimRuntime sim;
  FakeApi api;
  std::unique_ptr<Transport> transport = make_in_process_transport(api.handler(), sim.runtime());
  Client client{*transport};
  InformerOptions options{.gvr = {"", "v1", "pods"}};
  std::unique_ptr<Informer> informer;
  std::vector<std::string> log;

  void start() {
    informer = std::make_unique<Informer>(client, sim.runtime(), options);
    informer->add_index("node", [](const json::Value& pod) {
      return std::vector<std::string>{pod["spec"]["nodeName"].str()};
    });
    informer->add_handler(logger());
    informer->start();
    sim.run_until_idle();
  }
  InformerHandlers logger() {
    return {.added =
                [this](const json::Value& pod, bool initial) {
                  log.push_back(cat(initial ? "initial " : "added ", key_of(pod)));
                },
            .updated = [this](const json::Value&,
                              const json::Value& pod) { log.push_back("updated " + key_of(pod)); },
            .removed = [this](const json::Value& pod) { log.push_back("removed " + key_of(pod)); }};
  }
  std::vector<std::string> take() { return std::exchange(log, {}); }
  void put(const std::string& name, const std::string& node = "") {
    api.put(fake_pod_path("a", name), fake_pod("a", name, node));
  }
};

TEST_F(InformerTest, lists_then_follows) {
  put("one", "n1");
  put("two", "n2");
  start();
  EXPECT_TRUE(informer->synced());
  EXPECT_THAT(take(), UnorderedElementsAre("initial a/one", "initial a/two"));

  put("three", "n1");
  put("two", "n1");
  api.remove(fake_pod_path("a", "one"));
  sim.run_until_idle();

  EXPECT_THAT(take(), ElementsAre("added a/three", "updated a/two", "removed a/one"));
  EXPECT_EQ(informer->size(), 2U);
  EXPECT_TRUE(informer->get("a/two").has_value());
  EXPECT_FALSE(informer->get("a/one").has_value());
  EXPECT_EQ(informer->by_index("node", "n1").size(), 2U);
  EXPECT_THAT(informer->by_index("node", "n2"), IsEmpty());
  EXPECT_THAT(informer->by_index("absent", "n2"), IsEmpty());
  EXPECT_THAT(api.requests()[0], HasSubstr("resourceVersion=0"));
  EXPECT_THAT(api.requests()[1], HasSubstr("watch=true&resourceVersion=102"));
}

TEST_F(InformerTest, keeps_one_copy_of_what_is_alike) {
  auto pod = [](const std::string& name) {
    auto made = fake_pod("a", name, "a-node-with-a-long-name");
    made.mut("metadata").set("managedFields", json::Value::array({"somebody"}));
    made.mut("spec").set("tolerations", json::Value::array({json::Value::object({{"key", "k"}})}));
    return made;
  };
  api.put(fake_pod_path("a", "one"), pod("one"));
  start();
  api.put(fake_pod_path("a", "two"), pod("two"));
  sim.run_until_idle();
  const auto one = *informer->get("a/one");
  const auto two = *informer->get("a/two");
  EXPECT_FALSE(one["metadata"].contains("managedFields"));
  EXPECT_FALSE(two["metadata"].contains("managedFields"));
  EXPECT_EQ(one["spec"]["tolerations"], pod("one")["spec"]["tolerations"]);
  EXPECT_TRUE(one["spec"]["tolerations"].same_node(two["spec"]["tolerations"]));
}

TEST_F(InformerTest, gives_late_handlers_what_there_is) {
  put("one");
  start();
  take();
  informer->add_handler(logger());
  sim.run_until_idle();
  EXPECT_THAT(take(), ElementsAre("initial a/one"));
  put("two");
  sim.run_until_idle();
  EXPECT_THAT(take(), ElementsAre("added a/two", "added a/two"));
}

TEST_F(InformerTest, takes_a_watch_up_where_it_ended) {
  start();
  put("one");
  sim.run_until_idle();
  take();
  api.end_watches(true);
  put("two");  // between two watches
  sim.run_until_idle();
  EXPECT_THAT(take(), ElementsAre("added a/two"));
  EXPECT_EQ(informer->lists(), 1U);

  api.end_watches(false);
  put("three");
  sim.advance(seconds(5));
  EXPECT_THAT(take(), ElementsAre("added a/three"));
  EXPECT_EQ(informer->lists(), 1U);
}

TEST_F(InformerTest, moves_on_with_bookmarks) {
  start();
  api.put("/api/v1/namespaces/a/services/s", fake_pod("a", "s"));
  api.send_bookmarks();
  sim.run_until_idle();
  api.end_watches(true);
  sim.run_until_idle();
  EXPECT_THAT(api.requests().back(), HasSubstr("resourceVersion=101&"));
}

TEST_F(InformerTest, tells_only_the_difference_after_a_410) {
  put("kept");
  put("changed");
  put("gone");
  start();
  take();
  api.end_watches(false);
  put("changed");
  put("new");
  api.remove(fake_pod_path("a", "gone"));
  api.compact();

  sim.advance(seconds(30));

  EXPECT_THAT(take(), UnorderedElementsAre("updated a/changed", "added a/new", "removed a/gone"));
  EXPECT_EQ(informer->lists(), 2U);
  put("later");
  sim.run_until_idle();
  EXPECT_THAT(take(), ElementsAre("added a/later"));
}

TEST_F(InformerTest, lists_in_pages_when_it_must_be_current) {
  for (int i = 0; i < 1200; ++i) put(cat("p", 1000 + i));
  start();
  EXPECT_EQ(informer->size(), 1200U);
  api.compact();
  api.break_watches(410, "Expired");
  sim.advance(seconds(30));
  EXPECT_EQ(informer->lists(), 2U);
  int pages = 0;
  for (const auto& request : api.requests())
    pages += request.find("limit=500") != std::string::npos;
  EXPECT_EQ(pages, 3);
}

TEST_F(InformerTest, waits_longer_after_every_failure) {
  api.fail("GET /api/v1/pods", 503, "ServiceUnavailable", 6);
  put("one");
  start();
  EXPECT_FALSE(informer->synced());
  sim.advance(seconds(3));
  const std::size_t early = api.requests().size();
  EXPECT_LE(early, 3U);
  sim.advance(minutes(2));
  EXPECT_TRUE(informer->synced());
  EXPECT_THAT(take(), ElementsAre("initial a/one"));
}

TEST_F(InformerTest, does_not_hammer_a_server_that_ends_watches_at_once) {
  start();
  api.fail("watch=true", 429, "TooManyRequests", 1000);
  api.end_watches(true);
  sim.advance(minutes(2));
  EXPECT_LT(api.requests().size(), 20U);
}

TEST_F(InformerTest, resyncs) {
  options.resync = minutes(10);
  put("one");
  start();
  take();
  sim.advance(minutes(21));
  EXPECT_THAT(take(), ElementsAre("updated a/one", "updated a/one"));
}

TEST_F(InformerTest, stops) {
  put("one");
  start();
  take();
  informer->stop();
  put("two");
  sim.advance(minutes(1));
  EXPECT_THAT(take(), IsEmpty());
  EXPECT_EQ(api.watches(), 0U);
}

TEST_F(InformerTest, may_be_stopped_by_its_handler) {
  put("one");
  put("two");
  informer = std::make_unique<Informer>(client, sim.runtime(), options);
  informer->add_handler({.added = [this](const json::Value&, bool) { informer->stop(); },
                         .updated = {},
                         .removed = {}});
  informer->start();
  sim.advance(minutes(1));
  EXPECT_EQ(api.watches(), 0U);
}

TEST_F(InformerTest, ends_equal_to_the_server_whatever_happens) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    runtime::SimRuntime world({.seed = seed, .shuffle = true});
    FakeApi server;
    auto way = make_in_process_transport(server.handler(), world.runtime());
    Client talk(*way);
    Informer copy(talk, world.runtime(), options);
    std::map<std::string, std::string> mirror;
    const auto note = [&](const json::Value& pod) {
      mirror[key_of(pod)] = pod["metadata"]["resourceVersion"].str();
    };
    copy.add_handler({.added = [&](const json::Value& pod, bool) { note(pod); },
                      .updated = [&](const json::Value&, const json::Value& pod) { note(pod); },
                      .removed = [&](const json::Value& pod) { mirror.erase(key_of(pod)); }});
    copy.start();
    auto& random = world.runtime().random;
    for (int step = 0; step < 300; ++step) {
      const std::string name = cat("p", random.below(10));
      switch (random.below(9)) {
        case 0:
          server.remove(fake_pod_path("a", name));
          break;
        case 1:
          server.end_watches(random.below(2) == 0);
          break;
        case 2:
          server.compact();
          break;
        case 3:
          server.break_watches(410, "Expired");
          break;
        case 4:
          server.fail("GET", 500, "InternalError", 2);
          break;
        case 5:
          world.advance(std::chrono::milliseconds(random.below(2000)));
          break;
        case 6:
          server.send_bookmarks();
          break;
        default:
          server.put(fake_pod_path("a", name), fake_pod("a", name));
          break;
      }
    }
    // Long enough for all faults that wait, half a minute each.
    world.advance(std::chrono::hours(2));
    std::map<std::string, std::string> truth;
    for (int i = 0; i < 10; ++i) {
      const auto pod = server.get(fake_pod_path("a", cat("p", i)));
      if (pod) truth[key_of(*pod)] = (*pod)["metadata"]["resourceVersion"].str();
    }
    EXPECT_EQ(mirror, truth) << "seed " << seed;
    EXPECT_EQ(copy.size(), truth.size());
  }
}

TEST(Informer, works_with_threads) {
  FakeApi api;
  runtime::RealRuntime world;  // ends before what its threads call
  auto transport = make_in_process_transport(api.handler(), world.runtime());
  Client client(*transport);
  api.put(fake_pod_path("a", "one"), fake_pod("a", "one"));
  std::atomic<int> seen = 0;
  Informer informer(client, world.runtime(), {.gvr = {"", "v1", "pods"}});
  informer.add_handler(
      {.added = [&](const json::Value&, bool) { ++seen; }, .updated = {}, .removed = {}});
  informer.start();
  ASSERT_TRUE(informer.wait_until_synced(seconds(20)));
  for (int i = 0; i < 100; ++i) {
    const std::string name = cat("p", i);
    api.put(fake_pod_path("a", name), fake_pod("a", name));
  }
  while (seen < 101) std::this_thread::yield();
  informer.stop();
  EXPECT_EQ(informer.size(), 101U);
}

}  // namespace
}  // namespace dibs::client
