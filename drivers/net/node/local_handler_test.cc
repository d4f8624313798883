// What CNI plugins are answered, for pods that have annotations and no claims.
#include "drivers/net/node/local_handler.h"

#include <gmock/gmock.h>

#include "drivers/net/node/test_node.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using test::ControlWorld;
using test::NodeWorld;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(LocalHandler, gives_all_addresses_of_a_pod_at_its_first_interface) {
  NodeWorld world;
  world.start();
  world.make_seed();
  world.make_macvlan("second");
  Networks networks(*world.api, world.sim.runtime());
  IpamOptions options;
  options.watch = false;
  auto ipam = Ipam::start(world.environment(), options);
  ASSERT_TRUE(ipam.ok());
  const auto unknown = [] { return std::optional<NodeState>(); };
  PodNetworksWriter writer(world.environment(), networks, unknown, "node-0", {});
  NodeLocalHandler handler(*world.api, **ipam, networks, writer, unknown, "node-0", {});
  world.settle(std::chrono::seconds(3));
  const Value pod = world.create(
      test::kPods, "default",
      cat("{'metadata': {'name': 'a', 'annotations': {", ControlWorld::kOnMacvlan,
          ", 'k8s.v1.cni.cncf.io/networks': 'kube-system/second', 'ipam.spidernet.io/ippools': "
          "'[{\\'interface\\': \\'eth0\\', \\'ipv4\\': [\\'ippool-test\\']}]'}}, 'spec': "
          "{'nodeName': 'node-0', 'containers': [{'name': 'c', 'image': 'i'}]}}"));
  NicRequest request;
  request.pod = {"default", "a", pod["metadata"]["uid"].str()};
  request.interface = "eth0";
  const auto refused = handler.add(request);
  // The annotation says nothing of net1, which needs an address, too.
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("net1"));
  EXPECT_EQ(world.used_of("ippool-test"), 0);

  world.patch(test::kPods, "default", "a",
              "{'metadata': {'annotations': {'k8s.v1.cni.cncf.io/networks': null}}}");
  const auto given = handler.add(request);
  ASSERT_TRUE(given.ok()) << given.error().message();
  EXPECT_EQ(given->ipv4, "172.18.30.131/16");
  EXPECT_EQ(handler.add(request)->ipv4, given->ipv4);

  NicRequest other = request;
  other.pod.uid = "11111111-2222-3333-4444-555555555555";
  EXPECT_THAT(handler.add(other).error().message(), HasSubstr("is another one by now"));
  NodeLocalHandler elsewhere(*world.api, **ipam, networks, writer, unknown, "node-1", {});
  EXPECT_THAT(elsewhere.add(request).error().message(), HasSubstr("is not on node node-1"));

  // Nothing is taken away from a pod that lives.
  EXPECT_TRUE(handler.del(request).ok());
  EXPECT_EQ(world.used_of("ippool-test"), 1);
  world.delete_pod("a");
  EXPECT_TRUE(handler.del(request).ok());
  world.settle(std::chrono::seconds(5));
  EXPECT_EQ(world.used_of("ippool-test"), 0);
  (*ipam)->stop();
  writer.stop();
  networks.stop();
}

}  // namespace
}  // namespace dibs::drivers::net
