#include "base/time.h"

#include <gtest/gtest.h>

#include "base/moment.h"

namespace dibs {
namespace {

using namespace std::chrono_literals;

TEST(Time, formats_and_parses) {
  EXPECT_EQ(format_rfc3339(Time{}), "1970-01-01T00:00:00Z");
  EXPECT_EQ(format_rfc3339(Time::from_seconds(951782399)), "2000-02-28T23:59:59Z");
  EXPECT_EQ(format_rfc3339(Time::from_seconds(951782400)), "2000-02-29T00:00:00Z");
  EXPECT_EQ(format_rfc3339(Time{-1}), "1969-12-31T23:59:59Z");
  EXPECT_EQ(format_rfc3339_micro(Time{1'500'000}), "1970-01-01T00:00:00.001500Z");

  EXPECT_EQ(parse_rfc3339("2024-01-02T03:04:05Z")->seconds(), 1704164645);
  EXPECT_EQ(parse_rfc3339("2024-01-02T05:04:05.25+02:00")->nanoseconds, 1704164645250000000);
  EXPECT_EQ(parse_rfc3339("2024-01-02T3:04:05Z")->seconds(), 1704164645);
  EXPECT_EQ(parse_rfc3339_micro("2024-01-02T03:04:05.000007Z")->nanoseconds, 1704164645000007000);
}

TEST(Time, of_the_first_and_last_moment_can_be_formatted) {
  const auto first = parse_rfc3339("0001-01-01T00:00:00Z");
  const auto last = parse_rfc3339("9999-12-31T23:59:59Z");
  ASSERT_TRUE(first.ok() && last.ok());
  EXPECT_EQ(format_rfc3339_micro(*first), "1677-09-21T00:12:43.145224Z");
  EXPECT_EQ(format_rfc3339_micro(*last), "2262-04-11T23:47:16.854775Z");
}

TEST(Moment, keeps_times_that_lie_far_away) {
  for (const char* text : {"0000-01-01T00:00:00.000000Z", "0001-01-01T00:00:02.000000Z",
                           "2026-01-02T03:04:05.678901Z", "9999-12-31T23:59:59.999999Z"}) {
    const auto moment = parse_moment(text, true);
    ASSERT_TRUE(moment.ok()) << text;
    EXPECT_EQ(format_moment(*moment, true), text);
  }
  EXPECT_EQ(parse_moment("0000-01-01T00:00:00Z", false)->seconds, Moment::kFirst);
  EXPECT_EQ(parse_moment("9999-12-31T23:59:59Z", false)->seconds, Moment::kLast);
}

TEST(Moment, stays_within_the_years_that_can_be_spelled) {
  EXPECT_EQ(format_moment(*parse_moment("0000-01-01T00:00:00+01:00", false), false),
            "0000-01-01T00:00:00Z");
  EXPECT_EQ(format_moment(*parse_moment("9999-12-31T23:30:00-01:00", false), false),
            "9999-12-31T23:59:59Z");
}

TEST(Time, complains_in_the_words_of_go) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (
      const Case& c : std::initializer_list<Case>{
          {"yesterday",
           R"(parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006")"},
          {"2024-01-01",
           R"(parsing time "2024-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T")"},
          {"2024-13-01T00:00:00Z", R"(parsing time "2024-13-01T00:00:00Z": month out of range)"},
          {"2023-02-29T00:00:00Z", R"(parsing time "2023-02-29T00:00:00Z": day out of range)"},
          {"2024-01-01T25:00:00Z", R"(parsing time "2024-01-01T25:00:00Z": hour out of range)"},
          {"2024-01-01T00:00:00",
           R"(parsing time "2024-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00")"},
          {"2024-01-01T00:00:00Zx", R"(parsing time "2024-01-01T00:00:00Zx": extra text: "x")"}}) {
    auto parsed = parse_rfc3339(c.text);
    ASSERT_FALSE(parsed.ok()) << c.text;
    EXPECT_EQ(parsed.error().message(), c.message);
  }
  EXPECT_EQ(
      parse_rfc3339_micro("2024-01-01T00:00:00Z").error().message(),
      R"(parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000")");
}

TEST(Duration, parses_and_formats) {
  struct Case {
    const char* text;
    Duration duration;
    const char* canonical;
  };
  for (const Case& c : std::initializer_list<Case>{{"0", 0ns, "0s"},
                                                   {"300ms", 300ms, "300ms"},
                                                   {"-1.5h", -90min, "-1h30m0s"},
                                                   {"1h2m3.5s", 3723500ms, "1h2m3.5s"},
                                                   {"1us", 1us, "1µs"},
                                                   {"1500ns", 1500ns, "1.5µs"},
                                                   {"5ns", 5ns, "5ns"},
                                                   {"+5m", 5min, "5m0s"},
                                                   {".5s", 500ms, "500ms"}}) {
    auto parsed = parse_duration(c.text);
    ASSERT_TRUE(parsed.ok()) << c.text;
    EXPECT_EQ(*parsed, c.duration) << c.text;
    EXPECT_EQ(format_duration(*parsed), c.canonical);
  }
  EXPECT_EQ(format_duration(Duration::min()), "-2562047h47m16.854775808s");
}

TEST(Duration, complains_in_the_words_of_go) {
  EXPECT_EQ(parse_duration("").error().message(), R"(time: invalid duration "")");
  EXPECT_EQ(parse_duration("5").error().message(), R"(time: missing unit in duration "5")");
  EXPECT_EQ(parse_duration("5x").error().message(), R"(time: unknown unit "x" in duration "5x")");
  EXPECT_EQ(parse_duration("9999999h").error().message(), R"(time: invalid duration "9999999h")");
  EXPECT_EQ(parse_duration("-.s").error().message(), R"(time: invalid duration "-.s")");
}

TEST(Duration, ages_as_kubectl_shows_them) {
  struct Case {
    Duration duration;
    const char* text;
  };
  constexpr auto kDay = 24h;
  for (const Case& c : std::initializer_list<Case>{{-2s, "<invalid>"},
                                                   {-1500ms, "0s"},
                                                   {0s, "0s"},
                                                   {119s, "119s"},
                                                   {120s, "2m"},
                                                   {125s, "2m5s"},
                                                   {10min + 1s, "10m"},
                                                   {179min, "179m"},
                                                   {3h, "3h"},
                                                   {7h + 59min, "7h59m"},
                                                   {8h + 1min, "8h"},
                                                   {47h, "47h"},
                                                   {2 * kDay, "2d"},
                                                   {2 * kDay + 3h, "2d3h"},
                                                   {8 * kDay + 3h, "8d"},
                                                   {729 * kDay, "729d"},
                                                   {731 * kDay, "2y1d"},
                                                   {730 * kDay, "2y"},
                                                   {365 * 8 * kDay + kDay, "8y"}}) {
    EXPECT_EQ(human_duration(c.duration), c.text);
  }
}

}  // namespace
}  // namespace dibs
