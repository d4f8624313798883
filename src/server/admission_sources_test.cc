// Whom admission asks is not forgotten because the store cannot be read.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"
#include "server/plugins/admission_policies_source.h"
#include "server/plugins/webhooks_source.h"
#include "store/memory_store.h"
#include "store/test_dying_store.h"

namespace dibs::server {
namespace {

struct Sources : testing::Test {
  std::unique_ptr<store::Store> inner = store::make_memory_store();
  store::testing::DyingStore store{*inner, {}};
  runtime::SimRuntime sim;

  void put(std::string key, std::string bytes) {
    ASSERT_TRUE(inner->commit({{std::move(key), share(std::move(bytes)), std::nullopt}}).ok());
  }
  /// What happened is forgotten before anybody has heard of it.
  void fall_behind(std::string_view key) {
    put(std::string(key), "no JSON");
    ASSERT_TRUE(inner->compact(inner->revision()).ok());
    sim.advance(std::chrono::seconds(1));
  }
};

TEST_F(Sources, of_webhooks_keep_what_they_knew) {
  put("/hooks/a", R"({"kind":"X","metadata":{"name":"a"},"webhooks":[{"name":"a.b.c"}]})");
  WebhookSource source(sim.runtime().clock, store, "/hooks/");
  ASSERT_NE(source.current(), nullptr);

  fall_behind("/hooks/a");
  ASSERT_NE(source.current(), nullptr) << "one that cannot be read";

  fall_behind("/hooks/b");
  store.close();
  ASSERT_NE(source.current(), nullptr) << "none can be read";
  EXPECT_EQ(source.current()->size(), 1U);
}

TEST_F(Sources, of_policies_keep_what_they_knew) {
  put("/policies/a", R"({"kind":"X","metadata":{"name":"a"},"spec":{}})");
  put("/bindings/a", R"({"kind":"Y","metadata":{"name":"a"},"spec":{"policyName":"a"}})");
  PolicySource source(sim.runtime().clock, store, "/policies/", "/bindings/");
  ASSERT_NE(source.current(), nullptr);

  fall_behind("/policies/a");
  fall_behind("/bindings/a");
  ASSERT_NE(source.current(), nullptr) << "those that cannot be read";

  fall_behind("/policies/b");
  store.close();
  ASSERT_NE(source.current(), nullptr) << "none can be read";
  EXPECT_EQ(source.current()->size(), 1U);
}

}  // namespace
}  // namespace dibs::server
