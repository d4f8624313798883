// Compares with what the real dra-example-driver published, answered and wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "base/strings.h"
#include "base/test_data.h"
#include "client/testing/fake_api.h"
#include "driver/test_world.h"
#include "drivers/gpu/gpu_driver.h"
#include "json/yaml.h"
#include "proto/plugin_registration.pb.h"

namespace dibs::drivers {
namespace {

using driver::ClaimName;
using driver::test::TestWorld;
using json::Value;
namespace dra = driver::test::dra;

constexpr const char* kPodUid = "00000000-0000-4000-8000-000000000000";

Value recording() {
  const auto path = dibs::test::conformance_data("drivers/dra-example-driver.json");
  if (path.empty()) return {};
  auto parsed = json::parse(dibs::test::read_file(path));
  EXPECT_TRUE(parsed.ok());
  return parsed ? *parsed : Value();
}

GpuDriverOptions options_of(const Value& flags, const std::string& profile,
                            const std::string& node) {
  GpuDriverOptions options;
  options.node_name = node;
  options.profile = profile;
  options.registry_dir = "/node/plugins_registry";
  options.plugins_dir = "/node/plugins";
  options.cdi_root = "/node/cdi";
  options.pod_uid = kPodUid;
  options.create_class = false;
  options.faults =
      false;  // with them it says how well devices are, which the recorded one does not
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const std::string flag = flags[i].str();
    const auto number = [&] { return static_cast<unsigned>(std::stoul(flags[++i].str())); };
    if (flag == "--num-devices") {
      options.devices = number();
    } else if (flag == "--gpu-partitions") {
      options.gpu_partitions = number();
    } else if (flag == "--gpu-allow-multiple-allocations") {
      options.gpu_allow_multiple_allocations = true;
    } else if (flag == "--binding-conditions") {
      options.binding_conditions = true;
    } else if (flag == "--gpu-device-status") {
      options.gpu_device_status = true;
    } else if (flag == "--device-profile") {
      options.profile = flags[++i].str();
    } else {
      ADD_FAILURE() << "unknown flag " << flag;
    }
  }
  return options;
}

/// Recorded without NODE_NAME; ours has the node's name there.
Value with_node_name(Value spec, const std::string& node) {
  Value devices = Value::array();
  for (const auto& given : spec["devices"].items()) {
    Value device = given;
    Value env = Value::array();
    for (const auto& line : given["containerEdits"]["env"].items()) {
      env.push(line.as_string() == "KUBERNETES_NODE_NAME="
                   ? Value(cat("KUBERNETES_NODE_NAME=", node))
                   : line);
    }
    device.mut("containerEdits").set("env", env);
    devices.push(device);
  }
  spec.set("devices", devices);
  return spec;
}

Value cdi_files(runtime::Files& files) {
  Value out = Value::object();
  const auto listed = files.list("/node/cdi");
  for (const auto& name : *listed) {
    auto spec = json::parse_yaml(*files.read(cat("/node/cdi/", name)));
    EXPECT_TRUE(spec.ok());
    out.set(name, *spec);
  }
  return out;
}

Value expected_cdi(const Value& recorded, const std::string& node) {
  Value out = Value::object();
  for (const auto& [name, spec] : recorded.members()) out.set(name, with_node_name(spec, node));
  return out;
}

class Counts {
 public:
  void compare(const std::string& what, const Value& got, const Value& wanted) {
    ++all_;
    if (got == wanted) {
      ++same_;
      return;
    }
    ADD_FAILURE() << what << ":\n  got      " << json::write(got) << "\n  recorded "
                  << json::write(wanted);
  }
  void print(const char* what) const {
    std::cout << what << ": " << same_ << " of " << all_ << " comparisons are as recorded\n";
  }

 private:
  int all_ = 0;
  int same_ = 0;
};

Value shown_slice(const Value& slice) {
  Value owners = slice["metadata"]["ownerReferences"];
  owners.mut(std::size_t{0}).set("uid", "<uid>");
  return Value::object({{"spec", slice["spec"]},
                        {"generateName", slice["metadata"]["generateName"]},
                        {"generation", slice["metadata"]["generation"]},
                        {"ownerReferences", owners}});
}

Value shown_info(const pluginregistration::PluginInfo& info) {
  Value versions = Value::array();
  for (const auto& version : info.supported_versions()) versions.push(version);
  const std::string folder = "/node";
  return Value::object({{"type", info.type()},
                        {"name", info.name()},
                        {"endpoint", cat("<node dir>", info.endpoint().substr(folder.size()))},
                        {"supported_versions", versions}});
}

TEST(ExampleDriver, publishes_as_recorded) {
  const Value recorded = recording();
  if (recorded.is_null()) GTEST_SKIP() << "no recordings of the example driver here";
  Counts counts;
  for (const auto& [name, way] : recorded["publish"].members()) {
    SCOPED_TRACE(name);
    TestWorld world;
    auto started = start_gpu_driver(world.environment(), options_of(way["flags"], "gpu", "node-0"));
    ASSERT_TRUE(started.ok()) << started.error().message();
    world.settle();

    Value got = Value::array();
    for (const auto& slice : world.slices()) got.push(shown_slice(slice));
    Value wanted = Value::array();
    for (const auto& slice : way["slices"].items()) wanted.push(shown_slice(slice));
    counts.compare("slices", got, wanted);

    const auto channel = world.network.connect(started->plugin->registration_socket());
    pluginregistration::PluginInfo info;
    info.ParseFromString(
        channel->call("/pluginregistration.Registration/GetInfo", "", std::chrono::seconds(1))
            .bytes);
    counts.compare("registration", shown_info(info), way["registration"]["info"]);
    if (way.contains("cdiAtStart")) {
      counts.compare("CDI files", cdi_files(*world.files),
                     expected_cdi(way["cdiAtStart"], "node-0"));
    }
  }
  counts.print("ways to start");
}

Value shown(const dra::NodePrepareResourcesResponse& response) {
  Value claims = Value::object();
  for (const auto& [uid, entry] : response.claims()) {
    Value devices = Value::array();
    for (const auto& device : entry.devices()) {
      Value requests = Value::array();
      for (const auto& request : device.request_names()) requests.push(request);
      Value ids = Value::array();
      for (const auto& id : device.cdi_device_ids()) ids.push(id);
      Value one = Value::object({{"request_names", requests},
                                 {"pool_name", device.pool_name()},
                                 {"device_name", device.device_name()},
                                 {"cdi_device_ids", ids}});
      if (device.has_share_id()) one.set("share_id", device.share_id());
      devices.push(one);
    }
    Value shown_entry = Value::object({{"devices", devices}});
    if (!entry.error().empty()) shown_entry.set("error", entry.error());
    claims.set(uid, shown_entry);
  }
  return Value::object({{"claims", claims}});
}

Value shown(const dra::NodeUnprepareResourcesResponse& response) {
  Value claims = Value::object();
  for (const auto& [uid, entry] : response.claims()) {
    Value shown_entry = Value::object();
    if (!entry.error().empty()) shown_entry.set("error", entry.error());
    claims.set(uid, shown_entry);
  }
  return Value::object({{"claims", claims}});
}

Value names(const Value& files) {
  Value out = Value::array();
  for (const auto& [name, spec] : files.members()) out.push(name);
  return out;
}

/// A world whose API is the small one, since claims have the uids of the recording.
struct ClaimWorld {
  ClaimWorld() {
    client::InProcessOptions in_process;
    in_process.pump = [this] { return sim.run_until_idle() > 0; };
    transport = client::make_in_process_transport(api.handler(), sim.runtime(), in_process);
    client = std::make_unique<client::Client>(*transport);
    for (const char* folder : {"/node/plugins_registry", "/node/plugins", "/node/cdi"}) {
      EXPECT_TRUE(files->make_dirs(folder).ok());
    }
  }
  driver::Environment environment() {
    return {*client, sim.runtime(), *files, nullptr,
            [this](const std::string& path,
                   rpc::Methods methods) -> Result<std::unique_ptr<rpc::Server>> {
              return network.serve(path, std::move(methods));
            }};
  }
  std::string call(const std::string& socket, const char* method, const std::string& request) {
    const auto reply = network.connect(socket)->call(cat(TestWorld::kV1, method), request,
                                                     std::chrono::seconds(45));
    EXPECT_TRUE(reply.status.ok()) << reply.status.text();
    return reply.bytes;
  }

  runtime::SimRuntime sim;
  client::FakeApi api;
  rpc::MemoryNetwork network;
  std::unique_ptr<runtime::Files> files = runtime::make_memory_files();
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
};

TEST(ExampleDriver, prepares_claims_as_recorded) {
  const Value recorded = recording();
  if (recorded.is_null()) GTEST_SKIP() << "no recordings of the example driver here";
  Counts counts;
  for (const auto& [name, example] : recorded["examples"].members()) {
    for (const auto& [key, steps] : example["prepare"].members()) {
      SCOPED_TRACE(cat(name, " ", key));
      const std::string node = steps["node"].str();
      const Value& claim = example["claims"][key];
      ClaimWorld world;
      const std::string path =
          cat("/apis/resource.k8s.io/v1/namespaces/", claim["metadata"]["namespace"].as_string(),
              "/resourceclaims/", claim["metadata"]["name"].as_string());
      world.api.put(path, claim);
      auto started = start_gpu_driver(world.environment(),
                                      options_of(example["flags"], example["profile"].str(), node));
      ASSERT_TRUE(started.ok()) << started.error().message();
      const std::string socket = started->plugin->service_socket();
      dra::NodePrepareResourcesRequest request;
      auto* named = request.add_claims();
      named->set_namespace_(claim["metadata"]["namespace"].str());
      named->set_name(claim["metadata"]["name"].str());
      named->set_uid(claim["metadata"]["uid"].str());
      const std::string bytes = request.SerializeAsString();

      for (const char* turn : {"first", "again"}) {
        dra::NodePrepareResourcesResponse response;
        ASSERT_TRUE(response.ParseFromString(world.call(socket, "NodePrepareResources", bytes)));
        counts.compare(turn, shown(response), steps[turn]["response"]);
      }
      counts.compare("CDI files", cdi_files(*world.files), expected_cdi(example["cdi"][key], node));
      counts.compare("status", (*world.api.get(path))["status"], steps["claimStatusAfter"]);
      for (const char* turn : {"unprepare", "unprepareAgain"}) {
        dra::NodeUnprepareResourcesResponse response;
        ASSERT_TRUE(response.ParseFromString(world.call(socket, "NodeUnprepareResources", bytes)));
        counts.compare(turn, shown(response), steps[turn]["response"]);
      }
      counts.compare("CDI files after", names(cdi_files(*world.files)), steps["cdiAfter"]);
    }
  }
  counts.print("claims of the examples");
}

}  // namespace
}  // namespace dibs::drivers
