// APIServices of a whole server: who is asked, what is said of it, what is passed on. The servers
// behind are a fake.
#include "server/aggregator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "json/parse.h"
#include "server/admission.h"
#include "server/aggregator_for_test.h"
#include "server/builtin_resources.h"
#include "server/objects.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::condition_of;
using test::from_text;
using test::Reply;
using test::TestServer;
using test::to_text;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Aggregation, of_what_is_served_here_is_available) {
  const Value apps = api.get(cat(kServices, "/v1.apps")).body;

  EXPECT_EQ(apps["spec"]["groupPriorityMinimum"].as_int(), 17800);
  EXPECT_EQ(apps["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"].as_string(),
            "onstart");
  EXPECT_EQ(condition_of(apps, "Available")["reason"].as_string(), "Local");
  EXPECT_EQ(api.get(cat(kServices, "/v1.")).status, 200);
}

TEST_F(Aggregation, says_step_by_step_what_is_missing) {
  add_api_service();
  api.sim.run_for(std::chrono::seconds(2));
  EXPECT_EQ(told(), "False ServiceNotFound: service/wardle in \"default\" is not present");

  add_service();
  api.sim.run_for(std::chrono::seconds(2));
  EXPECT_EQ(told(),
            "False EndpointsNotFound: cannot find endpointslices for service/wardle in "
            "\"default\"");

  fake->down = true;
  add_slice();
  api.sim.run_for(std::chrono::seconds(2));
  EXPECT_EQ(told(),
            "False FailedDiscoveryCheck: failing or missing response from "
            "https://10.1.2.3:8443/apis/wardle.example.com/v1: dial tcp 10.1.2.3:8443: connect: "
            "connection refused");

  fake->down = false;
  api.sim.run_for(std::chrono::seconds(60));
  EXPECT_EQ(told(), "True Passed: all checks passed");
}

TEST_F(Aggregation, wants_endpoints_that_are_ready) {
  add_service();
  add_slice(false);
  add_api_service();
  api.sim.run_for(std::chrono::seconds(2));

  EXPECT_EQ(told(),
            "False MissingEndpoints: endpointslices for service/wardle in \"default\" have no "
            "addresses with port name \"https\"");
}

TEST_F(Aggregation, notices_a_server_that_has_gone) {
  add_all();
  fake->status = 500;
  api.sim.run_for(std::chrono::seconds(40));

  EXPECT_THAT(told(), HasSubstr("bad status from https://10.1.2.3:8443/apis/wardle.example.com/v1: "
                                "500"));
  Reply refused = api.get("/apis/wardle.example.com/v1/namespaces/default/flunders");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.text, "service unavailable\n");
}

TEST_F(Aggregation, is_available_while_one_of_its_endpoints_answers) {
  fake->broken = "10.1.2.3";
  add_service();
  add(kSlices, from_text(slice_of({"10.1.2.3", "10.1.2.4", "10.1.2.5"})));
  add_api_service();

  for (int i = 0; i < 20; ++i) {
    api.sim.run_for(std::chrono::seconds(31));
    ASSERT_EQ(told(), "True Passed: all checks passed");
  }
  fake->down = true;
  fake->places.clear();
  api.sim.run_for(std::chrono::seconds(31));

  EXPECT_THAT(told(), HasSubstr("False FailedDiscoveryCheck: failing or missing response"));
  std::set<std::string> hosts;
  for (const ExtensionPlace& place : fake->places) hosts.insert(place.host);
  EXPECT_EQ(hosts.size(), 3U);
}

TEST_F(Aggregation, goes_on_when_its_priority_changes) {
  add_all();
  fake->asked.clear();
  net::Request patch = test::make_request("PATCH", kWardle, R"({"spec":{"versionPriority":400}})");
  patch.headers.set("Content-Type", "application/merge-patch+json");
  ASSERT_EQ(api.send(patch).status, 200);
  api.sim.run_for(std::chrono::milliseconds(10));

  EXPECT_EQ(api.get("/apis/wardle.example.com/v1/namespaces/default/flunders").status, 200);
  EXPECT_TRUE(fake->asked.empty()) << "it is the same server";
}

TEST_F(Aggregation, is_part_of_discovery) {
  add_all();

  const Value groups = api.get("/apis").body["groups"];
  std::vector<std::string> names;
  for (const Value& group : groups.items()) names.push_back(group["name"].str());
  EXPECT_EQ(names.back(), "wardle.example.com");
  EXPECT_EQ(names.front(), "apiregistration.k8s.io");
  EXPECT_EQ(to_text(api.get("/apis/wardle.example.com").body["preferredVersion"]),
            "{'groupVersion':'wardle.example.com/v1','version':'v1'}");

  const std::string accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  Value items = api.get("/apis", accept).body["items"];
  const Value last = items[items.size() - 1];
  EXPECT_EQ(last["metadata"]["name"].as_string(), "wardle.example.com");
  EXPECT_EQ(to_text(last["versions"]),
            "[{'version':'v1','resources':[{'resource':'flunders','responseKind':{'group':"
            "'wardle.example.com','version':'v1','kind':'Flunder'},'scope':'Namespaced',"
            "'singularResource':'flunder','verbs':['get','list'],'shortNames':['fl'],"
            "'subresources':[{'subresource':'status','responseKind':{'group':'wardle.example.com',"
            "'version':'v1','kind':'Flunder'},'verbs':['get']}]}],'freshness':'Current'}]");

  fake->down = true;
  api.sim.run_for(std::chrono::seconds(40));
  items = api.get("/apis", accept).body["items"];
  EXPECT_EQ(items[items.size() - 1]["versions"][0]["freshness"].as_string(), "Stale");
  EXPECT_EQ(items[items.size() - 1]["versions"][0]["resources"].size(), 1U);
}

TEST_F(Aggregation, is_part_of_openapi) {
  add_all();

  EXPECT_EQ(
      to_text(
          json::parse(api.get("/openapi/v3").text).value()["paths"]["apis/wardle.example.com/v1"]),
      "{'serverRelativeURL':'/x?hash=1'}");
  const Value v2 = json::parse(api.get("/openapi/v2").text).value();
  EXPECT_TRUE(v2["paths"].contains("/apis/wardle.example.com/v1/flunders"));
  EXPECT_TRUE(v2["definitions"].contains("example.Flunder"));
  api.get("/openapi/v3/apis/wardle.example.com/v1");
  ASSERT_EQ(fake->passed.size(), 1U);
  EXPECT_EQ(fake->passed[0].target, "/openapi/v3/apis/wardle.example.com/v1");
}

TEST(Extensions, have_other_documents_only_where_those_change) {
  const auto fake = std::make_shared<FakeExtensions>();
  TestServer api(with(std::make_shared<FakeExtensions>()));
  ResourceTable resources;
  AdmissionChain admission;
  Objects objects(api.sim.runtime(), *api.store, admission);
  Options options;
  resources.replace(make_resource_set(builtin_resources(options).value(), {}, 1));
  for (const auto& [path, object] : all_objects()) {
    ASSERT_EQ(api.post(path, from_text(object)).status, 201);
  }
  Aggregator aggregator(api.sim.runtime(), objects, resources, fake);
  ASSERT_TRUE(aggregator.load().ok());
  aggregator.start();
  api.sim.run_for(std::chrono::seconds(3));
  const ExtensionsPtr known = aggregator.current();
  ASSERT_TRUE(known->all.at(0)->available);
  ASSERT_GT(known->documents, 0U);

  fake->down = true;
  api.sim.run_for(std::chrono::seconds(40));

  const ExtensionsPtr away = aggregator.current();
  EXPECT_FALSE(away->all.at(0)->available);
  EXPECT_GT(away->generation, known->generation);
  EXPECT_EQ(away->documents, known->documents);
  aggregator.stop();
  api.sim.run_until_idle();
}

TEST_F(Aggregation, ends_with_its_api_service) {
  add_all();
  api.remove(kWardle);
  api.sim.run_for(std::chrono::seconds(2));

  EXPECT_EQ(api.get("/apis/wardle.example.com/v1/namespaces/default/flunders").status, 404);
  EXPECT_EQ(api.get("/apis/wardle.example.com").status, 404);
}

TEST_F(Aggregation, has_api_services_of_definitions) {
  api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
           from_text("{'metadata':{'name':'things.example.com'},'spec':{'group':'example.com',"
                     "'scope':'Cluster','names':{'plural':'things','kind':'Thing'},'versions':[{"
                     "'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{"
                     "'type':'object'}}}]}}"));
  api.sim.run_for(std::chrono::seconds(1));
  const Value made = api.get(cat(kServices, "/v1.example.com")).body;
  EXPECT_EQ(made["spec"]["groupPriorityMinimum"].as_int(), 1000);
  EXPECT_EQ(made["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"].as_string(),
            "true");

  api.remove("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com");
  api.sim.run_for(std::chrono::seconds(2));

  EXPECT_EQ(api.get(cat(kServices, "/v1.example.com")).status, 404);
}

TEST_F(Aggregation, judges_api_services) {
  Reply refused = api.post(
      kServices, from_text("{'metadata':{'name':'other'},'spec':{'group':'g.example.com',"
                           "'version':'v1','groupPriorityMinimum':0,'versionPriority':2000,"
                           "'insecureSkipTLSVerify':true}}"));

  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(),
              HasSubstr("metadata.name: Invalid value: \"other\": must be "
                        "`spec.version+\".\"+spec.group`: \"v1.g.example.com\""));
  EXPECT_THAT(refused.message(), HasSubstr("must be positive and less than 20000"));
  EXPECT_THAT(refused.message(), HasSubstr("must be positive and less than 1000"));
  EXPECT_THAT(refused.message(), HasSubstr("local APIServices may not have insecureSkipTLSVerify"));
}

/// Answers when it ends, as one does whose connections are broken off.
class LateExtensions : public FakeExtensions {
 public:
  ~LateExtensions() override {
    for (const auto& opened : waiting) opened(Error::unavailable("the client is closed"));
  }
  void open(const ExtensionPlace&, const net::Request&, net::Exchange&,
            std::function<void(Result<net::StreamAnswer>)> opened) override {
    waiting.push_back(std::move(opened));
  }
  std::vector<std::function<void(Result<net::StreamAnswer>)>> waiting;
};

TEST(AggregationEnd, answers_what_is_under_way_while_all_else_is_there) {
  runtime::SimRuntime sim;
  const auto store = store::make_memory_store();
  Options options;
  options.extensions = std::make_shared<LateExtensions>();
  auto server = ApiServer::open(sim.runtime(), *store, std::move(options)).value();
  const auto send = [&](net::Request request) {
    auto reply = std::make_shared<Reply>();
    server->handle(calls::Request{std::move(request)}, test::answer_into(reply));
    sim.run_for(std::chrono::seconds(3));
    return reply;
  };
  for (const auto& [path, object] : all_objects()) {
    const auto made = send(test::make_request("POST", path, json::write(from_text(object))));
    ASSERT_EQ(made->status, 201) << made->text;
  }
  net::Request request = test::make_request("GET", "/apis/wardle.example.com/v1/flunders");
  request.peer.address = "192.0.2.9:4711";
  const auto reply = send(request);
  ASSERT_EQ(reply->status, 0);

  server->close();
  sim.run_until_idle();
  server.reset();

  EXPECT_EQ(reply->status, 503);
}

TEST(Versions, are_ordered_as_kubernetes_orders_them) {
  std::vector<std::string> all = {"v1beta1", "foo", "v2",  "v1alpha3",
                                  "v10",     "v1",  "bar", "v2beta1"};
  std::sort(all.begin(), all.end(), is_newer_version);

  EXPECT_THAT(all, ElementsAre("v10", "v2", "v1", "v2beta1", "v1beta1", "v1alpha3", "bar", "foo"));
}

}  // namespace
}  // namespace dibs::server
