// A whole cluster as each release that can be emulated, under virtual time: every part works with
// the API that the release serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "api/kinds/resource/versions/model.h"
#include "client/informer.h"
#include "client/resource_versions.h"
#include "cluster/test_cluster.h"

namespace dibs::cluster::test {
namespace {

using json::Value;
using testing::ElementsAre;

const Gvr kPods{"", "v1", "pods"};
const Gvr kNamespaces{"", "v1", "namespaces"};
const Gvr kDeployments{"apps", "v1", "deployments"};
const Gvr kJobs{"batch", "v1", "jobs"};

struct Folder {
  Folder() {
    std::string pattern = "/tmp/dibs-XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

Options whole(const std::string& release, const std::string& folder) {
  Options options;
  options.server.release = release;
  options.server.ca_pem = "CA";
  options.controllers.emplace();
  options.scheduler.emplace();
  auto& nodes = options.nodes.emplace();
  nodes.groups[0].count = 2;
  nodes.runtime = "sim";
  nodes.folder = folder;
  nodes.fleet = true;
  return options;
}

class WholeCluster : public TestCluster {
 public:
  WholeCluster(const std::string& release, const std::string& folder)
      : TestCluster(whole(release, folder)) {
    sim.advance(std::chrono::seconds(10));
  }
  ~WholeCluster() { close(); }

  bool ready() const { return cluster_->ready(); }
  std::size_t count(const Gvr& gvr, const std::string& name_space, const std::string& phase = "") {
    std::size_t found = 0;
    for (const Value& object : list(gvr, name_space)) {
      found += phase.empty() || object["status"]["phase"].as_string() == phase;
    }
    return found;
  }
  /// How often a part of the cluster was refused.
  std::string refusals() {
    const auto answer = connect()->send(client::make_request("GET", "/metrics"));
    constexpr std::string_view kName = "\ndibs_own_requests_refused ";
    const auto at = answer.ok() ? answer->body.find(kName) : std::string::npos;
    if (at == std::string::npos) return "not counted";
    const auto from = at + kName.size();
    return answer->body.substr(from, answer->body.find('\n', from) - from);
  }
};

constexpr const char* kOnce =
    "{'restartPolicy': 'Never', 'containers': [{'name': 'c', 'image': 'busybox:1.36', 'command': "
    "['true']}]}";

class Release : public testing::TestWithParam<const char*> {
 protected:
  Folder folder;
  WholeCluster cluster{GetParam(), folder.path};
};

INSTANTIATE_TEST_SUITE_P(All, Release,
                         testing::Values("1.27", "1.28", "1.29", "1.30", "1.31", "1.32", "1.33",
                                         "1.34", "1.35", "1.36", "1.37", ""));

TEST_P(Release, runs_workloads_with_all_that_belongs_to_them) {
  EXPECT_TRUE(cluster.ready());
  cluster.create(kNamespaces, "", "{'metadata': {'name': 'team'}}");
  cluster.sim.advance(std::chrono::seconds(5));
  EXPECT_FALSE(cluster.get({"", "v1", "serviceaccounts"}, "team", "default").is_null());
  EXPECT_FALSE(cluster.get({"", "v1", "configmaps"}, "team", "kube-root-ca.crt").is_null());

  cluster.create({"", "v1", "resourcequotas"}, "team",
                 "{'metadata': {'name': 'q'}, 'spec': {'hard': {'pods': '50'}}}");
  cluster.create(kDeployments, "team",
                 "{'metadata': {'name': 'd'}, 'spec': {'replicas': 2, 'selector': {'matchLabels': "
                 "{'app': 'd'}}, 'template': {'metadata': {'labels': {'app': 'd'}}, 'spec': "
                 "{'containers': [{'name': 'c', 'image': 'busybox:1.36', 'command': ['sleep', "
                 "'9999']}]}}}}");
  cluster.create(
      kJobs, "team",
      std::string("{'metadata': {'name': 'j'}, 'spec': {'template': {'spec': ") + kOnce + "}}}");
  cluster.create({"batch", "v1", "cronjobs"}, "team",
                 std::string("{'metadata': {'name': 'cj'}, 'spec': {'schedule': '* * * * *', "
                             "'jobTemplate': {'spec': {'template': {'spec': ") +
                     kOnce + "}}}}}");
  cluster.sim.advance(std::chrono::seconds(130));
  EXPECT_EQ(cluster.count(kPods, "team", "Running"), 2U);
  EXPECT_EQ(cluster.get(kDeployments, "team", "d")["status"]["readyReplicas"].as_int(), 2);
  EXPECT_EQ(cluster.get(kJobs, "team", "j")["status"]["succeeded"].as_int(), 1);
  EXPECT_GE(cluster.count(kJobs, "team"), 2U);
  const Value quota = cluster.get({"", "v1", "resourcequotas"}, "team", "q");
  EXPECT_EQ(quota["status"]["used"]["pods"].str(), "2");

  cluster.remove(kDeployments, "team", "d");
  cluster.sim.advance(std::chrono::seconds(60));
  EXPECT_EQ(cluster.count({"apps", "v1", "replicasets"}, "team"), 0U);
  EXPECT_EQ(cluster.count(kPods, "team", "Running"), 0U);
  cluster.remove(kNamespaces, "", "team");
  cluster.sim.advance(std::chrono::seconds(60));
  EXPECT_TRUE(cluster.get(kNamespaces, "", "team").is_null());
  EXPECT_EQ(cluster.refusals(), "0");
}

/// What an informer of ours has, each as "name version".
class Seen {
 public:
  Seen(client::Transport& way, runtime::Runtime& runtime)
      : transport_(client::make_resource_transport(way)),
        client_(*transport_),
        informer_(client_, runtime, options()) {
    informer_.start();
  }
  std::vector<std::string> all() const {
    std::vector<std::string> out;
    for (const Value& claim : informer_.list()) {
      out.push_back(claim["metadata"]["name"].str() + (api::is_classic(claim) ? " classic " : " ") +
                    claim["spec"]["resourceClassName"].str() +
                    claim["spec"]["devices"]["requests"][0]["name"].str() +
                    claim["metadata"]["labels"]["a"].str());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  static client::InformerOptions options() {
    client::InformerOptions options;
    options.gvr = {"resource.k8s.io", "v1", "resourceclaims"};
    return options;
  }
  std::unique_ptr<client::Transport> transport_;
  client::Client client_;
  client::Informer informer_;
};

TEST(BothModels, are_seen_as_they_are_near_and_far) {
  class Server : public TestCluster {
   public:
    client::Transport& near() { return *transport_; }
    client::Transport& far() { return *remote_; }
  } server;
  const Gvr structured{"resource.k8s.io", "v1", "resourceclaims"};
  const Gvr classic{"resource.k8s.io", "v1alpha2", "resourceclaims"};
  const std::string old = "{'metadata': {'name': 'old'}, 'spec': {'resourceClassName': 'net'}}";
  server.create(classic, "default", old);
  Seen near(server.near(), server.sim.runtime());
  Seen far(server.far(), server.sim.runtime());
  server.sim.advance(std::chrono::seconds(1));
  server.create(structured, "default",
                "{'metadata': {'name': 'new'}, 'spec': {'devices': {'requests': [{'name': 'gpu', "
                "'exactly': {'deviceClassName': 'c'}}]}}}");
  server.patch(structured, "default", "old", "{'metadata': {'labels': {'a': 'x'}}}");
  server.sim.advance(std::chrono::seconds(1));
  for (const Seen* seen : {&near, &far}) {
    EXPECT_THAT(seen->all(), ElementsAre("new gpu", "old classic netx"));
  }
  // The same name, another model.
  server.remove(classic, "default", "old");
  server.create(structured, "default",
                "{'metadata': {'name': 'old'}, 'spec': {'devices': {'requests': [{'name': 'nic', "
                "'exactly': {'deviceClassName': 'c'}}]}}}");
  server.sim.advance(std::chrono::seconds(1));
  for (const Seen* seen : {&near, &far}) {
    EXPECT_THAT(seen->all(), ElementsAre("new gpu", "old nic"));
  }
}

}  // namespace
}  // namespace dibs::cluster::test
