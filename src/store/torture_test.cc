// The embedded store on a disk that fails, for a moment of what testing/torture/store_torture.cc
// does for hours (docs/reliability.md).

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "base/strings.h"
#include "store/test_support.h"
#include "store/testing/kill_loop.h"
#include "store/testing/sweeps.h"

namespace dibs::store::testing {
namespace {

using ::testing::HasSubstr;

/// A store on a disk of its own, closed when it is not needed.
class OnFaultyDisk : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open() {
    auto opened = open_sqlite_store(options_);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  void crash(std::unique_ptr<Store>& store, Fault how) {
    disk_.crash(how);
    store.reset();
    disk_.restart();
  }

  FaultyDisk disk_{7, 512};
  SqliteOptions options_ = [this] {
    SqliteOptions options;
    options.path = "/store.db";
    options.disk = &disk_;
    options.room_interval = std::chrono::milliseconds(1);
    return options;
  }();
};

TEST_F(OnFaultyDisk, what_was_read_after_a_kill_survives_a_power_loss) {
  // The kill comes when all is written and nothing is synced.
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    FaultyDisk disk(seed, 512);
    options_.disk = &disk;
    auto store = open();
    ASSERT_TRUE(store->commit({put("/a", "1")}).ok());
    disk.plan({Fault::kill, Call::sync, 1});
    ASSERT_FALSE(store->commit({put("/a", "2")}).ok());
    store.reset();
    disk.restart();

    store = open();
    const Revision told = store->revision();
    disk.crash(Fault::power_loss);
    store.reset();
    disk.restart();

    store = open();
    EXPECT_GE(store->revision(), told) << seed;
    store.reset();
  }
}

TEST_F(OnFaultyDisk, nothing_is_built_upon_a_failed_sync) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    FaultyDisk disk(seed, 512);
    options_.disk = &disk;
    auto store = open();
    ASSERT_TRUE(store->commit({put("/a", "1")}).ok());
    disk.plan({Fault::io_error, Call::sync, 1});
    ASSERT_FALSE(store->commit({put("/a", std::string(20000, 'x'))}).ok());
    EXPECT_EQ(*store->get("/a")->value, "1");
    // A process that is killed here leaves a log that looks whole to the next one.
    disk.crash(Fault::kill);
    store.reset();
    disk.restart();

    store = open();
    const auto done = store->commit({put("/b", "2")});
    ASSERT_TRUE(done.ok()) << done.error().message();
    disk.crash(Fault::power_loss);
    store.reset();
    disk.restart();

    store = open();
    ASSERT_TRUE(store->get("/b")) << seed;
    EXPECT_EQ(store->get("/b")->modified, *done);
    store.reset();
  }
}

TEST_F(OnFaultyDisk, a_write_that_failed_does_not_come_back) {
  auto store = open();
  ASSERT_TRUE(store->commit({put("/a", "1")}).ok());
  disk_.plan({Fault::io_error, Call::sync, 1});
  ASSERT_FALSE(store->commit({put("/a", "2")}).ok());
  // The next one begins the log anew, whatever becomes of it.
  disk_.plan({Fault::io_error, Call::write, 3});
  (void)store->commit({put("/b", "3")});
  crash(store, Fault::kill);

  store = open();
  EXPECT_EQ(*store->get("/a")->value, "1");
}

TEST_F(OnFaultyDisk, names_of_files_are_durable_before_the_first_answer) {
  // SQLite's own sync of the folder fails without a word; the store's says so.
  disk_.plan({Fault::io_error, Call::folder, 1, true});
  auto opened = open_sqlite_store(options_);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Code::unavailable);
  disk_.mend();

  auto store = open();
  ASSERT_TRUE(store->commit({put("/a", "1")}).ok());
  crash(store, Fault::power_loss);
  EXPECT_EQ(open()->count("/"), 1U);
}

TEST_F(OnFaultyDisk, health_is_red_until_writes_work_again) {
  auto store = open();
  disk_.plan({Fault::io_error, Call::write, 1, true});
  const auto refused = store->commit({put("/a", "1")});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unavailable);
  EXPECT_EQ(store->health().error().message(), refused.error().message());
  EXPECT_TRUE(store->room().ok());

  disk_.mend();
  // Nobody writes: the store finds out by itself.
  for (int i = 0; i < 10'000 && !store->health().ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(store->health().ok());
  EXPECT_EQ(*store->commit({put("/a", "1")}), 1);
}

TEST_F(OnFaultyDisk, a_page_that_cannot_be_read_is_not_called_damaged) {
  {
    auto store = open();
    for (int i = 0; i < 60; ++i) {
      ASSERT_TRUE(store->commit({put(cat("/k/", i), std::string(9000, 'x'))}).ok());
    }
  }
  for (std::size_t at = 1;; ++at) {
    disk_.plan({Fault::io_error, Call::read, at, true});
    auto opened = open_sqlite_store(options_);
    if (!disk_.has_failed()) break;
    EXPECT_TRUE(opened.ok() || opened.error().code() == Code::unavailable) << at;
    disk_.mend();
  }
}

// One bit of the file at a time: it is refused, or everything is there, or the one value that the
// bit is in is wrong, which only a checksum of it could tell.
TEST_F(OnFaultyDisk, damaged_pages_are_refused_or_do_no_harm) {
  std::map<std::string, std::string> is;
  {
    auto store = open();
    for (int i = 0; i < 60; ++i) {
      const std::string key = cat("/k/", i);
      is[key] = std::string(static_cast<std::size_t>(i) * 300, static_cast<char>('a' + i % 26));
      ASSERT_TRUE(store->commit({put(key, is[key])}).ok());
      if (i % 7 == 0) {
        ASSERT_TRUE(store->commit({removal(key)}).ok());
        is.erase(key);
      }
    }
    ASSERT_TRUE(store->compact(40).ok());
  }
  const auto image = disk_.image();
  const std::size_t size = image.at("/store.db").size();
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    // Half of them in the first page and the heads of others, where structure is.
    const std::size_t page = i % 2 == 0 ? random() % (size / 16384) * 16384 : 0;
    const std::size_t at = i % 2 == 0 ? page + random() % 64 : random() % size;
    disk_.set_image(image);
    disk_.corrupt("/store.db", at, random() % 8);
    auto opened = open_sqlite_store(options_);
    if (!opened.ok()) {
      ++refused;
      EXPECT_THAT(opened.error().message(), HasSubstr("/store.db"));
      continue;
    }
    const auto listing = (*opened)->range({.prefix = "/"});
    ASSERT_TRUE(listing.ok());
    std::size_t other = 0;
    for (const auto& record : listing->records) {
      const auto found = is.find(std::string(record->key));
      if (found == is.end() || found->second != std::string(*record->value)) ++other;
    }
    EXPECT_LE(other, 1U) << "byte " << at;
    EXPECT_EQ(listing->records.size(), is.size()) << "byte " << at;
  }
  EXPECT_GT(refused, 20);
}

// Of the write-ahead log SQLite takes what is before the damage: a state that there was.
TEST_F(OnFaultyDisk, a_damaged_log_shows_a_state_that_there_was) {
  auto store = open();
  for (int i = 1; i <= 12; ++i) {
    ASSERT_EQ(*store->commit({put("/a", std::to_string(i)), put("/b", std::to_string(i))}), i);
  }
  crash(store, Fault::kill);
  const auto image = disk_.image();
  const std::size_t size = image.at("/store.db-wal").size();
  ASSERT_GT(size, 100'000U);
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    disk_.set_image(image);
    disk_.corrupt("/store.db-wal", random() % size, random() % 8);
    store = open();
    const Revision now = store->revision();
    if (now > 0) {
      EXPECT_EQ(*store->get("/a")->value, std::to_string(now));
      EXPECT_EQ(*store->get("/b")->value, std::to_string(now));
    }
    store.reset();
  }
}

TEST(Torture, every_kind_of_fault_at_some_calls) {
  Tally all;
  for (Sweep& sweep : all_sweeps(1, 97)) {
    const auto tally = run(sweep);
    ASSERT_TRUE(tally.ok()) << tally.error().message();
    all.add(*tally);
  }
  EXPECT_GT(all.faults, 50U);
  EXPECT_GT(all.power_losses, 30U);
  EXPECT_GT(all.kills, 30U);
}

TEST(Torture, faults_kills_and_power_losses_by_chance) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto tally = run_random(seed);
    ASSERT_TRUE(tally.ok()) << tally.error().message();
  }
}

[[noreturn]] void run_some_kills() {
  bool right = false;
  {
    const TemporaryDirectory folder;
    const auto tally = run_kills(folder.path(), 50, 1);
    right = tally.ok() && tally->acknowledged > 50;
    std::cerr << (tally.ok() ? show(*tally) : tally.error().message()) << std::endl;
  }
  std::exit(right ? 0 : 1);
}

TEST(Torture, kills_of_a_process) {
  // It forks, and other tests of this process leave threads behind: it has one of its own.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_some_kills(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace dibs::store::testing
