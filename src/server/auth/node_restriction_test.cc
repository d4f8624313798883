#include "server/auth/node_restriction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "json/test_text.h"

namespace dibs::server::auth {
namespace {

using json::test::from_text;
using testing::HasSubstr;

/// A node that asks for a certificate for a pod.
struct PodCertificateWrite : testing::Test {
  UserInfo user{"system:node:n1", "", {"system:nodes"}, {}};
  std::map<std::string, Value> objects;
  Value request = from_text(R"({'spec': {'signerName': 'example.com/mine', 'podName': 'p',
    'podUID': 'pu', 'serviceAccountName': 'a', 'serviceAccountUID': 'au', 'nodeName': 'n1',
    'nodeUID': 'nu'}})");
  RequestAttributes asked;
  bool allowed = false;

  PodCertificateWrite() {
    objects["nodes//n1"] = from_text("{'metadata': {'uid': 'nu'}}");
    objects["serviceaccounts/ns/a"] = from_text("{'metadata': {'uid': 'au'}}");
    objects["pods/ns/p"] = from_text(R"({'metadata': {'uid': 'pu'}, 'spec': {'nodeName': 'n1',
      'serviceAccountName': 'a', 'volumes': [{'projected': {'sources': [
        {'podCertificate': {'signerName': 'example.com/mine'}}]}}]}})");
  }

  /// "" where it may.
  std::string refusal(NodeOperation operation = NodeOperation::create,
                      std::string_view subresource = "") {
    NodeLookups lookups;
    lookups.get = [this](std::string_view resource, std::string_view name_space,
                         std::string_view name) -> Result<Value> {
      const auto found = objects.find(cat(resource, "/", name_space, "/", name));
      if (found == objects.end()) return Error::not_found(cat(quoted(name), " not found"));
      return found->second;
    };
    lookups.authorize = [this](const RequestAttributes& what) {
      asked = what;
      return Decision{allowed, ""};
    };
    const auto checked =
        check_node_write({user, operation, "certificates.k8s.io", "podcertificaterequests",
                          subresource, "ns", "r", &request, &request},
                         lookups);
    if (checked.ok()) return "";
    return cat(checked.error().code() == Code::forbidden ? "403 " : "", checked.error().message());
  }
};

TEST_F(PodCertificateWrite, is_for_a_pod_of_the_node) {
  EXPECT_EQ(refusal(), "");

  objects["pods/ns/p"].mut("spec").set("nodeName", "n2");
  EXPECT_THAT(refusal(), HasSubstr("403 podcertificaterequests.certificates.k8s.io \"r\" is "
                                   "forbidden: pod \"ns/p\" is not running on node \"n1\" named in "
                                   "the PodCertificateRequest"));
}

TEST_F(PodCertificateWrite, names_the_node_that_writes_it) {
  request.mut("spec").set("nodeName", "n2");
  EXPECT_THAT(refusal(), HasSubstr("PodCertificateRequest.Spec.NodeName=\"n2\", which is not the "
                                   "requesting node \"n1\""));
}

TEST_F(PodCertificateWrite, may_be_tried_again_where_a_uid_is_another) {
  const struct {
    const char* field;
    const char* text;
  } cases[] = {
      {"nodeUID",
       "PodCertificateRequest for pod \"ns/p\" names node UID \"x\", inconsistent with the running "
       "node (\"nu\")"},
      {"podUID",
       "PodCertificateRequest for pod \"ns/p\" contains pod UID (\"x\") which differs from running "
       "pod \"pu\""},
      {"serviceAccountUID",
       "PodCertificateRequest for pod \"ns/p\" names service account UID \"x\", which differs from "
       "the running service account (\"au\")"}};
  const Value good = request;
  for (const auto& one : cases) {
    request = good;
    request.mut("spec").set(one.field, "x");
    EXPECT_EQ(refusal(), one.text);
  }
  request = good;
  objects.erase("pods/ns/p");
  EXPECT_EQ(refusal(),
            "while retrieving pod \"ns/p\" named in the PodCertificateRequest: \"p\" not found");
}

TEST_F(PodCertificateWrite, has_the_account_of_the_pod) {
  request.mut("spec").set("serviceAccountName", "b");
  EXPECT_THAT(refusal(), HasSubstr("contains serviceAccountName (\"b\") that differs from running "
                                   "pod (\"a\")"));
}

TEST_F(PodCertificateWrite, is_not_for_mirror_pods) {
  objects["pods/ns/p"]
      .mut("metadata")
      .set("annotations", from_text("{'kubernetes.io/config.mirror': 'h'}"));
  EXPECT_THAT(refusal(), HasSubstr("pod \"ns/p\" is a mirror pod"));
}

TEST_F(PodCertificateWrite, names_a_signer_of_the_pod_or_one_that_is_allowed) {
  request.mut("spec").set("signerName", "example.com/other");
  EXPECT_THAT(refusal(), HasSubstr("pod \"ns/p\" does not mount a podCertificate projected volume "
                                   "for signer \"example.com/other\""));
  EXPECT_EQ(asked.verb, "request-serviceaccounts-podcertificate-signer");
  EXPECT_EQ(asked.group, "certificates.k8s.io");
  EXPECT_EQ(asked.resource, "example.com:other");
  EXPECT_EQ(asked.name, "a");

  allowed = true;
  EXPECT_EQ(refusal(), "");
}

TEST_F(PodCertificateWrite, only_makes_requests) {
  EXPECT_THAT(refusal(NodeOperation::update), HasSubstr("unexpected operation UPDATE"));
  EXPECT_THAT(refusal(NodeOperation::create, "status"), HasSubstr("unexpected subresource status"));
}

}  // namespace
}  // namespace dibs::server::auth
