#include "server/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "runtime/sim_runtime.h"

namespace dibs::server {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::UnorderedElementsAreArray;

constexpr Duration kDay = std::chrono::hours(24);

class CredentialFiles : public testing::Test {
 protected:
  Credentials load(std::vector<std::string> names = {}) {
    auto loaded = load_credentials(*files_, sim_.runtime().clock, "/data/pki", names);
    EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message());
    return loaded.ok() ? *loaded : Credentials{};
  }

  static net::CertificateInfo info(const net::Credential& credential) {
    auto parsed = net::parse_certificate(credential.certificate_pem);
    EXPECT_TRUE(parsed.ok());
    return parsed.ok() ? *parsed : net::CertificateInfo{};
  }

  runtime::SimRuntime sim_;
  std::unique_ptr<runtime::Files> files_ = runtime::make_memory_files();
};

TEST_F(CredentialFiles, are_made_on_the_first_start) {
  Credentials made = load({"api.example.com", "10.1.2.3"});

  EXPECT_TRUE(info(made.ca).is_ca);
  EXPECT_TRUE(net::is_issued_by(made.server.certificate_pem, made.ca.certificate_pem));
  EXPECT_TRUE(net::is_issued_by(made.admin.certificate_pem, made.ca.certificate_pem));
  net::CertificateInfo server = info(made.server);
  EXPECT_TRUE(server.for_servers);
  EXPECT_THAT(server.dns_names, Contains("kubernetes.default.svc"));
  EXPECT_THAT(server.dns_names, Contains("api.example.com"));
  EXPECT_THAT(server.ip_addresses, Contains("10.1.2.3"));
  EXPECT_THAT(server.ip_addresses, Contains("127.0.0.1"));
  net::CertificateInfo admin = info(made.admin);
  EXPECT_TRUE(admin.for_clients);
  EXPECT_EQ(admin.common_name, "kubernetes-admin");
  EXPECT_THAT(admin.organizations, ElementsAre("system:masters"));
  EXPECT_THAT(*files_->list("/data/pki"),
              ElementsAre("admin.crt", "admin.key", "apiserver-kubelet-client.crt",
                          "apiserver-kubelet-client.key", "ca.crt", "ca.key", "front-proxy-ca.crt",
                          "front-proxy-ca.key", "front-proxy-client.crt", "front-proxy-client.key",
                          "sa.key", "server.crt", "server.key"));
  EXPECT_THAT(credential_files(), UnorderedElementsAreArray(*files_->list("/data/pki")));
}

TEST_F(CredentialFiles, speak_for_others_by_an_authority_of_their_own) {
  Credentials made = load({});

  EXPECT_TRUE(net::is_issued_by(made.front_proxy_client.certificate_pem,
                                made.front_proxy_ca.certificate_pem));
  EXPECT_FALSE(net::is_issued_by(made.front_proxy_client.certificate_pem, made.ca.certificate_pem));
  EXPECT_EQ(info(made.front_proxy_client).common_name, "front-proxy-client");
  EXPECT_EQ(load({}).front_proxy_client.certificate_pem, made.front_proxy_client.certificate_pem);
}

TEST_F(CredentialFiles, show_nodes_an_identity_that_is_in_no_group) {
  const net::Credential made = load().node_client;
  EXPECT_EQ(info(made).common_name, "kube-apiserver-kubelet-client");
  EXPECT_TRUE(info(made).organizations.empty());

  // One of an earlier release is replaced, though it would last.
  const net::Credential ca = load().ca;
  const Time now = sim_.now();
  auto old = net::issue_client_certificate(ca, "kube-apiserver-kubelet-client", {"system:masters"},
                                           {now, now + 365 * kDay});
  ASSERT_TRUE(old.ok());
  ASSERT_TRUE(files_->write("/data/pki/apiserver-kubelet-client.crt", old->certificate_pem).ok());
  ASSERT_TRUE(files_->write("/data/pki/apiserver-kubelet-client.key", old->key_pem).ok());
  EXPECT_TRUE(info(load().node_client).organizations.empty());
}

TEST_F(CredentialFiles, stay_the_same_on_the_next_start) {
  Credentials first = load({"api.example.com"});
  sim_.advance(100 * kDay);

  Credentials second = load({"api.example.com"});

  EXPECT_EQ(second.ca.certificate_pem, first.ca.certificate_pem);
  EXPECT_EQ(second.server.certificate_pem, first.server.certificate_pem);
  EXPECT_EQ(second.admin.key_pem, first.admin.key_pem);
  EXPECT_EQ(second.account_key_pem, first.account_key_pem);
}

TEST_F(CredentialFiles, are_renewed_when_a_third_of_their_life_is_left) {
  Credentials first = load();
  sim_.advance(242 * kDay);
  EXPECT_EQ(load().server.certificate_pem, first.server.certificate_pem);
  sim_.advance(4 * kDay);

  Credentials renewed = load();

  EXPECT_NE(renewed.server.certificate_pem, first.server.certificate_pem);
  EXPECT_NE(renewed.admin.certificate_pem, first.admin.certificate_pem);
  EXPECT_NE(renewed.node_client.certificate_pem, first.node_client.certificate_pem);
  EXPECT_EQ(renewed.ca.certificate_pem, first.ca.certificate_pem);
  EXPECT_EQ(renewed.account_key_pem, first.account_key_pem) << "tokens handed out must stay good";
  EXPECT_GT(info(renewed.server).not_after, sim_.now() + 364 * kDay);
  EXPECT_EQ(load().server.certificate_pem, renewed.server.certificate_pem);
}

TEST_F(CredentialFiles, get_a_new_name_when_one_is_asked_for) {
  Credentials first = load();

  Credentials second = load({"other.example.com"});

  EXPECT_NE(second.server.certificate_pem, first.server.certificate_pem);
  EXPECT_THAT(info(second.server).dns_names, Contains("other.example.com"));
  EXPECT_EQ(second.admin.certificate_pem, first.admin.certificate_pem);
}

TEST_F(CredentialFiles, are_issued_again_after_the_authority_was_replaced) {
  Credentials first = load();
  for (const char* file : {"ca.crt", "ca.key"})
    ASSERT_TRUE(files_->remove(cat("/data/pki/", file)).ok());

  Credentials second = load();

  EXPECT_NE(second.ca.certificate_pem, first.ca.certificate_pem);
  EXPECT_TRUE(net::is_issued_by(second.server.certificate_pem, second.ca.certificate_pem));
  EXPECT_TRUE(net::is_issued_by(second.admin.certificate_pem, second.ca.certificate_pem));
}

TEST_F(CredentialFiles, of_an_expired_authority_are_an_error_that_names_the_file) {
  load();
  sim_.advance(3651 * kDay);

  auto loaded = load_credentials(*files_, sim_.runtime().clock, "/data/pki", {});

  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message().find("/data/pki/ca.crt"), std::string::npos)
      << loaded.error().message();
}

TEST_F(CredentialFiles, that_are_rubbish_are_an_error_that_names_the_file) {
  load();
  ASSERT_TRUE(files_->write("/data/pki/ca.crt", "rubbish").ok());

  auto loaded = load_credentials(*files_, sim_.runtime().clock, "/data/pki", {});

  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message().find("/data/pki/ca.crt"), std::string::npos)
      << loaded.error().message();
}

TEST_F(CredentialFiles, become_a_kubeconfig) {
  Credentials made = load();

  auto config = json::parse_yaml(
      make_kubeconfig(made.ca.certificate_pem, "dibs-lab", made.admin, "https://127.0.0.1:6443"));

  ASSERT_TRUE(config.ok());
  const json::Value& cluster = (*config)["clusters"][0]["cluster"];
  EXPECT_EQ(cluster["server"].as_string(), "https://127.0.0.1:6443");
  std::string ca;
  ASSERT_TRUE(base64_decode(cluster["certificate-authority-data"].as_string(), ca));
  EXPECT_EQ(ca, made.ca.certificate_pem);
  std::string key;
  ASSERT_TRUE(base64_decode((*config)["users"][0]["user"]["client-key-data"].as_string(), key));
  EXPECT_EQ(key, made.admin.key_pem);
  const json::Value& context = (*config)["contexts"][0];
  EXPECT_EQ((*config)["current-context"].as_string(), "dibs-lab");
  EXPECT_EQ((*config)["current-context"], context["name"]);
  EXPECT_EQ(context["context"]["cluster"], (*config)["clusters"][0]["name"]);
  EXPECT_EQ(context["context"]["user"], (*config)["users"][0]["name"]);
}

TEST_F(CredentialFiles, of_a_server_that_joins_come_from_one_authority) {
  const Credentials first = load({"10.0.0.1"});
  const auto bundle = export_authority(*files_, "/data/pki");
  ASSERT_TRUE(bundle.ok());
  ASSERT_TRUE(import_authority(*files_, sim_.runtime().clock, "/second/pki", *bundle).ok());
  const auto second = load_credentials(*files_, sim_.runtime().clock, "/second/pki", {"10.0.0.2"});
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->ca.certificate_pem, first.ca.certificate_pem);
  EXPECT_EQ(second->account_key_pem, first.account_key_pem);
  EXPECT_NE(second->server.key_pem, first.server.key_pem);
  EXPECT_TRUE(net::is_issued_by(second->server.certificate_pem, first.ca.certificate_pem));
  EXPECT_THAT(info(second->server).ip_addresses, Contains("10.0.0.2"));
  // Once more changes nothing.
  EXPECT_TRUE(import_authority(*files_, sim_.runtime().clock, "/second/pki", *bundle).ok());
}

TEST_F(CredentialFiles, are_not_taken_from_what_is_no_authority) {
  load();
  const std::string bundle = *export_authority(*files_, "/data/pki");
  const std::string other = *net::make_private_key();
  const std::string ca = *files_->read("/data/pki/ca.crt");
  const std::string key = *files_->read("/data/pki/ca.key");
  const std::string leaf = *files_->read("/data/pki/admin.crt");
  const std::string leaf_key = *files_->read("/data/pki/admin.key");
  for (const std::string& bad :
       {std::string(), std::string("text"), ca + key, ca + other + key, leaf + leaf_key + other,
        ca + key + key.substr(0, 80) + "\n-----END PRIVATE KEY-----\n", "x" + bundle,
        bundle + other}) {
    EXPECT_FALSE(import_authority(*files_, sim_.runtime().clock, "/third/pki", bad).ok()) << bad;
    EXPECT_FALSE(files_->exists("/third/pki/ca.crt"));
  }
  ASSERT_TRUE(load_credentials(*files_, sim_.runtime().clock, "/fourth/pki", {}).ok());
  const auto refused = import_authority(*files_, sim_.runtime().clock, "/fourth/pki", bundle);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::conflict);
  sim_.advance(11 * 365 * kDay);
  EXPECT_FALSE(import_authority(*files_, sim_.runtime().clock, "/fifth/pki", bundle).ok());
}

TEST_F(CredentialFiles, issue_certificates_to_parts_elsewhere) {
  load();
  const auto made =
      issue_client(*files_, sim_.runtime().clock, "/data/pki", "system:node:n", {"system:nodes"});
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(info(*made).common_name, "system:node:n");
  EXPECT_THAT(info(*made).organizations, ElementsAre("system:nodes"));
  EXPECT_FALSE(issue_client(*files_, sim_.runtime().clock, "/none", "x", {}).ok());
}

}  // namespace
}  // namespace dibs::server
