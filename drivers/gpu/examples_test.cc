// Runs the manifests of examples/gpu in a cluster of one thread: API server, controllers, scheduler
// and driver. The node's agent is played by the test, which has every allocated claim prepared.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "base/strings.h"
#include "driver/test_world.h"
#include "drivers/gpu/gpu_driver.h"
#include "json/yaml.h"

namespace dibs::drivers {
namespace {

using driver::ClaimName;
using driver::test::from_text;
using driver::test::kClaims;
using driver::test::TestWorld;
using json::Value;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const client::Gvr kPods = {"", "v1", "pods"};

std::filesystem::path examples_folder() {
  for (auto at = std::filesystem::current_path(); at != at.root_path(); at = at.parent_path()) {
    if (std::filesystem::exists(at / "examples/gpu")) return at / "examples/gpu";
  }
  return {};
}

client::Gvr resource_of(const Value& object) {
  const std::string version = object["apiVersion"].str();
  const std::size_t slash = version.find('/');
  client::Gvr gvr;
  if (slash != std::string::npos) gvr.group = version.substr(0, slash);
  gvr.version = slash == std::string::npos ? version : version.substr(slash + 1);
  gvr.resource = cat(to_lower(object["kind"].as_string()), "s");
  return gvr;
}

class Cluster {
 public:
  explicit Cluster(const std::function<void(GpuDriverOptions&)>& change = {})
      : world(controllers_and_scheduler()) {
    Value node = *world.api->get(driver::test::kNodes, "", "node-0");
    node.set("status", from_text(R"({'capacity': {'cpu': '8', 'memory': '8Gi', 'pods': '110'},
        'allocatable': {'cpu': '8', 'memory': '8Gi', 'pods': '110'},
        'conditions': [{'type': 'Ready', 'status': 'True', 'reason': 'KubeletReady'}]})"));
    EXPECT_TRUE(world.api->update_status(driver::test::kNodes, "", node).ok());
    GpuDriverOptions driver_options = options_for_node("node-0", "/node");
    if (change) change(driver_options);
    auto started = start_gpu_driver(world.environment(), driver_options);
    EXPECT_TRUE(started.ok());
    driver = std::move(started).value();
    world.settle();
  }

  static cluster::Options controllers_and_scheduler() {
    cluster::Options options;
    options.server.ca_pem = "CA";
    options.controllers.emplace();
    options.scheduler.emplace();
    return options;
  }

  void apply(const std::string& name) {
    std::ifstream file(examples_folder() / (name + ".yaml"), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    auto documents = json::parse_yaml_stream(text);
    ASSERT_TRUE(documents.ok()) << documents.error().message();
    for (const auto& object : *documents) {
      auto made = world.api->create(resource_of(object),
                                    object["metadata"]["namespace"].as_string(), object);
      ASSERT_TRUE(made.ok()) << made.error().message();
      // A namespace gets the account that its pods run as.
      world.settle(std::chrono::milliseconds(100));
    }
    world.settle(std::chrono::seconds(3));
  }

  Value pod(const std::string& name_space, const std::string& name) {
    auto found = world.api->get(kPods, name_space, name);
    return found ? *found : Value();
  }
  std::vector<Value> claims(const std::string& name_space) {
    auto listed = world.api->list(kClaims, name_space);
    return listed ? listed->items : std::vector<Value>();
  }

  /// What containers with the claim see, without what all of them do; one text per device.
  std::vector<std::string> environments(const std::string& name_space) {
    std::vector<std::string> out;
    for (const auto& claim : claims(name_space)) {
      const ClaimName name = TestWorld::name_of(claim);
      const auto response = world.prepare(*driver.plugin, {name});
      if (!world.status.ok()) {
        out.push_back(world.status.message);
        continue;
      }
      EXPECT_EQ(response.claims().at(name.uid).error(), "");
      const auto files = world.files->list("/node/cdi");
      for (const auto& file : *files) {
        if (file.find(name.uid) == std::string::npos) continue;
        const auto spec = json::parse_yaml(*world.files->read(cat("/node/cdi/", file)));
        for (const auto& device : (*spec)["devices"].items()) {
          std::string text;
          for (const auto& line : device["containerEdits"]["env"].items()) {
            if (line.as_string().find("_RESOURCE_CLAIM=") != std::string_view::npos) continue;
            append(text, text.empty() ? "" : " ", line.as_string());
          }
          out.push_back(text);
        }
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  TestWorld world;
  driver::Running driver;
};

std::string plain(int gpu) {
  const std::string id = cat("GPU_DEVICE_", gpu);
  return cat("DRA_ADMIN_ACCESS=false ", id, "=gpu-", gpu, " ", id, "_SHARING_STRATEGY=TimeSlicing ",
             id, "_TIMESLICE_INTERVAL=Default");
}

std::string part(const std::string& id, const std::string& more) {
  std::string device = to_lower(id);
  std::replace(device.begin(), device.end(), '_', '-');
  return cat("DRA_ADMIN_ACCESS=false GPU_DEVICE_", id, "=gpu-", device, " GPU_DEVICE_", id,
             "_SHARING_STRATEGY=TimeSlicing GPU_DEVICE_", id, "_TIMESLICE_INTERVAL=Default", more);
}

struct Example {
  const char* name;
  std::function<void(GpuDriverOptions&)> options;
  std::size_t claims;
  std::vector<std::string> environments;
};

std::vector<Example> examples() {
  const auto partitions = [](GpuDriverOptions& options) { options.gpu_partitions = 4; };
  const auto multiple = [](GpuDriverOptions& options) {
    options.gpu_allow_multiple_allocations = true;
  };
  const auto both = [](GpuDriverOptions& options) {
    options.gpu_partitions = 4;
    options.gpu_allow_multiple_allocations = true;
  };
  const auto profile = [](const char* name) {
    return
        [name](GpuDriverOptions& options) { options = options_for_node("node-0", "/node", name); };
  };
  std::vector<std::string> all;
  for (int i = 0; i < 8; ++i) {
    std::string text = plain(i);
    all.push_back(text.replace(0, 23, "DRA_ADMIN_ACCESS=true "));
  }
  const std::string net = "DRA_ADMIN_ACCESS=false NET_DEVICE_0_INGRESS_RATE=";
  return {
      {"basic-resourceclaimtemplate", {}, 2, {plain(0), plain(1)}},
      {"basic-multiple-requests", {}, 1, {plain(0), plain(1)}},
      {"basic-shared-claim-across-containers", {}, 1, {plain(0)}},
      {"basic-shared-claim-across-pods", {}, 1, {plain(0)}},
      {"basic-resourceclaim-opaque-config",
       {},
       1,
       {"DRA_ADMIN_ACCESS=false GPU_DEVICE_0=gpu-0 GPU_DEVICE_0_SHARING_STRATEGY=TimeSlicing "
        "GPU_DEVICE_0_TIMESLICE_INTERVAL=Long",
        "DRA_ADMIN_ACCESS=false GPU_DEVICE_1=gpu-1 GPU_DEVICE_1_SHARING_STRATEGY=SpacePartitioning "
        "GPU_DEVICE_1_PARTITION_COUNT=10"}},
      {"initcontainer-shared-gpu", {}, 1, {plain(0)}},
      {"cel-selector", {}, 1, {plain(0)}},
      {"prioritized-alternatives", {}, 2, {plain(0), plain(1)}},
      {"admin-access", {}, 1, all},
      {"extended-resource-request", {}, 2, {plain(0), plain(1)}},
      {"partitionable-devices",
       partitions,
       1,
       {part("0_PARTITION_0", ""), part("0_PARTITION_1", "")}},
      {"gpu-allow-multiple-allocations",
       multiple,
       2,
       {part("0", " GPU_DEVICE_0_MEMORY=16Gi GPU_DEVICE_0_COMPUTE=20"),
        part("0", " GPU_DEVICE_0_MEMORY=16Gi GPU_DEVICE_0_COMPUTE=20")}},
      {"gpu-allow-multiple-allocations-partitionable",
       both,
       2,
       {part("0_PARTITION_0",
             " GPU_DEVICE_0_PARTITION_0_MEMORY=8Gi GPU_DEVICE_0_PARTITION_0_COMPUTE=10"),
        part("0_PARTITION_0",
             " GPU_DEVICE_0_PARTITION_0_MEMORY=8Gi GPU_DEVICE_0_PARTITION_0_COMPUTE=10")}},
      {"net-consumable-capacity",
       profile("net"),
       2,
       {net + "10000000000 NET_DEVICE_0_EGRESS_RATE=5000000000",
        net + "5000000000 NET_DEVICE_0_EGRESS_RATE=5000000000"}},
      {"native-resource-request",
       profile("cpu"),
       1,
       {"DRA_ADMIN_ACCESS=false CPU_DEVICE_0=numa-0 CPU_DEVICE_0_CONSUMED_CPU=1",
        "DRA_ADMIN_ACCESS=false CPU_DEVICE_0=numa-0 CPU_DEVICE_0_CONSUMED_CPU=1"}},
      {"binding-conditions",
       [](GpuDriverOptions& options) { options.binding_conditions = true; },
       1,
       {plain(0)}},
  };
}

TEST(GpuExamples, show_what_they_say) {
  if (examples_folder().empty()) GTEST_SKIP() << "examples/gpu is not above the working folder";
  for (const auto& example : examples()) {
    SCOPED_TRACE(example.name);
    Cluster cluster(example.options);

    cluster.apply(example.name);

    EXPECT_EQ(cluster.claims(example.name).size(), example.claims);
    EXPECT_THAT(cluster.environments(example.name), ElementsAreArray(example.environments));
    auto pods = cluster.world.api->list(kPods, example.name);
    for (const auto& pod : pods->items) {
      EXPECT_EQ(pod["spec"]["nodeName"].str(), "node-0") << pod["metadata"]["name"].str();
    }
  }
}

TEST(GpuExamples, alternatives_are_named_in_the_result) {
  if (examples_folder().empty()) GTEST_SKIP() << "examples/gpu is not above the working folder";
  Cluster cluster;

  cluster.apply("prioritized-alternatives");

  std::vector<std::string> requests;
  for (const auto& claim : cluster.claims("prioritized-alternatives")) {
    requests.push_back(claim["status"]["allocation"]["devices"]["results"][0]["request"].str());
  }
  EXPECT_THAT(requests, UnorderedElementsAre("gpu/older-gpu", "gpu/latest-gpu"));
}

TEST(GpuExamples, shares_have_ids_of_their_own) {
  if (examples_folder().empty()) GTEST_SKIP() << "examples/gpu is not above the working folder";
  Cluster cluster([](GpuDriverOptions& options) { options.gpu_allow_multiple_allocations = true; });

  cluster.apply("gpu-allow-multiple-allocations");

  std::set<std::string> ids;
  for (const auto& claim : cluster.claims("gpu-allow-multiple-allocations")) {
    ids.insert(claim["status"]["allocation"]["devices"]["results"][0]["shareID"].str());
  }
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_FALSE(ids.contains(""));
}

TEST(GpuExamples, without_the_controller_a_pod_with_binding_conditions_waits) {
  if (examples_folder().empty()) GTEST_SKIP() << "examples/gpu is not above the working folder";
  Cluster cluster([](GpuDriverOptions& options) {
    options.binding_conditions = true;
    options.binding_controller = false;
  });

  cluster.apply("binding-conditions");

  EXPECT_EQ(cluster.pod("binding-conditions", "pod0")["spec"]["nodeName"].str(), "");
}

TEST(GpuExamples, taints_evict_or_keep_away) {
  if (examples_folder().empty()) GTEST_SKIP() << "examples/gpu is not above the working folder";
  const auto is_going = [](const Value& pod) {
    return pod.is_null() || pod["metadata"].contains("deletionTimestamp");
  };
  {
    Cluster cluster;
    cluster.apply("device-taint-noexecute");
    EXPECT_EQ(cluster.pod("device-taint-noexecute", "pod-to-be-evicted")["spec"]["nodeName"].str(),
              "node-0");
    cluster.apply("device-taint-rule-noexecute");
    EXPECT_TRUE(is_going(cluster.pod("device-taint-noexecute", "pod-to-be-evicted")));
    cluster.apply("device-taint-toleration");
    EXPECT_EQ(
        cluster.pod("device-taint-toleration", "pod-with-toleration")["spec"]["nodeName"].str(),
        "node-0");
    EXPECT_EQ(
        cluster.pod("device-taint-toleration", "pod-without-toleration")["spec"]["nodeName"].str(),
        "");
  }
  {
    Cluster cluster;
    cluster.apply("device-taint-noschedule");
    cluster.apply("device-taint-rule-noschedule");
    EXPECT_FALSE(is_going(cluster.pod("device-taint-noschedule", "pod-keeps-running")));
    cluster.apply("basic-shared-claim-across-containers");
    EXPECT_EQ(cluster.pod("basic-shared-claim-across-containers", "pod0")["spec"]["nodeName"].str(),
              "");
  }
  {
    Cluster cluster;
    const std::string name = "device-taint-eviction-time";
    cluster.apply(name);
    cluster.apply("device-taint-rule-noexecute");
    EXPECT_TRUE(is_going(cluster.pod(name, "pod-no-toleration")));
    EXPECT_FALSE(is_going(cluster.pod(name, "pod-with-300s-toleration")));
    EXPECT_FALSE(is_going(cluster.pod(name, "pod-with-toleration")));
  }
}

}  // namespace
}  // namespace dibs::drivers
