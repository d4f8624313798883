// Certificate signing requests: whose they are, and who may change what about them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "server/plugins/plugins.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::Reply;
using test::TestServer;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kRequests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

// openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256, in PEM and base64, with
// -subj "/O=system:nodes/CN=system:node:n1" and with -subj "/O=system:masters/CN=evil"
constexpr const char* kOfNode =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlJQkVEQ0J1QUlCQURBd01SVXdFd1lEVlFRS0RBeH"
    "plWE4wWlcwNmJtOWtaWE14RnpBVkJnTlZCQU1NRG5ONQpjM1JsYlRwdWIyUmxPbTR4TUZrd0V3WUhLb1pJemowQ0FR"
    "WUlLb1pJemowREFRY0RRZ0FFREt4RVFId1ZvbEtoClE2NkIzM2pqL01SYnIxeUxpTEJ4dHQ0OWRzM3JCZlR4Q00wcU"
    "IyRXdOVGhodGs0Mm9wZEFzZVV2bU0zQlRPWCsKZzU3RVl5K0MzS0FtTUNRR0NTcUdTSWIzRFFFSkRqRVhNQlV3RXdZ"
    "RFZSMFJCQXd3Q29JQ2JqR0hCQW9BQUFFdwpDZ1lJS29aSXpqMEVBd0lEUndBd1JBSWdJY1h2emUyVWFabG8yYzFiLy"
    "8vNWRKa1hQU0J1aVRIVW5UMG1INTY0Ck4yZ0NJRVQvOHJDZ3NOSW5xa0NGVUVBdUVRQlBGK0R1N1R3T3d5Mk1VYkxS"
    "SHpHbwotLS0tLUVORCBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0K";
constexpr const char* kOfMaster =
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIaU1JR0tBZ0VBTUNneEZ6QVZCZ05WQkFvTURuTj"
    "VjM1JsYlRwdFlYTjBaWEp6TVEwd0N3WURWUVFEREFSbApkbWxzTUZrd0V3WUhLb1pJemowQ0FRWUlLb1pJemowREFR"
    "Y0RRZ0FFOGc4M2I4WTR2c2FYNnFtMUZ6WlFIMHBmCmJPdDVobGdTUEwzYTE3MjErYi9oYW1PTWhrRkhXT3ZPOTdwbk"
    "tKRGpXYTEzNzFxdlplZFhCR2cxLzVVVERLQUEKTUFvR0NDcUdTTTQ5QkFNQ0EwY0FNRVFDSUJkdk5TNWRuMWxIR3Q4"
    "SWNnTFRHZFUyaW00ZGttbDNLeXFHczJHOQpPMmRoQWlCK1h2VFBDcDU5a2YwMCtOdFRSOU1SaFRsZnNETWpQWnBBYW"
    "NuRjFxa0JVdz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=";

Value signing_request(std::string_view signer, std::string_view pem) {
  return from_text(
      cat("{'apiVersion':'certificates.k8s.io/v1','kind':'CertificateSigningRequest',"
          "'metadata':{'name':'r'},'spec':{'usages':['client auth'],'signerName':'",
          signer, "','request':'", pem,
          "','username':'system:node:other','uid':'7','groups':['system:nodes'],"
          "'extra':{'a':['b']}}}"));
}

/// ana may create and change requests, and what else `rules` say.
void allow_ana(TestServer& server, std::string_view rules = "") {
  constexpr const char* kRbac = "/apis/rbac.authorization.k8s.io/v1";
  server.post(cat(kRbac, "/clusterroles"),
              from_text(cat("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRole',"
                            "'metadata':{'name':'few'},'rules':[{'apiGroups':"
                            "['certificates.k8s.io'],'resources':['certificatesigningrequests',"
                            "'certificatesigningrequests/status',"
                            "'certificatesigningrequests/approval'],'verbs':['*']}",
                            rules, "]}")));
  server.post(cat(kRbac, "/clusterrolebindings"),
              from_text("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRoleBinding',"
                        "'metadata':{'name':'few'},'roleRef':{'apiGroup':"
                        "'rbac.authorization.k8s.io','kind':'ClusterRole','name':'few'},"
                        "'subjects':[{'kind':'User','apiGroup':'rbac.authorization.k8s.io',"
                        "'name':'ana'}]}"));
}

Reply as_ana(TestServer& server, std::string method, std::string target, const Value& body,
             std::string type = "application/json") {
  net::Request request =
      test::make_request(std::move(method), std::move(target), json::write(body), std::move(type));
  request.headers.set("Impersonate-User", "ana");
  return server.send(std::move(request));
}

TEST(CertificateRequests, are_of_who_sent_them_whatever_plugins_are_disabled) {
  Options options;
  options.disabled_plugins = {"CertificateApproval", "CertificateSigning",
                              "CertificateSubjectRestriction", "ClusterTrustBundleAttest"};
  TestServer server(options);
  allow_ana(server);

  const Reply made = as_ana(server, "POST", kRequests, signing_request("example.com/s", kOfNode));

  ASSERT_EQ(made.status, 201) << made.text;
  const Value& spec = made.body["spec"];
  EXPECT_EQ(spec["username"].as_string(), "ana");
  EXPECT_TRUE(spec["uid"].is_null());
  EXPECT_TRUE(spec["extra"].is_null());
  EXPECT_THAT(test::strings_of(spec["groups"]), ElementsAre("system:authenticated"));

  AdmissionChain chain;
  chain.add(make_certificate_request_author());
  EXPECT_FALSE(chain.choose({}, {"CertificateRequestAuthor"}).ok());
}

TEST(CertificateRequests, for_masters_are_refused_for_clients_of_the_server) {
  TestServer server;
  const Reply refused =
      server.post(kRequests, signing_request("kubernetes.io/kube-apiserver-client", kOfMaster));
  EXPECT_EQ(refused.status, 403) << refused.text;
  EXPECT_THAT(refused.message(), HasSubstr("signer with system:masters group is not allowed"));

  Options options;
  options.disabled_plugins = {"CertificateSubjectRestriction"};
  TestServer lenient(options);
  EXPECT_EQ(
      lenient.post(kRequests, signing_request("kubernetes.io/kube-apiserver-client", kOfMaster))
          .status,
      201);
}

TEST(CertificateRequests, fail_only_by_the_word_of_who_may_sign) {
  TestServer server;
  allow_ana(server);
  ASSERT_EQ(server.post(kRequests, signing_request("example.com/s", kOfNode)).status, 201);
  const std::string status = cat(kRequests, "/r/status");
  const Value failed = from_text("{'status':{'conditions':[{'type':'Failed','status':'True'}]}}");
  const Value label = from_text("{'metadata':{'labels':{'a':'b'}},'status':{'conditions':[]}}");
  const char* merge = "application/merge-patch+json";

  EXPECT_EQ(as_ana(server, "PATCH", status, label, merge).status, 200);
  const Reply refused = as_ana(server, "PATCH", status, failed, merge);
  EXPECT_EQ(refused.status, 403) << refused.text;
  EXPECT_THAT(refused.message(),
              HasSubstr(R"(user not permitted to sign requests with signerName "example.com/s")"));
  EXPECT_EQ(server.patch(status, "merge", json::write(failed)).status, 200);
}

}  // namespace
}  // namespace dibs::server
