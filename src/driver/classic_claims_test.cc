// The node half with claims of the classic model: handles in, CDI ids out, in the words of the
// releases that had them; and devices as named resources.
#include <gmock/gmock.h>

#include "base/strings.h"
#include "driver/dra_service.h"
#include "driver/named_resources.h"
#include "driver/test_boxes.h"
#include "proto/dra_v1alpha3.pb.h"

namespace dibs::driver {
namespace {

using json::Value;
using test::ControllerWorld;
using test::from_text;
using testing::ElementsAre;
using testing::HasSubstr;
namespace old = v1alpha3;

/// Remembers what it is told.
class Opener : public Driver {
 public:
  Result<std::vector<Pool>> devices() override {
    Device box("box-0");
    box.attribute("boxes.example.com/colour", "red").attribute("big_Lid", true);
    box.attribute("index", 3).version("model", "1.2.3").capacity("room", "2Gi");
    return std::vector<Pool>{make_pool("node-0", {box})};
  }
  Result<std::vector<PreparedDevice>> prepare(const Claim& claim) override {
    std::vector<PreparedDevice> out;
    for (const auto& handle : claim.handles) {
      if (!handle.structured.is_null()) continue;
      seen.push_back(handle.data);
      if (handle.data == "broken") return Error::invalid("the lid is stuck");
      PreparedDevice device;
      device.device = handle.data.empty() ? "empty" : handle.data;
      device.edits = env_edits({cat("BOX=", handle.data)});
      out.push_back(std::move(device));
    }
    for (const auto& device : claim.devices) {
      seen.push_back(cat(device.pool, "/", device.device));
      out.push_back(prepared(device, env_edits({cat("BOX=", device.device)})));
    }
    return out;
  }
  Result<> unprepare(const ClaimName& claim) override {
    seen.push_back(cat("unprepare ", claim.name));
    return success();
  }
  std::vector<std::string> seen;
};

class ClassicClaimsTest : public testing::TestWithParam<const char*> {
 protected:
  ControllerWorld world{GetParam()};
  Opener opener;
  std::unique_ptr<Plugin> plugin;

  void SetUp() override {
    world.make_class();
    PluginOptions options = test::TestWorld::options(std::string(test::kDriver));
    options.publish = false;
    auto started = Plugin::start(opener, world.environment(), options);
    ASSERT_TRUE(started.ok());
    plugin = std::move(started).value();
  }

  /// A claim whose allocation says this.
  Value allocated(const std::string& name, const std::string& allocation) {
    Value claim = world.make_claim(name);
    claim.set(
        "status",
        from_text(cat("{'driverName': 'boxes.example.com', 'allocation': ", allocation, "}")));
    auto written = world.api->update_status(kClassicClaims, "default", claim);
    EXPECT_TRUE(written.ok()) << written.error().message();
    return *written;
  }

  template <typename Response, typename Request>
  Response call(const std::string& method, const Request& request) {
    const auto channel = world.network.connect(plugin->service_socket());
    const auto reply = channel->call(method, request.SerializeAsString(), std::chrono::seconds(45));
    status = reply.status;
    Response response;
    EXPECT_TRUE(response.ParseFromString(reply.bytes));
    return response;
  }

  old::NodePrepareResourceResponse prepare(const Value& claim,
                                           const std::vector<std::string>& handles) {
    old::NodePrepareResourcesRequest request;
    for (const auto& handle : handles) {
      auto* entry = request.add_claims();
      entry->set_namespace_("default");
      entry->set_name(claim["metadata"]["name"].str());
      entry->set_uid(claim["metadata"]["uid"].str());
      entry->set_resource_handle(handle);
    }
    const auto response =
        call<old::NodePrepareResourcesResponse>("/v1alpha3.Node/NodePrepareResources", request);
    const auto found = response.claims().find(claim["metadata"]["uid"].str());
    return found == response.claims().end() ? old::NodePrepareResourceResponse() : found->second;
  }

  static std::string id(const Value& claim, const std::string& device) {
    return cat("k8s.boxes.example.com/claim=", claim["metadata"]["uid"].as_string(), "-", device);
  }

  rpc::Status status;
};

INSTANTIATE_TEST_SUITE_P(Releases, ClassicClaimsTest, testing::Values("", "1.27", "1.30"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.empty() ? "newest" : "as_" + name.substr(2);
                         });

TEST_P(ClassicClaimsTest, prepare_gets_all_handles_of_the_claim_and_answers_with_ids) {
  const Value claim = allocated(
      "c",
      "{'resourceHandles': [{'driverName': 'boxes.example.com', 'data': 'a'}, {'driverName': "
      "'other.example.com', 'data': 'x'}, {'driverName': 'boxes.example.com', 'data': 'b'}]}");

  const auto answer = prepare(claim, {"a", "b"});

  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(answer.error(), "");
  EXPECT_THAT(answer.cdi_devices(), ElementsAre(id(claim, "a"), id(claim, "b")));
  EXPECT_THAT(opener.seen, ElementsAre("a", "b"));
}

TEST_P(ClassicClaimsTest, an_allocation_without_handles_is_one_empty_handle) {
  const Value claim = allocated("c", "{}");

  const auto answer = prepare(claim, {""});

  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_THAT(answer.cdi_devices(), ElementsAre(id(claim, "empty")));
  EXPECT_THAT(opener.seen, ElementsAre(""));
}

TEST_P(ClassicClaimsTest, an_error_is_told_for_the_claim) {
  const Value claim = allocated(
      "c", "{'resourceHandles': [{'driverName': 'boxes.example.com', 'data': 'broken'}]}");

  EXPECT_THAT(prepare(claim, {"broken"}).error(), HasSubstr("the lid is stuck"));
}

TEST_P(ClassicClaimsTest, one_claim_a_call_in_the_older_versions) {
  const Value claim =
      allocated("c", "{'resourceHandles': [{'driverName': 'boxes.example.com', 'data': 'a'}]}");
  old::NodePrepareResourceRequest request;
  request.set_namespace_("default");
  request.set_claim_name("c");
  request.set_claim_uid(claim["metadata"]["uid"].str());
  request.set_resource_handle("a");

  for (const std::string service : {"/v1alpha2.Node/", "/v1alpha1.Node/"}) {
    opener.seen.clear();
    const auto answer =
        call<old::NodePrepareResourceAnswer>(service + "NodePrepareResource", request);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_THAT(answer.cdi_devices(), ElementsAre(id(claim, "a")));
    call<old::NodeUnprepareResourceAnswer>(service + "NodeUnprepareResource", request);
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_THAT(opener.seen, ElementsAre("a", "unprepare c"));
  }
  request.set_claim_uid("another");
  call<old::NodePrepareResourceAnswer>("/v1alpha2.Node/NodePrepareResource", request);
  EXPECT_EQ(status.message, "get resource claims: claim default/c got replaced");
}

TEST(NamedResources, instances_that_the_scheduler_chose_are_devices) {
  const Value claim = from_text(
      "{'metadata': {'namespace': 'n', 'name': 'c', 'uid': 'u'}, 'spec': {'resourceClassName': "
      "'boxes'}, 'status': {'driverName': 'boxes.example.com', 'allocation': {'resourceHandles': "
      "[{'driverName': 'boxes.example.com', 'structuredData': {'nodeName': 'node-0', "
      "'vendorClaimParameters': {'lid': 'shut'}, 'results': [{'namedResources': {'name': "
      "'box-0'}}]}}]}}}");

  const auto read = read_claim(claim, test::kDriver);

  ASSERT_TRUE(read.ok());
  ASSERT_EQ(read->devices.size(), 1u);
  EXPECT_EQ(read->devices[0].pool, "node-0");
  EXPECT_EQ(read->devices[0].device, "box-0");
  ASSERT_EQ(read->handles.size(), 1u);
  EXPECT_EQ(read->handles[0].structured["vendorClaimParameters"], from_text("{'lid': 'shut'}"));
}

/// Takes two messages.
class Listener : public rpc::StreamWriter {
 public:
  explicit Listener(Plugin& plugin) : plugin_(plugin) {}
  bool write(std::string_view message) override {
    EXPECT_TRUE(offers.emplace_back().ParseFromString(std::string(message)));
    return true;
  }
  bool wait_gone(Duration) override {
    if (offers.size() == 2) return true;
    EXPECT_TRUE(plugin_.publish().ok());
    return false;
  }
  std::vector<old::NodeListAndWatchResourcesResponse> offers;

 private:
  Plugin& plugin_;
};

TEST(NamedResources, bring_the_parameters_of_their_vendor) {
  const auto claim = read_claim(
      from_text("{'metadata': {'name': 'a', 'namespace': 'n', 'uid': 'u'}, "
                "'spec': {'resourceClassName': 'c'}, 'status': "
                "{'driverName': 'd', 'allocation': {'resourceHandles': [{'driverName': 'd', "
                "'structuredData': {'nodeName': 'n', 'vendorClassParameters': {'from': 'class'}, "
                "'vendorClaimParameters': null, 'results': [{'namedResources': {'name': 'x'}, "
                "'vendorRequestParameters': {'from': 'request'}}, {'namedResources': {'name': "
                "'y'}}]}}]}}}"),
      "d");
  ASSERT_TRUE(claim.ok());
  const auto configs = configs_of(*claim, "d");
  ASSERT_TRUE(configs.ok());
  ASSERT_EQ(claim->devices.size(), 2u);
  EXPECT_EQ(config_for(*configs, claim->devices[0].request)->parameters["from"], "request");
  EXPECT_EQ(config_for(*configs, claim->devices[1].request)->parameters["from"], "class");
}

TEST(NamedResources, leave_out_what_would_be_given_away_wrongly) {
  Device part("part-0");
  part.set("consumesCounters", from_text("[{'counterSet': 'c', 'counters': {}}]"));
  Device ill("ill-0");
  ill.set("taints", from_text("[{'key': 'k', 'effect': 'NoSchedule'}]"));
  old::NodeListAndWatchResourcesResponse told;
  ASSERT_TRUE(
      told.ParseFromString(named_resources({make_pool("p", {part, ill, Device("good-0")})})));
  ASSERT_EQ(told.resources(0).named_resources().instances_size(), 1);
  EXPECT_EQ(told.resources(0).named_resources().instances(0).name(), "good-0");
}

TEST(NamedResources, are_streamed_instead_of_published) {
  ControllerWorld world("1.30");
  Opener opener;
  rpc::Methods kept;
  Environment environment = world.environment();
  environment.serve = [&](const std::string& path, rpc::Methods methods) {
    if (path.ends_with("dra.sock")) kept = methods;
    return world.environment().serve(path, std::move(methods));
  };
  PluginOptions options = test::TestWorld::options(std::string(test::kDriver));
  options.named_resources = true;
  auto plugin = Plugin::start(opener, environment, options);
  ASSERT_TRUE(plugin.ok());
  Listener listener(**plugin);

  kept.streams.at("/v1alpha3.Node/NodeListAndWatchResources")("", listener);

  ASSERT_EQ(listener.offers.size(), 2u);
  ASSERT_EQ(listener.offers[0].resources_size(), 1);
  const auto& instances = listener.offers[0].resources(0).named_resources();
  ASSERT_EQ(instances.instances_size(), 1);
  EXPECT_EQ(instances.instances(0).name(), "box-0");
  std::map<std::string, old::NamedResourcesAttributeValue> values;
  for (const auto& attribute : instances.instances(0).attributes()) {
    values[attribute.name()] = attribute.attribute_value();
  }
  EXPECT_EQ(values.at("colour").string(), "red");
  EXPECT_TRUE(values.at("big-lid").bool_());
  EXPECT_EQ(values.at("index").int_(), 3);
  EXPECT_EQ(values.at("model").version(), "1.2.3");
  EXPECT_EQ(values.at("room").quantity().string(), "2Gi");
  EXPECT_THAT(supported_versions(options, false), ElementsAre("1.0.0"));
  world.settle();
  EXPECT_TRUE(world.list({"resource.k8s.io", "v1alpha2", "resourceslices"}, "").empty());
}

}  // namespace
}  // namespace dibs::driver
