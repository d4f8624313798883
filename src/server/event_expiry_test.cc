#include "server/event_expiry.h"

#include <gtest/gtest.h>

#include <map>

#include "server/test_support.h"
#include "store/test_dying_store.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::TestServer;

constexpr const char* kEvents = "/api/v1/namespaces/default/events";

Value event(std::string_view name) {
  Value out = from_text(
      "{'kind':'Event','apiVersion':'v1','involvedObject':{'kind':'Pod','namespace':'default',"
      "'name':'p'},'reason':'Told','message':'m','type':'Normal','metadata':{}}");
  out.mut("metadata").set("name", name);
  return out;
}

/// Removes keys itself, it says.
class ExpiringStore : public store::testing::DyingStore {
 public:
  explicit ExpiringStore(std::unique_ptr<store::Store> inner)
      : DyingStore(*inner, {}), inner_(std::move(inner)) {}

  bool expires() const override { return true; }
  Result<store::Revision> commit(std::vector<store::Op> ops) override {
    for (const store::Op& op : ops) lifetimes[op.key] = op.lifetime;
    return DyingStore::commit(std::move(ops));
  }

  std::map<std::string, std::optional<Duration>> lifetimes;

 private:
  std::unique_ptr<store::Store> inner_;
};

TEST(EventExpiry, removes_events_after_an_hour) {
  TestServer api;
  ASSERT_EQ(api.post(kEvents, event("old")).status, 201);
  api.sim.advance(std::chrono::minutes(50));
  ASSERT_EQ(api.post(kEvents, event("young")).status, 201);
  api.sim.advance(std::chrono::minutes(20));

  EXPECT_EQ(test::names_of(api.get(kEvents).body), std::vector<std::string>{"young"});
}

TEST(EventExpiry, looks_as_often_as_a_short_life_ends) {
  Options options;
  options.event_ttl = std::chrono::seconds(2);
  TestServer api(options);
  ASSERT_EQ(api.post(kEvents, event("old")).status, 201);
  api.sim.advance(std::chrono::seconds(5));
  EXPECT_TRUE(test::names_of(api.get(kEvents).body).empty());
}

TEST(EventExpiry, leaves_it_to_a_store_that_does_so_itself) {
  TestServer api;
  auto store = std::make_unique<ExpiringStore>(std::move(api.store));
  ExpiringStore& seen = *store;
  api.store = std::move(store);
  api.restart();

  ASSERT_EQ(api.post(kEvents, event("e")).status, 201);
  api.add_config_map("m");
  const std::string key = "/registry/events/default/e";
  EXPECT_EQ(seen.lifetimes[key], Duration(std::chrono::hours(1)));
  EXPECT_EQ(seen.lifetimes["/registry/configmaps/default/m"], std::nullopt);

  seen.lifetimes.clear();
  Value again = api.get(std::string(kEvents) + "/e").body;
  again.set("count", 2);
  ASSERT_EQ(api.put(std::string(kEvents) + "/e", again).status, 200);
  EXPECT_EQ(seen.lifetimes[key], Duration(std::chrono::hours(1))) << "from the last write on";

  seen.lifetimes.clear();
  api.sim.advance(std::chrono::hours(3));
  EXPECT_EQ(api.get(std::string(kEvents) + "/e").status, 200);
  EXPECT_FALSE(seen.lifetimes.contains(key));
}

}  // namespace
}  // namespace dibs::server
