// What concerns a server as a whole: whom it turns away, and what it keeps.
#include "server/api_server.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::config_map;
using test::kConfigMaps;
using test::Reply;
using test::TestServer;

const std::string kOne = cat(kConfigMaps, "/a");

TEST(Senders, without_rights_are_refused) {
  TestServer api;
  net::Request request = test::make_request("GET", kConfigMaps);
  request.peer.common_name = "nobody";
  request.peer.organizations.clear();

  Reply refused = api.send(request);

  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in API "
            "group \"\" in the namespace "
            "\"default\"");
}

TEST(Senders, who_are_nobody_get_one_answer_of_an_http2_connection) {
  TestServer api;
  const auto ask = [&](std::string target, bool http2, std::string token) {
    net::Request request = test::make_request("GET", std::move(target));
    request.peer = {};
    request.peer.address = "192.0.2.1:5";
    request.peer.http2 = http2;
    if (!token.empty()) request.headers.add("Authorization", cat("Bearer ", token));
    const Reply reply = api.send(request);
    return cat(reply.status, ' ', reply.headers.get("Connection"));
  };
  EXPECT_EQ(ask("/readyz", true, ""), "200 close");
  EXPECT_EQ(ask(kConfigMaps, true, ""), "403 close");
  EXPECT_EQ(ask(kConfigMaps, true, "wrong"), "401 close");
  EXPECT_EQ(ask("/readyz", false, ""), "200 ");
  EXPECT_EQ(ask(kConfigMaps, false, "wrong"), "401 ");

  net::Request known = test::make_request("GET", kConfigMaps);
  known.peer.http2 = true;
  EXPECT_FALSE(api.send(known).headers.has("Connection"));
}

/// Of a client that can hang up.
class Caller final : public net::Exchange {
 public:
  struct State {
    int status = 0;
    std::function<void()> gone;
  };
  explicit Caller(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void respond(net::Response response) override { state_->status = response.status; }
  std::shared_ptr<net::BodyStream> stream(net::Response) override { return nullptr; }
  void upgrade(std::string, std::function<void(std::shared_ptr<net::WebSocket>)>) override {}
  void on_gone(std::function<void()> gone) override { state_->gone = std::move(gone); }

 private:
  std::shared_ptr<State> state_;
};

TEST(Senders, who_hang_up_while_they_wait_are_not_worked_for) {
  Options options;
  options.seats = 1;
  TestServer api(options);
  api.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
           test::from_text("{'metadata': {'name': 'jane'}, 'roleRef': {'apiGroup': "
                           "'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': "
                           "'cluster-admin'}, 'subjects': [{'kind': 'User', 'name': 'jane', "
                           "'apiGroup': 'rbac.authorization.k8s.io'}]}"));
  const auto make = [&](std::string_view name) {
    net::Request request = test::make_request("POST", kConfigMaps, json::write(config_map(name)));
    request.peer.address = "192.0.2.1:5";
    request.peer.common_name = "jane";
    request.peer.organizations.clear();
    auto state = std::make_shared<Caller::State>();
    api.server->handle(std::move(request), std::make_unique<Caller>(state));
    return state;
  };
  const auto first = make("a");
  // Levels lend each other what they do not use.
  for (int i = 0; i < 20; ++i) make(cat("more-", i));
  const auto second = make("b");
  const auto third = make("c");
  ASSERT_TRUE(first->gone && second->gone);
  first->gone();
  second->gone();
  api.sim.run_until_idle();

  // What had begun goes on.
  EXPECT_EQ(first->status, 201);
  EXPECT_EQ(second->status, 429);
  EXPECT_EQ(third->status, 201);
  EXPECT_EQ(api.get(cat(kConfigMaps, "/b")).status, 404);
}

TEST(Senders, are_turned_away_by_a_closed_server) {
  TestServer api;
  api.server->close();

  EXPECT_EQ(api.get(kConfigMaps).status, 503);
}

TEST(Restart, keeps_objects_and_versions) {
  TestServer api;
  Reply made = api.post(kConfigMaps, config_map("a"));
  const std::int64_t before = api.store->revision();

  api.restart();

  EXPECT_EQ(api.get(kOne).body, made.body);
  EXPECT_EQ(api.store->revision(), before) << "what is there is not written again";
}

}  // namespace
}  // namespace dibs::server
