// Several schedulers and controllers beside one server: one of each works, and what a leader that
// was cut off still wants to write comes before anything its successor writes.

#include <gtest/gtest.h>

#include "base/strings.h"
#include "client/leader_election.h"
#include "client/resource_versions.h"
#include "cluster/test_cluster.h"
#include "controllers/controllers.h"
#include "scheduler/scheduler.h"
#include "store/test_shared_store.h"

namespace dibs::cluster::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Gvr kPods{"", "v1", "pods"};
const Gvr kNodes{"", "v1", "nodes"};
const Gvr kSets{"apps", "v1", "replicasets"};
const Gvr kLeases{"coordination.k8s.io", "v1", "leases"};

/// A way that can be cut, and that knows when something was last written on it, arrived or not.
class CutTransport : public client::Transport {
 public:
  CutTransport(std::unique_ptr<client::Transport> inner, runtime::SimRuntime& sim)
      : inner_(std::move(inner)), sim_(sim) {}

  Result<client::Response> send(client::Request request) override {
    note(request);
    if (cut) return Error::unavailable("cut");
    return inner_->send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    note(request);
    if (cut) {
      return sim_.runtime().executor.post([done] { done(Error::unavailable("cut")); });
    }
    inner_->send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner_->open_stream(std::move(request), std::move(handlers));
  }

  bool cut = false;
  Duration first_write{-1};
  Duration last_write{-1};

 private:
  void note(const client::Request& request) {
    if (request.method == "GET" || request.target.find("/leases/") != std::string::npos ||
        request.target.ends_with("/leases")) {
      return;
    }
    last_write = sim_.runtime().clock.steady();
    if (first_write.count() < 0) first_write = last_write;
  }

  std::unique_ptr<client::Transport> inner_;
  runtime::SimRuntime& sim_;
};

template <typename Part>
struct Candidate {
  template <typename... Options>
  Candidate(TestCluster& cluster, const std::string& lease, const std::string& identity,
            Options... options)
      : way(cluster.connect(), cluster.sim),
        client(way),
        part(client, cluster.sim.runtime(), options...),
        elector(client, cluster.sim.runtime(), {.name = lease, .identity = identity},
                client::while_leading(part)) {
    elector.start();
  }

  CutTransport way;
  client::Client client;
  Part part;
  client::LeaderElector elector;
};

class ElectionTest : public testing::Test {
 protected:
  ElectionTest() {
    cluster.create(
        kNodes, "",
        "{'metadata': {'name': 'n'}, 'status': {'allocatable': {'cpu': '900', 'memory': "
        "'900Gi', 'pods': '900'}, 'conditions': [{'type': 'Ready', 'status': 'True'}]}}");
    // A new node is not ready until controllers say so, and here they may not run.
    cluster.patch(kNodes, "", "n", "{'spec': {'taints': null}}");
    cluster.create({"", "v1", "serviceaccounts"}, "default", "{'metadata': {'name': 'default'}}");
  }

  /// Work for schedulers.
  void add_pod() {
    cluster.create(kPods, "default",
                   cat("{'metadata': {'name': 'p", ++made,
                       "'}, 'spec': {'containers': [{'name': 'c',"
                       " 'image': 'i'}]}}"));
  }
  /// Work for controllers.
  void add_set() {
    cluster.create(kSets, "default",
                   cat("{'metadata': {'name': 's", ++made,
                       "'}, 'spec': {'replicas': 1, 'selector': {'matchLabels': {'a': 'b'}}, "
                       "'template': {'metadata': {'labels': {'a': 'b'}}, 'spec': {'containers': "
                       "[{'name': 'c', 'image': 'i'}]}}}}"));
  }
  int unbound() {
    int out = 0;
    for (const auto& pod : cluster.list(kPods, "default")) {
      out += pod["spec"]["nodeName"].as_string().empty() ? 1 : 0;
    }
    return out;
  }

  /// The work of `a` goes to `b` when `a` is cut off, and `a` writes nothing once `b` does.
  template <typename Part>
  void cut_off(Candidate<Part>& a, Candidate<Part>& b, const std::function<void()>& add_work) {
    add_work();
    cluster.sim.advance(seconds(5));
    ASSERT_TRUE(a.elector.leading());
    ASSERT_FALSE(b.elector.leading());
    ASSERT_LT(b.way.last_write.count(), 0);
    a.way.cut = true;
    for (int i = 0; i < 300; ++i) {
      if (i % 5 == 0) add_work();
      cluster.sim.advance(milliseconds(100));
      ASSERT_FALSE(a.elector.leading() && b.elector.leading());
    }
    EXPECT_TRUE(b.elector.leading());
    EXPECT_GT(b.way.first_write.count(), 0);
    EXPECT_LT(a.way.last_write, b.way.first_write);
    // It comes back as a candidate, and works again when it is its turn.
    a.way.cut = false;
    cluster.sim.advance(seconds(10));
    ASSERT_TRUE(b.elector.leading());
    const Duration before = a.way.last_write;
    b.elector.stop();
    cluster.sim.advance(seconds(6));
    EXPECT_TRUE(a.elector.leading());
    add_work();
    cluster.sim.advance(seconds(5));
    EXPECT_GT(a.way.last_write, before);
  }

  TestCluster cluster;
  int made = 0;
};

using SchedulerCandidate = Candidate<scheduler::Scheduler>;
using ControllersCandidate = Candidate<controllers::Controllers>;

TEST_F(ElectionTest, a_scheduler_that_is_cut_off_stops_before_the_next_begins) {
  SchedulerCandidate a(cluster, "kube-scheduler", "a", scheduler::Options());
  cluster.sim.run_until_idle();
  SchedulerCandidate b(cluster, "kube-scheduler", "b", scheduler::Options());
  cut_off(a, b, [this] { add_pod(); });
  EXPECT_EQ(unbound(), 0);
  a.elector.stop();
}

TEST_F(ElectionTest, controllers_that_are_cut_off_stop_before_the_next_begin) {
  ControllersCandidate a(cluster, "kube-controller-manager", "a",
                         controllers::ControllersOptions());
  cluster.sim.run_until_idle();
  ControllersCandidate b(cluster, "kube-controller-manager", "b",
                         controllers::ControllersOptions());
  cut_off(a, b, [this] { add_set(); });
  EXPECT_EQ(cluster.list(kPods, "default").size(), static_cast<std::size_t>(made));
  a.elector.stop();
}

TEST_F(ElectionTest, a_clean_end_gives_the_lease_up_at_once) {
  SchedulerCandidate a(cluster, "kube-scheduler", "a", scheduler::Options());
  cluster.sim.run_until_idle();
  ASSERT_TRUE(a.elector.leading());
  a.elector.stop();
  const auto lease = cluster.get(kLeases, "kube-system", "kube-scheduler");
  EXPECT_EQ(lease["spec"]["holderIdentity"].str(), "");
  EXPECT_EQ(lease["spec"]["leaseDurationSeconds"].as_int(), 1);
}

TEST(SharedStore, has_one_scheduler_and_one_set_of_controllers_at_work) {
  runtime::SimRuntime sim;
  const auto files = runtime::make_memory_files();
  store::testing::SharedLog log(sim.runtime());
  const auto start = [&] {
    Options options;
    options.server.ca_pem = "CA";
    options.controllers.emplace();
    options.scheduler.emplace();
    auto made = Cluster::start(sim_world(sim, *files), log.open(), std::move(options));
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message());
    return std::move(made).value();
  };
  auto a = start();
  sim.advance(seconds(5));
  auto b = start();
  sim.advance(seconds(5));
  EXPECT_TRUE(a->ready());
  EXPECT_TRUE(a->controllers()->ready());
  EXPECT_TRUE(b->ready());
  EXPECT_FALSE(b->controllers()->ready());
  const auto holder = [&](Cluster& at, const char* lease) {
    const auto found = at.client().get(kLeases, "kube-system", lease);
    return found.ok() ? (*found)["spec"]["holderIdentity"].str() : found.error().message();
  };
  const std::string before = holder(*b, "kube-controller-manager");
  EXPECT_NE(before, "");
  // A clean end: the other one goes on at once, on what is there.
  a->stop();
  sim.advance(seconds(6));
  EXPECT_TRUE(b->controllers()->ready());
  EXPECT_NE(holder(*b, "kube-controller-manager"), before);
  EXPECT_NE(holder(*b, "kube-scheduler"), "");
  b->stop();
}

}  // namespace
}  // namespace dibs::cluster::test
