#include "server/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "runtime/sim_runtime.h"

namespace dibs::server {
namespace {

using testing::ElementsAre;

class TurnsTest : public testing::Test {
 protected:
  void post(Turns& turns, const std::string& user, const std::string& name) {
    turns.post(user, turns.begin(), [this, name] { done.push_back(name); });
  }
  runtime::SimRuntime sim;
  std::vector<std::string> done;
};

TEST_F(TurnsTest, are_taken_by_users_not_by_how_much_they_ask_for) {
  Turns turns(sim.runtime().executor, 1);
  for (int i = 0; i < 5; ++i) post(turns, "greedy", cat("g", i));
  post(turns, "jane", "j0");
  post(turns, "jane", "j1");
  sim.run_until_idle();
  EXPECT_THAT(done, ElementsAre("g0", "g1", "j0", "g2", "j1", "g3", "g4"));
}

TEST_F(TurnsTest, end_what_was_begun_first) {
  Turns turns(sim.runtime().executor, 1);
  const auto first = turns.begin();
  const auto second = turns.begin();
  post(turns, "greedy", "busy");
  turns.post("greedy", second, [&] { done.emplace_back("second"); });
  turns.post("greedy", first, [&] {
    done.emplace_back("first");
    turns.post("greedy", first, [&] { done.emplace_back("first again"); });
  });
  sim.run_until_idle();
  EXPECT_THAT(done, ElementsAre("busy", "first", "first again", "second"));
}

TEST_F(TurnsTest, let_others_in_between) {
  Turns turns(sim.runtime().executor, 2);
  for (int i = 0; i < 6; ++i) post(turns, "greedy", cat("g", i));
  sim.runtime().executor.post([this] { done.push_back("other"); });
  sim.run_until_idle();
  EXPECT_THAT(done, ElementsAre("g0", "g1", "other", "g2", "g3", "g4", "g5"));
  // And from the beginning again.
  post(turns, "greedy", "g6");
  sim.run_until_idle();
  EXPECT_EQ(done.back(), "g6");
}

}  // namespace
}  // namespace dibs::server
