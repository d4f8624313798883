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
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kServices = "/apis/apiregistration.k8s.io/v1/apiservices";
constexpr const char* kWardle = "/apis/apiregistration.k8s.io/v1/apiservices/v1.wardle.example.com";

/// A body that is there at once.
class WholeBody : public net::BodySource {
 public:
  explicit WholeBody(std::string text) : text_(std::move(text)) {}
  void start(std::function<void(std::string)> data, std::function<void(bool)> ended) override {
    data(text_);
    ended(true);
  }
  void hold(bool) override {}
  void expire(Duration) override {}

 private:
  std::string text_;
};

class Upgraded : public net::ByteStream {
 public:
  void start(std::function<void(std::string_view)>, std::function<void()>) override {}
  void write(std::string) override {}
  std::size_t queued() const override { return 0; }
  void on_drained(std::function<void()>) override {}
  void hold(bool) override {}
  void expire(Duration) override {}
  void close() override { closed = true; }

  bool closed = false;
};

class FakeExtensions : public ExtensionTransport {
 public:
  Result<net::Response> send(const ExtensionPlace& place, const net::Request& request,
                             Duration) override {
    places.push_back(place);
    asked.push_back(request);
    if (down || place.host == broken)
      return Error::unavailable("dial tcp 10.1.2.3:8443: connect: connection refused");
    net::Response out;
    out.status = status;
    if (request.target == "/apis/wardle.example.com/v1") {
      out.body = json::write(from_text(
          "{'kind':'APIResourceList','apiVersion':'v1','groupVersion':'wardle.example.com/v1',"
          "'resources':[{'name':'flunders','singularName':'flunder','namespaced':true,"
          "'kind':'Flunder','verbs':['get','list'],'shortNames':['fl']},"
          "{'name':'flunders/status','singularName':'','namespaced':true,'kind':'Flunder',"
          "'verbs':['get']}]}"));
    } else if (request.target == "/openapi/v3") {
      out.body = R"({"paths":{"apis/wardle.example.com/v1":{"serverRelativeURL":"/x?hash=1"}}})";
    } else if (request.target == "/openapi/v2") {
      out.body = R"({"paths":{"/apis/wardle.example.com/v1/flunders":{"get":{}},"/version":{}},)"
                 R"("definitions":{"example.Flunder":{"type":"object"}}})";
    } else {
      out.status = 404;
    }
    return out;
  }
  void open(const ExtensionPlace& place, const net::Request& request, net::Exchange&,
            std::function<void(Result<net::StreamAnswer>)> opened) override {
    places.push_back(place);
    passed.push_back(request);
    deepest = std::max(deepest, ++depth);
    if (holds) {
      held.push_back(std::move(opened));
    } else if (down) {
      opened(Error::unavailable("dial tcp 10.1.2.3:8443: i/o timeout"));
    } else {
      opened(answer());
    }
    --depth;
  }
  net::StreamAnswer answer() {
    net::StreamAnswer answer;
    answer.head.status = 200;
    answer.head.headers.add("Content-Type", "application/json");
    if (answered) answer.head = *answered;
    answer.body = std::make_shared<WholeBody>(R"({"kind":"FlunderList"})");
    if (answer.head.status == 101) answer.upgraded = upgraded;
    return answer;
  }
  void set_certificate(std::string, std::string) override {}
  void close() override {}

  bool down = false;
  bool holds = false;
  std::string broken;  // the address of one that does not answer
  int status = 200;
  std::optional<net::Response> answered;
  std::shared_ptr<Upgraded> upgraded = std::make_shared<Upgraded>();
  int depth = 0;  // of opening within opening
  int deepest = 0;
  std::vector<std::function<void(Result<net::StreamAnswer>)>> held;
  std::vector<ExtensionPlace> places;
  std::vector<net::Request> asked;
  std::vector<net::Request> passed;
};

Options with(std::shared_ptr<FakeExtensions> fake) {
  Options options;
  options.extensions = std::move(fake);
  return options;
}

constexpr const char* kApiService =
    "{'metadata':{'name':'v1.wardle.example.com'},'spec':{'group':'wardle.example.com',"
    "'version':'v1','groupPriorityMinimum':2000,'versionPriority':200,"
    "'insecureSkipTLSVerify':true,'service':{'namespace':'default','name':'wardle'}}}";
constexpr const char* kService =
    "{'metadata':{'name':'wardle'},'spec':{'ports':[{'port':443,'targetPort':8443,'name':'https'}]}"
    "}";

/// A ready endpoint at each address.
std::string slice_of(std::initializer_list<const char*> addresses, bool ready = true) {
  std::string endpoints;
  for (const char* address : addresses) {
    append(endpoints, endpoints.empty() ? "" : ",", "{'addresses':['", address,
           "'],'conditions':{'ready':", ready ? "true" : "false", "}}");
  }
  return cat("{'metadata':{'name':'wardle','labels':{'kubernetes.io/service-name':'wardle'}},",
             "'addressType':'IPv4','ports':[{'name':'https','port':8443}],'endpoints':[", endpoints,
             "]}");
}

constexpr const char* kWardleServices = "/api/v1/namespaces/default/services";
constexpr const char* kSlices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";

std::vector<std::pair<const char*, std::string>> all_objects() {
  return {{kWardleServices, kService}, {kSlices, slice_of({"10.1.2.3"})}, {kServices, kApiService}};
}

class Aggregation : public testing::Test {
 protected:
  Aggregation() : fake(std::make_shared<FakeExtensions>()), api(with(fake)) {}

  void add(const char* path, const Value& object) {
    Reply made = api.post(path, object);
    ASSERT_EQ(made.status, 201) << made.text;
  }
  void add_api_service() { add(kServices, from_text(kApiService)); }
  void add_service() { add(kWardleServices, from_text(kService)); }
  void add_slice(bool ready = true) { add(kSlices, from_text(slice_of({"10.1.2.3"}, ready))); }
  void add_all() {
    add_service();
    add_slice();
    add_api_service();
    api.sim.run_for(std::chrono::seconds(3));
  }
  Value available() { return condition_of(api.get(kWardle).body, "Available"); }
  std::string told() {
    const Value condition = available();
    return cat(condition["status"].as_string(), " ", condition["reason"].as_string(), ": ",
               condition["message"].as_string());
  }

  std::shared_ptr<FakeExtensions> fake;
  TestServer api;
};

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

TEST_F(Aggregation, refuses_what_nobody_serves_without_a_seat) {
  add_all();
  fake->status = 500;
  api.sim.run_for(std::chrono::seconds(40));
  const auto dispatched = [&] {
    std::vector<std::string> lines;
    const std::string metrics = api.server->metrics().expose();
    for (std::string_view line : split(metrics, '\n')) {
      if (line.starts_with("apiserver_flowcontrol_dispatched_requests_total{"))
        lines.emplace_back(line);
    }
    return lines;
  };
  const auto before = dispatched();
  net::Request request = test::make_request("GET", "/apis/wardle.example.com/v1/flunders");
  request.peer.address = "192.0.2.9:4711";

  EXPECT_EQ(api.send(request).status, 503);

  EXPECT_EQ(dispatched(), before);
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

TEST_F(Aggregation, passes_requests_on_after_a_restart_before_it_has_asked) {
  add_all();
  fake->asked.clear();
  api.server->close();
  api.sim.run_until_idle();
  api.server.reset();
  api.server = ApiServer::open(api.sim.runtime(), *api.store, api.options).value();
  ASSERT_TRUE(fake->asked.empty());

  const auto reply = std::make_shared<Reply>();
  api.server->handle(
      calls::Request{test::make_request("GET", "/apis/wardle.example.com/v1/flunders")},
      test::answer_into(reply));
  const auto documents = std::make_shared<Reply>();
  net::Request discovery = test::make_request("GET", "/apis");
  discovery.headers.add("Accept",
                        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  api.server->handle(calls::Request{std::move(discovery)}, test::answer_into(documents));

  EXPECT_TRUE(fake->asked.empty());
  EXPECT_EQ(reply->status, 200);
  const auto items = documents->body["items"].items();
  const auto group = std::find_if(items.begin(), items.end(), [](const Value& item) {
    return item["metadata"]["name"].as_string() == "wardle.example.com";
  });
  ASSERT_NE(group, items.end());
  EXPECT_EQ((*group)["versions"][0]["freshness"].as_string(), "Stale")
      << "nobody knows what it has";
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

TEST_F(Aggregation, passes_requests_on_in_the_name_of_their_sender) {
  add_all();
  net::Request request = test::make_request(
      "POST", "/apis/wardle.example.com/v1/namespaces/default/flunders?dryRun=All", "{}");
  request.headers.add("X-Remote-User", "system:admin");
  request.headers.add("x-remote-extra-scopes", "all");
  request.headers.add("Impersonate-User", "jane");
  request.headers.add("Impersonate-Group", "system:masters");
  request.headers.add("Impersonate-Extra-example.com%2fteam", "blue");

  Reply reply = api.send(request);

  EXPECT_EQ(reply.status, 200) << reply.text;
  ASSERT_EQ(fake->passed.size(), 1U);
  const net::Request& passed = fake->passed[0];
  EXPECT_EQ(passed.target, "/apis/wardle.example.com/v1/namespaces/default/flunders?dryRun=All");
  EXPECT_EQ(passed.body, "{}");
  EXPECT_THAT(passed.headers.all("X-Remote-User"), ElementsAre("jane"));
  EXPECT_THAT(passed.headers.all("X-Remote-Group"),
              ElementsAre("system:masters", "system:authenticated"));
  EXPECT_EQ(passed.headers.get("X-Remote-Extra-example.com%2Fteam"), "blue");
  EXPECT_FALSE(passed.headers.has("X-Remote-Extra-Scopes"));
  EXPECT_FALSE(passed.headers.has("Impersonate-User"));
  EXPECT_EQ(fake->places.back().host, "10.1.2.3");
  EXPECT_EQ(fake->places.back().port, 8443);
  EXPECT_EQ(fake->places.back().name, "wardle.default.svc");
}

TEST(AggregationAudit, tells_how_a_request_that_was_passed_on_ended) {
  std::string folder = "/tmp/dibs-aggregated-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto fake = std::make_shared<FakeExtensions>();
  Options options = with(fake);
  options.audit_policy =
      "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata, resources: [{group: "
      "wardle.example.com}]}]\n";
  options.audit_log.path = cat(folder, "/audit.log");
  std::string id;
  std::string passed;
  std::string watched;
  {
    TestServer api(options);
    for (const auto& [path, object] : all_objects()) {
      ASSERT_EQ(api.post(path, from_text(object)).status, 201);
    }
    api.sim.run_for(std::chrono::seconds(3));
    id = api.get("/apis/wardle.example.com/v1/namespaces/default/flunders").headers.get("Audit-Id");
    passed = fake->passed[0].headers.get("Audit-Id");
    watched = api.get("/apis/wardle.example.com/v1/flunders?watch=true").headers.get("Audit-Id");
    fake->down = true;
    api.get("/apis/wardle.example.com/v1/namespaces/default/flunders/a");
  }

  EXPECT_FALSE(id.empty());
  EXPECT_EQ(passed, id);
  EXPECT_FALSE(watched.empty());
  std::ifstream file(options.audit_log.path);
  std::vector<std::string> told;
  for (std::string line; std::getline(file, line);) {
    const Value event = json::parse(line).value();
    told.push_back(cat(event["stage"].as_string(), " ", event["verb"].as_string(), " ",
                       event["responseStatus"]["code"].as_int()));
  }
  EXPECT_THAT(told, ElementsAre("RequestReceived list 0", "ResponseComplete list 200",
                                "RequestReceived watch 0", "ResponseStarted watch 200",
                                "ResponseComplete watch 200", "RequestReceived get 0",
                                "ResponseComplete get 503"));
  std::filesystem::remove_all(folder);
}

TEST_F(Aggregation, passes_nothing_on_of_whom_it_does_not_allow) {
  add_all();
  net::Request request =
      test::make_request("GET", "/apis/wardle.example.com/v1/namespaces/default/flunders");
  request.headers.add("Impersonate-User", "nobody");

  EXPECT_EQ(api.send(request).status, 403);
  EXPECT_TRUE(fake->passed.empty());
}

TEST_F(Aggregation, tells_of_a_server_that_cannot_be_reached) {
  add_all();
  fake->down = true;

  Reply refused = api.get("/apis/wardle.example.com/v1/namespaces/default/flunders");

  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.text, "error trying to reach service: dial tcp 10.1.2.3:8443: i/o timeout\n");
}

TEST_F(Aggregation, lets_no_server_lead_a_client_elsewhere) {
  add_all();
  const std::string path = "/apis/wardle.example.com/v1/namespaces/default/flunders";
  fake->answered = net::Response();
  fake->answered->status = 302;
  EXPECT_EQ(api.get(path).status, 302) << "without a place to go to it leads nowhere";

  fake->answered->headers.add("Location", "https://elsewhere.example.com/");
  const Reply refused = api.get(path);

  EXPECT_EQ(refused.status, 502);
  EXPECT_EQ(refused.text, "the backend attempted to redirect this request, which is not permitted");
  EXPECT_FALSE(refused.headers.has("Location"));
  net::Request upgrade = test::make_request("GET", path);
  upgrade.headers.add("Connection", "Upgrade");
  upgrade.headers.add("Upgrade", "SPDY/3.1");
  EXPECT_EQ(api.send(upgrade).text, "invalid upgrade response: status code 302\n");
}

TEST_F(Aggregation, changes_no_protocol_that_the_client_did_not_ask_to) {
  add_all();
  fake->answered = net::Response();
  fake->answered->status = 101;
  fake->answered->headers.add("Upgrade", "raw");

  const Reply refused = api.get("/apis/wardle.example.com/v1/namespaces/default/flunders");

  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.text, "backend tried to switch protocol \"raw\" when \"\" was requested\n");
  EXPECT_TRUE(fake->upgraded->closed);
}

TEST_F(Aggregation, does_not_pass_on_within_the_end_of_another) {
  add_all();
  api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
           from_text("{'metadata': {'name': 'jane'}, 'roleRef': {'apiGroup': "
                     "'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': "
                     "'cluster-admin'}, 'subjects': [{'kind': 'User', 'name': 'jane', "
                     "'apiGroup': 'rbac.authorization.k8s.io'}]}"));
  fake->holds = true;
  for (int i = 0; i < 1000; ++i) {
    net::Request request =
        test::make_request("GET", "/apis/wardle.example.com/v1/namespaces/default/flunders");
    request.peer.address = "192.0.2.1:5";
    request.peer.common_name = "jane";
    request.peer.organizations.clear();
    api.send(request);
  }
  const std::size_t begun = fake->held.size();
  ASSERT_LT(begun, 1000U);
  fake->holds = false;
  fake->down = true;
  fake->held.front()(fake->answer());
  api.sim.run_until_idle();

  EXPECT_GT(fake->passed.size(), begun + 10);
  EXPECT_EQ(fake->deepest, 1);
  for (std::size_t i = 1; i < begun; ++i) fake->held[i](fake->answer());
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
