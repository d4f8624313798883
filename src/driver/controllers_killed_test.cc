// Controllers of a classic driver that are two, that are killed at any write, and whose writes are
// lost or come late.
#include <gmock/gmock.h>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "driver/controller_for_test.h"

namespace dibs::driver {
namespace {

using test::Boxes;
using test::ControllerWorld;
using test::DyingTransport;
using test::from_text;
using test::kClaims2;
using test::kDriver;
using testing::ElementsAre;

class ControllersKilled : public ControllerTest {};

INSTANTIATE_TEST_SUITE_P(Releases, ControllersKilled, testing::Values("", "1.27", "1.30"),
                         name_of_release);

TEST_P(ControllersKilled, two_controllers_take_turns) {
  world.make_class();
  ControllerOptions options{.driver_name = std::string(kDriver), .leader_election = true};
  options.identity = "one";
  auto one = *Controller::start(boxes, world.environment(), options);
  world.settle();
  Boxes others;
  options.identity = "two";
  auto two = *Controller::start(others, world.environment(), options);
  world.settle(std::chrono::seconds(10));
  EXPECT_TRUE(one->is_working());
  EXPECT_FALSE(two->is_working());

  world.make_claim("a", "Immediate");
  world.settle();
  one->stop();
  world.settle(std::chrono::seconds(20));
  EXPECT_TRUE(two->is_working());
  world.make_claim("b", "Immediate");
  world.settle();

  EXPECT_THAT(boxes.calls, ElementsAre("allocate a on ''"));
  EXPECT_THAT(others.calls, ElementsAre("allocate b on ''"));
  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-0/box-0", "node-0/box-1"));
}

TEST_P(ControllersKilled, another_controller_takes_over_from_one_that_was_killed) {
  world.make_class();
  ControllerOptions options{.driver_name = std::string(kDriver), .leader_election = true};
  options.identity = "one";
  // Killed at the write of the allocation: the first writes take the lease.
  DyingTransport way(world.way(), 1, false);
  client::Client dying(way);
  auto one = *Controller::start(boxes, world.environment_over(dying), options);
  world.settle();
  Boxes others;
  options.identity = "two";
  auto two = *Controller::start(others, world.environment(), options);
  world.make_claim("a", "Immediate");
  world.settle();
  ASSERT_TRUE(way.died());
  EXPECT_EQ(world.claim("a")["metadata"]["finalizers"].size(), 1u);

  world.settle(std::chrono::seconds(30));

  EXPECT_FALSE(one->is_working());
  EXPECT_TRUE(two->is_working());
  EXPECT_THAT(others.calls, ElementsAre("deallocate a of nothing", "allocate a on ''"));
  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-0/box-0"));
}

/// Two pods want all of a node's boxes; then one of them ends. The controller is killed at a write,
/// before the server has it or after, and the next one goes on.
TEST_P(ControllersKilled, a_kill_at_any_write_loses_nothing_and_gives_nothing_away_twice) {
  for (const bool arrives : {false, true}) {
    bool died = true;
    for (int writes = 0; died && writes < 40; ++writes) {
      SCOPED_TRACE(cat(arrives ? "answer lost" : "killed", " at write ", writes));
      ControllerWorld place(GetParam());
      DyingTransport way(place.way(), writes, arrives);
      client::Client dying(way);
      Boxes first;
      auto killed = *Controller::start(first, place.environment_over(dying),
                                       {.driver_name = std::string(kDriver)});
      const auto play = [&](const std::function<void()>& step) {
        step();
        place.settle();
        if (!way.died() || !killed) return;
        // What is left of it: no answer reaches it, and nothing of it the server.
        killed.reset();
        place.settle();
      };
      Boxes second;
      std::unique_ptr<Controller> next;
      const auto go_on = [&] {
        if (killed || next) return;
        next =
            *Controller::start(second, place.environment(), {.driver_name = std::string(kDriver)});
        place.settle();
      };
      const std::vector<std::function<void()>> story = {
          [&] { place.make_class(); },
          [&] { place.make_claim("now", "Immediate"); },
          [&] {
            place.make_claim("a");
            place.make_claim("b");
            place.make_pod("p", {"a", "b"});
            place.make_context("p", "node-1", {"node-0", "node-1"});
          },
          [&] {
            place.make_claim("c");
            place.make_pod("q", {"c"});
            place.make_context("q", "node-0", {"node-0"});
          },
          [&] { place.remove(kClaims2, "default", "now"); },
          [&] { place.remove(kContexts, "default", "p"); },
          [&] {
            place.patch(kClaims2, "default", "a", "{'status': {'reservedFor': null}}", "status");
            place.patch(kClaims2, "default", "a", "{'status': {'deallocationRequested': true}}",
                        "status");
          },
          [&] {
            EXPECT_EQ(place.claim("a")["status"], from_text("{}"));
            EXPECT_TRUE(place.claim("a")["metadata"]["finalizers"].is_null());
            EXPECT_EQ(place.boxes_in_use().size(), 2u);
            for (const char* name : {"b", "c"}) {
              EXPECT_EQ(place.claim(name)["status"]["reservedFor"].size(), 1u);
              place.remove(kClaims2, "default", name);
              place.patch(kClaims2, "default", name, "{'status': {'reservedFor': null}}", "status");
            }
          },
      };
      for (const auto& step : story) {
        play(step);
        go_on();
        place.settle(std::chrono::minutes(2));
        auto used = place.boxes_in_use();
        EXPECT_EQ(std::adjacent_find(used.begin(), used.end()), used.end());
      }
      died = way.died();

      for (const char* name : {"now", "b", "c"}) EXPECT_TRUE(place.claim(name).is_null()) << name;
      EXPECT_EQ(place.list(kClaims2, "default").size(), 1u);
      killed.reset();
      next.reset();
    }
    EXPECT_FALSE(died) << "the story has more writes";
  }
}

/// What is being freed is freed to its end, whichever write gets lost.
TEST_P(ControllersKilled, a_write_that_is_lost_is_made_good) {
  for (const bool arrives : {false, true}) {
    bool lost = true;
    for (int writes = 0; lost && writes < 20; ++writes) {
      SCOPED_TRACE(cat(arrives ? "answer" : "write", " ", writes, " lost"));
      ControllerWorld place(GetParam());
      DyingTransport way(place.way(), writes, arrives, true);
      client::Client client(way);
      Boxes some;
      auto controller = *Controller::start(some, place.environment_over(client),
                                           {.driver_name = std::string(kDriver)});
      place.make_class();
      place.make_claim("now", "Immediate");
      place.make_claim("c");
      place.make_pod("p", {"c"});
      place.make_context("p", "node-1", {"node-0", "node-1"});
      place.settle(std::chrono::minutes(2));
      EXPECT_EQ(place.boxes_in_use().size(), 2u);
      place.remove(kContexts, "default", "p");
      place.patch(kClaims2, "default", "c", "{'status': {'reservedFor': null}}", "status");
      place.patch(kClaims2, "default", "c", "{'status': {'deallocationRequested': true}}",
                  "status");
      place.remove(kClaims2, "default", "now");
      place.settle(std::chrono::minutes(2));
      lost = way.died();

      EXPECT_EQ(place.claim("c")["status"], from_text("{}"));
      EXPECT_TRUE(place.claim("c")["metadata"]["finalizers"].is_null());
      EXPECT_TRUE(place.claim("now").is_null());
    }
    EXPECT_FALSE(lost) << "the story has more writes";
  }
}

/// The write of an allocation reaches the server long after who sent it was killed.
TEST_P(ControllersKilled, a_write_that_comes_late_is_refused) {
  world.make_class();
  world.make_claim("a", "Immediate");
  DyingTransport way(world.way(), 1, false);
  client::Client dying(way);
  Boxes first;
  {
    auto killed = Controller::start(first, world.environment_over(dying),
                                    {.driver_name = std::string(kDriver)});
    world.settle();
  }
  ASSERT_TRUE(way.died());
  ASSERT_TRUE(way.last().has_value());

  boxes.per_node = {{"node-0", 1}};
  auto controller = start();
  world.make_claim("b", "Immediate");
  const auto late = world.way().send(*way.last());
  world.settle();

  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->status, 409);
  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-0/box-0"));
}

}  // namespace
}  // namespace dibs::driver
