// Conversion webhooks of a whole server: when they are asked, what is made of their answers. The
// transport is a fake that answers at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::Reply;
using test::TestServer;
using test::to_text;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr const char* kDefinition =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.example.com";
constexpr const char* kV1 = "/apis/example.com/v1/namespaces/default/things";
constexpr const char* kV2 = "/apis/example.com/v2/namespaces/default/things";

/// v1 has hostPort: "h:p", v2 has host and port.
class Converter : public WebhookTransport {
 public:
  WebhookReply post(const WebhookCall& call) override {
    calls.push_back(call);
    if (during) during();
    const Value review = json::parse(call.body).value();
    if (down) return {Error::unavailable("Post \"https://hooks/convert\": refused"), {}};
    if (!raw.empty()) {
      net::Response out;
      out.body = raw;
      return {out, {}};
    }
    Value objects = Value::array();
    for (const Value& object : review["request"]["objects"].items())
      objects.push(convert(object, review["request"]["desiredAPIVersion"].str()));
    Value response = Value::object({{"uid", review["request"]["uid"]},
                                    {"result", Value::object({{"status", "Success"}})},
                                    {"convertedObjects", std::move(objects)}});
    for (const auto& [key, value] : changes.members()) response.set(key, value);
    net::Response out;
    out.body = json::write(Value::object({{"kind", "ConversionReview"},
                                          {"apiVersion", review["apiVersion"]},
                                          {"response", std::move(response)}}));
    return {out, std::chrono::milliseconds(20)};
  }

  Value convert(Value object, const std::string& to) const {
    object.set("apiVersion", to);
    if (to == "example.com/v2" && object.contains("hostPort")) {
      const std::string both = object["hostPort"].str();
      object.erase("hostPort");
      object.set("host", both.substr(0, both.find(':')));
      object.set("port", both.substr(both.find(':') + 1));
    } else if (to == "example.com/v1") {
      object.set("hostPort", cat(object["host"].as_string(), ":", object["port"].as_string()));
      object.erase("host");
      object.erase("port");
    }
    if (change) change(object);
    return object;
  }
  std::size_t objects_of(std::size_t call) const {
    return json::parse(calls[call].body).value()["request"]["objects"].size();
  }

  std::vector<WebhookCall> calls;
  bool down = false;
  std::string raw;
  Value changes = Value::object();
  std::function<void(Value&)> change;
  std::function<void()> during;
};

Options with(std::shared_ptr<Converter> hook) {
  Options options;
  options.webhooks = std::move(hook);
  return options;
}

Value definition(std::string_view stored = "v1", std::string_view reviews = "['v1']") {
  Value out = from_text(
      "{'metadata':{'name':'things.example.com'},'spec':{'group':'example.com','scope':'Namespaced'"
      ",'names':{'plural':'things','singular':'thing','kind':'Thing','listKind':'ThingList'},"
      "'conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'url':'https://hooks/convert'}"
      "}},'versions':["
      "{'name':'v1','served':true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object',"
      "'properties':{'hostPort':{'type':'string'}}}},"
      "'selectableFields':[{'jsonPath':'.hostPort'}]},"
      "{'name':'v2','served':true,'storage':false,'schema':{'openAPIV3Schema':{'type':'object',"
      "'required':['host'],'properties':{'host':{'type':'string'},'port':{'type':'string'}}}},"
      "'selectableFields':[{'jsonPath':'.host'}]}]}}");
  Value versions = Value::array();
  for (Value version : out["spec"]["versions"].items()) {
    version.set("storage", version["name"].as_string() == stored);
    versions.push(std::move(version));
  }
  out.mut("spec").set("versions", std::move(versions));
  out.mut("spec")
      .mut("conversion")
      .mut("webhook")
      .set("conversionReviewVersions", from_text(reviews));
  return out;
}

class Conversion : public testing::Test {
 protected:
  explicit Conversion(std::string_view reviews = "['v1']")
      : hook(std::make_shared<Converter>()), api(with(hook)) {
    Reply made = api.post(kDefinitions, definition("v1", reviews));
    EXPECT_EQ(made.status, 201) << made.text;
  }
  Reply create(std::string_view name, std::string_view both = "h:1") {
    return api.post(kV1, Value::object({{"apiVersion", "example.com/v1"},
                                        {"kind", "Thing"},
                                        {"metadata", Value::object({{"name", name}})},
                                        {"hostPort", both}}));
  }
  Reply create_v2(std::string_view name) {
    return api.post(kV2, Value::object({{"apiVersion", "example.com/v2"},
                                        {"kind", "Thing"},
                                        {"metadata", Value::object({{"name", name}})},
                                        {"host", "x"},
                                        {"port", "9"}}));
  }
  void store_v2() {
    Value stored = api.get(kDefinition).body;
    Value next = definition("v2");
    next.mut("metadata").set("resourceVersion", stored["metadata"]["resourceVersion"]);
    Reply put = api.put(kDefinition, next);
    ASSERT_EQ(put.status, 200) << put.text;
  }
  std::string at(const char* kind, std::string_view name) { return cat(kind, "/", name); }

  std::shared_ptr<Converter> hook;
  TestServer api;
};

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

class LongConversion : public Conversion {
 protected:
  static constexpr int kObjects = 30;

  LongConversion() {
    for (int i = 0; i < kObjects; ++i)
      EXPECT_EQ(create(cat("n", 10 + i), cat("h:", std::string(100'000, 'x'))).status, 201);
    api.slow_streams = true;
  }
  std::size_t most_of_a_call() const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < hook->calls.size(); ++i) most = std::max(most, hook->objects_of(i));
    return most;
  }
};

TEST_F(LongConversion, of_a_list_is_asked_for_what_is_sent_next) {
  for (const char* query : {"", "?fieldSelector=host%3Dh"}) {
    hook->calls.clear();
    const Reply reply = api.get(cat(kV2, query));
    ASSERT_EQ(reply.status, 200) << reply.text.substr(0, 200);
    ASSERT_TRUE(reply.stream);
    EXPECT_FALSE(reply.stream->finished());
    EXPECT_LT(reply.stream->queued(), 600'000U);
    // A selection has to see them all first.
    if (*query == '\0') {
      EXPECT_LE(hook->calls.size(), 2U);
    }

    reply.stream->drain();
    api.sim.run_until_idle();

    EXPECT_TRUE(reply.stream->finished());
    const std::vector<Value> lists = reply.stream->take();
    ASSERT_EQ(lists.size(), 1U);
    EXPECT_EQ(lists[0]["items"].size(), 30U);
    for (const Value& item : lists[0]["items"].items()) {
      EXPECT_EQ(item["apiVersion"].as_string(), "example.com/v2");
      EXPECT_EQ(item["port"].as_string().size(), 100'000U);
    }
    EXPECT_LE(most_of_a_call(), 11U);
  }
}

TEST_F(LongConversion, that_is_down_is_told_before_a_list_begins) {
  hook->down = true;
  const Reply failed = api.get(kV2);
  EXPECT_EQ(failed.status, 500);
  EXPECT_THAT(failed.message(), HasSubstr("conversion webhook for"));

  hook->down = false;
  const Reply begun = api.get(kV2);
  ASSERT_TRUE(begun.stream);
  hook->down = true;
  begun.stream->drain();
  api.sim.run_until_idle();
  EXPECT_FALSE(begun.stream->finished()) << "it breaks off";
}

TEST_F(LongConversion, that_has_enough_to_do_is_waited_for_by_a_list) {
  const Reply reply = api.get(kV2);
  ASSERT_TRUE(reply.stream);
  int waiting = 0;
  hook->during = [&] {
    if (++waiting < 64) {
      api.get(at(kV2, "n10"));
    } else if (waiting == 64) {
      reply.stream->drain();
      api.sim.run_until_idle();
      EXPECT_FALSE(reply.stream->finished());
    }
  };
  api.get(at(kV2, "n10"));
  hook->during = nullptr;

  api.sim.run_for(std::chrono::seconds(1));

  EXPECT_TRUE(reply.stream->finished());
}

TEST_F(LongConversion, of_what_watches_begin_with_is_asked_for_what_is_sent_next) {
  std::vector<std::shared_ptr<test::FakeStream>> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(api.watch(cat(kV2, "?watch=true&fieldSelector=host%3Dh")));
    streams.push_back(api.watch(cat(kV2, "?watch=true")));
  }
  api.sim.run_for(std::chrono::seconds(1));
  EXPECT_LE(most_of_a_call(), 11U);
  for (const auto& stream : streams) EXPECT_LT(stream->queued(), 300'000U);

  for (const auto& stream : streams) stream->drain();
  api.sim.run_for(std::chrono::seconds(5));

  for (const auto& stream : streams) {
    const std::vector<Value> events = stream->take();
    ASSERT_EQ(events.size(), 30U);
    EXPECT_EQ(events[29]["object"]["port"].as_string().size(), 100'000U);
    EXPECT_FALSE(stream->finished());
  }
  EXPECT_LE(most_of_a_call(), 11U);
}

TEST_F(LongConversion, that_fails_ends_a_watch_that_begins) {
  const auto stream = api.watch(cat(kV2, "?watch=true"));
  api.sim.run_for(Duration{});
  hook->down = true;
  stream->drain();
  api.sim.run_for(std::chrono::seconds(1));

  const std::vector<Value> events = stream->take();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back()["type"].as_string(), "ERROR");
  EXPECT_TRUE(stream->finished());
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

TEST_F(Conversion, tells_watchers_in_their_version) {
  create("a");
  auto stream = api.watch(cat(kV2, "?watch=true"));
  api.sim.run_for(Duration{});
  std::vector<Value> events = stream->take();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["object"]["host"].as_string(), "h");

  create("b", "k:2");
  api.remove(at(kV1, "a"));
  api.sim.run_for(Duration{});

  events = stream->take();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["object"]["host"].as_string(), "k");
  EXPECT_EQ(events[1]["type"].as_string(), "DELETED");
  EXPECT_EQ(events[1]["object"]["apiVersion"].as_string(), "example.com/v2");
}

TEST_F(Conversion, is_asked_once_of_an_event_that_many_watch) {
  std::vector<std::shared_ptr<test::FakeStream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(api.watch(cat(kV2, "?watch=true")));
  hook->calls.clear();

  create("a", "k:2");
  api.sim.run_for(Duration{});

  for (const auto& stream : streams) {
    const std::vector<Value> events = stream->take();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0]["object"]["host"].as_string(), "k");
  }
  EXPECT_EQ(hook->calls.size(), 1U);
}

TEST_F(Conversion, that_has_enough_to_do_is_waited_for_by_watches) {
  create("a");
  const auto stream = api.watch(cat(kV2, "?watch=true"));
  api.sim.run_for(Duration{});
  stream->take();
  std::shared_ptr<test::FakeStream> late;
  // As many calls wait as may, while there is an event, and somebody begins to watch.
  int waiting = 0;
  hook->during = [&] {
    if (++waiting < 64) {
      api.get(at(kV2, "a"));
    } else if (waiting == 64) {
      EXPECT_EQ(api.get(at(kV2, "a")).status, 429);
      EXPECT_EQ(create("b").status, 201);
      late = api.watch(cat(kV2, "?watch=true"));
      api.sim.run_for(std::chrono::seconds(1));
      EXPECT_THAT(stream->take_short(), ElementsAre());
    }
  };
  api.get(at(kV2, "a"));
  hook->during = nullptr;

  api.sim.run_for(std::chrono::seconds(1));

  EXPECT_THAT(stream->take_short(), ElementsAre("ADDED b"));
  EXPECT_THAT(late->take_short(), ElementsAre("ADDED a", "ADDED b"));
  EXPECT_FALSE(stream->finished());
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

TEST_F(Conversion, tells_watchers_of_everything_before_the_end_of_the_definition) {
  create("a");
  auto stream = api.watch(cat(kV2, "?watch=true"));
  api.sim.run_for(Duration{});
  stream->take();

  api.remove(kDefinition);
  api.sim.run_for(std::chrono::seconds(5));

  EXPECT_THAT(stream->take_short(), ElementsAre("DELETED a"));
  EXPECT_TRUE(stream->finished());
}

TEST_F(Conversion, that_fails_ends_a_watch_with_its_words) {
  auto stream = api.watch(cat(kV2, "?watch=true"));
  hook->down = true;

  create("a");
  api.sim.run_for(Duration{});

  const std::vector<Value> events = stream->take();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["type"].as_string(), "ERROR");
  EXPECT_THAT(events[0]["object"]["message"].str(), HasSubstr("conversion webhook for"));
  EXPECT_TRUE(stream->finished());
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
