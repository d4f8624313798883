// Folders on nodes as volumes, from the claim to the removal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "controllers/test_cluster.h"
#include "controllers/volumes/local_path_objects.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LocalPath : public testing::Test {
 protected:
  LocalPath() {
    cluster.create(kStorageClasses, "",
                   "{'metadata': {'name': 'standard'}, 'provisioner': 'dibs.io/local-path', "
                   "'volumeBindingMode': 'WaitForFirstConsumer'}");
    add_node("n");
  }

  void add_node(const std::string& name) {
    cluster.create(kNodes, "",
                   cat("{'metadata': {'name': '", name, "', 'labels': {'kubernetes.io/hostname': '",
                       name, "'}}}"));
    cluster.settle();
  }
  /// As the scheduler leaves it.
  Value add_claim(const std::string& name, const std::string& node = "n",
                  const std::string& more = "") {
    cluster.create(
        kVolumeClaims, "default",
        cat("{'metadata': {'name': '", name, "', 'annotations': {'a': 'b'",
            node.empty() ? "" : cat(", 'volume.kubernetes.io/selected-node': '", node, "'"),
            "}}, 'spec': {'storageClassName': 'standard', 'resources': {'requests': {'storage': "
            "'1Gi'}}",
            more.find("accessModes") == more.npos ? ", 'accessModes': ['ReadWriteOnce']" : "", more,
            "}}"));
    cluster.settle();
    return cluster.get(kVolumeClaims, "default", name);
  }
  Value volume_of(const Value& claim) {
    return cluster.get(kVolumes, "", claim["spec"]["volumeName"].str());
  }
  Value removal(const Value& volume) {
    return cluster.get(kPods, "kube-system", removal_pod_name(volume));
  }
  void end_removal(const Value& volume, const std::string& phase) {
    cluster.patch(kPods, "kube-system", removal_pod_name(volume),
                  cat("{'status': {'phase': '", phase, "', 'message': 'no such luck'}}"), "status");
    cluster.settle();
  }

  test::TestCluster cluster;
};

TEST_F(LocalPath, gives_a_claim_a_folder_on_the_node_selected_for_it) {
  const Value claim = add_claim("a");

  const Value volume = volume_of(claim);
  EXPECT_EQ(claim["status"]["phase"].str(), "Bound");
  EXPECT_EQ(name_of(volume), cat("pvc-", uid_of(claim)));
  EXPECT_EQ(volume["spec"]["local"]["path"].str(),
            cat("/var/lib/kubelet/local-path/pvc-", uid_of(claim)));
  EXPECT_EQ(volume["spec"]["persistentVolumeReclaimPolicy"].str(), "Delete");
  EXPECT_EQ(volume["spec"]["capacity"]["storage"].str(), "1Gi");
  EXPECT_EQ(*host_of_folder(volume), "n");
  EXPECT_THAT(cluster.events("default", "a"),
              Contains(HasSubstr("Normal ProvisioningSucceeded Successfully provisioned volume")));
}

TEST_F(LocalPath, removes_the_folder_before_the_volume) {
  const Value volume = volume_of(add_claim("a"));
  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();

  const Value pod = removal(volume);
  EXPECT_EQ(pod["spec"]["nodeName"].str(), "n");
  EXPECT_EQ(pod["spec"]["containers"][0]["command"],
            Value::array({"rm", "-rf", cat("/folders/", name_of(volume))}));
  EXPECT_EQ(pod["spec"]["volumes"][0]["hostPath"]["path"].str(), "/var/lib/kubelet/local-path");

  end_removal(volume, "Succeeded");
  EXPECT_TRUE(cluster.get(kVolumes, "", std::string(name_of(volume))).is_null());
  EXPECT_TRUE(removal(volume).is_null());
}

TEST_F(LocalPath, removes_the_folder_once_whoever_else_holds_the_volume) {
  const Value volume = volume_of(add_claim("a"));
  const std::string name(name_of(volume));
  cluster.patch(kVolumes, "", name,
                "{'metadata': {'finalizers': ['dibs.io/local-path', 'kubernetes.io/pv-protection', "
                "'example.com/held']}}");
  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  end_removal(volume, "Succeeded");
  cluster.settle(std::chrono::seconds(20));

  const Value held = cluster.get(kVolumes, "", name);
  EXPECT_EQ(held["metadata"]["finalizers"], Value::array({"example.com/held"}));
  EXPECT_TRUE(removal(volume).is_null());

  cluster.patch(kVolumes, "", name, "{'metadata': {'finalizers': null}}");
  cluster.settle();
  EXPECT_TRUE(cluster.get(kVolumes, "", name).is_null());
  EXPECT_TRUE(removal(volume).is_null());
}

TEST_F(LocalPath, tries_again_when_the_folder_could_not_be_removed) {
  const Value volume = volume_of(add_claim("a"));
  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  const Value first = removal(volume);

  end_removal(volume, "Failed");
  cluster.settle(std::chrono::seconds(20));

  EXPECT_THAT(cluster.events("default", std::string(name_of(volume))),
              Contains(HasSubstr("Warning VolumeFailedDelete pod kube-system/remove-")));
  const Value second = removal(volume);
  EXPECT_FALSE(second.is_null());
  EXPECT_NE(second["metadata"]["uid"], first["metadata"]["uid"]);
  end_removal(volume, "Succeeded");
  EXPECT_TRUE(cluster.get(kVolumes, "", std::string(name_of(volume))).is_null());
}

TEST_F(LocalPath, waits_before_it_tries_a_node_again_that_did_not_take_the_pod) {
  const Value volume = volume_of(add_claim("a"));
  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  const auto refused = [&] {
    end_removal(volume, "Failed");  // without a status of its container
    return removal(volume)["metadata"]["uid"].str();
  };

  const std::string first = refused();
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(removal(volume)["metadata"]["uid"].str(), first);
  cluster.settle(std::chrono::seconds(12));
  const std::string second = refused();
  EXPECT_NE(second, first);
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(removal(volume)["metadata"]["uid"].str(), second);
  // A node that is short of room on its disk takes it.
  EXPECT_EQ(removal(volume)["spec"]["priority"].as_int(), 2'000'001'000);
}

TEST_F(LocalPath, removes_the_folder_of_a_volume_that_was_deleted_by_hand) {
  const Value volume = volume_of(add_claim("a"));
  cluster.remove(kVolumes, "", std::string(name_of(volume)));
  cluster.settle();
  EXPECT_TRUE(removal(volume).is_null()) << "it is in use";

  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  ASSERT_FALSE(removal(volume).is_null());
  end_removal(volume, "Succeeded");
  EXPECT_TRUE(cluster.get(kVolumes, "", std::string(name_of(volume))).is_null());
}

TEST_F(LocalPath, leaves_the_folder_of_a_volume_that_is_to_be_retained) {
  const Value volume = volume_of(add_claim("a"));
  const std::string name(name_of(volume));
  cluster.patch(kVolumes, "", name, "{'spec': {'persistentVolumeReclaimPolicy': 'Retain'}}");
  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  EXPECT_EQ(cluster.get(kVolumes, "", name)["status"]["phase"].str(), "Released");
  EXPECT_TRUE(removal(volume).is_null());

  cluster.remove(kVolumes, "", name);
  cluster.settle();
  EXPECT_TRUE(cluster.get(kVolumes, "", name).is_null());
  EXPECT_TRUE(removal(volume).is_null());
}

TEST_F(LocalPath, removes_no_other_folder_than_its_own) {
  cluster.create(kVolumes, "",
                 "{'metadata': {'name': 'pvc-evil', 'annotations': "
                 "{'pv.kubernetes.io/provisioned-by': 'dibs.io/local-path'}}, 'spec': {'capacity': "
                 "{'storage': '1Gi'}, 'accessModes': ['ReadWriteOnce'], 'local': {'path': '/etc'}, "
                 "'persistentVolumeReclaimPolicy': 'Delete', 'claimRef': {'namespace': 'default', "
                 "'name': 'x', 'uid': 'u'}, 'nodeAffinity': {'required': {'nodeSelectorTerms': "
                 "[{'matchExpressions': [{'key': 'kubernetes.io/hostname', 'operator': 'In', "
                 "'values': ['n']}]}]}}}}");
  cluster.settle();

  EXPECT_THAT(cluster.names(kPods, "kube-system"), IsEmpty());
  EXPECT_EQ(cluster.get(kVolumes, "", "pvc-evil")["status"]["phase"].str(), "Failed");
  EXPECT_THAT(cluster.events("default", "pvc-evil"),
              Contains(HasSubstr("Warning VolumeFailedDelete spec.local.path is not "
                                 "/var/lib/kubelet/local-path/pvc-evil")));
}

TEST_F(LocalPath, waits_for_a_node_that_is_away) {
  const Value volume = volume_of(add_claim("a"));
  cluster.remove(kNodes, "", "n");
  cluster.settle();
  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  EXPECT_TRUE(removal(volume).is_null());
  EXPECT_THAT(cluster.events("default", std::string(name_of(volume))),
              Contains(HasSubstr("kubernetes.io/hostname=n is not there")));

  add_node("n");
  EXPECT_FALSE(removal(volume).is_null());
}

TEST_F(LocalPath, lets_the_scheduler_choose_again_when_the_node_is_gone) {
  const Value claim = add_claim("a", "elsewhere");

  EXPECT_TRUE(api::annotation_of(claim, api::kSelectedNode).is_null());
  EXPECT_THAT(cluster.events("default", "a"),
              Contains("Warning ProvisioningFailed Failed to get target node: node \"elsewhere\" "
                       "not found"));
}

TEST_F(LocalPath, serves_no_class_but_its_own) {
  cluster.create(kStorageClasses, "",
                 "{'metadata': {'name': 'fast'}, 'provisioner': 'fast.example.com', "
                 "'volumeBindingMode': 'WaitForFirstConsumer'}");
  cluster.create(
      kVolumeClaims, "default",
      "{'metadata': {'name': 'sly', 'annotations': {"
      "'volume.kubernetes.io/storage-provisioner': 'dibs.io/local-path', "
      "'volume.kubernetes.io/selected-node': 'n'}}, 'spec': {'storageClassName': 'fast', "
      "'accessModes': ['ReadWriteOnce'], 'resources': {'requests': {'storage': '1Gi'}}}}");
  cluster.settle();

  EXPECT_THAT(cluster.names(kVolumes, ""), IsEmpty());
}

TEST_F(LocalPath, refuses_what_a_folder_cannot_be) {
  add_claim("many", "n", ", 'accessModes': ['ReadWriteMany']");
  add_claim("raw", "n", ", 'volumeMode': 'Block'");

  EXPECT_THAT(cluster.events("default", "many"),
              Contains(HasSubstr("Warning ProvisioningFailed failed to provision volume with "
                                 "StorageClass \"standard\": accessModes: ReadWriteMany")));
  EXPECT_THAT(cluster.events("default", "raw"), Contains(HasSubstr("volumeMode: Block")));
  EXPECT_THAT(cluster.names(kVolumes, ""), IsEmpty());
}

}  // namespace
}  // namespace dibs::controllers
