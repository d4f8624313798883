// The write path of a whole server: what a client sees of create, read, update and delete.
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
using test::kPods;
using test::names_of;
using test::Reply;
using test::simple_pod;
using test::strings_of;
using test::TestServer;
using test::to_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kOne = cat(kConfigMaps, "/a");

std::int64_t version_of(const Value& object) {
  return std::stoll(object["metadata"]["resourceVersion"].str());
}

class Writes : public testing::Test {
 protected:
  Value make(std::string_view name, std::string_view data = "{}") {
    Reply made = api.post(kConfigMaps, config_map(name, data));
    EXPECT_EQ(made.status, 201) << made.text;
    return made.body;
  }

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

TEST_F(Writes, create_of_what_exists_is_refused) {
  make("a");

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
  const Value made = make("a", "{'k':'v'}");
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
  Value object = make("a", "{'k':'v'}");
  const std::int64_t before = version_of(object);
  object.set("data", from_text("{'k':'w'}"));

  Reply updated = api.put(kOne, object);

  EXPECT_EQ(updated.status, 200);
  EXPECT_GT(version_of(updated.body), before);
  EXPECT_EQ(to_text(updated.body["data"]), "{'k':'w'}");
  EXPECT_EQ(updated.body["metadata"]["uid"], object["metadata"]["uid"]);
}

TEST_F(Writes, an_update_that_changes_nothing_keeps_the_version) {
  Value object = make("a", "{'k':'v'}");
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
  Value old = make("a", "{'k':'v'}");
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
  make("a", "{'k':'v'}");

  Reply put = api.put(kOne, config_map("a", "{'k':'w'}"));

  EXPECT_EQ(put.status, 200);
  EXPECT_EQ(to_text(put.body["data"]), "{'k':'w'}");
}

TEST_F(Writes, an_update_of_another_uid_conflicts) {
  Value object = make("a");
  object.mut("metadata").set("uid", "other");

  Reply put = api.put(kOne, object);

  EXPECT_EQ(put.status, 409);
  EXPECT_THAT(put.message(),
              HasSubstr("Precondition failed: UID in precondition: other, UID in object meta: "));
}

TEST_F(Writes, an_update_must_name_its_object) {
  Value object = make("a");
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

struct PatchCase {
  const char* type;
  const char* body;
  int status;
  const char* data;  // afterwards
};

class Patches : public testing::TestWithParam<PatchCase> {};

TEST_P(Patches, do_what_their_type_says) {
  TestServer api;
  api.post(kConfigMaps, config_map("a", "{'k':'v','x':'y'}"));

  Reply patched = api.patch(
      kOne + (std::string_view(GetParam().type) == "apply" ? "?fieldManager=m&force=true" : ""),
      GetParam().type, GetParam().body);

  EXPECT_EQ(patched.status, GetParam().status) << patched.text;
  EXPECT_EQ(api.get(kOne).body["data"], from_text(GetParam().data));
}

INSTANTIATE_TEST_SUITE_P(
    All, Patches,
    testing::Values(
        PatchCase{"json", "[{'op':'replace','path':'/data/k','value':'w'}]", 200,
                  "{'k':'w','x':'y'}"},
        PatchCase{"json",
                  "[{'op':'test','path':'/data/k','value':'v'},{'op':'remove','path':'/data/x'}]",
                  200, "{'k':'v'}"},
        PatchCase{"json",
                  "[{'op':'remove','path':'/data/x'},{'op':'test','path':'/data/k','value':'no'}]",
                  422, "{'k':'v','x':'y'}"},
        PatchCase{"json", "{}", 400, "{'k':'v','x':'y'}"},
        PatchCase{"json", "[{'op':'replace','path':'/metadata/name','value':'b'}]", 400,
                  "{'k':'v','x':'y'}"},
        PatchCase{"merge", "{'data':{'k':null,'n':'1'}}", 200, "{'n':'1','x':'y'}"},
        PatchCase{"merge", "[]", 400, "{'k':'v','x':'y'}"},
        PatchCase{"merge", "{'data':{'k':3}}", 422, "{'k':'v','x':'y'}"},
        PatchCase{"strategic", "{'data':{'$patch':'replace','n':'1'}}", 200, "{'n':'1'}"},
        PatchCase{"strategic", "{'data':{'k':null}}", 200, "{'x':'y'}"},
        PatchCase{"apply", "{apiVersion: v1, kind: ConfigMap, data: {k: w}}", 200,
                  "{'k':'w','x':'y'}"},
        PatchCase{"apply", "{apiVersion: v1, kind: Secret}", 400, "{'k':'v','x':'y'}"}));

TEST_F(Writes, a_patch_of_another_media_type_is_refused) {
  make("a");

  Reply patched = api.send(test::make_request("PATCH", kOne, "{}", "application/json"));

  EXPECT_EQ(patched.status, 415) << patched.text;
}

TEST_F(Writes, a_strategic_patch_merges_lists_by_their_key) {
  api.add_account("default");
  api.post(kPods, simple_pod("p"));

  Reply patched = api.patch(cat(kPods, "/p"), "strategic",
                            "{'spec':{'containers':[{'name':'c','image':'new'}]}}");

  ASSERT_EQ(patched.status, 200) << patched.text;
  EXPECT_EQ(patched.body["spec"]["containers"].size(), 1U);
  EXPECT_EQ(patched.body["spec"]["containers"][0]["image"].as_string(), "new");
  EXPECT_EQ(patched.body["spec"]["containers"][0]["terminationMessagePath"].as_string(),
            "/dev/termination-log");
}

TEST_F(Writes, apply_creates_and_remembers_who_applied) {
  Reply applied = api.patch(kOne + "?fieldManager=one", "apply",
                            "{apiVersion: v1, kind: ConfigMap, data: {k: v}}");

  EXPECT_EQ(applied.status, 201) << applied.text;
  const Value& entry = applied.body["metadata"]["managedFields"][0];
  EXPECT_EQ(entry["manager"].as_string(), "one");
  EXPECT_EQ(entry["operation"].as_string(), "Apply");
}

TEST_F(Writes, apply_conflicts_over_a_field_of_another_manager) {
  api.patch(kOne + "?fieldManager=one", "apply", "{apiVersion: v1, kind: ConfigMap, data: {k: v}}");
  const char* other = "{apiVersion: v1, kind: ConfigMap, data: {k: w}}";

  Reply refused = api.patch(kOne + "?fieldManager=two", "apply", other);
  Reply forced = api.patch(kOne + "?fieldManager=two&force=true", "apply", other);

  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.message(), "Apply failed with 1 conflict: conflict with \"one\": .data.k");
  EXPECT_EQ(forced.status, 200);
  EXPECT_EQ(to_text(forced.body["data"]), "{'k':'w'}");
}

TEST_F(Writes, apply_removes_what_it_no_longer_mentions) {
  api.patch(kOne + "?fieldManager=one", "apply",
            "{apiVersion: v1, kind: ConfigMap, data: {k: v, x: y}}");

  Reply applied = api.patch(kOne + "?fieldManager=one", "apply",
                            "{apiVersion: v1, kind: ConfigMap, data: {k: v}}");

  EXPECT_EQ(to_text(applied.body["data"]), "{'k':'v'}");
}

TEST_F(Writes, apply_needs_a_manager) {
  Reply applied = api.patch(kOne, "apply", "{apiVersion: v1, kind: ConfigMap}");

  EXPECT_EQ(applied.status, 422);
  EXPECT_THAT(applied.message(),
              HasSubstr("fieldManager: Required value: is required for apply patch"));
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

TEST_F(Writes, delete_says_what_it_removed) {
  Value object = make("a");

  Reply removed = api.remove(kOne);

  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(removed.body["kind"].as_string(), "Status");
  EXPECT_EQ(removed.body["status"].as_string(), "Success");
  EXPECT_EQ(removed.body["details"]["uid"], object["metadata"]["uid"]);
  EXPECT_EQ(api.get(kOne).status, 404);
  EXPECT_EQ(api.remove(kOne).status, 404);
}

TEST_F(Writes, delete_keeps_to_its_preconditions) {
  Value object = make("a");

  Reply uid = api.remove(kOne, "{'preconditions':{'uid':'other'}}");
  Reply version = api.remove(kOne, "{'preconditions':{'resourceVersion':'1'}}");
  Reply right =
      api.remove(kOne, cat("{'preconditions':{'uid':'", object["metadata"]["uid"].str(), "'}}"));

  EXPECT_EQ(uid.status, 409);
  EXPECT_THAT(uid.message(),
              HasSubstr("the UID in the precondition (other) does not match the UID in record ("));
  EXPECT_EQ(version.status, 409);
  EXPECT_THAT(version.message(),
              HasSubstr("the ResourceVersion in the precondition (1) does not match"));
  EXPECT_EQ(right.status, 200);
}

TEST_F(Writes, finalizers_hold_an_object_until_the_last_is_gone) {
  Value object = config_map("a");
  object.mut("metadata").set("finalizers", from_text("['e.com/one','e.com/two']"));
  api.post(kConfigMaps, object);

  Reply removed = api.remove(kOne);
  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(removed.body["kind"].as_string(), "ConfigMap");
  EXPECT_EQ(removed.body["metadata"]["deletionTimestamp"].as_string(),
            format_rfc3339(api.sim.now()));
  EXPECT_EQ(removed.body["metadata"]["deletionGracePeriodSeconds"].as_int(-1), 0);
  EXPECT_EQ(api.get(kOne).status, 200);

  EXPECT_EQ(api.patch(kOne, "merge", "{'metadata':{'finalizers':['e.com/two']}}").status, 200);
  EXPECT_EQ(api.get(kOne).status, 200);
  EXPECT_EQ(api.patch(kOne, "merge", "{'metadata':{'finalizers':null}}").status, 200);
  EXPECT_EQ(api.get(kOne).status, 404);
}

TEST_F(Writes, an_object_that_goes_away_takes_no_new_finalizers) {
  Value object = config_map("a");
  object.mut("metadata").set("finalizers", from_text("['e.com/one']"));
  api.post(kConfigMaps, object);
  api.remove(kOne);

  Reply patched = api.patch(kOne, "merge", "{'metadata':{'finalizers':['e.com/one','e.com/new']}}");

  EXPECT_EQ(patched.status, 422);
  EXPECT_THAT(patched.message(),
              HasSubstr("no new finalizers can be added if the object is being deleted"));
}

TEST_F(Writes, a_second_delete_of_a_held_object_changes_nothing) {
  Value object = config_map("a");
  object.mut("metadata").set("finalizers", from_text("['e.com/one']"));
  api.post(kConfigMaps, object);
  Reply first = api.remove(kOne);
  api.sim.advance(std::chrono::seconds(5));

  Reply second = api.remove(kOne);

  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, first.body);
}

TEST_F(Writes, propagation_is_a_finalizer_of_its_own) {
  struct {
    const char* options;
    const char* finalizer;
  } cases[] = {{"{'propagationPolicy':'Foreground'}", "foregroundDeletion"},
               {"{'propagationPolicy':'Orphan'}", "orphan"},
               {"{'orphanDependents':true}", "orphan"}};
  for (const auto& one : cases) {
    make("a");
    Reply removed = api.remove(kOne, one.options);
    EXPECT_THAT(strings_of(removed.body["metadata"]["finalizers"]), ElementsAre(one.finalizer))
        << one.options;
    EXPECT_EQ(api.patch(kOne, "merge", "{'metadata':{'finalizers':null}}").status, 200);
    EXPECT_EQ(api.get(kOne).status, 404);
  }
}

TEST_F(Writes, delete_options_that_make_no_sense_are_refused) {
  make("a");

  EXPECT_EQ(api.remove(kOne, "{'propagationPolicy':'Odd'}").status, 422);
  EXPECT_EQ(api.remove(kOne, "{'propagationPolicy':'Orphan','orphanDependents':true}").status, 422);
  EXPECT_EQ(api.remove(kOne, "{'dryRun':['Some']}").status, 422);
  EXPECT_EQ(api.get(kOne).status, 200);
}

class PodDeletion : public testing::Test {
 protected:
  PodDeletion() { api.add_account("default"); }
  const std::string target = cat(kPods, "/p");
  TestServer api;
};

TEST_F(PodDeletion, gives_a_running_pod_its_grace_period) {
  api.run_pod("p");

  Reply removed = api.remove(target);

  EXPECT_EQ(removed.status, 200);
  EXPECT_EQ(removed.body["metadata"]["deletionGracePeriodSeconds"].as_int(), 30);
  EXPECT_EQ(removed.body["metadata"]["deletionTimestamp"].as_string(),
            format_rfc3339(api.sim.now() + std::chrono::seconds(30)));
  EXPECT_EQ(api.get(target).status, 200);
}

TEST_F(PodDeletion, removes_a_pod_that_is_on_no_node_at_once) {
  api.post(kPods, simple_pod("p"));

  Reply removed = api.remove(target);

  EXPECT_EQ(removed.body["kind"].as_string(), "Pod");
  EXPECT_EQ(api.get(target).status, 404);
}

TEST_F(PodDeletion, removes_a_pod_that_has_ended_at_once) {
  api.run_pod("p");
  api.patch(target + "/status", "merge", "{'status':{'phase':'Succeeded'}}");

  api.remove(target);

  EXPECT_EQ(api.get(target).status, 404);
}

TEST_F(PodDeletion, removes_at_once_when_told_so) {
  api.run_pod("p");

  api.remove(target, "{'gracePeriodSeconds':0}");

  EXPECT_EQ(api.get(target).status, 404);
}

TEST_F(PodDeletion, may_be_hurried_but_not_delayed) {
  api.run_pod("p");
  api.remove(target);

  Reply longer = api.remove(target, "{'gracePeriodSeconds':60}");
  Reply again = api.remove(target);
  Reply shorter = api.remove(target, "{'gracePeriodSeconds':5}");

  EXPECT_EQ(longer.body["metadata"]["deletionGracePeriodSeconds"].as_int(), 30);
  EXPECT_EQ(again.body["metadata"]["deletionGracePeriodSeconds"].as_int(), 30);
  EXPECT_EQ(shorter.body["metadata"]["deletionGracePeriodSeconds"].as_int(), 5);
  EXPECT_EQ(shorter.body["metadata"]["deletionTimestamp"].as_string(),
            format_rfc3339(api.sim.now() + std::chrono::seconds(5)));
  EXPECT_EQ(api.get(target).status, 200);
  api.remove(target, "{'gracePeriodSeconds':0}");
  EXPECT_EQ(api.get(target).status, 404);
}

class Reads : public testing::Test {
 protected:
  Reads() {
    for (const char* name : {"a", "b", "c", "d", "e"}) {
      Value object = config_map(name);
      object.mut("metadata").mut("labels").set("odd", name[0] % 2 ? "yes" : "no");
      api.post(kConfigMaps, object);
    }
  }
  TestServer api;
};

TEST_F(Reads, list_is_in_order_of_names_at_one_version) {
  Reply list = api.get(kConfigMaps);

  EXPECT_EQ(list.body["kind"].as_string(), "ConfigMapList");
  EXPECT_THAT(names_of(list.body), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_EQ(version_of(list.body), api.store->revision());
  EXPECT_FALSE(list.body["items"][0].contains("kind"));
}

TEST_F(Reads, selectors_choose) {
  struct {
    const char* query;
    std::vector<std::string> names;
  } cases[] = {
      {"labelSelector=odd%3Dyes", {"a", "c", "e"}},
      {"labelSelector=odd%21%3Dyes", {"b", "d"}},
      {"labelSelector=none", {}},
      {"fieldSelector=metadata.name%3Db", {"b"}},
      {"fieldSelector=metadata.name%21%3Db,metadata.namespace%3Ddefault", {"a", "c", "d", "e"}},
      {"labelSelector=odd%3Dyes&fieldSelector=metadata.name%3Db", {}}};
  for (const auto& one : cases)
    EXPECT_EQ(names_of(api.get(cat(kConfigMaps, "?", one.query)).body), one.names) << one.query;
  EXPECT_EQ(api.get(cat(kConfigMaps, "?labelSelector=a%20b")).status, 400);
  EXPECT_EQ(api.get(cat(kConfigMaps, "?fieldSelector=data.x%3D1")).status, 400);
}

TEST_F(Reads, pages_show_the_state_of_the_first) {
  Reply first = api.get(cat(kConfigMaps, "?limit=2"));
  EXPECT_THAT(names_of(first.body), ElementsAre("a", "b"));
  EXPECT_EQ(first.body["metadata"]["remainingItemCount"].as_int(), 3);
  api.remove(cat(kConfigMaps, "/c"));
  api.post(kConfigMaps, config_map("bb"));

  Reply second =
      api.get(cat(kConfigMaps, "?limit=2&continue=", first.body["metadata"]["continue"].str()));
  Reply third =
      api.get(cat(kConfigMaps, "?limit=2&continue=", second.body["metadata"]["continue"].str()));

  EXPECT_THAT(names_of(second.body), ElementsAre("c", "d"));
  EXPECT_EQ(version_of(second.body), version_of(first.body));
  EXPECT_THAT(names_of(third.body), ElementsAre("e"));
  EXPECT_FALSE(third.body["metadata"].contains("continue"));
}

TEST_F(Reads, pages_with_a_selector_do_not_count_the_rest) {
  Reply first = api.get(cat(kConfigMaps, "?limit=2&labelSelector=odd%3Dyes"));
  Reply second = api.get(cat(kConfigMaps, "?limit=2&labelSelector=odd%3Dyes&continue=",
                             first.body["metadata"]["continue"].str()));

  EXPECT_THAT(names_of(first.body), ElementsAre("a", "c"));
  EXPECT_FALSE(first.body["metadata"].contains("remainingItemCount"));
  EXPECT_THAT(names_of(second.body), ElementsAre("e"));
}

TEST_F(Reads, a_page_of_a_forgotten_state_is_gone_and_tells_how_to_go_on) {
  Reply first = api.get(cat(kConfigMaps, "?limit=2"));
  api.post(kConfigMaps, config_map("bb"));
  ASSERT_TRUE(api.store->compact(api.store->revision()).ok());

  Reply second =
      api.get(cat(kConfigMaps, "?limit=2&continue=", first.body["metadata"]["continue"].str()));

  EXPECT_EQ(second.status, 410);
  EXPECT_EQ(second.reason(), "Expired");
}

TEST_F(Reads, an_exact_version_shows_the_past) {
  const std::string before = api.get(kConfigMaps).body["metadata"]["resourceVersion"].str();
  api.remove(cat(kConfigMaps, "/a"));

  Reply past = api.get(cat(kConfigMaps, "?resourceVersionMatch=Exact&resourceVersion=", before));
  Reply not_older =
      api.get(cat(kConfigMaps, "?resourceVersionMatch=NotOlderThan&resourceVersion=", before));

  EXPECT_THAT(names_of(past.body), ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_THAT(names_of(not_older.body), ElementsAre("b", "c", "d", "e"));
}

TEST_F(Reads, a_version_of_the_future_times_out) {
  const std::string future = cat(api.store->revision() + 100);

  EXPECT_EQ(api.get(cat(kConfigMaps, "?resourceVersion=", future)).status, 504);
  EXPECT_EQ(api.get(cat(kOne, "?resourceVersion=", future)).status, 504);
}

TEST_F(Reads, come_in_the_form_asked_for) {
  constexpr const char* kTable = "application/json;as=Table;v=v1;g=meta.k8s.io";

  Reply table = api.get(kConfigMaps, kTable);
  Reply metadata = api.get(kOne, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
  Reply yaml = api.get(kOne, "application/yaml");

  EXPECT_EQ(table.body["kind"].as_string(), "Table");
  EXPECT_EQ(table.body["rows"].size(), 5U);
  EXPECT_EQ(table.body["rows"][0]["cells"][0].as_string(), "a");
  EXPECT_EQ(metadata.body["kind"].as_string(), "PartialObjectMetadata");
  EXPECT_EQ(metadata.body["metadata"]["name"].as_string(), "a");
  EXPECT_FALSE(metadata.body.contains("data"));
  EXPECT_THAT(yaml.text, HasSubstr("kind: ConfigMap\n"));
  EXPECT_EQ(yaml.headers.get("Content-Type"), "application/yaml");
}

TEST_F(Reads, a_collection_is_deleted_by_its_selector) {
  Reply removed =
      api.send(test::make_request("DELETE", cat(kConfigMaps, "?labelSelector=odd%3Dyes")));

  EXPECT_EQ(removed.status, 200);
  EXPECT_THAT(names_of(removed.body), ElementsAre("a", "c", "e"));
  EXPECT_THAT(names_of(api.get(kConfigMaps).body), ElementsAre("b", "d"));
}

TEST_F(Reads, what_is_not_served_is_not_found) {
  struct {
    const char* method;
    const char* target;
    int status;
  } cases[] = {{"GET", "/api/v1/oddities", 404},
               {"GET", "/apis/odd.io/v1/things", 404},
               {"GET", "/api/v1/namespaces/default/nodes", 404},
               {"GET", "/api/v1/namespaces/default/configmaps/a/odd", 404},
               {"POST", "/api/v1/configmaps", 405},
               {"PUT", "/api/v1/namespaces/default/configmaps", 405},
               {"DELETE", "/api/v1/configmaps", 405},
               {"POST", "/api/v1/namespaces/default/configmaps/a", 405}};
  for (const auto& one : cases) {
    EXPECT_EQ(api.send(test::make_request(one.method, one.target)).status, one.status)
        << one.method << " " << one.target;
  }
}

TEST(Senders, without_rights_are_refused) {
  TestServer api;
  net::Request request = test::make_request("GET", kConfigMaps);
  request.peer.common_name = "nobody";
  request.peer.organizations.clear();

  Reply refused = api.send(request);

  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in API "
            "group \"\" in the namespace "
            "\"default\"");
}

TEST(Senders, are_turned_away_by_a_closed_server) {
  TestServer api;
  api.server->close();

  EXPECT_EQ(api.get(kConfigMaps).status, 503);
}

TEST(Restart, keeps_objects_and_versions) {
  TestServer api;
  Reply made = api.post(kConfigMaps, config_map("a"));
  const std::int64_t before = api.store->revision();

  api.restart();

  EXPECT_EQ(api.get(kOne).body, made.body);
  EXPECT_EQ(api.store->revision(), before) << "what is there is not written again";
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
    return out;
  }

  void write_behind(std::string_view value) {
    Context other = context();
    auto written = objects_.update(other, *resource_, "default", "a", UpdateKind::patch, false,
                                   [&](const Value* existing) -> Result<Value> {
                                     Value changed = *existing;
                                     changed.mut("data").set("behind", value);
                                     return changed;
                                   });
    EXPECT_TRUE(written.ok());
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
  ASSERT_TRUE(objects_.create(context, *resource_, "default", config_map("a")).ok());
  int calls = 0;

  auto written = objects_.update(context, *resource_, "default", "a", UpdateKind::patch, false,
                                 [&](const Value* existing) -> Result<Value> {
                                   Value changed = *existing;
                                   if (++calls == 1) write_behind("1");
                                   changed.mut("data").set("mine", "2");
                                   return changed;
                                 });

  ASSERT_TRUE(written.ok());
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(to_text(written->object["data"]), "{'behind':'1','mine':'2'}");
}

TEST_F(Races, an_update_that_loses_every_one_is_a_conflict) {
  Context context = this->context();
  ASSERT_TRUE(objects_.create(context, *resource_, "default", config_map("a")).ok());
  int calls = 0;

  auto written = objects_.update(context, *resource_, "default", "a", UpdateKind::patch, false,
                                 [&](const Value* existing) -> Result<Value> {
                                   Value changed = *existing;
                                   write_behind(cat(++calls));
                                   changed.mut("data").set("mine", "2");
                                   return changed;
                                 });

  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::conflict);
}

TEST_F(Races, an_update_of_what_was_removed_meanwhile_is_not_found) {
  Context context = this->context();
  ASSERT_TRUE(objects_.create(context, *resource_, "default", config_map("a")).ok());

  auto written =
      objects_.update(context, *resource_, "default", "a", UpdateKind::patch, false,
                      [&](const Value* existing) -> Result<Value> {
                        Context other = this->context();
                        EXPECT_TRUE(objects_.remove(other, *resource_, "default", "a", {}).ok());
                        Value changed = *existing;
                        changed.mut("data").set("mine", "2");
                        return changed;
                      });

  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().code(), Code::not_found);
}

}  // namespace
}  // namespace dibs::server
