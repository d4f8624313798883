// Watches of a whole server under virtual time.
#include "server/watching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using test::config_map;
using test::FakeStream;
using test::kConfigMaps;
using test::Reply;
using test::TestServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class WatchTest : public testing::Test {
 protected:
  Value make(std::string_view name, std::string_view labels = "{}") {
    Value object = config_map(name);
    object.mut("metadata").set("labels", test::from_text(labels));
    Reply made = api.post(kConfigMaps, object);
    EXPECT_EQ(made.status, 201) << made.text;
    return made.body;
  }
  void change(std::string_view name, std::string_view patch) {
    Reply changed = api.patch(cat(kConfigMaps, "/", name), "merge", patch);
    EXPECT_EQ(changed.status, 200) << changed.text;
  }
  void remove(std::string_view name) {
    EXPECT_EQ(api.remove(cat(kConfigMaps, "/", name)).status, 200);
  }

  std::shared_ptr<FakeStream> watch(std::string_view query = "") {
    return api.watch(cat(kConfigMaps, "?watch=true", query.empty() ? "" : "&", query));
  }
  std::shared_ptr<FakeStream> watch_from_now(std::string_view query = "") {
    return watch(cat("resourceVersion=", api.store->revision(), query.empty() ? "" : "&", query));
  }
  std::string watchers() {
    const std::string text = api.get("/metrics").text;
    const std::string name = "\napiserver_registered_watchers ";
    const auto at = text.find(name);
    return at == std::string::npos
               ? ""
               : text.substr(at + name.size(), text.find('\n', at + 1) - at - name.size());
  }

  TestServer api;
};

TEST_F(WatchTest, begins_with_what_there_is) {
  make("a");
  make("b");

  auto stream = watch();

  EXPECT_THAT(stream->take_short(), ElementsAre("ADDED a", "ADDED b"));
  make("c");
  EXPECT_THAT(stream->take_short(), ElementsAre("ADDED c"));
}

TEST_F(WatchTest, from_a_version_shows_every_later_change_once) {
  make("a");
  auto stream = watch_from_now();
  EXPECT_THAT(stream->take_short(), IsEmpty());

  make("b");
  change("a", "{'data':{'k':'v'}}");
  remove("b");

  EXPECT_THAT(stream->take_short(), ElementsAre("ADDED b", "MODIFIED a", "DELETED b"));
}

TEST_F(WatchTest, carries_on_from_a_version_of_the_past) {
  Value first = make("a");
  make("b");
  change("a", "{'data':{'k':'v'}}");

  auto stream = watch(cat("resourceVersion=", first["metadata"]["resourceVersion"].str()));

  EXPECT_THAT(stream->take_short(), ElementsAre("ADDED b", "MODIFIED a"));
}

TEST_F(WatchTest, shows_objects_as_a_get_would) {
  auto stream = watch_from_now();
  Value object = make("a");

  auto events = stream->take();

  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0]["object"], object);
}

TEST_F(WatchTest, shows_a_deleted_object_at_the_version_of_its_deletion) {
  Value object = make("a");
  auto stream = watch_from_now();
  remove("a");

  auto events = stream->take();

  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0]["object"]["metadata"]["resourceVersion"].as_string(),
            cat(api.store->revision()));
  EXPECT_EQ(events[0]["object"]["metadata"]["uid"], object["metadata"]["uid"]);
}

TEST_F(WatchTest, sees_its_own_namespace_and_kind_alone) {
  api.add_namespace("other");
  auto here = watch_from_now();
  auto everywhere =
      api.watch(cat("/api/v1/configmaps?watch=1&resourceVersion=", api.store->revision()));

  make("a");
  api.post("/api/v1/namespaces/other/configmaps", config_map("b"));
  api.add_account("default");

  EXPECT_THAT(here->take_short(), ElementsAre("ADDED a"));
  EXPECT_THAT(everywhere->take_short(), ElementsAre("ADDED a", "ADDED b"));
}

TEST_F(WatchTest, marks_the_end_of_initial_events_at_their_version) {
  make("a");
  const auto revision = api.store->revision();

  auto stream =
      watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");

  auto events = stream->take();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0]["type"].as_string(), "ADDED");
  EXPECT_EQ(events[1]["type"].as_string(), "BOOKMARK");
  const Value& metadata = events[1]["object"]["metadata"];
  EXPECT_EQ(metadata["resourceVersion"].as_string(), cat(revision));
  EXPECT_EQ(metadata["annotations"]["k8s.io/initial-events-end"].as_string(), "true");
  EXPECT_EQ(events[1]["object"]["kind"].as_string(), "ConfigMap");
}

TEST_F(WatchTest, bookmarks_come_by_the_minute_and_before_the_end) {
  make("a");
  auto stream = watch_from_now("allowWatchBookmarks=true&timeoutSeconds=150");
  EXPECT_THAT(stream->take_short(), IsEmpty());
  api.add_account("default");

  api.sim.advance(seconds(59));
  EXPECT_THAT(stream->take_short(), IsEmpty());
  api.sim.advance(seconds(1));
  auto first = stream->take();
  ASSERT_THAT(first, SizeIs(1));
  EXPECT_EQ(first[0]["type"].as_string(), "BOOKMARK");
  EXPECT_EQ(first[0]["object"]["metadata"]["resourceVersion"].as_string(),
            cat(api.store->revision()))
      << "what happens elsewhere brings the watch forward too";
  EXPECT_FALSE(first[0]["object"]["metadata"].contains("annotations"));
  api.sim.advance(seconds(60));
  EXPECT_THAT(stream->take_short(), ElementsAre("BOOKMARK"));
  api.sim.advance(seconds(28));
  EXPECT_THAT(stream->take_short(), ElementsAre("BOOKMARK"));
  EXPECT_FALSE(stream->finished());
  api.sim.advance(seconds(2));
  EXPECT_TRUE(stream->finished());
}

TEST_F(WatchTest, sends_no_bookmarks_unasked) {
  auto stream = watch_from_now();

  api.sim.advance(minutes(10));

  EXPECT_THAT(stream->take_short(), IsEmpty());
}

TEST_F(WatchTest, shows_what_enters_and_leaves_the_selection) {
  make("a", "{'on':'yes'}");
  make("b", "{'on':'no'}");
  auto stream = watch("labelSelector=on%3Dyes");
  EXPECT_THAT(stream->take_short(), ElementsAre("ADDED a"));

  change("b", "{'metadata':{'labels':{'on':'yes'}}}");
  change("b", "{'data':{'k':'v'}}");
  change("b", "{'metadata':{'labels':{'on':'no'}},'data':{'k':'w'}}");
  change("b", "{'data':{'k':'x'}}");
  remove("b");
  remove("a");

  auto events = stream->take();
  ASSERT_THAT(events, SizeIs(4));
  EXPECT_EQ(events[0]["type"].as_string(), "ADDED");
  EXPECT_EQ(events[1]["type"].as_string(), "MODIFIED");
  EXPECT_EQ(events[2]["type"].as_string(), "DELETED");
  EXPECT_EQ(events[2]["object"]["data"]["k"].as_string(), "v") << "as it was when it was last seen";
  EXPECT_EQ(events[3]["object"]["metadata"]["name"].as_string(), "a");
}

TEST_F(WatchTest, may_be_of_one_object) {
  make("a");
  make("xa");
  auto by_field = watch("fieldSelector=metadata.name%3Da");
  auto by_path = api.watch("/api/v1/watch/namespaces/default/configmaps/a");

  make("b");
  change("a", "{'data':{'k':'v'}}");

  for (const auto& stream : {by_field, by_path}) {
    EXPECT_THAT(stream->take_short(), ElementsAre("ADDED a", "MODIFIED a"));
  }
}

TEST_F(WatchTest, ends_at_its_timeout) {
  auto stream = watch("timeoutSeconds=5");

  api.sim.advance(std::chrono::milliseconds(4999));
  EXPECT_FALSE(stream->finished());
  api.sim.advance(std::chrono::milliseconds(1));

  EXPECT_TRUE(stream->finished());
  make("a");
  EXPECT_THAT(stream->take_short(), IsEmpty());
}

TEST_F(WatchTest, lasts_where_its_timeout_is_longer_than_time) {
  for (const char* much : {"9223372036854775807", "9223372037", "18446744073"}) {
    auto stream = watch(cat("timeoutSeconds=", much));
    api.sim.advance(minutes(1));
    if (std::string_view(much) == "18446744073") api.sim.advance(minutes(60));
    EXPECT_FALSE(stream->finished()) << much;
  }
}

TEST_F(WatchTest, ends_by_itself_between_half_an_hour_and_an_hour) {
  auto stream = watch();

  api.sim.advance(minutes(30) - seconds(1));
  EXPECT_FALSE(stream->finished());
  api.sim.advance(minutes(30) + seconds(1));

  EXPECT_TRUE(stream->finished());
}

TEST_F(WatchTest, from_a_forgotten_version_is_told_so) {
  Value object = make("a");
  change("a", "{'data':{'k':'v'}}");
  ASSERT_TRUE(api.store->compact(api.store->revision()).ok());

  auto stream = watch(cat("resourceVersion=", object["metadata"]["resourceVersion"].str()));

  auto events = stream->take();
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0]["type"].as_string(), "ERROR");
  EXPECT_EQ(events[0]["object"]["code"].as_int(), 410);
  EXPECT_EQ(events[0]["object"]["reason"].as_string(), "Expired");
  EXPECT_THAT(events[0]["object"]["message"].str(),
              HasSubstr(cat("too old resource version: ",
                            object["metadata"]["resourceVersion"].str(), " (")));
  EXPECT_TRUE(stream->finished());
}

TEST_F(WatchTest, from_a_future_version_waits_for_it) {
  auto stream = watch(cat("resourceVersion=", api.store->revision() + 2));

  make("a");
  make("b");
  EXPECT_THAT(stream->take_short(), IsEmpty());
  make("c");

  EXPECT_THAT(stream->take_short(), ElementsAre("ADDED c"));
}

TEST_F(WatchTest, for_initial_events_of_the_future_times_out) {
  auto stream =
      watch(cat("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=",
                api.store->revision() + 100));

  EXPECT_THAT(stream->take_short(), ElementsAre("ERROR 504"));
  EXPECT_TRUE(stream->finished());
}

TEST_F(WatchTest, of_a_slow_client_holds_up_nobody) {
  auto slow = watch_from_now();
  auto quick = watch_from_now();
  slow->be_slow();
  const std::string large(400 * 1024, 'x');

  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    EXPECT_EQ(api.post(kConfigMaps, config_map(name, cat("{'k':'", large, "'}"))).status, 201);
  }

  EXPECT_THAT(quick->take(), SizeIs(6));
  EXPECT_THAT(slow->take(), SizeIs(testing::Lt(6U))) << "more than a megabyte is not queued";
  slow->drain();
  api.sim.run_until_idle();
  EXPECT_THAT(slow->take(), SizeIs(testing::Gt(0U)));
}

TEST_F(WatchTest, of_a_slow_client_goes_on_where_it_stood) {
  auto slow = watch_from_now();
  slow->be_slow();
  const std::string large(600 * 1024, 'x');
  for (const char* name : {"a", "b", "c", "d"})
    api.post(kConfigMaps, config_map(name, cat("{'k':'", large, "'}")));

  std::vector<std::string> seen = slow->take_short();
  EXPECT_THAT(seen, SizeIs(testing::Lt(4U)));
  slow->drain();
  api.sim.run_until_idle();
  for (std::string& event : slow->take_short()) seen.push_back(std::move(event));

  EXPECT_THAT(seen, ElementsAre("ADDED a", "ADDED b", "ADDED c", "ADDED d"));
}

TEST_F(WatchTest, sends_a_large_state_as_the_client_takes_it) {
  const std::string large(600 * 1024, 'x');
  for (const char* name : {"a", "b", "c", "d"}) {
    api.post(kConfigMaps, config_map(name, cat("{'k':'", large, "'}")));
  }
  api.slow_streams = true;
  auto slow = watch("allowWatchBookmarks=true");
  std::vector<std::string> seen = slow->take_short();
  EXPECT_THAT(seen, SizeIs(testing::Lt(4U))) << "more than a megabyte is not queued";

  change("d", "{'data':{'k':'v'}}");
  remove("c");
  slow->drain();
  api.sim.run_until_idle();
  for (std::string& event : slow->take_short()) seen.push_back(std::move(event));

  EXPECT_THAT(seen, ElementsAre("ADDED a", "ADDED b", "ADDED c", "ADDED d", "BOOKMARK",
                                "MODIFIED d", "DELETED c"));
}

TEST_F(WatchTest, goes_on_while_others_still_begin) {
  const std::string large(300 * 1024, 'x');
  for (const char* name : {"a", "b", "c"}) make(name);
  change("b", cat("{'data':{'k':'", large, "'}}"));
  auto begun = watch_from_now();
  api.slow_streams = true;
  std::vector<std::shared_ptr<FakeStream>> beginning;
  for (int i = 0; i < 20; ++i) beginning.push_back(watch());
  api.slow_streams = false;
  make("d");

  EXPECT_THAT(begun->take_short(), ElementsAre("ADDED d"));
  for (const auto& one : beginning) {
    std::vector<std::string> seen;
    for (int turns = 0; turns < 10; ++turns) {
      for (std::string& event : one->take_short()) seen.push_back(std::move(event));
      one->drain();
      api.sim.run_until_idle();
    }
    EXPECT_THAT(seen, ElementsAre("ADDED a", "ADDED b", "ADDED c", "ADDED d"));
  }
}

TEST_F(WatchTest, that_fell_behind_the_history_is_told_so) {
  auto slow = watch_from_now();
  slow->be_slow();
  const std::string large(600 * 1024, 'x');
  for (const char* name : {"a", "b", "c", "d"})
    api.post(kConfigMaps, config_map(name, cat("{'k':'", large, "'}")));
  slow->take();
  ASSERT_TRUE(api.store->compact(api.store->revision()).ok());

  slow->drain();
  api.sim.run_until_idle();

  EXPECT_THAT(slow->take_short(), ElementsAre("ERROR 410"));
  EXPECT_TRUE(slow->finished());
}

TEST_F(WatchTest, is_forgotten_when_its_client_goes) {
  auto stream = watch();
  auto other = watch();
  EXPECT_EQ(watchers(), "2");

  stream->hang_up();
  api.sim.run_until_idle();

  EXPECT_EQ(watchers(), "1");
  EXPECT_FALSE(stream->finished());
  make("a");
  EXPECT_THAT(other->take_short(), ElementsAre("ADDED a"));
}

TEST_F(WatchTest, ends_properly_when_the_server_closes) {
  auto stream = watch();

  api.server->close();
  api.sim.run_until_idle();

  EXPECT_TRUE(stream->finished());
}

TEST_F(WatchTest, as_a_table_describes_its_columns_once) {
  make("a");
  make("b");
  auto stream =
      api.watch(cat(kConfigMaps, "?watch=1"), "application/json;as=Table;v=v1;g=meta.k8s.io");

  auto events = stream->take();

  ASSERT_THAT(events, SizeIs(2));
  EXPECT_EQ(events[0]["object"]["kind"].as_string(), "Table");
  EXPECT_FALSE(events[0]["object"]["columnDefinitions"].empty());
  EXPECT_TRUE(events[1]["object"]["columnDefinitions"].empty());
  EXPECT_EQ(events[1]["object"]["rows"][0]["cells"][0].as_string(), "b");
}

TEST_F(WatchTest, of_rows_with_nobody_knows_what_is_refused_as_a_list_is) {
  constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";
  for (const char* query : {"?includeObject=All", "?watch=1&includeObject=All"}) {
    Reply reply = api.get(cat(kConfigMaps, query), kTable);
    EXPECT_EQ(reply.status, 400) << query;
    EXPECT_EQ(
        reply.message(),
        "Unable to convert to Table as requested: includeObject: Invalid value: \"All\": must "
        "be 'Metadata', 'Object', 'None', or empty");
  }
}

TEST_F(WatchTest, that_cannot_be_is_answered_at_once) {
  struct {
    const char* query;
    int status;
  } cases[] = {{"labelSelector=a%20b", 400},
               {"fieldSelector=data.x%3D1", 400},
               {"timeoutSeconds=x", 400},
               {"sendInitialEvents=true", 422},
               {"resourceVersionMatch=Exact&resourceVersion=1", 422}};
  for (const auto& one : cases) {
    Reply reply = api.get(cat(kConfigMaps, "?watch=true&", one.query));
    EXPECT_EQ(reply.status, one.status) << one.query << " " << reply.text;
    EXPECT_EQ(reply.stream, nullptr);
  }
  EXPECT_EQ(watchers(), "0");
}

}  // namespace
}  // namespace dibs::server
