// What every driver of the table does, seen from a node's agent and the API server; and the example
// of examples/driver, which is written as other people's are. What a driver's devices are is read
// off its slices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/plug_points.h"
#include "base/strings.h"
#include "driver/test_world.h"
#include "drivers/drivers.h"
#include "drivers/nvidia/fake/testing/fake_machine.h"
#include "drivers/nvidia/nvidia_driver.h"
#include "examples/driver/lamps.h"
#include "proto/plugin_registration.pb.h"

namespace dibs::drivers {
namespace {

using driver::ClaimName;
using driver::test::DyingFiles;
using driver::test::TestWorld;
using json::Value;
using testing::IsEmpty;
using testing::Not;

const Place kPlace{"node-0", "/node"};

Result<driver::Running> start_lamps(driver::Environment environment, const Place& place) {
  driver::PluginOptions options;
  options.driver_name = lamps::kName;
  options.node_name = place.node_name;
  options.registry_dir = cat(place.folder, "/plugins_registry");
  options.plugins_dir = cat(place.folder, "/plugins");
  options.cdi_dir = cat(place.folder, "/cdi");
  return driver::start_driver(std::make_unique<lamps::Lamps>(place.node_name),
                              std::move(environment), options);
}

/// As the table starts it, on a machine that is made up.
Result<driver::Running> start_on_fake_machine(driver::Environment environment, const Place& place) {
  static const nvidia::fake::FakeMachine machine("h200");
  static const std::string root = machine.lay_out();
  Tuning tuning;
  tuning.nvidia = [](nvidia::NvidiaDriverOptions& options) { options.driver_root = root; };
  Place there = place;
  there.tuning = &tuning;
  return find_named(driver_kinds(), "nvidia")->start(std::move(environment), there);
}

std::vector<DriverKind> kinds() {
  std::vector<DriverKind> out;
  for (const DriverKind& kind : driver_kinds()) {
    // What the network driver has depends on the machine.
    if (kind.name == "nvidia") {
      out.push_back({kind.name, kind.driver, kind.description, start_on_fake_machine});
    } else if (kind.name != "net") {
      out.push_back(kind);
    }
  }
  out.push_back({"lamps", lamps::kName, "the example of examples/driver", start_lamps});
  return out;
}

class DriverContract : public testing::TestWithParam<DriverKind> {
 protected:
  DriverContract() {
    running_ = start(*world.files);
    world.settle();
    for (const Value& slice : world.slices()) {
      for (const Value& device : slice["spec"]["devices"].items()) {
        if (!device_.empty()) continue;
        driver_ = slice["spec"]["driver"].str();
        pool_ = slice["spec"]["pool"]["name"].str();
        device_ = device["name"].str();
      }
    }
    // What stays when nothing is prepared.
    idle_cdi_ = cdi_files();
  }
  ~DriverContract() override { running_ = {}; }

  driver::Running start(runtime::Files& files) {
    auto started = GetParam().start(world.environment(files), kPlace);
    EXPECT_TRUE(started.ok()) << started.error().message();
    return started.ok() ? std::move(started).value() : driver::Running();
  }
  void restart() {
    running_ = {};
    running_ = start(*world.files);
    world.settle();
  }

  /// A claim that has the driver's first device.
  ClaimName allocated(const std::string& name, const std::string& config = "[]") {
    return TestWorld::name_of(world.make_claim(
        name, cat("{'devices': {'results': [{'request': 'r', 'driver': '", driver_, "', 'pool': '",
                  pool_, "', 'device': '", device_, "'}], 'config': ", config, "}}")));
  }
  /// An opaque configuration of the driver's.
  std::string opaque(const std::string& parameters) const {
    return cat("[{'source': 'FromClaim', 'opaque': {'driver': '", driver_,
               "', 'parameters': ", parameters, "}}]");
  }

  /// "request pool/device cdi-id …" of each device; or the error.
  std::string prepare(const ClaimName& claim) {
    const auto response = world.prepare(*running_.plugin, {claim});
    if (!world.status.ok()) return cat("error: ", world.status.message);
    const auto& answer = response.claims().at(claim.uid);
    if (!answer.error().empty()) return cat("error: ", answer.error());
    std::string out;
    for (const auto& device : answer.devices()) {
      append(out, out.empty() ? "" : "; ", device.request_names(0), " ", device.pool_name(), "/",
             device.device_name());
      for (const auto& id : device.cdi_device_ids()) append(out, " ", id);
    }
    return out;
  }
  /// "", or the error.
  std::string unprepare(const ClaimName& claim) {
    const auto response = world.unprepare(*running_.plugin, {claim});
    return world.status.ok() ? response.claims().at(claim.uid).error() : world.status.message;
  }

  std::vector<std::string> cdi_files() {
    auto listed = world.files->list("/node/cdi");
    return listed.ok() ? *listed : std::vector<std::string>();
  }

  TestWorld world;
  driver::Running running_;
  std::string driver_, pool_, device_;
  std::vector<std::string> idle_cdi_;
};

INSTANTIATE_TEST_SUITE_P(Drivers, DriverContract, testing::ValuesIn(kinds()), [](const auto& info) {
  std::string name(info.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

/// Its role names it so.
TEST_P(DriverContract, is_called_in_its_slices_what_the_table_says) {
  EXPECT_EQ(driver_, GetParam().driver);
}

TEST_P(DriverContract, registers_with_the_agent) {
  const auto channel = world.network.connect(running_.plugin->registration_socket());
  const auto reply =
      channel->call("/pluginregistration.Registration/GetInfo", "", std::chrono::seconds(1));
  ASSERT_TRUE(reply.status.ok()) << reply.status.message;
  pluginregistration::PluginInfo info;
  ASSERT_TRUE(info.ParseFromString(reply.bytes));
  EXPECT_EQ(info.type(), "DRAPlugin");
  EXPECT_EQ(info.name(), driver_);
  EXPECT_EQ(info.endpoint(), running_.plugin->service_socket());
  EXPECT_GT(info.supported_versions_size(), 0);
}

TEST_P(DriverContract, publishes_its_devices) {
  EXPECT_TRUE(running_.plugin->is_published());
  std::set<std::string> names;
  for (const Value& slice : world.slices()) {
    EXPECT_EQ(slice["spec"]["driver"], driver_);
    EXPECT_EQ(slice["spec"]["nodeName"], "node-0");
    EXPECT_EQ(slice["spec"]["pool"]["generation"], 1);
    for (const Value& device : slice["spec"]["devices"].items()) {
      EXPECT_TRUE(names.insert(device["name"].str()).second) << device["name"].str();
    }
  }
  EXPECT_THAT(names, Not(IsEmpty()));
}

TEST_P(DriverContract, prepares_a_claim_as_often_as_asked) {
  const ClaimName claim = allocated("a");
  const std::string first = prepare(claim);
  EXPECT_THAT(first, testing::StartsWith(cat("r ", pool_, "/", device_)));
  const auto files = cdi_files();
  EXPECT_EQ(prepare(claim), first);
  EXPECT_EQ(cdi_files(), files);
  // Each name of a CDI device is in a file that the runtime will find.
  for (const auto piece : split(first, ' ')) {
    const auto equals = piece.find('=');
    if (equals == std::string_view::npos) continue;
    const auto has = [&](const std::string& file) {
      const auto text = world.files->read(cat("/node/cdi/", file));
      return text.ok() && text->find(piece.substr(equals + 1)) != std::string::npos;
    };
    EXPECT_TRUE(std::any_of(files.begin(), files.end(), has)) << piece;
  }
}

TEST_P(DriverContract, unprepares_without_a_trace) {
  const ClaimName claim = allocated("a");
  prepare(claim);
  EXPECT_EQ(unprepare(claim), "");
  EXPECT_EQ(cdi_files(), idle_cdi_);
  EXPECT_EQ(unprepare(claim), "");
  EXPECT_EQ(unprepare({"default", "never-seen", "11111111-2222-3333-4444-555555555555"}), "");
}

TEST_P(DriverContract, goes_on_after_a_restart) {
  const ClaimName claim = allocated("a");
  const std::string first = prepare(claim);
  const auto slices = world.slices();
  restart();
  EXPECT_EQ(world.slices(), slices);
  EXPECT_EQ(prepare(claim), first);
  restart();
  EXPECT_EQ(unprepare(claim), "");
  EXPECT_EQ(cdi_files(), idle_cdi_);
}

TEST_P(DriverContract, refuses_a_claim_that_it_cannot_read) {
  const ClaimName good = allocated("a");
  ClaimName other = good;
  other.uid = "11111111-2222-3333-4444-555555555555";
  const ClaimName unknown = {"default", "nosuch", "66666666-2222-3333-4444-555555555555"};
  EXPECT_THAT(prepare(unknown), testing::StartsWith("error: "));
  EXPECT_THAT(prepare(other), testing::StartsWith("error: "));
  EXPECT_EQ(cdi_files(), idle_cdi_);
  // As in the helper of Kubernetes, the whole call is refused; the agent asks again.
  world.prepare(*running_.plugin, {unknown, good});
  EXPECT_FALSE(world.status.ok());
  EXPECT_EQ(cdi_files(), idle_cdi_);
  EXPECT_THAT(prepare(good), testing::StartsWith("r "));
}

TEST_P(DriverContract, takes_or_refuses_any_configuration) {
  int n = 0;
  for (const char* parameters :
       {"{'apiVersion': 'nonsense/v7', 'kind': 'Nonsense'}", "{'kind': 7}", "{'a': [[[{}]]]}",
        "{'apiVersion': 'gpu.resource.example.com/v1alpha1', 'kind': 'GpuConfig', 'sharing': 1}",
        "{}"}) {
    SCOPED_TRACE(parameters);
    const ClaimName claim = allocated(cat("c", ++n), opaque(parameters));
    if (prepare(claim).starts_with("error: ")) {
      EXPECT_EQ(cdi_files(), idle_cdi_);
    }
    EXPECT_EQ(unprepare(claim), "");
    EXPECT_EQ(cdi_files(), idle_cdi_);
    world.remove(driver::test::kClaims, "default", claim.name);
  }
  EXPECT_THAT(prepare(allocated("good")), testing::StartsWith("r "));
}

TEST_P(DriverContract, may_be_killed_between_any_two_writes) {
  const ClaimName claim = allocated("a");
  for (int n = 0;; ++n) {
    SCOPED_TRACE(n);
    running_ = {};
    DyingFiles dying(*world.files, n);
    if (auto mortal = GetParam().start(world.environment(dying), kPlace); mortal.ok()) {
      running_ = std::move(mortal).value();
      prepare(claim);
      unprepare(claim);
    }
    restart();
    EXPECT_THAT(prepare(claim), testing::StartsWith("r "));
    EXPECT_EQ(unprepare(claim), "");
    EXPECT_EQ(cdi_files(), idle_cdi_);
    if (!dying.died()) break;
  }
}

TEST_P(DriverContract, leaves_no_socket_behind) {
  const std::string registration = running_.plugin->registration_socket();
  running_ = {};
  const auto reply =
      world.network.connect(registration)
          ->call("/pluginregistration.Registration/GetInfo", "", std::chrono::seconds(1));
  EXPECT_FALSE(reply.status.ok());
  EXPECT_THAT(world.slices(), Not(IsEmpty()));
}

}  // namespace
}  // namespace dibs::drivers
