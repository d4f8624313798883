// Two API servers over lagging views of one store, two schedulers that both schedule everything,
// and two controllers of which one leads. Servers are killed and cut off while pods with claims
// come and go; no device is ever in two allocations, and in the end everybody had one.
#include <gtest/gtest.h>

#include <set>

#include "base/strings.h"
#include "client/leader_election.h"
#include "client/resource_versions.h"
#include "cluster/test_ledger.h"
#include "cluster/test_mortal_server.h"
#include "controllers/controllers.h"
#include "json/parse.h"
#include "json/test_text.h"
#include "scheduler/scheduler.h"
#include "store/test_shared_store.h"

namespace dibs::cluster::test {
namespace {

using namespace std::chrono_literals;
using client::Gvr;
using json::test::from_text;

const Gvr kNodes{"", "v1", "nodes"};
const Gvr kPods{"", "v1", "pods"};
const Gvr kAccounts{"", "v1", "serviceaccounts"};
const Gvr kSlices{"resource.k8s.io", "v1", "resourceslices"};
const Gvr kClasses{"resource.k8s.io", "v1", "deviceclasses"};
const Gvr kTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates"};

constexpr std::string_view kClaimKeys = "/registry/resourceclaims/";
constexpr std::string_view kPodKeys = "/registry/pods/";
constexpr int kServers = 2;
constexpr int kDevices = 3;  // on each of two nodes
constexpr int kPodCount = 14;

class Union {
 public:
  explicit Union(std::uint64_t seed) : sim_({.seed = seed, .shuffle = true}), log_(sim_.runtime()) {
    log_.on_written([this](const auto& keys) { look_at(keys); });
    for (int i = 0; i < kServers; ++i) start_server();
    for (int i = 0; i < kServers; ++i) {
      Parts& one = *parts_[static_cast<std::size_t>(i)];
      scheduler::Options how;
      how.instance = cat("scheduler-", i);
      one.scheduler = std::make_unique<scheduler::Scheduler>(one.client, sim_.runtime(), how);
      one.scheduler->start();
      controllers::ControllersOptions claims;
      claims.only = {"resource-claim-controller"};
      one.controllers =
          std::make_unique<controllers::Controllers>(one.client, sim_.runtime(), claims);
      client::LeaderElectionOptions lease;
      lease.name = "controllers";
      lease.identity = cat("controllers-", i);
      client::LeaderCallbacks calls;
      calls.started = [&one] { one.controllers->start(); };
      calls.stopped = [&one] { one.controllers->stop(); };
      one.elector =
          std::make_unique<client::LeaderElector>(one.client, sim_.runtime(), lease, calls);
      one.elector->start();
    }
  }
  ~Union() {
    for (auto& one : parts_) {
      one->scheduler->stop();
      one->elector->stop();
      one->controllers->stop();
    }
    sim_.run_until_idle();
    for (auto& one : parts_) {
      one->scheduler.reset();
      one->elector.reset();
      one->controllers.reset();
    }
    sim_.run_until_idle();
  }

  void tell() {
    furnish();
    for (int i = 0; i < kPodCount; ++i) {
      create(kPods, "default",
             cat("{'metadata': {'name': 'p", i,
                 "'}, 'spec': {'tolerations': [{'operator': 'Exists'}], 'resourceClaims': "
                 "[{'name': 'r', 'resourceClaimTemplateName': "
                 "'t'}], 'containers': [{'name': 'c', 'image': 'i', 'resources': {'claims': "
                 "[{'name': 'r'}]}}]}}"));
      disturb();
    }
    // Whoever has run makes room for the next.
    for (int second = 0; second < 400 && log_.range(kPodKeys).records.size() > 0; ++second) {
      for (const auto& record : log_.range(kPodKeys).records) {
        const Value pod = *json::parse(*record->value);
        if (pod["spec"]["nodeName"].as_string().empty() || below(3) != 0) continue;
        bound_.insert(pod["metadata"]["name"].str());
        remove(pod["metadata"]["name"].str());
      }
      disturb();
      sim_.advance(1s);
    }
    for (auto& view : views_) view->heal();
    EXPECT_EQ(bound_.size(), static_cast<std::size_t>(kPodCount)) << state();
    EXPECT_GT(kills_, 0);
    EXPECT_GT(most_, std::size_t{kDevices}) << "little happened";
  }

 private:
  struct Parts {
    Parts(Union& owner)
        : server(owner.sim_, {}, {}, [&owner, this] { return owner.open_view(*this); }),
          way(server.connect()),
          devices(client::make_resource_transport(*way)),
          client(*devices) {}

    store::testing::SharedView* view = nullptr;  // of the server that lives
    MortalServer server;
    std::unique_ptr<client::Transport> way;
    std::unique_ptr<client::Transport> devices;
    client::Client client;
    std::unique_ptr<scheduler::Scheduler> scheduler;
    std::unique_ptr<controllers::Controllers> controllers;
    std::unique_ptr<client::LeaderElector> elector;
  };

  void start_server() {
    parts_.push_back(std::make_unique<Parts>(*this));
    parts_.back()->server.start();
  }
  std::unique_ptr<store::Store> open_view(Parts& of) {
    auto view = log_.open({.lag = {1ms, 400ms}, .prompt = true});
    of.view = view.get();
    views_.insert(view.get());
    return view;
  }

  void furnish() {
    create(kAccounts, "default", "{'metadata': {'name': 'default'}}");
    create(kClasses, "",
           "{'metadata': {'name': 'c'}, 'spec': {'selectors': [{'cel': {'expression': "
           "'device.driver == \\\"d.example.com\\\"'}}]}}");
    create(kTemplates, "default",
           "{'metadata': {'name': 't'}, 'spec': {'spec': {'devices': {'requests': [{'name': 'r', "
           "'exactly': {'deviceClassName': 'c'}}]}}}}");
    for (const char* node : {"n0", "n1"}) {
      create(kNodes, "",
             cat("{'metadata': {'name': '", node,
                 "'}, 'status': {'allocatable': {'cpu': '64', 'memory': '64Gi', 'pods': '110'}, "
                 "'capacity': {'cpu': '64', 'memory': '64Gi', 'pods': '110'}, 'conditions': "
                 "[{'type': 'Ready', 'status': 'True'}]}}"));
      std::string devices;
      for (int i = 0; i < kDevices; ++i)
        append(devices, i == 0 ? "" : ", ", "{'name': 'd", i, "'}");
      create(kSlices, "",
             cat("{'metadata': {'name': '", node, "'}, 'spec': {'driver': 'd.example.com', ",
                 "'nodeName': '", node, "', 'pool': {'name': '", node,
                 "', 'generation': 1, 'resourceSliceCount': 1}, 'devices': [", devices, "]}}"));
    }
  }

  /// Now and then a server is killed at one of its next writes, or loses sight of the log.
  void disturb() {
    Parts& one = some();
    // Chance might spare them all, so the first thing that happens is a kill.
    switch (kills_ == 0 ? 0 : below(12)) {
      case 0:
        if (one.server.is_up()) {
          ++kills_;
          one.server.kill_at(static_cast<int>(below(6)), below(2) == 0);
        }
        break;
      case 1:
        one.view->cut();
        break;
      default:
        for (auto& any : parts_) any->view->heal();
    }
  }

  void look_at(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      if (!key.starts_with(kClaimKeys)) continue;
      const auto record = log_.get(key);
      given_.set(key, record ? held_by(*json::parse(*record->value)) : std::set<std::string>());
    }
    most_ = std::max(most_, given_.size());
  }

  std::string state() const {
    std::string out;
    for (const std::string_view prefix : {kPodKeys, kClaimKeys}) {
      for (const auto& record : log_.range(prefix).records)
        append(out, record->key, " ", *record->value, "\n");
    }
    return out;
  }

  // The user goes from server to server and does not give up.

  void create(const Gvr& gvr, const std::string& name_space, const std::string& text) {
    const Value object = from_text(text);
    insist([&](client::Client& client) { return client.create(gvr, name_space, object); },
           Code::already_exists);
  }
  void remove(const std::string& pod) {
    insist(
        [&](client::Client& client) {
          return client.remove(kPods, "default", pod, {.grace_period_seconds = 0});
        },
        Code::not_found);
  }
  void insist(const std::function<Result<Value>(client::Client&)>& act, Code done_before) {
    for (int tries = 0; tries < 100; ++tries) {
      const auto answer = act(some().client);
      if (answer.ok() || answer.error().code() == done_before) return;
      EXPECT_EQ(answer.error().code(), Code::unavailable) << answer.error().message();
      disturb();
      sim_.advance(1s);
    }
    ADD_FAILURE() << "nobody answers";
  }

  std::uint64_t below(std::uint64_t bound) { return sim_.runtime().random.below(bound); }
  Parts& some() { return *parts_[below(kServers)]; }

  runtime::SimRuntime sim_;
  store::testing::SharedLog log_;
  Ledger given_;  // in truth
  std::size_t most_ = 0;
  std::set<std::string> bound_;
  std::set<store::testing::SharedView*> views_;
  int kills_ = 0;
  std::vector<std::unique_ptr<Parts>> parts_;
};

class SeveralServers : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, SeveralServers, testing::Range(1, 4));

TEST_P(SeveralServers, give_no_device_away_twice) {
  Union world(static_cast<std::uint64_t>(GetParam()));
  world.tell();
}

}  // namespace
}  // namespace dibs::cluster::test
