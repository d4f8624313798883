// The API server is killed at each write of its store, once before the write is there and once
// after it, while claims of all models come, move and go; the next one is started on what is
// stored, and everybody else goes on. The end is the same, and nothing is ever given away twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/strings.h"
#include "client/resource_versions.h"
#include "cluster/test_ledger.h"
#include "cluster/test_mortal_server.h"
#include "controllers/controllers.h"
#include "driver/controller.h"
#include "driver/test_boxes.h"
#include "node/agent.h"
#include "rpc/memory_network.h"
#include "scheduler/scheduler.h"

namespace dibs::cluster::test {
namespace {

using client::Gvr;
using json::Value;
using json::test::from_text;

const Gvr kPods{"", "v1", "pods"};
const Gvr kClassicClaims{"resource.k8s.io", "v1alpha2", "resourceclaims"};
const Gvr kClasses{"resource.k8s.io", "v1alpha2", "resourceclasses"};
const Gvr kTemplates{"resource.k8s.io", "v1alpha2", "resourceclaimtemplates"};
const Gvr kNamedSlices{"resource.k8s.io", "v1alpha2", "resourceslices"};
const Gvr kTodaysClaims{"resource.k8s.io", "v1", "resourceclaims"};
const Gvr kDeviceClasses{"resource.k8s.io", "v1", "deviceclasses"};

constexpr std::string_view kClaimKeys = "/registry/resourceclaims/";
constexpr std::string_view kContextKeys = "/registry/podschedulingcontexts/";
constexpr std::string_view kPodKeys = "/registry/pods/";
constexpr std::string_view kEventKeys = "/registry/events/";
constexpr std::string_view kSliceKeys = "/registry/resourceslices/";

/// The node half of all drivers: what it has made ready for a claim, nobody else may get.
class Hands : public driver::Driver {
 public:
  Hands(std::string driver, std::string node, Ledger& ready)
      : driver_(std::move(driver)), node_(std::move(node)), ready_(ready) {}

  Result<std::vector<driver::Pool>> devices() override {
    return std::vector<driver::Pool>{
        driver::make_pool(node_, {driver::Device("one"), driver::Device("two")})};
  }
  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim& claim) override {
    std::set<std::string> things;
    std::vector<driver::PreparedDevice> out;
    for (const auto& handle : claim.handles) {
      if (handle.structured.is_null()) things.insert(cat(driver_, "/", handle.data));
    }
    for (const auto& device : claim.devices) {
      things.insert(cat(driver_, "/", device.pool, "/", device.device));
      out.push_back(driver::prepared(device));
    }
    ready_.set(claim.id.uid, things);
    return out;
  }
  Result<> unprepare(const driver::ClaimName& claim) override {
    ready_.set(claim.uid, {});
    return success();
  }

 private:
  const std::string driver_;
  const std::string node_;
  Ledger& ready_;
};

/// Controllers, scheduler, the controller of a classic driver, two nodes with drivers of each
/// model, and a user; none of them is in the server's process.
class Town {
 public:
  explicit Town(const std::string& release)
      : release_(release),
        files_(runtime::make_memory_files()),
        server_(sim_, server_options(release), [this](const auto& keys) { look_at(keys); }),
        way_(server_.connect()),
        device_way_(client::make_resource_transport(*way_)),
        user_(*way_),
        scheduling_(*device_way_) {
    boxes_.per_node = {{"node-0", 4}, {"node-1", 4}};
    server_.start();
    controllers_ = std::make_unique<controllers::Controllers>(user_, sim_.runtime(),
                                                              controllers::ControllersOptions());
    controllers_->start();
    scheduler::Options how;
    if (!release.empty()) how.release = std::atoi(release.c_str() + 2);
    scheduler_ = std::make_unique<scheduler::Scheduler>(scheduling_, sim_.runtime(), how);
    scheduler_->start();
    controller_ = *driver::Controller::start(boxes_, {user_, sim_.runtime(), *files_, nullptr, {}},
                                             {.driver_name = std::string(driver::test::kDriver)});
    for (const char* node : {"node-0", "node-1"}) start_node(node);
    wait("everybody is there", [this] { return controllers_->ready() && scheduler_->ready(); });
    wait("slices are there",
         [this] { return server_.stored().count(kSliceKeys) == (has_todays() ? 2U : 0U); });
  }

  ~Town() {
    for (const auto& agent : agents_) agent->stop();
    plugins_.clear();
    controller_->stop();
    scheduler_->stop();
    controllers_->stop();
    sim_.run_until_idle();
    agents_.clear();
    controller_.reset();
    scheduler_.reset();
    controllers_.reset();
  }

  MortalServer& server() { return server_; }
  bool failed() const { return failed_; }

  /// Everything comes, runs and goes.
  void tell() {
    create(kClasses, "", "boxes", "'driverName': 'boxes.example.com'");
    create(kTemplates, "default", "t", "'spec': {'spec': {'resourceClassName': 'boxes'}}");
    create(kClassicClaims, "default", "now",
           "'spec': {'resourceClassName': 'boxes', 'allocationMode': 'Immediate'}");
    create(kClassicClaims, "default", "later", "'spec': {'resourceClassName': 'boxes'}");
    make_pod("early", "'resourceClaimName': 'now'");
    make_pod("first", "'resourceClaimName': 'later'",
             "'nodeSelector': {'kubernetes.io/hostname': 'node-0'},");
    make_pod("own", "'resourceClaimTemplateName': 't'");
    if (has_named()) {
      create(kClassicClaims, "default", "placed", "'spec': {'resourceClassName': 'boxes'}");
      make_pod("placed", "'resourceClaimName': 'placed'", "'nodeName': 'node-0',");
      create(kClasses, "", "named",
             "'driverName': 'named.example.com', 'structuredParameters': true");
      for (const char* node : {"node-0", "node-1"}) {
        create(
            kNamedSlices, "", node,
            cat("'nodeName': '", node, "', 'driverName': 'named.example.com', 'namedResources': ",
                "{'instances': [{'name': 'one'}, {'name': 'two'}]}"));
      }
      create(kClassicClaims, "default", "named", "'spec': {'resourceClassName': 'named'}");
      make_pod("named", "'resourceClaimName': 'named'");
    }
    if (has_todays()) {
      create(kDeviceClasses, "", "today",
             "'spec': {'selectors': [{'cel': {'expression': 'device.driver == "
             "\\\"today.example.com\\\"'}}]}");
      create(kTodaysClaims, "default", "today",
             "'spec': {'devices': {'requests': [{'name': 'r', 'exactly': {'deviceClassName': "
             "'today'}}]}}");
      make_pod("today", "'resourceClaimName': 'today'");
    }
    wait("all pods run", [this] { return all_run(); });
    EXPECT_EQ(given_.size(), pods_.size());
    EXPECT_EQ(ready_.size(), pods_.size());

    // Its claim has a box of node-0, which has to be given back first.
    make_pod("moved", "'resourceClaimName': 'later'",
             "'nodeSelector': {'kubernetes.io/hostname': 'node-1'},");
    remove(kPods, "first");
    pods_.erase(std::find(pods_.begin(), pods_.end(), "first"));
    wait("the claim moves", [this] { return all_run(); });
    EXPECT_THAT(held_by(claim("later")),
                testing::ElementsAre(testing::StartsWith("boxes.example.com/node-1/")));

    for (const std::string& pod : pods_) remove(kPods, pod);
    wait("all pods are gone", [this] { return server_.stored().count(kPodKeys) == 0; });
    if (has_named()) {
      wait("what nobody uses is given back", [this] {
        const Value claim = this->claim("later");
        return held_by(claim).empty() && claim["metadata"]["finalizers"].empty();
      });
    }
    for (const auto& [name, gvr] : claims_) remove(gvr, name);
    wait("nothing is left",
         [this] { return server_.stored().count(kClaimKeys) == 0 && contexts() == 0; });
    EXPECT_EQ(given_.size(), 0U);
    EXPECT_EQ(ready_.size(), 0U);
  }

 private:
  static constexpr const char* kGates = "DynamicResourceAllocation=true";

  static server::Options server_options(const std::string& release) {
    server::Options options;
    options.release = release;
    if (!release.empty()) {
      options.feature_gates = kGates;
      options.runtime_config = "resource.k8s.io/v1alpha2=true";
    }
    return options;
  }
  bool has_named() const { return release_ != "1.27"; }
  bool has_todays() const { return release_.empty(); }

  void start_node(const std::string& name) {
    const std::string root = cat("/", name);
    node::AgentOptions how;
    how.name = name;
    how.root = root;
    how.runtime = "sim";
    how.port = -1;
    how.release = release_;
    if (!release_.empty()) {
      how.feature_gates = kGates;
      how.kubelet_version = cat("v", release_, ".0");
    }
    how.concurrency = 2;
    how.drivers = &network_;
    how.drivers_may_start = [this, name, root] {
      start_driver("boxes.example.com", name, root, {.publish = false, .classic = true});
      if (has_named()) {
        start_driver("named.example.com", name, root, {.publish = false, .classic = true});
      }
      if (has_todays()) start_driver("today.example.com", name, root, {});
    };
    auto agent = node::Agent::open(how, user_, sim_.runtime(), *files_);
    ASSERT_TRUE(agent.ok()) << agent.error().message();
    const auto started = (*agent)->start();
    ASSERT_TRUE(started.ok()) << started.error().message();
    agents_.push_back(std::move(agent).value());
  }

  void start_driver(const std::string& driver, const std::string& node, const std::string& root,
                    driver::PluginOptions how) {
    how.driver_name = driver;
    how.node_name = node;
    how.registry_dir = cat(root, "/plugins_registry");
    how.plugins_dir = cat(root, "/plugins");
    how.cdi_dir = cat(root, "/cdi");
    driver::Environment environment{user_, sim_.runtime(), *files_, nullptr, {}};
    environment.serve = [this](const std::string& path,
                               rpc::Methods methods) -> Result<std::unique_ptr<rpc::Server>> {
      return network_.serve(path, std::move(methods));
    };
    auto running = driver::start_driver(std::make_unique<Hands>(driver, node, ready_),
                                        std::move(environment), std::move(how));
    ASSERT_TRUE(running.ok()) << running.error().message();
    plugins_.push_back(std::move(running).value());
  }

  /// After every write.
  void look_at(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      if (!key.starts_with(kClaimKeys)) continue;
      const auto record = server_.stored().get(key);
      given_.set(key, record ? held_by(*json::parse(*record->value)) : std::set<std::string>());
    }
  }

  // What is stored, whether there is a server or not.

  Value stored(std::string_view keys, const std::string& name) const {
    const auto record = server_.stored().get(cat(keys, "default/", name));
    return record ? *json::parse(*record->value) : Value();
  }
  Value claim(const std::string& name) const { return stored(kClaimKeys, name); }
  std::size_t contexts() const { return server_.stored().count(kContextKeys); }
  bool all_run() const {
    for (const std::string& pod : pods_) {
      if (stored(kPodKeys, pod)["status"]["phase"].as_string() != "Running") return false;
    }
    // That of a pod that was not scheduled goes with the pod.
    return contexts() == (has_named() ? 1U : 0U);
  }

  /// Of what matters, for who has to find out why it is so.
  std::string state() const {
    std::string out;
    for (const std::string_view prefix : {kPodKeys, kClaimKeys, kContextKeys, kEventKeys}) {
      const auto listing = server_.stored().range({.prefix = std::string(prefix)});
      for (const auto& record : listing->records) {
        const Value object = *json::parse(*record->value);
        append(out, record->key, " ", json::write(object["metadata"]["finalizers"]),
               json::write(object["status"]), object["note"].as_string(),
               object["message"].as_string(), "\n");
      }
    }
    return out;
  }

  // The user does not give up.

  void create(const Gvr& gvr, const std::string& name_space, const std::string& name,
              const std::string& more) {
    const Value object = from_text(cat("{'metadata': {'name': '", name, "'}, ", more, "}"));
    insist(cat("creates ", name), Code::already_exists,
           [&] { return user_.create(gvr, name_space, object); });
    if (gvr.resource == "resourceclaims") claims_[name] = gvr;
  }
  void make_pod(const std::string& name, const std::string& source, const std::string& more = "") {
    create(kPods, "default", name,
           cat("'spec': {", more,
               "'automountServiceAccountToken': false, 'terminationGracePeriodSeconds': 1, "
               "'resourceClaims': [{'name':",
               " 'r', 'source': {", source, "}, ", source,
               "}], 'containers': [{'name': 'c', 'image': 'busybox:1.36', 'command': ['sleep', "
               "'99999'], 'resources': {'claims': [{'name': 'r'}]}}]}"));
    pods_.push_back(name);
  }
  void remove(const Gvr& gvr, const std::string& name) {
    insist(cat("removes ", name), Code::not_found,
           [&] { return user_.remove(gvr, "default", name); });
  }
  void insist(const std::string& what, Code done_before,
              const std::function<Result<Value>()>& act) {
    Result<Value> answer = act();
    wait(what, [&] {
      if (answer.ok() || answer.error().code() == done_before) return true;
      answer = act();
      return false;
    });
    if (!answer.ok()) {
      EXPECT_EQ(answer.error().code(), done_before) << what << ": " << answer.error().message();
    }
  }

  void wait(const std::string& what, const std::function<bool()>& holds) {
    if (failed_) return;
    for (int second = 0; second < 300; ++second) {
      if (holds()) return;
      sim_.advance(std::chrono::seconds(1));
    }
    failed_ = true;
    ADD_FAILURE() << what << " does not come; there is\n" << state();
  }

  const std::string release_;
  runtime::SimRuntime sim_;
  std::unique_ptr<runtime::Files> files_;
  Ledger given_;  // by what is stored
  Ledger ready_;  // on the nodes
  MortalServer server_;
  std::unique_ptr<client::Transport> way_;
  std::unique_ptr<client::Transport> device_way_;
  client::Client user_;
  client::Client scheduling_;
  driver::test::Boxes boxes_;
  rpc::MemoryNetwork network_;
  std::unique_ptr<controllers::Controllers> controllers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  std::unique_ptr<driver::Controller> controller_;
  std::vector<std::unique_ptr<node::Agent>> agents_;
  std::vector<driver::Running> plugins_;
  std::vector<std::string> pods_;
  std::map<std::string, Gvr> claims_;
  bool failed_ = false;
};

// Sanitizers are slow: with them a part of all writes is tried.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTried = 1;
#else
constexpr int kTried = 4;
#endif
constexpr int kParts = 4;

class ServerKilled : public testing::TestWithParam<std::tuple<const char*, bool, int>> {};

INSTANTIATE_TEST_SUITE_P(AtEachWrite, ServerKilled,
                         testing::Combine(testing::Values("", "1.30", "1.27"), testing::Bool(),
                                          testing::Range(0, kTried)),
                         [](const auto& info) {
                           const std::string release = std::get<0>(info.param);
                           return cat(release.empty() ? "newest" : "as_" + release.substr(2),
                                      std::get<1>(info.param) ? "_after_" : "_before_",
                                      std::get<2>(info.param));
                         });

TEST_P(ServerKilled, loses_nothing_and_gives_nothing_away_twice) {
  const auto [release, arrives, part] = GetParam();
  int write = (part + (arrives ? 2 : 0)) % kParts;
  bool died = true;
  for (; died && !HasFailure(); write += kParts) {
    SCOPED_TRACE(cat("killed ", arrives ? "after" : "before", " write ", write));
    Town town(release);
    town.server().kill_at(write, arrives);
    town.tell();
    died = town.server().died();
  }
  EXPECT_GT(write, 60);
}

/// A server that was killed during its first start makes what is missing at the next one.
TEST(ServerKilledAtItsFirstStart, has_everything_after_the_next) {
  const auto start = [](int write, bool arrives, bool& died) {
    runtime::SimRuntime sim;
    MortalServer server(sim, {});
    server.kill_at(write, arrives);
    server.start();
    sim.advance(2 * MortalServer::kOutage);
    EXPECT_TRUE(server.is_up());
    died = server.died();
    return server.stored().count("");
  };
  bool died = false;
  const std::size_t whole = start(-1, false, died);
  EXPECT_GT(whole, 100U);
  for (const bool arrives : {false, true}) {
    died = true;
    int write = 0;
    for (; died && !HasFailure(); ++write) {
      SCOPED_TRACE(cat("killed ", arrives ? "after" : "before", " write ", write));
      EXPECT_EQ(start(write, arrives, died), whole);
    }
  }
}

}  // namespace
}  // namespace dibs::cluster::test
