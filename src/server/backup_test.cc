#include "server/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/strings.h"
#include "json/parse.h"
#include "net/gzip.h"
#include "server/backup_format.h"
#include "server/builtin_resources.h"
#include "server/store_check.h"
#include "server/stored.h"
#include "server/test_support.h"
#include "store/fill.h"

namespace dibs::server {
namespace {

using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::Reply;
using test::TestServer;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kKey = "/registry/configmaps/default/";

std::string change(std::string_view name, std::string_view value) {
  std::string line = "{\"key\":";
  json::write_string(line, cat(kKey, name));
  append_bytes_member(line, value);
  return line + "}\n";
}
std::string stored_map(std::string_view name, std::string_view data = "{}") {
  return encode_stored(config_map(name, data));
}
std::string removal(std::string_view name) {
  return cat("{\"key\":\"", kKey, name, "\",\"deleted\":true}\n");
}

class BackupTest : public testing::Test {
 protected:
  Reply restore(std::string query, std::string body = {}) {
    return server.send(test::make_request("POST", cat("/dibs/restore?", query), std::move(body)));
  }
  /// Keys of the answer that begin with kKey, without it.
  std::vector<std::string> names(std::string_view text) {
    BackupReader reader;
    std::vector<std::string> out;
    for (std::string_view line : split(text, '\n')) {
      if (line.empty()) continue;
      auto entry = reader.line(line);
      EXPECT_TRUE(entry.ok()) << (entry.ok() ? "" : entry.error().message());
      if (!entry.ok()) break;
      if (const auto* item = std::get_if<store::Item>(&*entry)) {
        if (item->key.starts_with(kKey)) out.push_back(item->key.substr(std::strlen(kKey)));
      }
    }
    EXPECT_TRUE(reader.end().ok());
    return out;
  }
  int as(std::string_view user, std::string method, std::string target) {
    net::Request request = test::make_request(std::move(method), std::move(target), "");
    request.headers.set("Impersonate-User", std::string(user));
    return server.send(std::move(request)).status;
  }
  void allow(std::string_view user, std::string_view rules) {
    constexpr const char* kRbac = "/apis/rbac.authorization.k8s.io/v1";
    EXPECT_EQ(server
                  .post(cat(kRbac, "/clusterroles"),
                        from_text(cat("{'metadata':{'name':'", user, "'},'rules':", rules, "}")))
                  .status,
              201);
    EXPECT_EQ(server
                  .post(cat(kRbac, "/clusterrolebindings"),
                        from_text(cat("{'metadata':{'name':'", user,
                                      "'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io','kind':"
                                      "'ClusterRole','name':'",
                                      user,
                                      "'},'subjects':[{'kind':'User','apiGroup':"
                                      "'rbac.authorization.k8s.io','name':'",
                                      user, "'}]}")))
                  .status,
              201);
  }

  TestServer server;
};

TEST_F(BackupTest, is_the_state_when_it_was_asked_for) {
  for (int i = 0; i < 200; ++i) {
    server.add_config_map(cat("m", 1000 + i), cat("{'x':'", std::string(4000, 'x'), "'}"));
  }
  server.slow_streams = true;
  auto stream = server.watch("/dibs/backup");
  std::string text = stream->take_text();
  server.slow_streams = false;
  server.remove(cat(kConfigMaps, "/m1199"));
  server.add_config_map("later");
  ASSERT_TRUE(server.store->compact(server.store->revision()).ok());
  for (int i = 0; i < 100 && !stream->finished(); ++i) {
    stream->drain();
    server.sim.run_until_idle();
    text += stream->take_text();
  }
  EXPECT_TRUE(stream->finished());
  const auto found = names(text);
  EXPECT_EQ(found.size(), 200u);
  EXPECT_THAT(found, Contains("m1199"));
  EXPECT_THAT(found, Not(Contains("later")));
}

TEST_F(BackupTest, is_for_those_who_may_everything) {
  allow("reader",
        "[{'apiGroups':['*'],'resources':['*'],'verbs':['get','list','watch']},"
        "{'nonResourceURLs':['*'],'verbs':['*']}]");
  allow("writer", "[{'apiGroups':['*'],'resources':['*'],'verbs':['*']}]");
  allow("owner",
        "[{'apiGroups':['*'],'resources':['*'],'verbs':['*']},"
        "{'nonResourceURLs':['*'],'verbs':['*']}]");
  for (const char* user : {"reader", "writer", "system:node:n", "system:anonymous", "nobody"}) {
    EXPECT_EQ(as(user, "GET", "/dibs/backup"), 403) << user;
    EXPECT_EQ(as(user, "POST", "/dibs/restore?id=a&step=begin&overwrite=true"), 403) << user;
  }
  EXPECT_EQ(as("owner", "GET", "/dibs/backup"), 200);
  EXPECT_EQ(as("owner", "POST", "/dibs/backup"), 405);
  EXPECT_EQ(as("owner", "GET", "/dibs/restore?id=a&step=begin&overwrite=true"), 405);
  EXPECT_FALSE(server.store->get(store::kUnfinished));
}

TEST_F(BackupTest, restore_keeps_others_waiting_and_writes_what_it_is_told) {
  server.add_config_map("old");
  auto watch = server.watch(cat(kConfigMaps, "?watch=true&resourceVersion=0"));
  watch->take();

  EXPECT_EQ(restore("id=a&step=begin").status, 400);
  ASSERT_EQ(restore("id=a&step=begin&overwrite=true").status, 200);
  const Reply waits = server.post(kConfigMaps, config_map("mine"));
  EXPECT_EQ(waits.status, 503);
  EXPECT_EQ(waits.headers.get("Retry-After"), "1");
  EXPECT_EQ(server.remove(kConfigMaps).status, 503);
  EXPECT_EQ(server.get(cat(kConfigMaps, "/old")).status, 200);

  const Reply changed =
      restore("id=a&step=change", removal("old") + change("new", stored_map("new", "{'a':'b'}")));
  ASSERT_EQ(changed.status, 200) << changed.text;
  EXPECT_THAT(watch->take_short(), ElementsAre("DELETED old", "ADDED new"));
  ASSERT_EQ(restore("id=a&step=end").status, 200);
  EXPECT_EQ(server.post(kConfigMaps, config_map("mine")).status, 201);
  EXPECT_EQ(server.get(cat(kConfigMaps, "/new")).body["data"]["a"].as_string(), "b");
}

TEST_F(BackupTest, restore_goes_on_after_a_restart_and_only_one_at_a_time) {
  ASSERT_EQ(restore("id=a&step=begin&overwrite=true").status, 200);
  server.restart();
  EXPECT_EQ(server.post(kConfigMaps, config_map("mine")).status, 503);
  EXPECT_EQ(restore("id=a&step=change", change("m", stored_map("m"))).status, 200);
  const Reply second = restore("id=b&step=begin&overwrite=true");
  EXPECT_TRUE(second.body["resumed"].as_bool());
  EXPECT_EQ(restore("id=a&step=change", change("n", stored_map("n"))).status, 409);
  EXPECT_EQ(restore("id=a&step=end").status, 409);
  EXPECT_EQ(restore("id=b&step=end").status, 200);
  EXPECT_EQ(restore("id=b&step=end").status, 200) << "its first answer may have been lost";
  EXPECT_EQ(restore("id=b&step=change", change("n", stored_map("n"))).status, 409);
  EXPECT_EQ(server.get(cat(kConfigMaps, "/n")).status, 404);
}

TEST_F(BackupTest, restore_takes_a_group_whole_or_not_at_all) {
  ASSERT_EQ(restore("id=a&step=begin&overwrite=true").status, 200);
  const std::string good = change("good", stored_map("good"));
  const std::string bodies[] = {
      "",
      "\n",
      "not json\n",
      "[]\n",
      good.substr(0, good.size() - 1),
      good + good,
      good + "{\"key\":\"/registry.dibs/unfinished\",\"deleted\":true}\n",
      good + "{\"key\":\"/other\",\"deleted\":true}\n",
      good + "{\"key\":\"/registry/leases/default/x\",\"deleted\":true}\n",
      good + change("x", "no object"),
      good + change("x", "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"),
      good + change("x", stored_map("y")),
      good + change("x", "\xff"),
      good + std::string(100000, '{') + "\n",
  };
  for (const std::string& body : bodies) {
    const Reply refused = restore("id=a&step=change", body);
    EXPECT_GE(refused.status, 400) << body.substr(0, 100);
    EXPECT_LT(refused.status, 500) << body.substr(0, 100);
    EXPECT_EQ(server.get(cat(kConfigMaps, "/good")).status, 404) << body.substr(0, 100);
  }
  net::Request bomb = test::make_request("POST", "/dibs/restore?id=a&step=change",
                                         net::gzip(std::string(std::size_t{20} << 20, ' ')));
  bomb.headers.set("Content-Encoding", "gzip");
  EXPECT_EQ(server.send(std::move(bomb)).status, 413);
  EXPECT_EQ(restore("id=A/b&step=begin&overwrite=true").status, 400);
  EXPECT_EQ(restore("id=a&step=more").status, 400);
  EXPECT_EQ(restore("id=a&step=change", good).status, 200);
}

TEST_F(BackupTest, servers_do_not_start_on_a_store_that_was_not_filled) {
  ASSERT_TRUE(
      server.store
          ->commit({{std::string(store::kUnfinished), share("{\"what\":\"copy\"}"), std::nullopt}})
          .ok());
  const auto opened = ApiServer::open(server.sim.runtime(), *server.store, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.error().message(), HasSubstr("--resume"));
}

// --- what a store must hold ---

class StoreCheckTest : public testing::Test {
 protected:
  std::vector<std::string> faults() {
    std::vector<std::string> out;
    StoreCheck check(*builtin_resources({}), [&](std::string what) { out.push_back(what); });
    auto state = *store::state_of(*server.store);
    EXPECT_TRUE(check.run(*state).ok());
    EXPECT_GT(check.objects(), 50u);
    return out;
  }
  void put(std::string key, std::string value) {
    ASSERT_TRUE(
        server.store->commit({{std::move(key), share(std::move(value)), std::nullopt}}).ok());
  }
  void put_object(std::string key, std::string_view text) {
    put(std::move(key), encode_stored(from_text(text)));
  }

  TestServer server;
};

TEST_F(StoreCheckTest, finds_nothing_in_what_servers_write) {
  server.add_config_map("m");
  server.add_account("default");
  server.run_pod("p");
  EXPECT_EQ(server
                .post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                      from_text("{'metadata':{'name':'stones.example.com'},'spec':{'group':"
                                "'example.com','scope':'Namespaced','names':{'plural':'stones',"
                                "'singular':'stone','kind':'Stone'},'versions':[{'name':'v1',"
                                "'served':true,'storage':true,'schema':{'openAPIV3Schema':"
                                "{'type':'object'}}}]}}"))
                .status,
            201);
  server.sim.advance(std::chrono::seconds(10));
  EXPECT_EQ(server
                .post("/apis/example.com/v1/namespaces/default/stones",
                      from_text("{'apiVersion':'example.com/v1','kind':'Stone','metadata':{'name':"
                                "'s'}}"))
                .status,
            201);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(StoreCheckTest, finds_objects_where_they_do_not_belong) {
  put("/registry/configmaps/default/a", "gone bad");
  put_object(
      "/registry/configmaps/default/b",
      "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'x','namespace':'default'}}");
  put_object("/registry/configmaps/default/c",
             "{'kind':'Secret','apiVersion':'v1','metadata':{'name':'c','namespace':'default'}}");
  put_object("/registry/configmaps/d",
             "{'kind':'ConfigMap','apiVersion':'v1','metadata':{'name':'d'}}");
  put_object("/registry/wonders/default/e",
             "{'kind':'Wonder','apiVersion':'v1','metadata':{'name':'e','namespace':'default'}}");
  EXPECT_THAT(
      faults(),
      ElementsAre(
          "/registry/configmaps/d: ConfigMap without a namespace",
          "/registry/configmaps/default/a: does not begin as a stored object does",
          "/registry/configmaps/default/b: holds an object of another name, \"default/x\"",
          "/registry/configmaps/default/c: is a Secret of v1, expected a ConfigMap of group \"\"",
          "/registry/wonders/default/e: no kind has keys like this one, or its namespace is "
          "another"));
}

TEST_F(StoreCheckTest, finds_what_two_have) {
  for (const char* name : {"a", "b"}) {
    put_object(
        cat("/registry/resourceclaims/default/", name),
        cat("{'kind':'ResourceClaim','apiVersion':'resource.k8s.io/v1','metadata':{'name':'", name,
            "','namespace':'default'},'status':{'allocation':{'devices':{'results':[{"
            "'driver':'d','pool':'p','device':'x','request':'r'}]}}}}"));
    put_object(cat("/registry/services/specs/default/", name),
               cat("{'kind':'Service','apiVersion':'v1','metadata':{'name':'", name,
                   "','namespace':'default','uid':'u'},'spec':{'clusterIPs':['10.0.0.9'],'ports':["
                   "{'nodePort':30001,'protocol':'TCP'}]}}"));
  }
  const auto found = faults();
  EXPECT_THAT(found, Contains(HasSubstr("device d/p/x: it is allocated to")));
  EXPECT_THAT(found, Contains("/registry/services/specs/default/b: address 10.0.0.9 is that of "
                              "/registry/services/specs/default/a, too"));
  EXPECT_THAT(found, Contains(HasSubstr("node port 30001 of TCP is that of")));
  EXPECT_THAT(found, Contains(HasSubstr("uid u is that of")));
}

}  // namespace
}  // namespace dibs::server
