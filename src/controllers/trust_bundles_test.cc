// The bundle of the API server's authorities, against a whole server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"
#include "net/x509.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using testing::ElementsAre;

const Gvr kBundles = {"certificates.k8s.io", "v1", "clustertrustbundles"};
constexpr const char* kSigner = "kubernetes.io/kube-apiserver-serving";

struct TrustBundlesTest : testing::Test {
  static net::Validity validity() {
    return {*parse_rfc3339("2000-01-01T00:00:00Z"), *parse_rfc3339("2099-01-01T00:00:00Z")};
  }
  void start(const std::string& ca_pem) {
    server::Options options;
    options.ca_pem = ca_pem;
    cluster = std::make_unique<test::TestCluster>(options);
  }
  std::vector<std::string> published() {
    std::vector<std::string> out;
    for (const Value& bundle : cluster->list(kBundles, ""))
      out.push_back(bundle["spec"]["trustBundle"].str());
    return out;
  }
  void publish_other() {
    Value other =
        from_text(cat("{'metadata':{'name':'kubernetes.io:kube-apiserver-serving:old'},"
                      "'spec':{'signerName':'",
                      kSigner, "'}}"));
    other.mut("spec").set("trustBundle", before.certificate_pem);
    cluster->create_object(kBundles, "", other);
    cluster->settle();
  }

  const net::Credential ca = *net::make_ca("new", validity());
  const net::Credential before = *net::make_ca("old", validity());
  const net::Credential port =
      *net::issue_server_certificate(ca, "api", {"api.example"}, validity());
  std::unique_ptr<test::TestCluster> cluster;
};

TEST_F(TrustBundlesTest, holds_authorities_alone_each_once) {
  start(cat(ca.certificate_pem, port.certificate_pem, ca.certificate_pem));
  EXPECT_THAT(published(), ElementsAre(ca.certificate_pem));
}

TEST_F(TrustBundlesTest, takes_the_place_of_older_ones) {
  start(cat(ca.certificate_pem, port.certificate_pem));
  publish_other();
  EXPECT_THAT(published(), ElementsAre(ca.certificate_pem));
}

TEST_F(TrustBundlesTest, leaves_others_where_it_has_none_of_its_own) {
  start(port.certificate_pem);
  publish_other();
  EXPECT_THAT(published(), ElementsAre(before.certificate_pem));
}

}  // namespace
}  // namespace dibs::controllers
