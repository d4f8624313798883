#include "node/pods/node_disk.h"

#include <gmock/gmock.h>

#include "node/pods/pod_test_node.h"

namespace dibs::node {
namespace {

using json::Value;
using std::chrono::minutes;
using std::chrono::seconds;
using test::TestNode;
using testing::Contains;
using testing::HasSubstr;

/// A node with a disk of a hundred Mi.
class NodeDiskTest : public testing::Test {
 protected:
  NodeDiskTest() {
    agent_options_.machine.memory_bytes = 1 << 30;
    object_ =
        std::make_unique<NodeObject>(node_.agent->client, node_.sim.runtime(),
                                     *node_.agent->recorder, node_.agent->facts, agent_options_);
    object_->start();
    NodeDiskOptions options;
    options.images = "/images";
    options.thresholds = *parse_thresholds("nodefs.available<10%");
    options.room = [this](const std::string&) {
      std::uint64_t used = short_;
      for (const auto& [uid, amount] : used_) {
        if (node_.agent->workers->is_active(uid)) used += amount;
      }
      return FileSystemRoom{100 << 20, (100 << 20) - used, 0, 0};
    };
    options.usage = [this](const Value& pod, UsageUnit) {
      ++measured_;
      PodUsage usage;
      usage.containers = {{"c", used_[std::string(uid_of(pod))], 0}};
      usage.empty_dirs["v"] = used_[std::string(uid_of(pod))];
      return usage;
    };
    disk_ = std::make_unique<NodeDisk>(node_.sim.runtime(), node_.agent->containers,
                                       *node_.agent->workers, *object_, *node_.agent->recorder,
                                       node_.agent->facts, std::move(options));
    disk_->start();
    node_.settle();
  }
  ~NodeDiskTest() override {
    disk_->stop();
    object_->stop();
  }

  std::string pod(const std::string& name, const std::string& spec, std::uint64_t used) {
    const Value made = node_.create(name, spec);
    node_.settle();
    used_[made["metadata"]["uid"].str()] = used;
    return made["metadata"]["uid"].str();
  }
  std::string pressure() {
    const Value object = object_->object();
    for (const Value& condition : object["status"]["conditions"].items()) {
      if (condition["type"].as_string() == "DiskPressure") return condition["status"].str();
    }
    return "none";
  }

  TestNode node_;
  NodeOptions agent_options_;
  std::unique_ptr<NodeObject> object_;
  std::unique_ptr<NodeDisk> disk_;
  std::map<std::string, std::uint64_t> used_;
  int measured_ = 0;
  std::uint64_t short_ = 0;  // taken by what is no pod
};

TEST_F(NodeDiskTest, evicts_a_pod_that_exceeds_its_limit) {
  const std::string limited =
      "'volumes': [{'name': 'v', 'emptyDir': {'sizeLimit': '1Mi'}}], 'containers': [{'name': 'c'}]";
  pod("greedy", limited, 2 << 20);
  pod("modest", limited, 1 << 20);
  pod("free", "'containers': [{'name': 'c'}]", 50 << 20);
  node_.settle(seconds(12));

  const Value status = node_.pod("greedy")["status"];
  EXPECT_EQ(status["phase"].as_string(), "Failed");
  EXPECT_EQ(status["reason"].as_string(), "Evicted");
  EXPECT_EQ(status["message"].as_string(),
            "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ");
  EXPECT_THAT(node_.events("greedy"),
              Contains("Warning Evicted: Usage of EmptyDir volume \"v\" exceeds the limit "
                       "\"1Mi\". "));
  EXPECT_EQ(node_.condition("greedy", "DisruptionTarget"), "");
  EXPECT_EQ(node_.line("modest"), "Running; c running ready");
  EXPECT_EQ(node_.line("free"), "Running; c running ready");
  EXPECT_THAT(node_.machine.log, Contains("stop c 1"));
  // Nothing of it takes room any more, and another agent does not forget how it ended.
  EXPECT_EQ(node_.machine.containers.size(), 2u);
  EXPECT_EQ(measured_, 2);
}

TEST_F(NodeDiskTest, sends_pods_away_one_by_one_when_the_disk_is_short) {
  pod("small", "'containers': [{'name': 'c'}]", 20 << 20);
  pod("large", "'containers': [{'name': 'c'}]", 40 << 20);
  pod("important", "'priorityClassName': 'system-cluster-critical', 'containers': [{'name': 'c'}]",
      35 << 20);
  node_.settle(seconds(12));

  EXPECT_EQ(node_.pod("large")["status"]["phase"].as_string(), "Failed");
  EXPECT_EQ(node_.pod("large")["status"]["message"].as_string(),
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10Mi, available: "
            "5Mi. Container c was using 40Mi, request is 0, has larger consumption of "
            "ephemeral-storage. ");
  EXPECT_THAT(node_.condition("large", "DisruptionTarget"),
              HasSubstr("True TerminationByKubelet: The node was low on resource"));
  EXPECT_EQ(node_.line("small"), "Running; c running ready");
  EXPECT_EQ(node_.line("important"), "Running; c running ready");
  EXPECT_EQ(pressure(), "True");
  EXPECT_TRUE(disk_->under_pressure());

  // There is room again, but the node waits before it says so.
  node_.settle(minutes(4));
  EXPECT_EQ(pressure(), "True");
  node_.settle(minutes(2));
  EXPECT_EQ(pressure(), "False");
  EXPECT_EQ(node_.line("small"), "Running; c running ready");
}

TEST_F(NodeDiskTest, throws_unused_images_away_before_pods) {
  const auto image = [](const std::string& id, bool pinned) {
    ImageInfo info;
    info.id = id;
    info.pinned = pinned;
    info.size = 30 << 20;
    return info;
  };
  pod("large", "'containers': [{'name': 'c'}]", 0);
  // The container's image, as the fake runtime shows it.
  node_.machine.stored = {image("sha256:busybox:1.36", false), image("old", false),
                          image("imported", true)};
  node_.settle(minutes(3));
  node_.machine.stored.push_back(image("young", false));
  EXPECT_EQ(node_.machine.stored.size(), 4u);

  short_ = 95 << 20;
  node_.machine.on_remove_image = [this] { short_ = 0; };
  node_.settle(seconds(12));
  std::vector<std::string> left;
  for (const auto& stored : node_.machine.stored) left.push_back(stored.id);
  EXPECT_THAT(left, testing::ElementsAre("sha256:busybox:1.36", "imported", "young"));
  EXPECT_EQ(node_.line("large"), "Running; c running ready");
}

TEST(PodWorkers, take_no_pod_under_disk_pressure_but_critical_ones) {
  TestNode node;
  node.disk_pressure = true;
  node.create("a", "'containers': [{'name': 'c'}]");
  node.settle();
  EXPECT_EQ(node.pod("a")["status"]["reason"].as_string(), "Evicted");
  EXPECT_EQ(node.pod("a")["status"]["message"].as_string(),
            "Pod was rejected: The node had condition: [DiskPressure]. ");
}

TEST(PodWorkers, remember_over_a_restart_why_a_pod_was_evicted) {
  TestNode node;
  const Value made = node.create("a", "'containers': [{'name': 'c'}]");
  node.settle();
  node.agent->workers->evict(made["metadata"]["uid"].str(), {"It was too large. ", false});
  node.settle(seconds(5));
  EXPECT_EQ(node.line("a"), "Failed; c Error(143)");
  EXPECT_TRUE(node.machine.sandboxes.empty());

  node.end_agent();
  node.start_agent();
  node.settle(seconds(5));
  EXPECT_EQ(node.line("a"), "Failed; c Error(143)");
  EXPECT_EQ(node.pod("a")["status"]["message"].as_string(), "It was too large. ");
}

}  // namespace
}  // namespace dibs::node
