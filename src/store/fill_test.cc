#include "store/fill.h"

#include <gtest/gtest.h>

#include <fstream>

#include "store/memory_store.h"
#include "store/sqlite_file.h"
#include "store/sqlite_store.h"
#include "store/test_dying_store.h"
#include "store/test_support.h"

namespace dibs::store {
namespace {

using testing::DyingStore;
using testing::put;
using testing::removal;
using testing::TemporaryDirectory;

std::unique_ptr<Store> memory(Revision first = 1000) {
  MemoryOptions options;
  options.first_revision = first;
  return make_memory_store(options);
}

std::string key(int number) { return cat("/registry/things/", 100000 + number); }

/// With what servers tell each other beside the objects, which is not copied.
std::unique_ptr<Store> source(int keys) {
  auto store = memory();
  EXPECT_TRUE(
      store->commit({put("/registry.dibs/fences/1", "x"), put("/registry/masterleases/1", "y")})
          .ok());
  for (int i = 0; i < keys; ++i) EXPECT_TRUE(store->commit({put(key(i), cat("v", i))}).ok());
  return store;
}

std::string show_all(const Store& store) {
  return testing::show(*store.range({.prefix = "/registry/things/"}));
}

FillOptions marked() {
  FillOptions options;
  options.mark = "{\"what\":\"copy\"}";
  return options;
}

TEST(State, stays_as_it_was_whatever_is_written_later) {
  auto store = source(3);
  auto state = *state_of(*store);
  ASSERT_TRUE(store->commit({put(key(0), "new"), removal(key(1)), put(key(9), "more")}).ok());
  ASSERT_TRUE(store->compact(store->revision()).ok());

  for (int round = 0; round < 2; ++round) {
    Item item;
    std::string seen;
    while (*state->next(item)) seen += cat(item.key, "=", item.value, "@", item.modified, " ");
    EXPECT_EQ(seen,
              "/registry/things/100000=v0@1001 /registry/things/100001=v1@1002 "
              "/registry/things/100002=v2@1003 ");
    ASSERT_TRUE(state->rewind().ok());
  }
  EXPECT_EQ(state->revision(), 1003);
}

TEST(Fill, makes_the_stores_the_same_with_revisions_above_those_of_the_source) {
  auto from = source(250);
  auto to = memory(1);
  auto state = *state_of(*from);

  const auto count = fill(*to, *state, marked());
  ASSERT_TRUE(count.ok()) << count.error().message();

  EXPECT_EQ(count->keys, 250u);
  EXPECT_EQ(count->written, 250u);
  EXPECT_EQ(show_all(*to), show_all(*from));
  EXPECT_TRUE(to->get(kUnfinished));
  ASSERT_TRUE(compare(*to, *state, marked()).ok());
  ASSERT_TRUE(finish(*to).ok());
  EXPECT_FALSE(to->get(kUnfinished));
  EXPECT_FALSE(to->get("/registry.dibs/fences/1"));
  EXPECT_FALSE(to->get("/registry/masterleases/1"));
  EXPECT_GT(to->get(key(0))->modified, from->revision());
}

TEST(Fill, takes_no_place_that_holds_something) {
  auto from = source(2);
  auto to = source(5);
  auto state = *state_of(*from);

  const auto refused = fill(*to, *state, marked());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message(),
            "it holds 5 objects already: choose an empty one, or say --overwrite");
  EXPECT_FALSE(to->get(kUnfinished));

  FillOptions options = marked();
  options.overwrite = true;
  const auto count = fill(*to, *state, options);
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(count->removed, 3u);
  ASSERT_TRUE(compare(*to, *state, options).ok());
}

TEST(Fill, ended_anywhere_it_can_be_told_and_ends_the_second_time) {
  auto from = source(320);
  auto state = *state_of(*from);
  int writes = 0;
  for (int at = 0;; ++at) {
    auto to = memory(from->revision() + 1);
    DyingStore dying(*to, {});
    dying.die_at(at, at % 2 == 0);
    ASSERT_TRUE(state->rewind().ok());
    if (fill(dying, *state, marked()).ok()) {
      writes = at;
      break;
    }
    if (to->get(kUnfinished)) {
      const auto again = fill(*to, *state, marked());
      ASSERT_FALSE(again.ok());
      EXPECT_NE(again.error().message().find("--resume"), std::string::npos);
    } else {
      EXPECT_EQ(to->count(kObjects), 0u) << "half, and nobody can tell";
    }
    FillOptions options = marked();
    options.resume = true;
    ASSERT_TRUE(state->rewind().ok());
    ASSERT_TRUE(fill(*to, *state, options).ok());
    ASSERT_TRUE(compare(*to, *state, options).ok());
  }
  EXPECT_GE(writes, 4);
}

TEST(Fill, compare_names_what_differs) {
  auto from = source(3);
  auto state = *state_of(*from);
  const auto differs = [&](std::vector<Op> ops) {
    auto to = memory(1);
    EXPECT_TRUE(state->rewind().ok());
    EXPECT_TRUE(fill(*to, *state, marked()).ok());
    EXPECT_TRUE(to->commit(std::move(ops)).ok());
    const auto found = compare(*to, *state, marked());
    return found.ok() ? std::string() : found.error().message();
  };
  EXPECT_EQ(differs({removal(key(1))}), "read back, /registry/things/100001 is missing");
  EXPECT_EQ(differs({put(key(2), "other")}),
            "read back, /registry/things/100002 has another value");
  EXPECT_EQ(differs({put(key(7), "more")}),
            "read back, /registry/things/100007 is there and should not be");
}

// --- the file of a SQLite store ---

class SqliteFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<Store> open(Revision first = 1000) {
    SqliteOptions options;
    options.path = path_;
    options.first_revision = first;
    auto store = open_sqlite_store(options);
    EXPECT_TRUE(store.ok());
    return std::move(store).value();
  }
  std::vector<std::string> faults() {
    std::vector<std::string> out;
    auto file = SqliteFile::open(path_, nullptr);
    if (!file.ok()) return {file.error().message()};
    const auto checked = (*file)->check([&](std::string what) { out.push_back(std::move(what)); });
    if (!checked.ok()) out.push_back(checked.error().message());
    return out;
  }
  std::string read() {
    auto file = SqliteFile::open(path_, nullptr);
    if (!file.ok()) return file.error().message();
    std::string out = cat((*file)->revision(), ":");
    Item item;
    while (true) {
      const auto more = (*file)->next(item);
      if (!more.ok()) return more.error().message();
      if (!*more) return out;
      out += cat(" ", item.key.substr(kObjects.size()), "=", item.value, "@", item.created, "-",
                 item.modified);
    }
  }
  void sql(const std::string& text) {
    ASSERT_EQ(std::system(cat("sqlite3 ", path_, " \"", text, "\" > /dev/null").c_str()), 0);
  }

  TemporaryDirectory folder_;
  const std::string path_ = folder_.file("store.db");
};

TEST_F(SqliteFileTest, shows_the_state_beside_a_running_store_and_after_it) {
  auto store = open();
  ASSERT_TRUE(store->commit({put("/registry/b", "1"), put("/registry/a", "2")}).ok());
  ASSERT_TRUE(store->commit({put("/registry/a", "3"), put("/registry/c", "4")}).ok());
  ASSERT_TRUE(store->commit({removal("/registry/b"), put("/registry.dibs/fences/1", "x")}).ok());

  const std::string expected = "1002: a=3@1000-1001 c=4@1001-1001";
  EXPECT_EQ(read(), expected);
  EXPECT_TRUE(faults().empty());

  store.reset();
  EXPECT_EQ(read(), expected);
  EXPECT_TRUE(faults().empty());
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(path_ + "-shm"));
}

TEST_F(SqliteFileTest, filled_sends_those_who_knew_another_store_to_list_again) {
  auto from = source(3);
  auto state = *state_of(*from);
  auto store = open(state->revision() + 1);
  ASSERT_TRUE(fill(*store, *state, marked()).ok());
  ASSERT_TRUE(finish(*store).ok());
  store = nullptr;
  store = open();
  EXPECT_GT(store->compacted(), from->revision());
  EXPECT_FALSE(store->watch(kObjects, from->revision(), [] {}).ok());
  EXPECT_TRUE(store->watch(kObjects, store->revision(), [] {}).ok());
}

TEST_F(SqliteFileTest, takes_what_compaction_leaves) {
  auto store = open();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store->commit({put("/registry/a", cat(i)), put("/registry/b", cat(i))}).ok());
    if (i % 3 == 2) {
      ASSERT_TRUE(store->commit({removal("/registry/b")}).ok());
    }
    if (i % 4 == 3) {
      ASSERT_TRUE(store->compact(store->revision()).ok());
    }
  }
  EXPECT_EQ(faults(), std::vector<std::string>());
}

TEST_F(SqliteFileTest, tells_what_is_damaged) {
  ASSERT_TRUE(open()->commit({put("/registry/a", "1")}).ok());
  if (std::system("command -v sqlite3 > /dev/null") != 0) GTEST_SKIP() << "no sqlite3";
  sql("INSERT INTO log VALUES (1001 * 65536, '/registry/a', 'x', 999)");
  sql("INSERT INTO log VALUES (1002 * 65536, '/registry/b', NULL, 0)");
  sql("INSERT INTO log VALUES (1003 * 65536, '/registry/c', 'x', 7)");
  sql("INSERT INTO log VALUES (1004 * 65536, '', 'x', 1004)");
  EXPECT_EQ(faults(), (std::vector<std::string>{
                          "row 65601536 (/registry/a): it was created anew while it was there",
                          "row 65667072 (/registry/b): it removes what was not there",
                          "row 65732608 (/registry/c): it goes on with what was not there",
                          "row 65798144 (): its key is empty",
                      }));
}

/// Not for keeping secrets.
class Backwards : public AtRest {
 public:
  Result<std::string> seal(std::string_view /*key*/, std::string_view value) const override {
    return cat(kSealed, std::string(value.rbegin(), value.rend()));
  }
  Result<Opened> open(std::string_view /*key*/, std::string_view bytes) const override {
    if (!bytes.starts_with(kSealed)) return Opened{std::string(bytes), true};
    bytes.remove_prefix(kSealed.size());
    return Opened{std::string(bytes.rbegin(), bytes.rend()), false};
  }
};

TEST_F(SqliteFileTest, opens_encrypted_values_by_their_keys_and_not_without) {
  SqliteOptions options;
  options.path = path_;
  options.at_rest = std::make_shared<Backwards>();
  ASSERT_TRUE((*open_sqlite_store(options))->commit({put("/registry/a", "123")}).ok());

  EXPECT_EQ(read(),
            "/registry/a is encrypted: give the --encryption-provider-config that it was written "
            "with");
  auto file = SqliteFile::open(path_, options.at_rest);
  Item item;
  ASSERT_TRUE(*(*file)->next(item));
  EXPECT_EQ(item.value, "123");
}

TEST_F(SqliteFileTest, refuses_what_is_no_store_of_ours) {
  EXPECT_EQ(read(), path_ + ": there is no store");
  std::ofstream(path_) << "something else entirely";
  EXPECT_EQ(read(), path_ + " is not a database, or its beginning is damaged");
}

}  // namespace
}  // namespace dibs::store
