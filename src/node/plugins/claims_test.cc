#include "node/plugins/test_support.h"

namespace dibs::node::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Claims : public testing::Test {
 protected:
  Claims() : driver(node.network) {
    driver.start();
    node.settle(0s);
    driver.log.clear();
  }
  json::Value pod(const std::string& name, const std::vector<std::string>& claims) {
    return TestNode::pod(name, claims);
  }

  TestNode node;
  FakeDriver driver;
};

TEST_F(Claims, all_claims_of_a_driver_go_in_one_call) {
  node.put_claim("a", {"p"});
  node.put_claim("b", {"p"});

  EXPECT_EQ(node.prepare(pod("p", {"a", "b"})), "");
  EXPECT_THAT(node.ids(pod("p", {"a", "b"})),
              ElementsAre("example.com/gpu=a", "example.com/gpu=b"));
  EXPECT_TRUE(node.claims().holds("p"));
  EXPECT_EQ(node.unprepare(pod("p", {"a", "b"})), "");

  EXPECT_THAT(driver.log, ElementsAre("prepare a b", "unprepare a b"));
  EXPECT_FALSE(node.claims().holds("p"));
}

TEST_F(Claims, a_pod_without_claims_needs_nobody) {
  EXPECT_EQ(node.prepare(pod("p", {})), "");
  EXPECT_THAT(node.ids(pod("p", {})), IsEmpty());
  EXPECT_EQ(node.unprepare(pod("p", {})), "");

  EXPECT_THAT(driver.log, IsEmpty());
}

TEST_F(Claims, each_driver_gets_its_own_call) {
  DriverOptions options;
  options.name = "net.example.com";
  FakeDriver net(node.network, options);
  net.start();
  node.settle(0s);
  node.put_claim("both", {"p"}, {"gpu.example.com", "net.example.com"});
  node.put_claim("net", {"p"}, {"net.example.com"});

  EXPECT_EQ(node.prepare(pod("p", {"both", "net"})), "");

  EXPECT_THAT(driver.log, ElementsAre("prepare both"));
  EXPECT_THAT(net.log, ElementsAre("registered", "prepare both net"));
}

TEST_F(Claims, two_pods_share_a_claim) {
  node.put_claim("a", {"p", "q"});

  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  EXPECT_EQ(node.prepare(pod("q", {"a"})), "");
  EXPECT_EQ(node.unprepare(pod("p", {"a"})), "");
  EXPECT_THAT(driver.log, ElementsAre("prepare a"));
  EXPECT_EQ(node.unprepare(pod("q", {"a"})), "");

  EXPECT_THAT(driver.log, ElementsAre("prepare a", "unprepare a"));
}

TEST_F(Claims, preparing_again_asks_nobody) {
  node.put_claim("a", {"p"});

  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  const int writes = node.files.writes;
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");

  EXPECT_THAT(driver.log, ElementsAre("prepare a"));
  EXPECT_EQ(node.files.writes, writes);
}

TEST_F(Claims, a_pod_that_was_refused_does_not_tear_down_what_others_use) {
  node.put_claim("a", {"p"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  EXPECT_NE(node.prepare(pod("stranger", {"a"})), "");

  EXPECT_EQ(node.unprepare(pod("stranger", {"a"})), "");

  EXPECT_THAT(driver.log, ElementsAre("prepare a"));
  EXPECT_TRUE(node.claims().holds("p"));
}

TEST_F(Claims, a_driver_that_is_not_there_is_named) {
  node.put_claim("a", {"p"}, {"other.example.com"});

  EXPECT_EQ(node.prepare(pod("p", {"a"})),
            "prepare dynamic resources: DRA driver other.example.com is not registered");
  EXPECT_FALSE(node.claims().holds("p"));
}

TEST_F(Claims, the_driver_s_error_names_the_claim) {
  node.put_claim("a", {"p"});
  driver.on_prepare = [](std::string_view) {
    dra::NodePrepareResourcesResponse response;
    (*response.mutable_claims())["uid-a"].set_error("out of memory");
    return answer(response);
  };

  EXPECT_EQ(node.prepare(pod("p", {"a"})),
            "prepare dynamic resources: NodePrepareResources failed for ResourceClaim a: out of "
            "memory");
  driver.on_prepare = nullptr;
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  EXPECT_THAT(driver.log, ElementsAre("prepare a", "prepare a"));
  EXPECT_THAT(node.ids(pod("p", {"a"})), ElementsAre("example.com/gpu=a"));
}

TEST_F(Claims, bad_answers_are_told_as_what_they_are) {
  struct Case {
    std::function<rpc::Reply(std::string_view)> reply;
    std::string error;
  };
  const std::vector<Case> cases = {
      {[](std::string_view) { return rpc::Reply{}; },
       "NodePrepareResources skipped 2 ResourceClaims"},
      {[](std::string_view) {
         dra::NodePrepareResourcesResponse response;
         (*response.mutable_claims())["uid-a"];
         return answer(response);
       },
       "NodePrepareResources skipped 1 ResourceClaims"},
      {[](std::string_view) {
         dra::NodePrepareResourcesResponse response;
         (*response.mutable_claims())["uid-x"];
         return answer(response);
       },
       "NodePrepareResources returned result for unknown claim UID uid-x"},
      {[](std::string_view) {
         return rpc::Reply{{}, "\x0a\xff\xff"};
       },
       "NodePrepareResources: rpc error: code = Internal desc = grpc: failed to unmarshal the "
       "received message"},
      {[](std::string_view) {
         return rpc::Reply{{rpc::Code::unavailable, "gone"}, {}};
       },
       "NodePrepareResources: rpc error: code = Unavailable desc = gone"},
  };
  node.put_claim("a", {"p"});
  node.put_claim("b", {"p"});
  for (const auto& c : cases) {
    driver.on_prepare = c.reply;
    EXPECT_EQ(node.prepare(pod("p", {"a", "b"})), cat("prepare dynamic resources: ", c.error));
  }
  driver.on_prepare = nullptr;
  EXPECT_EQ(node.prepare(pod("p", {"a", "b"})), "");
}

TEST_F(Claims, a_driver_that_hangs_costs_45_s) {
  node.put_claim("a", {"p"});
  driver.on_prepare = [&](std::string_view) -> rpc::Reply {
    node.sim.jump(45s);
    return {{rpc::Code::deadline_exceeded, "context deadline exceeded"}, {}};
  };

  EXPECT_EQ(node.prepare(pod("p", {"a"})),
            "prepare dynamic resources: NodePrepareResources: rpc error: code = DeadlineExceeded "
            "desc = context deadline exceeded");
}

TEST_F(Claims, unprepare_reports_as_prepare_does) {
  struct Case {
    std::function<rpc::Reply(std::string_view)> reply;
    std::string error;
  };
  const std::vector<Case> cases = {
      {[](std::string_view) { return rpc::Reply{}; },
       "NodeUnprepareResources skipped 1 ResourceClaims"},
      {[](std::string_view) {
         dra::NodeUnprepareResourcesResponse response;
         (*response.mutable_claims())["uid-a"].set_error("busy");
         return answer(response);
       },
       "NodeUnprepareResources failed for ResourceClaim a: busy"},
      {[](std::string_view) {
         dra::NodeUnprepareResourcesResponse response;
         (*response.mutable_claims())["uid-x"];
         return answer(response);
       },
       "NodeUnprepareResources returned result for unknown claim UID uid-x"},
      {[](std::string_view) {
         return rpc::Reply{{rpc::Code::unknown, "no"}, {}};
       },
       "NodeUnprepareResources: rpc error: code = Unknown desc = no"},
  };
  node.put_claim("a", {"p"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  for (const auto& c : cases) {
    driver.on_unprepare = c.reply;
    EXPECT_EQ(node.unprepare(pod("p", {"a"})), cat("unprepare dynamic resources: ", c.error));
    EXPECT_TRUE(node.claims().holds("p"));
  }
  driver.on_unprepare = nullptr;
  driver.stop();
  node.settle(0s);
  EXPECT_EQ(node.unprepare(pod("p", {"a"})),
            "unprepare dynamic resources: DRA driver gpu.example.com is not registered");
  driver.start();
  node.settle(0s);
  EXPECT_EQ(node.unprepare(pod("p", {"a"})), "");
  EXPECT_FALSE(node.claims().holds("p"));
}

TEST_F(Claims, nobody_joins_a_claim_that_is_being_unprepared) {
  node.put_claim("a", {"p", "q"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  driver.on_unprepare = [](std::string_view) { return rpc::Reply{{rpc::Code::unknown, "no"}, {}}; };
  EXPECT_NE(node.unprepare(pod("p", {"a"})), "");

  EXPECT_EQ(node.prepare(pod("q", {"a"})),
            "prepare dynamic resources: ResourceClaim a is being unprepared");

  driver.on_unprepare = nullptr;
  EXPECT_EQ(node.unprepare(pod("p", {"a"})), "");
  EXPECT_EQ(node.prepare(pod("q", {"a"})), "");
}

TEST_F(Claims, nobody_gets_at_a_claim_below_a_call_for_it) {
  node.put_claim("a", {"p", "q"});
  std::vector<std::string> below;
  driver.during = [&] {
    driver.during = nullptr;
    below = {node.prepare(pod("q", {"a"})), node.unprepare(pod("p", {"a"}))};
  };

  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");

  EXPECT_THAT(below,
              ElementsAre("prepare dynamic resources: ResourceClaim default/a is being worked on "
                          "for pod p",
                          "unprepare dynamic resources: ResourceClaim default/a is being worked on "
                          "for pod p already"));
  EXPECT_EQ(node.prepare(pod("q", {"a"})), "");
  EXPECT_THAT(driver.log, ElementsAre("prepare a"));
}

TEST_F(Claims, a_claim_that_was_replaced_waits_for_the_old_one_to_go) {
  node.put_claim("a", {"p"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  auto claim = *node.api.get(TestNode::claim_path("a"));
  claim.mut("metadata").set("uid", "uid-new");
  node.api.put(TestNode::claim_path("a"), claim);

  EXPECT_EQ(node.prepare(pod("p", {"a"})),
            "prepare dynamic resources: old ResourceClaim with same name a and different UID uid-a "
            "still exists (previous pod force-deleted?!)");
}

TEST_F(Claims, unprepare_does_not_need_the_claim) {
  node.put_claim("a", {"p"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  node.api.remove(TestNode::claim_path("a"));

  EXPECT_EQ(node.unprepare(pod("p", {})), "");

  EXPECT_THAT(driver.log, ElementsAre("prepare a", "unprepare a"));
}

TEST_F(Claims, what_the_pod_may_not_use_is_refused) {
  struct Case {
    std::string status;
    std::string error;
  };
  const std::vector<Case> cases = {
      {"{}", "pod p (p) is not allowed to use ResourceClaim a (uid-a)"},
      {"{'allocation': {}, 'reservedFor': [{'resource': 'pods', 'name': 'q', 'uid': 'q'}]}",
       "pod p (p) is not allowed to use ResourceClaim a (uid-a)"},
      {"{'reservedFor': [{'resource': 'pods', 'name': 'p', 'uid': 'p'}]}",
       "ResourceClaim a: not allocated"},
  };
  for (const auto& c : cases) {
    node.put_object("a", from_text(c.status));
    EXPECT_EQ(node.prepare(pod("p", {"a"})), cat("prepare dynamic resources: ", c.error));
  }
  EXPECT_THAT(node.prepare(pod("p", {"none"})),
              HasSubstr("prepare dynamic resources: fetch ResourceClaim none: "));
  EXPECT_THAT(driver.log, IsEmpty());
}

TEST_F(Claims, a_claim_without_devices_needs_no_driver) {
  node.put_claim("a", {"p"}, {});

  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  EXPECT_THAT(node.ids(pod("p", {"a"})), IsEmpty());
  EXPECT_TRUE(node.claims().holds("p"));
  EXPECT_EQ(node.unprepare(pod("p", {"a"})), "");

  EXPECT_THAT(driver.log, IsEmpty());
}

TEST_F(Claims, a_container_gets_what_its_request_names) {
  node.put_claim("a", {"p"});
  driver.on_prepare = [](std::string_view) {
    dra::NodePrepareResourcesResponse response;
    auto& claim = (*response.mutable_claims())["uid-a"];
    const auto add = [&](const char* id, const std::vector<std::string>& requests) {
      auto* device = claim.add_devices();
      device->add_cdi_device_ids(id);
      for (const auto& request : requests) device->add_request_names(request);
    };
    add("x=one", {"one"});
    add("x=two", {"two"});
    add("x=all", {});
    return answer(response);
  };
  auto p = pod("p", {"a"});
  p.mut("spec").set("initContainers", from_text("[{'name': 'i', 'resources': {'claims': [{'name': "
                                                "'a', 'request': 'two'}]}}, {'name': 'n'}]"));
  EXPECT_EQ(node.prepare(p), "");

  EXPECT_THAT(node.ids(p, "c"), ElementsAre("x=one", "x=two", "x=all"));
  EXPECT_THAT(node.ids(p, "i"), ElementsAre("x=two", "x=all"));
  EXPECT_THAT(node.ids(p, "n"), IsEmpty());
}

TEST_F(Claims, a_container_of_a_pod_that_was_not_prepared_is_an_error) {
  EXPECT_THAT(node.ids(pod("p", {"a"})),
              ElementsAre("internal error: unable to get claim info for ResourceClaim a in "
                          "namespace default"));
}

TEST_F(Claims, extended_resources_select_by_the_mapping) {
  node.put_claim("special", {"p"});
  driver.on_prepare = [](std::string_view) {
    dra::NodePrepareResourcesResponse response;
    auto& claim = (*response.mutable_claims())["uid-special"];
    for (const char* name : {"container-0-request-0", "container-1-request-0"}) {
      auto* device = claim.add_devices();
      device->add_cdi_device_ids(cat("x=", name));
      device->add_request_names(name);
    }
    return answer(response);
  };
  auto p = pod("p", {});
  p.mut("spec").set(
      "containers",
      from_text("[{'name': 'c', 'resources': {'requests': {'example.com/gpu': '1'}}}, {'name': "
                "'d', 'resources': {'requests': {'example.com/gpu': '0'}}}]"));
  p.set("status",
        from_text("{'extendedResourceClaimStatus': {'resourceClaimName': 'special', "
                  "'requestMappings': [{'containerName': 'c', 'resourceName': 'example.com/gpu', "
                  "'requestName': 'container-0-request-0'}, {'containerName': 'd', 'resourceName': "
                  "'example.com/gpu', 'requestName': 'container-1-request-0'}]}}"));

  EXPECT_EQ(node.prepare(p), "");
  EXPECT_THAT(node.ids(p, "c"), ElementsAre("x=container-0-request-0"));
  EXPECT_THAT(node.ids(p, "d"), IsEmpty());
}

// What survives the agent.

TEST_F(Claims, a_restarted_agent_has_the_ids_and_can_unprepare) {
  node.put_claim("a", {"p"});
  node.pods = {pod("p", {"a"})};
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");

  node.restart();
  node.settle(0s);

  EXPECT_THAT(node.ids(pod("p", {"a"})), ElementsAre("example.com/gpu=a"));
  EXPECT_TRUE(node.claims().holds("p"));
  EXPECT_EQ(node.unprepare(pod("p", {"a"})), "");
  EXPECT_THAT(driver.log, ElementsAre("prepare a", "registered", "unprepare a"));
}

TEST_F(Claims, a_new_sandbox_after_a_restart_prepares_again) {
  node.put_claim("a", {"p"});
  node.pods = {pod("p", {"a"})};
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  node.restart();
  node.settle(0s);

  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");

  EXPECT_THAT(driver.log, ElementsAre("prepare a", "registered", "prepare a"));
}

TEST_F(Claims, pods_that_went_while_the_agent_was_down_are_unprepared) {
  node.put_claim("a", {"p", "q"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  EXPECT_EQ(node.prepare(pod("q", {"a"})), "");
  node.pods = {pod("p", {"a"}), pod("q", {"a"})};
  node.stop();
  node.pods_known = false;
  node.pods.clear();
  node.start();

  node.settle(120s);
  EXPECT_THAT(driver.log, ElementsAre("prepare a", "registered"));
  node.pods_known = true;
  node.settle(61s);

  EXPECT_THAT(driver.log, ElementsAre("prepare a", "registered", "unprepare a"));
  EXPECT_TRUE(driver.prepared.empty());
}

TEST_F(Claims, a_gone_pod_waits_for_its_driver_and_no_longer) {
  node.put_claim("a", {"p"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  driver.stop();
  node.settle(300s);
  EXPECT_TRUE(node.claims().holds("p"));

  driver.start();
  node.settle(0s);

  EXPECT_FALSE(node.claims().holds("p"));
}

/// The agent dies after each of its writes, and inside each call of a driver; the next one must
/// bring everything to an end.
TEST_F(Claims, dying_at_any_point_leaks_nothing) {
  for (int writes = 0; writes < 5; ++writes) {
    for (const bool pod_survives : {true, false}) {
      SCOPED_TRACE(cat("dies after ", writes, " writes, pod survives: ", pod_survives));
      TestNode mine;
      FakeDriver gpu(mine.network);
      gpu.start();
      mine.settle(0s);
      mine.put_claim("a", {"p"});
      const auto p = pod("p", {"a"});
      mine.pods = {p};

      mine.files.left = writes;
      const bool prepared = mine.prepare(p).empty();
      if (prepared) (void)mine.unprepare(p);
      mine.stop();
      mine.files.left = 1'000'000;
      if (!pod_survives) mine.pods.clear();
      mine.start();
      mine.settle(0s);
      if (pod_survives) {
        EXPECT_EQ(mine.prepare(p), "");
        EXPECT_EQ(gpu.prepared.count("uid-a"), 1U);
        EXPECT_THAT(mine.ids(p), ElementsAre("example.com/gpu=a"));
        EXPECT_EQ(mine.unprepare(p), "");
      }
      mine.settle(61s);

      EXPECT_THAT(gpu.prepared, IsEmpty());
      EXPECT_FALSE(mine.claims().holds("p"));
    }
  }
}

TEST_F(Claims, dying_inside_a_call_leaks_nothing) {
  for (const bool in_unprepare : {true, false}) {
    TestNode mine;
    FakeDriver gpu(mine.network);
    gpu.start();
    mine.settle(0s);
    mine.put_claim("a", {"p"});
    const auto p = pod("p", {"a"});
    mine.pods = {p};
    if (in_unprepare) {
      ASSERT_EQ(mine.prepare(p), "");
    }

    gpu.during = [&] { mine.files.left = 0; };
    EXPECT_NE(in_unprepare ? mine.unprepare(p) : mine.prepare(p), "");
    gpu.during = nullptr;
    mine.stop();
    mine.files.left = 1'000'000;
    mine.pods.clear();
    mine.start();
    mine.settle(61s);

    EXPECT_THAT(gpu.prepared, IsEmpty());
    EXPECT_FALSE(mine.claims().holds("p"));
  }
}

TEST_F(Claims, a_disk_that_recovers_is_written_before_success_is_told) {
  node.put_claim("a", {"p"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  node.files.left = 0;
  EXPECT_NE(node.unprepare(pod("p", {"a"})), "");
  node.files.left = 10;

  EXPECT_EQ(node.unprepare(pod("p", {"a"})), "");

  node.restart();
  EXPECT_FALSE(node.claims().holds("p"));
}

TEST_F(Claims, a_damaged_checkpoint_keeps_the_agent_from_starting) {
  node.put_claim("a", {"p"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");
  node.stop();
  auto text = *node.disk->read("/node/dra_manager_state");
  text[text.find("uid-a")] = 'X';
  ASSERT_TRUE(node.disk->write("/node/dra_manager_state", text).ok());

  EXPECT_EQ(TestNode::text(node.try_start()),
            "/node/dra_manager_state: the checkpoint of prepared claims cannot be used: its "
            "Checksum is not that of its Data; drain the node, remove the file and start again");
}

// Optional calls (1.37).

TEST(OptionalOperations, calls_that_all_devices_skip_are_not_made) {
  TestNode node;
  node.stop();
  node.gates = "DRAOptionalNodeOperations=true";
  node.start();
  node.put_object("a", from_text("{'reservedFor': [{'uid': 'p'}], 'allocation': {'devices': "
                                 "{'results': [{'driver': 'none.example.com', "
                                 "'skipNodeOperations': ['*']}]}}}"));

  EXPECT_EQ(node.prepare(TestNode::pod("p", {"a"})), "");
  EXPECT_THAT(*node.disk->read("/node/dra_manager_state"), HasSubstr("skipNodeOperations"));
  EXPECT_EQ(node.unprepare(TestNode::pod("p", {"a"})), "");
  EXPECT_THAT(node.metrics.expose(),
              HasSubstr("dra_node_prepare_skips_total{driver_name=\"none.example.com\"} 1"));
}

TEST(OptionalOperations, need_the_gate) {
  TestNode node;
  node.put_object("a", from_text("{'reservedFor': [{'uid': 'p'}], 'allocation': {'devices': "
                                 "{'results': [{'driver': 'none.example.com', "
                                 "'skipNodeOperations': ['*']}]}}}"));

  EXPECT_EQ(node.prepare(TestNode::pod("p", {"a"})),
            "prepare dynamic resources: ResourceClaim a: DRAOptionalNodeOperations feature gate is "
            "disabled on kubelet");
}

TEST_F(Claims, are_counted) {
  node.put_claim("a", {"p"});
  EXPECT_EQ(node.prepare(pod("p", {"a"})), "");

  const std::string text = node.metrics.expose();
  EXPECT_THAT(text, HasSubstr("dra_resource_claims_in_use{driver_name=\"<any>\"} 1"));
  EXPECT_THAT(text, HasSubstr("dra_resource_claims_in_use{driver_name=\"gpu.example.com\"} 1"));
  EXPECT_THAT(text, HasSubstr("dra_operations_duration_seconds_count{operation_name="
                              "\"PrepareResources\",is_error=\"false\"} 1"));
  EXPECT_THAT(text,
              HasSubstr("dra_grpc_operations_duration_seconds_count{driver_name=\"gpu.example.com\""
                        ",method_name=\"/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
                        "NodePrepareResources\",grpc_status_code=\"OK\"} 1"));
}

}  // namespace
}  // namespace dibs::node::test
