// A resize is judged as a new pod is: by quotas, limit ranges, and by what its node has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::Reply;
using test::TestServer;
using testing::HasSubstr;

class PodResizeTest : public testing::Test {
 protected:
  PodResizeTest() {
    EXPECT_EQ(
        server.post(cat(kDefault, "serviceaccounts"), from_text("{'metadata':{'name':'default'}}"))
            .status,
        201);
    EXPECT_EQ(server.post("/api/v1/nodes", from_text("{'metadata':{'name':'n'}}")).status, 201);
    EXPECT_EQ(server
                  .patch("/api/v1/nodes/n/status", "merge",
                         R"({"status":{"allocatable":{"cpu":"4","memory":"8Gi"}}})")
                  .status,
              200);
  }

  void add_pod() {
    const Reply made = server.post(
        cat(kDefault, "pods"),
        from_text("{'metadata':{'name':'p'},'spec':{'nodeName':'n','initContainers':[{'name':'i',"
                  "'image':'x','resources':{'requests':{'cpu':'1'}}}],'containers':[{'name':'c',"
                  "'image':'x','resources':{'requests':{'cpu':'1'},'limits':{'cpu':'2'}}}]}}"));
    ASSERT_EQ(made.status, 201) << made.message();
  }
  Reply resize(const std::string& list, const std::string& name, const std::string& resources) {
    return server.patch(cat(kDefault, "pods/p/resize"), "strategic",
                        cat(R"({"spec":{")", list, R"(":[{"name":")", name, R"(","resources":)",
                            resources, "}]}}"));
  }

  static constexpr const char* kDefault = "/api/v1/namespaces/default/";
  TestServer server;
};

TEST_F(PodResizeTest, stays_within_what_the_node_has) {
  add_pod();
  EXPECT_EQ(resize("containers", "c", R"({"requests":{"cpu":"3"},"limits":{"cpu":"3"}})").status,
            200);
  const Reply refused =
      resize("containers", "c", R"({"requests":{"cpu":"5"},"limits":{"cpu":"5"}})");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "pods \"p\" is forbidden: node didn't have enough allocatable resources: cpu, "
            "requested: 5000, allocatable: 4000");
}

TEST_F(PodResizeTest, asks_of_the_node_only_what_it_declares) {
  add_pod();
  const std::string more = R"({"requests":{"cpu":"2"}})";
  EXPECT_EQ(resize("initContainers", "i", more).message(),
            "pods \"p\" is forbidden: pod update requires features "
            "InPlacePodVerticalScalingInitContainers which are not available on node \"n\"");
  server.patch("/api/v1/nodes/n/status", "merge",
               R"({"status":{"declaredFeatures":["InPlacePodVerticalScalingInitContainers"]}})");
  EXPECT_EQ(resize("initContainers", "i", more).status, 200);
}

TEST_F(PodResizeTest, is_no_way_around_a_quota_or_a_limit_range) {
  EXPECT_EQ(server
                .post(cat(kDefault, "resourcequotas"),
                      from_text("{'metadata':{'name':'q'},'spec':{'hard':{'requests.cpu':'2'}}}"))
                .status,
            201);
  EXPECT_EQ(server
                .patch(cat(kDefault, "resourcequotas/q/status"), "merge",
                       R"({"status":{"hard":{"requests.cpu":"2"},"used":{"requests.cpu":"0"}}})")
                .status,
            200);
  EXPECT_EQ(server
                .post(cat(kDefault, "limitranges"),
                      from_text("{'metadata':{'name':'r'},'spec':{'limits':[{'type':'Container',"
                                "'max':{'cpu':'2500m'}}]}}"))
                .status,
            201);
  add_pod();
  EXPECT_THAT(resize("containers", "c", R"({"requests":{"cpu":"2100m"},"limits":{"cpu":"2200m"}})")
                  .message(),
              HasSubstr("exceeded quota: q, requested: requests.cpu=1100m, used: requests.cpu=1, "
                        "limited: requests.cpu=2"));
  EXPECT_THAT(resize("containers", "c", R"({"limits":{"cpu":"3"}})").message(),
              HasSubstr("maximum cpu usage per Container is 2500m, but limit is 3"));
  EXPECT_EQ(resize("containers", "c", R"({"requests":{"cpu":"2"},"limits":{"cpu":"2"}})").status,
            200);
  EXPECT_EQ(server.get(cat(kDefault, "resourcequotas/q"))
                .body["status"]["used"]["requests.cpu"]
                .as_string(),
            "2");
}

}  // namespace
}  // namespace dibs::server
