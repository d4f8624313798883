// Watches, and lists that are long, of a kind whose versions a webhook converts: what is asked of
// it while they go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "server/conversion_for_test.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::Reply;
using testing::ElementsAre;
using testing::HasSubstr;

class WatchConversion : public Conversion {};

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

TEST_F(WatchConversion, tells_watchers_in_their_version) {
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

TEST_F(WatchConversion, is_asked_once_of_an_event_that_many_watch) {
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

TEST_F(WatchConversion, that_has_enough_to_do_is_waited_for_by_watches) {
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

TEST_F(WatchConversion, tells_watchers_of_everything_before_the_end_of_the_definition) {
  create("a");
  auto stream = api.watch(cat(kV2, "?watch=true"));
  api.sim.run_for(Duration{});
  stream->take();

  api.remove(kDefinition);
  api.sim.run_for(std::chrono::seconds(5));

  EXPECT_THAT(stream->take_short(), ElementsAre("DELETED a"));
  EXPECT_TRUE(stream->finished());
}

TEST_F(WatchConversion, that_fails_ends_a_watch_with_its_words) {
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

}  // namespace
}  // namespace dibs::server
