// Which volume a claim gets, and what becomes of both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "controllers/test_cluster.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Binder : public testing::Test {
 protected:
  Value add_volume(const std::string& name, const std::string& size, const std::string& spec = "",
                   const std::string& metadata = "") {
    return cluster.create(
        kVolumes, "",
        cat("{'metadata': {'name': '", name, "'", metadata, "}, 'spec': {'capacity': {'storage': '",
            size, "'}, ",
            spec.find("accessModes") == spec.npos ? "'accessModes': ['ReadWriteOnce'], " : "",
            "'hostPath': {'path': '/x'}", spec, "}}"));
  }
  Value add_claim(const std::string& name, const std::string& size, const std::string& spec = "",
                  const std::string& metadata = "") {
    return cluster.create(
        kVolumeClaims, "default",
        cat("{'metadata': {'name': '", name, "'", metadata, "}, 'spec': {",
            spec.find("accessModes") == spec.npos ? "'accessModes': ['ReadWriteOnce'], " : "",
            "'resources': {'requests': {'storage': '", size, "'}}", spec, "}}"));
  }
  void add_class(const std::string& name, const std::string& more = "",
                 const std::string& metadata = "") {
    cluster.create(kStorageClasses, "",
                   cat("{'metadata': {'name': '", name, "'", metadata,
                       "}, 'provisioner': 'made.example.com'", more, "}"));
  }
  Value claim(const std::string& name) { return cluster.get(kVolumeClaims, "default", name); }
  Value volume(const std::string& name) { return cluster.get(kVolumes, "", name); }
  /// "Bound v"; "Pending ".
  std::string state(const std::string& name) {
    const Value found = claim(name);
    return cat(found["status"]["phase"].as_string(), ' ', found["spec"]["volumeName"].as_string());
  }
  /// "Bound a"; "Available ".
  std::string volume_state(const std::string& name) {
    const Value found = volume(name);
    return cat(found["status"]["phase"].as_string(), ' ',
               found["spec"]["claimRef"]["name"].as_string());
  }
  std::vector<std::string> told(const std::string& name) { return cluster.events("default", name); }

  test::TestCluster cluster;
};

TEST_F(Binder, takes_the_smallest_volume_that_fits) {
  for (const auto& [name, size] : std::map<std::string, std::string>{
           {"big", "100Gi"}, {"fit", "5Gi"}, {"large", "10Gi"}, {"tiny", "1Gi"}})
    add_volume(name, size);
  cluster.settle();

  add_claim("a", "2Gi");
  cluster.settle();

  const Value bound = claim("a");
  EXPECT_EQ(state("a"), "Bound fit");
  EXPECT_EQ(bound["status"]["capacity"]["storage"].str(), "5Gi");
  EXPECT_EQ(bound["status"]["accessModes"][0].str(), "ReadWriteOnce");
  EXPECT_EQ(api::annotation_of(bound, api::kBindCompleted).str(), "yes");
  EXPECT_EQ(api::annotation_of(bound, api::kBoundByController).str(), "yes");
  EXPECT_EQ(volume_state("fit"), "Bound a");
  EXPECT_EQ(volume("fit")["spec"]["claimRef"]["uid"], bound["metadata"]["uid"]);
  EXPECT_EQ(api::annotation_of(volume("fit"), api::kBoundByController).str(), "yes");
  EXPECT_EQ(volume_state("tiny"), "Available ");
}

TEST_F(Binder, binds_a_claim_to_a_volume_that_comes_later) {
  add_claim("a", "2Gi");
  cluster.settle();
  EXPECT_EQ(state("a"), "Pending ");
  EXPECT_THAT(told("a"), ElementsAre("Normal FailedBinding no persistent volumes available for "
                                     "this claim and no storage class is set"));

  add_volume("v", "2Gi");
  cluster.settle();

  EXPECT_EQ(state("a"), "Bound v");
}

TEST_F(Binder, gives_every_claim_of_a_crowd_a_volume_of_its_own) {
  for (int i = 0; i < 20; ++i) add_volume(cat("v", i), "1Gi");
  for (int i = 0; i < 20; ++i) add_claim(cat("a", i), "1Gi");
  cluster.settle(std::chrono::seconds(5));

  std::set<std::string> used;
  for (int i = 0; i < 20; ++i) {
    const Value bound = claim(cat("a", i));
    EXPECT_EQ(bound["status"]["phase"].str(), "Bound");
    used.insert(bound["spec"]["volumeName"].str());
  }
  EXPECT_EQ(used.size(), 20U);
}

TEST_F(Binder, prefers_volumes_with_no_more_modes_than_asked_for) {
  add_volume("both", "1Gi", ", 'accessModes': ['ReadWriteOnce', 'ReadOnlyMany']");
  add_volume("plain", "5Gi");
  cluster.settle();

  add_claim("a", "1Gi");
  add_claim("b", "1Gi", ", 'accessModes': ['ReadOnlyMany']");
  add_claim("c", "1Gi", ", 'accessModes': ['ReadWriteMany']");
  cluster.settle();

  EXPECT_EQ(state("a"), "Bound plain");
  EXPECT_EQ(state("b"), "Bound both");
  EXPECT_EQ(state("c"), "Pending ");
}

TEST_F(Binder, minds_class_selector_and_mode) {
  add_class("fast", ", 'volumeBindingMode': 'Immediate'");
  add_volume("other", "1Gi", ", 'storageClassName': 'slow'");
  add_volume("block", "1Gi", ", 'storageClassName': 'fast', 'volumeMode': 'Block'");
  add_volume("plain", "1Gi", ", 'storageClassName': 'fast'");
  add_volume("gold", "9Gi", ", 'storageClassName': 'fast'", ", 'labels': {'tier': 'gold'}");
  cluster.settle();

  add_claim("golden", "1Gi",
            ", 'storageClassName': 'fast', 'selector': {'matchLabels': {'tier': 'gold'}}");
  add_claim("raw", "1Gi", ", 'storageClassName': 'fast', 'volumeMode': 'Block'");
  add_claim("any", "1Gi", ", 'storageClassName': 'fast'");
  add_claim("none", "1Gi", ", 'storageClassName': ''");
  cluster.settle();

  EXPECT_EQ(state("golden"), "Bound gold");
  EXPECT_EQ(state("raw"), "Bound block");
  EXPECT_EQ(state("any"), "Bound plain");
  EXPECT_EQ(state("none"), "Pending ");
}

TEST_F(Binder, honours_a_volume_that_is_reserved_for_a_claim) {
  add_volume("small", "1Gi");
  add_volume("mine", "50Gi", ", 'claimRef': {'namespace': 'default', 'name': 'a'}");
  cluster.settle();
  EXPECT_EQ(volume_state("mine"), "Available a");

  add_claim("b", "20Gi");
  add_claim("a", "1Gi");
  cluster.settle();

  EXPECT_EQ(state("a"), "Bound mine");
  EXPECT_EQ(state("b"), "Pending ");
  EXPECT_TRUE(api::annotation_of(volume("mine"), api::kBoundByController).is_null());
}

TEST_F(Binder, honours_a_claim_that_names_its_volume) {
  add_volume("small", "1Gi");
  add_volume("named", "50Gi");
  cluster.settle();

  add_claim("a", "1Gi", ", 'volumeName': 'named'");
  add_claim("b", "1Gi", ", 'volumeName': 'named'");
  add_claim("c", "5Gi", ", 'volumeName': 'small'");
  add_claim("d", "1Gi", ", 'volumeName': 'nowhere'");
  cluster.settle();

  EXPECT_EQ(state("a"), "Bound named");
  EXPECT_TRUE(api::annotation_of(claim("a"), api::kBoundByController).is_null());
  EXPECT_EQ(state("b"), "Pending named");
  EXPECT_THAT(told("b"), ElementsAre("Warning FailedBinding volume \"named\" already bound to a "
                                     "different claim."));
  EXPECT_EQ(state("c"), "Pending small");
  EXPECT_THAT(told("c"), ElementsAre("Warning VolumeMismatch Cannot bind to requested volume "
                                     "\"small\": requested PV is too small"));
  EXPECT_EQ(state("d"), "Pending nowhere");
}

TEST_F(Binder, waits_for_the_first_consumer_and_says_so) {
  add_class("local", ", 'volumeBindingMode': 'WaitForFirstConsumer'");
  add_volume("v", "1Gi", ", 'storageClassName': 'local'");
  cluster.settle();
  add_claim("a", "1Gi", ", 'storageClassName': 'local'");
  cluster.settle();
  EXPECT_EQ(state("a"), "Pending ");
  EXPECT_THAT(told("a"), ElementsAre("Normal WaitForFirstConsumer waiting for first consumer to "
                                     "be created before binding"));

  cluster.create(kPods, "default",
                 "{'metadata': {'name': 'p'}, 'spec': {'volumes': [{'name': 'v', "
                 "'persistentVolumeClaim': {'claimName': 'a'}}], 'containers': [{'name': 'm', "
                 "'image': 'x'}]}}");
  cluster.settle();

  EXPECT_THAT(told("a"), Contains("Normal WaitForPodScheduled waiting for pod p to be scheduled"));
}

TEST_F(Binder, asks_the_provisioner_of_the_class) {
  add_class("made", ", 'volumeBindingMode': 'Immediate'");
  add_class("local", ", 'volumeBindingMode': 'WaitForFirstConsumer'");
  add_claim("a", "1Gi", ", 'storageClassName': 'made'");
  add_claim("b", "1Gi", ", 'storageClassName': 'nowhere'");
  add_claim("c", "1Gi", ", 'storageClassName': 'local'");
  cluster.settle();

  EXPECT_EQ(api::annotation_of(claim("a"), api::kStorageProvisioner).str(), "made.example.com");
  EXPECT_EQ(api::annotation_of(claim("a"), api::kBetaStorageProvisioner).str(), "made.example.com");
  EXPECT_THAT(told("a"), ElementsAre(HasSubstr("Normal ExternalProvisioning Waiting for a volume "
                                               "to be created either by the external provisioner "
                                               "'made.example.com'")));
  EXPECT_THAT(told("b"), ElementsAre("Warning ProvisioningFailed storageclass.storage.k8s.io "
                                     "\"nowhere\" not found"));
  EXPECT_TRUE(api::annotation_of(claim("c"), api::kStorageProvisioner).is_null());

  cluster.patch(kVolumeClaims, "default", "c",
                "{'metadata': {'annotations': {'volume.kubernetes.io/selected-node': 'n'}}}");
  cluster.settle();
  EXPECT_EQ(api::annotation_of(claim("c"), api::kStorageProvisioner).str(), "made.example.com");

  // What a provisioner answers with.
  add_volume("pvc-a", "1Gi",
             cat(", 'storageClassName': 'made', 'persistentVolumeReclaimPolicy': 'Delete', "
                 "'claimRef': {'namespace': 'default', 'name': 'a', 'uid': '",
                 uid_of(claim("a")), "'}"),
             ", 'annotations': {'pv.kubernetes.io/provisioned-by': 'made.example.com'}");
  cluster.settle();
  EXPECT_EQ(state("a"), "Bound pvc-a");

  // It is the provisioner's to remove.
  cluster.remove(kVolumeClaims, "default", "a");
  cluster.settle();
  EXPECT_EQ(volume_state("pvc-a"), "Released a");
}

TEST_F(Binder, gives_the_default_class_to_claims_that_came_before_it) {
  add_claim("a", "1Gi");
  add_claim("none", "1Gi", ", 'storageClassName': ''");
  cluster.settle();

  add_class("standard", "",
            ", 'annotations': {'storageclass.kubernetes.io/is-default-class': 'true'}");
  cluster.settle();

  EXPECT_EQ(claim("a")["spec"]["storageClassName"].str(), "standard");
  EXPECT_EQ(claim("none")["spec"]["storageClassName"].str(), "");
}

TEST_F(Binder, releases_volumes_by_their_policy) {
  for (const char* policy : {"Retain", "Delete", "Recycle"}) {
    std::string name = policy;
    name[0] = static_cast<char>(name[0] + 32);
    add_volume(name, "1Gi",
               cat(", 'persistentVolumeReclaimPolicy': '", policy,
                   "', 'claimRef': {'namespace': 'default', 'name': 'of-", name, "'}"));
    add_claim(cat("of-", name), "1Gi");
  }
  cluster.settle(std::chrono::seconds(2));
  for (const char* name : {"retain", "delete", "recycle"}) {
    ASSERT_EQ(volume_state(name), cat("Bound of-", name));
    cluster.remove(kVolumeClaims, "default", cat("of-", name));
  }
  cluster.settle(std::chrono::seconds(2));

  EXPECT_EQ(volume_state("retain"), "Released of-retain");
  EXPECT_EQ(volume_state("delete"), "Failed of-delete");
  EXPECT_THAT(told("delete"),
              ElementsAre("Warning VolumeFailedDelete error getting deleter volume plugin for "
                          "volume \"delete\": no deletable volume plugin matched"));
  EXPECT_EQ(volume_state("recycle"), "Failed of-recycle");
  EXPECT_THAT(told("recycle"), ElementsAre("Warning VolumeFailedRecycle No recycler plugin found "
                                           "for the volume!"));

  // A new claim of the old name is another one.
  add_claim("of-retain", "1Gi");
  cluster.settle();
  EXPECT_EQ(state("of-retain"), "Pending ");

  // An administrator gives the volume free.
  cluster.patch(kVolumes, "", "retain", "{'spec': {'claimRef': null}}");
  cluster.settle();
  EXPECT_EQ(state("of-retain"), "Bound retain");
}

TEST_F(Binder, says_that_a_claim_has_lost_its_volume) {
  add_volume("v", "1Gi");
  cluster.settle();
  add_claim("a", "1Gi");
  cluster.settle();
  ASSERT_EQ(state("a"), "Bound v");

  cluster.remove(kVolumes, "", "v");
  cluster.patch(kVolumes, "", "v", "{'metadata': {'finalizers': null}}");
  cluster.settle();

  EXPECT_EQ(state("a"), "Lost v");
  EXPECT_THAT(told("a"), Contains("Warning ClaimLost Bound claim has lost its PersistentVolume. "
                                  "Data on the volume is lost!"));
}

TEST_F(Binder, does_not_bind_what_is_being_deleted) {
  add_volume("v", "1Gi", "", ", 'finalizers': ['example.com/keep']");
  cluster.settle();
  cluster.remove(kVolumes, "", "v");
  cluster.settle();

  add_claim("a", "1Gi");
  cluster.settle();

  EXPECT_EQ(state("a"), "Pending ");
}

}  // namespace
}  // namespace dibs::controllers
