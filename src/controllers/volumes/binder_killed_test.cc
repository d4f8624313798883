// The controllers of volumes are killed at each of their writes, once before and once after the
// write has arrived; the next ones end in the same state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cluster/test_cluster.h"
#include "controllers/controllers.h"
#include "controllers/test_killed.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

using testing::ElementsAre;

class Story : public cluster::test::TestCluster {
 public:
  Story(int writes, bool arrives) {
    way_ = std::make_unique<test::Killed>(*transport_, sim.runtime(), writes, arrives);
    begin(*way_);
  }
  ~Story() {
    controllers_.reset();
    close();
  }

  bool was_killed() const { return way_->dead(); }

  void tell() {
    add_volume("small", "1Gi", "");
    add_volume("large", "5Gi", "");
    add_volume("mine", "9Gi", ", 'claimRef': {'namespace': 'default', 'name': 'c'}");
    step();
    for (const auto& [name, size] :
         std::map<std::string, std::string>{{"a", "1Gi"}, {"b", "3Gi"}, {"c", "1Gi"}}) {
      create(kVolumeClaims, "default",
             cat("{'metadata': {'name': '", name,
                 "'}, 'spec': {'accessModes': ['ReadWriteOnce'], 'resources': {'requests': "
                 "{'storage': '",
                 size, "'}}}}"));
    }
    step();
    ASSERT_THAT(claims(), ElementsAre("a Bound small", "b Bound large", "c Bound mine"));
    remove(kVolumeClaims, "default", "a");
    remove(kVolumes, "", "large");
    step();
    step();
  }

  std::vector<std::string> claims() {
    std::vector<std::string> out;
    for (const Value& claim : list(kVolumeClaims, "default"))
      out.push_back(cat(name_of(claim), ' ', claim["status"]["phase"].as_string(), ' ',
                        claim["spec"]["volumeName"].as_string()));
    return out;
  }
  std::vector<std::string> volumes() {
    std::vector<std::string> out;
    for (const Value& volume : list(kVolumes, ""))
      out.push_back(cat(name_of(volume), ' ', volume["status"]["phase"].as_string(), ' ',
                        volume["spec"]["claimRef"]["name"].as_string()));
    return out;
  }

 private:
  void begin(client::Transport& way) {
    client_ = std::make_unique<client::Client>(way);
    ControllersOptions options;
    options.only = {"persistent-volume-binder", "pvc-protection-controller",
                    "pv-protection-controller"};
    controllers_ = std::make_unique<Controllers>(*client_, sim.runtime(), options);
    controllers_->start();
    sim.advance(std::chrono::seconds(1));
  }

  /// Time passes; the dead are followed by the next.
  void step() {
    sim.advance(std::chrono::seconds(5));
    if (!way_->dead() || replaced_) return;
    replaced_ = true;
    controllers_.reset();
    begin(*transport_);
    sim.advance(std::chrono::seconds(5));
  }

  void add_volume(const std::string& name, const std::string& size, const std::string& more) {
    create(kVolumes, "",
           cat("{'metadata': {'name': '", name, "'}, 'spec': {'capacity': {'storage': '", size,
               "'}, 'accessModes': ['ReadWriteOnce'], 'hostPath': {'path': '/x'}", more, "}}"));
  }

  bool replaced_ = false;
  std::unique_ptr<test::Killed> way_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<Controllers> controllers_;
};

/// More than there are.
constexpr int kWrites = 24;

class BinderKilled : public testing::TestWithParam<int> {};

TEST_P(BinderKilled, leaves_nothing_undone_to_the_next) {
  for (const bool arrives : {false, true}) {
    Story story(GetParam(), arrives);
    story.tell();
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_THAT(story.claims(), ElementsAre("b Bound large", "c Bound mine")) << arrives;
    EXPECT_THAT(story.volumes(), ElementsAre("large Bound b", "mine Bound c", "small Released a"))
        << arrives;
    EXPECT_TRUE(GetParam() < kWrites || !story.was_killed());
  }
}

INSTANTIATE_TEST_SUITE_P(AtEachWrite, BinderKilled, testing::Range(0, kWrites + 1));

}  // namespace
}  // namespace dibs::controllers
