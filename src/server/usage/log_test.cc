#include "server/usage/log.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/usage/lines.h"
#include "server/usage/query.h"
#include "server/usage/test_folder.h"

namespace dibs::server {
namespace {

using test::UsageFolder;

constexpr std::int64_t kBegin = 1'700'000'000'000;
constexpr std::int64_t kForEver = kBegin * 2;
constexpr const char* kHolding = "u1 p1 d/n/g0=big=1";

DeviceSeconds all_of(const UsageLog& log, std::int64_t from = 0) {
  UsageTable table({{UsageBy::name_space}, "", from, kForEver, 0});
  const auto view = log.view();
  if (from < view.exact_since()) view.read_sums(table);
  EXPECT_TRUE(view.read(table).ok());
  DeviceSeconds sum;
  for (const auto& [key, row] : table.rows()) {
    sum.held += row.held;
    sum.used += row.used;
  }
  return sum;
}

UsageLog::Start opened(UsageLog& log) {
  auto start = log.open();
  EXPECT_TRUE(start.ok()) << start.error().message();
  return start.ok() ? std::move(start).value() : UsageLog::Start{};
}

TEST(UsageLog, knows_after_a_kill_what_was_held) {
  UsageFolder folder;
  {
    UsageLog log(folder.path());
    EXPECT_TRUE(opened(log).held.empty());
    EXPECT_TRUE(log.is_full());
    log.begin_file(kBegin, {{"ns/a", {kBegin - 500, kHolding}}});
    log.add_begin("ns/b", {kBegin, "u2 - d/n/g1=big=0.5"});
    log.add_end({kBegin - 500, kBegin + 1000, "ns/a", kHolding});
    log.add_known(kBegin + 9000);
    ASSERT_TRUE(log.flush().ok());
  }
  UsageLog log(folder.path());
  const auto start = opened(log);

  EXPECT_FALSE(log.is_full());
  EXPECT_EQ(start.known, kBegin + 9000);
  ASSERT_EQ(start.held.size(), 1U);
  EXPECT_EQ(start.held.at("ns/b").holding, "u2 - d/n/g1=big=0.5");
  EXPECT_DOUBLE_EQ(all_of(log).held, 1.5);
}

TEST(UsageLog, keeps_what_ended_before_a_clock_was_set_back) {
  UsageFolder folder;
  {
    UsageLog log(folder.path());
    opened(log);
    log.begin_file(kBegin, {});
    log.add_end({kBegin, kBegin + 9000, "ns/a", kHolding});
    log.add_known(kBegin + 1000);
    log.begin_file(kBegin + 2000, {});
    log.add_known(kBegin + 3000);
    ASSERT_TRUE(log.flush().ok());
  }
  UsageLog log(folder.path());

  EXPECT_EQ(opened(log).known, kBegin + 3000);
  EXPECT_DOUBLE_EQ(all_of(log, kBegin + 4000).held, 5);
}

TEST(UsageLog, tells_of_what_is_not_written_yet) {
  UsageFolder folder;
  UsageLog log(folder.path());
  opened(log);
  log.begin_file(kBegin, {});
  log.add_end({kBegin, kBegin + 2000, "ns/a", kHolding});

  EXPECT_DOUBLE_EQ(all_of(log).held, 2);
  ASSERT_TRUE(log.flush().ok());
  EXPECT_DOUBLE_EQ(all_of(log).held, 2);
}

TEST(UsageLog, cuts_off_a_torn_line) {
  const std::string line = end_line({kBegin, kBegin + 1000, "ns/b", kHolding});
  // However much of it there is, and whatever a disk left behind it.
  for (std::size_t length = 1; length < line.size(); length += 5) {
    for (const std::string& garbage : {std::string(), std::string("\0\0\n", 3)}) {
      UsageFolder folder;
      {
        UsageLog log(folder.path());
        opened(log);
        log.begin_file(kBegin, {});
        log.add_end({kBegin, kBegin + 1000, "ns/a", kHolding});
        ASSERT_TRUE(log.flush().ok());
      }
      const auto whole = folder.text_of_last();
      folder.append_to_last(line.substr(0, length) + garbage);
      UsageLog log(folder.path());
      opened(log);
      EXPECT_EQ(folder.text_of_last(), whole) << length;
      EXPECT_DOUBLE_EQ(all_of(log).held, 1) << length;
      log.add_end({kBegin, kBegin + 1000, "ns/c", kHolding});
      ASSERT_TRUE(log.flush().ok());
      EXPECT_EQ(folder.text_of_last(), whole + end_line({kBegin, kBegin + 1000, "ns/c", kHolding}));
    }
  }
}

TEST(UsageLog, goes_on_with_the_file_before_one_that_a_kill_left_half_begun) {
  UsageFolder folder;
  {
    UsageLog log(folder.path());
    opened(log);
    log.begin_file(kBegin, {{"ns/a", {kBegin, kHolding}}});
    log.add_end({kBegin, kBegin + 1000, "ns/x", kHolding});
    ASSERT_TRUE(log.flush().ok());
    log.begin_file(kBegin + 2000, {{"ns/a", {kBegin, kHolding}}, {"ns/b", {kBegin, kHolding}}});
    ASSERT_TRUE(log.flush().ok());
  }
  const std::string second = folder.files().back();
  const std::string text = folder.text_of_last();
  for (const std::size_t left :
       {text.size() - 1, text.size() / 2, std::size_t{3}, std::size_t{0}}) {
    std::ofstream(second) << text.substr(0, left);
    {
      UsageLog log(folder.path());
      const auto start = opened(log);
      EXPECT_EQ(start.held.size(), 1U) << left;
      EXPECT_DOUBLE_EQ(all_of(log, kBegin + 500).held, 0.5) << left;
    }
    EXPECT_EQ(folder.files().size(), 1U) << left;
  }
}

TEST(UsageLog, leaves_files_of_other_versions_alone) {
  UsageFolder folder;
  std::filesystem::create_directories(folder.path());
  const std::string other = folder.path() + "/0000000007.log";
  std::ofstream(other) << "dibs usage 2 17\nx\n";
  UsageLog log(folder.path());
  EXPECT_TRUE(opened(log).held.empty());
  log.begin_file(kBegin, {});
  ASSERT_TRUE(log.flush().ok());

  EXPECT_EQ(folder.files(), (std::vector<std::string>{other, folder.path() + "/0000000008.log"}));
}

TEST(UsageLog, makes_sums_of_days_of_what_has_no_room_and_loses_nothing) {
  UsageFolder folder;
  constexpr UsageLimits kSmall{2000, 8000, 100};
  constexpr std::int64_t kHour = 3'600'000;
  {
    UsageLog log(folder.path(), kSmall);
    opened(log);
    for (int hour = 0; hour < 500; ++hour) {
      const std::int64_t at = kBegin + hour * kHour;
      if (log.is_full()) log.begin_file(at, {{"ns/kept", {kBegin, kHolding}}});
      log.add_end(
          {at, at + kHour, hour % 2 ? "ns/a" : "other/b", hour % 2 ? kHolding : "u - d=c=1"});
      ASSERT_TRUE(log.flush().ok());
      ASSERT_LE(folder.bytes(), kSmall.all + kSmall.file);
    }
    EXPECT_NEAR(all_of(log).held, 500 * 3600.0, 0.01);
    EXPECT_NEAR(all_of(log).used, 250 * 3600.0, 0.01);
  }
  // The number of files that are gone is written before they are: one that a kill left is no more.
  const std::string left = folder.path() + "/0000000001.log";
  EXPECT_FALSE(std::filesystem::exists(left));
  std::filesystem::copy_file(folder.files().front(), left);
  UsageLog log(folder.path(), kSmall);
  EXPECT_EQ(opened(log).held.size(), 1U);
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_NEAR(all_of(log).held, 500 * 3600.0, 0.01);

  // What is asked of the time that is known by sums alone is of whole days.
  const std::int64_t since = log.view().exact_since();
  EXPECT_GT(since, kBegin);
  UsageTable::Plan plan{{UsageBy::device_class}, "", kBegin + kHour, kForEver, 0};
  fit_to_records(plan, since);
  EXPECT_EQ(plan.from % (24 * kHour), 0);
  plan = {{UsageBy::pod}, "", kBegin + kHour, kForEver, 0};
  fit_to_records(plan, since);
  EXPECT_EQ(plan.from, since);
}

TEST(UsageLog, forgets_the_oldest_days_where_even_sums_are_too_many) {
  UsageFolder folder;
  constexpr UsageLimits kSmall{500, 1000, 3};
  constexpr std::int64_t kDay = 24 * 3'600'000;
  UsageLog log(folder.path(), kSmall);
  opened(log);
  for (int day = 0; day < 100; ++day) {
    const std::int64_t at = kBegin + day * kDay;
    if (log.is_full()) log.begin_file(at, {});
    log.add_end({at, at + 1000, "ns/a", kHolding});
    ASSERT_TRUE(log.flush().ok());
  }
  EXPECT_LT(all_of(log).held, 30);
  EXPECT_GT(all_of(log).held, 3);
}

TEST(UsageLog, reads_the_end_of_long_records_alone_and_misses_nothing) {
  UsageFolder folder;
  UsageLog log(folder.path());
  opened(log);
  log.begin_file(kBegin, {});
  for (int second = 0; second < 5000; ++second) {
    log.add_end({kBegin, kBegin + second * 1000, "ns/a", kHolding});
    if (second % 10 == 0) {
      ASSERT_TRUE(log.flush().ok());
    }
  }
  ASSERT_TRUE(log.flush().ok());
  for (const int from : {0, 1, 777, 2500, 4990, 4999}) {
    double wanted = 0;
    for (int second = from; second < 5000; ++second) wanted += second - from;
    EXPECT_NEAR(all_of(log, kBegin + from * 1000).held, wanted, 0.01) << from;
  }
}

TEST(UsageLog, tells_why_it_cannot_be_written_and_goes_on_when_it_can) {
  UsageFolder folder;
  UsageLog log(folder.path());
  opened(log);
  log.begin_file(kBegin, {});
  log.add_end({kBegin, kBegin + 1000, "ns/a", kHolding});
  std::filesystem::remove_all(folder.path());
  const auto failed = log.flush();
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message().find("0000000001.log: cannot make it"), std::string::npos);
  EXPECT_DOUBLE_EQ(all_of(log).held, 1);

  std::filesystem::create_directories(folder.path());
  log.add_end({kBegin, kBegin + 1000, "ns/b", kHolding});
  ASSERT_TRUE(log.flush().ok());
  EXPECT_DOUBLE_EQ(all_of(log).held, 2);
  UsageLog again(folder.path());
  opened(again);
  EXPECT_DOUBLE_EQ(all_of(again).held, 2);
}

TEST(UsageLog, sums_that_cannot_be_read_are_an_error_and_stay) {
  UsageFolder folder;
  std::filesystem::create_directories(folder.path());
  std::ofstream(folder.path() + "/sums") << "dibs usage sums 9\t1\t2\n";
  UsageLog log(folder.path());
  const auto start = log.open();
  ASSERT_FALSE(start.ok());
  EXPECT_NE(start.error().message().find("/sums: its first line"), std::string::npos);
}

}  // namespace
}  // namespace dibs::server
