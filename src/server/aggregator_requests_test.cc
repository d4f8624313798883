// Requests of a whole server for what another one serves: in whose name they are passed on, and
// what may come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "json/parse.h"
#include "server/aggregator_for_test.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::Reply;
using test::TestServer;
using testing::ElementsAre;

class PassingOn : public Aggregation {};

TEST_F(PassingOn, refuses_what_nobody_serves_without_a_seat) {
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

TEST_F(PassingOn, passes_requests_on_after_a_restart_before_it_has_asked) {
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

TEST_F(PassingOn, passes_requests_on_in_the_name_of_their_sender) {
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

TEST_F(PassingOn, passes_nothing_on_of_whom_it_does_not_allow) {
  add_all();
  net::Request request =
      test::make_request("GET", "/apis/wardle.example.com/v1/namespaces/default/flunders");
  request.headers.add("Impersonate-User", "nobody");

  EXPECT_EQ(api.send(request).status, 403);
  EXPECT_TRUE(fake->passed.empty());
}

TEST_F(PassingOn, tells_of_a_server_that_cannot_be_reached) {
  add_all();
  fake->down = true;

  Reply refused = api.get("/apis/wardle.example.com/v1/namespaces/default/flunders");

  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.text, "error trying to reach service: dial tcp 10.1.2.3:8443: i/o timeout\n");
}

TEST_F(PassingOn, lets_no_server_lead_a_client_elsewhere) {
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

TEST_F(PassingOn, changes_no_protocol_that_the_client_did_not_ask_to) {
  add_all();
  fake->answered = net::Response();
  fake->answered->status = 101;
  fake->answered->headers.add("Upgrade", "raw");

  const Reply refused = api.get("/apis/wardle.example.com/v1/namespaces/default/flunders");

  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.text, "backend tried to switch protocol \"raw\" when \"\" was requested\n");
  EXPECT_TRUE(fake->upgraded->closed);
}

TEST_F(PassingOn, does_not_pass_on_within_the_end_of_another) {
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

}  // namespace
}  // namespace dibs::server
