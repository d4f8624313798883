#include <gmock/gmock.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"
#include "net/key_pair.h"

namespace dibs::controllers {
namespace {

using std::chrono::minutes;
using test::from_text;
using testing::ElementsAre;
using testing::IsEmpty;

const Gvr kRequests = {"certificates.k8s.io", "v1", "podcertificaterequests"};

void ask(test::TestCluster& cluster, const std::string& name) {
  Value request = from_text(cat("{'metadata': {'name': '", name, R"('},
    'spec': {'signerName': 'example.com/mine', 'podName': 'p', 'podUID': 'u',
             'serviceAccountName': 'default', 'serviceAccountUID': 'u', 'nodeName': 'n',
             'nodeUID': 'u'}})"));
  request.mut("spec").set("stubPKCS10Request",
                          base64_encode(net::make_key_and_proof("ED25519")->request_der));
  cluster.create_object(kRequests, "default", request);
}

TEST(PodCertificateCleaner, removes_requests_after_a_quarter_of_an_hour) {
  test::TestCluster cluster;
  ask(cluster, "one");
  cluster.settle(minutes(10));
  ask(cluster, "two");
  cluster.settle(minutes(4));
  EXPECT_THAT(cluster.names(kRequests, "default"), ElementsAre("one", "two"));

  cluster.settle(minutes(2));
  EXPECT_THAT(cluster.names(kRequests, "default"), ElementsAre("two"));
  cluster.settle(minutes(10));
  EXPECT_THAT(cluster.names(kRequests, "default"), IsEmpty());
}

}  // namespace
}  // namespace dibs::controllers
