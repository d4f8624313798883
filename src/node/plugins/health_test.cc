#include <gmock/gmock.h>

#include <limits>

#include "base/strings.h"
#include "json/parse.h"
#include "node/plugins/device_health.h"
#include "node/plugins/health_monitor.h"
#include "proto/dra_health.pb.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// A driver that streams what the test says.
struct Streams {
  struct Open : rpc::Stream {
    explicit Open(Streams& s) : streams(s) {}
    ~Open() override { streams.handlers = {}; }
    Streams& streams;
  };
  class Channel : public rpc::Channel {
   public:
    explicit Channel(Streams& streams) : streams_(streams) {}
    rpc::Reply call(const std::string&, std::string_view, Duration) override { return {}; }
    std::unique_ptr<rpc::Stream> open_stream(const std::string& method, std::string_view,
                                             rpc::StreamHandlers handlers) override {
      streams_.opened.push_back(method);
      auto stream = std::make_unique<Open>(streams_);
      streams_.handlers = std::move(handlers);
      return stream;
    }
    void watch_connection(std::function<void(bool)> changed) override { changed(true); }

   private:
    Streams& streams_;
  };

  void send(const std::string& device, dra_health::HealthStatus health, std::int64_t timeout = 0,
            const std::string& message = "") {
    dra_health::NodeWatchResourcesResponse response;
    auto* entry = response.add_devices();
    entry->mutable_device()->set_pool_name("pool");
    entry->mutable_device()->set_device_name(device);
    entry->set_health(health);
    entry->set_health_check_timeout_seconds(timeout);
    entry->set_message(message);
    handlers.message(response.SerializeAsString());
  }
  void end(rpc::Code code) {
    const auto ended = handlers.ended;
    ended({code, "end"});
  }

  std::vector<std::string> opened;
  rpc::StreamHandlers handlers;
};

class HealthTest : public testing::Test {
 protected:
  HealthTest()
      : files(runtime::make_memory_files()),
        metrics(nullptr),
        health("health", *files, sim.runtime().clock),
        monitor(sim.runtime(), health,
                [this](const std::string& driver, const std::vector<DeviceName>& devices) {
                  for (const auto& device : devices) {
                    changes.push_back(cat(driver, " ", device.device, " ", state(device.device)));
                  }
                }) {}

  std::shared_ptr<DraPlugin> plugin(HealthApi api, bool advertised = true) {
    Negotiated spoken;
    spoken.health = api;
    spoken.health_advertised = advertised;
    auto made = std::make_shared<DraPlugin>(PluginInfo{"DRAPlugin", "d", "/d.sock", {}}, spoken,
                                            std::make_unique<Streams::Channel>(streams),
                                            sim.runtime().clock, metrics);
    made->watch([] {});
    return made;
  }
  std::string state(const std::string& device) {
    const auto known = health.of("d", {"pool", device});
    const char* text = known.health == Health::healthy     ? "healthy"
                       : known.health == Health::unhealthy ? "unhealthy"
                                                           : "unknown";
    return known.message.empty() ? text : cat(text, ": ", known.message);
  }

  runtime::SimRuntime sim;
  std::unique_ptr<runtime::Files> files;
  PluginMetrics metrics;
  Streams streams;
  std::vector<std::string> changes;
  DeviceHealth health;
  HealthMonitor monitor;
};

TEST_F(HealthTest, reports_reach_the_devices_and_only_changes_are_told) {
  monitor.add(plugin(HealthApi::v1));
  sim.run_until_idle();
  EXPECT_THAT(streams.opened, ElementsAre("/v1.DRAResourceHealth/NodeWatchResources"));

  streams.send("a", dra_health::HEALTHY);
  streams.send("a", dra_health::HEALTHY);
  streams.send("a", dra_health::UNHEALTHY, 0, "hot");
  sim.run_until_idle();

  EXPECT_THAT(changes, ElementsAre("d a healthy", "d a unhealthy: hot"));
}

TEST_F(HealthTest, what_is_not_repeated_times_out) {
  monitor.add(plugin(HealthApi::v1alpha1));
  sim.run_until_idle();
  EXPECT_THAT(streams.opened, ElementsAre("/v1alpha1.DRAResourceHealth/NodeWatchResources"));
  streams.send("a", dra_health::HEALTHY);
  streams.send("b", dra_health::HEALTHY, 100);
  sim.run_until_idle();
  changes.clear();

  sim.advance(36s);
  EXPECT_EQ(state("a"), "unknown");
  EXPECT_EQ(state("b"), "healthy");
  EXPECT_THAT(changes, ElementsAre("d a unknown"));
  sim.advance(200s);
  EXPECT_THAT(changes, ElementsAre("d a unknown", "d b unknown"));
}

TEST_F(HealthTest, timeouts_may_be_any_number) {
  monitor.add(plugin(HealthApi::v1));
  sim.run_until_idle();

  streams.send("a", dra_health::HEALTHY, std::numeric_limits<std::int64_t>::min());
  streams.send("b", dra_health::HEALTHY, std::numeric_limits<std::int64_t>::max());
  sim.run_until_idle();
  sim.advance(36s);

  EXPECT_EQ(state("a"), "unknown");
  EXPECT_EQ(state("b"), "healthy");
}

TEST_F(HealthTest, a_message_is_cut_between_characters) {
  monitor.add(plugin(HealthApi::v1));
  sim.run_until_idle();
  std::string longer = "x";
  for (int i = 0; i < 1000; ++i) longer += "\u00fc";

  streams.send("a", dra_health::UNHEALTHY, 0, longer);
  sim.run_until_idle();

  const std::string message = health.of("d", {"pool", "a"}).message;
  EXPECT_TRUE(is_valid_utf8(message));
  EXPECT_TRUE(message.ends_with("...")) << message;
  EXPECT_LE(message.size(), 1024u);
}

TEST_F(HealthTest, a_device_that_cannot_be_is_left_out) {
  monitor.add(plugin(HealthApi::v1));
  sim.run_until_idle();

  streams.send("a/b", dra_health::HEALTHY);
  sim.run_until_idle();

  EXPECT_EQ(state("a/b"), "unknown");
}

TEST_F(HealthTest, times_in_the_file_may_be_any) {
  const auto entry = [](std::string_view name, std::string_view time, std::string_view timeout) {
    return cat("\"pool/", name, R"(":{"PoolName":"pool","DeviceName":")", name,
               R"(","Health":"Healthy","LastUpdated":")", time, R"(","HealthCheckTimeout":)",
               timeout, "}");
  };
  ASSERT_TRUE(
      files
          ->write("other", cat(R"({"d":{"Devices":{)",
                               entry("a", "0001-01-01T00:00:00Z", "9223372036854775807"), ",",
                               entry("b", "9999-01-01T00:00:00Z", "-9223372036854775808"), "}}}"))
          .ok());

  DeviceHealth read("other", *files, sim.runtime().clock);

  EXPECT_EQ(read.of("d", {"pool", "a"}).health, Health::unknown);
  EXPECT_EQ(read.of("d", {"pool", "b"}).health, Health::healthy);
  EXPECT_EQ(read.expire().size(), 1u);
}

TEST_F(HealthTest, the_end_of_a_stream_clears_and_it_is_opened_again) {
  monitor.add(plugin(HealthApi::v1));
  sim.run_until_idle();
  streams.send("a", dra_health::HEALTHY);
  sim.run_until_idle();

  streams.end(rpc::Code::unavailable);
  sim.run_until_idle();
  EXPECT_THAT(changes, ElementsAre("d a healthy", "d a unknown"));
  sim.advance(4s);
  EXPECT_EQ(streams.opened.size(), 1U);
  sim.advance(2s);
  EXPECT_EQ(streams.opened.size(), 2U);

  streams.end(rpc::Code::unavailable);
  sim.run_until_idle();
  monitor.retry("d");
  sim.run_until_idle();
  EXPECT_EQ(streams.opened.size(), 3U);
}

TEST_F(HealthTest, a_driver_without_the_service_is_left_alone) {
  monitor.add(plugin(HealthApi::v1));
  sim.run_until_idle();
  streams.end(rpc::Code::unimplemented);
  sim.advance(60s);
  EXPECT_EQ(streams.opened.size(), 1U);
}

TEST_F(HealthTest, up_to_1_36_such_a_driver_is_asked_for_ever) {
  monitor.add(plugin(HealthApi::v1alpha1, false));
  sim.run_until_idle();
  streams.end(rpc::Code::unimplemented);
  sim.advance(6s);
  EXPECT_EQ(streams.opened.size(), 2U);
}

TEST_F(HealthTest, a_driver_that_is_removed_is_forgotten) {
  const auto mine = plugin(HealthApi::v1);
  monitor.add(mine);
  sim.run_until_idle();
  streams.send("a", dra_health::UNHEALTHY);
  sim.run_until_idle();

  monitor.remove(mine);
  sim.run_until_idle();

  EXPECT_EQ(state("a"), "unknown");
  EXPECT_FALSE(streams.handlers.message);
}

TEST_F(HealthTest, garbage_changes_nothing) {
  monitor.add(plugin(HealthApi::v1));
  sim.run_until_idle();
  streams.handlers.message("\xff\xff");
  sim.run_until_idle();
  EXPECT_THAT(changes, IsEmpty());
}

TEST_F(HealthTest, is_kept_across_a_restart_and_a_broken_file_is_ignored) {
  health.report("d", {{{"pool", "a"}, Health::unhealthy, 100s, "hot"}});

  DeviceHealth next("health", *files, sim.runtime().clock);
  EXPECT_EQ(next.of("d", {"pool", "a"}).message, "hot");
  ASSERT_TRUE(files->write("health", "{").ok());
  DeviceHealth broken("health", *files, sim.runtime().clock);
  EXPECT_EQ(broken.of("d", {"pool", "a"}).health, Health::unknown);
}

TEST_F(HealthTest, long_messages_are_cut_and_devices_bounded) {
  health.report("d", {{{"pool", "a"}, Health::unhealthy, 0s, std::string(2000, 'x')}});
  EXPECT_EQ(health.of("d", {"pool", "a"}).message.size(), 1024U);
  std::vector<HealthReport> many;
  for (int i = 0; i < 17000; ++i) many.push_back({{"pool", cat("n", i)}, Health::healthy, 0s, ""});
  EXPECT_EQ(health.report("d", many).size(), 16383U);
}

TEST_F(HealthTest, describes_what_a_container_uses) {
  ClaimInfo claim;
  claim.drivers["d"].devices = {
      {"d", "pool", "a", "", {"one"}, {"v/c=common", "v/c=a"}},
      {"d", "pool", "b", "", {"two"}, {"v/c=common", "v/c=b"}},
      {"d", "pool", "e", "", {"two"}, {}},
  };
  health.report("d", {{{"pool", "a"}, Health::healthy, 0s, ""},
                      {{"pool", "e"}, Health::unhealthy, 0s, "hot"}});

  EXPECT_EQ(json::write(health.describe(claim, {"x", "c", ""}, true)),
            R"([{"resourceID":"v/c=common","health":"Unknown"},)"
            R"({"resourceID":"d/pool/e","health":"Unhealthy","message":"hot"}])");
  EXPECT_EQ(json::write(health.describe(claim, {"x", "c", "one"}, false)),
            R"([{"resourceID":"v/c=common","health":"Healthy"}])");
}

TEST_F(HealthTest, says_which_device_is_ill_where_the_first_id_is_common) {
  ClaimInfo claim;
  claim.drivers["d"].devices = {
      {"d", "pool", "gpu-0", "", {"r"}, {"v/c=common", "v/c=uid-gpu-0"}},
      {"d", "pool", "gpu-1", "", {"r"}, {"v/c=common", "v/c=uid-gpu-1"}},
  };
  health.report("d", {{{"pool", "gpu-0"}, Health::healthy, 0s, ""},
                      {{"pool", "gpu-1"}, Health::unhealthy, 0s, "hot"}});

  EXPECT_EQ(json::write(health.describe(claim, {"x", "c", ""}, true)),
            R"([{"resourceID":"v/c=common","health":"Healthy"},)"
            R"({"resourceID":"v/c=uid-gpu-1","health":"Unhealthy","message":"hot"}])");
}

}  // namespace
}  // namespace dibs::node
