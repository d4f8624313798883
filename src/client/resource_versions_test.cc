#include "client/resource_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/client.h"
#include "json/parse.h"

namespace dibs::client {
namespace {

using json::Value;

const Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};

Value parsed(std::string_view text) { return json::parse(text).value(); }

/// Answers by target, and remembers what was asked.
class Server final : public Transport {
 public:
  Result<Response> send(Request request) override {
    asked.push_back(request.method + " " + request.target);
    accepted = request.headers.get("Accept");
    request.write_body();
    if (!request.body.empty()) body = parsed(request.body);
    for (const auto& [target, answer] : answers) {
      if (request.target == target) return net::Response{200, {}, answer};
    }
    return net::Response{404, {}, R"({"kind":"Status","apiVersion":"v1","code":404})"};
  }
  void send_async(Request request, std::function<void(Result<Response>)> done) override {
    later.push_back([this, request, done] { done(send(request)); });
  }
  std::unique_ptr<TransportStream> open_stream(Request request, StreamHandlers handlers) override {
    asked.push_back("STREAM " + request.target);
    accepted = request.headers.get("Accept");
    stream = std::move(handlers);
    return std::make_unique<TransportStream>();
  }
  void run() {
    while (!later.empty()) {
      auto tasks = std::move(later);
      later.clear();
      for (auto& task : tasks) task();
    }
  }

  std::map<std::string, std::string> answers;
  std::vector<std::string> asked;
  std::string accepted;  // of the last request
  Value body;
  StreamHandlers stream;
  std::vector<std::function<void()>> later;
};

const char* const kOld =
    R"({"kind":"APIGroup","versions":[{"version":"v1beta1"},{"version":"v1alpha3"}]})";
const char* const kNew =
    R"({"kind":"APIGroup","versions":[{"version":"v1"},{"version":"v1beta1"}]})";
const char* const kFlatClaim =
    R"({"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"n"},)"
    R"("spec":{"devices":{"requests":[{"name":"gpu","deviceClassName":"k","allocationMode":"ExactCount","count":1}]}}})";
const char* const kHubClaim =
    R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"n"},)"
    R"("spec":{"devices":{"requests":[{"name":"gpu","exactly":{"deviceClassName":"k","allocationMode":"ExactCount","count":1}}]}}})";

TEST(ResourceVersions, PassesWhereTheServerHasV1) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] = kNew;
  server.answers["/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c"] = kHubClaim;
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  EXPECT_EQ(client.get(kClaims, "n", "c").value(), parsed(kHubClaim));
  EXPECT_EQ(client.get(kClaims, "n", "c").value(), parsed(kHubClaim));
  EXPECT_THAT(server.asked,
              testing::ElementsAre("GET /apis/resource.k8s.io",
                                   "GET /apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c",
                                   "GET /apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c"));
}

constexpr const char* kAsStored = "application/json;as=Stored,application/json";

TEST(ResourceVersions, AsksForEachObjectInItsOwnModel) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] = kNew;
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  for (const char* plural : {"resourceclaims", "resourceclaimtemplates", "resourceslices"}) {
    const Gvr gvr = {"resource.k8s.io", "v1", plural};
    (void)client.get(gvr, "n", "c");
    EXPECT_EQ(server.accepted, kAsStored) << plural;
    (void)client.list(gvr, "");
    EXPECT_EQ(server.accepted, kAsStored) << plural;
    const auto watch = client.watch(gvr, "", {}, {});
    EXPECT_EQ(server.accepted, kAsStored) << plural;
  }
  (void)client.get({"resource.k8s.io", "v1", "deviceclasses"}, "", "c");
  EXPECT_EQ(server.accepted, "application/json");
  (void)client.get({"", "v1", "pods"}, "n", "p");
  EXPECT_EQ(server.accepted, "application/json");
  ListOptions metadata;
  metadata.metadata_only = true;
  (void)client.list(kClaims, "", metadata);
  EXPECT_THAT(server.accepted, testing::HasSubstr("PartialObjectMetadataList"));
}

const char* const kClassicClaim =
    R"({"apiVersion":"resource.k8s.io/v1alpha2","kind":"ResourceClaim","metadata":{"name":"c","namespace":"n"},)"
    R"("spec":{"resourceClassName":"k"}})";

TEST(ResourceVersions, HandsMixedListsOnAsTheyAre) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] = kNew;
  server.answers["/apis/resource.k8s.io/v1/resourceclaims?limit=500"] =
      std::string(R"({"kind":"ResourceClaimList","apiVersion":"resource.k8s.io/v1","items":[)") +
      kClassicClaim + "," + kHubClaim + "]}";
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  const List list = client.list(kClaims, "").value();
  EXPECT_THAT(list.items, testing::ElementsAre(parsed(kClassicClaim), parsed(kHubClaim)));
}

TEST(ResourceVersions, WritesAClassicObjectWhereItBelongs) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] = kNew;
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  (void)client.update_status(kClaims, "n", parsed(kClassicClaim));
  EXPECT_EQ(server.asked.back(),
            "PUT /apis/resource.k8s.io/v1alpha2/namespaces/n/resourceclaims/c/status");
  EXPECT_EQ(server.body, parsed(kClassicClaim));
  (void)client.create(kClaims, "n", parsed(kClassicClaim));
  EXPECT_EQ(server.asked.back(), "POST /apis/resource.k8s.io/v1alpha2/namespaces/n/resourceclaims");
  (void)client.update(kClaims, "n", parsed(kHubClaim));
  EXPECT_EQ(server.asked.back(), "PUT /apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c");
}

TEST(ResourceVersions, SpeaksV1alpha2WhereThereIsNothingElse) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] =
      R"({"kind":"APIGroup","versions":[{"version":"v1alpha2"}]})";
  const std::string path = "/apis/resource.k8s.io/v1alpha2/namespaces/n/resourceclaims";
  server.answers[path + "/c"] = kClassicClaim;
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  EXPECT_EQ(client.get(kClaims, "n", "c").value(), parsed(kClassicClaim));
  EXPECT_EQ(server.accepted, "application/json");
  EXPECT_EQ(client.update(kClaims, "n", parsed(kClassicClaim)).value(), parsed(kClassicClaim));
  EXPECT_EQ(server.asked.back(), "PUT " + path + "/c");
  Value got;
  StreamHandlers handlers;
  handlers.event = [&](std::string_view, const Value& object) { got = object; };
  const auto stream = transport->open_stream(
      make_request("GET", "/apis/resource.k8s.io/v1/resourceclaims?watch=true"), handlers);
  EXPECT_EQ(server.asked.back(), "STREAM /apis/resource.k8s.io/v1alpha2/resourceclaims?watch=true");
  server.stream.event("ADDED", parsed(kClassicClaim));
  EXPECT_EQ(got, parsed(kClassicClaim));
}

TEST(ResourceVersions, ConvertsBothWaysWhereItHasNot) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] = kOld;
  const std::string path = "/apis/resource.k8s.io/v1beta1/namespaces/n/resourceclaims";
  server.answers[path + "/c"] = kFlatClaim;
  server.answers[path + "/c/status"] = kFlatClaim;
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  EXPECT_EQ(client.get(kClaims, "n", "c").value(), parsed(kHubClaim));
  EXPECT_EQ(client.update_status(kClaims, "n", parsed(kHubClaim)).value(), parsed(kHubClaim));
  EXPECT_EQ(server.body, parsed(kFlatClaim));
}

TEST(ResourceVersions, ConvertsListsWhoseItemsNameNoKind) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] = kOld;
  Value item = parsed(kFlatClaim);
  item.erase("kind");
  item.erase("apiVersion");
  const Value list = Value::object({{"apiVersion", "resource.k8s.io/v1beta1"},
                                    {"kind", "ResourceClaimList"},
                                    {"metadata", Value::object({{"resourceVersion", "7"}})},
                                    {"items", Value::array({item})}});
  server.answers["/apis/resource.k8s.io/v1beta1/resourceclaims?limit=500"] = json::write(list);
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  const List got = client.list(kClaims, "").value();
  ASSERT_EQ(got.items.size(), 1u);
  EXPECT_EQ(got.items[0], parsed(kHubClaim));
}

TEST(ResourceVersions, ConvertsWatchEventsHoweverTheyAreCut) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] = kOld;
  auto transport = make_resource_transport(std::move(owned));
  std::string got;
  StreamHandlers handlers;
  handlers.data = [&](std::string_view bytes) { got += bytes; };
  const auto stream = transport->open_stream(
      make_request("GET", "/apis/resource.k8s.io/v1/resourceclaims?watch=true"), handlers);
  server.run();
  EXPECT_EQ(server.asked.back(), "STREAM /apis/resource.k8s.io/v1beta1/resourceclaims?watch=true");
  const std::string line = std::string(R"({"type":"ADDED","object":)") + kFlatClaim + "}\n";
  for (char c : line) server.stream.data(std::string_view(&c, 1));
  EXPECT_EQ(parsed(got)["object"], parsed(kHubClaim));
}

TEST(ResourceVersions, ConvertsEventsThatNeverWereText) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  server.answers["/apis/resource.k8s.io"] = kOld;
  auto transport = make_resource_transport(std::move(owned));
  Value got;
  StreamHandlers handlers;
  handlers.event = [&](std::string_view, const Value& object) { got = object; };
  const auto stream = transport->open_stream(
      make_request("GET", "/apis/resource.k8s.io/v1/resourceclaims?watch=true"), handlers);
  server.run();
  server.stream.event("ADDED", parsed(kFlatClaim));
  EXPECT_EQ(got, parsed(kHubClaim));
}

TEST(ResourceVersions, AsksAgainAfterAnAnswerThatSaysNothing) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  EXPECT_FALSE(client.get(kClaims, "n", "c").ok());
  server.answers["/apis/resource.k8s.io"] = kOld;
  server.answers["/apis/resource.k8s.io/v1beta1/namespaces/n/resourceclaims/c"] = kFlatClaim;
  EXPECT_TRUE(client.get(kClaims, "n", "c").ok());
}

TEST(ResourceVersions, LeavesOtherGroupsAlone) {
  auto owned = std::make_unique<Server>();
  Server& server = *owned;
  auto transport = make_resource_transport(std::move(owned));
  Client client(*transport);
  (void)client.get({"", "v1", "pods"}, "n", "p");
  EXPECT_THAT(server.asked, testing::ElementsAre("GET /api/v1/namespaces/n/pods/p"));
}

}  // namespace
}  // namespace dibs::client
