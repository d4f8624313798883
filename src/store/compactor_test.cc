#include "store/compactor.h"

#include <gtest/gtest.h>

#include <map>

#include "store/memory_store.h"
#include "store/test_support.h"

namespace dibs::store {
namespace {

using testing::put;

class FakeTimers : public runtime::Timers {
 public:
  runtime::TimerId after(Duration delay, std::function<void()> task) override {
    tasks_[++last_] = {now_ + delay, std::move(task)};
    return last_;
  }
  bool cancel(runtime::TimerId id) override { return tasks_.erase(id) > 0; }

  void advance(Duration by) {
    now_ += by;
    for (auto at = tasks_.begin(); at != tasks_.end();) {
      if (at->second.first > now_) {
        ++at;
        continue;
      }
      auto task = std::move(at->second.second);
      tasks_.erase(at);
      task();
      at = tasks_.begin();
    }
  }
  std::size_t waiting() const { return tasks_.size(); }

 private:
  Duration now_{0};
  runtime::TimerId last_ = 0;
  std::map<runtime::TimerId, std::pair<Duration, std::function<void()>>> tasks_;
};

TEST(Compactor, keeps_between_one_and_two_intervals) {
  using std::chrono::minutes;
  auto store = make_memory_store();
  FakeTimers timers;
  Compactor compactor(*store, timers, {.interval = minutes(5)});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store->commit({put("a", "x")}).ok());

  timers.advance(minutes(5));
  EXPECT_EQ(store->compacted(), 0);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(store->commit({put("a", "x")}).ok());
  timers.advance(minutes(5));
  EXPECT_EQ(store->compacted(), 10);
  timers.advance(minutes(5));
  EXPECT_EQ(store->compacted(), 20);
  timers.advance(minutes(5));
  EXPECT_EQ(store->compacted(), 20);
}

TEST(Compactor, stops) {
  auto store = make_memory_store();
  FakeTimers timers;
  {
    Compactor compactor(*store, timers);
    EXPECT_EQ(timers.waiting(), 1u);
  }
  EXPECT_EQ(timers.waiting(), 0u);
}

}  // namespace
}  // namespace dibs::store
