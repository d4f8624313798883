#include "server/token_tracking.h"

#include <gtest/gtest.h>

namespace dibs::server {
namespace {

const Time kNow = *parse_rfc3339("2026-03-04T23:59:59Z");

TEST(TokenTracking, keeps_the_day_it_began) {
  const Value wanted = token_tracking_object(kNow);
  EXPECT_EQ(wanted["data"]["since"].as_string(), "2026-03-04");
  const Value there = token_tracking_object(kNow - std::chrono::hours(24 * 300));
  EXPECT_TRUE(token_tracking_mended(there, wanted, kNow).is_null());
}

TEST(TokenTracking, begins_anew_where_no_day_is_written) {
  const Value wanted = token_tracking_object(kNow);
  for (const char* since : {"", "yesterday", "2026-13-01"}) {
    Value there = token_tracking_object(kNow);
    there.mut("data").set("since", since);
    EXPECT_EQ(token_tracking_mended(there, wanted, kNow), wanted) << since;
  }
  Value there = token_tracking_object(kNow);
  there.erase("data");
  EXPECT_EQ(token_tracking_mended(there, wanted, kNow), wanted);
}

}  // namespace
}  // namespace dibs::server
