// Claims of the classic model (resource.k8s.io/v1alpha2): a driver's controller allocated them, and
// the node hands the driver's own data on.

#include "node/plugins/test_support.h"
#include "proto/dra_v1alpha3.pb.h"

namespace dibs::node::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
namespace old = v1alpha3;

class Classic : public testing::Test {
 protected:
  static DriverOptions options() {
    DriverOptions out;
    out.versions = {"1.0.0"};
    out.service = "/unused";
    return out;
  }
  void start(const std::string& release) {
    node = std::make_unique<TestNode>(release);
    driver = std::make_unique<FakeDriver>(node->network, options());
    driver->more = methods;
    driver->start();
    node->settle(0s);
    auto claim = from_text(
        "{'apiVersion': 'resource.k8s.io/v1alpha2', 'kind': 'ResourceClaim', 'metadata': {'name': "
        "'a', 'namespace': 'default', 'uid': 'uid-a'}, 'spec': {'resourceClassName': 'class'}, "
        "'status': {'driverName': 'gpu.example.com', 'reservedFor': [{'resource': 'pods', 'name': "
        "'p', 'uid': 'p'}], 'allocation': {'resourceHandles': [{'driverName': 'gpu.example.com', "
        "'data': 'secret'}]}}}");
    node->api.put(TestNode::claim_path("a", "v1alpha2"), claim);
    // What v1 shows of it.
    auto shown = from_text(
        "{'apiVersion': 'resource.k8s.io/v1', 'kind': 'ResourceClaim', 'metadata': {'name': 'a', "
        "'namespace': 'default', 'uid': 'uid-a'}, 'spec': {}, 'status': {'reservedFor': "
        "[{'resource': 'pods', 'name': 'p', 'uid': 'p'}], 'allocation': {}}}");
    node->api.put(TestNode::claim_path("a"), shown);
  }
  void add_batch() {
    methods.unary["/v1alpha3.Node/NodePrepareResources"] = [this](std::string_view bytes) {
      const auto request = decode<old::NodePrepareResourcesRequest>(bytes);
      old::NodePrepareResourcesResponse response;
      for (const auto& claim : request.claims()) {
        log.push_back(cat("v1alpha3 prepare ", claim.name(), " ", claim.resource_handle()));
        (*response.mutable_claims())[claim.uid()].add_cdi_devices("v/c=x");
      }
      return answer(response);
    };
    methods.unary["/v1alpha3.Node/NodeUnprepareResources"] = [this](std::string_view bytes) {
      const auto request = decode<old::NodeUnprepareResourcesRequest>(bytes);
      old::NodeUnprepareResourcesResponse response;
      for (const auto& claim : request.claims()) {
        log.push_back(cat("v1alpha3 unprepare ", claim.name(), " ", claim.resource_handle()));
        (*response.mutable_claims())[claim.uid()];
      }
      return answer(response);
    };
  }
  void add_single(const std::string& version) {
    methods.unary[cat("/", version, ".Node/NodePrepareResource")] =
        [this, version](std::string_view bytes) {
          const auto request = decode<old::NodePrepareResourceRequest>(bytes);
          log.push_back(
              cat(version, " prepare ", request.claim_name(), " ", request.resource_handle()));
          old::NodePrepareResourceAnswer response;
          response.add_cdi_devices("v/c=y");
          return answer(response);
        };
    methods.unary[cat("/", version, ".Node/NodeUnprepareResource")] =
        [this, version](std::string_view bytes) {
          // Field 4 is the handle in v1alpha2, the ids in v1alpha1: both are texts.
          const auto request = decode<old::NodeUnprepareResourceRequest>(bytes);
          log.push_back(
              cat(version, " unprepare ", request.claim_name(), " ", request.resource_handle()));
          return rpc::Reply{};
        };
  }
  void expect_round(const std::vector<std::string>& ids) {
    const auto p = TestNode::pod("p", {"a"});
    EXPECT_EQ(node->prepare(p), "");
    EXPECT_EQ(node->ids(p), ids);
    node->pods = {p};
    node->restart();
    node->settle(0s);
    EXPECT_EQ(node->unprepare(p), "");
  }

  rpc::Methods methods;
  std::vector<std::string> log;
  std::unique_ptr<TestNode> node;
  std::unique_ptr<FakeDriver> driver;
};

TEST_F(Classic, batches_carry_the_handle) {
  for (const char* release : {"1.30", ""}) {
    add_batch();
    start(release);
    log.clear();
    expect_round({"v/c=x"});
    EXPECT_THAT(log, ElementsAre("v1alpha3 prepare a secret", "v1alpha3 unprepare a secret"));
  }
}

TEST_F(Classic, older_drivers_get_one_claim_a_call) {
  add_single("v1alpha2");
  start("1.30");
  expect_round({"v/c=y"});
  EXPECT_THAT(log, ElementsAre("v1alpha2 prepare a secret", "v1alpha2 unprepare a secret"));
}

TEST_F(Classic, the_oldest_are_told_their_ids_again) {
  add_single("v1alpha1");
  start("");
  expect_round({"v/c=y"});
  EXPECT_THAT(log, ElementsAre("v1alpha1 prepare a secret", "v1alpha1 unprepare a v/c=y"));
}

TEST_F(Classic, errors_have_the_words_of_their_time) {
  methods.unary["/v1alpha2.Node/NodePrepareResource"] = [](std::string_view) {
    return rpc::Reply{{rpc::Code::internal, "broken"}, {}};
  };
  start("1.30");
  const auto p = TestNode::pod("p", {"a"});
  EXPECT_EQ(node->prepare(p),
            "prepare dynamic resources: NodePrepareResources failed for claim default/a: rpc "
            "error: code = Internal desc = broken");
  EXPECT_THAT(node->prepare(TestNode::pod("q", {"a"})),
              HasSubstr("pod q(q) is not allowed to use resource claim a(uid-a)"));
  driver->stop();
  node->settle(0s);
  EXPECT_THAT(node->prepare(p),
              HasSubstr("failed to get DRA Plugin client for plugin name gpu.example.com: plugin "
                        "name gpu.example.com not found in the list of registered DRA plugins"));
}

TEST_F(Classic, only_claims_that_a_container_uses_are_prepared) {
  add_batch();
  start("1.30");
  auto p = TestNode::pod("p", {"a"});
  p.mut("spec").set("containers", from_text("[{'name': 'c'}]"));
  EXPECT_EQ(node->prepare(p), "");
  EXPECT_FALSE(node->claims().holds("p"));
}

}  // namespace
}  // namespace dibs::node::test
