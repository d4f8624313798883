#include "client/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/testing/fake_api.h"

namespace dibs::client {
namespace {

TEST(ObjectStore, keeps_indexes_true) {
  ObjectStore store;
  store.put("a/x", fake_pod("a", "x", "n1"));
  store.add_index("namespace", index_by_namespace);
  store.add_index("node", [](const json::Value& pod) {
    return std::vector<std::string>{pod["spec"]["nodeName"].str()};
  });
  EXPECT_EQ(store.by_index("node", "n1").size(), 1U);

  const auto before = store.put("a/x", fake_pod("a", "x", "n2"));
  ASSERT_TRUE(before.has_value());
  EXPECT_EQ((*before)["spec"]["nodeName"].as_string(), "n1");
  store.put("b/y", fake_pod("b", "y", "n2"));
  EXPECT_EQ(store.by_index("node", "n1").size(), 0U);
  EXPECT_EQ(store.by_index("node", "n2").size(), 2U);
  EXPECT_EQ(store.by_index("namespace", "b").size(), 1U);

  EXPECT_TRUE(store.remove("a/x").has_value());
  EXPECT_FALSE(store.remove("a/x").has_value());
  EXPECT_EQ(store.by_index("node", "n2").size(), 1U);
  EXPECT_EQ(store.size(), 1U);
}

TEST(ObjectStore, finds_one_and_several_by_one_value) {
  ObjectStore store;
  store.add_index("node", [](const json::Value& pod) {
    return std::vector<std::string>{pod["spec"]["nodeName"].str()};
  });
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& pod : store.by_index("node", "n"))
      out.push_back(pod["metadata"]["name"].str());
    return out;
  };
  EXPECT_THAT(names(), testing::IsEmpty());
  for (const char* name : {"c", "a", "b"}) {
    store.put(std::string("s/") + name, fake_pod("s", name, "n"));
  }
  EXPECT_THAT(names(), testing::ElementsAre("a", "b", "c"));
  store.put("s/b", fake_pod("s", "b", "other"));
  store.put("s/b", fake_pod("s", "b", "n"));
  store.remove("s/a");
  EXPECT_THAT(names(), testing::ElementsAre("b", "c"));
  store.remove("s/c");
  EXPECT_THAT(names(), testing::ElementsAre("b"));
  store.remove("s/b");
  EXPECT_THAT(names(), testing::IsEmpty());
  store.put("s/a", fake_pod("s", "a", "n"));
  EXPECT_THAT(names(), testing::ElementsAre("a"));
}

}  // namespace
}  // namespace dibs::client
