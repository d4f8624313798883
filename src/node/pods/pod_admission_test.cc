#include "node/pods/pod_admission.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;

const Value kNode = json::parse(R"({"metadata": {"name": "n"}})").value();

Value pod_with(const std::string& spec) {
  return json::parse(cat("{\"spec\": ", spec, "}")).value();
}
Value pod_with_port(const std::string& port) {
  return pod_with(cat("{\"containers\": [{\"ports\": [", port, "]}]}"));
}

TEST(PodAdmission, refuses_a_port_of_the_machine_that_another_pod_has) {
  const Value web = pod_with_port(R"({"hostPort": 80})");
  const auto refused = admit_pod(web, kNode, {web}, {});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->reason, "NodePorts");
  for (const char* same : {R"({"hostPort": 80, "protocol": "TCP", "hostIP": "0.0.0.0"})",
                           R"({"hostPort": 80, "hostIP": "10.0.0.1"})"}) {
    EXPECT_TRUE(admit_pod(pod_with_port(same), kNode, {web}, {})) << same;
  }
  const Value sidecar =
      pod_with(R"({"initContainers": [{"restartPolicy": "Always", "ports": [{"hostPort": 80}]}]})");
  EXPECT_TRUE(admit_pod(sidecar, kNode, {web}, {}));
}

TEST(PodAdmission, takes_ports_that_are_free) {
  const Value web = pod_with_port(R"({"hostPort": 80, "hostIP": "10.0.0.1"})");
  for (const char* other :
       {R"({"hostPort": 81, "hostIP": "10.0.0.1"})", R"({"hostPort": 80, "hostIP": "10.0.0.2"})",
        R"({"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"})",
        R"({"containerPort": 80})"}) {
    EXPECT_FALSE(admit_pod(pod_with_port(other), kNode, {web}, {})) << other;
  }
  // Which ends before the pod's own containers begin.
  const Value init = pod_with(R"({"initContainers": [{"ports": [{"hostPort": 80}]}]})");
  EXPECT_FALSE(admit_pod(init, kNode, {web}, {}));
}

TEST(PodAdmission, refuses_what_asks_for_more_than_can_be_counted) {
  const Value node = json::parse(
                         R"({"metadata": {"name": "n"}, "status": {"allocatable":
                             {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "1Ti"}}})")
                         .value();
  for (const char* resource : {"cpu", "memory", "ephemeral-storage"}) {
    const std::string one = cat(R"({"resources": {"requests": {")", resource, R"(": "9000P"}}})");
    const Value large = pod_with(cat("{\"containers\": [", one, ",", one, ",", one, "]}"));
    const Value small = pod_with(
        cat(R"({"containers": [{"resources": {"requests": {")", resource, R"(": "1"}}}]})"));
    const auto refused = admit_pod(large, node, {}, {});
    ASSERT_TRUE(refused) << resource;
    EXPECT_EQ(refused->reason, cat("OutOf", resource));
    EXPECT_TRUE(admit_pod(small, node, {large, large, large}, {})) << resource;
    EXPECT_FALSE(admit_pod(small, node, {}, {})) << resource;
  }
}

}  // namespace
}  // namespace dibs::node
