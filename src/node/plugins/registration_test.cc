#include "node/plugins/test_support.h"

namespace dibs::node::test {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Registration, a_driver_registers_and_its_socket_s_end_takes_it_back) {
  TestNode node;
  FakeDriver driver(node.network);

  driver.start();
  node.settle(0s);
  EXPECT_THAT(driver.log, ElementsAre("registered"));
  EXPECT_THAT(node.devices->drivers(), ElementsAre("gpu.example.com"));
  EXPECT_THAT(node.changes, Contains("gpu.example.com"));

  driver.stop();
  node.settle(0s);
  EXPECT_THAT(node.devices->drivers(), IsEmpty());
}

TEST(Registration, sockets_that_were_there_before_the_agent_are_found) {
  TestNode node;
  node.stop();
  FakeDriver driver(node.network);
  driver.start();

  node.start();
  node.settle(0s);

  EXPECT_THAT(driver.log, ElementsAre("registered"));
}

TEST(Registration, only_v1beta1_is_enough) {
  TestNode node;
  DriverOptions options;
  options.versions = {"v1beta1.DRAPlugin"};
  options.service = "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin";
  FakeDriver driver(node.network, options);
  driver.start();
  node.settle(0s);
  node.put_claim("a", {"p"});

  EXPECT_EQ(node.prepare(node.pod("p", {"a"})), "");

  EXPECT_THAT(driver.log, ElementsAre("registered", "prepare a"));
}

TEST(Registration, a_refusal_is_told_with_the_reason_and_repeated) {
  struct Case {
    DriverOptions options;
    std::string refusal;
  };
  DriverOptions unknown_service;
  unknown_service.versions = {"v1alpha9.X"};
  DriverOptions nothing;
  nothing.versions = {};
  DriverOptions other_type;
  other_type.type = "CSIPlugin";
  DriverOptions nameless;
  nameless.name = "";
  const std::vector<Case> cases = {
      {unknown_service,
       "plugin validation failed with err: invalid supported gRPC versions of DRA driver plugin "
       "gpu.example.com at endpoint /node/plugins/gpu.example.com/dra.sock: none of services "
       "supported by the plugin ([\"v1alpha9.X\"]) are supported by the kubelet "
       "([\"v1.DRAPlugin\" \"v1beta1.DRAPlugin\"])"},
      {nothing,
       "plugin validation failed with err: invalid supported gRPC versions of DRA driver plugin "
       "gpu.example.com at endpoint /node/plugins/gpu.example.com/dra.sock: empty list of "
       "supported gRPC services (aka supported versions)"},
      {other_type,
       "no handler registered for plugin type: CSIPlugin at socket "
       "/node/plugins_registry/gpu.example.com-reg.sock"},
      {nameless, "plugin validation failed with err: DRA driver name is empty"},
  };
  for (const auto& c : cases) {
    TestNode node;
    FakeDriver driver(node.network, c.options);

    driver.start();
    node.settle(400ms);
    const std::string line = cat("refused: RegisterPlugin error -- ", c.refusal);
    EXPECT_THAT(driver.log, ElementsAre(line));
    node.settle(200ms);
    EXPECT_THAT(driver.log, ElementsAre(line, line));
    EXPECT_THAT(node.devices->drivers(), IsEmpty());
  }
}

TEST(Registration, a_socket_that_is_made_again_is_tried_at_once) {
  TestNode node;
  DriverOptions options;
  options.versions = {"v1alpha9.X"};
  FakeDriver wrong(node.network, options);
  wrong.start();
  node.settle(60s);
  wrong.stop();

  FakeDriver right(node.network);
  right.start();
  node.settle(0s);

  EXPECT_THAT(right.log, ElementsAre("registered"));
}

TEST(Registration, a_socket_that_appears_anew_ends_the_old_registration_first) {
  TestNode node;
  FakeDriver driver(node.network);
  driver.start();
  node.settle(0s);

  driver.register_it();
  node.settle(0s);

  EXPECT_THAT(driver.log, ElementsAre("registered", "registered"));
  EXPECT_THAT(node.devices->drivers(), ElementsAre("gpu.example.com"));
}

TEST(Registration, pauses_between_attempts_double_up_to_two_minutes) {
  TestNode node;
  DriverOptions options;
  options.type = "Other";
  FakeDriver driver(node.network, options);
  driver.start();

  // 0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 63.5 s, and then every 122 s.
  node.settle(64s);
  EXPECT_EQ(driver.log.size(), 8U);
  node.settle(64s);
  EXPECT_EQ(driver.log.size(), 9U);
  node.settle(122s);
  EXPECT_EQ(driver.log.size(), 10U);
}

TEST(Registration, what_is_no_plugin_info_is_not_a_plugin) {
  TestNode node;
  FakeDriver driver(node.network);
  driver.on_info = [] { return rpc::Reply{{}, "\xff\xff\xff"}; };
  driver.start();
  node.settle(1s);
  EXPECT_THAT(node.devices->drivers(), IsEmpty());

  driver.on_info = nullptr;
  node.settle(5s);
  EXPECT_THAT(node.devices->drivers(), ElementsAre("gpu.example.com"));
}

TEST(Registration, a_driver_that_does_not_take_its_notification_is_not_registered) {
  TestNode node;
  FakeDriver driver(node.network);
  driver.refuse_notification = true;
  driver.start();
  node.settle(0s);
  EXPECT_THAT(node.devices->drivers(), IsEmpty());

  driver.refuse_notification = false;
  node.settle(1s);
  EXPECT_THAT(node.devices->drivers(), ElementsAre("gpu.example.com"));
}

TEST(Registration, two_sockets_cannot_share_an_endpoint) {
  TestNode node;
  FakeDriver first(node.network);
  first.start();
  node.settle(0s);
  DriverOptions options;
  options.instance = "-2";
  options.endpoint = first.service_path();
  FakeDriver second(node.network, options);

  second.register_it();
  node.settle(0s);

  EXPECT_THAT(second.log,
              ElementsAre("refused: RegisterPlugin error -- plugin registration failed with err: "
                          "endpoint /node/plugins/gpu.example.com/dra.sock already registered for "
                          "DRA driver plugin gpu.example.com"));
}

TEST(Registration, a_socket_may_be_there_a_moment_before_anybody_listens) {
  TestNode node;
  FakeDriver driver(node.network);
  int asked = 0;
  driver.on_info = [&]() -> rpc::Reply {
    ++asked;
    return {{rpc::Code::unavailable, "connection refused"}, {}};
  };
  driver.start();
  node.settle(10ms);
  EXPECT_GE(asked, 2);

  driver.on_info = nullptr;
  node.settle(50ms);
  EXPECT_THAT(driver.log, ElementsAre("registered"));
}

TEST(Registration, the_newest_connected_instance_gets_the_calls) {
  TestNode node;
  FakeDriver old_one(node.network);
  old_one.start();
  node.settle(0s);
  DriverOptions options;
  options.instance = "-new";
  FakeDriver new_one(node.network, options);
  new_one.start();
  node.settle(0s);
  node.put_claim("a", {"p"});
  node.put_claim("b", {"q"});
  node.pods = {node.pod("p", {"a"}), node.pod("q", {"b"})};

  EXPECT_EQ(node.prepare(node.pod("p", {"a"})), "");
  EXPECT_THAT(new_one.log, ElementsAre("registered", "prepare a"));
  new_one.kill_service();
  node.settle(0s);
  EXPECT_EQ(node.prepare(node.pod("q", {"b"})), "");
  EXPECT_EQ(node.unprepare(node.pod("p", {"a"})), "");

  EXPECT_THAT(old_one.log, ElementsAre("registered", "prepare b", "unprepare a"));
}

// ResourceSlices of drivers that are not there.

constexpr const char* kWipe =
    "fieldSelector=spec.driver%3Dgpu.example.com%2Cspec.nodeName%3Dnode-0";

void put_slice(TestNode& node, const std::string& driver) {
  auto slice =
      from_text("{'kind': 'ResourceSlice', 'metadata': {}, 'spec': {'nodeName': 'node-0'}}");
  slice.mut("metadata").set("name", driver);
  slice.mut("spec").set("driver", driver);
  node.api.put(cat("/apis/resource.k8s.io/v1/resourceslices/", driver), slice);
}

constexpr const char* kWipeOld =
    "DELETE /apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.driver%3Dold.example.com"
    "%2Cspec.nodeName%3Dnode-0";

TEST(SliceWiping, a_restarted_agent_gives_drivers_time_to_register) {
  TestNode node;
  node.stop();
  FakeDriver driver(node.network);
  driver.start();
  put_slice(node, "gpu.example.com");
  put_slice(node, "old.example.com");

  node.api.fail("GET /apis/resource.k8s.io/v1/resourceslices", 500, "InternalError", 1);
  node.start();
  node.settle(29s);
  EXPECT_THAT(node.requests_with("DELETE"), IsEmpty());
  node.settle(3s);

  EXPECT_THAT(node.requests_with("DELETE"), ElementsAre(kWipeOld));
}

TEST(SliceWiping, waits_for_a_registration_that_takes_longer_than_that) {
  TestNode node;
  node.stop();
  FakeDriver driver(node.network);
  driver.start();
  put_slice(node, "gpu.example.com");
  driver.on_info = [&]() -> rpc::Reply {
    driver.on_info = nullptr;
    node.settle(60s);
    return {{rpc::Code::unavailable, "connection refused"}, {}};
  };

  node.start();
  node.settle(120s);

  EXPECT_THAT(driver.log, ElementsAre("registered"));
  EXPECT_THAT(node.requests_with("DELETE"), IsEmpty());
}

TEST(SliceWiping, does_not_wait_for_a_plugin_that_cannot_be_registered) {
  TestNode node;
  node.stop();
  FakeDriver driver(node.network);
  driver.start();
  put_slice(node, "gpu.example.com");
  driver.on_info = []() -> rpc::Reply {
    return {{rpc::Code::unavailable, "connection refused"}, {}};
  };

  node.start();
  node.settle(31s);

  EXPECT_EQ(node.requests_with(kWipe).size(), 1U);
}

TEST(SliceWiping, a_release_wipes_all_slices_of_the_node_at_its_start) {
  TestNode node("1.37");

  EXPECT_THAT(node.requests_with("DELETE"),
              ElementsAre("DELETE /apis/resource.k8s.io/v1/resourceslices?fieldSelector="
                          "spec.nodeName%3Dnode-0"));
}

TEST(SliceWiping, a_start_that_failed_spares_the_drivers_that_are_back) {
  TestNode node("1.37");
  node.stop();
  FakeDriver driver(node.network);
  driver.start();
  put_slice(node, "gpu.example.com");
  put_slice(node, "old.example.com");
  node.api.fail("DELETE", 500, "InternalError", 1);

  node.start();
  node.settle(10s);

  EXPECT_THAT(node.requests_with(kWipe), IsEmpty());
  EXPECT_EQ(node.requests_with(kWipeOld).size(), 1U);
}

TEST(SliceWiping, a_driver_that_stays_away_loses_its_slices_after_30_s) {
  TestNode node;
  FakeDriver driver(node.network);
  driver.start();
  node.settle(120s);
  EXPECT_THAT(node.requests_with(kWipe), IsEmpty());

  driver.stop();
  node.settle(29s);
  EXPECT_THAT(node.requests_with(kWipe), IsEmpty());
  node.settle(2s);
  EXPECT_EQ(node.requests_with(kWipe).size(), 1U);
}

TEST(SliceWiping, a_lost_connection_counts_though_the_socket_is_there) {
  TestNode node;
  FakeDriver driver(node.network);
  driver.start();
  node.settle(0s);

  driver.kill_service();
  node.settle(31s);
  EXPECT_EQ(node.requests_with(kWipe).size(), 1U);
  EXPECT_THAT(node.devices->drivers(), ElementsAre("gpu.example.com"));
}

TEST(SliceWiping, a_driver_that_comes_back_in_time_keeps_them) {
  TestNode node;
  FakeDriver driver(node.network);
  driver.start();
  node.settle(0s);

  driver.kill_service();
  node.settle(29s);
  driver.start_service();
  node.settle(60s);
  driver.stop();
  node.settle(29s);
  driver.start();
  node.settle(60s);

  EXPECT_THAT(node.requests_with(kWipe), IsEmpty());
}

TEST(SliceWiping, one_instance_of_two_is_enough) {
  TestNode node;
  FakeDriver old_one(node.network);
  DriverOptions options;
  options.instance = "-2";
  FakeDriver new_one(node.network, options);
  old_one.start();
  new_one.start();
  node.settle(0s);

  old_one.stop();
  node.settle(60s);
  EXPECT_THAT(node.requests_with(kWipe), IsEmpty());
  new_one.stop();
  node.settle(31s);
  EXPECT_EQ(node.requests_with(kWipe).size(), 1U);
}

TEST(SliceWiping, is_tried_until_it_succeeds_and_called_off_when_the_driver_is_back) {
  TestNode node;
  FakeDriver driver(node.network);
  driver.start();
  node.settle(0s);
  node.api.fail(kWipe, 500, "InternalError", 3);

  driver.stop();
  node.settle(60s);
  EXPECT_EQ(node.requests_with(kWipe).size(), 4U);

  node.api.fail(kWipe, 500, "InternalError", 100);
  driver.start();
  node.settle(0s);
  driver.stop();
  node.settle(31s);
  const auto tried = node.requests_with(kWipe).size();
  EXPECT_GT(tried, 4U);
  driver.start();
  node.settle(600s);
  EXPECT_LE(node.requests_with(kWipe).size(), tried + 1);
}

TEST(SliceWiping, older_releases_wipe_at_once_and_what_is_served) {
  TestNode node("1.32", "v1beta1");
  DriverOptions options;
  options.versions = {"v1beta1.DRAPlugin"};
  FakeDriver driver(node.network, options);
  driver.start();
  node.settle(0s);
  driver.kill_service();
  node.settle(60s);
  EXPECT_THAT(node.requests_with(kWipe), IsEmpty());

  driver.stop();
  node.settle(0s);
  EXPECT_THAT(node.requests_with(kWipe),
              ElementsAre(cat("DELETE /apis/resource.k8s.io/v1beta1/resourceslices?", kWipe)));
}

}  // namespace
}  // namespace dibs::node::test
