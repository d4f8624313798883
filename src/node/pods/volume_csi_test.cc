#include <gmock/gmock.h>
#include <sys/stat.h>

#include "node/pods/persistent_volumes_for_test.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;
using test::FakeCsiDriver;
using test::from_text;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct CsiVolumesTest : PersistentVolumesTest {};

TEST_F(CsiVolumesTest, a_driver_stages_once_and_publishes_for_each_pod) {
  put_settings(
      "{'attachRequired': false, 'podInfoOnMount': true, 'fsGroupPolicy': 'File', "
      "'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  ASSERT_THAT(set_up(claimer("u2")), IsEmpty());
  ASSERT_THAT(set_up(claimer("u2")), IsEmpty());
  EXPECT_THAT(driver->log, ElementsAre("stage h1 " + staging(), "publish h1 " + target("u1"),
                                       "stage h1 " + staging(), "publish h1 " + target("u2")));
  EXPECT_EQ(driver->last_publish.staging_target_path(), staging());
  EXPECT_EQ(driver->last_publish.volume_context().at("csi.storage.k8s.io/pod.uid"), "u2");
  EXPECT_EQ(driver->last_publish.volume_context().at("csi.storage.k8s.io/ephemeral"), "false");
  EXPECT_EQ(driver->last_publish.volume_context().at("a"), "b");
  EXPECT_EQ(driver->last_publish.volume_capability().mount().fs_type(), "ext4");
  EXPECT_EQ(driver->last_publish.volume_capability().access_mode().mode(),
            csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_WRITER);
  EXPECT_FALSE(driver->last_stage.volume_context().contains("csi.storage.k8s.io/pod.uid"));
  const auto record = json::parse(
      read_file(root.path() + "/pods/u1/volumes/kubernetes.io~csi/pv/vol_data.json", 9999)
          .value_or(""));
  ASSERT_TRUE(record.ok());
  EXPECT_EQ((*record)["driverName"].as_string(), "fake.csi");
  EXPECT_EQ((*record)["volumeHandle"].as_string(), "h1");

  driver->log.clear();
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(driver->log, ElementsAre("unpublish h1 " + target("u1")));
  EXPECT_EQ(tear_down("u2"), "");
  EXPECT_THAT(driver->log, Contains("unstage h1 " + staging()));
  expect_clean();
}

TEST_F(CsiVolumesTest, nothing_is_left_wherever_the_agent_dies) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  const rpc::Status died{rpc::Code::unavailable, "died"};
  // Before or after what the driver was asked for, on the way up and on the way down.
  for (const bool after : {false, true}) {
    for (const char* step : {"stage", "publish", "unpublish", "unstage"}) {
      SCOPED_TRACE(cat(step, after ? " done" : ""));
      auto& table = after ? driver->refuse_after : driver->refuse;
      table[step] = died;
      (void)set_up(claimer("u1"));
      start();
      (void)tear_down("u1");
      start();
      table.clear();
      EXPECT_EQ(tear_down("u1"), "");
      expect_clean();
    }
  }
  // A record that was being written.
  const std::string folder = root.path() + "/pods/u1/volumes/kubernetes.io~csi/pv";
  ASSERT_TRUE(make_folder(folder, 0750).ok());
  ASSERT_TRUE(write_file(folder + "/vol_data.json.77.0.tmp", "{", 0600).ok());
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
}

TEST_F(CsiVolumesTest, a_pod_s_end_waits_for_the_driver) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  drivers->remove({"CSIPlugin", "fake.csi", FakeCsiDriver::kEndpoint, {"1.0.0"}});
  EXPECT_THAT(tear_down("u1"), HasSubstr("driver name fake.csi not found in the list of registered "
                                         "CSI drivers"));
  EXPECT_TRUE(fs::exists(root.path() + "/pods/u1"));
  register_driver();
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
}

TEST_F(CsiVolumesTest, a_missing_driver_is_told_of) {
  put_csi();
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.MountDevice failed for volume \"pv\" : kubernetes.io/csi: "
            "attacher.MountDevice failed to create newCsiDriverClient: driver name fake.csi not "
            "found in the list of registered CSI drivers");
  EXPECT_EQ(error(pod_of("u2", "'csi': {'driver': 'no.csi'}")),
            "MountVolume.SetUp failed for volume \"v\" : kubernetes.io/csi: mounter.SetUpAt failed "
            "to get CSI client: driver name no.csi not found in the list of registered CSI "
            "drivers");
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(CsiVolumesTest, an_attached_volume_is_in_use_before_it_is_staged) {
  put_settings("{'attachRequired': true, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  report_in_use = false;
  EXPECT_THAT(error(claimer("u1")), HasSubstr("waits: MountVolume.MountDevice failed for volume "
                                              "\"pv\" : volume has not been added to the list of "
                                              "VolumesInUse"));
  report_in_use = true;
  EXPECT_THAT(error(claimer("u1")), HasSubstr("volume is not yet attached"));
  EXPECT_THAT((*api.get(kNode))["status"]["volumesInUse"],
              from_text("['kubernetes.io/csi/fake.csi^h1']"));
  // Why is for the controller to tell; who waits long is told that he does.
  sim.advance(std::chrono::seconds(124));
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.MountDevice failed for volume \"pv\" : volume is not yet attached "
            "according to node status");
  EXPECT_THAT(driver->log, IsEmpty());
  const std::string attachment =
      "/apis/storage.k8s.io/v1/volumeattachments/csi-" + sha256_hex("h1fake.csinode-0");
  put(attachment,
      "{'apiVersion': 'storage.k8s.io/v1', 'kind': 'VolumeAttachment', 'metadata': {}, 'spec': {}, "
      "'status': {'attached': true, 'attachmentMetadata': {'disk': 'sdb'}}}");
  Value node = *api.get(kNode);
  node.mut("status").set("volumesAttached",
                         from_text("[{'name': 'kubernetes.io/csi/fake.csi^h1'}]"));
  api.put(kNode, node);
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->last_stage.publish_context().at("disk"), "sdb");
  EXPECT_EQ(driver->last_publish.publish_context().at("disk"), "sdb");
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_TRUE((*api.get(kNode))["status"]["volumesInUse"].empty());
  expect_clean();
}

TEST_F(CsiVolumesTest, a_pod_s_own_volume_is_published_under_a_name_of_its_own) {
  put_settings("{'podInfoOnMount': true, 'volumeLifecycleModes': ['Ephemeral']}");
  register_driver();
  put("/api/v1/namespaces/ns/secrets/key",
      "{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {}, 'data': {'k': 'dmFsdWU='}}");
  const Value pod = pod_of("u1",
                           "'csi': {'driver': 'fake.csi', 'readOnly': true, "
                           "'nodePublishSecretRef': {'name': 'key'}}");
  ASSERT_THAT(set_up(pod), IsEmpty());
  const std::string handle = "csi-" + sha256_hex("u1v");
  EXPECT_THAT(driver->log, ElementsAre(cat("publish ", handle,
                                           " /var/lib/kubelet/pods/u1/volumes/"
                                           "kubernetes.io~csi/v/mount")));
  EXPECT_TRUE(driver->last_publish.readonly());
  EXPECT_EQ(driver->last_publish.secrets().at("k"), "value");
  EXPECT_EQ(driver->last_publish.volume_context().at("csi.storage.k8s.io/ephemeral"), "true");
  EXPECT_TRUE(mounts(pod)[0].read_only);
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(driver->published, IsEmpty());

  put_settings("{'volumeLifecycleModes': ['Persistent']}");
  EXPECT_THAT(error(pod), HasSubstr("volume mode \"Ephemeral\" not supported by driver fake.csi "
                                    "(only supports [\"Persistent\"])"));
}

TEST_F(CsiVolumesTest, a_driver_that_wants_tokens_gets_them_again) {
  put_settings(
      "{'attachRequired': false, 'requiresRepublish': true, 'volumeLifecycleModes': "
      "['Persistent'], 'tokenRequests': [{'audience': 'vault'}]}");
  put_csi();
  driver->abilities.clear();
  register_driver();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->last_publish.volume_context().at("csi.storage.k8s.io/serviceAccount.tokens"),
              HasSubstr(R"({"vault":{"token":"secret","expirationTimestamp":")"));
  EXPECT_EQ(driver->last_publish.staging_target_path(), "");
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.size(), 1U);
  sim.advance(std::chrono::seconds(61));
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.size(), 2U);
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(CsiVolumesTest, the_group_goes_to_the_driver_where_it_can_or_is_given_here) {
  put_settings(
      "{'attachRequired': false, 'fsGroupPolicy': 'File', 'volumeLifecycleModes': "
      "['Persistent']}");
  put_csi("'accessModes': ['ReadWriteOncePod'], 'mountOptions': ['noatime']");
  driver->abilities = {FakeCsiDriver::Rpc::VOLUME_MOUNT_GROUP,
                       FakeCsiDriver::Rpc::SINGLE_NODE_MULTI_WRITER};
  register_driver();
  ASSERT_THAT(set_up(claimer("u1", "'securityContext': {'fsGroup': 2000}, ")), IsEmpty());
  const auto& capability = driver->last_publish.volume_capability();
  EXPECT_EQ(capability.mount().volume_mount_group(), "2000");
  EXPECT_EQ(capability.mount().mount_flags(0), "noatime");
  EXPECT_EQ(capability.access_mode().mode(),
            csi::v1::VolumeCapability::AccessMode::SINGLE_NODE_SINGLE_WRITER);
  EXPECT_THAT(error(claimer("u2")), HasSubstr("already in use by another pod"));
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_EQ(tear_down("u2"), "");
}

TEST_F(CsiVolumesTest, a_block_volume_of_a_driver_has_places_of_its_own) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi("'volumeMode': 'Block', 'accessModes': ['ReadWriteMany']");
  register_driver();
  const auto pod = [](const std::string& uid) {
    return pod_of(uid, "'persistentVolumeClaim': {'claimName': 'data'}", "",
                  "'volumeDevices': [{'name': 'v', 'devicePath': '/dev/x'}]");
  };
  const std::string places = "/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/";
  EXPECT_THAT(error(pod("u1")),
              HasSubstr("MapVolume.MapPodDevice failed for volume \"pv\" : driver "
                        "fake.csi published no block device at "));
  EXPECT_THAT(error(pod("u2")), HasSubstr("published no block device"));
  EXPECT_TRUE(driver->last_stage.volume_capability().has_block());
  EXPECT_THAT(driver->staged, ElementsAre(places + "staging/pv"));
  EXPECT_THAT(driver->published, ElementsAre(places + "publish/pv/u1", places + "publish/pv/u2"));
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_EQ(tear_down("u2"), "");
  expect_clean();
  EXPECT_FALSE(fs::exists(root.path() + "/plugins/kubernetes.io/csi/volumeDevices/publish/pv"));
  EXPECT_FALSE(fs::exists(root.path() + "/plugins/kubernetes.io/csi/volumeDevices/staging/pv"));
}

TEST_F(CsiVolumesTest, a_driver_s_refusal_is_told_in_its_words) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  driver->refuse["publish"] = {rpc::Code::internal, "no such disk"};
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.SetUp failed for volume \"pv\" : rpc error: code = "
            "Internal desc = no such disk");
}

TEST_F(CsiVolumesTest, a_volume_grows_under_the_pod_that_has_it) {
  put_growing();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  grow_to("2Gi");
  driver->log.clear();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->log, IsEmpty()) << "it was looked at a moment ago";

  ASSERT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->log, ElementsAre(expanded("u1", "2147483648")));
  EXPECT_EQ(driver->last_expand.staging_target_path(), staging());
  EXPECT_EQ(driver->last_expand.volume_capability().mount().fs_type(), "ext4");
  EXPECT_EQ(claim_status(), from_text("{'capacity': {'storage': '2Gi'}, 'allocatedResources': "
                                      "{'storage': '2Gi'}, 'conditions': [{'type': 'Other', "
                                      "'status': 'True'}], 'phase': 'Bound'}"));
  const std::string text =
      "FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume \"pv\" node-0";
  EXPECT_THAT(events, ElementsAre("Pod " + text, "PersistentVolumeClaim " + text));

  ASSERT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.size(), 1U);
  grow_to("3Gi", "2Gi");
  ASSERT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.back(), expanded("u1", "3221225472"));
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
}

TEST_F(CsiVolumesTest, nobody_waits_for_a_volume_that_grows_but_its_end) {
  put_growing();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  grow_to("2Gi");
  driver->log.clear();
  sim.advance(std::chrono::seconds(11));

  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->log, IsEmpty());
  EXPECT_THAT(tear_down("u1"), HasSubstr("volume v is being enlarged"));
  sim.run_until_idle();

  EXPECT_THAT(driver->log, ElementsAre(expanded("u1", "2147483648")));
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
  // Nor is it in the way of the agent's end.
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  grow_to("3Gi", "2Gi");
  sim.advance(std::chrono::seconds(11));
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  volumes.reset();
  driver->log.clear();
  sim.run_until_idle();
  EXPECT_THAT(driver->log, IsEmpty());
  start();
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(CsiVolumesTest, a_volume_that_grew_meanwhile_grows_when_it_is_mounted) {
  put_growing();
  grow_to("2Gi");
  driver->refuse["expand"] = {rpc::Code::internal, "no luck"};
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.Setup failed while expanding volume for volume \"pv\" : "
            "Expander.NodeExpand failed to expand the volume : rpc error: code = Internal desc = "
            "no luck");
  driver->refuse.clear();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.back(), expanded("u1", "2147483648"));
  EXPECT_EQ(claim_status()["capacity"]["storage"].as_string(), "2Gi");
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(CsiVolumesTest, a_volume_that_cannot_grow_says_so_and_goes_on) {
  put_growing();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  grow_to("2Gi");
  driver->refuse["expand"] = {rpc::Code::unavailable, "away"};
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(claim_status()["allocatedResourceStatuses"]["storage"].as_string(),
            "NodeResizeInProgress");
  EXPECT_THAT(events, ElementsAre(HasSubstr("Pod! VolumeResizeFailed "
                                            "NodeExpandVolume.NodeExpandVolume failed for volume "
                                            "\"pv\" : Expander.NodeExpand failed")));
  // Later it knows that it never will: nobody asks again, until the user wants another size.
  driver->refuse["expand"] = {rpc::Code::out_of_range, "too large"};
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(claim_status()["allocatedResourceStatuses"]["storage"].as_string(),
            "NodeResizeInfeasible");
  EXPECT_EQ(claim_status()["conditions"][2]["type"].as_string(), "NodeResizeError");
  EXPECT_EQ(claim_status()["capacity"]["storage"].as_string(), "1Gi");
  driver->log.clear();
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_THAT(driver->log, IsEmpty());
  // One that is in use is done when it is mounted anew, and does not keep a pod from it.
  driver->refuse["expand"] = {rpc::Code::failed_precondition, "in use"};
  grow_to("2Gi");
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_EQ(driver->log.size(), 1U);
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(CsiVolumesTest, what_cannot_grow_is_not_asked_to) {
  put_growing();
  driver->abilities.pop_back();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  driver->abilities.push_back(FakeCsiDriver::Rpc::EXPAND_VOLUME);
  const Value reader =
      pod_of("u2", "'persistentVolumeClaim': {'claimName': 'data', 'readOnly': true}");
  ASSERT_THAT(set_up(reader), IsEmpty());
  grow_to("2Gi");
  driver->log.clear();
  EXPECT_THAT(look(claimer("u1")), IsEmpty());
  EXPECT_THAT(look(reader), IsEmpty());
  EXPECT_THAT(driver->log, IsEmpty());
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_EQ(tear_down("u2"), "");
}

TEST_F(CsiVolumesTest, a_volume_that_its_driver_does_not_know_any_more_is_gone) {
  put_settings("{'attachRequired': false, 'volumeLifecycleModes': ['Persistent']}");
  put_csi();
  register_driver();
  // As one that was taken back by an agent that died at once.
  const rpc::Status unknown{rpc::Code::not_found, "no such volume"};
  driver->refuse_after = {{"unpublish", unknown}, {"unstage", unknown}};
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
  if (!can_mount()) return;
  // The mount table counts, whatever a driver says.
  driver->refuse_after.clear();
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  driver->refuse["unpublish"] = unknown;
  EXPECT_THAT(tear_down("u1"), HasSubstr("is still mounted"));
  driver->refuse.clear();
  EXPECT_EQ(tear_down("u1"), "");
  expect_clean();
}

}  // namespace
}  // namespace dibs::node
