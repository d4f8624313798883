#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/pod_claims.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;
using testing::ElementsAre;
using testing::IsEmpty;

const Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
const Gvr kTemplates = {"resource.k8s.io", "v1", "resourceclaimtemplates"};

TEST(PodClaims, names_fit_with_their_suffix) {
  EXPECT_EQ(claim_name_base("train", "accel"), "train-accel-");
  const std::string pod(60, 'p');
  const std::string entry(20, 'e');
  // 60 + 20 + 2 = 82 characters: both parts are cut in proportion.
  EXPECT_EQ(claim_name_base(pod, entry), cat(std::string(41, 'p'), '-', std::string(13, 'e')));
}

TEST(PodClaims, reads_spec_and_status_of_every_release) {
  const Value pod = from_text(
      R"({'spec': {'resourceClaims': [{'name': 'a', 'resourceClaimName': 'x'},
          {'name': 'b', 'resourceClaimTemplateName': 't'},
          {'name': 'c', 'source': {'resourceClaimTemplateName': 't'}},
          {'name': 'd', 'resourceClaimTemplateName': 't'}]},
          'status': {'resourceClaimStatuses': [{'name': 'b', 'resourceClaimName': 'b-1'},
          {'name': 'd'}], 'extendedResourceClaimStatus': {'resourceClaimName': 'e'}}})");
  const auto claims = pod_claims(pod);
  ASSERT_EQ(claims.size(), 4U);
  EXPECT_EQ(claims[1].claim, "b-1");
  EXPECT_EQ(claims[2].template_name, "t");
  EXPECT_FALSE(claims[2].settled);
  EXPECT_TRUE(claims[3].settled);
  EXPECT_THAT(claim_names(pod), ElementsAre("x", "b-1", "e"));
}

/// With the server in the process, and elsewhere.
class ResourceClaims : public testing::TestWithParam<bool> {
 protected:
  void make_template(const std::string& name) {
    cluster.create(kTemplates, "default",
                   cat("{'metadata': {'name': '", name,
                       "'}, 'spec': {'metadata': {'labels': {'team': 'red'}}, 'spec': {'devices': "
                       "{'requests': [{'name': 'd', 'exactly': {'deviceClassName': 'c'}}]}}}}"));
  }
  Value make_pod(const std::string& name, const std::string& claim) {
    return cluster.create(
        kPods, "default",
        cat("{'metadata': {'name': '", name, "'}, 'spec': {'resourceClaims': [{'name': 'd', ",
            claim,
            "}], 'containers': [{'name': 'm', 'image': 'x', 'resources': {'claims': "
            "[{'name': 'd'}]}}]}}"));
  }
  Value make_claim(const std::string& name) {
    return cluster.create(kClaims, "default",
                          cat("{'metadata': {'name': '", name,
                              "'}, 'spec': {'devices': {'requests': [{'name': 'd', 'exactly': "
                              "{'deviceClassName': 'c'}}]}}}"));
  }
  /// As the scheduler does it.
  void allocate(const std::string& claim, const Value& pod) {
    Value object = cluster.get(kClaims, "default", claim);
    object.mut("metadata").set("finalizers", Value::array({kClaimFinalizer}));
    object = *cluster.api->update(kClaims, "default", object);
    object.set("status", from_text("{'allocation': {'devices': {'results': [{'request': 'd', "
                                   "'driver': 'x.example.com', 'pool': 'p', 'device': 'a'}]}}}"));
    if (!pod.is_null()) {
      object.mut("status").set("reservedFor",
                               Value::array({Value::object({{"resource", "pods"},
                                                            {"name", pod["metadata"]["name"]},
                                                            {"uid", pod["metadata"]["uid"]}})}));
    }
    auto written = cluster.api->update_status(kClaims, "default", object);
    ASSERT_TRUE(written.ok()) << written.error().message();
    cluster.settle();
  }
  void bind(const std::string& pod) {
    cluster.create_object(
        {"", "v1", cat("pods/", pod, "/binding")}, "default",
        from_text(cat("{'apiVersion': 'v1', 'kind': 'Binding', 'metadata': {'name': '", pod,
                      "'}, 'target': {'kind': 'Node', 'name': 'n'}}")));
    cluster.settle();
  }
  std::string claim_of(const std::string& pod) {
    const auto names = claim_names(cluster.get(kPods, "default", pod));
    return names.empty() ? "" : names[0];
  }
  Value claim(const std::string& name) { return cluster.get(kClaims, "default", name); }

  TestCluster cluster{server::Options(), GetParam()};
};

INSTANTIATE_TEST_SUITE_P(NearAndFar, ResourceClaims, testing::Bool());

constexpr const char* kFromTemplate = "'resourceClaimTemplateName': 'gpu'";

TEST_P(ResourceClaims, a_template_becomes_a_claim_of_the_pod) {
  make_template("gpu");
  const Value pod = make_pod("p", kFromTemplate);
  cluster.settle();
  const std::string name = claim_of("p");
  ASSERT_TRUE(name.starts_with("p-d-")) << name;
  const Value made = claim(name);
  EXPECT_EQ(made["metadata"]["generateName"].str(), "p-d-");
  EXPECT_EQ(made["metadata"]["labels"]["team"].str(), "red");
  EXPECT_EQ(made["metadata"]["annotations"][kClaimNameAnnotation].str(), "d");
  EXPECT_TRUE(is_owned_by(made, pod));
  EXPECT_FALSE(controller_of(made).contains("blockOwnerDeletion"));
  EXPECT_EQ(cluster.list(kClaims, "default").size(), 1U);
}

TEST_P(ResourceClaims, a_missing_template_is_told_and_waited_for) {
  make_pod("p", kFromTemplate);
  cluster.settle();
  EXPECT_THAT(cluster.events("default", "p"),
              ElementsAre("Warning FailedResourceClaimCreation PodResourceClaim d: resource claim "
                          "template \"gpu\": resourceclaimtemplate.resource.k8s.io \"gpu\" not "
                          "found"));
  EXPECT_EQ(claim_of("p"), "");
  make_template("gpu");
  cluster.settle();
  EXPECT_NE(claim_of("p"), "");
}

TEST_P(ResourceClaims, a_claim_that_vanished_is_made_again) {
  make_template("gpu");
  make_pod("p", kFromTemplate);
  cluster.settle();
  const std::string first = claim_of("p");
  cluster.remove(kClaims, "default", first);
  cluster.settle();
  EXPECT_NE(claim_of("p"), first);
  EXPECT_FALSE(claim(claim_of("p")).is_null());
}

TEST_P(ResourceClaims, the_last_pod_that_goes_deallocates) {
  const Value made = make_claim("c");
  const Value pod = make_pod("p", "'resourceClaimName': 'c'");
  allocate("c", pod);
  EXPECT_EQ(claim("c")["status"]["reservedFor"].size(), 1U);
  cluster.remove(kPods, "default", "p");
  cluster.settle();
  EXPECT_TRUE(claim("c")["status"]["reservedFor"].is_null());
  EXPECT_TRUE(claim("c")["status"]["allocation"].is_null());
  EXPECT_TRUE(claim("c")["metadata"]["finalizers"].is_null());
}

TEST_P(ResourceClaims, a_pod_of_the_same_name_does_not_keep_the_claim) {
  make_claim("c");
  allocate("c", make_pod("p", "'resourceClaimName': 'c'"));
  bind("p");
  EXPECT_EQ(claim("c")["status"]["reservedFor"].size(), 1U);

  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(cluster.api->remove(kPods, "default", "p", now).ok());
  make_pod("p", "'resourceClaimName': 'c'");
  cluster.settle();

  EXPECT_TRUE(claim("c")["status"]["reservedFor"].empty());
  EXPECT_TRUE(claim("c")["status"]["allocation"].is_null());
}

/// A way on which news of pods are lost once it is deaf.
class DeafTransport : public client::Transport {
 public:
  explicit DeafTransport(client::Transport& inner) : inner_(inner) {}
  Result<client::Response> send(client::Request request) override {
    return inner_.send(std::move(request));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    inner_.send_async(std::move(request), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    if (request.target.starts_with("/api/v1/pods")) {
      handlers.event = nullptr;
      handlers.data = [this, data = std::move(handlers.data)](std::string_view bytes) {
        if (!deaf) data(bytes);
      };
    }
    return inner_.open_stream(std::move(request), std::move(handlers));
  }

  bool deaf = false;

 private:
  client::Transport& inner_;
};

TEST(StaleResourceClaims, a_reservation_outlives_an_old_view_of_its_pod) {
  cluster::test::TestCluster world;
  const auto inner = world.connect();
  DeafTransport way(*inner);
  client::Client client(way);
  ControllersOptions options;
  options.ca_pem = "CA";
  Controllers controllers(client, world.sim.runtime(), options);
  controllers.start();
  world.sim.advance(std::chrono::seconds(2));
  world.create(kClaims, "default",
               "{'metadata': {'name': 'c'}, 'spec': {'devices': {'requests': [{'name': 'd', "
               "'exactly': {'deviceClassName': 'c'}}]}}}");
  const auto make_pod = [&] {
    return world.create(
        kPods, "default",
        "{'metadata': {'name': 'p'}, 'spec': {'resourceClaims': [{'name': 'd', "
        "'resourceClaimName': 'c'}], 'containers': [{'name': 'm', 'image': 'x'}]}}");
  };
  make_pod();
  world.sim.advance(std::chrono::seconds(1));

  way.deaf = true;
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(world.api->remove(kPods, "default", "p", now).ok());
  const Value pod = make_pod();
  Value claim = world.get(kClaims, "default", "c");
  claim.set("status",
            from_text(cat("{'allocation': {'devices': {'results': [{'request': 'd', 'driver': "
                          "'x.example.com', 'pool': 'p', 'device': 'a'}]}}, 'reservedFor': "
                          "[{'resource': 'pods', 'name': 'p', 'uid': '",
                          pod["metadata"]["uid"].as_string(), "'}]}")));
  ASSERT_TRUE(world.api->update_status(kClaims, "default", claim).ok());
  world.sim.advance(std::chrono::seconds(5));

  claim = world.get(kClaims, "default", "c");
  EXPECT_EQ(claim["status"]["reservedFor"].size(), 1U);
  EXPECT_FALSE(claim["status"]["allocation"].is_null());

  // Once the pod is gone for good, so is what it had.
  ASSERT_TRUE(world.api->remove(kPods, "default", "p", now).ok());
  world.patch(kClaims, "default", "c", "{'metadata': {'labels': {'look': 'again'}}}");
  world.sim.advance(std::chrono::seconds(5));
  EXPECT_TRUE(world.get(kClaims, "default", "c")["status"]["reservedFor"].empty());
  controllers.stop();
}

TEST_P(ResourceClaims, several_entries_are_made_in_one_turn) {
  make_template("gpu");
  cluster.create(kPods, "default",
                 "{'metadata': {'name': 'p'}, 'spec': {'resourceClaims': [{'name': 'd', "
                 "'resourceClaimTemplateName': 'gpu'}, {'name': 'e', "
                 "'resourceClaimTemplateName': 'gpu'}], 'containers': [{'name': 'm', 'image': 'x', "
                 "'resources': {'claims': [{'name': 'd'}, {'name': 'e'}]}}]}}");
  cluster.settle();

  const auto claims = pod_claims(cluster.get(kPods, "default", "p"));
  ASSERT_EQ(claims.size(), 2U);
  EXPECT_TRUE(claims[0].claim.starts_with("p-d-")) << claims[0].claim;
  EXPECT_TRUE(claims[1].claim.starts_with("p-e-")) << claims[1].claim;
  EXPECT_EQ(cluster.list(kClaims, "default").size(), 2U);
}

TEST_P(ResourceClaims, an_allocated_claim_that_nobody_had_stays_allocated) {
  make_claim("c");
  allocate("c", {});
  cluster.settle();
  EXPECT_FALSE(claim("c")["status"]["allocation"].is_null());
  // Deleted, it is deallocated and goes.
  cluster.remove(kClaims, "default", "c");
  cluster.settle();
  EXPECT_TRUE(claim("c").is_null());
}

TEST_P(ResourceClaims, a_deleted_claim_waits_for_its_pod) {
  make_claim("c");
  const Value pod = make_pod("p", "'resourceClaimName': 'c'");
  bind("p");
  allocate("c", pod);
  cluster.remove(kClaims, "default", "c");
  cluster.settle();
  EXPECT_TRUE(is_deleting(claim("c")));
  // With a node the pod takes its time; the claim is its until it has ended.
  cluster.remove(kPods, "default", "p");
  cluster.settle();
  EXPECT_EQ(claim("c")["status"]["reservedFor"].size(), 1U);
  cluster.patch(kPods, "default", "p", "{'status': {'phase': 'Failed'}}", "status");
  cluster.settle();
  EXPECT_TRUE(claim("c").is_null());
}

TEST_P(ResourceClaims, a_pod_that_has_ended_gives_its_generated_claim_back) {
  make_template("gpu");
  const Value pod = make_pod("p", kFromTemplate);
  cluster.settle();
  bind("p");
  allocate(claim_of("p"), pod);
  cluster.patch(kPods, "default", "p", "{'status': {'phase': 'Succeeded'}}", "status");
  cluster.settle();
  EXPECT_THAT(cluster.names(kClaims, "default"), IsEmpty());
  EXPECT_FALSE(cluster.get(kPods, "default", "p").is_null());
}

TEST_P(ResourceClaims, a_generated_claim_goes_with_its_pod) {
  make_template("gpu");
  const Value pod = make_pod("p", kFromTemplate);
  cluster.settle();
  allocate(claim_of("p"), pod);
  cluster.remove(kPods, "default", "p");
  cluster.settle();
  EXPECT_THAT(cluster.names(kClaims, "default"), IsEmpty());
}

TEST_P(ResourceClaims, reserves_for_a_pod_that_already_has_a_node) {
  make_claim("c");
  allocate("c", {});
  make_pod("p", "'resourceClaimName': 'c'");
  bind("p");
  EXPECT_EQ(claim("c")["status"]["reservedFor"][0]["name"].str(), "p");
}

TEST(ResourceClaimsInOldReleases, speak_the_version_that_is_served) {
  server::Options options;
  options.release = "1.32";
  TestCluster cluster(options);
  const Gvr claims = {"resource.k8s.io", "v1beta1", "resourceclaims"};
  cluster.create({"resource.k8s.io", "v1beta1", "resourceclaimtemplates"}, "default",
                 "{'metadata': {'name': 'gpu'}, 'spec': {'spec': {'devices': {'requests': "
                 "[{'name': 'd', 'deviceClassName': 'c'}]}}}}");
  cluster.create(kPods, "default",
                 "{'metadata': {'name': 'p'}, 'spec': {'resourceClaims': [{'name': 'd', "
                 "'resourceClaimTemplateName': 'gpu'}], 'containers': [{'name': 'm', 'image': "
                 "'x', 'resources': {'claims': [{'name': 'd'}]}}]}}");
  cluster.settle();
  EXPECT_EQ(cluster.names(claims, "default").size(), 1U);
}

}  // namespace
}  // namespace dibs::controllers
