// Certificates of pods, against an API server: as the node, with a signer beside it.
#include "node/pods/pod_certificates.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "cluster/test_cluster.h"
#include "net/x509.h"

namespace dibs::node {
namespace {

using cluster::test::from_text;
using json::Value;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const client::Gvr kPods{"", "v1", "pods"};
const client::Gvr kNodes{"", "v1", "nodes"};
const client::Gvr kAccounts{"", "v1", "serviceaccounts"};
const client::Gvr kRequests{"certificates.k8s.io", "v1", "podcertificaterequests"};

std::string as_pem(const std::string& der) {
  const std::string text = base64_encode(der);
  std::string out = "-----BEGIN CERTIFICATE REQUEST-----\n";
  for (std::size_t i = 0; i < text.size(); i += 64) append(out, text.substr(i, 64), "\n");
  return out + "-----END CERTIFICATE REQUEST-----\n";
}

struct PodCertificatesTest : testing::Test {
  cluster::test::TestCluster cluster;
  std::unique_ptr<client::Transport> transport;
  std::unique_ptr<client::Client> client;
  std::unique_ptr<PodCertificates> certificates;
  net::Credential authority;
  Value pod;
  std::vector<std::string> woken;
  std::vector<std::string> events;

  PodCertificatesTest() {
    const Time now = cluster.sim.now();
    authority = *net::make_ca("test", {now - hours(24), now + hours(24 * 365)});
    cluster.create(kNodes, "", "{'metadata': {'name': 'node-0'}}");
    cluster.create(kNodes, "", "{'metadata': {'name': 'node-1'}}");
    cluster.create(kAccounts, "default", "{'metadata': {'name': 'default'}}");
    pod = make_pod("p", "node-0");
    make_agent();
  }
  ~PodCertificatesTest() override {
    certificates.reset();
    settle();
  }

  Value make_pod(const std::string& name, const std::string& node) {
    const Value made = cluster.create(
        kPods, "default",
        cat("{'metadata': {'name': '", name, "'}, 'spec': {'nodeName': '", node,
            "', 'automountServiceAccountToken': false, 'containers': [{'name': 'c', 'image': "
            "'i'}], "
            "'volumes': [{'name': 'v', 'projected': {'sources': [{'podCertificate': {'signerName': "
            "'example.com/mine', 'keyType': 'ECDSAP256', 'maxExpirationSeconds': 3600, "
            "'credentialBundlePath': 'bundle.pem', 'userAnnotations': {'example.com/a': "
            "'b'}}}]}}]}}"));
    settle();
    return made;
  }
  void make_agent() {
    certificates.reset();
    transport = cluster.connect({"system:node:node-0", {"system:nodes", "system:authenticated"}});
    client = std::make_unique<client::Client>(*transport);
    PodCertificatesOptions options;
    options.node_name = "node-0";
    options.warn = [this](const Value&, const std::string& reason, const std::string& note) {
      events.push_back(cat(reason, " ", note));
    };
    certificates =
        std::make_unique<PodCertificates>(*client, cluster.sim.runtime(), std::move(options));
    certificates->on_change([this](const std::string& uid) { woken.push_back(uid); });
  }
  void settle(Duration time = seconds(1)) { cluster.sim.advance(time); }
  std::string uid() const { return pod["metadata"]["uid"].str(); }
  const Value& source() const {
    return pod["spec"]["volumes"][0]["projected"]["sources"][0]["podCertificate"];
  }
  Result<PodCredential> get() {
    auto made = certificates->get(pod, "v", 0, source());
    settle();
    return made;
  }
  std::vector<Value> requests() { return cluster.list(kRequests, "default"); }
  Value undecided() {
    for (const Value& request : requests()) {
      if (request["status"]["conditions"].empty()) return request;
    }
    ADD_FAILURE() << "no request that waits";
    return {};
  }
  void answer(Value request, const std::string& type, const std::string& reason) {
    request.mut("status")
        .mut("conditions")
        .push(Value::object({{"type", type},
                             {"status", "True"},
                             {"reason", reason},
                             {"message", "said the signer"},
                             {"lastTransitionTime", format_rfc3339(cluster.sim.now())}}));
    const auto written = cluster.api->update_status(kRequests, "default", request);
    EXPECT_TRUE(written.ok()) << written.error().message();
    settle();
  }
  void sign(Value request) {
    std::string der;
    ASSERT_TRUE(base64_decode(request["spec"]["stubPKCS10Request"].as_string(), der));
    const Time from = Time::from_seconds(cluster.sim.now().seconds());
    const auto leaf =
        net::sign_request(authority, as_pem(der), {"client auth"}, {from, from + hours(1)});
    ASSERT_TRUE(leaf.ok()) << leaf.error().message();
    Value& status = request.mut("status");
    status.set("certificateChain", *leaf + authority.certificate_pem);
    status.set("notBefore", format_rfc3339(from));
    status.set("notAfter", format_rfc3339(from + hours(1)));
    status.set("beginRefreshAt", format_rfc3339(from + minutes(40)));
    answer(std::move(request), "Issued", "Signed");
  }
};

TEST_F(PodCertificatesTest, come_from_a_signer_that_was_asked) {
  EXPECT_EQ(get().error().message(), "credential bundle is not issued yet");
  ASSERT_EQ(requests().size(), 1U);
  const Value spec = requests()[0]["spec"];
  EXPECT_EQ(spec["signerName"].as_string(), "example.com/mine");
  EXPECT_EQ(spec["podName"].as_string(), "p");
  EXPECT_EQ(spec["podUID"].as_string(), uid());
  EXPECT_EQ(spec["nodeName"].as_string(), "node-0");
  EXPECT_EQ(spec["maxExpirationSeconds"].as_int(), 3600);
  EXPECT_EQ(spec["unverifiedUserAnnotations"]["example.com/a"].as_string(), "b");
  EXPECT_EQ(requests()[0]["metadata"]["ownerReferences"][0]["uid"].as_string(), uid());
  EXPECT_THAT(woken, IsEmpty()) << "nobody has answered";

  sign(undecided());
  EXPECT_THAT(woken, ElementsAre(uid()));
  const auto made = get();
  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_THAT(made->key, HasSubstr("BEGIN PRIVATE KEY"));
  EXPECT_EQ(net::split_certificates(made->chain).size(), 2U);
  EXPECT_TRUE(net::is_issued_by(made->chain, authority.certificate_pem));
  EXPECT_EQ(get()->key, made->key) << "one key for one certificate";
  EXPECT_EQ(requests().size(), 1U);
}

TEST_F(PodCertificatesTest, are_renewed_when_the_signer_says_so) {
  (void)get();
  sign(undecided());
  const std::string first = get()->key;
  const auto look = certificates->next_look(uid());
  ASSERT_TRUE(look);
  EXPECT_GE(*look, cluster.sim.now() + minutes(39));
  EXPECT_LE(*look, cluster.sim.now() + minutes(45)) << "spread over five minutes";

  settle(*look - cluster.sim.now());
  EXPECT_EQ(get()->key, first) << "until there is another";
  sign(undecided());
  EXPECT_NE(get()->key, first);
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(PodCertificatesTest, are_told_of_when_they_are_overdue_and_ended) {
  (void)get();
  sign(undecided());
  const std::string first = get()->key;
  for (int i = 0; i < 4; ++i) {
    const auto look = certificates->next_look(uid());
    if (!look) break;
    settle(*look - cluster.sim.now());
    EXPECT_EQ(get()->key, first);
  }
  EXPECT_THAT(events, ElementsAre("CertificateOverdueForRefresh PodCertificate refresh overdue",
                                  "CertificateExpired PodCertificate expired"));
}

TEST_F(PodCertificatesTest, are_not_there_when_the_signer_denies_them) {
  (void)get();
  answer(undecided(), "Denied", "UnsupportedKeyType");
  EXPECT_EQ(get().error().message(),
            "PodCertificateRequest was permanently denied: reason=\"UnsupportedKeyType\" "
            "message=\"said the signer\"");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_THAT(events[0], HasSubstr("was denied, reason=\"UnsupportedKeyType\""));
  (void)get();
  EXPECT_EQ(requests().size(), 1U);
  EXPECT_EQ(events.size(), 1U);
}

TEST_F(PodCertificatesTest, are_asked_for_again_when_the_request_was_removed) {
  (void)get();
  cluster.remove(kRequests, "default", undecided()["metadata"]["name"].str());
  settle();
  EXPECT_THAT(woken, ElementsAre(uid()));
  (void)get();
  EXPECT_THAT(requests(), IsEmpty()) << "not at once";
  settle(seconds(30));
  (void)get();
  sign(undecided());
  EXPECT_TRUE(get().ok());
}

TEST_F(PodCertificatesTest, are_asked_for_anew_by_the_next_agent) {
  (void)get();
  make_agent();
  EXPECT_EQ(get().error().message(), "credential bundle is not issued yet");
  EXPECT_EQ(requests().size(), 2U);
}

TEST_F(PodCertificatesTest, are_for_pods_of_this_node_alone) {
  const Value own = pod;
  pod = make_pod("q", "node-1");
  EXPECT_THAT(get().error().message(), HasSubstr("while creating initial PodCertificateRequest: "));
  pod = own;
  Value other = source();
  other.set("signerName", "example.com/other");
  EXPECT_THAT(certificates->get(pod, "v", 1, other).error().message(),
              HasSubstr("does not mount a podCertificate projected volume for signer "
                        "\"example.com/other\""));
  EXPECT_THAT(requests(), IsEmpty());
}

TEST_F(PodCertificatesTest, are_followed_only_while_a_pod_wants_them) {
  (void)get();
  const Value request = undecided();
  certificates->forget(uid());
  EXPECT_FALSE(certificates->next_look(uid()));
  sign(request);
  EXPECT_THAT(woken, IsEmpty());
}

}  // namespace
}  // namespace dibs::node
