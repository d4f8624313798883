// Several servers over one store answer as one would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "server/test_servers.h"

namespace dibs::server {
namespace {

using namespace std::chrono_literals;
using json::Value;
using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::make_request;
using test::names_of;
using test::Reply;
using test::Servers;
using test::version_of;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr store::testing::ViewDelays kSlow = {{50ms, 50ms}};

std::string map_at(std::string_view name, std::string_view query = "") {
  return cat(kConfigMaps, "/", name, query);
}

/// The first server is never behind, the second always by 50 ms.
struct TwoServers : testing::Test {
  TwoServers() { world.views[1]->set_delays(kSlow); }
  Value make(std::size_t at, std::string_view name, std::string_view data = "{}") {
    const Reply made = world.post(at, kConfigMaps, config_map(name, data));
    EXPECT_EQ(made.status, 201) << made.text;
    return made.body;
  }
  Servers world{2};
};

/// Allows everything, and counts.
class CountingHook : public WebhookTransport {
 public:
  WebhookReply post(const WebhookCall& call) override {
    ++asked;
    const Value review = json::parse(call.body).value();
    net::Response out;
    out.body = json::write(Value::object(
        {{"kind", "AdmissionReview"},
         {"apiVersion", review["apiVersion"]},
         {"response", Value::object({{"uid", review["request"]["uid"]}, {"allowed", allows}})}}));
    return {out, {}};
  }
  int asked = 0;
  bool allows = true;
};

TEST_F(TwoServers, show_what_was_written_through_the_other) {
  const Value made = make(0, "a");
  EXPECT_EQ(world.get(1, map_at("a")).body, made);
  make(0, "b");
  EXPECT_THAT(names_of(world.get(1, kConfigMaps).body), testing::Contains("b"));
  make(0, "c");
  const Reply watch = world.get(1, cat(kConfigMaps, "?watch=true"));
  world.sim.run_until_idle();
  EXPECT_THAT(watch.stream->take_short(), testing::Contains("ADDED c"));
}

TEST_F(TwoServers, answer_at_once_who_takes_what_is_there) {
  make(0, "a");
  const auto any = world.begin(1, make_request("GET", map_at("a", "?resourceVersion=0")));
  EXPECT_EQ(any->status, 404);
  const auto list = world.begin(1, make_request("GET", cat(kConfigMaps, "?resourceVersion=0")));
  world.sim.run_until_idle();
  EXPECT_EQ(list->status, 200);
  EXPECT_THAT(names_of(list->body), testing::Not(testing::Contains("a")));
}

TEST_F(TwoServers, wait_for_the_version_that_is_asked_for) {
  const auto version = version_of(make(0, "a"));
  EXPECT_EQ(world.get(1, map_at("a", cat("?resourceVersion=", version))).status, 200);
  make(0, "b");
  const Reply list = world.get(
      1, cat(kConfigMaps, "?resourceVersion=", version + 1, "&resourceVersionMatch=NotOlderThan"));
  EXPECT_THAT(names_of(list.body), testing::Contains("b"));
  const Reply future = world.get(1, map_at("a", "?resourceVersion=99999999"));
  EXPECT_EQ(future.status, 504);
  EXPECT_THAT(future.message(), HasSubstr("Too large resource version: 99999999"));
}

TEST_F(TwoServers, delete_a_collection_with_many_writes_under_way) {
  constexpr int kMaps = 300;
  for (int i = 0; i < kMaps; ++i) make(0, cat("m", i));
  const auto before = world.sim.runtime().clock.steady();
  const auto removed = world.begin(1, make_request("DELETE", kConfigMaps));
  // One is changed meanwhile: it goes as well.
  world.patch(0, map_at("m299"), from_text("{'data':{'now':'other'}}"));

  EXPECT_EQ(world.wait(removed).status, 200) << removed->text;
  EXPECT_EQ(removed->body["items"].size(), std::size_t{kMaps});
  EXPECT_LT(world.sim.runtime().clock.steady() - before, kMaps * 50ms / 10)
      << "each write is seen after 50 ms";
  EXPECT_TRUE(world.truth("/registry/configmaps/default/").empty());
}

TEST_F(TwoServers, stop_to_delete_a_collection_at_the_first_refusal) {
  for (const char* name : {"a", "b"}) make(0, name);
  const Reply refused =
      world.send(1, make_request("DELETE", kConfigMaps, R"({"preconditions":{"uid":"another"}})"));
  EXPECT_EQ(refused.status, 409) << refused.text;
  EXPECT_GE(world.truth("/registry/configmaps/default/").size(), 2U);
}

std::string namespace_at(std::string_view name) { return cat("/api/v1/namespaces/", name); }

TEST_F(TwoServers, make_nothing_in_a_namespace_whose_end_only_the_other_has_seen) {
  const Reply made = world.post(0, "/api/v1/namespaces", from_text("{'metadata':{'name':'n'}}"));
  ASSERT_EQ(made.status, 201) << made.text;
  ASSERT_EQ(world.get(1, namespace_at("n")).status, 200);
  world.views[1]->hold();

  ASSERT_EQ(world.remove(0, namespace_at("n")).status, 200);
  const auto ending = world.begin(
      1, make_request("POST", cat(namespace_at("n"), "/configmaps"), json::write(config_map("a"))));
  world.sim.run_until_idle();
  EXPECT_NE(ending->status, 201);
  Value object = world.get(0, namespace_at("n")).body;
  object.mut("spec").erase("finalizers");
  ASSERT_EQ(world.put(0, cat(namespace_at("n"), "/finalize"), object).status, 200);
  const auto gone = world.begin(
      1, make_request("POST", cat(namespace_at("n"), "/configmaps"), json::write(config_map("b"))));
  world.sim.run_until_idle();
  EXPECT_NE(gone->status, 201);

  world.views[1]->release();
  EXPECT_EQ(world.wait(gone).status, 404) << gone->text;
  EXPECT_THAT(world.wait(ending).status, testing::AnyOf(403, 404)) << ending->text;
  EXPECT_TRUE(world.truth("/registry/configmaps/n/").empty());
}

TEST_F(TwoServers, make_things_beside_each_other_in_a_namespace) {
  make(0, "a");
  world.settle();
  const auto before = world.log.range("").revision;
  const auto b = world.begin(1, make_request("POST", kConfigMaps, json::write(config_map("b"))));
  make(0, "c");
  EXPECT_EQ(world.wait(b).status, 201);
  EXPECT_EQ(world.log.range("").revision, before + 2) << "neither wrote anything else";
}

TEST(SharedWebhooks, are_asked_once_whatever_becomes_of_the_write) {
  const auto hook = std::make_shared<CountingHook>();
  Options options;
  options.webhooks = hook;
  Servers world(2, 1, {}, options);
  world.views[1]->set_delays(kSlow);
  for (const char* kind : {"mutating", "validating"}) {
    const Reply made = world.post(
        0, cat("/apis/admissionregistration.k8s.io/v1/", kind, "webhookconfigurations"),
        from_text("{'metadata':{'name':'h'},'webhooks':[{'name':'h.example.com','sideEffects':"
                  "'None','admissionReviewVersions':['v1'],'clientConfig':{'url':'https://hook/'},"
                  "'rules':[{'apiGroups':[''],'apiVersions':['v1'],'resources':['configmaps'],"
                  "'operations':['*']}]}]}"));
    ASSERT_EQ(made.status, 201) << made.text;
  }
  world.settle();
  const auto asked_by = [&](const Reply& reply, int status) {
    EXPECT_EQ(reply.status, status) << reply.text;
    return std::exchange(hook->asked, 0);
  };

  EXPECT_EQ(asked_by(world.post(1, cat(kConfigMaps, "?dryRun=All"), config_map("a")), 201), 2);
  const Reply made = world.post(1, kConfigMaps, config_map("a"));
  EXPECT_EQ(asked_by(made, 201), 2);
  EXPECT_EQ(asked_by(world.put(1, map_at("a"), made.body), 200), 2) << "changes nothing";
  EXPECT_EQ(asked_by(world.remove(1, map_at("a")), 200), 2);
  hook->allows = false;
  EXPECT_EQ(asked_by(world.post(1, kConfigMaps, config_map("b")), 400), 1);
}

TEST_F(TwoServers, go_on_with_the_pages_of_the_other) {
  for (const char* name : {"a", "b", "c"}) make(0, name);
  const Reply first = world.get(0, cat(kConfigMaps, "?limit=2"));
  const Reply rest = world.get(
      1, cat(kConfigMaps, "?limit=9&continue=", first.body["metadata"]["continue"].as_string()));
  ASSERT_EQ(rest.status, 200) << rest.text;
  EXPECT_EQ(first.body["items"].size() + rest.body["items"].size(),
            world.truth("/registry/configmaps/default/").size());
}

TEST_F(TwoServers, change_what_was_made_through_the_other) {
  Value made = make(0, "a");
  made.set("data", from_text("{'k':'1'}"));
  const Reply put = world.put(1, map_at("a"), made);
  ASSERT_EQ(put.status, 200) << put.text;
  // The version of the second is known to the first at once, and the other way round.
  made = put.body;
  made.set("data", from_text("{'k':'2'}"));
  made = world.put(0, map_at("a"), made).body;
  EXPECT_EQ(world.patch(1, map_at("a"), made).status, 200);
  EXPECT_EQ(world.remove(1, map_at("a")).status, 200);
  EXPECT_EQ(world.get(0, map_at("a")).status, 404);
  EXPECT_EQ(world.post(0, kConfigMaps, config_map("a")).status, 201);
  EXPECT_EQ(world.post(1, kConfigMaps, config_map("a")).status, 409);
}

TEST_F(TwoServers, refuse_what_the_other_has_made_wrong) {
  const Value made = make(0, "a");
  world.settle();
  ASSERT_EQ(world.patch(0, map_at("a"), from_text("{'data':{'k':'1'}}")).status, 200);
  // The first version is all that the second server has seen.
  const Reply late = world.put(1, map_at("a"), made);
  EXPECT_EQ(late.status, 409) << late.text;
  EXPECT_EQ(world.remove(0, map_at("a")).status, 200);
  EXPECT_EQ(world.patch(1, map_at("a"), from_text("{'data':{'k':'2'}}")).status, 404);
}

TEST_F(TwoServers, write_what_changes_nothing_only_in_an_old_view) {
  make(0, "a", "{'k':'1'}");
  world.settle();
  ASSERT_EQ(world.patch(0, map_at("a"), from_text("{'data':{'k':'2'}}")).status, 200);
  const Reply back = world.patch(1, map_at("a"), from_text("{'data':{'k':'1'}}"));
  ASSERT_EQ(back.status, 200);
  EXPECT_EQ(world.get(0, map_at("a")).body["data"]["k"].as_string(), "1");
}

TEST_F(TwoServers, delete_the_whole_collection) {
  for (const char* name : {"a", "b", "c"}) make(0, name);
  EXPECT_EQ(world.remove(1, kConfigMaps).status, 200);
  world.settle();
  EXPECT_EQ(world.truth("/registry/configmaps/default/").size(), 0U);
}

TEST_F(TwoServers, say_that_they_cannot_know) {
  make(0, "a");
  world.settle();
  world.views[1]->cut();
  EXPECT_EQ(world.get(1, map_at("a")).status, 503);
  EXPECT_EQ(world.get(1, kConfigMaps).status, 503);
  EXPECT_EQ(world.get(1, cat(kConfigMaps, "?watch=true")).status, 503);
  EXPECT_EQ(world.get(1, map_at("a", "?resourceVersion=0")).status, 200);
  // A refusal might be wrong, too.
  EXPECT_EQ(world.post(1, kConfigMaps, config_map("a")).status, 503);
  EXPECT_EQ(world.remove(1, map_at("none")).status, 503);
  EXPECT_EQ(world.patch(1, map_at("a"), from_text("{'data':{'k':'2'}}")).status, 503);
  EXPECT_EQ(world.get(1, "/readyz").status, 500);
  world.views[1]->heal();
  EXPECT_EQ(world.get(1, map_at("a")).status, 200);
  EXPECT_EQ(world.get(1, "/readyz").status, 200);
}

constexpr const char* kRoles = "/apis/rbac.authorization.k8s.io/v1/";

/// Ana may read configmaps.
void allow_ana(Servers& world) {
  ASSERT_EQ(world
                .post(0, cat(kRoles, "clusterroles"),
                      from_text("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRole',"
                                "'metadata':{'name':'r'},'rules':[{'apiGroups':[''],"
                                "'resources':['configmaps'],'verbs':['get']}]}"))
                .status,
            201);
  ASSERT_EQ(world
                .post(0, cat(kRoles, "clusterrolebindings"),
                      from_text("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':"
                                "'ClusterRoleBinding','metadata':{'name':'r'},'roleRef':{"
                                "'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole',"
                                "'name':'r'},'subjects':[{'kind':'User','apiGroup':"
                                "'rbac.authorization.k8s.io','name':'ana'}]}"))
                .status,
            201);
}

int read_as_ana(Servers& world, std::size_t at) {
  net::Request request = make_request("GET", map_at("a"));
  request.headers.set("Impersonate-User", "ana");
  return world.send(at, std::move(request)).status;
}

TEST_F(TwoServers, know_at_once_who_may_do_what) {
  make(0, "a");
  EXPECT_EQ(read_as_ana(world, 1), 403);
  allow_ana(world);
  EXPECT_EQ(read_as_ana(world, 1), 200);
}

Value definition(std::string_view plural, std::string_view kind) {
  Value out = from_text(
      "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','spec':{'group':"
      "'e.com','scope':'Namespaced','versions':[{'name':'v1','served':true,'storage':true,"
      "'schema':{'openAPIV3Schema':{'type':'object'}}}]}}");
  out.mut("metadata").set("name", cat(plural, ".e.com"));
  out.mut("spec").set("names", Value::object({{"plural", plural}, {"kind", kind}}));
  return out;
}

constexpr const char* kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr const char* kThings = "/apis/e.com/v1/namespaces/default/things";

Value thing(std::string_view name) {
  Value out = from_text("{'apiVersion':'e.com/v1','kind':'Thing'}");
  out.mut("metadata").set("name", name);
  return out;
}

bool is_established(const Value& definition) {
  return test::condition_of(definition, "Established")["status"].as_string() == "True";
}

TEST_F(TwoServers, serve_what_the_other_was_taught) {
  ASSERT_EQ(world.post(0, kDefinitions, definition("things", "Thing")).status, 201);
  ASSERT_TRUE(world.sim.run_until([&] {
    return is_established(
        world.truth("/registry/apiextensions.k8s.io/customresourcedefinitions/").front());
  }));
  EXPECT_EQ(world.post(1, kThings, thing("a")).status, 201);
  EXPECT_EQ(world.get(0, cat(kThings, "/a")).status, 200);
  EXPECT_EQ(world.get(1, "/apis/e.com/v1").status, 200);

  EXPECT_EQ(world.remove(1, cat(kDefinitions, "/things.e.com")).status, 200);
  world.settle();
  EXPECT_TRUE(world.truth("/registry/e.com/things/").empty());
  EXPECT_EQ(world.get(0, kThings).status, 404);
  EXPECT_EQ(world.get(1, kThings).status, 404);
}

// A server that was cut off for so long that nobody can tell it the way, only where things stand.
TEST_F(TwoServers, go_on_after_a_lost_history) {
  make(0, "a");
  allow_ana(world);
  world.settle();
  ASSERT_EQ(read_as_ana(world, 1), 200);
  const Reply watch = world.get(1, cat(kConfigMaps, "?watch=true"));
  world.settle();
  watch.stream->take();

  world.views[1]->cut();
  EXPECT_EQ(world.remove(0, cat(kRoles, "clusterrolebindings/r")).status, 200);
  ASSERT_EQ(world.post(0, kDefinitions, definition("things", "Thing")).status, 201);
  make(0, "b");
  world.settle();
  world.views[1]->lose_history();
  world.views[1]->heal();
  world.settle();
  EXPECT_THAT(watch.stream->take_short(), ElementsAre("ERROR 410"));
  EXPECT_EQ(read_as_ana(world, 1), 403);
  EXPECT_EQ(world.post(1, kThings, thing("x")).status, 201);
  // And from then on as before.
  EXPECT_EQ(world.remove(0, cat(kDefinitions, "/things.e.com")).status, 200);
  world.settle();
  EXPECT_EQ(world.get(1, kThings).status, 404);
}

TEST(SeveralServers, give_a_kind_to_one_definition) {
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    Servers world(2, seed, test::random_delays());
    for (int i = 0; i < 12; ++i) {
      for (std::size_t at : {0, 1}) {
        const Value wanted = definition(cat("plural", i, at), cat("Kind", i));
        world.begin(at, make_request("POST", kDefinitions, json::write(wanted)));
      }
      world.sim.advance(std::chrono::milliseconds(world.below(30)));
    }
    world.settle();
    std::map<std::string, int> established;
    for (const Value& one :
         world.truth("/registry/apiextensions.k8s.io/customresourcedefinitions/"))
      established[one["spec"]["names"]["kind"].str()] += is_established(one) ? 1 : 0;
    EXPECT_EQ(established.size(), 12U);
    for (const auto& [kind, count] : established) EXPECT_EQ(count, 1) << kind << ", seed " << seed;
  }
}

TEST(SeveralServers, start_together_on_an_empty_store) {
  runtime::SimRuntime sim;
  store::testing::SharedLog log(sim.runtime());
  auto first_view = log.open(kSlow);
  auto second_view = log.open(kSlow);
  std::unique_ptr<ApiServer> second;
  // In the midst of what the first writes, the second starts.
  bool begun = false;
  log.on_written([&](const auto&) {
    if (std::exchange(begun, true)) return;
    auto opened = ApiServer::open(sim.runtime(), *second_view, Options());
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    second = std::move(opened).value();
  });
  auto first = ApiServer::open(sim.runtime(), *first_view, {});
  ASSERT_TRUE(first.ok()) << first.error().message();
  ASSERT_TRUE(second);
  log.on_written(nullptr);
  EXPECT_TRUE(log.get("/registry/namespaces/default"));
  const auto revision = log.revision();
  auto third_view = log.open();
  auto third = ApiServer::open(sim.runtime(), *third_view, {});
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(log.revision(), revision) << "nothing was left to write";
  for (ApiServer* server : {first->get(), second.get(), third->get()}) server->close();
  sim.advance(1s);
}

// Of everybody who creates the same name one succeeds.
TEST(SeveralServers, create_a_name_once) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Servers world(3, seed, test::random_delays());
    for (int round = 0; round < 10; ++round) {
      std::vector<Servers::Pending> tries;
      for (std::size_t at = 0; at < 3; ++at) {
        tries.push_back(world.begin(
            at, make_request("POST", kConfigMaps, json::write(config_map(cat("m", round))))));
        world.sim.advance(std::chrono::milliseconds(world.below(40)));
      }
      int made = 0;
      for (const auto& one : tries) {
        const int status = world.wait(one).status;
        EXPECT_THAT(status, testing::AnyOf(201, 409));
        made += status == 201 ? 1 : 0;
      }
      EXPECT_EQ(made, 1) << "seed " << seed;
    }
  }
}

// A counter that clients raise with the version they have read: no raise is lost.
TEST(SeveralServers, lose_no_update) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Servers world(3, seed, test::random_delays());
    Value counter = config_map("n");
    counter.set("data", from_text("{'n':'0'}"));
    ASSERT_EQ(world.post(0, kConfigMaps, counter).status, 201);
    int raised = 0;
    for (int i = 0; i < 40; ++i) {
      const Reply read = world.get(world.below(3), map_at("n"));
      ASSERT_EQ(read.status, 200) << read.text;
      // Nobody else is at it, so whichever server is asked must know this version.
      Value next = read.body;
      next.mut("data").set("n", cat(std::atoi(read.body["data"]["n"].str().c_str()) + 1));
      const Reply written = world.put(world.below(3), map_at("n"), next);
      ASSERT_EQ(written.status, 200) << "seed " << seed << ": " << written.text;
      ++raised;
    }
    EXPECT_EQ(world.truth("/registry/configmaps/default/n")[0]["data"]["n"].str(), cat(raised));
  }
}

// A client that goes from server to server with the version it has seen misses nothing.
TEST(SeveralServers, hand_over_watches) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Servers world(3, seed, test::random_delays());
    std::map<std::string, std::string> seen;
    const Reply list = world.get(0, kConfigMaps);
    for (const Value& item : list.body["items"].items())
      seen[item["metadata"]["name"].str()] = item["metadata"]["resourceVersion"].str();
    std::int64_t version = version_of(list.body);
    std::shared_ptr<test::FakeStream> stream;
    const auto take = [&] {
      if (!stream) return;
      for (const Value& event : stream->take()) {
        const Value& metadata = event["object"]["metadata"];
        ASSERT_NE(event["type"].as_string(), "ERROR") << json::write(event);
        const std::int64_t at = version_of(event["object"]);
        EXPECT_GT(at, version) << "seed " << seed;
        version = at;
        if (event["type"].as_string() == "DELETED") {
          seen.erase(metadata["name"].str());
        } else {
          seen[metadata["name"].str()] = metadata["resourceVersion"].str();
        }
      }
    };
    std::vector<Servers::Pending> writes;
    for (int i = 0; i < 120; ++i) {
      const std::string name = cat("m", world.below(8));
      const std::size_t at = world.below(3);
      if (world.below(3) == 0) {
        writes.push_back(world.begin(at, make_request("DELETE", map_at(name))));
      } else {
        Value map = config_map(name);
        map.set("data", Value::object({{"i", cat(i)}}));
        writes.push_back(
            world.begin(at, make_request("PATCH", map_at(name, "?fieldManager=t&force=true"),
                                         json::write(map), test::patch_media("apply"))));
      }
      if (i % 10 == 0) {
        take();
        if (stream) stream->hang_up();
        stream =
            world.get(world.below(3), cat(kConfigMaps, "?watch=true&resourceVersion=", version))
                .stream;
      }
      world.sim.advance(std::chrono::milliseconds(world.below(20)));
    }
    world.settle();
    take();
    std::map<std::string, std::string> truth;
    for (const auto& record : world.log.range("/registry/configmaps/default/").records) {
      const std::string key(record->key);
      truth[key.substr(key.rfind('/') + 1)] = cat(record->modified);
    }
    EXPECT_EQ(seen, truth) << "seed " << seed;
  }
}

}  // namespace
}  // namespace dibs::server
