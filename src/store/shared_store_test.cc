// The make-believe shared store keeps what store.h promises of a shared one.
#include <gtest/gtest.h>

#include <chrono>

#include "runtime/sim_runtime.h"
#include "store/test_shared_store.h"
#include "store/test_support.h"

namespace dibs::store::testing {
namespace {

using namespace std::chrono_literals;

struct SharedStore : ::testing::Test {
  runtime::SimRuntime sim;
  SharedLog log{sim.runtime()};

  /// What an async commit gave; not ok: none yet.
  using Answer = std::shared_ptr<std::optional<Result<Revision>>>;
  static Answer commit(SharedView& view, std::vector<Op> ops) {
    auto answer = std::make_shared<std::optional<Result<Revision>>>();
    view.commit_async(std::move(ops), [answer](Result<Revision> got) { *answer = std::move(got); });
    return answer;
  }
};

TEST_F(SharedStore, a_commit_is_told_when_its_view_shows_it) {
  auto a = log.open({{10ms, 10ms}});
  auto b = log.open({{50ms, 50ms}});
  const auto done = commit(*a, {put("/k", "1", 0)});
  EXPECT_TRUE(log.get("/k"));
  sim.advance(9ms);
  EXPECT_FALSE(a->get("/k"));
  EXPECT_FALSE(done->has_value());
  sim.advance(1ms);
  ASSERT_TRUE(done->has_value());
  EXPECT_EQ((*done)->value(), log.revision());
  EXPECT_EQ(a->get("/k")->modified, log.revision());
  EXPECT_FALSE(b->get("/k"));
  sim.advance(40ms);
  EXPECT_TRUE(b->get("/k"));
}

TEST_F(SharedStore, a_conflict_is_told_when_what_won_is_shown) {
  auto a = log.open();
  auto b = log.open({{50ms, 50ms}});
  commit(*a, {put("/k", "1", 0)});
  const auto late = commit(*b, {put("/k", "2", 0)});
  sim.advance(49ms);
  EXPECT_FALSE(late->has_value());
  sim.advance(1ms);
  ASSERT_TRUE(late->has_value());
  EXPECT_EQ((*late)->error().code(), Code::conflict);
  EXPECT_EQ(*b->get("/k")->value, "1");
}

TEST_F(SharedStore, sync_waits_for_what_was_there_when_asked) {
  auto a = log.open();
  auto b = log.open({{50ms, 50ms}});
  commit(*a, {put("/k", "1")});
  bool synced = false;
  b->sync_async([&](Result<> outcome) { synced = outcome.ok(); });
  sim.advance(49ms);
  EXPECT_FALSE(synced);
  sim.advance(1ms);
  EXPECT_TRUE(synced);
  commit(*a, {put("/k", "2")});
  EXPECT_TRUE(b->sync().ok());
  EXPECT_EQ(*b->get("/k")->value, "2");
}

TEST_F(SharedStore, a_view_shows_whole_transactions_to_its_watchers_in_order) {
  auto a = log.open();
  auto b = log.open({{1ms, 90ms}});
  auto watch = b->watch("/", b->revision(), [] {});
  ASSERT_TRUE(watch.ok());
  commit(*a, {put("/a", "1"), put("/b", "1")});
  commit(*a, {put("/a", "2")});
  commit(*a, {removal("/b")});
  sim.advance(100ms);
  EXPECT_EQ(show((*watch)->next(10).value()), "1000+/a=1 1000+/b=1 1001~/a=2 1002-/b");
  EXPECT_EQ(show(log.open()->range({"/"}).value()), "/a=2");
}

TEST_F(SharedStore, a_view_that_is_cut_off_is_unavailable_and_comes_back) {
  auto a = log.open();
  auto b = log.open({{20ms, 20ms}});
  const auto lost = commit(*b, {put("/k", "1")});
  b->cut();
  sim.advance(1s);
  ASSERT_TRUE(lost->has_value());
  EXPECT_EQ((*lost)->error().code(), Code::unavailable);
  EXPECT_FALSE(b->get("/k"));
  EXPECT_FALSE(b->sync().ok());
  EXPECT_FALSE(b->commit({put("/k", "2")}).ok());
  EXPECT_EQ(*log.get("/k")->value, "1");
  b->heal();
  EXPECT_EQ(*b->get("/k")->value, "1");
}

TEST_F(SharedStore, one_seed_is_one_history) {
  const auto run = [](std::uint64_t seed) {
    runtime::SimRuntime sim({seed});
    SharedLog log(sim.runtime());
    std::string out;
    std::vector<std::unique_ptr<SharedView>> views;
    for (int i = 0; i < 3; ++i) views.push_back(log.open({{1ms, 30ms}, {0ms, 5ms}}));
    for (int i = 0; i < 60; ++i) {
      const std::string key = "/" + std::to_string(i % 4);
      SharedView& view = *views[i % 3];
      const auto record = view.get(key);
      const Revision expected = record ? record->modified : 0;
      view.commit_async({put(key, std::to_string(i), expected)}, [&out, i](Result<Revision> got) {
        out += cat(i, got.ok() ? "=" : "!", got.ok() ? *got : 0, " ");
      });
      sim.advance(3ms);
    }
    sim.advance(1s);
    return out;
  };
  EXPECT_EQ(run(7), run(7));
  EXPECT_NE(run(7), run(8));
}

}  // namespace
}  // namespace dibs::store::testing
