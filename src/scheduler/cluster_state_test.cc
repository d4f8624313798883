#include "scheduler/cluster_state.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::scheduler {
namespace {

PodPtr make_pod(bool going) {
  return Pod::read(json::parse(going ? R"({"metadata":{"name":"p","namespace":"ns","uid":"u",
                              "deletionTimestamp":"2024-01-01T00:00:00Z","labels":{"app":"x"}}})"
                                     : R"({"metadata":{"name":"p","namespace":"ns","uid":"u",
                              "labels":{"app":"x"}}})")
                       .value());
}

TEST(ClusterState, leaves_pods_that_go_out_of_what_spreading_counts) {
  ClusterState state;
  state.put_node(json::parse(R"({"metadata":{"name":"n"}})").value());
  const auto selector =
      api::to_label_selector(json::parse(R"({"matchLabels":{"app":"x"}})").value()).value();
  const auto count = [&] {
    const auto& counts = state.selected_by_node("ns", selector);
    return counts.empty() ? 0 : counts.begin()->second;
  };
  EXPECT_EQ(count(), 0);
  state.add_pod(make_pod(false), "n");
  EXPECT_EQ(count(), 1);

  state.add_pod(make_pod(true), "n");
  EXPECT_EQ(count(), 0);

  state.remove_pod("ns/p");
  EXPECT_EQ(count(), 0);
  state.add_pod(make_pod(false), "n");
  EXPECT_EQ(count(), 1);
}

TEST(ClusterState, believes_no_image_to_be_larger_than_a_disk) {
  ClusterState state;
  state.put_node(json::parse(R"({"metadata":{"name":"n"},"status":{"images":[
                     {"names":["a:1"],"sizeBytes":9223372036854775807},
                     {"names":["b:1"],"sizeBytes":-5},{"names":["c:1"],"sizeBytes":7}]}})")
                     .value());
  EXPECT_EQ(state.image("a:1")->size, std::int64_t{1} << 47);
  EXPECT_EQ(state.image("b:1")->size, 0);
  EXPECT_EQ(state.image("c:1")->size, 7);
}

}  // namespace
}  // namespace dibs::scheduler
