#include "node/pods/volume_persistent.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/pods/persistent_volumes_for_test.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;
using test::from_text;
using test::TemporaryFolder;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(PersistentVolumesTest, a_claim_must_be_bound_and_to_this_volume) {
  const auto failure = [](const std::string& why) {
    return "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], "
           "failed to process volumes=[v]: " +
           why;
  };
  EXPECT_THAT(error(claimer("u1")), HasSubstr("error processing PVC ns/data: failed to fetch PVC "
                                              "from API server: "));
  put_claim("data", "pv", "Pending");
  EXPECT_EQ(error(claimer("u1")), failure("error processing PVC ns/data: PVC is not bound"));
  put_claim("data", "pv", "Bound", ", 'deletionTimestamp': '2026-01-01T00:00:00Z'");
  EXPECT_EQ(error(claimer("u1")), failure("error processing PVC ns/data: PVC is being deleted"));
  put_claim("data", "");
  EXPECT_EQ(error(claimer("u1")),
            failure("error processing PVC ns/data: PVC has empty pvc.Spec.VolumeName"));
  put_claim("data", "pv");
  put_volume("pv", "other", "'hostPath': {'path': '/tmp'}");
  EXPECT_EQ(error(claimer("u1")),
            failure("error processing PVC ns/data: found PV object pv but its "
                    "pv.Spec.ClaimRef.UID uid-other does not point to claim.UID uid-data"));
  put_volume("pv", "data", "'volumeMode': 'Block', 'hostPath': {'path': '/tmp'}");
  EXPECT_EQ(error(claimer("u1")),
            failure("volume v has volumeMode Block, but is specified in volumeMounts"));
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, the_claim_of_an_ephemeral_volume_is_the_pod_s_own) {
  put_claim("p-u1-v", "pv");
  put_volume("pv", "p-u1-v", "'hostPath': {'path': '" + data.path() + "'}");
  const Value pod = pod_of("u1", "'ephemeral': {'volumeClaimTemplate': {}}");
  EXPECT_THAT(error(pod), HasSubstr("PVC ns/p-u1-v was not created for pod ns/p-u1 (pod is not "
                                    "owner)"));
  put_claim("p-u1-v", "pv", "Bound", ", 'ownerReferences': [{'uid': 'u1', 'controller': true}]");
  EXPECT_THAT(set_up(pod), IsEmpty());
}

TEST_F(PersistentVolumesTest, a_path_of_the_host_is_used_as_it_is) {
  const std::string path = data.path() + "/new";
  put_claim("data", "pv");
  put_volume("pv", "data", "'hostPath': {'path': '" + path + "', 'type': 'Directory'}");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.SetUp failed for volume \"pv\" : hostPath type "
            "check failed: " +
                path + " is not a directory");
  put_volume("pv", "data", "'hostPath': {'path': '" + path + "', 'type': 'DirectoryOrCreate'}");
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(mounts(claimer("u1"))[0].host_path, path);
  ASSERT_TRUE(write_file(path + "/kept", "1", 0600).ok());
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_TRUE(fs::exists(path + "/kept"));
  EXPECT_FALSE(fs::exists(root.path() + "/pods/u1"));
}

TEST_F(PersistentVolumesTest, types_that_are_not_there_are_refused_by_name) {
  put_claim("data", "pv");
  put_volume("pv", "data", "'capacity': {'storage': '1Gi'}, 'nfs': {'server': 'x', 'path': '/'}");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.SetUp failed for volume \"pv\" : persistent volumes "
            "of type nfs are not supported by this node");
}

TEST_F(PersistentVolumesTest, a_volume_of_other_nodes_is_not_mounted) {
  put_claim("data", "pv");
  const std::string affinity =
      "'nodeAffinity': {'required': {'nodeSelectorTerms': [{'matchExpressions': [{'key': 'zone', "
      "'operator': 'In', 'values': ['ZONE']}]}]}}, 'local': {'path': '/no/such'}";
  const auto in = [&](const std::string& zone) {
    std::string spec = affinity;
    spec.replace(spec.find("ZONE"), 4, zone);
    put_volume("pv", "data", spec);
  };
  in("b");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.NodeAffinity check failed for volume \"pv\" : no "
            "matching NodeSelectorTerms");
  in("a");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.NewMounter initialization failed for volume \"pv\" "
            ": path \"/no/such\" does not exist");
}

TEST_F(PersistentVolumesTest, a_local_folder_is_mounted_given_to_the_group_and_kept) {
  if (!can_mount()) GTEST_SKIP() << "needs root to mount";
  put_claim("data", "pv");
  ASSERT_TRUE(write_file(data.path() + "/file", "1", 0600).ok());
  put_volume("pv", "data", "'mountOptions': ['noexec'], 'local': {'path': '" + data.path() + "'}");
  const Value pod = claimer("u1", "'securityContext': {'fsGroup': 2000}, ");
  ASSERT_THAT(set_up(pod), IsEmpty());
  const std::string at = root.path() + "/pods/u1/volumes/kubernetes.io~local-volume/pv";
  EXPECT_EQ(mounts(pod)[0].host_path, at);
  EXPECT_TRUE(is_in_mount_table(at));
  struct stat info {};
  ASSERT_EQ(::stat((at + "/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 2000U);
  EXPECT_EQ(info.st_mode & 0777U, 0660U);

  // A new agent finds it, and its end takes it down, without a word about what is in it.
  start();
  EXPECT_THAT(set_up(pod), IsEmpty());
  EXPECT_EQ(mounts_below(root.path()).size(), 1U);
  start();
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(mounts_below(root.path()), IsEmpty());
  EXPECT_TRUE(fs::exists(data.path() + "/file"));
}

TEST_F(PersistentVolumesTest, a_provisioned_folder_is_made_in_the_folder_of_the_node) {
  if (!can_mount()) GTEST_SKIP() << "needs root to mount";
  facts.places = node_places(root.path(), root.path() + "/logs");
  put_claim("data", "pv");
  put_volume("pv", "data", "'local': {'path': '/var/lib/kubelet/local-path/pv'}");
  EXPECT_THAT(error(claimer("u1")), HasSubstr("does not exist"));
  Value volume = *api.get("/api/v1/persistentvolumes/pv");
  volume.mut("metadata")
      .set("annotations", from_text("{'pv.kubernetes.io/provisioned-by': 'dibs.io/local-path'}"));
  api.put("/api/v1/persistentvolumes/pv", volume);
  ASSERT_THAT(set_up(claimer("u1")), IsEmpty());
  struct stat info {};
  ASSERT_EQ(::stat((root.path() + "/local-path/pv").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0777U);
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_TRUE(fs::exists(root.path() + "/local-path/pv"));
}

TEST_F(PersistentVolumesTest, wrong_options_leave_nothing_mounted) {
  if (!can_mount()) GTEST_SKIP() << "needs root to mount";
  put_claim("data", "pv");
  put_volume("pv", "data", "'mountOptions': ['hard'], 'local': {'path': '" + data.path() + "'}");
  EXPECT_EQ(error(claimer("u1")),
            "MountVolume.SetUp failed for volume \"pv\" : mount option "
            "\"hard\" is not known to bind mounts");
  EXPECT_THAT(mounts_below(root.path()), IsEmpty());
  EXPECT_EQ(tear_down("u1"), "");
}

TEST_F(PersistentVolumesTest, what_is_still_mounted_is_never_emptied) {
  if (!can_mount()) GTEST_SKIP() << "needs root to mount";
  // A mount that came while the pod's folder was being removed: as of a driver that answers late.
  const std::string at = root.path() + "/pods/u1/volumes/kubernetes.io~local-volume/pv";
  ASSERT_TRUE(make_folder(at, 0750).ok());
  ASSERT_TRUE(write_file(data.path() + "/file", "1", 0600).ok());
  ASSERT_TRUE(write_file(at + "/file-under-it", "1", 0600).ok());
  EXPECT_THAT(tear_down("u1"), HasSubstr("rmdir"));
  EXPECT_TRUE(fs::exists(at + "/file-under-it"));
}

TEST_F(PersistentVolumesTest, read_write_once_pod_is_for_one_pod) {
  put_claim("data", "pv");
  put_volume("pv", "data",
             "'accessModes': ['ReadWriteOncePod'], 'hostPath': {'path': '" + data.path() + "'}");
  EXPECT_THAT(set_up(claimer("u1")), IsEmpty());
  EXPECT_EQ(error(claimer("u2")),
            "MountVolume.SetUp failed for volume \"pv\" : volume uses the ReadWriteOncePod access "
            "mode and is already in use by another pod");
  EXPECT_EQ(tear_down("u1"), "");
  EXPECT_THAT(set_up(claimer("u2")), IsEmpty());
}

TEST_F(PersistentVolumesTest, a_block_volume_must_be_a_device) {
  put_claim("data", "pv");
  put_volume("pv", "data", "'volumeMode': 'Block', 'local': {'path': '" + data.path() + "'}");
  const Value pod = pod_of("u1", "'persistentVolumeClaim': {'claimName': 'data'}", "",
                           "'volumeDevices': [{'name': 'v', 'devicePath': '/dev/x'}]");
  EXPECT_EQ(error(pod), "MapVolume.SetUpDevice failed for volume \"pv\" : path \"" + data.path() +
                            "\" is not a block device");
  EXPECT_FALSE(volumes->devices(pod, pod["spec"]["containers"][0]).ok());
}

TEST(GiveToGroup, does_not_follow_links) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryFolder volume;
  const TemporaryFolder outside;
  ASSERT_TRUE(write_file(outside.path() + "/shadow", "x", 0600).ok());
  ASSERT_TRUE(make_folder(volume.path() + "/deep", 0700).ok());
  fs::create_symlink(outside.path() + "/shadow", volume.path() + "/link");
  fs::create_symlink(outside.path(), volume.path() + "/deep/folder");
  ASSERT_TRUE(give_to_group(volume.path(), 2000, false).ok());
  struct stat info {};
  ASSERT_EQ(::stat((outside.path() + "/shadow").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 0U);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat((volume.path() + "/deep").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 2000U);
  EXPECT_EQ(info.st_mode & 07777U, 02770U);
  EXPECT_TRUE(is_given_to_group(volume.path() + "/deep", 2000));
  EXPECT_FALSE(is_given_to_group(outside.path(), 2000));
}

}  // namespace
}  // namespace dibs::node
