// The small parts: claims and their configs, sockets' names, flags, health.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "driver/claim.h"
#include "driver/device_status.h"
#include "driver/dra_service.h"
#include "driver/process.h"
#include "driver/process_servers.h"
#include "driver/sockets.h"
#include "driver/test_world.h"
#include "proto/dra_health.pb.h"

namespace dibs::driver {
namespace {

using test::from_text;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Claim, keeps_results_of_its_driver_alone) {
  const auto claim =
      read_claim(from_text(R"({'metadata': {'namespace': 'n', 'name': 'c', 'uid': 'u'},
      'status': {'allocation': {'devices': {'results': [
        {'request': 'a', 'driver': 'd', 'pool': 'p', 'device': 'x', 'shareID': 's',
         'consumedCapacity': {'m': '1'}},
        {'request': 'b', 'driver': 'other', 'pool': 'p', 'device': 'y', 'adminAccess': true}]}}}})"),
                 "d");

  ASSERT_TRUE(claim.ok());
  EXPECT_TRUE(claim->admin_access);
  ASSERT_EQ(claim->devices.size(), 1u);
  EXPECT_EQ(claim->devices[0].device, "x");
  EXPECT_EQ(claim->devices[0].share_id, "s");
  EXPECT_FALSE(claim->devices[0].admin_access);
  EXPECT_EQ(claim->devices[0].consumed["m"].str(), "1");
}

Claim with_configs(const std::string& configs) {
  Claim claim;
  claim.object =
      from_text(cat("{'status': {'allocation': {'devices': {'config': ", configs, "}}}}"));
  return claim;
}

TEST(Claim, later_and_own_configs_win) {
  const Claim claim = with_configs(R"([
      {'source': 'FromClaim', 'requests': ['a'], 'opaque': {'driver': 'd', 'parameters': {'n': 3}}},
      {'source': 'FromClass', 'opaque': {'driver': 'd', 'parameters': {'n': 1}}},
      {'source': 'FromClass', 'requests': ['a'], 'opaque': {'driver': 'd', 'parameters': {'n': 2}}},
      {'source': 'FromClaim', 'opaque': {'driver': 'other', 'parameters': {'n': 9}}}])");

  const auto configs = configs_of(claim, "d");

  ASSERT_TRUE(configs.ok());
  ASSERT_EQ(configs->size(), 3u);
  EXPECT_EQ(config_for(*configs, "a")->parameters["n"].as_int(), 3);
  EXPECT_EQ(config_for(*configs, "b")->parameters["n"].as_int(), 1);
  EXPECT_EQ(config_for(*configs, "a/sub")->parameters["n"].as_int(), 1);
  EXPECT_EQ(config_for({}, "a"), nullptr);
}

TEST(Claim, configs_that_no_driver_knows_are_errors) {
  EXPECT_EQ(configs_of(with_configs("[{'source': 'FromMoon'}]"), "d").error().message(),
            "invalid config source: FromMoon");
  EXPECT_EQ(configs_of(with_configs("[{'source': 'FromClaim'}]"), "d").error().message(),
            "only opaque parameters are supported by this driver");
}

// The agent names claims, and files are named after them.
TEST(Claim, names_that_lead_elsewhere_are_errors) {
  EXPECT_TRUE(check_name({"n", "c", "u"}).ok());
  for (const std::string& bad :
       std::vector<std::string>{"", ".", "..", "../x", "a/b", {"a\0b", 3}}) {
    EXPECT_FALSE(check_name({bad, "c", "u"}).ok()) << bad;
    EXPECT_FALSE(check_name({"n", bad, "u"}).ok()) << bad;
    EXPECT_FALSE(check_name({"n", "c", bad}).ok()) << bad;
  }
}

TEST(Claim, requests_that_lead_elsewhere_are_errors) {
  const auto read = [](const std::string& request) {
    return read_claim(
        from_text("{'metadata': {'namespace': 'n', 'name': 'c', 'uid': 'u'}, 'status': "
                  "{'allocation': {'devices': {'results': [{'driver': 'd', 'request': '" +
                  request + "'}]}}}}"),
        "d");
  };
  EXPECT_TRUE(read("r").ok());
  EXPECT_TRUE(read("r/alternative").ok());
  EXPECT_FALSE(read("").ok());
  EXPECT_FALSE(read("../r").ok());
}

TEST(DeviceStatus, has_one_entry_per_device_and_one_condition_per_type) {
  json::Value claim = json::Value::object();
  const Time now = *parse_rfc3339("2026-01-01T00:00:00Z");
  set_condition(device_status(claim, "d", "p", "a"), {"Ready", false, "Waits", "not yet"}, now);
  set_condition(device_status(claim, "d", "p", "b", "share"), {"Ready", true, "Done", ""}, now);
  const Time later = *parse_rfc3339("2026-01-01T00:01:00Z");
  set_condition(device_status(claim, "d", "p", "a"), {"Ready", false, "Waits", "still"}, later);
  EXPECT_EQ(claim["status"]["devices"].size(), 2u);
  const json::Value& first = claim["status"]["devices"][0]["conditions"];
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0]["message"], "still");
  EXPECT_EQ(first[0]["lastTransitionTime"], "2026-01-01T00:00:00Z");
  set_condition(device_status(claim, "d", "p", "a"), {"Ready", true, "Done", ""}, later);
  EXPECT_EQ(claim["status"]["devices"][0]["conditions"][0]["lastTransitionTime"],
            "2026-01-01T00:01:00Z");
  EXPECT_EQ(claim["status"]["devices"][1]["shareID"], "share");
}

TEST(Sockets, names_follow_driver_and_pod) {
  auto paths = socket_paths("/r", "/p", "d.example.com", "");
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ(paths->registration, "/r/d.example.com-reg.sock");
  EXPECT_EQ(paths->service, "/p/dra.sock");

  paths = socket_paths("/r", "/p", "d.example.com", "uid");
  EXPECT_EQ(paths->registration, "/r/d.example.com-uid-reg.sock");
  EXPECT_EQ(paths->service, "/p/dra-uid.sock");
}

TEST(Sockets, long_registration_names_become_hashes) {
  const std::string uid = "00000000-0000-4000-8000-000000000000";

  auto paths = socket_paths("/" + std::string(60, 'r'), "/p", "gpu.example.com", uid);
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ(paths->registration.size(), 61u + 1 + 15 + 1 + 11 + 9);

  paths = socket_paths("/" + std::string(70, 'r'), "/p", "gpu.example.com", uid);
  ASSERT_TRUE(paths.ok());
  EXPECT_THAT(paths->registration, HasSubstr("/dra-"));

  paths = socket_paths("/" + std::string(100, 'r'), "/p", "gpu.example.com", uid);
  EXPECT_THAT(paths.error().message(), HasSubstr("registry folder /rrr"));
}

/// What every driver has, and what one may have of its own.
struct DriverFlags {
  PluginOptions plugin;
  ControllerOptions controller;
  ProcessOptions process;
  std::vector<std::string> colours = {"white"};
  Duration period = std::chrono::seconds(1);
  std::string effect = "NoSchedule";
  std::map<std::string, std::string> variables = {{"NODE_NAME", "from-environment"},
                                                  {"METRICS_PORT", "8080"}};

  Flags all() {
    Flags flags = {
        {"--colours", &colours, "Colours", {.env = "COLOURS", .commas = true}},
        {"--period", &period, "How often to look", {.least = 0.5}},
        {"--effect", &effect, "Of taints", {.one_of = {"NoSchedule", "NoExecute"}}},
    };
    for (const auto& more :
         {plugin_flags(plugin), controller_flags(controller), process_flags(process)}) {
      flags.insert(flags.end(), more.begin(), more.end());
    }
    return flags;
  }
  Result<> parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "driver");
    return parse_flags(
        static_cast<int>(arguments.size()), arguments.data(),
        [this](const char* name) {
          const auto found = variables.find(name);
          return found == variables.end() ? nullptr : found->second.c_str();
        },
        all());
  }
};

TEST(Flags, come_from_arguments_before_the_environment) {
  DriverFlags flags;

  const auto parsed = flags.parse({"--node-name", "given", "--cdi-root=/cdi", "--leader-election"});

  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(flags.plugin.node_name, "given");
  EXPECT_EQ(flags.plugin.cdi_dir, "/cdi");
  EXPECT_EQ(flags.process.metrics_port, 8080);
  EXPECT_TRUE(flags.controller.leader_election);
}

TEST(Flags, of_the_driver_have_types) {
  DriverFlags flags;
  flags.variables["COLOURS"] = "not,these";

  const auto parsed = flags.parse(
      {"--period=1m30s", "--effect", "NoExecute", "--colours", "red,blue", "--colours=green"});

  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(flags.period, std::chrono::seconds(90));
  EXPECT_EQ(flags.effect, "NoExecute");
  EXPECT_THAT(flags.colours, testing::ElementsAre("red", "blue", "green"));

  ASSERT_TRUE(flags.parse({}).ok());
  EXPECT_THAT(flags.colours, testing::ElementsAre("not", "these"));
}

TEST(Flags, mistakes_name_the_flag) {
  struct Case {
    std::vector<const char*> arguments;
    const char* error;
  };
  const Case cases[] = {
      {{"--node-name"}, "--node-name: needs a value (TEXT)"},
      {{"--nope=1"}, "unknown flag \"--nope\""},
      {{"--node-nam=1"}, "unknown flag \"--node-nam\"; did you mean \"--node-name\"?"},
      {{"word"}, "unexpected argument \"word\""},
      {{"--pod-uid=a", "--pod-uid=b"}, "--pod-uid: given more than once"},
      {{"--metrics-port=x"}, "--metrics-port: \"x\": must be a whole number from -1 to 65535"},
      {{"--period=0s"}, "--period: \"0s\": must be a duration of 500ms or more"},
      {{"--effect=NoExecut"},
       "--effect: \"NoExecut\" is not one of NoSchedule, NoExecute; did you mean "
       "\"NoExecute\"?"},
      {{"--leader-election=maybe"}, "--leader-election: \"maybe\": must be true or false"},
      {{"--leader-election", "--nope"}, "unknown flag \"--nope\""},
  };
  for (const auto& one : cases) {
    const auto parsed = DriverFlags().parse(one.arguments);
    ASSERT_FALSE(parsed.ok()) << one.error;
    EXPECT_EQ(parsed.error().message(), one.error);
    EXPECT_EQ(parsed.error().code(), Code::bad_request);
  }
}

TEST(Flags, missing_ones_and_wrong_variables_are_named) {
  DriverFlags flags;
  flags.variables = {};
  EXPECT_EQ(flags.parse({}).error().message(),
            "--node-name is required: Name of the node this runs on");

  flags.variables = {{"NODE_NAME", "n"}, {"METRICS_PORT", "http"}};
  EXPECT_THAT(flags.parse({}).error().message(),
              testing::StartsWith("$METRICS_PORT: --metrics-port: \"http\": must be"));
}

TEST(Flags, are_told_with_type_default_and_variable) {
  DriverFlags flags;
  const std::string help = help_of_flags("Flags", flags.all());

  EXPECT_THAT(help, testing::StartsWith("Flags:\n  --colours TEXT "));
  EXPECT_THAT(help, HasSubstr("Colours (default: white) [$COLOURS]\n"));
  EXPECT_THAT(help, HasSubstr("  --effect TEXT:{NoSchedule,NoExecute} "));
  EXPECT_THAT(help, HasSubstr("this runs on (required) [$NODE_NAME]\n"));
  EXPECT_THAT(help, HasSubstr("one of them works [$LEADER_ELECTION]\n"));
}

class Sick : public Driver {
 public:
  Result<std::vector<Pool>> devices() override { return std::vector<Pool>(); }
  Result<std::vector<PreparedDevice>> prepare(const Claim&) override {
    return std::vector<PreparedDevice>();
  }
  Result<> unprepare(const ClaimName&) override { return success(); }
  bool reports_health() const override { return true; }
  std::vector<DeviceHealth> health() override {
    return {{"p", "d", now, "too hot", {}, std::chrono::seconds(60)}};
  }
  Health now = Health::unhealthy;
};

/// Lets virtual time pass while a stream waits.
class Listener : public rpc::StreamWriter {
 public:
  explicit Listener(test::TestWorld& world) : world_(world) {}
  bool write(std::string_view message) override {
    dra_health::NodeWatchResourcesResponse report;
    EXPECT_TRUE(report.ParseFromString(std::string(message)));
    reports.push_back(report);
    times.push_back(world_.sim.now());
    return true;
  }
  bool wait_gone(Duration timeout) override {
    world_.sim.advance(timeout);
    if (waited) waited();
    return reports.size() == 3;
  }
  std::vector<dra_health::NodeWatchResourcesResponse> reports;
  std::vector<Time> times;
  std::function<void()> waited;

 private:
  test::TestWorld& world_;
};

TEST(HealthStream, tells_changes_soon_and_the_rest_every_ten_seconds) {
  test::TestWorld world;
  Sick driver;
  Serve serve = world.environment().serve;
  rpc::Methods kept;
  Environment environment = world.environment();
  environment.serve = [&](const std::string& path, rpc::Methods methods) {
    if (path.ends_with("dra.sock")) kept = methods;
    return serve(path, std::move(methods));
  };
  auto plugin = Plugin::start(driver, environment, test::TestWorld::options("d.example.com"));
  ASSERT_TRUE(plugin.ok());
  ASSERT_TRUE(kept.streams.contains("/v1alpha1.DRAResourceHealth/NodeWatchResources"));
  Listener listener(world);
  listener.waited = [&] {
    if (listener.reports.size() == 2 && driver.now == Health::unhealthy) {
      driver.now = Health::healthy;
      (*plugin)->health_changed();
    }
  };

  kept.streams.at("/v1.DRAResourceHealth/NodeWatchResources")("", listener);

  ASSERT_EQ(listener.reports.size(), 3u);
  EXPECT_EQ(listener.reports[0].devices(0).health(), dra_health::UNHEALTHY);
  EXPECT_EQ(listener.reports[0].devices(0).message(), "too hot");
  EXPECT_EQ(listener.reports[0].devices(0).health_check_timeout_seconds(), 60);
  EXPECT_EQ(listener.times[1] - listener.times[0], std::chrono::seconds(10));
  EXPECT_EQ(listener.reports[2].devices(0).health(), dra_health::HEALTHY);
  EXPECT_LE(listener.times[2] - listener.times[1], std::chrono::milliseconds(250));
  EXPECT_THAT(supported_versions({.classic = true}, true),
              ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth",
                          "v1alpha1.DRAResourceHealth", "1.0.0"));
}

TEST(HealthService, knows_two_names) {
  const auto methods = health_methods("/none/a.sock", "/none/b.sock");
  const auto& check = methods.unary.at("/grpc.health.v1.Health/Check");

  EXPECT_EQ(check(std::string("\x0a\x05other", 7)).status.code, rpc::Code::not_found);
  EXPECT_EQ(check("").bytes, std::string("\x08\x02", 2));
}

}  // namespace
}  // namespace dibs::driver
