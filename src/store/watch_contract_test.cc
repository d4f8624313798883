// What watches of every store of the table promise (stores.h).
#include <atomic>
#include <map>
#include <thread>

#include "store/contract_for_test.h"

namespace dibs::store {
namespace {

using testing::put;
using testing::removal;
using testing::show;

class WatchContract : public Contract {};

INSTANTIATE_TEST_SUITE_P(Stores, WatchContract, ::testing::ValuesIn(store_kinds()), name_of_store);

TEST_P(WatchContract, watch_gives_changes_above_a_revision) {
  commit(put("/a/1", "x"));
  commit(put("/b/1", "x"));
  commit(put("/a/1", "y"));

  auto watcher = watch("/a/", 1);
  Revision complete = 0;
  EXPECT_EQ(next(*watcher, 100, &complete), "3~/a/1=y");
  EXPECT_EQ(complete, 3);
  EXPECT_EQ(next(*watcher, 100, &complete), "");

  commit(removal("/a/1"));
  commit(put("/b/2", "x"));
  auto events = watcher->next(100, &complete);
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(show(*events), "4-/a/1");
  EXPECT_EQ(*events->front()->before->value, "y");
  EXPECT_EQ(complete, 5);
}

TEST_P(WatchContract, watch_reports_how_far_it_is_complete_when_cut) {
  commit({put("/a/1", "x"), put("/a/2", "x"), put("/a/3", "x")});
  commit(put("/b/1", "x"));
  commit(put("/a/1", "y"));

  auto watcher = watch("/a/", 0);
  Revision complete = -1;
  EXPECT_EQ(next(*watcher, 2, &complete), "1+/a/1=x 1+/a/2=x");
  EXPECT_EQ(complete, 0);
  EXPECT_EQ(next(*watcher, 1, &complete), "1+/a/3=x");
  EXPECT_EQ(complete, 2);
  EXPECT_EQ(next(*watcher, 1, &complete), "3~/a/1=y");
  EXPECT_EQ(complete, 3);
}

TEST_P(WatchContract, watch_of_a_key_or_a_part_of_a_name) {
  auto all = watch("", 0);
  auto key = watch("/a/one", 0);
  auto part = watch("/a/on", 0);
  auto top = watch("/a", 0);

  commit(put("/a/one", "1"));
  commit(put("/a/onto", "2"));
  commit(put("/ab", "3"));
  commit(put("/a/two", "4"));
  commit(put("b", "5"));

  EXPECT_EQ(next(*key), "1+/a/one=1");
  EXPECT_EQ(next(*part), "1+/a/one=1 2+/a/onto=2");
  EXPECT_EQ(next(*top), "1+/a/one=1 2+/a/onto=2 3+/ab=3 4+/a/two=4");
  EXPECT_EQ(next(*all), "1+/a/one=1 2+/a/onto=2 3+/ab=3 4+/a/two=4 5+b=5");
  part.reset();
  commit(put("/a/one", "6"));
  EXPECT_EQ(next(*key), "6~/a/one=6");
}

TEST_P(WatchContract, watchers_of_one_prefix_may_start_anywhere) {
  for (int i = 0; i < 5; ++i) commit(put("/a/k", std::to_string(i)));

  auto late = watch("/a/", 4);
  auto early = watch("/a/", 1);
  auto current = watch("/a/", 5);
  auto future = watch("/a/", 6);
  EXPECT_EQ(next(*late), "5~/a/k=4");
  EXPECT_EQ(next(*early), "2~/a/k=1 3~/a/k=2 4~/a/k=3 5~/a/k=4");
  EXPECT_EQ(next(*current), "");

  commit(put("/a/k", "5"));
  EXPECT_EQ(next(*future), "");
  commit(put("/a/k", "6"));
  EXPECT_EQ(next(*late), "6~/a/k=5 7~/a/k=6");
  EXPECT_EQ(next(*future), "7~/a/k=6");
}

TEST_P(WatchContract, ready_is_called_once_for_each_empty_next) {
  Signal signal;
  auto watcher = watch("/a/", 0, [&] { signal.post(); });

  commit(put("/a/1", "x"));
  EXPECT_EQ(signal.count(), 0);
  EXPECT_EQ(next(*watcher), "1+/a/1=x");
  EXPECT_EQ(next(*watcher), "");
  EXPECT_EQ(next(*watcher), "");
  commit(put("/b/1", "x"));
  EXPECT_EQ(signal.count(), 0);
  commit(put("/a/1", "y"));
  commit(put("/a/1", "z"));
  EXPECT_EQ(signal.count(), 1);
  EXPECT_EQ(next(*watcher), "3~/a/1=y 4~/a/1=z");
}

TEST_P(WatchContract, wakes_each_of_many_watchers_once) {
  constexpr int kWatchers = 1000;
  std::vector<std::atomic<int>> woken(kWatchers);
  std::vector<std::unique_ptr<Watch>> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    watchers.push_back(watch("/a/", 0, [&woken, i] { ++woken[static_cast<std::size_t>(i)]; }));
    EXPECT_EQ(next(*watchers.back()), "");
  }

  commit({put("/a/1", "x"), put("/a/2", "x")});

  for (int i = 0; i < kWatchers; ++i) {
    EXPECT_EQ(woken[static_cast<std::size_t>(i)], 1);
    EXPECT_EQ(next(*watchers[static_cast<std::size_t>(i)]), "1+/a/1=x 1+/a/2=x");
  }
}

TEST_P(WatchContract, ready_may_use_the_store_and_end_its_watch) {
  std::unique_ptr<Watch> watcher;
  std::size_t count = 0;
  Signal done;
  watcher = watch("/a/", 0, [&] {
    count = store_->count("/a/");
    watcher.reset();
    done.post();
  });
  EXPECT_EQ(next(*watcher), "");

  commit(put("/a/1", "x"));

  done.wait();
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(watcher, nullptr);
}

TEST_P(WatchContract, a_watch_may_outlive_its_store) {
  auto watcher = watch("/a/", 0);
  commit(put("/a/1", "x"));

  store_.reset();

  EXPECT_EQ(next(*watcher), "1+/a/1=x");
}

TEST_P(WatchContract, slow_watcher_is_told_that_it_missed_something) {
  for (int i = 0; i < 4; ++i) commit(put("/a/k", std::to_string(i)));
  commit(put("/b/k", "x"));
  auto slow = watch("/a/", 0);
  auto done = watch("/a/", 0);
  auto other = watch("/b/", 0);
  next(*done);
  EXPECT_EQ(next(*slow, 2), "1+/a/k=0 2~/a/k=1");

  ASSERT_TRUE(store_->compact(3).ok());

  EXPECT_EQ(slow->next(100).error().code(), Code::expired);
  EXPECT_EQ(slow->next(100).error().code(), Code::expired);
  EXPECT_EQ(next(*done), "");
  EXPECT_EQ(next(*other), "5+/b/k=x");
  EXPECT_EQ(store_->watch("/a/", 2, [] {}).error().code(), Code::expired);
  auto again = watch("/a/", 3);
  EXPECT_EQ(next(*again), "4~/a/k=3");
}

TEST_P(WatchContract, watch_has_no_gap_and_no_duplicate_under_concurrent_writers) {
  constexpr int kWriters = 4;
  constexpr int kWrites = 200;
  std::vector<std::thread> threads;
  for (int w = 0; w < kWriters; ++w) {
    threads.emplace_back([&, w] {
      for (int i = 0; i < kWrites; ++i) {
        auto done = store_->commit(
            {put(cat("/a/", w, "/", i % 10), std::to_string(i)), put(cat("/b/", w), "x")});
        EXPECT_TRUE(done.ok());
      }
    });
  }
  std::atomic<int> failures = 0;
  for (int reader = 0; reader < 3; ++reader) {
    threads.emplace_back([&] {
      // Lists, then follows, and must end with what a list gives.
      auto listing = store_->range({.prefix = "/a/"});
      std::map<std::string, std::string> seen;
      for (const auto& record : listing->records) seen[std::string(record->key)] = *record->value;
      Signal signal;
      auto watcher = store_->watch("/a/", listing->revision, [&] { signal.post(); });
      if (!watcher.ok()) {
        ++failures;
        return;
      }
      Revision last = listing->revision;
      while (last < kWriters * kWrites) {
        auto events = (*watcher)->next(7);
        if (!events.ok()) {
          ++failures;
          return;
        }
        if (events->empty()) signal.wait();
        for (const auto& event : *events) {
          // One event per transaction and prefix, so the revisions are all different and none is
          // left out.
          if (event->revision != last + 1) ++failures;
          last = event->revision;
          seen[std::string(event->key())] = *event->now->value;
        }
      }
      for (const auto& [key, value] : seen) {
        if (*store_->get(key)->value != value) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(store_->revision(), kWriters * kWrites);
}

TEST_P(WatchContract, watches_come_and_go_while_writing) {
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) (void)store_->commit({put(cat("/a/", i % 5), "x")});
  });
  for (int i = 0; i < 300; ++i) {
    std::atomic<bool> alive = true;
    auto watcher = watch("/a/", store_->revision(), [&] { EXPECT_TRUE(alive); });
    ASSERT_TRUE(watcher->next(1).ok());
    watcher.reset();
    alive = false;
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace dibs::store
