#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/release.h"
#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "json/parse.h"
#include "runtime/sim_runtime.h"

namespace dibs::client {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

const Gvr kPods{"", "v1", "pods"};
const Gvr kDeployments{"apps", "v1", "deployments"};

struct ClientTest : testing::Test {
  runtime::SimRuntime sim;
  FakeApi api;
  std::unique_ptr<Transport> transport = make_in_process_transport(api.handler(), sim.runtime());
  Client client{*transport};
};

TEST(Paths, name_objects) {
  EXPECT_EQ(path_of(kPods, "a"), "/api/v1/namespaces/a/pods");
  EXPECT_EQ(path_of(kPods, ""), "/api/v1/pods");
  EXPECT_EQ(path_of(kDeployments, "a", "b", "scale"),
            "/apis/apps/v1/namespaces/a/deployments/b/scale");
  EXPECT_EQ(path_of({"rbac.authorization.k8s.io", "v1", "clusterroles"}, "", "system:a/b"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa%2Fb");
}

/// Says one thing.
class Voice final : public Transport {
 public:
  explicit Voice(std::string text) : text_(std::move(text)) {}
  Result<Response> send(Request) override {
    Response out;
    out.status = 200;
    out.body = text_;
    return out;
  }
  void send_async(Request request, std::function<void(Result<Response>)> done) override {
    done(send(std::move(request)));
  }
  std::unique_ptr<TransportStream> open_stream(Request, StreamHandlers) override { return {}; }

 private:
  std::string text_;
};

TEST(ServerRelease, is_what_the_server_says) {
  const auto of = [](const char* text) {
    Voice voice(text);
    Client client(voice);
    return server_release(client).value();
  };
  EXPECT_EQ(of(R"({"major":"1","minor":"27"})"), 27);
  EXPECT_EQ(of(R"({"major":"1","minor":"30+"})"), 30);
  EXPECT_EQ(of("{}"), kNewestRelease);
}

TEST(Keys, join_and_split) {
  EXPECT_EQ(key_of("", "n"), "n");
  EXPECT_EQ(key_of("a", "n"), "a/n");
  EXPECT_EQ(split_key("a/n"), std::make_pair(std::string("a"), std::string("n")));
  EXPECT_EQ(split_key("n"), std::make_pair(std::string(), std::string("n")));
}

TEST_F(ClientTest, creates_reads_changes_and_removes) {
  const auto created = client.create(kPods, "a", fake_pod("a", "p"), {.field_manager = "me"});
  ASSERT_TRUE(created.ok()) << created.error().message();
  auto object = client.get(kPods, "a", "p");
  ASSERT_TRUE(object.ok());
  object->mut("spec").set("nodeName", "n1");
  ASSERT_TRUE(client.update(kPods, "a", *object).ok());
  EXPECT_EQ(client.update(kPods, "a", *object).error().code(), Code::conflict);
  ASSERT_TRUE(client
                  .patch(kPods, "a", "p", PatchType::merge,
                         json::Value::object(
                             {{"metadata", json::Value::object(
                                               {{"labels", json::Value::object({{"x", "y"}})}})}}))
                  .ok());
  const auto now = api.get(fake_pod_path("a", "p"));
  EXPECT_EQ((*now)["spec"]["nodeName"].as_string(), "n1");
  EXPECT_EQ((*now)["metadata"]["labels"]["x"].as_string(), "y");
  ASSERT_TRUE(client.update_status(kPods, "a", *now).ok());
  ASSERT_TRUE(client.remove(kPods, "a", "p", {.propagation = "Background"}).ok());
  const auto missing = client.get(kPods, "a", "p");
  EXPECT_EQ(missing.error().code(), Code::not_found);
  EXPECT_EQ(missing.error().message(), "\"p\" not found");
  EXPECT_THAT(api.requests(), Contains("POST /api/v1/namespaces/a/pods?fieldManager=me"));
  EXPECT_THAT(api.requests(), Contains("PUT /api/v1/namespaces/a/pods/p/status"));
}

TEST_F(ClientTest, lists_page_by_page) {
  for (int i = 0; i < 25; ++i) {
    const std::string name = cat("p", 100 + i);
    api.put(fake_pod_path("a", name), fake_pod("a", name));
  }
  const auto list = client.list(kPods, "a", {.label_selector = "x in (a,b)", .limit = 10});
  ASSERT_TRUE(list.ok()) << list.error().message();
  EXPECT_EQ(list->items.size(), 25U);
  EXPECT_EQ(list->items[0]["kind"].as_string(), "Thing");
  EXPECT_EQ(list->items[0]["apiVersion"].as_string(), "v1");
  EXPECT_EQ(api.requests().size(), 3U);
  EXPECT_EQ(api.requests()[0],
            "GET /api/v1/namespaces/a/pods?labelSelector=x%20in%20%28a%2Cb%29&limit=10");
  EXPECT_THAT(api.requests()[1], HasSubstr("&continue="));
}

TEST_F(ClientTest, starts_over_when_a_page_expires) {
  for (int i = 0; i < 25; ++i) {
    const std::string name = cat("p", 100 + i);
    api.put(fake_pod_path("a", name), fake_pod("a", name));
  }
  api.fail("continue=", 410, "Expired");
  const auto list = client.list(kPods, "a", {.limit = 10});
  ASSERT_TRUE(list.ok()) << list.error().message();
  EXPECT_EQ(list->items.size(), 25U);
}

TEST(Status, becomes_an_error) {
  net::Response response;
  response.status = 422;
  response.body =
      R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"bad","reason":"Invalid",
    "details":{"name":"n","group":"g","kind":"k","uid":"u","retryAfterSeconds":3,
    "causes":[{"reason":"FieldValueInvalid","message":"m","field":"f"}]},"code":422})";
  const auto answer = read_answer(response);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code(), Code::invalid);
  EXPECT_EQ(answer.error().message(), "bad");
  ASSERT_NE(answer.error().details(), nullptr);
  EXPECT_EQ(answer.error().details()->name, "n");
  EXPECT_EQ(answer.error().details()->retry_after_seconds, 3);
  EXPECT_EQ(answer.error().details()->causes[0].field, "f");
}

TEST(Status, is_guessed_from_other_answers) {
  const std::tuple<int, std::string, Code, std::string> cases[] = {
      {403, "forbidden!\n", Code::forbidden, "forbidden!"},
      {503, "", Code::unavailable, "the server answered 503 Service Unavailable"},
      {418, "", Code::bad_request, "the server answered 418 "},
      {410, R"({"kind":"Status","reason":"Expired","message":"x"})", Code::expired, "x"},
  };
  for (const auto& [status, body, code, message] : cases) {
    const auto answer = read_answer(net::Response{status, {}, body});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code(), code) << status;
    EXPECT_EQ(answer.error().message(), message);
  }
  EXPECT_FALSE(read_answer(net::Response{200, {}, "not json"}).ok());
}

struct Seen {
  std::vector<std::string> events;
  std::optional<Result<>> end;
  WatchHandlers handlers() {
    return {.event =
                [this](WatchEvent event) {
                  events.push_back(cat(event.type, ' ', key_of(event.object)));
                },
            .ended = [this](Result<> outcome) { end = std::move(outcome); }};
  }
};

TEST_F(ClientTest, watches) {
  Seen seen;
  auto watch = client.watch(kPods, "", {.resource_version = "100"}, seen.handlers());
  sim.run_until_idle();
  api.put(fake_pod_path("a", "p"), fake_pod("a", "p"));
  api.put(fake_pod_path("a", "p"), fake_pod("a", "p"));
  api.put("/apis/apps/v1/namespaces/a/deployments/d", fake_pod("a", "d"));
  api.remove(fake_pod_path("a", "p"));
  api.end_watches(true);
  sim.run_until_idle();
  EXPECT_THAT(seen.events, ElementsAre("ADDED a/p", "MODIFIED a/p", "DELETED a/p"));
  ASSERT_TRUE(seen.end.has_value());
  EXPECT_TRUE(seen.end->ok());
  EXPECT_EQ(api.requests()[0],
            "GET /api/v1/pods?watch=true&resourceVersion=100&allowWatchBookmarks=true");
}

TEST_F(ClientTest, reports_how_a_watch_fails) {
  Seen expired;
  api.compact();
  auto one = client.watch(kPods, "", {.resource_version = "100"}, expired.handlers());
  Seen refused;
  api.fail("labelSelector", 403, "Forbidden");
  auto two = client.watch(kPods, "", {.label_selector = "a"}, refused.handlers());
  Seen broken;
  auto three = client.watch(kPods, "", {.resource_version = "200"}, broken.handlers());
  sim.run_until_idle();
  api.end_watches(false);
  sim.run_until_idle();
  EXPECT_EQ(expired.end->error().code(), Code::expired);
  EXPECT_EQ(refused.end->error().code(), Code::forbidden);
  EXPECT_EQ(broken.end->error().code(), Code::unavailable);
}

}  // namespace
}  // namespace dibs::client
