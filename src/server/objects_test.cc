// Creates and updates as a client sees them, and the races between updates.
#include "server/objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/builtin_resources.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::Reply;
using test::TestServer;
using test::to_text;
using test::version_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kOne = cat(kConfigMaps, "/a");

class Writes : public testing::Test {
 protected:
  TestServer api;
};

TEST_F(Writes, create_sets_what_the_server_keeps) {
  Reply made = api.post(kConfigMaps, config_map("a", "{'k':'v'}"));

  EXPECT_EQ(made.status, 201);
  const Value& metadata = made.body["metadata"];
  EXPECT_EQ(metadata["namespace"].as_string(), "default");
  EXPECT_EQ(metadata["uid"].as_string().size(), 36U);
  EXPECT_EQ(metadata["creationTimestamp"].as_string(), format_rfc3339(api.sim.now()));
  EXPECT_EQ(version_of(made.body), api.store->revision());
  EXPECT_EQ(to_text(made.body["data"]), "{'k':'v'}");
  EXPECT_EQ(metadata["managedFields"][0]["manager"].as_string(), "tester");
  EXPECT_EQ(api.get(kOne).body, made.body);
}

TEST_F(Writes, create_does_not_take_what_the_server_keeps_from_a_client) {
  Value object = config_map("a");
  object.mut("metadata").set("uid", "mine");
  object.mut("metadata").set("creationTimestamp", "2001-01-01T00:00:00Z");
  object.mut("metadata").set("deletionTimestamp", "2001-01-01T00:00:00Z");
  object.mut("metadata").set("selfLink", "/x");

  Reply made = api.post(kConfigMaps, object);

  ASSERT_EQ(made.status, 201);
  EXPECT_NE(made.body["metadata"]["uid"].as_string(), "mine");
  EXPECT_EQ(made.body["metadata"]["creationTimestamp"].as_string(), format_rfc3339(api.sim.now()));
  EXPECT_FALSE(made.body["metadata"].contains("deletionTimestamp"));
  EXPECT_FALSE(made.body["metadata"].contains("selfLink"));
}

TEST_F(Writes, a_namespace_of_what_belongs_to_the_cluster_is_dropped) {
  const std::string classes = "/apis/resource.k8s.io/v1/deviceclasses";
  Value object = from_text(
      "{'apiVersion':'resource.k8s.io/v1','kind':'DeviceClass','metadata':{'name':'a',"
      "'namespace':'elsewhere'},'spec':{}}");

  Reply made = api.post(classes, object);

  ASSERT_EQ(made.status, 201) << made.message();
  EXPECT_FALSE(made.body["metadata"].contains("namespace"));
  object.mut("metadata").set("labels", from_text("{'x':'y'}"));
  Reply put = api.put(cat(classes, "/a"), object);
  ASSERT_EQ(put.status, 200) << put.message();
  EXPECT_FALSE(put.body["metadata"].contains("namespace"));
  EXPECT_EQ(put.body["metadata"]["labels"]["x"].as_string(), "y");
  Reply patched =
      api.patch(cat(classes, "/a"), "merge", "{\"metadata\":{\"namespace\":\"other\"}}");
  ASSERT_EQ(patched.status, 200) << patched.message();
  EXPECT_FALSE(patched.body["metadata"].contains("namespace"));
}

TEST_F(Writes, create_of_what_exists_is_refused) {
  api.add_config_map("a");

  Reply again = api.post(kConfigMaps, config_map("a"));

  EXPECT_EQ(again.status, 409);
  EXPECT_EQ(again.reason(), "AlreadyExists");
  EXPECT_EQ(again.message(), "configmaps \"a\" already exists");
}

struct BadBody {
  const char* body;
  int status;
  const char* part;
};

class BadCreates : public testing::TestWithParam<BadBody> {};

TEST_P(BadCreates, are_refused_and_leave_nothing) {
  TestServer api;
  const std::int64_t before = api.store->revision();

  Reply made = api.post(kConfigMaps, from_text(GetParam().body));

  EXPECT_EQ(made.status, GetParam().status) << made.text;
  EXPECT_THAT(made.message(), HasSubstr(GetParam().part));
  EXPECT_EQ(api.store->revision(), before);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadCreates,
    testing::Values(
        BadBody{"{'apiVersion':'v1','kind':'ConfigMap'}", 422, "name or generateName is required"},
        BadBody{"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'A_b'}}", 422,
                "metadata.name: Invalid value"},
        BadBody{
            "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','namespace':'other'}}",
            400,
            "the namespace of the provided object does not match the namespace sent on the "
            "request"},
        BadBody{
            "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'5'}}",
            500, "resourceVersion should not be set on objects to be created"},
        BadBody{"{'apiVersion':'v1','kind':'Secret','metadata':{'name':'a'}}", 400, "Secret"},
        BadBody{"{'apiVersion':'v2','kind':'ConfigMap','metadata':{'name':'a'}}", 400, "v2"},
        BadBody{"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'},'data':{'k':3}}",
                400, "cannot unmarshal number"},
        BadBody{"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','labels':{'-':'x'}}}",
                422, "metadata.labels: Invalid value"},
        BadBody{"{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','finalizers':['x']}}",
                422, "metadata.finalizers"}));

TEST_F(Writes, a_generated_name_continues_its_prefix) {
  Value object = config_map("");
  object.mut("metadata").erase("name");
  object.mut("metadata").set("generateName", "job-");

  Reply first = api.post(kConfigMaps, object);
  Reply second = api.post(kConfigMaps, object);

  ASSERT_EQ(first.status, 201) << first.text;
  const std::string name = first.body["metadata"]["name"].str();
  EXPECT_EQ(name.size(), 9U);
  EXPECT_EQ(name.substr(0, 4), "job-");
  EXPECT_NE(second.body["metadata"]["name"].as_string(), name);
  EXPECT_EQ(first.body["metadata"]["generateName"].as_string(), "job-");
}

TEST_F(Writes, a_generated_name_is_not_too_long) {
  Value object = config_map("");
  object.mut("metadata").erase("name");
  object.mut("metadata").set("generateName", std::string(70, 'x'));

  Reply made = api.post(kConfigMaps, object);

  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["metadata"]["name"].as_string().size(), 63U);
}

TEST_F(Writes, a_dry_run_changes_nothing) {
  const Value made = api.add_config_map("a", "{'k':'v'}");
  const std::int64_t before = api.store->revision();

  Reply create = api.post(cat(kConfigMaps, "?dryRun=All"), config_map("b"));
  Reply patch = api.patch(kOne + "?dryRun=All", "merge", "{'data':{'k':'w'}}");
  Reply remove = api.remove(kOne + "?dryRun=All");

  EXPECT_EQ(create.status, 201);
  EXPECT_EQ(create.body["metadata"]["uid"].as_string().size(), 36U);
  EXPECT_FALSE(create.body["metadata"].contains("resourceVersion"));
  EXPECT_EQ(patch.status, 200);
  EXPECT_EQ(to_text(patch.body["data"]), "{'k':'w'}");
  EXPECT_EQ(version_of(patch.body), version_of(made));
  EXPECT_EQ(remove.status, 200);
  EXPECT_EQ(api.store->revision(), before);
  EXPECT_EQ(api.get(kOne).body, made);
}

TEST_F(Writes, a_dry_run_is_still_judged) {
  Reply create = api.post(cat(kConfigMaps, "?dryRun=All"), config_map("A_b"));
  Reply odd = api.post(cat(kConfigMaps, "?dryRun=Some"), config_map("a"));

  EXPECT_EQ(create.status, 422);
  EXPECT_EQ(odd.status, 422);
}

TEST_F(Writes, update_gives_a_new_version) {
  Value object = api.add_config_map("a", "{'k':'v'}");
  const std::int64_t before = version_of(object);
  object.set("data", from_text("{'k':'w'}"));

  Reply updated = api.put(kOne, object);

  EXPECT_EQ(updated.status, 200);
  EXPECT_GT(version_of(updated.body), before);
  EXPECT_EQ(to_text(updated.body["data"]), "{'k':'w'}");
  EXPECT_EQ(updated.body["metadata"]["uid"], object["metadata"]["uid"]);
}

TEST_F(Writes, an_update_that_changes_nothing_keeps_the_version) {
  Value object = api.add_config_map("a", "{'k':'v'}");
  const std::int64_t before = api.store->revision();
  api.sim.advance(std::chrono::seconds(10));

  Reply put = api.put(kOne, object);
  Reply merge = api.patch(kOne, "merge", "{'data':{'k':'v'}}");
  Reply strategic = api.patch(kOne, "strategic", "{}");

  for (const Reply& reply : {put, merge, strategic}) {
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, object);
  }
  EXPECT_EQ(api.store->revision(), before);
}

TEST_F(Writes, an_update_of_an_old_version_conflicts) {
  Value old = api.add_config_map("a", "{'k':'v'}");
  api.patch(kOne, "merge", "{'data':{'k':'w'}}");

  Reply put = api.put(kOne, old);
  Reply patch = api.patch(kOne, "merge",
                          cat("{'metadata':{'resourceVersion':'",
                              old["metadata"]["resourceVersion"].str(), "'},'data':{'x':'y'}}"));

  for (const Reply& reply : {put, patch}) {
    EXPECT_EQ(reply.status, 409);
    EXPECT_EQ(reply.reason(), "Conflict");
    EXPECT_EQ(reply.message(),
              "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; "
              "please apply your changes "
              "to the latest version and try again");
  }
  EXPECT_EQ(to_text(api.get(kOne).body["data"]), "{'k':'w'}");
}

TEST_F(Writes, an_update_without_a_version_is_unconditional) {
  api.add_config_map("a", "{'k':'v'}");

  Reply put = api.put(kOne, config_map("a", "{'k':'w'}"));

  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(to_text(put.body["data"]), "{'k':'w'}");
}

TEST_F(Writes, an_update_of_another_uid_conflicts) {
  Value object = api.add_config_map("a");
  object.mut("metadata").set("uid", "other");

  Reply put = api.put(kOne, object);

  EXPECT_EQ(put.status, 409);
  EXPECT_THAT(put.message(),
              HasSubstr("Precondition failed: UID in precondition: other, UID in object meta: "));
}

TEST_F(Writes, an_update_must_name_its_object) {
  Value object = api.add_config_map("a");
  Value other = object;
  other.mut("metadata").set("name", "b");
  Value nameless = object;
  nameless.mut("metadata").erase("name");

  EXPECT_EQ(api.put(kOne, other).status, 400);
  EXPECT_EQ(api.put(kOne, nameless).status, 400);
  EXPECT_EQ(api.put(cat(kConfigMaps, "/b"), other).status, 404);
}

TEST_F(Writes, update_creates_where_the_kind_allows_it) {
  const char* target = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
  Value lease = from_text(
      "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','metadata':{'name':'l'},'spec':{}}");

  Reply put = api.put(target, lease);

  EXPECT_EQ(put.status, 201) << put.text;
  EXPECT_EQ(api.get(target).status, 200);
}

TEST_F(Writes, the_generation_counts_changes_of_the_spec_alone) {
  const char* target = "/apis/apps/v1/namespaces/default/deployments/d";
  Reply made = api.post(
      "/apis/apps/v1/namespaces/default/deployments",
      from_text("{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d'},'spec':{"
                "'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},"
                "'spec':{'containers':[{'name':'c','image':'i'}]}}}}"));
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["metadata"]["generation"].as_int(), 1);

  Reply label = api.patch(target, "merge", "{'metadata':{'labels':{'x':'y'},'generation':7}}");
  Reply status =
      api.patch(cat(target, "/status"), "merge", "{'status':{'replicas':1},'spec':{'replicas':5}}");
  Reply spec = api.patch(target, "merge", "{'spec':{'replicas':3},'status':{'replicas':9}}");

  EXPECT_EQ(label.body["metadata"]["generation"].as_int(), 1);
  EXPECT_EQ(status.body["metadata"]["generation"].as_int(), 1);
  EXPECT_EQ(status.body["status"]["replicas"].as_int(), 1);
  EXPECT_EQ(status.body["spec"]["replicas"].as_int(), 1)
      << "only the status goes through this door";
  EXPECT_EQ(spec.body["metadata"]["generation"].as_int(), 2);
  EXPECT_EQ(spec.body["status"]["replicas"].as_int(), 1)
      << "the status does not go through this one";
}

TEST_F(Writes, unknown_fields_are_treated_as_the_client_asks) {
  Value object = config_map("a");
  object.set("odd", 1);

  Reply strict = api.post(cat(kConfigMaps, "?fieldValidation=Strict"), object);
  Reply quiet = api.post(cat(kConfigMaps, "?fieldValidation=Ignore&dryRun=All"), object);
  Reply warned = api.post(kConfigMaps, object);

  EXPECT_EQ(strict.status, 400);
  EXPECT_THAT(strict.message(), HasSubstr("strict decoding error: unknown field \"odd\""));
  EXPECT_EQ(quiet.status, 201);
  EXPECT_THAT(quiet.warnings(), IsEmpty());
  EXPECT_EQ(warned.status, 201);
  EXPECT_THAT(warned.warnings(), ElementsAre("299 - \"unknown field \\\"odd\\\"\""));
  EXPECT_FALSE(warned.body.contains("odd"));
}

/// Objects without a server around it, where a race can be staged.
class Races : public testing::Test {
 protected:
  Races() {
    auto builtin = builtin_resources(Options{});
    EXPECT_TRUE(builtin.ok());
    resources_ = make_resource_set(*builtin, {}, 1);
    resource_ = resources_->find("", "v1", "configmaps");
  }

  Context context() {
    Context out;
    out.now = sim_.now();
    out.resource = resource_;
    out.resources = resources_;
    out.info.name_space = "default";
    out.info.name = "a";
    return out;
  }

  Result<> create(Context& context) {
    Write write(context, *resource_, Verb::create);
    write.make = [](const Value*) -> Result<Wanted> { return Wanted{config_map("a")}; };
    return objects_.run(write);
  }

  /// A write that changes what is there.
  Result<Value> change(Context& context, const std::function<void(Value&)>& change) {
    Write write(context, *resource_, Verb::patch);
    write.make = [&](const Value* existing) -> Result<Wanted> {
      Value changed = *existing;
      change(changed);
      return Wanted{std::move(changed)};
    };
    DIBS_CHECK(objects_.run(write));
    return write.written();
  }

  void write_behind(std::string_view value) {
    Context other = context();
    EXPECT_TRUE(change(other, [&](Value& map) { map.mut("data").set("behind", value); }).ok());
  }

  runtime::SimRuntime sim_;
  std::unique_ptr<store::Store> store_ = store::make_memory_store();
  AdmissionChain admission_;
  Objects objects_{sim_.runtime(), *store_, admission_};
  ResourceSetPtr resources_;
  ResourcePtr resource_;
};

TEST_F(Races, an_update_that_lost_one_is_made_again_from_the_new_state) {
  Context context = this->context();
  ASSERT_TRUE(create(context).ok());
  int calls = 0;

  auto written = change(context, [&](Value& map) {
    if (++calls == 1) write_behind("1");
    map.mut("data").set("mine", "2");
  });

  ASSERT_TRUE(written.ok());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(to_text((*written)["data"]), "{'behind':'1','mine':'2'}");
}

TEST_F(Races, an_update_that_loses_every_one_is_a_conflict) {
  Context context = this->context();
  ASSERT_TRUE(create(context).ok());
  int calls = 0;

  auto written = change(context, [&](Value& map) {
    write_behind(cat(++calls));
    map.mut("data").set("mine", "2");
  });

  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::conflict);
  EXPECT_EQ(calls, Write::kRaces);
}

TEST_F(Races, an_update_of_what_was_removed_meanwhile_is_not_found) {
  Context context = this->context();
  ASSERT_TRUE(create(context).ok());

  auto written = change(context, [&](Value& map) {
    Context other = this->context();
    Write removal(other, *resource_, Verb::remove);
    EXPECT_TRUE(objects_.run(removal).ok());
    map.mut("data").set("mine", "2");
  });

  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::not_found);
}

}  // namespace
}  // namespace dibs::server
