// Reads through a whole server: lists, pages, selectors, versions, forms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::config_map;
using test::kConfigMaps;
using test::names_of;
using test::Reply;
using test::TestServer;
using test::version_of;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kOne = cat(kConfigMaps, "/a");

class Reads : public testing::Test {
 protected:
  Reads() {
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      Value object = config_map(name);
      object.mut("metadata").mut("labels").set("odd", name[0] % 2 ? "yes" : "no");
      api.post(kConfigMaps, object);
    }
  }
  TestServer api;
};

TEST_F(Reads, list_is_in_order_of_names_at_one_version) {
  Reply list = api.get(kConfigMaps);

  EXPECT_EQ(list.body["kind"].as_string(), "ConfigMapList");
  EXPECT_THAT(names_of(list.body), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(version_of(list.body), api.store->revision());
  EXPECT_FALSE(list.body["items"][0].contains("kind"));
}

TEST_F(Reads, selectors_choose) {
  struct {
    const char* query;
    std::vector<std::string> names;
  } cases[] = {
      {"labelSelector=odd%3Dyes", {"a", "c", "e"}},
      {"labelSelector=odd%21%3Dyes", {"b", "d"}},
      {"labelSelector=none", {}},
      {"fieldSelector=metadata.name%3Db", {"b"}},
      {"fieldSelector=metadata.name%21%3Db,metadata.namespace%3Ddefault", {"a", "c", "d", "e"}},
      {"labelSelector=odd%3Dyes&fieldSelector=metadata.name%3Db", {}}};
  for (const auto& one : cases)
    EXPECT_EQ(names_of(api.get(cat(kConfigMaps, "?", one.query)).body), one.names) << one.query;
  EXPECT_EQ(api.get(cat(kConfigMaps, "?labelSelector=a%20b")).status, 400);
  EXPECT_EQ(api.get(cat(kConfigMaps, "?fieldSelector=data.x%3D1")).status, 400);
}

TEST_F(Reads, pages_show_the_state_of_the_first) {
  Reply first = api.get(cat(kConfigMaps, "?limit=2"));
  EXPECT_THAT(names_of(first.body), ElementsAre("a", "b"));
  EXPECT_EQ(first.body["metadata"]["remainingItemCount"].as_int(), 3);
  api.remove(cat(kConfigMaps, "/c"));
  api.post(kConfigMaps, config_map("bb"));

  Reply second =
      api.get(cat(kConfigMaps, "?limit=2&continue=", first.body["metadata"]["continue"].str()));
  Reply third =
      api.get(cat(kConfigMaps, "?limit=2&continue=", second.body["metadata"]["continue"].str()));

  EXPECT_THAT(names_of(second.body), ElementsAre("c", "d"));
  EXPECT_EQ(version_of(second.body), version_of(first.body));
  EXPECT_THAT(names_of(third.body), ElementsAre("e"));
  EXPECT_FALSE(third.body["metadata"].contains("continue"));
}

TEST_F(Reads, pages_with_a_selector_do_not_count_the_rest) {
  Reply first = api.get(cat(kConfigMaps, "?limit=2&labelSelector=odd%3Dyes"));
  Reply second = api.get(cat(kConfigMaps, "?limit=2&labelSelector=odd%3Dyes&continue=",
                             first.body["metadata"]["continue"].str()));

  EXPECT_THAT(names_of(first.body), ElementsAre("a", "c"));
  EXPECT_FALSE(first.body["metadata"].contains("remainingItemCount"));
  EXPECT_THAT(names_of(second.body), ElementsAre("e"));
}

TEST_F(Reads, a_page_of_a_forgotten_state_is_gone_and_tells_how_to_go_on) {
  Reply first = api.get(cat(kConfigMaps, "?limit=2"));
  api.post(kConfigMaps, config_map("bb"));
  ASSERT_TRUE(api.store->compact(api.store->revision()).ok());

  Reply second =
      api.get(cat(kConfigMaps, "?limit=2&continue=", first.body["metadata"]["continue"].str()));

  EXPECT_EQ(second.status, 410);
  EXPECT_EQ(second.reason(), "Expired");
  Reply rest =
      api.get(cat(kConfigMaps, "?limit=3&continue=", second.body["metadata"]["continue"].str()));
  EXPECT_THAT(names_of(rest.body), ElementsAre("bb", "c", "d"));
  EXPECT_EQ(rest.body["metadata"]["remainingItemCount"].as_int(), 1);
}

TEST_F(Reads, an_exact_version_shows_the_past) {
  const std::string before = api.get(kConfigMaps).body["metadata"]["resourceVersion"].str();
  api.remove(cat(kConfigMaps, "/a"));

  Reply past = api.get(cat(kConfigMaps, "?resourceVersionMatch=Exact&resourceVersion=", before));
  Reply not_older =
      api.get(cat(kConfigMaps, "?resourceVersionMatch=NotOlderThan&resourceVersion=", before));

  EXPECT_THAT(names_of(past.body), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(names_of(not_older.body), ElementsAre("b", "c", "d", "e"));
}

TEST_F(Reads, a_version_of_the_future_times_out) {
  const std::string future = cat(api.store->revision() + 100);

  EXPECT_EQ(api.get(cat(kConfigMaps, "?resourceVersion=", future)).status, 504);
  EXPECT_EQ(api.get(cat(kOne, "?resourceVersion=", future)).status, 504);
}

TEST_F(Reads, come_in_the_form_asked_for) {
  constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";

  Reply table = api.get(kConfigMaps, kTable);
  Reply metadata = api.get(kOne, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
  Reply yaml = api.get(kOne, "application/yaml");

  EXPECT_EQ(table.body["kind"].as_string(), "Table");
  EXPECT_EQ(table.body["rows"].size(), 5U);
  EXPECT_EQ(table.body["rows"][0]["cells"][0].as_string(), "a");
  EXPECT_EQ(metadata.body["kind"].as_string(), "PartialObjectMetadata");
  EXPECT_EQ(metadata.body["metadata"]["name"].as_string(), "a");
  EXPECT_FALSE(metadata.body.contains("data"));
  EXPECT_THAT(yaml.text, HasSubstr("kind: ConfigMap\n"));
  EXPECT_EQ(yaml.headers.get("Content-Type"), "application/yaml");
}

TEST_F(Reads, a_collection_is_deleted_by_its_selector) {
  Reply removed =
      api.send(test::make_request("DELETE", cat(kConfigMaps, "?labelSelector=odd%3Dyes")));

  EXPECT_EQ(removed.status, 200);
  EXPECT_THAT(names_of(removed.body), ElementsAre("a", "c", "e"));
  EXPECT_THAT(names_of(api.get(kConfigMaps).body), ElementsAre("b", "d"));
}

TEST_F(Reads, what_is_not_served_is_not_found) {
  struct {
    const char* method;
    const char* target;
    int status;
  } cases[] = {{"GET", "/api/v1/oddities", 404},
               {"GET", "/apis/odd.io/v1/things", 404},
               {"GET", "/api/v1/namespaces/default/nodes", 404},
               {"GET", "/api/v1/namespaces/default/configmaps/a/odd", 404},
               {"POST", "/api/v1/configmaps", 405},
               {"PUT", "/api/v1/namespaces/default/configmaps", 405},
               {"DELETE", "/api/v1/configmaps", 405},
               {"POST", "/api/v1/namespaces/default/configmaps/a", 405}};
  for (const auto& one : cases) {
    EXPECT_EQ(api.send(test::make_request(one.method, one.target)).status, one.status)
        << one.method << " " << one.target;
  }
}

}  // namespace
}  // namespace dibs::server
