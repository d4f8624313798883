#include "node/pods/eviction_rules.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "cluster/test_cluster.h"

namespace dibs::node {
namespace {

using cluster::test::from_text;
using json::Value;
using testing::HasSubstr;

constexpr std::uint64_t kMi = 1 << 20;

Value pod_of(const std::string& spec) { return from_text("{'spec': {" + spec + "}}"); }

PodUsage usage_of(std::uint64_t volume, std::uint64_t written, std::uint64_t logs) {
  PodUsage usage;
  usage.empty_dirs["v"] = volume;
  usage.containers = {{"c", written, logs}};
  return usage;
}

TEST(EvictionRules, say_which_limit_is_exceeded_in_the_words_of_the_kubelet) {
  const Value volume = pod_of("'volumes': [{'name': 'v', 'emptyDir': {'sizeLimit': '1Mi'}}]");
  EXPECT_EQ(exceeded_limit(volume, usage_of(kMi, 0, 0)), "");
  EXPECT_EQ(exceeded_limit(volume, usage_of(kMi + 1, 0, 0)),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");

  const Value container = pod_of(
      "'containers': [{'name': 'c', 'resources': {'limits': {'ephemeral-storage': '2Mi'}}},"
      "{'name': 'd', 'resources': {'limits': {'ephemeral-storage': '8Mi'}}}]");
  EXPECT_EQ(exceeded_limit(container, usage_of(4 * kMi, kMi, kMi)), "");
  EXPECT_EQ(exceeded_limit(container, usage_of(0, kMi, kMi + 1)),
            "Container c exceeded its local ephemeral storage limit \"2Mi\". ");
  EXPECT_EQ(exceeded_limit(container, usage_of(10 * kMi, kMi, 0)),
            "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ");
}

TEST(EvictionRules, measure_only_pods_that_have_limits) {
  EXPECT_FALSE(
      has_storage_limits(pod_of("'volumes': [{'name': 'v', 'emptyDir': {}}],"
                                "'containers': [{'name': 'c'}]")));
  EXPECT_TRUE(has_storage_limits(pod_of("'volumes': [{'emptyDir': {'sizeLimit': '1Mi'}}]")));
  EXPECT_TRUE(has_storage_limits(
      pod_of("'containers': [{'resources': {'limits': {'ephemeral-storage': '1Mi'}}}]")));
}

TEST(EvictionRules, read_thresholds_and_refuse_what_nobody_watches) {
  const auto read = parse_thresholds("nodefs.available<10%,imagefs.inodesFree<5");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_DOUBLE_EQ((*read)[0].part, 0.1);
  EXPECT_EQ((*read)[1].amount->value(), 5);
  EXPECT_TRUE(parse_thresholds("")->empty());
  for (const char* wrong : {"nodefs.available", "nodefs.available<ten", "nodefs.available<101%",
                            "memory.available<100Mi", "nodefs.available<-1",
                            "nodefs.available<1%,nodefs.available<2%"}) {
    EXPECT_FALSE(parse_thresholds(wrong).ok()) << wrong;
  }
}

TEST(EvictionRules, thresholds_are_met_below_them) {
  const auto thresholds = *parse_thresholds("nodefs.available<10%,imagefs.inodesFree<5%");
  const FileSystemRoom roomy{1000, 100, 100, 5};
  EXPECT_TRUE(met_thresholds(thresholds, roomy, roomy).empty());
  const auto met = met_thresholds(thresholds, {1000, 99, 100, 50}, {1000, 0, 100, 4});
  ASSERT_EQ(met.size(), 2u);
  EXPECT_EQ(met[0].resource(), "ephemeral-storage");
  EXPECT_EQ(met[0].threshold, 100);
  EXPECT_EQ(met[1].resource(), "inodes");
  // A file system that does not count them lacks none.
  EXPECT_TRUE(met_thresholds(thresholds, {1000, 999, 0, 0}, {1000, 999, 0, 0}).empty());
}

TEST(EvictionRules, who_takes_more_than_asked_for_goes_first) {
  const auto candidate = [](const std::string& name, int priority, const std::string& request,
                            std::uint64_t used) {
    return EvictionCandidate{
        from_text(cat("{'metadata': {'name': '", name, "'}, 'spec': {'priority': ", priority,
                      ", 'containers': [{'name': 'c', 'resources': {'requests': "
                      "{'ephemeral-storage': '",
                      request, "'}}}]}}")),
        usage_of(0, used, 0)};
  };
  std::vector<EvictionCandidate> pods = {
      candidate("modest", 0, "10Mi", 9 * kMi), candidate("important", 5, "0", 9 * kMi),
      candidate("large", 0, "1Mi", 5 * kMi), candidate("largest", 0, "1Mi", 7 * kMi)};
  MetThreshold met;
  met.threshold = 10 << 20;
  met.available = 3 << 20;
  rank_for_eviction(pods, met);

  std::vector<std::string> names;
  for (const auto& pod : pods) names.push_back(pod.pod["metadata"]["name"].str());
  EXPECT_THAT(names, testing::ElementsAre("largest", "large", "important", "modest"));
  EXPECT_EQ(eviction_message(pods[0], met),
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10Mi, available: "
            "3Mi. Container c was using 7Mi, request is 1Mi, has larger consumption of "
            "ephemeral-storage. ");
  EXPECT_TRUE(is_critical(from_text("{'spec': {'priority': 2000000000}}")));
  EXPECT_FALSE(is_critical(pods[0].pod));
}

}  // namespace
}  // namespace dibs::node
