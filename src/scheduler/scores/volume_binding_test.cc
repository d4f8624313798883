#include "scheduler/scores/test_scores.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;

constexpr const char* kScore = "VolumeBinding";

/// Nodes "large" and "small", with storage of a class that waits for its consumer.
class VolumeBindingScore : public testing::Test {
 protected:
  VolumeBindingScore() {
    for (const char* name : {"large", "small"}) {
      world.add_node(name, cat("'kubernetes.io/hostname':'", name, "'"));
    }
    volumes().put_class(
        from_short("{'metadata':{'name':'fast'},'provisioner':'d','volumeBindingMode':"
                   "'WaitForFirstConsumer'}"));
    volumes().put_other(
        from_short("{'kind':'CSIDriver','metadata':{'name':'d'},'spec':{'storageCapacity':true}}"));
    add_capacity("large", "100Gi");
    add_capacity("small", "20Gi");
  }

  Volumes& volumes() { return world.state.volumes(); }
  void add_capacity(const std::string& node, const std::string& size) {
    volumes().put_other(from_short(
        cat("{'kind':'CSIStorageCapacity','metadata':{'name':'", node,
            "','namespace':'kube-system'},'storageClassName':'fast','capacity':'", size,
            "','nodeTopology':{'matchLabels':{'kubernetes.io/hostname':'", node, "'}}}")));
  }
  void add_claim(const std::string& name, const std::string& size) {
    volumes().put_claim(from_short(
        cat("{'metadata':{'name':'", name, "','namespace':'ns','uid':'", name,
            "'},'spec':{'storageClassName':'fast','accessModes':['ReadWriteOnce'],'resources':{"
            "'requests':{'storage':'",
            size, "'}}}}")));
  }
  void add_volume(const std::string& node, const std::string& size) {
    volumes().put_volume(from_short(
        cat("{'metadata':{'name':'pv-", node,
            "'},'spec':{'storageClassName':'fast','accessModes':['ReadWriteOnce'],'capacity':{"
            "'storage':'",
            size,
            "'},'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
            "'kubernetes.io/hostname','operator':'In','values':['",
            node, "']}]}]}}},'status':{'phase':'Available'}}")));
  }
  std::vector<std::int64_t> score(const std::vector<std::string>& claims) {
    std::string list;
    for (const std::string& claim : claims) {
      append(list, list.empty() ? "" : ",", "{'name':'", claim,
             "','persistentVolumeClaim':{'claimName':'", claim, "'}}");
    }
    return world.score(kScore,
                       world.pod("p", cat("'containers':[{'name':'c'}],'volumes':[", list, "]")));
  }

  ScoreWorld world;
};

TEST_F(VolumeBindingScore, prefers_where_more_of_the_storage_would_be_left) {
  add_claim("one", "10Gi");
  EXPECT_THAT(score({"one"}), ElementsAre(90, 50));
  EXPECT_THAT(score({}), ElementsAre(0, 0));
}

TEST_F(VolumeBindingScore, adds_up_what_claims_of_a_class_take_of_it) {
  add_claim("one", "10Gi");
  add_claim("two", "10Gi");
  EXPECT_THAT(score({"one", "two"}), ElementsAre(80, 0));
}

TEST_F(VolumeBindingScore, goes_by_the_volumes_that_are_there) {
  add_claim("one", "10Gi");
  add_volume("large", "40Gi");
  add_volume("small", "10Gi");
  EXPECT_THAT(score({"one"}), ElementsAre(75, 0));
}

TEST_F(VolumeBindingScore, draws_as_the_profile_says_or_not_at_all) {
  add_claim("one", "10Gi");
  world.profile.volume_shape = {{0, 0}, {100, 100}};
  EXPECT_THAT(score({"one"}), ElementsAre(10, 50));
  world.profile.volume_shape = {};
  EXPECT_THAT(score({"one"}), ElementsAre(0, 0));
}

}  // namespace
}  // namespace dibs::scheduler::test
