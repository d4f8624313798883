// Conversion webhooks of a whole server: when they are asked, what is made of their answers. The
// transport is a fake that answers at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"
#include "server/conversion_for_test.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::Reply;
using test::to_text;
using testing::ElementsAre;
using testing::HasSubstr;

TEST_F(Conversion, is_asked_only_where_versions_differ) {
  ASSERT_EQ(create("a").status, 201);
  EXPECT_EQ(api.get(at(kV1, "a")).body["hostPort"].as_string(), "h:1");
  EXPECT_TRUE(hook->calls.empty());

  Reply other = api.get(at(kV2, "a"));

  EXPECT_EQ(other.status, 200) << other.text;
  EXPECT_EQ(other.body["apiVersion"].as_string(), "example.com/v2");
  EXPECT_EQ(other.body["host"].as_string(), "h");
  EXPECT_FALSE(other.body.contains("hostPort"));
  ASSERT_EQ(hook->calls.size(), 1U);
  EXPECT_EQ(hook->calls[0].timeout, std::chrono::seconds(30));
}

TEST_F(Conversion, of_a_write_stores_the_other_version) {
  Reply made = create_v2("b");

  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["host"].as_string(), "x");
  EXPECT_EQ(made.body["apiVersion"].as_string(), "example.com/v2");
  EXPECT_EQ(api.get(at(kV1, "b")).body["hostPort"].as_string(), "x:9");
}

TEST_F(Conversion, judges_what_was_sent_in_its_own_version) {
  Reply refused = api.post(kV2, from_text("{'apiVersion':'example.com/v2','kind':'Thing',"
                                          "'metadata':{'name':'c'},'port':'9'}"));

  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(), HasSubstr("host: Required value"));
}

TEST_F(Conversion, of_a_list_is_one_call) {
  create("a");
  create("b");
  create("c");

  Reply list = api.get(kV2);

  ASSERT_EQ(list.status, 200) << list.text;
  EXPECT_EQ(list.body["items"].size(), 3U);
  for (const Value& item : list.body["items"].items()) EXPECT_EQ(item["host"].as_string(), "h");
  ASSERT_EQ(hook->calls.size(), 1U);
  EXPECT_EQ(hook->objects_of(0), 3U);
}

TEST_F(Conversion, leaves_items_alone_that_have_the_version) {
  create("a");
  store_v2();
  create_v2("b");
  hook->calls.clear();

  Reply list = api.get(kV2);

  EXPECT_EQ(list.body["items"].size(), 2U) << list.text;
  ASSERT_EQ(hook->calls.size(), 1U);
  EXPECT_EQ(hook->objects_of(0), 1U);
}

TEST_F(Conversion, selects_by_fields_of_the_version_asked_for) {
  create("a", "here:1");
  create("b", "there:1");

  EXPECT_THAT(test::names_of(api.get(cat(kV2, "?fieldSelector=host%3Dthere")).body),
              ElementsAre("b"));
  EXPECT_THAT(test::names_of(api.get(cat(kV1, "?fieldSelector=hostPort%3Dhere:1")).body),
              ElementsAre("a"));
}

TEST_F(Conversion, of_a_page_of_a_selection_ends_when_the_page_is_full) {
  for (char name = 'a'; name <= 'j'; ++name) {
    create(std::string(1, name), name % 2 == 0 ? "here:1" : "there:1");
  }
  hook->calls.clear();

  std::vector<std::string> names;
  std::vector<std::size_t> asked;
  std::string next;
  do {
    const Reply page = api.get(cat(kV2, "?fieldSelector=host%3Dhere&limit=2&continue=", next));
    ASSERT_EQ(page.status, 200) << page.text;
    for (const std::string& name : test::names_of(page.body)) names.push_back(name);
    next = page.body["metadata"]["continue"].str();
    std::size_t objects = 0;
    for (std::size_t i = 0; i < hook->calls.size(); ++i) objects += hook->objects_of(i);
    asked.push_back(objects);
    hook->calls.clear();
  } while (!next.empty());

  EXPECT_THAT(names, ElementsAre("b", "d", "f", "h", "j"));
  EXPECT_THAT(asked, ElementsAre(6, 6, 2));
}

TEST_F(Conversion, takes_patches_in_either_version) {
  create("a");

  Reply merged = api.patch(at(kV2, "a"), "merge", R"({"port":"8"})");
  EXPECT_EQ(merged.status, 200) << merged.text;
  EXPECT_EQ(merged.body["port"].as_string(), "8");
  EXPECT_EQ(api.get(at(kV1, "a")).body["hostPort"].as_string(), "h:8");
  Reply applied = api.patch(cat(at(kV2, "a"), "?fieldManager=me&force=true"), "apply",
                            R"({"apiVersion":"example.com/v2","kind":"Thing",
                                "metadata":{"name":"a"},"host":"g"})");
  EXPECT_EQ(applied.status, 200) << applied.text;
  EXPECT_EQ(api.get(at(kV1, "a")).body["hostPort"].as_string(), "g:8");
}

TEST_F(Conversion, holds_no_seat_while_it_is_waited_for) {
  create("a");
  store_v2();
  const Reply allowed = api.post(
      "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
      from_text("{'metadata':{'name':'jane'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io',"
                "'kind':'ClusterRole','name':'cluster-admin'},'subjects':[{'apiGroup':"
                "'rbac.authorization.k8s.io','kind':'User','name':'jane'}]}"));
  ASSERT_EQ(allowed.status, 201) << allowed.text;
  std::string metrics;
  hook->during = [&] { metrics = api.server->metrics().expose(); };
  for (const char* path : {kV1, kV2}) {
    create(path == kV1 ? "b" : "c");
    net::Request request = test::make_request("GET", path);
    request.peer.address = "192.0.2.9:4711";
    request.peer.common_name = "jane";
    request.peer.organizations.clear();

    EXPECT_EQ(api.send(request).status, 200);

    EXPECT_THAT(metrics, HasSubstr("apiserver_flowcontrol_current_executing_seats{"
                                   "priority_level=\"global-default\"} 0"))
        << path;
    metrics.clear();
  }
}

TEST_F(Conversion, that_is_down_stops_nothing_but_the_other_version) {
  create("a");
  hook->down = true;

  Reply failed = api.get(at(kV2, "a"));

  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.message(),
            "conversion webhook for example.com/v1, Kind=Thing failed: Post "
            "\"https://hooks/convert\": refused");
  EXPECT_EQ(api.get(at(kV1, "a")).status, 200);
  EXPECT_EQ(create("b").status, 201);
  EXPECT_EQ(create_v2("c").status, 500);
  EXPECT_EQ(api.remove(at(kV1, "a")).status, 200);
}

TEST_F(Conversion, moves_an_object_to_the_new_storage_version_when_it_is_written) {
  create("a");
  store_v2();
  EXPECT_EQ(to_text(api.get(kDefinition).body["status"]["storedVersions"]), "['v1','v2']");
  const Value before = api.get(at(kV2, "a")).body;

  Reply same = api.put(at(kV2, "a"), before);

  EXPECT_EQ(same.status, 200) << same.text;
  EXPECT_NE(same.body["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
  hook->down = true;
  EXPECT_EQ(api.get(at(kV2, "a")).status, 200);
  EXPECT_EQ(api.get(at(kV1, "a")).status, 500);
}

TEST_F(Conversion, changes_labels_and_nothing_else_of_metadata) {
  create("a");
  hook->change = [](Value& object) {
    object.mut("metadata").mut("labels").set("by", "hook");
    object.mut("metadata").set("generation", 99);
  };

  Reply shown = api.get(at(kV2, "a"));

  EXPECT_EQ(shown.body["metadata"]["labels"]["by"].as_string(), "hook");
  EXPECT_EQ(shown.body["metadata"]["generation"].as_int(), 1);
}

TEST_F(Conversion, is_refused_in_upstreams_words) {
  create("a");
  create("b");
  const std::string opening = "conversion webhook for example.com/v1, Kind=Thing ";
  const auto message = [&](const char* path) { return api.get(path).message(); };
  const std::string one = at(kV2, "a");

  hook->change = [](Value& object) { object.mut("metadata").set("name", "other"); };
  EXPECT_EQ(message(one.c_str()),
            cat(opening, "returned invalid object: must have the same name: a != other"));
  EXPECT_EQ(message(kV2), cat(opening,
                              "returned invalid converted object at index 0: must have the same "
                              "name: a != other"));
  hook->change = [](Value& object) { object.set("apiVersion", "example.com/v3"); };
  EXPECT_EQ(message(one.c_str()), cat(opening,
                                      "returned invalid object at index 0: invalid groupVersion "
                                      "(expected example.com/v2, received example.com/v3)"));
  hook->change = [](Value& object) { object.mut("metadata").set("labels", 3); };
  EXPECT_EQ(message(one.c_str()), cat(opening,
                                      "returned invalid metadata: invalid metadata.labels of type "
                                      "int64 in converted object"));
  hook->change = nullptr;
  hook->changes = from_text("{'convertedObjects':[]}");
  EXPECT_EQ(message(one.c_str()), cat(opening, "returned 0 objects, expected 1"));
  hook->changes = from_text("{'uid':'else'}");
  EXPECT_THAT(message(one.c_str()), HasSubstr("failed: expected response.uid=\""));
  hook->changes = from_text("{'result':{'status':'Failure','message':'cannot do that'}}");
  EXPECT_EQ(message(one.c_str()), cat(opening, "failed: cannot do that"));
  hook->changes = from_text("{'result':{'status':'Odd'}}");
  EXPECT_EQ(message(one.c_str()),
            cat(opening, "failed: response.result.status was 'Odd', not 'Success'"));
  hook->raw = "no JSON";
  EXPECT_THAT(message(one.c_str()), HasSubstr("json parse error"));
  hook->raw = R"({"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"})";
  EXPECT_EQ(message(one.c_str()), cat(opening, "failed: no response provided"));
}

class OldConversion : public Conversion {
 protected:
  OldConversion() : Conversion("['v9','v1beta1']") {}
};

TEST_F(OldConversion, speaks_the_first_version_of_reviews_that_is_known) {
  create("a");
  hook->changes = from_text("{'uid':'else'}");

  EXPECT_EQ(api.get(at(kV2, "a")).status, 200);
  EXPECT_THAT(hook->calls[0].body, HasSubstr("apiextensions.k8s.io/v1beta1"));
}

TEST_F(Conversion, counts_its_calls) {
  create("a");
  api.get(at(kV2, "a"));
  hook->down = true;
  api.get(at(kV2, "a"));

  const std::string text = api.server->metrics().expose();

  EXPECT_THAT(text, HasSubstr("apiserver_conversion_webhook_request_total{result=\"success\","
                              "failure_type=\"\"} 1"));
  EXPECT_THAT(text, HasSubstr("apiserver_conversion_webhook_request_total{result=\"failure\","
                              "failure_type=\"conversion_webhook_call_failure\"} 1"));
  EXPECT_THAT(text, HasSubstr("apiserver_crd_conversion_webhook_duration_seconds_count{crd_name="
                              "\"things.example.com\",from_version=\"v1\",to_version=\"v2\","
                              "succeeded=\"true\"} 1"));
}

TEST_F(Conversion, lets_a_definition_go_while_it_is_down) {
  create("a");
  hook->down = true;

  api.remove(kDefinition);
  api.sim.run_for(Duration{});

  EXPECT_EQ(api.get(kDefinition).status, 404);
}

}  // namespace
}  // namespace dibs::server
