// PodSecurity, asked through a whole server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/admission_configuration.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::kPods;
using test::Reply;
using test::simple_pod;
using test::TestServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kDefault = "/api/v1/namespaces/default";

/// A server whose namespace "default" takes pods.
struct PodServer : TestServer {
  explicit PodServer(Options options = {}) : TestServer(std::move(options)) {
    add_account("default");
  }
};

Reply enforce(TestServer& server, std::string_view level) {
  std::string body =
      cat("{\"metadata\":{\"labels\":{\"pod-security.kubernetes.io/enforce\":\"", level, "\"}}}");
  return server.patch(kDefault, "merge", body);
}

TEST(PodSecurity, refuses_pods_that_violate_what_is_enforced) {
  PodServer server;
  EXPECT_EQ(enforce(server, "restricted").status, 200);

  Reply reply = server.post(kPods, simple_pod("x"));

  EXPECT_EQ(reply.status, 403);
  EXPECT_THAT(reply.message(),
              testing::StartsWith("pods \"x\" is forbidden: violates PodSecurity "
                                  "\"restricted:latest\": allowPrivilegeEscalation != false "
                                  "(container \""));
  EXPECT_EQ(server.get(cat(kPods, "/x")).status, 404);
}

TEST(PodSecurity, lets_everything_pass_where_nothing_is_asked_for) {
  PodServer server;

  Reply reply = server.post(kPods, simple_pod("x", "{'hostNetwork':true}"));

  EXPECT_EQ(reply.status, 201) << reply.text;
  EXPECT_THAT(reply.warnings(), IsEmpty());
  EXPECT_THAT(server.get("/metrics").text,
              HasSubstr("pod_security_evaluations_total{decision=\"allow\",policy_level="
                        "\"privileged\",policy_version=\"latest\",mode=\"enforce\","
                        "request_operation=\"create\",resource=\"pod\",subresource=\"\"} 1"));
}

TEST(PodSecurity, warns_without_refusing) {
  PodServer server;
  server.patch(kDefault, "merge",
               "{\"metadata\":{\"labels\":{\"pod-security.kubernetes.io/warn\":\"baseline\"}}}");

  Reply reply = server.post(kPods, simple_pod("x", "{'hostPID':true}"));

  EXPECT_EQ(reply.status, 201) << reply.text;
  EXPECT_THAT(reply.warnings(),
              ElementsAre("299 - \"would violate PodSecurity \\\"baseline:latest\\\": host "
                          "namespaces (hostPID=true)\""));
}

TEST(PodSecurity, warns_of_templates_and_refuses_their_pods_only) {
  PodServer server;
  enforce(server, "baseline");

  Reply reply = server.post(
      "/apis/apps/v1/namespaces/default/deployments",
      from_text("{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'a':'b'}},'template':"
                "{'metadata':{'labels':{'a':'b'}},'spec':{'hostIPC':true,'containers':[{'name':'c',"
                "'image':'i'}]}}}}"));

  EXPECT_EQ(reply.status, 201) << reply.text;
  EXPECT_THAT(reply.warnings(),
              ElementsAre("299 - \"would violate PodSecurity \\\"baseline:latest\\\": host "
                          "namespaces (hostIPC=true)\""));
}

TEST(PodSecurity, refuses_labels_that_it_cannot_understand) {
  PodServer server;

  Reply reply = enforce(server, "strict");

  EXPECT_EQ(reply.status, 422);
  EXPECT_EQ(
      reply.message(),
      "Namespace \"default\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: "
      "Invalid value: \"strict\": must be one of privileged, baseline, restricted");
  Reply created = server.post(
      "/api/v1/namespaces",
      from_text("{'metadata':{'name':'n','labels':{'pod-security.kubernetes.io/warn-version':"
                "'1.2'}}}"));
  EXPECT_EQ(created.status, 422) << created.text;
}

TEST(PodSecurity, warns_of_pods_that_are_there_when_a_namespace_turns_stricter) {
  PodServer server;
  for (const char* name : {"b", "a", "c"}) {
    ASSERT_EQ(server.post(kPods, simple_pod(name, "{'hostNetwork':true}")).status, 201);
  }
  ASSERT_EQ(server
                .post(kPods, simple_pod("d",
                                        "{'hostPID':true,'hostNetwork':true,'volumes':[{"
                                        "'name':'v','hostPath':{'path':'/'}}]}"))
                .status,
            201);

  Reply reply = enforce(server, "baseline");

  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.warnings(),
              ElementsAre("299 - \"existing pods in namespace \\\"default\\\" violate the new "
                          "PodSecurity enforce level \\\"baseline:latest\\\"\"",
                          "299 - \"a (and 2 other pods): host namespaces\"",
                          "299 - \"d: host namespaces, hostPath volumes\""));
  EXPECT_THAT(enforce(server, "privileged").warnings(), IsEmpty());
}

TEST(PodSecurity, judges_ephemeral_containers) {
  PodServer server;
  const Reply made = server.post(kPods, simple_pod("x"));
  ASSERT_EQ(made.status, 201);
  enforce(server, "baseline");

  Reply reply = server.patch(
      cat(kPods, "/x/ephemeralcontainers"), "strategic",
      "{\"spec\":{\"ephemeralContainers\":[{\"name\":\"e\",\"image\":\"i\",\"securityContext\":{"
      "\"privileged\":true}}]}}");

  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(reply.message(),
            "pods \"x\" is forbidden: violates PodSecurity \"baseline:latest\": privileged "
            "(container \"e\" must not set securityContext.privileged=true)");
}

TEST(PodSecurity, leaves_running_pods_their_status_and_labels) {
  PodServer server;
  ASSERT_EQ(server.post(kPods, simple_pod("x", "{'hostNetwork':true}")).status, 201);
  enforce(server, "restricted");

  EXPECT_EQ(
      server.patch(cat(kPods, "/x"), "merge", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}").status,
      200);
  EXPECT_EQ(
      server.patch(cat(kPods, "/x/status"), "merge", "{\"status\":{\"phase\":\"Running\"}}").status,
      200);
  Reply image = server.patch(cat(kPods, "/x"), "strategic",
                             "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"other\"}]}}");
  EXPECT_NE(image.status, 200) << image.text;
}

TEST(PodSecurity, judges_as_the_emulated_release) {
  const char* probe =
      "{'containers':[{'name':'c','image':'i','livenessProbe':{'tcpSocket':{'host':'x','port':1}}}]"
      "}";
  for (const auto& [release, status] : {std::pair("1.32", 201), std::pair("1.36", 403)}) {
    Options options;
    options.release = release;
    PodServer server(options);
    enforce(server, "baseline");
    EXPECT_EQ(server.post(kPods, simple_pod("x", probe)).status, status) << release;
  }
}

TEST(PodSecurity, has_defaults_and_exemptions_of_its_configuration) {
  Options options;
  options.pod_security.defaults.enforce.level = api::SecurityLevel::baseline;
  options.pod_security.exempt_namespaces = {"free"};
  PodServer server(options);
  server.add_namespace("free");

  const auto pod = simple_pod("x", "{'hostNetwork':true}");
  EXPECT_EQ(server.post(kPods, pod).status, 403);
  EXPECT_EQ(server.post("/api/v1/namespaces/free/pods", pod).status, 201);
  Reply reply = server.patch(
      "/api/v1/namespaces/free", "merge",
      "{\"metadata\":{\"labels\":{\"pod-security.kubernetes.io/enforce\":\"restricted\"}}}");
  EXPECT_THAT(reply.warnings(),
              ElementsAre("299 - \"namespace \\\"free\\\" is exempt from Pod Security, and the "
                          "policy (enforce=restricted:latest) will be ignored\""));
}

TEST(AdmissionConfiguration, is_read_with_the_file_it_names) {
  auto files = runtime::make_memory_files();
  ASSERT_TRUE(files->make_dirs("/c").ok());
  ASSERT_TRUE(files
                  ->write("/c/all.yaml",
                          "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
                          "plugins:\n- name: PodSecurity\n  path: pods.yaml\n")
                  .ok());
  ASSERT_TRUE(files
                  ->write("/c/pods.yaml",
                          "apiVersion: pod-security.admission.config.k8s.io/v1\n"
                          "kind: PodSecurityConfiguration\ndefaults: {enforce: baseline}\n")
                  .ok());

  auto made = read_admission_configuration(*files, "/c/all.yaml");

  ASSERT_TRUE(made.ok()) << made.error().message();
  EXPECT_EQ(made->defaults.enforce.str(), "baseline:latest");
}

TEST(AdmissionConfiguration, refuses_what_it_does_not_know) {
  auto files = runtime::make_memory_files();
  const auto message_of = [&](std::string_view text) {
    EXPECT_TRUE(files->write("f", text).ok());
    auto made = read_admission_configuration(*files, "f");
    return made.ok() ? std::string("taken") : made.error().message();
  };
  const std::string head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n";
  EXPECT_THAT(message_of("kind: Pod\n"), HasSubstr("must be an AdmissionConfiguration"));
  EXPECT_THAT(message_of(cat(head, "plugin: []\n")), HasSubstr("unknown field \"plugin\""));
  EXPECT_THAT(message_of(cat(head, "plugins: [{name: EventRateLimit}]\n")),
              HasSubstr("plugins[0].name: \"EventRateLimit\" is no plugin that takes a"));
  EXPECT_THAT(message_of(cat(head, "plugins: [{name: PodSecurity}, {name: PodSecurity}]\n")),
              HasSubstr("plugins[1].name: PodSecurity is configured twice"));
  EXPECT_THAT(
      message_of(cat(head, "plugins: [{name: PodSecurity, configuration: {kind: Other}}]\n")),
      HasSubstr("plugins[0].configuration: no kind \"Other\""));
  EXPECT_EQ(message_of(cat(head, "plugins: []\n")), "taken");
}

}  // namespace
}  // namespace dibs::server
