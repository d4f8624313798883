#include "cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "json/test_text.h"
#include "store/stores.h"

namespace dibs::cluster {
namespace {

using client::Gvr;
using json::Value;
using json::test::from_text;

const Gvr kPods{"", "v1", "pods"};
const Gvr kMaps{"", "v1", "configmaps"};
const Gvr kClaims{"resource.k8s.io", "v1", "resourceclaims"};
const Gvr kBindings{"rbac.authorization.k8s.io", "v1", "clusterrolebindings"};
const Gvr kTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates"};

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() {
    std::string pattern = "/tmp/dibs-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ClusterTest() override { std::filesystem::remove_all(folder_); }

  Options everything(unsigned nodes) const {
    Options options;
    options.server.ca_pem = "CA";
    options.controllers.emplace();
    options.scheduler.emplace();
    auto& fleet = options.nodes.emplace();
    fleet.groups[0].count = nodes;
    fleet.groups[0].drivers = {"gpu"};
    fleet.runtime = "sim";
    fleet.folder = folder_;
    fleet.fleet = true;
    return options;
  }

  static Value create(Cluster& cluster, const Gvr& gvr, const std::string& text) {
    auto made = cluster.client().create(gvr, "default", from_text(text));
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? *made : Value();
  }
  /// Phase, node and claims of a pod.
  static std::string state(Cluster& cluster, const std::string& pod) {
    auto found = cluster.client().get(kPods, "default", pod);
    if (!found.ok()) return "gone";
    return (*found)["status"]["phase"].str();
  }

  static void create_cluster_wide(Cluster& cluster, const Gvr& gvr, const std::string& text) {
    const auto made = cluster.client().create(gvr, "", from_text(text));
    EXPECT_TRUE(made.ok()) << made.error().message();
  }
  static std::string workload(const std::string& name, const std::string& more) {
    return "{'metadata': {'name': '" + name + "'}, 'spec': {" + more +
           " 'selector': {'matchLabels': {'app': '" + name +
           "'}}, 'template': {'metadata': {'labels': {'app': '" + name +
           "'}}, 'spec': {'containers': [{'name': 'c', 'image': 'busybox:1.36',"
           " 'command': ['sleep', '9999']}]}}}}";
  }
  /// How often a part of the cluster was refused.
  static double refusals(Cluster& cluster) {
    const auto way = cluster.connect();
    const auto answer = way->send(client::make_request("GET", "/metrics"));
    if (!answer.ok()) return -1;
    constexpr std::string_view kName = "\ndibs_own_requests_refused ";
    const auto at = answer->body.find(kName);
    if (at == std::string::npos) return -1;
    return std::atof(answer->body.c_str() + at + kName.size());
  }

  std::string folder_;
};

constexpr const char* kTemplate = R"({'metadata': {'name': 'gpu'}, 'spec': {'spec': {'devices':
    {'requests': [{'name': 'g', 'exactly': {'deviceClassName': 'gpu.example.com'}}]}}}})";
constexpr const char* kClaim = R"({'metadata': {'name': 'gpu'}, 'spec': {'devices':
    {'requests': [{'name': 'g', 'exactly': {'deviceClassName': 'gpu.example.com'}}]}}})";
constexpr const char* kPod = R"({'metadata': {'name': 'p'}, 'spec': {
    'containers': [{'name': 'c', 'image': 'busybox:1.36', 'command': ['sleep', '9999'],
                    'resources': {'claims': [{'name': 'g'}]}}],
    'resourceClaims': [{'name': 'g', 'resourceClaimTemplateName': 'gpu'}]}})";

TEST_F(ClusterTest, runs_whole_in_one_thread_under_virtual_time) {
  runtime::SimRuntime sim;
  auto started = Cluster::start(sim_world(sim, runtime::system_files()),
                                *store::open_store("memory", {}), everything(3));
  ASSERT_TRUE(started.ok()) << started.error().message();
  Cluster& cluster = **started;
  EXPECT_EQ(cluster.port(), nullptr);
  sim.advance(std::chrono::seconds(10));
  EXPECT_TRUE(cluster.ready());

  create(cluster, kTemplates, kTemplate);
  create(cluster, kPods, kPod);
  sim.advance(std::chrono::seconds(10));
  EXPECT_EQ(state(cluster, "p"), "Running");
  const auto claims = cluster.client().list(kClaims, "default");
  ASSERT_TRUE(claims.ok());
  ASSERT_EQ(claims->items.size(), 1U);
  EXPECT_EQ(claims->items[0]["status"]["allocation"]["devices"]["results"][0]["driver"],
            "gpu.example.com");

  client::DeleteOptions now;
  now.grace_period_seconds = 1;
  EXPECT_TRUE(cluster.client().remove(kPods, "default", "p", now).ok());
  sim.advance(std::chrono::seconds(60));
  EXPECT_EQ(state(cluster, "p"), "gone");
  EXPECT_TRUE(cluster.client().list(kClaims, "default")->items.empty());
}

TEST_F(ClusterTest, has_no_part_that_may_do_everything) {
  runtime::SimRuntime sim;
  auto started = Cluster::start(sim_world(sim, runtime::system_files()),
                                *store::open_store("memory", {}), everything(2));
  ASSERT_TRUE(started.ok()) << started.error().message();
  sim.advance(std::chrono::seconds(10));

  std::vector<std::string> users;
  for (const auto& part : (*started)->parts()) {
    EXPECT_THAT(part.groups, testing::Not(testing::Contains("system:masters"))) << part.user;
    users.push_back(part.user);
  }
  EXPECT_THAT(users, testing::IsSupersetOf(
                         {"system:kube-controller-manager", "system:kube-scheduler",
                          "system:serviceaccount:kube-system:deployment-controller",
                          "system:serviceaccount:kube-system:ttl-after-finished-controller",
                          "system:dibs:nodes", "system:node:node-0", "system:node:node-1",
                          "system:serviceaccount:kube-system:dibs-driver-gpu"}));
  // None of them is the administrator: a part that loses its role can do nothing.
  EXPECT_TRUE((*started)->client().remove(kBindings, "", "system:kube-scheduler").ok());
  create(**started, kPods,
         "{'metadata': {'name': 'p'}, 'spec': {'containers': [{'name': 'c',"
         " 'image': 'busybox:1.36'}]}}");
  sim.advance(std::chrono::seconds(10));
  EXPECT_EQ(state(**started, "p"), "Pending");
  EXPECT_GT(refusals(**started), 0);
}

TEST_F(ClusterTest, lets_each_driver_do_what_it_needs_and_no_more) {
  runtime::SimRuntime sim;
  auto started = Cluster::start(sim_world(sim, runtime::system_files()),
                                *store::open_store("memory", {}), everything(1));
  ASSERT_TRUE(started.ok()) << started.error().message();
  sim.advance(std::chrono::seconds(10));
  auto way = (*started)->connect(account_identity("dibs-driver-gpu"));
  client::Client driver(*way);
  EXPECT_TRUE(driver.get({"", "v1", "nodes"}, "", "node-0").ok());
  EXPECT_TRUE(driver.list(kClaims, "").ok());

  const Gvr forbidden[] = {{"", "v1", "secrets"},
                           {"", "v1", "pods"},
                           {"", "v1", "configmaps"},
                           {"rbac.authorization.k8s.io", "v1", "clusterroles"}};
  for (const Gvr& gvr : forbidden) {
    const auto listed = driver.list(gvr, "");
    ASSERT_FALSE(listed.ok()) << gvr.resource;
    EXPECT_EQ(listed.error().code(), Code::forbidden);
  }
  EXPECT_FALSE(driver.remove({"", "v1", "nodes"}, "", "node-0").ok());
  EXPECT_FALSE(driver.create(kClaims, "default", from_text(kClaim)).ok());
}

TEST_F(ClusterTest, is_refused_nothing_whatever_its_controllers_do) {
  runtime::SimRuntime sim;
  auto started = Cluster::start(sim_world(sim, runtime::system_files()),
                                *store::open_store("memory", {}), everything(3));
  ASSERT_TRUE(started.ok()) << started.error().message();
  Cluster& cluster = **started;
  sim.advance(std::chrono::seconds(10));
  create(cluster, kTemplates, kTemplate);
  create(cluster, kPods, kPod);
  create(cluster, {"", "v1", "resourcequotas"},
         "{'metadata': {'name': 'q'}, 'spec': {'hard': {'pods': '50', 'configmaps': '50'}}}");
  for (const auto& [gvr, kind] :
       std::vector<std::pair<Gvr, std::string>>{{{"apps", "v1", "deployments"}, "d"},
                                                {{"apps", "v1", "replicasets"}, "r"},
                                                {{"apps", "v1", "statefulsets"}, "s"},
                                                {{"apps", "v1", "daemonsets"}, "x"}}) {
    create(cluster, gvr, workload(kind, kind == "s" ? "'serviceName': 's'," : ""));
  }
  create(cluster, {"", "v1", "replicationcontrollers"},
         "{'metadata': {'name': 'rc'}, 'spec': {'replicas': 1, 'selector': {'app': 'rc'},"
         " 'template': {'metadata': {'labels': {'app': 'rc'}}, 'spec': {'containers':"
         " [{'name': 'c', 'image': 'busybox:1.36', 'command': ['sleep', '99']}]}}}}");
  create(cluster, {"batch", "v1", "jobs"},
         "{'metadata': {'name': 'j'}, 'spec': {'ttlSecondsAfterFinished': 5, 'template':"
         " {'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image':"
         " 'busybox:1.36', 'command': ['true']}]}}}}");
  create(cluster, {"batch", "v1", "cronjobs"},
         "{'metadata': {'name': 'cj'}, 'spec': {'schedule': '* * * * *', 'jobTemplate': {'spec':"
         " {'template': {'spec': {'restartPolicy': 'Never', 'containers': [{'name': 'c',"
         " 'image': 'busybox:1.36', 'command': ['true']}]}}}}}}");
  sim.advance(std::chrono::seconds(150));
  EXPECT_EQ(state(cluster, "p"), "Running");

  // A new template, a tainted device, a tainted node, a node that is gone, a namespace's end.
  const auto patch = [&](const Gvr& gvr, const std::string& space, const std::string& name,
                         const std::string& text) {
    const auto done =
        cluster.client().patch(gvr, space, name, client::PatchType::merge, from_text(text));
    EXPECT_TRUE(done.ok()) << done.error().message();
  };
  for (const auto& [plural, name] : std::vector<std::pair<std::string, std::string>>{
           {"deployments", "d"}, {"statefulsets", "s"}, {"daemonsets", "x"}}) {
    patch({"apps", "v1", plural}, "default", name,
          "{'spec': {'template': {'metadata': {'annotations': {'new': 'yes'}}}}}");
  }
  create_cluster_wide(cluster, {"resource.k8s.io", "v1beta2", "devicetaintrules"},
                      "{'metadata': {'name': 't'}, 'spec': {'deviceSelector': {'driver':"
                      " 'gpu.example.com'}, 'taint': {'key': 'example.com/broken', 'effect':"
                      " 'NoExecute'}}}");
  sim.advance(std::chrono::seconds(60));
  patch({"", "v1", "nodes"}, "", "node-0",
        "{'spec': {'taints': [{'key': 'example.com/out', 'effect': 'NoExecute'}]}}");
  sim.advance(std::chrono::seconds(60));
  create_cluster_wide(cluster, {"", "v1", "namespaces"}, "{'metadata': {'name': 'brief'}}");
  sim.advance(std::chrono::seconds(5));
  EXPECT_TRUE(cluster.client().remove({"", "v1", "namespaces"}, "", "brief").ok());
  client::DeleteOptions foreground;
  foreground.propagation = "Foreground";
  EXPECT_TRUE(
      cluster.client().remove({"apps", "v1", "deployments"}, "default", "d", foreground).ok());
  sim.advance(std::chrono::seconds(120));
  EXPECT_FALSE(cluster.client().get({"", "v1", "namespaces"}, "", "brief").ok());
  EXPECT_FALSE(cluster.client().get({"batch", "v1", "jobs"}, "default", "j").ok());

  EXPECT_EQ(refusals(cluster), 0);
}

TEST_F(ClusterTest, goes_on_with_what_its_store_kept) {
  for (int turn = 0; turn < 2; ++turn) {
    auto store = store::open_store("sqlite", {.folder = folder_});
    ASSERT_TRUE(store.ok()) << store.error().message();
    Options options = everything(2);
    options.port.emplace().host = "127.0.0.1";
    auto started = Cluster::start(real_world(), std::move(store).value(), std::move(options));
    ASSERT_TRUE(started.ok()) << started.error().message();
    Cluster& cluster = **started;
    EXPECT_THAT(cluster.port()->address(), testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
    if (turn == 0) create(cluster, kMaps, "{'metadata': {'name': 'kept'}}");
    EXPECT_TRUE(cluster.client().get(kMaps, "default", "kept").ok());
  }
}

TEST_F(ClusterTest, ends_what_had_begun_when_a_part_cannot) {
  runtime::SimRuntime sim;
  Options options = everything(1);
  options.nodes->groups[0].drivers = {"gpu", "nosuch"};
  auto started = Cluster::start(sim_world(sim, runtime::system_files()),
                                *store::open_store("memory", {}), std::move(options));
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().message(),
            "--drivers \"nosuch\": must be gpu, sim-net, cpu, net or nvidia");

  // One that is found out when all others run already.
  options = everything(1);
  options.nodes->folder += "/" + std::string(80, 'x');
  started = Cluster::start(sim_world(sim, runtime::system_files()),
                           *store::open_store("memory", {}), std::move(options));
  ASSERT_FALSE(started.ok());
  EXPECT_THAT(started.error().message(), testing::HasSubstr("--data-dir"));
}

TEST_F(ClusterTest, has_a_server_alone) {
  runtime::SimRuntime sim;
  auto started =
      Cluster::start(sim_world(sim, runtime::system_files()), *store::open_store("memory", {}), {});
  ASSERT_TRUE(started.ok()) << started.error().message();
  create(**started, kMaps, "{'metadata': {'name': 'a'}}");
  sim.advance(std::chrono::seconds(1));
  EXPECT_TRUE((*started)->ready());
}

}  // namespace
}  // namespace dibs::cluster
