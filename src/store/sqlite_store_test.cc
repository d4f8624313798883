#include "store/sqlite_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "base/strings.h"
#include "store/test_support.h"

namespace dibs::store {
namespace {

using ::testing::HasSubstr;
using testing::put;
using testing::removal;
using testing::show;

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteOptions options() {
    SqliteOptions options;
    options.path = directory_.file("store.db");
    return options;
  }
  std::unique_ptr<Store> open() { return open(options()); }
  std::unique_ptr<Store> open(const SqliteOptions& options) {
    auto opened = open_sqlite_store(options);
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  std::string open_error() {
    auto opened = open_sqlite_store(options());
    return opened.ok() ? "opened" : opened.error().message();
  }
  /// The first column of the first row, by a connection of its own.
  std::string query(const std::string& sql) {
    sqlite3* db = nullptr;
    std::string out = "none";
    sqlite3_open(directory_.file("store.db").c_str(), &db);
    char* message = nullptr;
    sqlite3_exec(
        db, sql.c_str(),
        [](void* text, int, char** columns, char**) {
          *static_cast<std::string*>(text) = columns[0] != nullptr ? columns[0] : "NULL";
          return 0;
        },
        &out, &message);
    if (message != nullptr) out = cat("error: ", message);
    sqlite3_free(message);
    sqlite3_close(db);
    return out;
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(SqliteStoreTest, goes_on_where_it_was) {
  {
    auto store = open();
    ASSERT_TRUE(store->commit({put("/a", "1"), put("/b", "1")}).ok());
    ASSERT_TRUE(store->commit({put("/a", "2")}).ok());
    ASSERT_TRUE(store->commit({removal("/b")}).ok());
  }
  auto store = open();

  EXPECT_EQ(store->revision(), 3);
  EXPECT_EQ(show(*store->range({})), "/a=2");
  EXPECT_EQ(show(*store->range({.at = 1})), "/a=1 /b=1");
  EXPECT_EQ(store->get("/a")->created, 1);
  auto watch = store->watch("/", 0, [] {});
  EXPECT_EQ(show(*(*watch)->next(10)), "1+/a=1 1+/b=1 2~/a=2 3-/b");
  EXPECT_EQ(*store->commit({put("/b", "2", 0)}), 4);
}

TEST_F(SqliteStoreTest, keeps_revisions_when_the_last_row_is_compacted_away) {
  {
    auto store = open();
    ASSERT_TRUE(store->commit({put("/a", "1")}).ok());
    ASSERT_TRUE(store->commit({removal("/a")}).ok());
    ASSERT_TRUE(store->compact(2).ok());
    while (query("SELECT count(*) FROM log") != "0") std::this_thread::yield();
  }
  auto store = open();

  EXPECT_EQ(store->revision(), 2);
  EXPECT_EQ(store->compacted(), 2);
  EXPECT_EQ(*store->commit({put("/a", "1", 0)}), 3);
}

TEST_F(SqliteStoreTest, compaction_deletes_superseded_rows_only) {
  auto store = open();
  for (int i = 0; i < 3000; ++i) {
    std::vector<Op> ops;
    ops.push_back(put(cat("/k/", i % 100), std::to_string(i)));
    ops.push_back(i % 2 == 0 ? put("/flip", "x") : removal("/flip"));
    ASSERT_TRUE(store->commit(std::move(ops)).ok());
    if (i == 1000) {
      ASSERT_TRUE(store->compact(900).ok());
    }
  }
  ASSERT_TRUE(store->compact(2990).ok());
  // 100 live keys, 10 later changes of such keys and of /flip; /flip itself is gone at 2990.
  while (query("SELECT count(*) FROM log") != "120") std::this_thread::yield();
  EXPECT_EQ(query("SELECT value FROM meta WHERE name = 'compacted'"), "2990");
  const std::string before = show(*store->range({}));
  store.reset();

  store = open();
  EXPECT_EQ(show(*store->range({})), before);
  EXPECT_EQ(store->compacted(), 2990);
  auto watch = store->watch("/flip", 2990, [] {});
  EXPECT_EQ((*watch)->next(100)->size(), 10u);
}

TEST_F(SqliteStoreTest, finishes_a_compaction_that_a_crash_interrupted) {
  {
    auto store = open();
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(store->commit({put("/a", std::to_string(i)), put("/b", "x")}).ok());
    ASSERT_TRUE(store->commit({removal("/b")}).ok());
  }
  ASSERT_EQ(query("UPDATE meta SET value = 21 WHERE name = 'compacted'"), "none");

  auto store = open();
  EXPECT_EQ(show(*store->range({})), "/a=19");
  EXPECT_EQ(store->compacted(), 21);
  while (query("SELECT count(*) FROM log") != "1") std::this_thread::yield();
  store.reset();
  store = open();
  EXPECT_EQ(show(*store->range({})), "/a=19");
  EXPECT_EQ(store->revision(), 21);
}

TEST_F(SqliteStoreTest, bounds_the_write_ahead_log) {
  auto small = options();
  small.checkpoint_pages = 50;
  small.max_wal_pages = 200;
  auto store = open(small);
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(store->commit({put(cat("/k/", i % 10), std::string(20000, 'x'))}).ok());
  }
  struct stat info = {};
  ASSERT_EQ(::stat(directory_.file("store.db-wal").c_str(), &info), 0);
  EXPECT_LT(info.st_size, 4 * 200 * 16384);
}

TEST_F(SqliteStoreTest, moves_the_write_ahead_log_without_the_writer) {
  auto small = options();
  small.checkpoint_pages = 20;
  auto store = open(small);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(store->commit({put(cat("/k/", i), std::string(20000, 'x'))}).ok());
  }
  // Nobody writes any more: what comes into the file is the maintainer's work.
  struct stat info = {};
  do {
    std::this_thread::yield();
    ASSERT_EQ(::stat(directory_.file("store.db").c_str(), &info), 0);
  } while (info.st_size < 20 * 16384);
}

TEST_F(SqliteStoreTest, files_are_private) {
  auto store = open();
  ASSERT_TRUE(store->commit({put("/a", "1")}).ok());
  for (const char* name : {"store.db", "store.db-wal", "store.db.lock"}) {
    struct stat info = {};
    ASSERT_EQ(::stat(directory_.file(name).c_str(), &info), 0) << name;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << name;
  }
}

TEST_F(SqliteStoreTest, refuses_a_file_in_use) {
  auto store = open();
  EXPECT_EQ(open_error(), cat(directory_.file("store.db"), " is in use by another process (",
                              ::getpid(), "): stop it, or choose another data directory"));
  store->close();
  store = open();
}

TEST_F(SqliteStoreTest, refuses_a_newer_format) {
  open();
  query("UPDATE meta SET value = 2 WHERE name = 'format'");
  EXPECT_THAT(open_error(),
              HasSubstr("has format 2, this program knows up to 1: use the newer program"));
}

TEST_F(SqliteStoreTest, refuses_what_is_not_its_own) {
  query("CREATE TABLE bookmarks (url TEXT)");
  EXPECT_THAT(open_error(), HasSubstr("is a database of another program"));

  std::ofstream(directory_.file("store.db")) << std::string(10000, 'x');
  EXPECT_THAT(open_error(), HasSubstr("is not a database"));
}

TEST_F(SqliteStoreTest, refuses_a_missing_directory) {
  auto missing = options();
  missing.path = directory_.file("missing/store.db");
  auto opened = open_sqlite_store(missing);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message(), HasSubstr("check that the directory exists"));
}

TEST_F(SqliteStoreTest, refuses_a_damaged_file) {
  {
    auto store = open();
    for (int i = 0; i < 200; ++i)
      ASSERT_TRUE(store->commit({put(cat("/k/", i), std::string(1000, 'x'))}).ok());
  }
  const std::string path = directory_.file("store.db");
  std::string bytes;
  {
    std::ifstream in(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  auto write = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  };
  ASSERT_GT(bytes.size(), 100'000u);

  write(bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(open_error(), HasSubstr("is damaged"));

  std::string holes = bytes;
  for (std::size_t at = 3 * 4096; at + 4096 <= holes.size(); at += 5 * 4096)
    holes.replace(at, 4096, 4096, '\x7f');
  write(holes);
  EXPECT_THAT(open_error(), HasSubstr("is damaged"));

  write(bytes);
  EXPECT_EQ(open()->count("/k/"), 200u);
}

TEST_F(SqliteStoreTest, refuses_rows_that_make_no_sense) {
  open();
  query("INSERT INTO log VALUES (65536, '/a', x'31', 7)");
  EXPECT_THAT(open_error(), HasSubstr("is damaged (row 65536)"));
}

TEST_F(SqliteStoreTest, refuses_a_log_that_lacks_a_row) {
  const auto lacks = [&](int position, const std::string& error) {
    std::filesystem::remove(directory_.file("store.db"));
    auto store = open();
    ASSERT_TRUE(store->commit({put("/a", "1")}).ok());
    ASSERT_TRUE(store->commit({put("/a", "2")}).ok());
    ASSERT_TRUE(store->commit({removal("/a")}).ok());
    ASSERT_TRUE(store->commit({put("/a", "4")}).ok());
    store.reset();
    query(cat("DELETE FROM log WHERE position = ", position * 65536));
    EXPECT_THAT(open_error(), HasSubstr(error));
  };
  lacks(1, "is damaged (row 131072)");
  lacks(3, "is damaged (row 262144)");
}

TEST_F(SqliteStoreTest, full_file_refuses_writes_and_recovers) {
  auto bounded = options();
  bounded.max_pages = 60;
  auto store = open(bounded);
  Revision last = 0;
  Result<Revision> done = last;
  for (int i = 0; i < 100; ++i) {
    done = store->commit({put(cat("/k/", i), std::string(10000, 'x'))});
    if (!done.ok()) break;
    last = *done;
  }
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code(), Code::unavailable);
  EXPECT_THAT(done.error().message(), HasSubstr("the disk is full"));
  EXPECT_GT(last, 5);
  EXPECT_EQ(store->revision(), last);
  EXPECT_EQ(store->count("/k/"), static_cast<std::size_t>(last));
  EXPECT_FALSE(store->commit({put("/big", std::string(50000, 'x'))}).ok());

  store.reset();
  store = open();
  EXPECT_EQ(store->revision(), last);
  EXPECT_EQ(*store->commit({put("/big", std::string(50000, 'x'))}), last + 1);
}

TEST_F(SqliteStoreTest, full_disk_refuses_writes_and_recovers) {
  if (::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "needs the right to mount a small file system";
  }
  {
    std::ofstream(directory_.file("ballast")) << std::string(400'000, 'x');
    auto store = open();
    Revision last = 0;
    Result<Revision> done = last;
    for (int i = 0; i < 200; ++i) {
      done = store->commit({put(cat("/k/", i), std::string(10000, 'x'))});
      if (!done.ok()) break;
      last = *done;
    }
    EXPECT_FALSE(done.ok());
    EXPECT_THAT(done.ok() ? "" : done.error().message(), HasSubstr("the disk is full"));
    EXPECT_EQ(store->revision(), last);
    EXPECT_EQ(store->get(cat("/k/", last)), nullptr);

    std::filesystem::remove(directory_.file("ballast"));
    auto again = store->commit({put("/after", std::string(1000, 'x'))});
    EXPECT_TRUE(again.ok()) << again.error().message();
    store.reset();
    store = open();
    EXPECT_EQ(store->count("/k/"), static_cast<std::size_t>(last));
    EXPECT_NE(store->get("/after"), nullptr);
  }
  ::umount(directory_.path().c_str());
}

/// A store with a ballast of 2 MiB on a disk of 12.
class FullDisk : public SqliteStoreTest {
 protected:
  void SetUp() override {
    mounted_ = ::mount("tmpfs", directory_.path().c_str(), "tmpfs", 0, "size=12m") == 0;
    if (!mounted_) GTEST_SKIP() << "needs the right to mount a small file system";
  }
  void TearDown() override {
    store_.reset();
    if (mounted_) ::umount(directory_.path().c_str());
  }
  void open_with_ballast() {
    auto with = options();
    with.ballast_bytes = 2 << 20;
    with.checkpoint_pages = 16;
    with.max_wal_pages = 64;
    with.room_interval = std::chrono::milliseconds(1);
    store_ = open(with);
  }
  Result<Revision> write(int i) {
    return store_->commit({put(cat("/k/", i), std::string(10000, 'x'))});
  }
  /// How many writes were taken until the disk was full for good: what the write-ahead log had
  /// taken is room again at first.
  int fill_up() {
    for (int i = 0; i < 2000; ++i) {
      int tries = 0;
      while (!write(i).ok()) {
        if (++tries == 20) return i;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    ADD_FAILURE() << "the disk was never full";
    return 2000;
  }
  void take_all_room() { std::ofstream(directory_.file("filler")) << std::string(16 << 20, 'x'); }
  void wait_for_room() {
    for (int i = 0; i < 10'000 && !store_->room().ok(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(store_->room().ok());
  }

  bool mounted_ = false;
  std::unique_ptr<Store> store_;
};

TEST_F(FullDisk, takes_deletions_and_nothing_else) {
  open_with_ballast();
  ASSERT_TRUE(store_->room().ok());
  const int count = fill_up();
  ASSERT_GT(count, 100);

  // It is there for a moment whenever the store looks whether it could be taken again.
  const auto has_ballast = [&] {
    return std::filesystem::exists(directory_.file("store.db.ballast"));
  };
  for (int i = 0; i < 10'000 && has_ballast(); ++i) std::this_thread::yield();
  EXPECT_FALSE(has_ballast());
  EXPECT_EQ(store_->room().error().code(), Code::unavailable);
  const auto refused = write(count);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("database space exceeded"));
  Op mark = put("/k/0", std::string(10000, 'y'));
  mark.frees = true;
  EXPECT_TRUE(store_->commit({mark}).ok());
  EXPECT_FALSE(store_->commit({removal("/k/1"), put("/k/2", "x")}).ok());
  for (int i = 0; i < count; ++i) {
    auto gone = store_->commit({removal(cat("/k/", i))});
    ASSERT_TRUE(gone.ok()) << i << ": " << gone.error().message();
  }
  EXPECT_EQ(store_->count("/k/"), 0U);
}

TEST_F(FullDisk, recovers_when_others_make_room) {
  take_all_room();
  std::filesystem::resize_file(directory_.file("filler"), 4 << 20);
  open_with_ballast();
  const int count = fill_up();

  std::filesystem::remove(directory_.file("filler"));
  wait_for_room();

  EXPECT_TRUE(std::filesystem::exists(directory_.file("store.db.ballast")));
  EXPECT_TRUE(write(count).ok());
}

TEST_F(FullDisk, recovers_by_deletions_whose_history_is_forgotten) {
  open_with_ballast();
  const int count = fill_up();
  for (int i = 0; i < count; ++i) ASSERT_TRUE(store_->commit({removal(cat("/k/", i))}).ok()) << i;
  EXPECT_FALSE(write(0).ok());

  ASSERT_TRUE(store_->compact(store_->revision()).ok());
  wait_for_room();

  // As much as is free beyond what the ballast was, and after that it is full again.
  const int again = fill_up();
  EXPECT_GT(again, 50);
  EXPECT_TRUE(store_->commit({removal("/k/0")}).ok());
}

TEST_F(FullDisk, opens_and_takes_deletions) {
  open_with_ballast();
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(write(i).ok());
  store_.reset();
  take_all_room();

  open_with_ballast();

  ASSERT_NE(store_, nullptr);
  EXPECT_EQ(store_->count("/k/"), 50U);
  EXPECT_TRUE(store_->commit({removal("/k/0")}).ok());
}

/// Runs `body` in a child process and returns what it wrote to its file descriptor.
std::string in_child(const std::function<void(int)>& body) {
  int fds[2];
  if (::pipe(fds) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(fds[0]);
    body(fds[1]);
    ::_exit(0);
  }
  ::close(fds[1]);
  std::string out;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fds[0], buffer, sizeof(buffer))) > 0;)
    out.append(buffer, static_cast<std::size_t>(n));
  ::close(fds[0]);
  ::waitpid(child, nullptr, 0);
  return out;
}

TEST_F(SqliteStoreTest, refuses_a_directory_it_may_not_write) {
  open()->close();
  std::filesystem::remove(directory_.file("store.db.lock"));
  ::chmod(directory_.path().c_str(), 0555);
  const std::string error = in_child([&](int out) {
    // Root may write everywhere.
    if (::getuid() == 0 && ::setuid(65534) != 0) return;
    const std::string text = open_error();
    [[maybe_unused]] auto n = ::write(out, text.data(), text.size());
  });
  ::chmod(directory_.path().c_str(), 0755);
  EXPECT_THAT(error, HasSubstr("is read-only for this user"));
}

// Four writers in a child that is killed at a random moment. Each acknowledged write is told
// through a pipe, after the fact: what came through must be in the file.
TEST_F(SqliteStoreTest, acknowledged_writes_survive_a_kill) {
  std::mt19937 random(42);
  Revision highest = 0;
  for (int round = 0; round < 8; ++round) {
    int fds[2];
    ASSERT_EQ(::pipe(fds), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(fds[0]);
      auto small = options();
      small.checkpoint_pages = 20;
      small.max_wal_pages = 100;
      small.history.events = 500;
      auto opened = open_sqlite_store(small);
      if (!opened.ok()) ::_exit(1);
      std::vector<std::thread> writers;
      for (int w = 0; w < 4; ++w) {
        writers.emplace_back([&, w] {
          for (int i = 0;; ++i) {
            auto done = (*opened)->commit({put(cat("/w/", w), std::to_string(i)),
                                           put(cat("/all/", w, "/", round, "/", i), "x")});
            if (!done.ok()) ::_exit(2);
            const std::string line = cat(*done, " ", w, " ", i, "\n");
            if (::write(fds[1], line.data(), line.size()) < 0) ::_exit(3);
          }
        });
      }
      for (auto& writer : writers) writer.join();
    }
    ::close(fds[1]);
    const auto enough = 200 + random() % 6000;
    std::string told;
    char buffer[4096];
    ssize_t n = 0;
    while (told.size() < enough && (n = ::read(fds[0], buffer, sizeof(buffer))) > 0)
      told.append(buffer, static_cast<std::size_t>(n));
    ::kill(child, SIGKILL);
    while ((n = ::read(fds[0], buffer, sizeof(buffer))) > 0)
      told.append(buffer, static_cast<std::size_t>(n));
    ::close(fds[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);

    auto store = open();
    ASSERT_TRUE(store);
    std::size_t acknowledged = 0;
    Revision last = 0;
    for (std::string_view line : split(told, '\n')) {
      if (line.empty()) continue;
      const auto words = split(line, ' ');
      ASSERT_EQ(words.size(), 3u);
      const Revision revision = std::stoll(std::string(words[0]));
      ASSERT_GT(revision, highest) << "revisions went back";
      last = std::max(last, revision);
      auto record = store->get(cat("/all/", words[1], "/", round, "/", words[2]));
      ASSERT_TRUE(record) << line;
      ASSERT_EQ(record->modified, revision);
      ++acknowledged;
    }
    EXPECT_GT(acknowledged, 0u);
    ASSERT_GE(store->revision(), last);
    // Both keys of a transaction or none.
    for (int w = 0; w < 4; ++w) {
      auto newest = store->get(cat("/w/", w));
      if (!newest) continue;
      auto twin = store->get(cat("/all/", w, "/", round, "/", *newest->value));
      if (newest->modified > highest) {
        ASSERT_TRUE(twin);
        EXPECT_EQ(twin->modified, newest->modified);
      }
    }
    highest = store->revision();
  }
}

TEST_F(SqliteStoreTest, loads_many_objects_quickly) {
  {
    auto store = open();
    for (int i = 0; i < 20; ++i) {
      std::vector<Op> ops;
      for (int k = 0; k < 1000; ++k)
        ops.push_back(put(cat("/k/", i, "/", k), std::string(300, 'x')));
      ASSERT_TRUE(store->commit(std::move(ops)).ok());
    }
  }
  auto store = open();
  EXPECT_EQ(store->count("/k/"), 20000u);
}

}  // namespace
}  // namespace dibs::store
