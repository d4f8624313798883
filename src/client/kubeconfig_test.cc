#include "client/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"

namespace dibs::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kText = R"(
apiVersion: v1
kind: Config
current-context: main
clusters:
- name: local
  cluster:
    server: https://127.0.0.1:6443
    certificate-authority-data: Q0E=
- name: lax
  cluster:
    server: https://lax:1
    insecure-skip-tls-verify: true
    tls-server-name: real.name
users:
- name: admin
  user:
    client-certificate-data: Q0VSVA==
    client-key: keys/admin.key
- name: robot
  user:
    tokenFile: /tokens/robot
    as: someone
    as-groups: [g1, g2]
- name: half
  user:
    client-certificate-data: Q0VSVA==
- name: plugin
  user:
    exec: {command: aws}
contexts:
- name: main
  context: {cluster: local, user: admin, namespace: team}
- name: other
  context: {cluster: lax, user: robot}
- name: anonymous
  context: {cluster: lax}
- name: half
  context: {cluster: local, user: half}
- name: plugin
  context: {cluster: local, user: plugin}
- name: lost
  context: {cluster: nowhere, user: admin}
extensions:
- name: mine
  extension: {kept: true}
)";

struct KubeconfigTest : testing::Test {
  std::unique_ptr<runtime::Files> files = runtime::make_memory_files();
  void SetUp() override {
    ASSERT_TRUE(files->make_dirs("/home/me/.kube/keys").ok());
    ASSERT_TRUE(files->write("/home/me/.kube/keys/admin.key", "KEY").ok());
    ASSERT_TRUE(files->write("/home/me/.kube/config", kText).ok());
  }
  Kubeconfig loaded() {
    auto config = Kubeconfig::load(*files, {"/home/me/.kube/config"});
    EXPECT_TRUE(config.ok()) << config.error().message();
    return std::move(config).value();
  }
};

TEST_F(KubeconfigTest, resolves_data_and_files) {
  const auto access = loaded().resolve(*files);
  ASSERT_TRUE(access.ok()) << access.error().message();
  EXPECT_EQ(access->server, "https://127.0.0.1:6443");
  EXPECT_EQ(access->tls.ca_pem, "CA");
  EXPECT_EQ(access->tls.certificate_pem, "CERT");
  EXPECT_EQ(access->tls.key_pem, "KEY");
  EXPECT_EQ(access->default_namespace, "team");
}

TEST_F(KubeconfigTest, resolves_other_contexts) {
  const auto access = loaded().resolve(*files, "other");
  ASSERT_TRUE(access.ok());
  EXPECT_TRUE(access->tls.insecure);
  EXPECT_EQ(access->tls.server_name, "real.name");
  EXPECT_EQ(access->token_file, "/tokens/robot");
  EXPECT_EQ(access->impersonate_user, "someone");
  EXPECT_THAT(access->impersonate_groups, ElementsAre("g1", "g2"));
  EXPECT_EQ(access->default_namespace, "default");
  EXPECT_TRUE(loaded().resolve(*files, "anonymous").ok());
}

TEST_F(KubeconfigTest, says_what_is_wrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"absent", "context \"absent\" does not exist"},
      {"lost", "cluster \"nowhere\" of context \"lost\" does not exist"},
      {"half", "user \"half\" needs both client-certificate and client-key"},
      {"plugin", "credential plugins"},
  };
  for (const auto& [context, message] : cases) {
    const auto access = loaded().resolve(*files, context);
    ASSERT_FALSE(access.ok()) << context;
    EXPECT_THAT(access.error().message(), HasSubstr(message));
  }
  ASSERT_TRUE(files->remove("/home/me/.kube/keys/admin.key").ok());
  EXPECT_THAT(
      loaded().resolve(*files).error().message(),
      HasSubstr("unable to read client-key /home/me/.kube/keys/admin.key for user \"admin\""));
  EXPECT_THAT(Kubeconfig().resolve(*files).error().message(), HasSubstr("current-context"));
  EXPECT_FALSE(Kubeconfig::parse("clusters: 5", "").ok());
  EXPECT_FALSE(Kubeconfig::parse("a: [", "").ok());
  EXPECT_FALSE(Kubeconfig::parse("kind: Pod", "").ok());
  EXPECT_THAT(Kubeconfig::load(*files, {"/absent"}).error().message(),
              HasSubstr("error loading config file \"/absent\""));
}

TEST_F(KubeconfigTest, merges_files_first_wins) {
  ASSERT_TRUE(files
                  ->write("/second", R"(
current-context: other
clusters:
- name: local
  cluster: {server: https://overridden}
- name: extra
  cluster: {server: https://extra}
contexts:
- name: extra
  context: {cluster: extra}
)")
                  .ok());
  const auto merged = Kubeconfig::load(*files, {"/absent", "/home/me/.kube/config", "/second"});
  ASSERT_TRUE(merged.ok());
  EXPECT_EQ(merged->current_context(), "main");
  EXPECT_EQ(merged->resolve(*files)->server, "https://127.0.0.1:6443");
  EXPECT_EQ(merged->resolve(*files, "extra")->server, "https://extra");
}

TEST(Kubeconfig, chooses_its_files) {
  EXPECT_THAT(Kubeconfig::paths("x", "a:b", "/h"), ElementsAre("x"));
  EXPECT_THAT(Kubeconfig::paths("", "a::b", "/h"), ElementsAre("a", "b"));
  EXPECT_THAT(Kubeconfig::paths("", "", "/h"), ElementsAre("/h/.kube/config"));
}

TEST(InClusterAccess, reads_what_is_mounted) {
  const auto files = runtime::make_memory_files();
  EXPECT_FALSE(in_cluster_access(*files, "", "").ok());
  const std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  ASSERT_TRUE(files->make_dirs(folder).ok());
  ASSERT_TRUE(files->write(folder + "/token", "t").ok());
  ASSERT_TRUE(files->write(folder + "/ca.crt", "CA").ok());
  ASSERT_TRUE(files->write(folder + "/namespace", "ns\n").ok());
  const auto access = in_cluster_access(*files, "10.0.0.1", "443");
  ASSERT_TRUE(access.ok()) << access.error().message();
  EXPECT_EQ(access->server, "https://10.0.0.1:443");
  EXPECT_EQ(access->default_namespace, "ns");
  EXPECT_EQ(in_cluster_access(*files, "fd00::1", "443")->server, "https://[fd00::1]:443");
}

TEST(FindAccess, knows_the_pod_that_it_runs_in) {
  const auto files = runtime::make_memory_files();
  std::map<std::string, std::string> variables;
  const auto find = [&](const std::string& kubeconfig) {
    const auto found = find_access(*files, kubeconfig, "", [&](const char* name) {
      const auto at = variables.find(name);
      return at == variables.end() ? std::string() : at->second;
    });
    return found.ok() ? found->server : found.error().message();
  };
  const auto write = [&](const std::string& folder, const std::string& name,
                         const std::string& server) {
    ASSERT_TRUE(files->make_dirs(folder).ok());
    ASSERT_TRUE(
        files
            ->write(folder + "/" + name, "{clusters: [{name: c, cluster: {server: " + server +
                                             "}}], contexts: [{name: x, context: {cluster: c}}], "
                                             "current-context: x}")
            .ok());
  };
  write("/home/me/.kube", "config", "https://home:1");
  write("/etc/given", "config", "https://given:1");
  variables["HOME"] = "/home/me";
  EXPECT_EQ(find(""), "https://home:1");
  const std::string folder = "/var/run/secrets/kubernetes.io/serviceaccount";
  ASSERT_TRUE(files->make_dirs(folder).ok());
  ASSERT_TRUE(files->write(folder + "/token", "t").ok());
  ASSERT_TRUE(files->write(folder + "/ca.crt", "CA").ok());
  variables["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  variables["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_EQ(find(""), "https://home:1");
  variables["HOME"] = "/root";
  EXPECT_EQ(find(""), "https://10.0.0.1:443");
  variables["KUBECONFIG"] = "/etc/given/config";
  EXPECT_EQ(find(""), "https://given:1");
  variables.erase("KUBECONFIG");
  EXPECT_EQ(find("/etc/given/config"), "https://given:1");
  EXPECT_THAT(find("/nowhere"), testing::StartsWith("--kubeconfig: error loading config file"));
}

}  // namespace
}  // namespace dibs::client
