#include "controllers/volumes/attach_detach.h"

#include <gmock/gmock.h>

#include "base/sha256.h"
#include "base/strings.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

const Gvr kAttachments{"storage.k8s.io", "v1", "volumeattachments"};
const Gvr kDrivers{"storage.k8s.io", "v1", "csidrivers"};
const Gvr kPersistent{"", "v1", "persistentvolumes"};
const Gvr kClaimed{"", "v1", "persistentvolumeclaims"};

/// Nodes, a volume of the driver d.csi bound to the claim "data", and who attaches it by hand.
struct AttachDetachTest : testing::Test {
  TestCluster cluster;

  AttachDetachTest() {
    for (const char* node : {"n1", "n2"}) {
      cluster.create(kNodes, "",
                     cat("{'metadata': {'name': '", node,
                         "', 'annotations': "
                         "{'volumes.kubernetes.io/controller-managed-attach-detach': 'true'}}}"));
      set_status(kNodes, node, "{'conditions': [{'type': 'Ready', 'status': 'True'}]}");
    }
    const Value claim =
        cluster.create(kClaimed, "default",
                       "{'metadata': {'name': 'data'}, 'spec': {'accessModes': ['ReadWriteOnce'], "
                       "'storageClassName': '', 'volumeName': 'pv', 'resources': {'requests': "
                       "{'storage': '1Gi'}}}}");
    cluster.create(kPersistent, "",
                   cat("{'metadata': {'name': 'pv'}, 'spec': {'capacity': {'storage': '1Gi'}, "
                       "'accessModes': ['ReadWriteOnce'], 'csi': {'driver': 'd.csi', "
                       "'volumeHandle': 'h'}, 'claimRef': {'namespace': 'default', 'name': 'data', "
                       "'uid': '",
                       uid_of(claim), "'}}}"));
    cluster.settle();
  }

  void set_status(const Gvr& gvr, const std::string& name, const std::string& status,
                  const std::string& name_space = "") {
    client::WriteOptions how;
    how.subresource = "status";
    const auto written = cluster.api->patch(gvr, name_space, name, client::PatchType::merge,
                                            Value::object({{"status", from_text(status)}}), how);
    ASSERT_TRUE(written.ok()) << written.error().message();
  }
  void add_pod(const std::string& name, const std::string& node) {
    cluster.create(kPods, "default",
                   cat("{'metadata': {'name': '", name, "'}, 'spec': {'nodeName': '", node,
                       "', 'terminationGracePeriodSeconds': 0, 'volumes': [{'name': 'v', "
                       "'persistentVolumeClaim': {'claimName': 'data'}}], 'containers': [{'name': "
                       "'c', 'image': 'i'}]}}"));
    cluster.settle();
  }
  void remove_pod(const std::string& name) {
    client::DeleteOptions now;
    now.grace_period_seconds = 0;
    (void)cluster.api->remove(kPods, "default", name, now);
    cluster.settle();
  }
  static std::string attachment(const std::string& node) {
    return "csi-" + sha256_hex("hd.csi" + node);
  }
  void finish(const std::string& node) {
    set_status(kAttachments, attachment(node), "{'attached': true}");
    cluster.settle();
  }
  std::vector<std::string> attachments() { return cluster.names(kAttachments, ""); }
  std::vector<std::string> attached_to(const std::string& node) {
    std::vector<std::string> out;
    const Value known = cluster.get(kNodes, "", node);
    for (const Value& one : known["status"]["volumesAttached"].items()) {
      out.push_back(one["name"].str());
    }
    return out;
  }
  std::vector<std::string> events(const std::string& pod) {
    std::vector<std::string> out;
    for (const Value& event : cluster.list({"", "v1", "events"}, "default")) {
      if (event["involvedObject"]["name"].as_string() != pod) continue;
      if (event["source"]["component"].as_string() != "attachdetach-controller" &&
          event["reportingComponent"].as_string() != "attachdetach-controller") {
        continue;
      }
      out.push_back(cat(event["reason"].as_string(), ": ", event["message"].as_string()));
    }
    return out;
  }
};

TEST_F(AttachDetachTest, a_volume_is_attached_where_a_pod_uses_it_and_detached_when_unmounted) {
  add_pod("p", "n1");
  ASSERT_THAT(attachments(), ElementsAre(attachment("n1")));
  const Value made = cluster.get(kAttachments, "", attachment("n1"));
  EXPECT_EQ(made["spec"], from_text("{'attacher': 'd.csi', 'nodeName': 'n1', 'source': "
                                    "{'persistentVolumeName': 'pv'}}"));
  EXPECT_THAT(attached_to("n1"), IsEmpty());

  finish("n1");
  EXPECT_THAT(attached_to("n1"), ElementsAre("kubernetes.io/csi/d.csi^h"));
  EXPECT_THAT(events("p"), Contains("SuccessfulAttachVolume: AttachVolume.Attach succeeded for "
                                    "volume \"pv\" "));

  set_status(kNodes, "n1", "{'volumesInUse': ['kubernetes.io/csi/d.csi^h']}");
  remove_pod("p");
  cluster.settle(seconds(20));
  EXPECT_THAT(attachments(), ElementsAre(attachment("n1")));

  set_status(kNodes, "n1", "{'volumesInUse': []}");
  cluster.settle();
  EXPECT_THAT(attachments(), IsEmpty());
  EXPECT_THAT(attached_to("n1"), IsEmpty());
}

TEST_F(AttachDetachTest, a_pod_that_has_ended_holds_nothing) {
  add_pod("p", "n1");
  finish("n1");
  set_status(kPods, "p", "{'phase': 'Succeeded'}", "default");
  cluster.settle();
  EXPECT_THAT(attachments(), IsEmpty());
}

TEST_F(AttachDetachTest, a_driver_that_attaches_nothing_gets_no_attachment) {
  cluster.create(kDrivers, "",
                 "{'metadata': {'name': 'd.csi'}, 'spec': {'attachRequired': false}}");
  cluster.settle();
  add_pod("p", "n1");
  EXPECT_THAT(attachments(), IsEmpty());
}

TEST_F(AttachDetachTest, one_node_at_a_time_has_a_volume_of_one_node) {
  add_pod("p", "n1");
  finish("n1");
  add_pod("q", "n2");
  EXPECT_THAT(attachments(), ElementsAre(attachment("n1")));
  EXPECT_THAT(events("q"), Contains("FailedAttachVolume: Multi-Attach error for volume \"pv\" "
                                    "Volume is already used by pod(s) p"));
  remove_pod("p");
  EXPECT_THAT(attachments(), ElementsAre(attachment("n2")));
}

TEST_F(AttachDetachTest, a_failure_is_told_once) {
  add_pod("p", "n1");
  for (int i = 0; i < 2; ++i) {
    set_status(kAttachments, attachment("n1"),
               cat("{'attached': false, 'attachError': {'message': 'no disk', 'time': "
                   "'2026-01-01T00:00:0",
                   i, "Z'}}"));
    cluster.settle();
  }
  EXPECT_THAT(events("p"), ElementsAre("FailedAttachVolume: AttachVolume.Attach failed for volume "
                                       "\"pv\" : no disk"));
}

TEST_F(AttachDetachTest, a_node_that_is_lost_is_given_six_minutes) {
  add_pod("p", "n1");
  finish("n1");
  set_status(kNodes, "n1",
             "{'volumesInUse': ['kubernetes.io/csi/d.csi^h'], 'conditions': [{'type': 'Ready', "
             "'status': 'Unknown'}]}");
  remove_pod("p");
  cluster.settle(minutes(5));
  EXPECT_THAT(attachments(), ElementsAre(attachment("n1")));
  cluster.settle(minutes(2));
  EXPECT_THAT(attachments(), IsEmpty());
}

TEST_F(AttachDetachTest, a_node_out_of_service_is_given_no_time) {
  add_pod("q", "n2");
  finish("n2");
  set_status(kNodes, "n2", "{'volumesInUse': ['kubernetes.io/csi/d.csi^h']}");
  cluster.patch(kNodes, "", "n2",
                "{'spec': {'taints': [{'key': 'node.kubernetes.io/out-of-service', 'effect': "
                "'NoExecute'}]}}");
  remove_pod("q");
  EXPECT_THAT(attachments(), IsEmpty());
}

TEST(HoldsVolumes, while_a_container_may_run) {
  const auto holds = [](const std::string& text) { return holds_volumes(from_text(text)); };
  EXPECT_FALSE(holds("{'spec': {}}"));
  EXPECT_TRUE(holds("{'spec': {'nodeName': 'n'}}"));
  EXPECT_FALSE(holds("{'spec': {'nodeName': 'n'}, 'status': {'phase': 'Failed'}}"));
  EXPECT_TRUE(
      holds("{'metadata': {'deletionTimestamp': 'x'}, 'spec': {'nodeName': 'n'}, 'status': "
            "{'containerStatuses': [{'state': {'running': {}}}]}}"));
  EXPECT_FALSE(
      holds("{'metadata': {'deletionTimestamp': 'x'}, 'spec': {'nodeName': 'n'}, 'status': "
            "{'containerStatuses': [{'state': {'terminated': {}}}]}}"));
}

}  // namespace
}  // namespace dibs::controllers::test
