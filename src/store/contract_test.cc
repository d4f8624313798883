// What every store of the table promises (stores.h).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "store/contract_for_test.h"

namespace dibs::store {
namespace {

using testing::put;
using testing::removal;
using testing::show;

INSTANTIATE_TEST_SUITE_P(Stores, Contract, ::testing::ValuesIn(store_kinds()), name_of_store);

TEST(Stores, an_unknown_name_is_refused_with_those_there_are) {
  EXPECT_EQ(open_store("zookeeper", {}).error().message(),
            "unknown store \"zookeeper\": must be sqlite, memory or etcd");
}

TEST_P(Contract, keeps_what_it_promises_to_keep) {
  testing::TemporaryDirectory folder;
  StoreOptions options;
  options.folder = folder.path();
  for (int turn = 0; turn < 2; ++turn) {
    auto opened = testing::open_for_suite(GetParam(), options);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    const bool kept = turn > 0 && GetParam().durable;
    EXPECT_EQ((*opened)->get("/a") != nullptr, kept);
    if (kept) continue;
    std::vector<Op> first{put("/a", "1")};
    auto done = (*opened)->commit(std::move(first));
    ASSERT_TRUE(done.ok());
    if (!GetParam().remote) {
      EXPECT_EQ(*done, options.first_revision);
    }
  }
}

TEST_P(Contract, starts_empty_at_revision_zero) {
  EXPECT_EQ(store_->revision(), 0);
  EXPECT_EQ(store_->compacted(), 0);
  EXPECT_EQ(store_->get("a"), nullptr);
  EXPECT_EQ(store_->count(""), 0u);
  EXPECT_EQ(list({}), "");
}

TEST_P(Contract, counts_revisions_up_by_one) {
  EXPECT_EQ(commit(put("a", "1")), 1);
  EXPECT_EQ(commit(put("b", "2")), 2);
  EXPECT_EQ(commit(removal("a")), 3);
  EXPECT_EQ(store_->revision(), 3);
}

TEST_P(Contract, keeps_the_creation_revision_until_the_key_is_made_again) {
  commit(put("a", "1"));
  commit(put("a", "2"));

  auto record = store_->get("a");
  ASSERT_TRUE(record);
  EXPECT_EQ(*record->value, "2");
  EXPECT_EQ(record->created, 1);
  EXPECT_EQ(record->modified, 2);

  commit(removal("a"));
  commit(put("a", "3"));
  EXPECT_EQ(store_->get("a")->created, 4);
}

TEST_P(Contract, keeps_what_the_writer_attached_for_a_while) {
  const auto what = std::make_shared<const int>(7);
  ASSERT_TRUE(store_->commit({{"a", share("1"), std::nullopt, what}}).ok());
  EXPECT_EQ(store_->get("a")->attachment(), what);
  ASSERT_TRUE(store_->commit({{"a", share("2"), std::nullopt}}).ok());
  EXPECT_EQ(store_->get("a")->attachment(), nullptr);

  ASSERT_TRUE(store_->commit({{"a", share("3"), std::nullopt, what}}).ok());
  for (int i = 0; i < 50; ++i) {
    std::vector<Op> ops;
    for (int k = 0; k < 100; ++k) ops.push_back({cat("b", i, "/", k), share("x"), {}, what});
    ASSERT_TRUE(store_->commit(std::move(ops)).ok());
  }
  EXPECT_EQ(store_->get("a")->attachment(), nullptr);
  EXPECT_EQ(store_->get("b49/0")->attachment(), what);
}

TEST_P(Contract, checks_expectations) {
  EXPECT_EQ(failure({put("a", "1", 7)}), Code::conflict);
  EXPECT_EQ(commit(put("a", "1", 0)), 1);
  EXPECT_EQ(failure({put("a", "2", 0)}), Code::conflict);
  EXPECT_EQ(commit(put("a", "2", 1)), 2);
  EXPECT_EQ(failure({put("a", "3", 1)}), Code::conflict);
  EXPECT_EQ(failure({removal("a", 1)}), Code::conflict);
  EXPECT_EQ(commit(removal("a", 2)), 3);
  EXPECT_EQ(failure({removal("a", 2)}), Code::conflict);
  EXPECT_EQ(store_->revision(), 3);
}

TEST_P(Contract, writes_nothing_where_it_only_expects) {
  const auto only = [](const char* key, Revision expected) {
    Op op;
    op.key = key;
    op.expected = expected;
    op.only_expects = true;
    return op;
  };
  commit(put("n", "1"));

  EXPECT_EQ(commit({put("a", "1", 0), only("n", 1), only("none", 0)}), 2);
  EXPECT_EQ(list({}), "a=1 n=1");
  EXPECT_EQ(store_->get("n")->modified, 1);
  EXPECT_EQ(failure({put("b", "1", 0), only("n", 2)}), Code::conflict);
  commit(removal("n"));
  EXPECT_EQ(failure({put("b", "1", 0), only("n", 1)}), Code::conflict);
  EXPECT_EQ(list({}), "a=1");
  auto watcher = watch("", 0);
  EXPECT_EQ(next(*watcher), "1+n=1 2+a=1 3-n");
}

TEST_P(Contract, writes_all_operations_or_none) {
  commit(put("a", "1"));

  EXPECT_EQ(failure({put("b", "1"), put("a", "2", 9), put("c", "1")}), Code::conflict);
  EXPECT_EQ(list({}), "a=1");

  EXPECT_EQ(commit({put("b", "1", 0), put("a", "2", 1), put("c", "1")}), 2);
  EXPECT_EQ(list({}), "a=2 b=1 c=1");
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(store_->get(key)->modified, 2);
}

TEST_P(Contract, removal_of_nothing_takes_no_revision) {
  commit(put("a", "1"));

  EXPECT_EQ(commit(removal("b")), 1);
  EXPECT_EQ(commit({removal("b"), put("c", "1")}), 2);
  auto watcher = watch("", 0);
  EXPECT_EQ(next(*watcher), "1+a=1 2+c=1");
}

TEST_P(Contract, refuses_malformed_transactions) {
  EXPECT_EQ(failure({}), Code::invalid);
  EXPECT_EQ(failure({put("a", "1"), put("a", "2")}), Code::invalid);
  EXPECT_EQ(failure({put("", "1")}), Code::invalid);
  EXPECT_EQ(failure({put("a", std::string((1 << 20) + 1, 'x'))}), Code::too_large);
  std::vector<Op> many;
  for (int i = 0; i < 12; ++i) many.push_back(put(cat("k", i % 11), ""));
  EXPECT_EQ(failure(std::move(many)), Code::invalid);
  EXPECT_EQ(store_->revision(), 0);
}

TEST_P(Contract, refuses_more_operations_than_it_can_take) {
  if (GetParam().max_ops > 1000) GTEST_SKIP() << "as many as anybody wants";
  std::vector<Op> many;
  for (std::size_t i = 0; i <= GetParam().max_ops; ++i) many.push_back(put(cat("k", i), ""));
  EXPECT_EQ(failure(std::move(many)), Code::too_large);
  EXPECT_EQ(store_->revision(), 0);
}

TEST_P(Contract, keeps_any_bytes) {
  const std::string bytes("\0\xff\n\"'", 5);
  commit(put("k\xc3\xa9\n'\"", bytes));
  commit(put("empty", ""));

  EXPECT_EQ(*store_->get("k\xc3\xa9\n'\"")->value, bytes);
  EXPECT_EQ(*store_->get("empty")->value, "");
}

TEST_P(Contract, lists_by_prefix_in_byte_order) {
  commit({put("/p/b", "2"), put("/p/a", "1"), put("/p", "x"), put("/q/a", "y"), put("/p/a/1", "3"),
          put("/p0", "z")});

  EXPECT_EQ(list({.prefix = "/p/"}), "/p/a=1 /p/a/1=3 /p/b=2");
  EXPECT_EQ(list({.prefix = "/p"}), "/p=x /p/a=1 /p/a/1=3 /p/b=2 /p0=z");
  EXPECT_EQ(list({.prefix = "/p/", .from = "/p/a/"}), "/p/a/1=3 /p/b=2");
  EXPECT_EQ(list({.prefix = "/z"}), "");
  EXPECT_EQ(store_->count("/p/"), 3u);
  EXPECT_EQ(store_->count(""), 6u);
}

TEST_P(Contract, cuts_a_listing_and_tells_how_much_remains) {
  for (int i = 0; i < 10; ++i) commit(put(cat("/k/", i), std::to_string(i)));
  commit(put("/l/0", "other"));

  auto first = store_->range({.prefix = "/k/", .limit = 4});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(show(*first), "/k/0=0 /k/1=1 /k/2=2 /k/3=3");
  EXPECT_TRUE(first->more);
  EXPECT_EQ(first->remaining, 6u);

  commit(removal("/k/7"));
  auto second = store_->range({.prefix = "/k/", .from = "/k/4", .limit = 4, .at = first->revision});
  EXPECT_EQ(show(*second), "/k/4=4 /k/5=5 /k/6=6 /k/7=7");
  EXPECT_EQ(second->remaining, 2u);
  auto third = store_->range({.prefix = "/k/", .from = "/k/8", .limit = 4, .at = first->revision});
  EXPECT_EQ(show(*third), "/k/8=8 /k/9=9");
  EXPECT_FALSE(third->more);
  EXPECT_EQ(third->remaining, 0u);
}

TEST_P(Contract, reads_old_states_until_compacted) {
  commit(put("a", "1"));
  commit(put("b", "1"));
  commit(put("a", "2"));
  commit(removal("b"));

  EXPECT_EQ(list({.at = 1}), "a=1");
  EXPECT_EQ(list({.at = 2}), "a=1 b=1");
  EXPECT_EQ(list({.at = 3}), "a=2 b=1");
  EXPECT_EQ(list({.at = 4}), "a=2");

  ASSERT_TRUE(store_->compact(3).ok());
  EXPECT_EQ(store_->compacted(), 3);
  EXPECT_EQ(store_->range({.at = 2}).error().code(), Code::expired);
  EXPECT_EQ(list({.at = 3}), "a=2 b=1");
  EXPECT_EQ(list({}), "a=2");
  EXPECT_EQ(store_->range({.at = 5}).error().code(), Code::timeout);
}

TEST_P(Contract, compaction_goes_forward_only) {
  commit(put("a", "1"));
  commit(put("a", "2"));

  EXPECT_EQ(store_->compact(3).error().code(), Code::invalid);
  EXPECT_TRUE(store_->compact(2).ok());
  EXPECT_TRUE(store_->compact(1).ok());
  EXPECT_EQ(store_->compacted(), 2);
  EXPECT_EQ(list({}), "a=2");
}

TEST_P(Contract, history_is_bounded_by_events_and_bytes) {
  open({.events = 80, .bytes = 1 << 20});
  for (int i = 0; i < 400; ++i) commit(put(cat("/k/", i % 7), std::to_string(i)));
  // One backend compacts in another thread.
  while (store_->compacted() < 300) std::this_thread::yield();
  EXPECT_EQ(store_->count("/k/"), 7u);
  EXPECT_EQ(list({.prefix = "/k/0"}), "/k/0=399");

  open({.events = 100000, .bytes = 100000});
  std::minstd_rand random(7);
  for (int i = 0; i < 20; ++i) {
    std::string noise(20000, 'x');
    for (char& c : noise) c = static_cast<char>('a' + random() % 26);
    commit(put("/k", std::move(noise)));
  }
  while (store_->compacted() < 15) std::this_thread::yield();
  EXPECT_EQ(store_->get("/k")->modified, 20);
}

TEST_P(Contract, makes_an_encoded_form_once) {
  commit(put("a", "1"));
  auto watcher = watch("", 0);
  auto events = watcher->next(1);
  const Event& event = *events->front();
  int made = 0;
  auto make = [&] {
    ++made;
    return std::string("form");
  };

  auto first = event.encoded(1, make);
  auto again = event.encoded(1, make);
  event.encoded(2, make);

  EXPECT_EQ(first, again);
  EXPECT_EQ(made, 2);

  event.forget_encoded();
  EXPECT_EQ(*event.encoded(1, make), "form");
  EXPECT_EQ(made, 3) << "and again for whoever comes late";
}

TEST_P(Contract, close_refuses_writes_and_keeps_reading) {
  commit(put("a", "1"));

  store_->close();
  store_->close();

  EXPECT_EQ(failure({put("a", "2")}), Code::unavailable);
  EXPECT_EQ(*store_->get("a")->value, "1");
  // Others may have written since.
  EXPECT_EQ(store_->sync().ok(), !store_->shared());
}

TEST_P(Contract, commit_async_tells_every_outcome_once) {
  constexpr int kWrites = 200;
  Signal finished;
  Mutex mutex;
  std::map<Revision, std::string> made;
  std::atomic<int> unseen = 0;

  for (int i = 0; i < kWrites; ++i) {
    const std::string key = cat("/a/", i);
    store_->commit_async({put(key, "x", 0)}, [&, key](Result<Revision> revision) {
      if (!store_->get(key)) ++unseen;
      {
        MutexLock lock(mutex);
        made[revision.ok() ? *revision : -1] = key;
      }
      finished.post();
    });
  }

  for (int i = 0; i < kWrites; ++i) finished.wait();
  EXPECT_EQ(unseen, 0);
  ASSERT_EQ(made.size(), static_cast<std::size_t>(kWrites));
  EXPECT_EQ(made.begin()->first, 1);
  for (const auto& [revision, key] : made) EXPECT_EQ(store_->get(key)->modified, revision);
}

TEST_P(Contract, commit_async_tells_faults) {
  commit(put("/a", "1"));
  std::vector<Code> codes;
  Signal finished;
  const auto note = [&](Result<Revision> revision) {
    codes.push_back(revision.ok() ? Code::internal : revision.error().code());
    finished.post();
  };

  store_->commit_async({put("/a", "2", 0)}, note);
  finished.wait();
  store_->commit_async({}, note);
  finished.wait();
  store_->close();
  store_->commit_async({put("/b", "1")}, note);
  finished.wait();

  EXPECT_THAT(codes, ::testing::ElementsAre(Code::conflict, Code::invalid, Code::unavailable));
}

TEST_P(Contract, keeps_values_in_as_much_memory_as_they_need) {
  std::string value(1000, 'x');
  value.reserve(100'000);
  commit(put("/a", std::move(value)));
  const RecordPtr kept = store_->get("/a");
  EXPECT_EQ(kept->value->size(), 1000U);
  EXPECT_LT(kept->value->memory(), 1100U);
}

TEST_P(Contract, lists_more_keys_than_one_piece) {
  std::vector<Op> ops;
  for (int i = 0; i < 5000; ++i) ops.push_back(put(cat("/k/", 10000 + i * 7919 % 5000), "v"));
  commit_parts(std::move(ops));

  auto listing = store_->range({.prefix = "/k/"});
  ASSERT_TRUE(listing.ok());
  ASSERT_EQ(listing->records.size(), 5000u);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(listing->records[static_cast<std::size_t>(i)]->key, cat("/k/", 10000 + i));
  }
  auto page = store_->range({.prefix = "/k/", .limit = 2500});
  EXPECT_EQ(page->records.size(), 2500u);
  EXPECT_EQ(page->remaining, 2500u);
}

// A transfer between two accounts keeps the sum; every snapshot must show it.
TEST_P(Contract, snapshots_are_consistent_while_writing) {
  constexpr int kAccounts = 2000;
  std::vector<Op> ops;
  for (int i = 0; i < kAccounts; ++i) ops.push_back(put(cat("/account/", i), "100"));
  commit_parts(std::move(ops));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    unsigned state = 1;
    while (!stop) {
      state = state * 1664525u + 1013904223u;
      const auto a = store_->get(cat("/account/", state % kAccounts));
      const auto b = store_->get(cat("/account/", (state >> 8) % kAccounts));
      if (a->key == b->key) continue;
      std::vector<Op> transfer;
      transfer.push_back(put(std::string(a->key), std::to_string(number(*a) - 1), a->modified));
      transfer.push_back(put(std::string(b->key), std::to_string(number(*b) + 1), b->modified));
      if (!store_->commit(std::move(transfer)).ok())
        ADD_FAILURE() << "the only writer had a conflict";
      if (state % 64 == 0 && !store_->compact(store_->revision()).ok())
        ADD_FAILURE() << "not compacted";
    }
  });

  for (int round = 0; round < 50; ++round) {
    auto listing = store_->range({.prefix = "/account/"});
    ASSERT_TRUE(listing.ok());
    long sum = 0;
    for (const auto& record : listing->records) sum += number(*record);
    EXPECT_EQ(listing->records.size(), static_cast<std::size_t>(kAccounts));
    EXPECT_EQ(sum, 100L * kAccounts) << "at " << listing->revision;
  }
  stop = true;
  writer.join();
}

// Many writers count one key up by compare-and-set: nobody's step may be lost.
TEST_P(Contract, compare_and_set_loses_nothing) {
  constexpr int kWriters = 8;
  constexpr int kSteps = 50;
  commit(put("counter", "0"));
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      for (int step = 0; step < kSteps;) {
        const auto record = store_->get("counter");
        auto done =
            store_->commit({put("counter", std::to_string(number(*record) + 1), record->modified)});
        if (done.ok()) ++step;
      }
    });
  }
  for (auto& writer : writers) writer.join();

  EXPECT_EQ(*store_->get("counter")->value, std::to_string(kWriters * kSteps));
}

}  // namespace
}  // namespace dibs::store
