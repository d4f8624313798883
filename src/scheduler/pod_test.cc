#include "scheduler/pod.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "scheduler/cluster_state.h"
#include "scheduler/pod_shapes.h"

namespace dibs::scheduler {
namespace {

PodShapes shapes;

PodPtr read(std::string_view name, std::string_view labels = "{}", std::string_view spec = "{}",
            std::string_view name_space = "ns") {
  auto object = json::parse(cat(R"({"metadata":{"name":")", name, R"(","namespace":")", name_space,
                                R"(","uid":"uid-of-)", name, R"(","labels":)", labels,
                                R"(},"spec":)", spec, "}"));
  EXPECT_TRUE(object.ok()) << spec;
  return Pod::read(*object, shapes);
}

constexpr const char* kSpec =
    R"({"containers":[{"name":"c","image":"a","resources":{"requests":{"cpu":"1"}}}],
        "tolerations":[{"key":"k","operator":"Exists"}],"nodeSelector":{"zone":"z"}})";

TEST(Pod, says_who_it_is) {
  const PodPtr pod = read("a", "{}", R"({"nodeName":"n","priority":7})");
  EXPECT_EQ(pod->key, "ns/a");
  EXPECT_EQ(pod->name, "a");
  EXPECT_EQ(pod->name_space, "ns");
  EXPECT_EQ(pod->uid, "uid-of-a");
  EXPECT_EQ(pod->node_name, "n");
  EXPECT_EQ(pod->priority, 7);
  EXPECT_EQ(pod->nominated_node(), "");
}

TEST(Pod, shares_its_shape_with_equal_ones) {
  const PodPtr first = read("a", "{}", kSpec);
  EXPECT_EQ(first->shape->requests.cpu, 1000);
  EXPECT_EQ(first->shape->tolerations.size(), 1U);

  EXPECT_EQ(read("b", "{}", kSpec)->shape, first->shape);
  EXPECT_EQ(read("a", R"({"index":"1"})", kSpec)->shape, first->shape) << "labels are its own";
  std::string bound = kSpec;
  bound.insert(1, R"("nodeName":"n",)");
  EXPECT_EQ(read("a", "{}", bound)->shape, first->shape) << "where it is is its own";
  std::string other_image = kSpec;
  other_image.replace(other_image.find(R"("a")"), 3, R"("b")");
  EXPECT_EQ(read("a", "{}", other_image)->shape, first->shape) << "images are not looked at";
}

TEST(Pod, has_a_shape_of_its_own_where_it_asks_for_something_else) {
  const PodPtr first = read("a", "{}", kSpec);
  for (const char* more :
       {R"("priority":1,)", R"("schedulerName":"s",)", R"("overhead":{"cpu":"1"},)",
        R"("resourceClaims":[{"name":"r","resourceClaimName":"c"}],)",
        R"("initContainers":[{"resources":{"requests":{"cpu":"2"}}}],)",
        R"("resources":{"requests":{"cpu":"3"}},)"}) {
    std::string spec = kSpec;
    spec.insert(1, more);
    EXPECT_NE(read("a", "{}", spec)->shape, first->shape) << more;
  }
  EXPECT_NE(read("a", "{}", kSpec, "other")->shape, first->shape);
  std::string spec = kSpec;
  spec.replace(spec.find(R"("cpu":"1")"), 9, R"("cpu":"2")");
  EXPECT_NE(read("a", "{}", spec)->shape, first->shape);
}

TEST(Pod, with_constraints_on_its_own_labels_has_a_shape_by_them) {
  const char* spec = R"({"topologySpreadConstraints":[{"topologyKey":"zone","labelSelector":{},
                          "matchLabelKeys":["hash"]}]})";
  const PodPtr a = read("a", R"({"hash":"1"})", spec);
  const PodPtr b = read("b", R"({"hash":"2"})", spec);
  EXPECT_NE(a->shape, b->shape);
  EXPECT_TRUE(a->shape->spread.at(0).selector.matches(a->labels));
  EXPECT_FALSE(a->shape->spread.at(0).selector.matches(b->labels));
}

TEST(Pod, signature_tells_labels_apart) {
  const PodPtr a = read("a", R"({"l":"1"})", kSpec);
  const PodPtr b = read("b", R"({"l":"2"})", kSpec);
  EXPECT_NE(a->signature(), b->signature());
  EXPECT_FALSE(a->same_signature(*b));
  EXPECT_TRUE(a->same_signature(*read("c", R"({"l":"1"})", kSpec)));
}

TEST(Pod, shapes_go_with_the_last_pod_that_has_them) {
  std::weak_ptr<const PodShape> gone = read("a", "{}", R"({"schedulerName":"gone"})")->shape;
  EXPECT_TRUE(gone.expired());
  for (int i = 0; i < 1000; ++i) read("a", "{}", cat(R"({"priority":)", i, "}"));
  EXPECT_NE(read("a", "{}", R"({"schedulerName":"gone"})")->shape, nullptr);
}

// A sum past the largest number would be negative: the pod would fit anywhere, and take nothing of
// its node but give it room.
TEST(Pod, that_asks_for_more_than_can_be_counted_asks_for_very_much) {
  for (const char* resource : {"cpu", "memory", "ephemeral-storage", "example.com/gpu"}) {
    const std::string one =
        cat(R"({"name":"c","image":"a","resources":{"requests":{")", resource, R"(":"9000P"}}})");
    std::string list = one;
    for (int i = 0; i < 2000; ++i) append(list, ",", one);
    for (const char* spec : {"containers", "initContainers"}) {
      const PodPtr pod =
          read("a", "{}",
               cat("{\"", spec, "\":[", list, R"(],"overhead":{")", resource, R"(":"9000P"}})"));
      EXPECT_GT(pod->shape->requests.amount(resource), 100'000'000'000'000) << resource;
      Resources of_node;
      for (int i = 0; i < 10'000; ++i) of_node.add(pod->shape->requests);
      EXPECT_GT(of_node.amount(resource), pod->shape->requests.amount(resource)) << resource;
    }
  }
}

TEST(ClusterState, counts_a_pod_once_however_often_it_comes) {
  ClusterState state;
  auto node = json::parse(R"({"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"8"}}})");
  state.put_node(*node);
  NodeInfo* info = state.find("n");
  ASSERT_NE(info, nullptr);
  for (const char* name : {"b", "a", "b", "c", "a"}) state.add_pod(read(name, "{}", kSpec), "n");
  EXPECT_EQ(info->requested.cpu, 3000);
  ASSERT_EQ(info->pods.size(), 3U);
  EXPECT_EQ(info->pods[0]->name, "a");
  EXPECT_EQ(info->pods[2]->name, "c");
  EXPECT_EQ(state.node_of("ns/a"), info);
  EXPECT_EQ(state.counted("ns/b")->name, "b");

  state.add_pod(read("a", "{}", "{}"), "n");
  EXPECT_EQ(info->requested.cpu, 2000) << "another demand";
  state.add_pod(read("b", "{}", kSpec), "elsewhere");
  EXPECT_EQ(info->requested.cpu, 1000);
  EXPECT_EQ(state.node_of("ns/b")->name, "elsewhere");
  EXPECT_TRUE(state.remove_pod("ns/c"));
  EXPECT_FALSE(state.remove_pod("ns/c"));
  EXPECT_EQ(state.counted("ns/c"), nullptr);
  EXPECT_EQ(info->requested.cpu, 0);
  EXPECT_EQ(state.pod_count(), 2U);
}

}  // namespace
}  // namespace dibs::scheduler
