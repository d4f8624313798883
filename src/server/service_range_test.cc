#include "server/service_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "store/stores.h"

namespace dibs::server {
namespace {

using testing::HasSubstr;

std::unique_ptr<store::Store> empty_store() { return *store::open_store("memory", {}); }

TEST(ServiceRange, is_kept_for_life) {
  const auto store = empty_store();
  EXPECT_EQ(*known_service_range(*store, ""), "");
  EXPECT_EQ(*known_service_range(*store, "10.7.0.0/24"), "");
  ASSERT_TRUE(keep_service_range(*store, "10.7.0.0/24").ok());
  ASSERT_TRUE(keep_service_range(*store, "10.7.0.0/24").ok());

  EXPECT_EQ(*known_service_range(*store, ""), "10.7.0.0/24");
  EXPECT_EQ(*known_service_range(*store, "10.7.0.0/24"), "10.7.0.0/24");
  const auto other = known_service_range(*store, "10.7.0.0/16");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message(),
            "--service-cluster-ip-range \"10.7.0.0/16\": this cluster's Services have 10.7.0.0/24 "
            "for life; start it with that, or without the flag");
  // Another server was quicker.
  EXPECT_FALSE(keep_service_range(*store, "10.8.0.0/24").ok());
}

TEST(ServiceRange, is_told_by_the_api_service_where_nobody_noted_it) {
  const auto store = empty_store();
  const auto put = [&](const char* address) {
    store::Op op;
    op.key = "/registry/services/specs/default/kubernetes";
    op.value = share(std::string(R"({"kind":"Service","apiVersion":"v1","metadata":{"name":)") +
                     R"("kubernetes"},"spec":{"clusterIP":")" + address + "\"}}");
    ASSERT_TRUE(store->commit({std::move(op)}).ok());
  };
  put("10.0.0.1");
  EXPECT_EQ(*known_service_range(*store, ""), "10.0.0.0/24");
  EXPECT_EQ(*known_service_range(*store, "10.0.0.0/16"), "10.0.0.0/16");
  put("10.96.0.1");
  EXPECT_EQ(*known_service_range(*store, "10.96.0.0/12"), "10.96.0.0/12");
  for (const char* wrong : {"", "10.97.0.0/16"}) {
    const auto range = known_service_range(*store, wrong);
    ASSERT_FALSE(range.ok());
    EXPECT_THAT(range.error().message(), HasSubstr("--service-cluster-ip-range"));
    EXPECT_THAT(range.error().message(), HasSubstr("whose first address is 10.96.0.1"));
  }
}

}  // namespace
}  // namespace dibs::server
