#include "node/plugins/pod_resources.h"

#include "node/plugins/test_support.h"
#include "proto/dra_v1alpha3.pb.h"
#include "proto/pod_resources_v1.pb.h"
#include "proto/pod_resources_v1alpha1.pb.h"

namespace dibs::node::test {
namespace {

using namespace std::chrono_literals;

class PodResources : public testing::Test {
 protected:
  PodResources() : driver(node.network) {
    driver.start();
    node.settle(0s);
    node.put_claim("a", {"p"});
    auto p = TestNode::pod("p", {"a"});
    p.mut("spec").set("initContainers",
                      from_text("[{'name': 'once'}, {'name': 'side', 'restartPolicy': 'Always'}]"));
    node.pods = {p, TestNode::pod("q", {"missing"})};
    EXPECT_EQ(node.prepare(p), "");
    channel = node.network.connect("/node/pod-resources/kubelet.sock");
  }
  rpc::Reply call(const char* method, const std::string& request = "") {
    return channel->call(method, request, 1s);
  }

  TestNode node;
  FakeDriver driver;
  std::unique_ptr<rpc::Channel> channel;
};

TEST_F(PodResources, list_shows_claims_of_containers_and_sidecars) {
  const auto list = decode<v1::ListPodResourcesResponse>(call("/v1.PodResourcesLister/List").bytes);

  ASSERT_EQ(list.pod_resources_size(), 2);
  const auto& pod = list.pod_resources(0);
  EXPECT_EQ(cat(pod.namespace_(), "/", pod.name()), "default/p");
  ASSERT_EQ(pod.containers_size(), 2);
  EXPECT_EQ(pod.containers(0).name(), "side");
  const auto& container = pod.containers(1);
  EXPECT_EQ(container.name(), "c");
  ASSERT_EQ(container.dynamic_resources_size(), 1);
  const auto& claim = container.dynamic_resources(0);
  EXPECT_EQ(cat(claim.claim_namespace(), "/", claim.claim_name()), "default/a");
  ASSERT_EQ(claim.claim_resources_size(), 1);
  const auto& device = claim.claim_resources(0);
  EXPECT_EQ(cat(device.driver_name(), "/", device.pool_name(), "/", device.device_name()),
            "gpu.example.com/pool/dev-a");
  EXPECT_EQ(device.cdi_devices(0).name(), "example.com/gpu=a");
  EXPECT_FALSE(device.has_share_id());
  EXPECT_EQ(list.pod_resources(1).containers(0).dynamic_resources_size(), 0);
}

TEST_F(PodResources, get_finds_one_pod) {
  v1::GetPodResourcesRequest request;
  request.set_pod_name("p");
  request.set_pod_namespace("default");
  const auto found = decode<v1::GetPodResourcesResponse>(
      call("/v1.PodResourcesLister/Get", request.SerializeAsString()).bytes);
  EXPECT_EQ(found.pod_resources().name(), "p");

  request.set_pod_name("none");
  EXPECT_EQ(call("/v1.PodResourcesLister/Get", request.SerializeAsString()).status.text(),
            "rpc error: code = Unknown desc = pod none in namespace default not found");
}

/// A pod with a claim of the classic model that is prepared, on a node of that release.
v1::ListPodResourcesResponse classic_list(const std::string& release, const std::string& gates) {
  TestNode node(release);
  node.stop();
  node.gates = gates;
  node.start();
  DriverOptions options;
  options.versions = {"1.0.0"};
  options.service = "/unused";
  FakeDriver driver(node.network, options);
  driver.more.unary["/v1alpha2.Node/NodePrepareResource"] = [](std::string_view) {
    v1alpha3::NodePrepareResourceAnswer response;
    response.add_cdi_devices("v/c=x");
    return answer(response);
  };
  driver.start();
  node.settle(0s);
  const auto claim = from_text(
      "{'apiVersion': 'resource.k8s.io/v1alpha2', 'kind': 'ResourceClaim', 'metadata': {'name': "
      "'a', 'namespace': 'default', 'uid': 'uid-a'}, 'spec': {'resourceClassName': 'class'}, "
      "'status': {'driverName': 'gpu.example.com', 'reservedFor': [{'resource': 'pods', 'name': "
      "'p', 'uid': 'p'}], 'allocation': {}}}");
  node.api.put(TestNode::claim_path("a", "v1alpha2"), claim);
  const auto p = TestNode::pod("p", {"a"});
  node.pods = {p};
  EXPECT_EQ(node.prepare(p), "");
  const auto channel = node.network.connect("/node/pod-resources/kubelet.sock");
  return decode<v1::ListPodResourcesResponse>(
      channel->call("/v1.PodResourcesLister/List", "", 1s).bytes);
}

TEST(PodResourcesOf, older_releases_show_claims_by_a_gate_with_their_class_and_ids_alone) {
  for (const char* release : {"1.27", "1.30"}) {
    const auto off = classic_list(release, "");
    ASSERT_EQ(off.pod_resources_size(), 1);
    EXPECT_EQ(off.pod_resources(0).containers(0).dynamic_resources_size(), 0);

    const auto on = classic_list(release, "KubeletPodResourcesDynamicResources=true");
    const auto& container = on.pod_resources(0).containers(0);
    ASSERT_EQ(container.dynamic_resources_size(), 1);
    const auto& claim = container.dynamic_resources(0);
    EXPECT_EQ(claim.class_name(), "class");
    EXPECT_EQ(cat(claim.claim_namespace(), "/", claim.claim_name()), "default/a");
    ASSERT_EQ(claim.claim_resources_size(), 1);
    EXPECT_EQ(claim.claim_resources(0).cdi_devices(0).name(), "v/c=x");
    EXPECT_EQ(claim.claim_resources(0).driver_name(), "");
  }
}

TEST(PodResourcesOf, older_releases_have_get_by_a_gate) {
  for (const char* gates : {"", "KubeletPodResourcesGet=true"}) {
    TestNode node("1.30");
    node.stop();
    node.gates = gates;
    node.start();
    node.pods = {TestNode::pod("p", {})};
    v1::GetPodResourcesRequest request;
    request.set_pod_name("p");
    request.set_pod_namespace("default");
    const auto channel = node.network.connect("/node/pod-resources/kubelet.sock");
    const auto reply = channel->call("/v1.PodResourcesLister/Get", request.SerializeAsString(), 1s);
    if (node.gates.empty()) {
      EXPECT_EQ(reply.status.text(),
                "rpc error: code = Unknown desc = PodResources API Get method disabled");
    } else {
      EXPECT_TRUE(reply.status.ok());
    }
  }
}

TEST_F(PodResources, the_other_calls_answer_too) {
  EXPECT_TRUE(call("/v1.PodResourcesLister/GetAllocatableResources").status.ok());
  const auto list =
      decode<v1alpha1::ListPodResourcesResponse>(call("/v1alpha1.PodResourcesLister/List").bytes);
  EXPECT_EQ(list.pod_resources_size(), 2);
}

TEST_F(PodResources, more_than_a_hundred_calls_a_second_are_refused) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(call("/v1.PodResourcesLister/List").status.ok());
  }
  EXPECT_EQ(call("/v1.PodResourcesLister/List").status.text(),
            "rpc error: code = ResourceExhausted desc = rejected by rate limit");
  node.sim.advance(10ms);
  EXPECT_TRUE(call("/v1.PodResourcesLister/List").status.ok());
}

TEST_F(PodResources, health_stands_in_the_pod_s_status) {
  EXPECT_EQ(
      json::write(node.claims().health_of(node.pods[0], "c")),
      R"([{"name":"claim:a","resources":[{"resourceID":"example.com/gpu=a","health":"Unknown"}]}])");
  EXPECT_TRUE(node.claims().health_of(node.pods[0], "side").is_null());
}

}  // namespace
}  // namespace dibs::node::test
