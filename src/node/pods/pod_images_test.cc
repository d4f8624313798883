#include "node/pods/pod_images.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "node/pods/pod_test_node.h"
#include "node/pods/volume_test_support.h"

namespace dibs::node::test {
namespace {

using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(PodImages, say_why_an_image_is_missing) {
  TestNode node;
  node.machine.pull_errors.emplace("far:1", Error::internal("no way there"));

  node.create("pull", "'containers': [{'name': 'c', 'image': 'far:1'}]");
  node.create("never",
              "'containers': [{'name': 'c', 'image': 'absent:2', "
              "'imagePullPolicy': 'Never'}]");
  node.create("invalid", "'containers': [{'name': 'c', 'image': 'Not A Name'}]");
  node.create("mixed",
              "'containers': [{'name': 'good'}, {'name': 'lost', 'image': 'absent:3',"
              " 'imagePullPolicy': 'Never'}]");
  node.create("fresh", "'containers': [{'name': 'c', 'image': 'near:1'}]");
  node.settle();

  EXPECT_EQ(node.line("pull"), "Pending; c ErrImagePull");
  EXPECT_EQ(node.line("never"), "Pending; c ErrImageNeverPull");
  EXPECT_EQ(node.line("invalid"), "Pending; c InvalidImageName");
  EXPECT_EQ(node.line("mixed"), "Pending; good running ready; lost ErrImageNeverPull");
  EXPECT_EQ(node.line("fresh"), "Running; c running ready");
  EXPECT_THAT(node.events("fresh"), Contains(HasSubstr("Successfully pulled image \"near:1\" in")));
  node.settle(seconds(2));
  EXPECT_EQ(node.line("pull"), "Pending; c ImagePullBackOff");
  EXPECT_EQ(
      node.pod("pull")["status"]["containerStatuses"][0]["state"]["waiting"]["message"].as_string(),
      "Back-off pulling image \"far:1\": ErrImagePull: no way there");
  EXPECT_THAT(
      node.events("pull"),
      ElementsAre("Normal BackOff: Back-off pulling image \"far:1\"",
                  "Normal Pulling: Pulling image \"far:1\"", "Warning Failed: Error: ErrImagePull",
                  "Warning Failed: Error: ImagePullBackOff",
                  "Warning Failed: Failed to pull image \"far:1\": no way there"));

  node.machine.pull_errors.clear();
  node.settle(seconds(15));
  EXPECT_EQ(node.line("pull"), "Running; c running ready");
}

TEST(PodImages, pull_an_image_as_the_policy_says) {
  TestNode node;
  node.machine.images.insert("here:1");
  node.machine.stand_ins.insert("known:1");

  node.create("always",
              "'containers': [{'name': 'c', 'image': 'here:1', 'imagePullPolicy': 'Always'}]");
  node.create("again",
              "'containers': [{'name': 'c', 'image': 'here:1', 'imagePullPolicy': 'Always'}]");
  node.create("once", "'containers': [{'name': 'c', 'image': 'here:1'}]");
  node.create("made-up", "'containers': [{'name': 'c', 'image': 'known:1'}]");
  node.settle();

  EXPECT_EQ(node.machine.pulls["here:1"], 2);
  EXPECT_THAT(node.events("always"), Contains("Normal Pulling: Pulling image \"here:1\""));
  EXPECT_THAT(node.events("always"), Contains(HasSubstr("Image size: 7 bytes.")));
  EXPECT_THAT(node.events("once"), Contains(HasSubstr("already present on machine")));
  EXPECT_THAT(node.events("made-up"),
              Contains("Warning BuiltinImage: Image \"known:1\" was not pulled, the one that comes "
                       "with dibs stands in for it: nobody answers"));
  EXPECT_THAT(node.events("made-up"), testing::Not(Contains(HasSubstr("Pulled"))));
}

TEST(PodImages, wait_for_images_that_are_volumes) {
  TestNode node;
  node.machine.pull_errors.emplace("far:1", Error::unavailable("no way there"));
  node.create("data",
              "'volumes': [{'name': 'v', 'image': {'reference': 'far:1'}}, "
              "{'name': 'w', 'image': {'reference': 'other:1'}}], "
              "'containers': [{'name': 'c', 'volumeMounts': [{'name': 'v', 'mountPath': '/v'}]}, "
              "{'name': 'd'}]");
  node.settle();
  EXPECT_EQ(node.line("data"), "Pending; c ErrImagePull; d running ready");
  EXPECT_THAT(node.events("data"), Contains("Normal Pulling: Pulling image \"far:1\""));
  EXPECT_EQ(node.machine.pulls.count("other:1"), 0U) << "nobody mounts it";

  node.machine.pull_errors.clear();
  node.settle(seconds(15));
  EXPECT_EQ(node.line("data"), "Running; c running ready; d running ready");
  EXPECT_EQ(node.machine.pulls["far:1"], 1);
}

TEST(PodImages, use_an_image_only_with_a_login_that_it_was_given_to) {
  TestNode node;
  node.machine.logins["r.example/private:1"] = base64_encode("user:password");
  const auto secret = [&](const std::string& name, const std::string& login) {
    const std::string config =
        cat(R"({"auths": {"r.example": {"auth": ")", base64_encode(login), R"("}}})");
    (void)node.api->create(
        {"", "v1", "secrets"}, "default",
        test::from_text(cat("{'apiVersion': 'v1', 'kind': 'Secret', 'metadata': "
                            "{'name': '",
                            name,
                            "'}, 'type': 'kubernetes.io/dockerconfigjson', 'data': "
                            "{'.dockerconfigjson': '",
                            base64_encode(config), "'}}")));
  };
  secret("good", "user:password");
  secret("bad", "user:guess");
  const std::string containers = "'containers': [{'name': 'c', 'image': 'r.example/private:1'}]";

  node.create("owner", "'imagePullSecrets': [{'name': 'bad'}, {'name': 'good'}], " + containers);
  node.settle();
  EXPECT_EQ(node.line("owner"), "Running; c running ready");
  EXPECT_EQ(node.machine.pulls["r.example/private:1"], 2);

  node.create("again", "'imagePullSecrets': [{'name': 'good'}], " + containers);
  node.create("thief", "'imagePullSecrets': [{'name': 'bad'}], " + containers);
  node.create("nobody", containers);
  node.create("lost", "'imagePullSecrets': [{'name': 'lost'}], " + containers);
  node.create("never",
              "'containers': [{'name': 'c', 'image': 'r.example/private:1', "
              "'imagePullPolicy': 'Never'}]");
  node.settle();
  EXPECT_THAT(node.events("again"), Contains(HasSubstr("can be accessed by the pod")));
  for (const char* name : {"thief", "nobody", "lost"}) {
    EXPECT_EQ(node.line(name), "Pending; c ErrImagePull") << name;
  }
  EXPECT_EQ(node.line("never"), "Pending; c ErrImageNeverPull");
  EXPECT_THAT(
      node.events("lost"),
      Contains("Warning FailedToRetrieveImagePullSecret: Unable to retrieve some image pull "
               "secrets (lost); attempting to pull the image may not succeed."));
}

}  // namespace
}  // namespace dibs::node::test
