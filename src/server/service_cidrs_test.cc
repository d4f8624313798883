#include "server/service_cidrs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::names_of;
using test::Reply;
using test::TestServer;
using testing::ElementsAre;

constexpr const char* kServices = "/api/v1/namespaces/default/services";
constexpr const char* kAddresses = "/apis/networking.k8s.io/v1/ipaddresses";
constexpr const char* kCidrs = "/apis/networking.k8s.io/v1/servicecidrs";

Reply add_service(TestServer& api, const std::string& name, const std::string& address = "") {
  return api.post(kServices,
                  from_text(cat("{'metadata':{'name':'", name, "'},'spec':{",
                                address.empty() ? "" : cat("'clusterIP':'", address, "',"),
                                "'ports':[{'port':80}]}}")));
}

std::vector<std::string> addresses(TestServer& api) { return names_of(api.get(kAddresses).body); }

void add_range(TestServer& api, const std::string& name, const std::string& range) {
  ASSERT_EQ(api.post(kCidrs, from_text(cat("{'metadata':{'name':'", name, "'},'spec':{'cidrs':['",
                                           range, "']}}")))
                .status,
            201);
}

void set_ready(TestServer& api, const std::string& name, const std::string& status) {
  ASSERT_EQ(
      api.patch(
             cat(kCidrs, "/", name, "/status"), "merge",
             cat(R"({"status":{"conditions":[{"type":"Ready","status":")", status,
                 R"(","reason":"","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}})"))
          .status,
      200);
}

TEST(ServiceAddresses, are_told_by_ip_addresses_while_services_have_them) {
  TestServer api;
  EXPECT_THAT(addresses(api), ElementsAre("10.0.0.1"));
  ASSERT_EQ(add_service(api, "a", "10.0.0.7").status, 201);
  EXPECT_THAT(addresses(api), ElementsAre("10.0.0.1", "10.0.0.7"));
  const Value object = api.get(cat(kAddresses, "/10.0.0.7")).body;
  EXPECT_EQ(object["spec"]["parentRef"]["name"].str(), "a");
  EXPECT_EQ(object["metadata"]["labels"]["ipaddress.kubernetes.io/managed-by"].str(),
            "ipallocator.k8s.io");

  ASSERT_EQ(api.patch(cat(kServices, "/a"), "merge",
                      R"({"spec":{"type":"ExternalName","externalName":"x.example.com",
                          "clusterIP":null,"clusterIPs":null}})")
                .status,
            200);
  EXPECT_THAT(addresses(api), ElementsAre("10.0.0.1"));
  ASSERT_EQ(add_service(api, "b", "10.0.0.8").status, 201);
  ASSERT_EQ(api.remove(cat(kServices, "/b")).status, 200);
  EXPECT_THAT(addresses(api), ElementsAre("10.0.0.1"));
}

TEST(ServiceAddresses, stay_while_a_finalizer_holds_the_service) {
  TestServer api;
  ASSERT_EQ(
      api.post(kServices, from_text("{'metadata':{'name':'a','finalizers':['x.io/f']},'spec':{"
                                    "'clusterIP':'10.0.0.7','ports':[{'port':80}]}}"))
          .status,
      201);
  api.remove(cat(kServices, "/a"));
  EXPECT_THAT(addresses(api), ElementsAre("10.0.0.1", "10.0.0.7"));
  ASSERT_EQ(api.patch(cat(kServices, "/a"), "merge", R"({"metadata":{"finalizers":null}})").status,
            200);
  EXPECT_THAT(addresses(api), ElementsAre("10.0.0.1"));
}

TEST(ServiceAddresses, are_left_to_whom_they_are_reserved_for) {
  TestServer api;
  ASSERT_EQ(
      api.post(kAddresses, from_text("{'metadata':{'name':'10.0.0.9'},'spec':{'parentRef':{'group':"
                                     "'g.io','resource':'gateways','name':'x'}}}"))
          .status,
      201);
  EXPECT_EQ(add_service(api, "a", "10.0.0.9").status, 422);
  ASSERT_EQ(api.remove(cat(kAddresses, "/10.0.0.9")).status, 200);
  EXPECT_EQ(add_service(api, "a", "10.0.0.9").status, 201);
}

/// A store in which something happens right after a look at a key.
class LookedAtStore final : public store::Store {
 public:
  explicit LookedAtStore(std::unique_ptr<store::Store> inner) : inner_(std::move(inner)) {}

  Result<store::Revision> commit(std::vector<store::Op> ops) override {
    return inner_->commit(std::move(ops));
  }
  store::RecordPtr get(std::string_view key) const override {
    auto record = inner_->get(key);
    if (key == looked_at) {
      looked_at.clear();
      happens();
    }
    return record;
  }
  Result<store::Listing> range(const store::RangeQuery& query) const override {
    return inner_->range(query);
  }
  std::size_t count(std::string_view prefix) const override { return inner_->count(prefix); }
  Result<std::unique_ptr<store::Watch>> watch(std::string_view prefix, store::Revision from,
                                              std::function<void()> ready) override {
    return inner_->watch(prefix, from, std::move(ready));
  }
  store::Revision revision() const override { return inner_->revision(); }
  store::Revision compacted() const override { return inner_->compacted(); }
  Result<> sync() override { return inner_->sync(); }
  Result<> compact(store::Revision revision) override { return inner_->compact(revision); }
  void close() override { inner_->close(); }

  mutable std::string looked_at;
  std::function<void()> happens;

 private:
  const std::unique_ptr<store::Store> inner_;
};

TEST(ServiceAddresses, are_left_to_who_takes_them_while_a_service_is_judged) {
  TestServer api;
  auto made = std::make_unique<LookedAtStore>(std::move(api.store));
  LookedAtStore& store = *made;
  api.store = std::move(made);
  api.restart();
  ASSERT_EQ(
      api.post(kAddresses, from_text("{'metadata':{'name':'10.0.0.9'},'spec':{'parentRef':{'group':"
                                     "'g.io','resource':'gateways','name':'x'}}}"))
          .status,
      201);
  const std::string key = "/registry/ipaddresses/10.0.0.9";
  const auto record = store.get(key);
  ASSERT_TRUE(record);
  const std::string bytes = *record->value;
  ASSERT_EQ(api.remove(cat(kAddresses, "/10.0.0.9")).status, 200);
  store.happens = [&] { EXPECT_TRUE(store.commit({{key, share(bytes), 0}}).ok()); };
  store.looked_at = key;

  EXPECT_EQ(add_service(api, "a", "10.0.0.9").status, 422);

  EXPECT_EQ(store.looked_at, "");
  EXPECT_EQ(api.get(cat(kAddresses, "/10.0.0.9")).body["spec"]["parentRef"]["name"].str(), "x");
}

TEST(ServiceAddresses, come_from_ranges_that_are_ready_and_stay) {
  TestServer api;
  add_range(api, "more", "10.7.0.0/24");
  EXPECT_EQ(add_service(api, "a", "10.7.0.5").status, 422);
  set_ready(api, "more", "True");
  EXPECT_EQ(add_service(api, "a", "10.7.0.5").status, 201);
  EXPECT_EQ(add_service(api, "first", "10.7.0.0").status, 422);
  EXPECT_EQ(add_service(api, "last", "10.7.0.255").status, 422);
  set_ready(api, "more", "False");
  EXPECT_EQ(add_service(api, "b", "10.7.0.6").status, 422);
}

TEST(ServiceAddresses, refuse_a_range_with_addresses_of_nodes) {
  TestServer api;
  ASSERT_EQ(api.post("/api/v1/nodes", from_text("{'metadata':{'name':'n'},'spec':{'podCIDR':"
                                                "'10.8.1.0/24'}}"))
                .status,
            201);
  const Reply reply =
      api.post(kCidrs, from_text("{'metadata':{'name':'x'},'spec':{'cidrs':['10.8.0.0/16']}}"));
  EXPECT_EQ(reply.status, 422);
  EXPECT_NE(reply.message().find("the pods' range 10.8.1.0/24 of the node n"), std::string::npos);
}

TEST(AddressRepair, gives_services_their_addresses_and_takes_those_of_nobody) {
  TestServer api;
  ASSERT_EQ(add_service(api, "a", "10.0.0.7").status, 201);
  ASSERT_EQ(api.remove(cat(kAddresses, "/10.0.0.7")).status, 200);
  ASSERT_EQ(api.post(kAddresses, from_text("{'metadata':{'name':'10.0.0.9','labels':{"
                                           "'ipaddress.kubernetes.io/managed-by':"
                                           "'ipallocator.k8s.io'}},'spec':{'parentRef':{"
                                           "'resource':'services','namespace':'default',"
                                           "'name':'gone'}}}"))
                .status,
            201);
  ASSERT_EQ(api.remove(cat(kCidrs, "/kubernetes")).status, 200);
  EXPECT_EQ(add_service(api, "b").status, 422);  // no range at all

  api.sim.advance(std::chrono::seconds(150));

  EXPECT_THAT(addresses(api), ElementsAre("10.0.0.1", "10.0.0.7"));
  EXPECT_EQ(add_service(api, "b").status, 201);
}

TEST(ServiceAddresses, have_one_range_in_releases_before_there_were_more) {
  Options options;
  options.release = "1.32";
  TestServer api(options);
  EXPECT_EQ(api.get(kCidrs).status, 404);
  EXPECT_EQ(add_service(api, "a").status, 201);
  EXPECT_EQ(add_service(api, "b", "10.7.0.5").status, 422);
}

}  // namespace
}  // namespace dibs::server
