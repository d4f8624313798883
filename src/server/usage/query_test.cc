#include "server/usage/query.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::server {
namespace {

const Time kNow = Time::from_seconds(1'700'000'000);

Result<UsageQuery> parsed(std::string_view query) {
  return parse_usage_query(*net::Target::parse(std::string("/dibs/usage?") + std::string(query)),
                           "", kNow);
}

std::string refusal(std::string_view query) {
  const auto result = parsed(query);
  return result.ok() ? "taken" : result.error().message();
}

TEST(UsageQuery, asks_for_the_last_hour_where_it_does_not_say) {
  const auto query = parsed("");
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->plan.to, kNow.seconds() * 1000);
  EXPECT_EQ(query->plan.from, (kNow.seconds() - 3600) * 1000);
  EXPECT_EQ(query->plan.by, (std::vector<UsageBy>{UsageBy::name_space, UsageBy::device_class}));
  EXPECT_FALSE(query->csv);
}

TEST(UsageQuery, takes_times_spans_and_forms) {
  auto query = parsed(
      "from=2023-11-14T20:00:00Z&to=2023-11-14T21:00:00%2B00:00&by=pod&step=5m&namespace=n&format="
      "csv");
  ASSERT_TRUE(query.ok()) << query.error().message();
  EXPECT_EQ(query->plan.to - query->plan.from, 3'600'000);
  EXPECT_EQ(query->plan.step, 300'000);
  EXPECT_EQ(query->plan.name_space, "n");
  EXPECT_TRUE(query->csv);
  query = parsed("since=2d12h");
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->plan.to - query->plan.from, 60 * 3'600'000LL);
  // What is to come is not told.
  query = parsed("from=2023-11-14T20:00:00Z&to=2099-01-01T00:00:00Z");
  ASSERT_TRUE(query.ok());
  EXPECT_EQ(query->plan.to, kNow.seconds() * 1000);
}

TEST(UsageQuery, names_what_is_wrong) {
  EXPECT_EQ(refusal("form=csv"),
            "\"form\" is no parameter: there are by, format, from, namespace, since, step, to");
  EXPECT_EQ(refusal("by=node"),
            "by: \"node\" is none of namespace, class, pod, device, or a list of these");
  EXPECT_EQ(refusal("by=pod,pod"), "by: pod is named twice");
  EXPECT_EQ(refusal("by=pod,"),
            "by: \"\" is none of namespace, class, pod, device, or a list of these");
  EXPECT_EQ(refusal("since=1h&to=2023-11-14T20:00:00Z"), "since: excludes from and to");
  for (const std::string_view since : {"", "1", "0s", "-1h", "d", "1x", "99999999d", "h"}) {
    EXPECT_EQ(refusal(std::string("since=") + std::string(since)),
              "since: \"" + std::string(since) + "\" is no time like 90m, 12h or 7d");
  }
  EXPECT_EQ(refusal("from=yesterday"), "from: \"yesterday\" is no time like 2026-01-02T15:04:05Z");
  EXPECT_EQ(refusal("from=2099-01-01T00:00:00Z"), "from: must be before to, and before now");
  EXPECT_EQ(refusal("step=10ms"), "step: at least 1s");
  EXPECT_EQ(refusal("since=30d&step=1m"),
            "step: at most 2000 of them between from and to: take a longer one");
  EXPECT_EQ(refusal("format=xml"), "format: \"xml\" is neither json nor csv");
}

UsageTable table() {
  UsageTable made({{UsageBy::name_space, UsageBy::pod}, "", 1'000, 11'000, 5'000});
  made.add({0, 3'500, "n/claim", "u a,b d/p/g=c=0.5"});
  made.add({9'000, 20'000, "n/claim", "u - d/p/g=c=1"});
  return made;
}

TEST(UsageTable, one_claim_of_many_pods_and_devices_makes_no_more_rows_than_all_may) {
  std::string holding = "u ";
  for (int pod = 0; pod < 256; ++pod) holding += (pod == 0 ? "p" : ",p") + std::to_string(pod);
  for (int device = 0; device < 32; ++device) holding += " d/p/g" + std::to_string(device) + "=c=1";
  UsageTable rows({{UsageBy::pod, UsageBy::device}, "", 0, 2'000'000, 1'000});
  rows.add({0, 2'000'000, "n/claim", holding});
  EXPECT_LE(rows.rows().size(), UsageTable::kMostRows);
  EXPECT_TRUE(rows.is_full());
}

TEST(UsageTable, is_full_when_adding_takes_too_long_however_few_rows_there_are) {
  std::string holding = "u -";
  for (int device = 0; device < 32; ++device) holding += " d/p/g" + std::to_string(device) + "=c=1";
  UsageTable rows({{UsageBy::name_space}, "", 0, 2'000'000, 1'000});
  std::size_t claims = 0;
  for (; claims < 10'000 && !rows.is_full(); ++claims) {
    rows.add({0, 2'000'000, "n/claim", holding});
  }
  EXPECT_LT(claims, 10'000U);
  EXPECT_EQ(rows.rows().size(), 2000U);
}

TEST(UsageResponse, is_csv_with_a_row_for_every_step) {
  const auto response = usage_response(table(), true);
  EXPECT_EQ(response.headers.get("Content-Type"), "text/csv; charset=utf-8");
  // Two pods have half of half a device each, for two seconds and a half.
  EXPECT_EQ(response.body,
            "from,to,namespace,pod,device_seconds,used_device_seconds\n"
            "1970-01-01T00:00:01Z,1970-01-01T00:00:06Z,n,a,0.625,0.625\n"
            "1970-01-01T00:00:01Z,1970-01-01T00:00:06Z,n,b,0.625,0.625\n"
            "1970-01-01T00:00:06Z,1970-01-01T00:00:11Z,n,,2.000,0.000\n");
}

TEST(UsageResponse, is_json_with_the_same) {
  const auto body = json::parse(usage_response(table(), false).body);
  ASSERT_TRUE(body.ok());
  EXPECT_EQ((*body)["kind"].str(), "DeviceUsage");
  EXPECT_EQ((*body)["items"].size(), 3U);
  EXPECT_EQ((*body)["items"][0]["pod"].str(), "a");
  EXPECT_DOUBLE_EQ((*body)["items"][0]["deviceSeconds"].as_double(), 0.625);
  EXPECT_EQ((*body)["items"][2]["to"].str(), "1970-01-01T00:00:11Z");
}

}  // namespace
}  // namespace dibs::server
