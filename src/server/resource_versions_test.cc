// resource.k8s.io in all its versions, through a whole server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/builtin_resources.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::names_of;
using test::Reply;
using test::TestServer;
using test::to_text;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

std::string claims(std::string_view version, std::string_view rest = {}) {
  return cat("/apis/resource.k8s.io/", version, "/namespaces/default/resourceclaims", rest);
}

Value structured_claim(std::string_view name) {
  Value out = from_text(
      "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','spec':{'devices':{'requests':["
      "{'name':'a','exactly':{'deviceClassName':'gpu'}}]}}}");
  out.mut("metadata").set("name", name);
  return out;
}

Value classic_claim(std::string_view name) {
  Value out = from_text(
      "{'apiVersion':'resource.k8s.io/v1alpha2','kind':'ResourceClaim','spec':{"
      "'resourceClassName':'net','parametersRef':{'kind':'Nic','name':'fast'}}}");
  out.mut("metadata").set("name", name);
  return out;
}

TestServer emulating(std::string release, std::string gates = {}, std::string config = {}) {
  Options options;
  options.release = std::move(release);
  options.feature_gates = std::move(gates);
  options.runtime_config = std::move(config);
  return TestServer(std::move(options));
}

std::vector<std::string> versions_of(TestServer& api) {
  std::vector<std::string> out;
  Value group = api.get("/apis/resource.k8s.io").body;
  for (const Value& version : group["versions"].items()) out.push_back(version["version"].str());
  return out;
}

std::vector<std::string> resources_of(TestServer& api, std::string_view version) {
  std::vector<std::string> out;
  Value list = api.get(cat("/apis/resource.k8s.io/", version)).body;
  for (const Value& resource : list["resources"].items()) out.push_back(resource["name"].str());
  return out;
}

TEST(Versions, AllAreServedByDefault) {
  TestServer api;
  EXPECT_THAT(versions_of(api), ElementsAre("v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2"));
  EXPECT_THAT(resources_of(api, "v1alpha3"),
              ElementsAre("devicetaintrules", "devicetaintrules/status",
                          "resourcepoolstatusrequests", "resourcepoolstatusrequests/status"));
  EXPECT_THAT(resources_of(api, "v1alpha2"),
              IsSupersetOf({"resourceclasses", "podschedulingcontexts", "resourceclaimparameters",
                            "resourceclassparameters", "resourceslices", "resourceclaims"}));
}

TEST(Versions, BothModelsLiveUnderOneName) {
  TestServer api;
  ASSERT_EQ(api.post(claims("v1alpha2"), classic_claim("old")).status, 201);
  ASSERT_EQ(api.post(claims("v1"), structured_claim("new")).status, 201);
  for (std::string_view version : {"v1", "v1beta2", "v1beta1", "v1alpha2"}) {
    Value list = api.get(claims(version)).body;
    EXPECT_THAT(names_of(list), ElementsAre("new", "old")) << version;
    EXPECT_EQ(list["apiVersion"].as_string(), cat("resource.k8s.io/", version));
  }
  EXPECT_EQ(api.post(claims("v1"), structured_claim("old")).status, 409);
  EXPECT_EQ(to_text(api.get(claims("v1", "/old")).body["spec"]), "{'devices':{'requests':null}}");
  EXPECT_EQ(to_text(api.get(claims("v1")).body["items"][1]["spec"]),
            "{'devices':{'requests':null}}");
  EXPECT_EQ(to_text(api.get(claims("v1alpha2", "/new")).body["spec"]),
            "{'resourceClassName':'','allocationMode':'WaitForFirstConsumer'}");
}

constexpr const char* kStored = "application/json;as=Stored,application/json";
constexpr const char* kStoredAlone = "application/json;as=Stored";

/// "new resource.k8s.io/v1 ResourceClaim": each as it names itself.
std::vector<std::string> selves_of(const Value& items) {
  std::vector<std::string> out;
  for (const Value& item : items.items()) {
    out.push_back(cat(item["metadata"]["name"].as_string(), " ", item["apiVersion"].as_string(),
                      " ", item["kind"].as_string()));
  }
  return out;
}

TEST(StoredForm, ShowsEachObjectInItsOwnModel) {
  TestServer api;
  ASSERT_EQ(api.post(claims("v1alpha2"), classic_claim("old")).status, 201);
  ASSERT_EQ(api.post(claims("v1"), structured_claim("new")).status, 201);
  const Value old = api.get(claims("v1alpha2", "/old")).body;
  const Value fresh = api.get(claims("v1", "/new")).body;
  for (std::string_view version : {"v1", "v1beta1", "v1alpha2"}) {
    EXPECT_EQ(api.get(claims(version, "/old"), kStoredAlone).body, old) << version;
    EXPECT_EQ(api.get(claims(version, "/new"), kStored).body, fresh) << version;
    for (const char* pretty : {"", "?pretty=true"}) {
      const Reply list = api.get(claims(version, pretty), kStored);
      EXPECT_EQ(list.body["apiVersion"].as_string(), cat("resource.k8s.io/", version));
      EXPECT_EQ(list.body["kind"].as_string(), "ResourceClaimList");
      EXPECT_THAT(selves_of(list.body["items"]),
                  ElementsAre("new resource.k8s.io/v1 ResourceClaim",
                              "old resource.k8s.io/v1alpha2 ResourceClaim"));
      EXPECT_EQ(list.body["items"][1], old);
    }
  }
}

TEST(StoredForm, IsSelectedByTheVersionOfThePath) {
  TestServer api;
  Value slice = from_text(
      "{'apiVersion':'resource.k8s.io/v1alpha2','kind':'ResourceSlice','metadata':{'name':'s'},"
      "'nodeName':'n','driverName':'d.example.com','namedResources':{'instances':[]}}");
  ASSERT_EQ(api.post("/apis/resource.k8s.io/v1alpha2/resourceslices", slice).status, 201);
  const std::string slices = "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=";
  const Value found = api.get(slices + "spec.driver%3Dd.example.com", kStored).body["items"];
  EXPECT_THAT(selves_of(found), ElementsAre("s resource.k8s.io/v1alpha2 ResourceSlice"));
  EXPECT_EQ(found[0]["driverName"].as_string(), "d.example.com");
  EXPECT_TRUE(api.get(slices + "spec.driver%3Dother", kStored).body["items"].empty());
}

TEST(StoredForm, IsWatched) {
  TestServer api;
  ASSERT_EQ(api.post(claims("v1alpha2"), classic_claim("old")).status, 201);
  auto stored = api.watch(claims("v1", "?watch=true"), kStored);
  auto plain = api.watch(claims("v1", "?watch=true"));
  ASSERT_EQ(api.post(claims("v1"), structured_claim("new")).status, 201);
  ASSERT_EQ(api.patch(claims("v1", "/old"), "merge", R"({"metadata":{"labels":{"a":"b"}}})").status,
            200);
  ASSERT_EQ(api.remove(claims("v1", "/old")).status, 200);
  Value objects = Value::array();
  std::vector<std::string> types;
  for (const Value& event : stored->take()) {
    types.push_back(event["type"].str());
    objects.push(event["object"]);
  }
  EXPECT_THAT(types, ElementsAre("ADDED", "ADDED", "MODIFIED", "DELETED"));
  EXPECT_THAT(selves_of(objects), ElementsAre("old resource.k8s.io/v1alpha2 ResourceClaim",
                                              "new resource.k8s.io/v1 ResourceClaim",
                                              "old resource.k8s.io/v1alpha2 ResourceClaim",
                                              "old resource.k8s.io/v1alpha2 ResourceClaim"));
  EXPECT_EQ(objects[2]["spec"]["resourceClassName"].as_string(), "net");
  // The encodings of events are kept, each for its form.
  for (const Value& event : plain->take())
    EXPECT_EQ(event["object"]["apiVersion"].as_string(), "resource.k8s.io/v1");
}

TEST(StoredForm, IsThatOfKindsOfTwoModelsAlone) {
  TestServer api;
  for (const char* path : {"/apis/resource.k8s.io/v1/deviceclasses",
                           "/apis/resource.k8s.io/v1alpha2/resourceclasses", "/api/v1/pods"}) {
    EXPECT_EQ(api.get(path, kStoredAlone).status, 406) << path;
    EXPECT_EQ(api.get(path, kStored).status, 200) << path;
  }
  for (const char* plural : {"resourceclaims", "resourceclaimtemplates", "resourceslices"})
    EXPECT_EQ(api.get(cat("/apis/resource.k8s.io/v1/", plural), kStoredAlone).status, 200)
        << plural;
}

TEST(Versions, AnUpdateKeepsWhatTheVersionCannotShow) {
  TestServer api;
  api.post(claims("v1alpha2"), classic_claim("old"));
  Value before = api.get(claims("v1alpha2", "/old")).body;
  Value served = api.get(claims("v1", "/old")).body;
  served.mut("metadata").set("labels", from_text("{'a':'b'}"));
  Reply put = api.put(claims("v1", "/old"), served);
  ASSERT_EQ(put.status, 200) << put.text;
  ASSERT_EQ(
      api.patch(claims("v1beta1", "/old"), "merge", R"({"metadata":{"annotations":{"c":"d"}}})")
          .status,
      200);
  Value after = api.get(claims("v1alpha2", "/old")).body;
  EXPECT_EQ(after["spec"], before["spec"]);
  EXPECT_EQ(to_text(after["metadata"]["labels"]), "{'a':'b'}");
  EXPECT_EQ(to_text(after["metadata"]["annotations"]), "{'c':'d'}");

  served = api.get(claims("v1", "/old")).body;
  served.set("spec", structured_claim("old")["spec"]);
  Reply refused = api.put(claims("v1", "/old"), served);
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(), HasSubstr("was written in resource.k8s.io/v1alpha2"));
}

TEST(Versions, StatusOfTheOtherModelIsReservedAndFreed) {
  TestServer api;
  api.post(claims("v1alpha2"), classic_claim("old"));
  Reply allocated =
      api.patch(claims("v1alpha2", "/old/status"), "merge",
                R"({"status":{"driverName":"d.example.com","allocation":{"shareable":true,
         "resourceHandles":[{"driverName":"d.example.com","data":"x"}]}}})");
  ASSERT_EQ(allocated.status, 200) << allocated.text;
  Reply reserved =
      api.patch(claims("v1", "/old/status"), "strategic",
                R"({"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"1"}]}})");
  ASSERT_EQ(reserved.status, 200) << reserved.text;
  Value classic = api.get(claims("v1alpha2", "/old")).body;
  EXPECT_EQ(classic["status"]["allocation"], allocated.body["status"]["allocation"]);
  EXPECT_EQ(classic["status"]["reservedFor"].size(), 1u);
}

TEST(Versions, WatchesShowEveryChangeInTheirVersion) {
  TestServer api;
  auto structured = api.watch(claims("v1", "?watch=1"));
  auto flat = api.watch(claims("v1beta1", "?watch=1"));
  api.post(claims("v1"), structured_claim("new"));
  api.post(claims("v1alpha2"), classic_claim("old"));
  for (auto& [stream, version] : {std::pair(structured, "v1"), std::pair(flat, "v1beta1")}) {
    auto events = stream->take();
    ASSERT_EQ(events.size(), 2u);
    for (const Value& event : events)
      EXPECT_EQ(event["object"]["apiVersion"].as_string(), cat("resource.k8s.io/", version));
  }
}

TEST(Versions, OwnersAreRecordedInTheVersionOfTheWriter) {
  TestServer api;
  Reply made = api.patch(
      cat(claims("v1beta1", "/c"), "?fieldManager=me"), "apply",
      R"({"apiVersion":"resource.k8s.io/v1beta1","kind":"ResourceClaim","metadata":{"name":"c"},
         "spec":{"devices":{"requests":[{"name":"a","deviceClassName":"gpu"}]}}})");
  ASSERT_EQ(made.status, 201) << made.text;
  const Value owner = made.body["metadata"]["managedFields"][0];
  EXPECT_EQ(owner["apiVersion"].as_string(), "resource.k8s.io/v1beta1");
  Reply labelled =
      api.patch(cat(claims("v1", "/c"), "?fieldManager=other"), "apply",
                R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c",
         "labels":{"a":"b"}}})");
  ASSERT_EQ(labelled.status, 200) << labelled.text;
  EXPECT_EQ(labelled.body["metadata"]["managedFields"].size(), 2u);
  Reply conflict = api.patch(
      cat(claims("v1alpha2", "/c"), "?fieldManager=third"), "apply",
      R"({"apiVersion":"resource.k8s.io/v1alpha2","kind":"ResourceClaim","metadata":{"name":"c",
         "labels":{"a":"x"}}})");
  EXPECT_EQ(conflict.status, 409) << conflict.text;
}

struct ReleaseCase {
  const char* release;
  std::vector<std::string> versions;
  const char* git_version;
};

class Releases : public testing::TestWithParam<ReleaseCase> {};

TEST_P(Releases, ServeTheirVersions) {
  TestServer api = emulating(GetParam().release);
  EXPECT_EQ(versions_of(api), GetParam().versions);
  EXPECT_EQ(api.get("/version").body["gitVersion"].as_string(), GetParam().git_version);
  EXPECT_EQ(api.get("/openapi/v3").status, 200);
  for (const std::string& version : GetParam().versions)
    EXPECT_EQ(api.get(cat("/openapi/v3/apis/resource.k8s.io/", version)).status, 200);
}

INSTANTIATE_TEST_SUITE_P(
    Emulated, Releases,
    testing::Values(ReleaseCase{"1.27", {"v1alpha2"}, "v1.27.0"},
                    ReleaseCase{"1.30", {"v1alpha2"}, "v1.30.0"},
                    ReleaseCase{"1.32", {"v1beta1", "v1alpha3"}, "v1.32.0"},
                    ReleaseCase{"1.34", {"v1", "v1beta2", "v1beta1", "v1alpha3"}, "v1.34.0"},
                    ReleaseCase{"1.36", {"v1", "v1beta2", "v1beta1", "v1alpha3"}, "v1.36.0"},
                    ReleaseCase{"1.37", {"v1", "v1beta2", "v1beta1", "v1alpha3"}, "v1.37.0"}));

TEST(Releases, HaveTheirKinds) {
  TestServer old = emulating("1.27");
  EXPECT_THAT(resources_of(old, "v1alpha2"), Not(Contains("resourceslices")));
  TestServer beta = emulating("1.32");
  EXPECT_THAT(resources_of(beta, "v1alpha3"),
              ElementsAre("deviceclasses", "resourceclaims", "resourceclaims/status",
                          "resourceclaimtemplates", "resourceslices"));
  TestServer stable = emulating("1.34");
  EXPECT_THAT(resources_of(stable, "v1"), Not(Contains("devicetaintrules")));
  EXPECT_THAT(resources_of(stable, "v1alpha3"), ElementsAre("devicetaintrules"));
}

TEST(Releases, HaveTheirFields) {
  TestServer api = emulating("1.32");
  Value claim = from_text(
      "{'apiVersion':'resource.k8s.io/v1beta1','kind':'ResourceClaim','metadata':{'name':'c'},"
      "'spec':{'devices':{'requests':[{'name':'a','deviceClassName':'gpu','tolerations':[]}]}}}");
  Reply made = api.post(claims("v1beta1"), claim);
  EXPECT_EQ(made.status, 201) << made.text;
  EXPECT_THAT(made.warnings(),
              Contains(HasSubstr("unknown field \\\"spec.devices.requests[0].tolerations\\\"")));
}

TEST(Flags, RuntimeConfigLeavesVersionsOut) {
  TestServer off =
      emulating("1.27", "DynamicResourceAllocation=false", "resource.k8s.io/v1alpha2=false");
  EXPECT_EQ(off.get("/apis/resource.k8s.io").status, 404);
  TestServer one = emulating("1.37", "", "api/beta=false,resource.k8s.io/v1beta1=true");
  EXPECT_THAT(versions_of(one), ElementsAre("v1", "v1beta1", "v1alpha3"));
  TestServer resource = emulating("1.37", "", "resource.k8s.io/v1/devicetaintrules=false");
  EXPECT_THAT(resources_of(resource, "v1"), Not(Contains("devicetaintrules")));
}

struct BadFlagsCase {
  const char* release;
  const char* gates;
  const char* config;
  const char* says;
};

class BadFlags : public testing::TestWithParam<BadFlagsCase> {};

TEST_P(BadFlags, AreToldWithWhatIsKnown) {
  Options options;
  options.release = GetParam().release;
  options.feature_gates = GetParam().gates;
  options.runtime_config = GetParam().config;
  auto resources = builtin_resources(options);
  ASSERT_FALSE(resources.ok());
  EXPECT_THAT(resources.error().message(), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Options, BadFlags,
    testing::Values(
        BadFlagsCase{"1.26", "", "", "--emulate-release: release \"1.26\" is not known; known are"},
        BadFlagsCase{"1.30", "Nope=true", "", "--feature-gates: unrecognized feature gate: Nope"},
        BadFlagsCase{"1.30", "", "resource.k8s.io/v1=true",
                     "--runtime-config: unknown api version \"resource.k8s.io/v1\"; known are"},
        BadFlagsCase{"1.37", "", "api/all=maybe", "invalid value \"maybe\" of api/all"}));

}  // namespace
}  // namespace dibs::server
