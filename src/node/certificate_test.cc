#include "node/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cluster/test_cluster.h"

namespace dibs::node {
namespace {

using cluster::test::TestCluster;
using json::Value;
using testing::HasSubstr;

const client::Gvr kRequests{"certificates.k8s.io", "v1", "certificatesigningrequests"};
const client::Gvr kBindings{"rbac.authorization.k8s.io", "v1", "clusterrolebindings"};
constexpr Duration kLife = std::chrono::minutes(30);

/// A cluster that signs, and a node of it.
struct Certificates : testing::Test {
  Certificates()
      : cluster(options()),
        transport(cluster.connect({"system:node:n1", {"system:nodes", "system:authenticated"}})),
        client(*transport) {
    how.node = "n1";
    how.life = kLife;
    how.renewed = [this](const net::Credential& fresh) -> Result<> {
      if (refuses) return Error::internal("the disk is full");
      taken.push_back(fresh);
      return success();
    };
    cluster.sim.advance(std::chrono::seconds(1));
  }

  static cluster::Options options() {
    cluster::Options out;
    out.server.ca_pem = "CA";
    out.controllers.emplace();
    out.controllers->signing_ca = ca();
    return out;
  }
  static const net::Credential& ca() {
    static const net::Credential made = *net::make_ca(
        "test", {*parse_rfc3339("2000-01-01T00:00:00Z"), *parse_rfc3339("2099-01-01T00:00:00Z")});
    return made;
  }
  void let_nodes_renew() {
    cluster.create(kBindings, "",
                   "{'metadata':{'name':'renew'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io',"
                   "'kind':'ClusterRole','name':'system:certificates.k8s.io:"
                   "certificatesigningrequests:selfnodeclient'},'subjects':[{'apiGroup':"
                   "'rbac.authorization.k8s.io','kind':'Group','name':'system:nodes'}]}");
    cluster.sim.advance(std::chrono::seconds(1));
  }
  /// As of now.
  net::Credential credential() {
    const Time now = cluster.sim.runtime().clock.now();
    return *net::issue_client_certificate(ca(), "system:node:n1", {"system:nodes"},
                                          {now, now + kLife});
  }

  TestCluster cluster;
  std::unique_ptr<client::Transport> transport;
  client::Client client;
  CertificateKeeper::Options how;
  std::vector<net::Credential> taken;
  bool refuses = false;
};

TEST_F(Certificates, are_renewed_when_a_third_of_their_life_is_left) {
  let_nodes_renew();
  how.credential = credential();
  CertificateKeeper keeper(client, cluster.sim.runtime(), how);
  keeper.start();
  cluster.sim.advance(std::chrono::minutes(19));
  EXPECT_TRUE(taken.empty());
  cluster.sim.advance(std::chrono::minutes(2));
  ASSERT_EQ(taken.size(), 1U);
  const auto info = net::parse_certificate(taken[0].certificate_pem);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->common_name, "system:node:n1");
  EXPECT_TRUE(info->for_clients);
  EXPECT_NE(taken[0].key_pem, how.credential.key_pem);

  // And so on.
  cluster.sim.advance(std::chrono::minutes(60));
  EXPECT_GE(taken.size(), 3U);
  keeper.stop();
  const std::size_t before = taken.size();
  cluster.sim.advance(std::chrono::minutes(60));
  EXPECT_EQ(taken.size(), before);
}

TEST_F(Certificates, are_asked_for_again_until_somebody_approves_and_they_are_kept) {
  how.credential = credential();
  refuses = true;
  CertificateKeeper keeper(client, cluster.sim.runtime(), how);
  keeper.start();
  cluster.sim.advance(std::chrono::minutes(28));
  EXPECT_TRUE(taken.empty());
  EXPECT_FALSE(cluster.list(kRequests, "").empty());
  let_nodes_renew();
  cluster.sim.advance(std::chrono::minutes(8));
  EXPECT_TRUE(taken.empty()) << "it cannot be kept";
  refuses = false;
  cluster.sim.advance(std::chrono::minutes(3));
  EXPECT_EQ(taken.size(), 1U);
}

TEST_F(Certificates, that_are_denied_say_why) {
  const auto request = certificate_request("n1", *net::make_private_key(), Duration(0),
                                           cluster.sim.runtime().random);
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE((*request)["spec"]["expirationSeconds"].is_null());
  const auto waiting = issued_certificate(*request);
  ASSERT_TRUE(waiting.ok());
  EXPECT_FALSE(waiting->has_value());
  Value denied = *request;
  denied.mut("status")
      .mut("conditions")
      .push(Value::object({{"type", "Denied"}, {"status", "True"}, {"message", "not this rack"}}));
  const auto answer = issued_certificate(denied);
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().message(), HasSubstr("was denied: not this rack"));
}

}  // namespace
}  // namespace dibs::node
