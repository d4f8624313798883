// The plugins around devices, in a whole server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/plugins/plugins.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::from_text;
using test::Reply;
using test::TestServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

Value claim(std::string_view name, std::string_view selector = "", bool admin = false) {
  Value object = from_text(
      "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','metadata':{},'spec':{'devices':{"
      "'requests':[{'name':'gpu','exactly':{'deviceClassName':'c'}}]}}}");
  object.mut("metadata").set("name", name);
  Value& exactly =
      object.mut("spec").mut("devices").mut("requests").mut(std::size_t{0}).mut("exactly");
  if (!selector.empty()) {
    exactly.set(
        "selectors",
        Value::array({Value::object({{"cel", Value::object({{"expression", selector}})}})}));
  }
  if (admin) exactly.set("adminAccess", true);
  return object;
}

std::string allocation(std::string_view device, std::string_view more = "") {
  return cat(R"({"status":{"allocation":{"devices":{"results":[{"request":"gpu","driver":"d",)",
             R"("pool":"p","device":")", device, R"(")", more, "}]}}}}");
}

class Devices : public testing::Test {
 protected:
  Reply make(std::string_view name) { return server.post(kClaims, claim(name)); }
  Reply allocate(std::string_view name, std::string_view device, std::string_view more = "") {
    return server.patch(cat(kClaims, "/", name, "/status"), "merge", allocation(device, more));
  }
  Reply free(std::string_view name) {
    return server.patch(cat(kClaims, "/", name, "/status"), "merge",
                        R"({"status":{"allocation":null}})");
  }
  TestServer server;
};

TEST_F(Devices, are_in_one_allocation_at_a_time) {
  ASSERT_EQ(make("a").status, 201);
  ASSERT_EQ(make("b").status, 201);
  EXPECT_EQ(allocate("a", "gpu-0").status, 200);

  Reply second = allocate("b", "gpu-0");
  EXPECT_EQ(second.status, 403);
  EXPECT_EQ(second.message(),
            "resourceclaims.resource.k8s.io \"b\" is forbidden: device "
            "d/p/gpu-0 cannot be allocated to claim default/b: it is allocated to claim default/a");
  EXPECT_EQ(allocate("b", "gpu-1").status, 200);
}

TEST_F(Devices, can_be_given_on_once_they_are_free) {
  make("a");
  make("b");
  ASSERT_EQ(allocate("a", "gpu-0").status, 200);
  ASSERT_EQ(free("a").status, 200);
  EXPECT_EQ(allocate("b", "gpu-0").status, 200);

  make("c");
  EXPECT_EQ(allocate("c", "gpu-0").status, 403);
  ASSERT_EQ(server.remove(cat(kClaims, "/b")).status, 200);
  EXPECT_EQ(allocate("c", "gpu-0").status, 200);
}

TEST_F(Devices, are_protected_with_their_allocation_where_the_writer_asks) {
  constexpr const char* kProtected = "['resource.kubernetes.io/delete-protection']";
  make("a");
  const auto write = [&](std::string_view patch) {
    calls::Request request{test::make_request("PATCH", cat(kClaims, "/a/status"),
                                              std::string(patch), "application/merge-patch+json")};
    request.protects_allocation = true;
    const Reply reply = server.send(std::move(request));
    EXPECT_EQ(reply.status, 200);
    return test::to_text(reply.body["metadata"]["finalizers"]);
  };
  // Only the write that allocates does it, and the one that frees.
  EXPECT_EQ(write(R"({"status":{}})"), "null");
  EXPECT_EQ(write(allocation("gpu-0")), kProtected);
  EXPECT_EQ(write(allocation("gpu-0")), kProtected);
  EXPECT_EQ(write(R"({"status":{"allocation":null}})"), "null");
}

constexpr const char* kClassicClaims =
    "/apis/resource.k8s.io/v1alpha2/namespaces/default/resourceclaims";

std::string named_allocation(std::string_view node, std::string_view instance) {
  return cat(R"({"status":{"driverName":"d","allocation":{"resourceHandles":[{"driverName":"d",)",
             R"("structuredData":{"nodeName":")", node,
             R"(","results":[{"namedResources":{"name":")", instance, R"("}}]}}]}}})");
}

TEST_F(Devices, include_named_resources_of_the_classic_model) {
  for (const char* name : {"a", "b"}) {
    ASSERT_EQ(
        server
            .post(kClassicClaims, from_text(cat("{'apiVersion':'resource.k8s.io/v1alpha2','kind':"
                                                "'ResourceClaim','metadata':{'name':'",
                                                name, "'},'spec':{'resourceClassName':'c'}}")))
            .status,
        201);
  }
  const auto write = [&](std::string_view name, const std::string& patch) {
    return server.patch(cat(kClassicClaims, "/", name, "/status"), "merge", patch);
  };
  EXPECT_EQ(write("a", named_allocation("n", "gpu-0")).status, 200);
  const Reply second = write("b", named_allocation("n", "gpu-0"));
  EXPECT_EQ(second.status, 403);
  EXPECT_THAT(second.message(),
              HasSubstr("named resource d/n/gpu-0 cannot be allocated to claim default/b: it is "
                        "allocated to claim default/a"));
  EXPECT_EQ(write("b", named_allocation("other", "gpu-0")).status, 200);
  EXPECT_EQ(write("b", R"({"status":{"allocation":null}})").status, 200);
  server.restart();
  EXPECT_EQ(write("b", named_allocation("n", "gpu-0")).status, 403);
  EXPECT_EQ(write("a", R"({"status":{"allocation":null}})").status, 200);
  EXPECT_EQ(write("b", named_allocation("n", "gpu-0")).status, 200);
}

TEST_F(Devices, of_the_classic_model_are_protected_by_a_finalizer_of_their_own) {
  server.post(kClassicClaims,
              from_text("{'apiVersion':'resource.k8s.io/v1alpha2','kind':'ResourceClaim',"
                        "'metadata':{'name':'a'},'spec':{'resourceClassName':'c'}}"));
  const auto write = [&](std::string_view patch) {
    calls::Request request{test::make_request("PATCH", cat(kClassicClaims, "/a/status"),
                                              std::string(patch), "application/merge-patch+json")};
    request.protects_allocation = true;
    const Reply reply = server.send(std::move(request));
    EXPECT_EQ(reply.status, 200);
    return test::to_text(reply.body["metadata"]["finalizers"]);
  };
  EXPECT_EQ(write(named_allocation("n", "gpu-0")), "['dra.k8s.io/delete-protection']");
  EXPECT_EQ(write(R"({"status":{"allocation":null}})"), "null");
}

TEST_F(Devices, are_not_held_by_writes_that_failed) {
  make("a");
  make("b");
  Reply dry = server.patch(cat(kClaims, "/a/status?dryRun=All"), "merge", allocation("gpu-0"));
  ASSERT_EQ(dry.status, 200);
  EXPECT_EQ(allocate("b", "gpu-0").status, 200);
}

TEST_F(Devices, are_known_again_after_a_restart) {
  make("a");
  make("b");
  ASSERT_EQ(allocate("a", "gpu-0").status, 200);
  server.restart();
  EXPECT_EQ(allocate("b", "gpu-0").status, 403);
  ASSERT_EQ(free("a").status, 200);
  EXPECT_EQ(allocate("b", "gpu-0").status, 200);
}

TEST_F(Devices, may_be_shared_under_different_ids) {
  make("a");
  make("b");
  make("c");
  constexpr const char* first = R"(,"shareID":"00000000-0000-4000-8000-000000000001")";
  constexpr const char* second = R"(,"shareID":"00000000-0000-4000-8000-000000000002")";
  EXPECT_EQ(allocate("a", "gpu-0", first).status, 200);
  EXPECT_EQ(allocate("b", "gpu-0", second).status, 200);
  EXPECT_EQ(allocate("c", "gpu-0", first).status, 403);
}

TEST_F(Devices, may_be_left_to_whoever_writes_by_an_option) {
  Options options;
  options.disabled_plugins = {"UniqueDevices"};
  TestServer open(options);
  open.post(kClaims, claim("a"));
  open.post(kClaims, claim("b"));
  for (const char* name : {"a", "b"}) {
    Reply reply = open.patch(cat(kClaims, "/", name, "/status"), "merge", allocation("gpu-0"));
    EXPECT_EQ(reply.status, 200);
  }
}

TEST(UniqueDevices, holds_a_device_from_the_judgement_to_the_end_of_the_write) {
  // Two writes judged before either is stored: only the first may pass.
  TestServer server;
  server.post(kClaims, claim("a"));
  server.post(kClaims, claim("b"));
  store::Store& store = *server.store;
  runtime::SimRuntime& sim = server.sim;
  ResourceTable resources;
  auto set = std::make_shared<ResourceSet>();
  auto resource = std::make_shared<Resource>();
  resource->group = "resource.k8s.io";
  resource->version = "v1";
  resource->plural = "resourceclaims";
  resource->storage_prefix = "/registry/resourceclaims/";
  set->by_path["resource.k8s.io/v1/resourceclaims"] = resource;
  set->catalog.add(*resource);
  resources.replace(set);
  AdmissionChain none;
  Objects objects(sim.runtime(), store, none);
  Options options;
  auto access = Access::open(sim.runtime(), objects, resources, options);
  ASSERT_TRUE(access.ok());
  metrics::Registry registry;
  auto plugin =
      make_unique_devices({sim.runtime(), store, objects, resources, **access, options, registry});

  Context context;
  auto ask = [&](const char* name) {
    Write write(context, *resource, Verb::patch);
    write.name_space = "default";
    write.name = name;
    write.subresource = "status";
    write.old = claim("x");
    write.object = write.old;
    write.object.set("status",
                     from_text("{'allocation':{'devices':{'results':[{'driver':'d','pool':'p',"
                               "'device':'g'}]}}}"));
    return plugin->allocate(write);
  };
  auto first = ask("a");
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(ask("b").ok());
  first->reset();
  auto second = ask("b");
  EXPECT_TRUE(second.ok());
  EXPECT_FALSE(ask("a").ok());
}

TEST_F(Devices, tell_of_names_that_none_of_them_has) {
  Value slice = from_text(
      "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'s'},'spec':{"
      "'driver':'gpu.example.com','pool':{'name':'p','generation':1,'resourceSliceCount':1},"
      "'allNodes':true,'devices':[{'name':'g','attributes':{'model':{'string':'x'}}}]}}");
  auto warnings = [&](std::string_view name, std::string_view selector) {
    return server.post(kClaims, claim(name, selector)).warnings();
  };
  constexpr const char* wrong = "device.attributes['gpu.example.com'].modle == 'x'";
  EXPECT_THAT(warnings("early", wrong), IsEmpty());
  ASSERT_EQ(server.post("/apis/resource.k8s.io/v1/resourceslices", slice).status, 201);

  EXPECT_THAT(warnings("wrong", wrong), ElementsAre(HasSubstr("did you mean")));
  EXPECT_THAT(warnings("right", "device.attributes['gpu.example.com'].model == 'x'"), IsEmpty());
  // Of a driver that publishes nothing, nothing is known.
  EXPECT_THAT(warnings("other", "device.attributes['nic.example.com'].x == 'x'"), IsEmpty());

  ASSERT_EQ(server.remove("/apis/resource.k8s.io/v1/resourceslices/s").status, 200);
  EXPECT_THAT(warnings("late", wrong), IsEmpty());
}

TEST_F(Devices, are_shown_to_administrators_in_their_namespaces_only) {
  Reply refused = server.post(kClaims, claim("admin", "", true));
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.message(),
              HasSubstr("spec.devices.requests[0].adminAccess: Forbidden: admin access to devices "
                        "requires the `resource.kubernetes.io/admin-access: true` label"));
  ASSERT_EQ(server
                .patch("/api/v1/namespaces/default", "merge",
                       R"({"metadata":{"labels":{"resource.kubernetes.io/admin-access":"true"}}})")
                .status,
            200);
  EXPECT_EQ(server.post(kClaims, claim("admin", "", true)).status, 201);
}

TEST_F(Devices, are_allocated_by_those_who_may_bind) {
  make("a");
  server.post("/apis/rbac.authorization.k8s.io/v1/clusterroles",
              from_text("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRole',"
                        "'metadata':{'name':'status'},'rules':[{'apiGroups':['resource.k8s.io'],"
                        "'resources':['resourceclaims/status'],'verbs':['patch']}]}"));
  server.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
              from_text("{'apiVersion':'rbac.authorization.k8s.io/v1','kind':'ClusterRoleBinding',"
                        "'metadata':{'name':'status'},'roleRef':{'apiGroup':"
                        "'rbac.authorization.k8s.io','kind':'ClusterRole','name':'status'},"
                        "'subjects':[{'kind':'User','apiGroup':'rbac.authorization.k8s.io','name':"
                        "'ana'}]}"));
  net::Request request = test::make_request("PATCH", cat(kClaims, "/a/status"), allocation("gpu-0"),
                                            "application/merge-patch+json");
  request.headers.set("Impersonate-User", "ana");
  Reply reply = server.send(request);
  EXPECT_EQ(reply.status, 422);
  EXPECT_THAT(reply.message(),
              HasSubstr("status.allocation: Forbidden: changing status.allocation or "
                        "status.reservedFor requires resource=\"resourceclaims/binding\", "
                        "verb=\"patch\" permission: resourceclaims.resource.k8s.io is forbidden: "
                        "User \"ana\" cannot patch resource \"resourceclaims/binding\""));
  EXPECT_EQ(allocate("a", "gpu-0").status, 200);
}

}  // namespace
}  // namespace dibs::server
