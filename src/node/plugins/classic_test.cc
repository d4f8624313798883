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
    put("a", "{'resourceHandles': [{'driverName': 'gpu.example.com', 'data': 'secret'}]}");
  }
  /// A claim of the driver gpu.example.com that is reserved for pod p.
  void put(const std::string& name, const std::string& allocation) {
    auto claim = from_text(
        cat("{'apiVersion': 'resource.k8s.io/v1alpha2', 'kind': 'ResourceClaim', 'metadata': "
            "{'name': '",
            name, "', 'namespace': 'default', 'uid': 'uid-", name,
            "'}, 'spec': {'resourceClassName': 'class'}, 'status': {'driverName': "
            "'gpu.example.com', 'reservedFor': [{'resource': 'pods', 'name': 'p', 'uid': 'p'}], "
            "'allocation': ",
            allocation, "}}"));
    node->api.put(TestNode::claim_path(name, "v1alpha2"), claim);
    // A server that has v1 shows it to our own parts as it is stored.
    node->api.put(TestNode::claim_path(name), claim);
  }
  void add_batch() {
    methods.unary["/v1alpha3.Node/NodePrepareResources"] = [this](std::string_view bytes) {
      const auto request = decode<old::NodePrepareResourcesRequest>(bytes);
      old::NodePrepareResourcesResponse response;
      for (const auto& claim : request.claims()) {
        log.push_back(cat("v1alpha3 prepare ", claim.name(), " ", claim.resource_handle()));
        for (const auto& handle : claim.structured_resource_handle()) log.push_back(words(handle));
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
  /// A pod with a claim "cat" from a template.
  static json::Value from_template(const std::string& name) {
    auto pod = TestNode::pod(name, {"cat"});
    pod.mut("spec").set(
        "resourceClaims",
        from_text("[{'name': 'cat', 'source': {'resourceClaimTemplateName': 'cats'}}]"));
    return pod;
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
  static std::string words(const old::StructuredResourceHandle& handle) {
    std::string out = cat(handle.node_name(), " class ", handle.vendor_class_parameters().raw(),
                          " claim ", handle.vendor_claim_parameters().raw());
    for (const auto& result : handle.results()) {
      append(out, " ", result.model().named_resources().name(), " ",
             result.vendor_request_parameters().raw());
    }
    return out;
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
            "NodePrepareResources failed for claim default/a: rpc error: code = Internal desc = "
            "broken");
  EXPECT_THAT(node->prepare(TestNode::pod("q", {"a"})),
              HasSubstr("pod q(q) is not allowed to use resource claim a(uid-a)"));
  driver->stop();
  node->settle(0s);
  EXPECT_THAT(node->prepare(p),
              HasSubstr("failed to get DRA Plugin client for plugin name gpu.example.com: plugin "
                        "name gpu.example.com not found in the list of registered DRA plugins"));
}

TEST_F(Classic, releases_differ_in_their_words) {
  methods.unary["/v1alpha3.Node/NodePrepareResources"] = [](std::string_view) {
    return rpc::Reply{{rpc::Code::unavailable, "busy"}, {}};
  };
  start("1.30");
  EXPECT_EQ(node->prepare(TestNode::pod("p", {"a"})),
            "NodePrepareResources failed: rpc error: code = Unavailable desc = busy");
  EXPECT_THAT(node->prepare(TestNode::pod("p", {"none"})),
              HasSubstr("failed to fetch ResourceClaim none referenced by pod p: "));
  EXPECT_EQ(node->ids(TestNode::pod("p", {"none"})),
            std::vector<std::string>{"unable to get resource for namespace: default, claim: none"});
  EXPECT_EQ(node->prepare(from_template("p")),
            "prepare resource claim: pod \"default/p\": ResourceClaim not created yet");

  start("1.27");
  driver->stop();
  node->settle(0s);
  EXPECT_EQ(node->prepare(TestNode::pod("p", {"a"})),
            "failed to get DRA Plugin client for plugin name gpu.example.com, err=plugin name "
            "gpu.example.com not found in the list of registered DRA plugins");
}

TEST_F(Classic, only_claims_that_a_container_uses_are_prepared) {
  add_batch();
  start("1.30");
  auto p = TestNode::pod("p", {"a"});
  p.mut("spec").set("containers", from_text("[{'name': 'c'}]"));
  EXPECT_EQ(node->prepare(p), "");
  EXPECT_FALSE(node->claims().holds("p"));

  // But the pod must have all of them.
  p.mut("metadata").set("uid", "another");
  EXPECT_EQ(node->prepare(p), "pod p(another) is not allowed to use resource claim a(uid-a)");
}

TEST_F(Classic, a_pod_that_no_scheduler_saw_waits_for_its_claim) {
  add_batch();
  start("1.27");
  auto p = TestNode::pod("fixed", {"a"});
  EXPECT_EQ(node->prepare(p), "pod fixed(fixed) is not allowed to use resource claim a(uid-a)");
  auto claim = *node->api.get(TestNode::claim_path("a", "v1alpha2"));
  claim.mut("status").set("reservedFor",
                          from_text("[{'resource': 'pods', 'name': 'fixed', 'uid': 'fixed'}]"));
  claim.mut("status").erase("allocation");
  node->api.put(TestNode::claim_path("a", "v1alpha2"), claim);
  EXPECT_EQ(node->prepare(p), "ResourceClaim a: not allocated");
  claim.mut("status").set("allocation", json::Value::object());
  node->api.put(TestNode::claim_path("a", "v1alpha2"), claim);
  EXPECT_EQ(node->prepare(p), "");
}

TEST_F(Classic, in_1_27_a_made_claim_is_known_by_its_name) {
  add_batch();
  start("1.27");
  put("p-cat", "{}");
  EXPECT_EQ(node->prepare(from_template("p")),
            "ResourceClaim default/p-cat was not created for pod default/p (pod is not owner)");
  auto claim = *node->api.get(TestNode::claim_path("p-cat", "v1alpha2"));
  claim.mut("metadata")
      .set("ownerReferences", from_text("[{'kind': 'Pod', 'uid': 'p', 'controller': true}]"));
  node->api.put(TestNode::claim_path("p-cat", "v1alpha2"), claim);

  EXPECT_EQ(node->prepare(from_template("p")), "");
  EXPECT_THAT(node->ids(from_template("p")), ElementsAre("v/c=x"));
  EXPECT_EQ(node->unprepare(from_template("p")), "");
}

TEST_F(Classic, without_handles_the_driver_of_the_status_gets_an_empty_one) {
  add_batch();
  for (const char* allocation : {"{}", "{'resourceHandles': [{}]}"}) {
    start("1.30");
    log.clear();
    put("a", allocation);
    expect_round({"v/c=x"});
    EXPECT_THAT(log, ElementsAre("v1alpha3 prepare a ", "v1alpha3 unprepare a "));
  }
}

TEST_F(Classic, handles_go_to_their_drivers) {
  add_batch();
  start("");
  DriverOptions other = options();
  other.name = "net.example.com";
  FakeDriver net(node->network, other);
  net.more = methods;
  net.start();
  node->settle(0s);
  put("a",
      "{'resourceHandles': [{'data': 'one'}, {'driverName': 'net.example.com', 'data': 'two'}]}");
  expect_round({"v/c=x", "v/c=x"});
  EXPECT_THAT(log, ElementsAre("v1alpha3 prepare a one", "v1alpha3 prepare a two",
                               "v1alpha3 unprepare a one", "v1alpha3 unprepare a two"));
}

TEST_F(Classic, named_resources_travel_with_the_parameters_of_their_vendor) {
  add_batch();
  start("1.30");
  put("a",
      "{'resourceHandles': [{'driverName': 'gpu.example.com', 'structuredData': {'nodeName': "
      "'node-0', 'vendorClassParameters': {'a': 1}, 'vendorClaimParameters': {'b': 2}, 'results': "
      "[{'namedResources': {'name': 'gpu-0'}, 'vendorRequestParameters': {'c': 3}}, "
      "{'namedResources': {'name': 'gpu-1'}}]}}]}");
  expect_round({"v/c=x"});
  EXPECT_THAT(log, ElementsAre("v1alpha3 prepare a ",
                               R"(node-0 class {"a":1} claim {"b":2} gpu-0 {"c":3} gpu-1 )",
                               "v1alpha3 unprepare a "));
}

TEST_F(Classic, containers_are_annotated_as_long_as_the_release_did) {
  add_batch();
  for (const char* release : {"1.27", "1.30", ""}) {
    start(release);
    const auto p = TestNode::pod("p", {"a"});
    EXPECT_EQ(node->prepare(p), "");
    const auto devices = node->claims().devices_of(p, "c");
    ASSERT_TRUE(devices.ok());
    EXPECT_THAT(devices->cdi_ids, ElementsAre("v/c=x"));
    if (std::string(release).empty()) {
      EXPECT_TRUE(devices->annotations.empty());
    } else {
      EXPECT_THAT(devices->annotations,
                  ElementsAre(testing::Pair("cdi.k8s.io/gpu.example.com_uid-a", "v/c=x")));
    }
  }
}

TEST_F(Classic, a_name_too_long_for_an_annotation_is_no_reason_to_fail) {
  add_batch();
  start("1.27");
  auto claim = *node->api.get(TestNode::claim_path("a", "v1alpha2"));
  claim.mut("metadata").set("uid", std::string(60, 'u'));
  node->api.put(TestNode::claim_path("a", "v1alpha2"), claim);
  const auto p = TestNode::pod("p", {"a"});
  EXPECT_EQ(node->prepare(p), "");
  const auto devices = node->claims().devices_of(p, "c");
  ASSERT_TRUE(devices.ok());
  EXPECT_THAT(devices->cdi_ids, ElementsAre("v/c=x"));
  EXPECT_TRUE(devices->annotations.empty());
}

TEST_F(Classic, both_models_meet_in_one_pod) {
  add_batch();
  start("");
  DriverOptions today;
  today.name = "net.example.com";
  FakeDriver net(node->network, today);
  net.start();
  node->settle(0s);
  node->put_claim("b", {"p"}, {"net.example.com"});
  const auto p = TestNode::pod("p", {"a", "b"});

  EXPECT_EQ(node->prepare(p), "");
  EXPECT_THAT(node->ids(p), ElementsAre("v/c=x", "example.com/gpu=b"));
  node->pods = {p};
  node->restart();
  node->settle(0s);
  EXPECT_EQ(node->unprepare(p), "");
  EXPECT_THAT(log, ElementsAre("v1alpha3 prepare a secret", "v1alpha3 unprepare a secret"));
  EXPECT_THAT(net.log, ElementsAre("registered", "prepare b", "registered", "unprepare b"));
}

TEST_F(Classic, one_driver_of_both_times_gets_each_claim_as_it_is) {
  methods.unary["/v1alpha2.Node/NodePrepareResource"] = [this](std::string_view bytes) {
    log.push_back(cat("classic ", decode<old::NodePrepareResourceRequest>(bytes).claim_name()));
    return answer(old::NodePrepareResourceAnswer());
  };
  DriverOptions both;
  both.name = "both.example.com";
  both.versions = {"v1.DRAPlugin", "1.0.0"};
  start("");
  FakeDriver two(node->network, both);
  two.more = methods;
  two.start();
  node->settle(0s);
  put("a", "{'resourceHandles': [{'driverName': 'both.example.com'}]}");
  node->put_claim("b", {"p"}, {"both.example.com"});
  EXPECT_EQ(node->prepare(TestNode::pod("p", {"a", "b"})), "");
  EXPECT_THAT(log, ElementsAre("classic a"));
  EXPECT_THAT(two.log, ElementsAre("registered", "prepare b"));
}

// The agent dies at every write of its checkpoint: in the end the driver was told to let go.
TEST_F(Classic, dying_anywhere_leaks_nothing) {
  for (int writes = 0; writes < 4; ++writes) {
    add_batch();
    start("1.30");
    log.clear();
    const auto p = TestNode::pod("p", {"a"});
    node->pods = {p};
    node->files.left = writes;
    if (node->prepare(p).empty()) (void)node->unprepare(p);
    node->stop();
    node->files.left = 1'000'000;
    node->pods.clear();
    node->api.remove(TestNode::claim_path("a", "v1alpha2"));
    node->start();
    node->settle(61s);

    EXPECT_FALSE(node->claims().holds("p"));
    // Nothing was prepared, or it was taken back.
    if (!log.empty()) {
      EXPECT_EQ(log.back(), "v1alpha3 unprepare a secret") << writes;
    }
  }
}

TEST_F(Classic, with_the_gate_off_pods_have_no_claims) {
  add_batch();
  start("1.30");
  node->stop();
  node->gates = "DynamicResourceAllocation=false";
  node->start();
  const auto p = TestNode::pod("p", {"a"});
  EXPECT_EQ(node->prepare(p), "");
  EXPECT_TRUE(node->ids(p).empty());
  EXPECT_TRUE(log.empty());
}

}  // namespace
}  // namespace dibs::node::test
