// Classic claims on a node: the CDI file of the document, and what else containers get.
#include "drivers/net/node/claims_driver.h"

#include <gmock/gmock.h>

#include <fstream>

#include "drivers/net/node/test_node.h"

namespace dibs::drivers::net {
namespace {

using json::Value;
using test::from_text;
using test::NodeWorld;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kHere =
    "{'version': 1, 'node': 'node-0', 'nics': [], 'resources': {}, 'rdmaAcc': false}";

class ClassicNodeTest : public testing::Test {
 protected:
  ClassicNodeTest() {
    world.start();
    world.make_seed();
    pf = {.name = "ens1f0np0", .pci = "0000:81:00.0", .vfs = 2, .rdma = "mlx5_0"};
    world.host("node-0").pf(pf);
    const auto options = options_of();
    EXPECT_TRUE(world.files
                    ->write(options.resource_pools,
                            "resourceList:\n- resourceName: sriov_a\n  selectors:\n    pfNames: "
                            "[ens1f0np0]\nconfigList:\n- resourceName: hca\n  rdmaHcaMax: 5\n  "
                            "selectors:\n    ifNames: [ens1f0np0]\n")
                    .ok());
    plugin = &world.start_node(options);
  }

  NodeHalfOptions options_of() {
    auto options = world.options_of_node("node-0");
    options.only_classic = true;
    options.resource_pools = "/pools.yaml";
    options.host_device_path = "/opt/lib/libfast.so";
    return options;
  }
  void restart() { plugin = &world.start_node(options_of()); }

  static std::string uid_of(const Value& claim) { return claim["metadata"]["uid"].str(); }
  std::string text_of(const Value& claim) {
    return world.cdi_text("node-0", kClassicDriver, uid_of(claim));
  }
  std::string unprepare(const Value& claim) {
    const auto response = world.unprepare(*plugin, {driver::claim_name(claim)});
    return world.status.ok() ? response.claims().at(uid_of(claim)).error() : world.status.message;
  }
  std::string prepare(const Value& claim) { return world.prepare_classic(*plugin, claim); }

  NodeWorld world;
  test::FakeHost::Pf pf;
  driver::Plugin* plugin = nullptr;
};

TEST_F(ClassicNodeTest, writes_the_documents_file_to_the_byte) {
  const Value claim = world.allocated_classic("c", kHere, NodeWorld::refer("demo"));
  const std::string uid = uid_of(claim);
  EXPECT_EQ(prepare(claim), cat("k8s.netresources.spidernet.io/claim=", uid));
  const std::string file =
      cat("---\ncdiVersion: 0.6.0\ncontainerEdits: {}\ndevices:\n- containerEdits:\n    env:\n    "
          "- DRA_CLAIM_UID=",
          uid, "\n  name: ", uid, "\nkind: k8s.netresources.spidernet.io/claim\n");
  EXPECT_EQ(text_of(claim), file);

  // Prepared is prepared: after a restart, and whatever becomes of the parameters.
  restart();
  world.remove(kClaimParameters, "default", "demo");
  EXPECT_EQ(prepare(claim), cat("k8s.netresources.spidernet.io/claim=", uid));
  EXPECT_EQ(text_of(claim), file);
  restart();
  EXPECT_EQ(unprepare(claim), "");
  EXPECT_THAT(world.cdi_files("node-0"), IsEmpty());
  EXPECT_EQ(unprepare(claim), "");
}

TEST_F(ClassicNodeTest, takes_claims_without_parameters_and_without_handles) {
  const Value claim = world.allocated_classic("c", "");
  EXPECT_THAT(prepare(claim), testing::StartsWith("k8s.netresources.spidernet.io/claim="));
  EXPECT_THAT(text_of(claim), HasSubstr("DRA_CLAIM_UID"));
}

TEST_F(ClassicNodeTest, writes_the_version_that_the_parameters_ask_for) {
  int n = 0;
  for (const char* key : {"dra.spidernet.io/cdi-version", "ipam.spidernet.io/cdi-version"}) {
    const std::string name = cat("v", ++n);
    world.create(kClaimParameters, "default",
                 cat("{'apiVersion': 'spiderpool.spidernet.io/v2beta1', 'kind': "
                     "'SpiderClaimParameter', 'metadata': {'name': '",
                     name, "', 'annotations': {'", key, "': '0.5.0'}}}"));
    const Value claim = world.allocated_classic(name, kHere, NodeWorld::refer(name));
    EXPECT_THAT(prepare(claim), testing::StartsWith("k8s."));
    EXPECT_THAT(text_of(claim), HasSubstr("cdiVersion: 0.5.0\n"));
  }
}

TEST_F(ClassicNodeTest, refuses_claims_of_other_nodes_and_other_kinds) {
  const Value there = world.allocated_classic(
      "there", "{'version': 1, 'node': 'node-1', 'nics': [], 'resources': {}, 'rdmaAcc': false}");
  EXPECT_THAT(prepare(there), HasSubstr("the claim is allocated for node node-1, this is node-0"));
  const Value kind =
      world.allocated_classic("kind", kHere, NodeWorld::refer("demo", "SpiderIPPool"));
  EXPECT_THAT(prepare(kind), HasSubstr("incorrect kind: SpiderIPPool"));
  const Value gone = world.allocated_classic("gone", kHere, NodeWorld::refer("gone"));
  EXPECT_THAT(prepare(gone), HasSubstr("failed to getting SpiderClaimParameters default/gone"));
  Value other = world.allocated_classic("other", kHere);
  other.mut("metadata").set("uid", "11111111-2222-3333-4444-555555555555");
  EXPECT_THAT(prepare(other), HasSubstr("got replaced"));
  EXPECT_THAT(world.cdi_files("node-0"), IsEmpty());
}

TEST_F(ClassicNodeTest, gives_the_library_for_rdma) {
  world.make_parameter("fast", ", 'spec': {'rdmaAcc': true}");
  const Value claim = world.allocated_classic("c", kHere, NodeWorld::refer("fast"));
  EXPECT_THAT(prepare(claim), testing::StartsWith("k8s."));
  EXPECT_THAT(text_of(claim), HasSubstr("    - LD_PRELOAD=libfast.so\n    mounts:\n"
                                        "    - containerPath: /usr/lib/libfast.so\n"
                                        "      hostPath: /opt/lib/libfast.so\n"
                                        "      options:\n"
                                        "      - ro\n      - nosuid\n      - nodev\n      - bind\n"
                                        "    - containerPath: /usr/lib64/libfast.so\n"));
}

TEST_F(ClassicNodeTest, tells_the_agent_which_function_an_interface_is) {
  const std::string vf = test::FakeHost::vf_address(pf, 1);
  const Value claim = world.allocated_classic(
      "c", cat("{'version': 1, 'node': 'node-0', 'nics': [{'interface': 'net1', 'multus': "
               "'kube-system/sriov', 'cniType': 'sriov', 'vf': '",
               vf,
               "', 'resourceName': 'spidernet.io/sriov_a'}], 'resources': "
               "{'spidernet.io/sriov_a': ['",
               vf, "']}, 'rdmaAcc': false}"));
  const std::string pod = world.make_pod("p", {"c"})["metadata"]["uid"].str();
  world.settle(std::chrono::seconds(5));
  ASSERT_EQ(world.claim("c")["status"]["reservedFor"][0]["uid"], pod);
  EXPECT_THAT(prepare(claim), testing::StartsWith("k8s."));
  EXPECT_EQ(*world.files->read(cat("/node-0/network-devices/", pod, "_net1")), vf + "\n");
  restart();
  EXPECT_EQ(unprepare(claim), "");
  EXPECT_THAT(*world.files->list("/node-0/network-devices"), IsEmpty());
}

TEST(DeviceFiles, names_do_not_lead_out_of_their_folder) {
  const auto files = runtime::make_memory_files();
  DeviceFiles devices(*files, "/devices");
  for (const char* name : {"../../etc/passwd", "..", "", "a/b", "a\nb"}) {
    EXPECT_FALSE(devices.write("uid", {{"pod", name, "0000:81:00.2"}}).ok()) << name;
  }
  EXPECT_FALSE(files->exists("/devices"));
  EXPECT_TRUE(devices.write("uid", {{"pod", "net1", "0000:81:00.2"}}).ok());
  EXPECT_TRUE(devices.remove("uid").ok());
  EXPECT_TRUE(devices.remove("uid").ok());
  EXPECT_THAT(*files->list("/devices"), IsEmpty());
}

TEST_F(ClassicNodeTest, gives_functions_and_files_of_rdma_devices) {
  const std::string vf = test::FakeHost::vf_address(pf, 0);
  const Value claim = world.allocated_classic(
      "c", cat("{'version': 1, 'node': 'node-0', 'nics': [], 'resources': {'spidernet.io/sriov_a': "
               "['",
               vf, "'], 'spidernet.io/hca': ['0']}, 'rdmaAcc': false}"));
  EXPECT_THAT(prepare(claim), testing::StartsWith("k8s."));
  const std::string text = text_of(claim);
  EXPECT_THAT(text, HasSubstr(cat("    - PCIDEVICE_SPIDERNET_IO_SRIOV_A=", vf, "\n")));
  EXPECT_THAT(text, HasSubstr("PCIDEVICE_SPIDERNET_IO_SRIOV_A_INFO="));
  EXPECT_THAT(text, HasSubstr("path: /dev/infiniband/uverbs"));
  EXPECT_THAT(text, HasSubstr("permissions: rw"));

  const Value lost = world.allocated_classic(
      "lost",
      "{'version': 1, 'node': 'node-0', 'nics': [], 'resources': {'spidernet.io/sriov_a': "
      "['0000:99:00.0']}, 'rdmaAcc': false}");
  EXPECT_THAT(prepare(lost), HasSubstr("0000:99:00.0"));
}

}  // namespace
}  // namespace dibs::drivers::net
