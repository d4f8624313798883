#include "controllers/device_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Value slice(const std::string& name, const std::string& node, int generation,
            const std::string& devices) {
  return from_text(cat("{'metadata':{'name':'", name, "'},'spec':{'driver':'x','nodeName':'", node,
                       "','pool':{'name':'", node, "','generation':", generation,
                       "},'devices':", devices, "}}"));
}

Value claim(const std::string& name, const std::string& results) {
  return from_text(cat("{'metadata':{'name':'", name,
                       "','namespace':'d'},'status':{'allocation':{'devices':{'results':", results,
                       "}}}}"));
}

std::string result(const std::string& node, const std::string& device) {
  return cat("{'driver':'x','pool':'", node, "','device':'", device, "'}");
}

struct DeviceCountsTest : testing::Test {
  /// "NODE STATE COUNT" in order.
  std::vector<std::string> all() {
    std::vector<std::string> out;
    for (const auto& [kind, count] : counts.all()) {
      out.push_back(cat(kind.node, kind.allocated ? " allocated" : " free",
                        kind.tainted ? " tainted " : " ", count));
    }
    return out;
  }
  DeviceCounts counts;
};

TEST_F(DeviceCountsTest, follow_claims_and_slices) {
  counts.put_claim(claim("early", cat("[", result("n", "a"), "]")));
  counts.put_slice(slice("s", "n", 1, "[{'name':'a'},{'name':'b'},{'name':'c'}]"));
  counts.put_slice(slice("t", "m", 1, "[{'name':'a'}]"));
  EXPECT_THAT(all(), ElementsAre("m free 1", "n free 2", "n allocated 1"));
  counts.put_claim(claim("both", cat("[", result("n", "b"), ",", result("m", "a"), "]")));
  EXPECT_THAT(all(), ElementsAre("m allocated 1", "n free 1", "n allocated 2"));
  counts.put_claim(claim("both", cat("[", result("n", "b"), "]")));
  EXPECT_THAT(all(), ElementsAre("m free 1", "n free 1", "n allocated 2"));
  counts.remove_claim(claim("both", "[]"));
  EXPECT_THAT(all(), ElementsAre("m free 1", "n free 2", "n allocated 1"));
  // Of another pool from now on.
  counts.put_slice(slice("t", "l", 1, "[{'name':'a'},{'name':'b'}]"));
  EXPECT_THAT(all(), ElementsAre("l free 2", "n free 2", "n allocated 1"));
  counts.remove_slice(slice("t", "l", 1, "[]"));
  counts.remove_slice(slice("s", "n", 1, "[]"));
  EXPECT_THAT(all(), IsEmpty());
}

TEST_F(DeviceCountsTest, a_shared_device_is_in_use_until_its_last_claim_goes) {
  counts.put_slice(slice("s", "n", 1, "[{'name':'a'}]"));
  counts.put_claim(claim("one", cat("[", result("n", "a"), "]")));
  counts.put_claim(claim("two", cat("[", result("n", "a"), "]")));
  counts.remove_claim(claim("one", "[]"));
  EXPECT_THAT(all(), ElementsAre("n allocated 1"));
  counts.remove_claim(claim("two", "[]"));
  EXPECT_THAT(all(), ElementsAre("n free 1"));
}

TEST_F(DeviceCountsTest, an_administrators_look_takes_nothing) {
  counts.put_slice(slice("s", "n", 1, "[{'name':'a'}]"));
  counts.put_claim(claim("look", "[{'driver':'x','pool':'n','device':'a','adminAccess':true}]"));
  EXPECT_THAT(all(), ElementsAre("n free 1"));
}

TEST_F(DeviceCountsTest, only_the_newest_generation_counts) {
  counts.put_slice(slice("old", "n", 1, "[{'name':'a'},{'name':'b'}]"));
  counts.put_slice(slice("new", "n", 2, "[{'name':'a'}]"));
  EXPECT_THAT(all(), ElementsAre("n free 1"));
  counts.remove_slice(slice("new", "n", 2, "[]"));
  EXPECT_THAT(all(), ElementsAre("n free 2"));
}

TEST_F(DeviceCountsTest, taints_come_from_slices_and_rules) {
  counts.put_slice(slice("s", "n", 1,
                         "[{'name':'a','taints':[{'key':'k','effect':'NoSchedule'}]},"
                         "{'name':'b','taints':[{'key':'k','effect':'None'}]},"
                         "{'name':'c','nodeName':'other'}]"));
  EXPECT_THAT(all(), ElementsAre("n free 1", "n free tainted 1", "other free 1"));
  const auto rule = [](const std::string& effect) {
    return from_text(
        cat("{'metadata':{'name':'r'},'spec':{'deviceSelector':{'device':'b'},"
            "'taint':{'key':'k','effect':'",
            effect, "'}}}"));
  };
  counts.put_rule(rule("NoExecute"));
  EXPECT_THAT(all(), ElementsAre("n free tainted 2", "other free 1"));
  counts.put_rule(rule("None"));
  EXPECT_THAT(all(), ElementsAre("n free 1", "n free tainted 1", "other free 1"));
  counts.put_rule(rule("NoSchedule"));
  counts.remove_rule(rule("NoSchedule"));
  EXPECT_THAT(all(), ElementsAre("n free 1", "n free tainted 1", "other free 1"));
}

std::string metrics_of(test::TestCluster& cluster) {
  const auto answer = cluster.connect()->send(client::make_request("GET", "/metrics"));
  EXPECT_TRUE(answer.ok());
  return answer.ok() ? answer->body : "";
}

TEST(ClaimCounter, tells_of_claims_and_devices) {
  test::TestCluster cluster;
  const Gvr claims = {"resource.k8s.io", "v1", "resourceclaims"};
  const std::string spec =
      "'spec':{'devices':{'requests':[{'name':'d','exactly':{'deviceClassName':'c'}}]}}";
  cluster.create({"resource.k8s.io", "v1", "resourceslices"}, "",
                 "{'metadata':{'name':'s'},'spec':{'driver':'x.example.com','nodeName':'n',"
                 "'pool':{'name':'n','generation':1,'resourceSliceCount':1},"
                 "'devices':[{'name':'a'},{'name':'b'}]}}");
  cluster.create(claims, "default", cat("{'metadata':{'name':'by-hand'},", spec, "}"));
  cluster.create({"resource.k8s.io", "v1", "resourceclaimtemplates"}, "default",
                 cat("{'metadata':{'name':'t'},'spec':{", spec, "}}"));
  cluster.create(kPods, "default",
                 "{'metadata':{'name':'p'},'spec':{'resourceClaims':[{'name':'d',"
                 "'resourceClaimTemplateName':'t'}],'containers':[{'name':'m','image':'x'}]}}");
  cluster.settle();
  Value held = cluster.get(claims, "default", "by-hand");
  held.set("status", from_text("{'allocation':{'devices':{'results':[{'request':'d',"
                               "'driver':'x.example.com','pool':'n','device':'a'}]}}}"));
  ASSERT_TRUE(cluster.api->update_status(claims, "default", held).ok());
  cluster.settle();
  const std::string text = metrics_of(cluster);
  for (const char* line :
       {"dynamic_resource_allocation_resource_claims{allocated=\"true\",admin_access=\"false\","
        "source=\"\"} 1\n",
        "dynamic_resource_allocation_resource_claims{allocated=\"false\",admin_access=\"false\","
        "source=\"resource_claim_template\"} 1\n",
        "dynamic_resource_allocation_resourceclaim_creates_total{status=\"success\","
        "admin_access=\"false\",owner_api_group=\"\",owner_api_kind=\"Pod\"} 1\n",
        "dibs_resource_claims{state=\"pending\"} 1\n",
        "dibs_resource_claims{state=\"allocated\"} 1\n",
        "dibs_devices{driver=\"x.example.com\",node=\"n\",state=\"allocated\",tainted=\"false\"} "
        "1\n",
        "dibs_devices{driver=\"x.example.com\",node=\"n\",state=\"free\",tainted=\"false\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, HasSubstr("workqueue_adds_total{name=\"resource_claim\"}"));
  cluster.controllers->stop();
  EXPECT_THAT(metrics_of(cluster), Not(HasSubstr("dibs_devices{")));
}

}  // namespace
}  // namespace dibs::controllers
