// Informers of one process, and the server in it, keep an object once.
#include <gtest/gtest.h>

#include "client/informer.h"
#include "cluster/test_cluster.h"

namespace dibs::controllers {
namespace {

using client::Informer;

const client::Gvr kMaps{"", "v1", "configmaps"};

struct SharedTrees : testing::Test, cluster::test::TestCluster {
  ~SharedTrees() override {
    watched.clear();
    close();
  }
  Informer& watch(bool metadata_only = false) {
    client::InformerOptions options{.gvr = kMaps, .metadata_only = metadata_only};
    watched.push_back(std::make_unique<Informer>(*api, sim.runtime(), options));
    watched.back()->start();
    sim.run_until_idle();
    return *watched.back();
  }
  void make(const std::string& name) {
    create(kMaps, "default",
           "{'metadata':{'name':'" + name +
               "','labels':{'app.kubernetes.io/name':'x'}},'data':{'k':'a value of some length'}}");
    sim.run_until_idle();
  }
  std::vector<std::unique_ptr<Informer>> watched;
};

TEST_F(SharedTrees, one_for_all_informers) {
  make("before");
  Informer& one = watch();
  make("after");
  Informer& two = watch();
  make("last");
  for (const char* key : {"default/before", "default/after", "default/last"}) {
    const auto first = one.get(key);
    const auto second = two.get(key);
    ASSERT_TRUE(first && second) << key;
    EXPECT_TRUE(first->same_node(*second)) << key;
    EXPECT_FALSE((*first)["metadata"].contains("managedFields"));
    EXPECT_EQ((*first)["kind"], "ConfigMap");
    EXPECT_EQ((*first)["apiVersion"], "v1");
  }
  EXPECT_TRUE((*one.get("default/after"))["data"].same_node((*two.get("default/last"))["data"]));
  const auto whole = get(kMaps, "default", "after");
  EXPECT_TRUE(whole["metadata"].contains("managedFields"));
}

TEST_F(SharedTrees, metadata_is_that_of_the_whole_object) {
  Informer& whole = watch();
  Informer& part = watch(true);
  make("a");
  const auto object = whole.get("default/a");
  const auto metadata = part.get("default/a");
  ASSERT_TRUE(object && metadata);
  EXPECT_EQ((*metadata)["kind"], "PartialObjectMetadata");
  EXPECT_EQ(metadata->size(), 3U);
  EXPECT_TRUE((*object)["metadata"].same_node((*metadata)["metadata"]));
}

TEST_F(SharedTrees, a_change_and_an_end_are_seen) {
  Informer& one = watch();
  make("a");
  auto object = get(kMaps, "default", "a");
  object.mut("data").set("k", "changed");
  const auto before = one.get("default/a");
  ASSERT_TRUE(api->update(kMaps, "default", object).ok());
  sim.run_until_idle();
  EXPECT_EQ((*before)["data"]["k"], "a value of some length");
  EXPECT_EQ((*one.get("default/a"))["data"]["k"], "changed");
  ASSERT_TRUE(api->remove(kMaps, "default", "a").ok());
  sim.run_until_idle();
  EXPECT_FALSE(one.get("default/a"));
}

TEST_F(SharedTrees, a_refusal_says_what_it_says_to_others) {
  const auto absent = api->get(kMaps, "default", "absent");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code(), Code::not_found);
  EXPECT_EQ(absent.error().message(), "configmaps \"absent\" not found");
}

}  // namespace
}  // namespace dibs::controllers
