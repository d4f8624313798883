// CustomResourceDefinitions of a whole server: from the definition to its objects and back.
#include "server/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::condition_of;
using test::from_text;
using test::names_of;
using test::Reply;
using test::TestServer;
using test::to_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kDefinitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
constexpr const char* kThings = "/apis/e.com/v1/namespaces/default/things";

Value definition(std::string_view plural = "things", std::string_view kind = "Thing") {
  Value out = from_text(
      "{'apiVersion':'apiextensions.k8s.io/"
      "v1','kind':'CustomResourceDefinition','spec':{'group':'e.com',"
      "'scope':'Namespaced','versions':[{'name':'v1','served':true,'storage':true,'subresources':{'"
      "status':{},'scale':"
      "{'specReplicasPath':'.spec.replicas','statusReplicasPath':'.status.replicas'}},"
      "'additionalPrinterColumns':[{'name':'Size','type':'string','jsonPath':'.spec.size'}],"
      "'schema':{'openAPIV3Schema':{'type':'object','properties':{'spec':{'type':'object','"
      "properties':{"
      "'size':{'type':'string','enum':['s','m','l'],'default':'m'},'replicas':{'type':'integer','"
      "minimum':0}}},"
      "'status':{'type':'object','properties':{'replicas':{'type':'integer'}}}}}}}]}}");
  out.mut("metadata").set("name", cat(plural, ".e.com"));
  out.mut("spec").set("names", Value::object({{"plural", plural}, {"kind", kind}}));
  return out;
}

Value thing(std::string_view name, std::string_view spec = "{}") {
  Value out = from_text("{'apiVersion':'e.com/v1','kind':'Thing'}");
  out.mut("metadata").set("name", name);
  out.set("spec", from_text(spec));
  return out;
}

class DefinitionsTest : public testing::Test {
 protected:
  void define(const Value& what) {
    Reply made = api.post(kDefinitions, what);
    EXPECT_EQ(made.status, 201) << made.text;
    api.sim.run_until_idle();
  }
  Value get(std::string_view name) { return api.get(cat(kDefinitions, "/", name)).body; }

  TestServer api;
};

TEST_F(DefinitionsTest, nothing_is_served_without_a_definition) {
  EXPECT_EQ(api.get(kThings).status, 404);
}

TEST_F(DefinitionsTest, a_new_one_is_accepted_established_and_served) {
  define(definition());

  Value made = get("things.e.com");

  EXPECT_EQ(condition_of(made, "NamesAccepted")["status"].as_string(), "True");
  EXPECT_EQ(condition_of(made, "Established")["status"].as_string(), "True");
  EXPECT_EQ(made["status"]["acceptedNames"]["plural"].as_string(), "things");
  EXPECT_EQ(made["status"]["acceptedNames"]["listKind"].as_string(), "ThingList");
  EXPECT_EQ(to_text(made["status"]["storedVersions"]), "['v1']");
  EXPECT_EQ(api.get(kThings).status, 200);
  Reply group = api.get("/apis/e.com/v1");
  ASSERT_EQ(group.status, 200);
  std::vector<std::string> names;
  for (const Value& resource : group.body["resources"].items())
    names.push_back(resource["name"].str());
  EXPECT_THAT(names, ElementsAre("things", "things/status", "things/scale"));
}

TEST_F(DefinitionsTest, a_taken_name_is_refused_by_a_condition) {
  define(definition());

  define(definition("gadgets", "Thing"));

  Value made = get("gadgets.e.com");
  EXPECT_EQ(condition_of(made, "NamesAccepted")["status"].as_string(), "False");
  EXPECT_EQ(condition_of(made, "Established")["status"].as_string(), "False");
  EXPECT_EQ(api.get("/apis/e.com/v1/namespaces/default/gadgets").status, 404);
}

TEST_F(DefinitionsTest, a_name_that_becomes_free_goes_to_who_waits_for_it) {
  define(definition());
  define(definition("gadgets", "Thing"));
  Value waiting = get("gadgets.e.com");
  EXPECT_EQ(condition_of(waiting, "NamesAccepted")["reason"].as_string(), "ListKindConflict");
  EXPECT_EQ(condition_of(waiting, "NamesAccepted")["message"].as_string(),
            "\"ThingList\" is already in use");
  // What it can have it has.
  EXPECT_EQ(to_text(waiting["status"]["acceptedNames"]["plural"]), "'gadgets'");
  EXPECT_EQ(to_text(waiting["status"]["acceptedNames"]["kind"]), "''");

  api.remove(cat(kDefinitions, "/things.e.com"));
  api.sim.advance(std::chrono::seconds(1));

  Value made = get("gadgets.e.com");
  EXPECT_EQ(condition_of(made, "NamesAccepted")["status"].as_string(), "True");
  EXPECT_EQ(condition_of(made, "Established")["status"].as_string(), "True");
  EXPECT_EQ(api.get("/apis/e.com/v1/namespaces/default/gadgets").status, 200);
}

TEST_F(DefinitionsTest, nothing_is_made_while_the_definition_goes) {
  define(definition());
  Value held = thing("a");
  held.mut("metadata").set("finalizers", from_text("['e.com/x']"));
  api.post(kThings, held);
  api.remove(cat(kDefinitions, "/things.e.com"));
  api.sim.run_until_idle();

  Reply made = api.post(kThings, thing("b"));
  Reply applied =
      api.patch(cat(kThings, "/c?fieldManager=m"), "apply", "{apiVersion: e.com/v1, kind: Thing}");

  EXPECT_EQ(made.status, 403) << made.text;
  EXPECT_EQ(made.message(),
            "things.e.com \"b\" is forbidden: create not allowed while custom resource definition "
            "is terminating");
  EXPECT_EQ(applied.status, 403) << applied.text;
  EXPECT_EQ(api.patch(cat(kThings, "/a"), "merge", "{'spec':{'size':'l'}}").status, 200);
  EXPECT_EQ(condition_of(get("things.e.com"), "Terminating")["reason"].as_string(),
            "InstanceDeletionInProgress");
}

TEST_F(DefinitionsTest, watches_end_with_the_definition) {
  define(definition());
  api.post(kThings, thing("a"));
  auto stream = api.watch(cat(kThings, "?watch=1"));
  stream->take();

  api.remove(cat(kDefinitions, "/things.e.com"));
  api.sim.advance(std::chrono::seconds(1));

  EXPECT_THAT(stream->take_short(), ElementsAre("DELETED a"));
  EXPECT_TRUE(stream->finished());
}

TEST_F(DefinitionsTest, watches_end_with_a_change_of_the_definition) {
  define(definition());
  auto stream = api.watch(cat(kThings, "?watch=1"));
  auto others = api.watch("/api/v1/namespaces/default/configmaps?watch=1");

  api.patch(cat(kDefinitions, "/things.e.com"), "json",
            "[{'op':'remove','path':'/spec/versions/0/additionalPrinterColumns'}]");
  api.sim.run_until_idle();

  EXPECT_TRUE(stream->finished());
  EXPECT_FALSE(others->finished());
}

TEST_F(DefinitionsTest, rules_in_expressions_are_compiled_and_kept) {
  Value with_rules = definition();
  Value schema = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
  schema.mut("properties")
      .mut("spec")
      .set(
          "x-kubernetes-validations",
          from_text("[{'rule':'self.replicas < 5','message':'too many','fieldPath':'.replicas'}]"));
  with_rules.mut("spec")
      .mut("versions")
      .mut(std::size_t{0})
      .mut("schema")
      .set("openAPIV3Schema", schema);
  define(with_rules);

  EXPECT_EQ(api.post(kThings, thing("a", "{'replicas':4}")).status, 201);
  Reply broken = api.post(kThings, thing("b", "{'replicas':5}"));
  EXPECT_EQ(broken.status, 422);
  EXPECT_EQ(broken.message(),
            "Thing.e.com \"b\" is invalid: spec.replicas: Invalid value: too many");

  // What was there before the rule only warns.
  schema.mut("properties")
      .mut("spec")
      .set("x-kubernetes-validations", from_text("[{'rule':'self.replicas < 3'}]"));
  with_rules = get("things.e.com");
  with_rules.mut("spec")
      .mut("versions")
      .mut(std::size_t{0})
      .mut("schema")
      .set("openAPIV3Schema", schema);
  ASSERT_EQ(api.put(cat(kDefinitions, "/things.e.com"), with_rules).status, 200);
  api.sim.run_until_idle();
  Reply kept = api.patch(cat(kThings, "/a"), "merge", "{'metadata':{'labels':{'a':'b'}}}");
  EXPECT_EQ(kept.status, 200) << kept.text;
  EXPECT_THAT(kept.warnings(),
              ElementsAre("299 - \"spec: Invalid value: failed rule: self.replicas < 3\""));
}

TEST_F(DefinitionsTest, objects_are_pruned_defaulted_and_judged) {
  define(definition());

  Reply made = api.post(kThings, thing("a", "{'replicas':2,'odd':1}"));
  Reply bad = api.post(kThings, thing("b", "{'size':'xl'}"));
  Reply negative = api.post(kThings, thing("c", "{'replicas':-1}"));

  EXPECT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(to_text(made.body["spec"]["size"]), "'m'");
  EXPECT_FALSE(made.body["spec"].contains("odd"));
  EXPECT_THAT(made.warnings(), ElementsAre("299 - \"unknown field \\\"spec.odd\\\"\""));
  EXPECT_EQ(made.body["metadata"]["generation"].as_int(), 1);
  EXPECT_EQ(bad.status, 422);
  EXPECT_THAT(
      bad.message(),
      HasSubstr("spec.size: Unsupported value: \"xl\": supported values: \"s\", \"m\", \"l\""));
  EXPECT_EQ(negative.status, 422);
  EXPECT_THAT(negative.message(),
              HasSubstr("spec.replicas in body should be greater than or equal to 0"));
}

TEST_F(DefinitionsTest, the_status_has_its_own_door) {
  define(definition());
  api.post(kThings, thing("a", "{'replicas':2}"));
  const std::string target = cat(kThings, "/a");

  Reply status =
      api.patch(target + "/status", "merge", "{'spec':{'replicas':9},'status':{'replicas':1}}");
  Reply main = api.patch(target, "merge", "{'spec':{'replicas':3},'status':{'replicas':7}}");

  EXPECT_EQ(status.body["spec"]["replicas"].as_int(), 2);
  EXPECT_EQ(status.body["status"]["replicas"].as_int(), 1);
  EXPECT_EQ(status.body["metadata"]["generation"].as_int(), 1);
  EXPECT_EQ(main.body["spec"]["replicas"].as_int(), 3);
  EXPECT_EQ(main.body["status"]["replicas"].as_int(), 1);
  EXPECT_EQ(main.body["metadata"]["generation"].as_int(), 2);
}

TEST_F(DefinitionsTest, the_generation_counts_changes_of_all_but_metadata) {
  Value without_status = definition();
  without_status.mut("spec").mut("versions").mut(std::size_t{0}).erase("subresources");
  define(without_status);
  api.post(kThings, thing("a", "{'replicas':2}"));
  const auto after = [&](std::string_view patch) {
    return api.patch(cat(kThings, "/a"), "merge", patch).body["metadata"]["generation"].as_int();
  };
  EXPECT_EQ(after("{}"), 1);
  EXPECT_EQ(after("{'spec':{'replicas':2}}"), 1);
  EXPECT_EQ(after("{'metadata':{'labels':{'a':'b'}}}"), 1);
  EXPECT_EQ(after("{'status':{'replicas':1}}"), 2);  // there is no other door for it
  EXPECT_EQ(after("{'status':{'replicas':1}}"), 2);
}

TEST_F(DefinitionsTest, the_scale_reads_and_writes_replicas) {
  define(definition());
  api.post(kThings, thing("a", "{'replicas':2}"));
  const std::string target = cat(kThings, "/a/scale");

  Reply read = api.get(target);
  Reply scaled = api.patch(target, "merge", "{'spec':{'replicas':5}}");

  EXPECT_EQ(read.body["kind"].as_string(), "Scale");
  EXPECT_EQ(read.body["spec"]["replicas"].as_int(), 2);
  EXPECT_EQ(scaled.status, 200) << scaled.text;
  EXPECT_EQ(api.get(cat(kThings, "/a")).body["spec"]["replicas"].as_int(), 5);
}

// The scale of built-in kinds judges the number first; see Scale in subresources_test.cc.
TEST_F(DefinitionsTest, a_stale_scale_conflicts_before_its_number_is_judged) {
  define(definition());
  api.post(kThings, thing("a", "{'replicas':2}"));
  const std::string target = cat(kThings, "/a/scale");
  Reply scale = api.get(target);
  scale.body.mut("spec").set("replicas", -1);

  Reply invalid = api.put(target, scale.body);
  api.patch(cat(kThings, "/a"), "merge", "{'spec':{'size':'l'}}");
  Reply stale = api.put(target, scale.body);

  EXPECT_EQ(invalid.status, 422) << invalid.text;
  EXPECT_EQ(stale.status, 409) << stale.text;
}

TEST_F(DefinitionsTest, that_list_no_versions_are_refused_as_they_were_sent) {
  Value none = definition();
  none.mut("spec").set("versions", Value::array());
  EXPECT_THAT(api.post(kDefinitions, none).message(),
              HasSubstr("spec.versions: Invalid value: []: must have exactly one version"));
  none.mut("spec").erase("versions");
  EXPECT_THAT(api.post(kDefinitions, none).message(),
              HasSubstr("spec.versions: Invalid value: null: must have exactly one version"));
}

TEST_F(DefinitionsTest, a_body_is_judged_by_the_version_that_it_names) {
  define(definition());
  const auto post = [&](std::string_view api_version, std::string_view query) {
    Value object = thing("a", "{'size':'l'}");
    object.set("apiVersion", api_version);
    return api.post(cat(kThings, query), object);
  };

  Reply warned = post("e.com/v2", "");
  Reply strict = post("e.com/v2", "?fieldValidation=Strict");
  Reply foreign = post("f.com/v2", "?fieldValidation=Strict");

  EXPECT_EQ(warned.status, 400);
  EXPECT_EQ(warned.message(),
            "the API version in the data (e.com/v2) does not match the expected API version "
            "(e.com/v1)");
  EXPECT_THAT(warned.warnings(), ElementsAre("299 - \"unknown field \\\"spec\\\"\""));
  EXPECT_EQ(strict.message(),
            "Thing in version \"v2\" cannot be handled as a Thing: strict decoding error: unknown "
            "field \"spec\"");
  EXPECT_EQ(foreign.message(),
            "the API version in the data (f.com/v2) does not match the expected API version "
            "(e.com/v1)");
}

TEST_F(DefinitionsTest, a_strategic_patch_is_not_for_custom_objects) {
  define(definition());
  api.post(kThings, thing("a"));

  EXPECT_EQ(api.patch(cat(kThings, "/a"), "strategic", "{}").status, 415);
  EXPECT_EQ(api.patch(cat(kThings, "/a/scale"), "strategic", "{}").status, 415);
  EXPECT_EQ(api.patch(cat(kThings, "/a"), "merge", "{'spec':{'size':'l'}}").status, 200);
  EXPECT_EQ(api.patch(cat(kThings, "/a?fieldManager=m"), "apply",
                      "{apiVersion: e.com/v1, kind: Thing, spec: {replicas: 1}}")
                .status,
            200);
}

TEST_F(DefinitionsTest, objects_are_shown_in_columns_of_the_definition) {
  define(definition());
  api.post(kThings, thing("a", "{'size':'l'}"));

  Reply table = api.get(kThings, "application/json;as=Table;v=v1;g=meta.k8s.io");

  ASSERT_EQ(table.status, 200);
  EXPECT_EQ(table.body["columnDefinitions"][1]["name"].as_string(), "Size");
  EXPECT_EQ(to_text(table.body["rows"][0]["cells"]), "['a','l']");
}

TEST_F(DefinitionsTest, objects_are_watched_like_any) {
  define(definition());
  auto stream = api.watch(cat(kThings, "?watch=1"));

  api.post(kThings, thing("a"));
  api.patch(cat(kThings, "/a"), "merge", "{'spec':{'size':'l'}}");
  api.remove(cat(kThings, "/a"));

  EXPECT_THAT(stream->take_short(), ElementsAre("ADDED a", "MODIFIED a", "DELETED a"));
}

TEST_F(DefinitionsTest, a_change_of_the_schema_takes_effect) {
  define(definition());

  Reply changed = api.patch(
      cat(kDefinitions, "/things.e.com"), "json",
      "[{'op':'replace','path':'/spec/versions/0/schema/openAPIV3Schema/properties/spec/"
      "properties/size/enum','value':['xl']},{'op':'remove','path':'/spec/versions/0/schema/"
      "openAPIV3Schema/properties/spec/properties/size/default'}]");
  ASSERT_EQ(changed.status, 200) << changed.text;
  api.sim.run_until_idle();

  EXPECT_EQ(api.post(kThings, thing("a", "{'size':'xl'}")).status, 201);
  EXPECT_EQ(api.post(kThings, thing("b", "{'size':'m'}")).status, 422);
}

TEST_F(DefinitionsTest, versions_show_the_same_objects_under_their_own_name) {
  Value two = definition();
  Value version = two["spec"]["versions"][0];
  version.set("name", "v2");
  version.set("storage", false);
  two.mut("spec").mut("versions").push(version);
  define(two);
  api.post(kThings, thing("a", "{'replicas':2}"));

  Reply as_v2 = api.get("/apis/e.com/v2/namespaces/default/things/a");

  ASSERT_EQ(as_v2.status, 200) << as_v2.text;
  EXPECT_EQ(as_v2.body["apiVersion"].as_string(), "e.com/v2");
  EXPECT_EQ(as_v2.body["spec"]["replicas"].as_int(), 2);
}

TEST_F(DefinitionsTest, a_deleted_one_takes_its_objects_with_it) {
  define(definition());
  api.post(kThings, thing("a"));
  auto stream = api.watch(cat(kThings, "?watch=1"));
  stream->take();

  Reply removed = api.remove(cat(kDefinitions, "/things.e.com"));
  api.sim.advance(std::chrono::seconds(1));

  EXPECT_EQ(removed.status, 200);
  EXPECT_THAT(stream->take_short(), ElementsAre("DELETED a"));
  EXPECT_EQ(api.get(cat(kDefinitions, "/things.e.com")).status, 404);
  EXPECT_EQ(api.get(kThings).status, 404);
  EXPECT_EQ(api.store->count("/registry/e.com/"), 0U);
}

TEST_F(DefinitionsTest, a_deleted_one_waits_for_objects_that_are_held) {
  define(definition());
  Value held = thing("a");
  held.mut("metadata").set("finalizers", from_text("['e.com/x']"));
  api.post(kThings, held);

  api.remove(cat(kDefinitions, "/things.e.com"));
  api.sim.advance(std::chrono::seconds(5));
  Value waiting = get("things.e.com");
  EXPECT_EQ(condition_of(waiting, "Terminating")["status"].as_string(), "True");
  EXPECT_TRUE(api.get(cat(kThings, "/a")).body["metadata"].contains("deletionTimestamp"));

  EXPECT_EQ(api.patch(cat(kThings, "/a"), "merge", "{'metadata':{'finalizers':null}}").status, 200);
  api.sim.advance(std::chrono::seconds(5));
  EXPECT_EQ(api.get(cat(kDefinitions, "/things.e.com")).status, 404);
}

TEST_F(DefinitionsTest, a_restarted_server_serves_what_was_defined) {
  define(definition());
  api.post(kThings, thing("a"));

  api.restart();

  EXPECT_THAT(names_of(api.get(kThings).body), ElementsAre("a"));
}

TEST_F(DefinitionsTest, a_restarted_server_ends_what_was_being_deleted) {
  define(definition());
  Value held = thing("a");
  held.mut("metadata").set("finalizers", from_text("['e.com/x']"));
  api.post(kThings, held);
  api.remove(cat(kDefinitions, "/things.e.com"));

  api.restart();
  EXPECT_EQ(api.patch(cat(kThings, "/a"), "merge", "{'metadata':{'finalizers':null}}").status, 200);
  api.sim.advance(std::chrono::seconds(5));

  EXPECT_EQ(api.get(cat(kDefinitions, "/things.e.com")).status, 404);
}

TEST_F(DefinitionsTest, a_definition_that_makes_no_sense_is_refused) {
  struct {
    const char* patch;
    const char* part;
  } cases[] = {{"{'metadata':{'name':'other.e.com'}}", "metadata.name"},
               {"{'spec':{'scope':'Odd'}}", "spec.scope"},
               {"{'spec':{'versions':null}}", "spec.versions"},
               {"{'spec':{'names':{'plural':'Things'}}}", "spec.names.plural"}};
  for (const auto& one : cases) {
    Value bad = definition();
    const Value patch = from_text(one.patch);
    for (const auto& [key, value] : patch.members()) {
      for (const auto& [inner, given] : value.members()) {
        if (given.is_object()) {
          for (const auto& [leaf, text] : given.members()) bad.mut(key).mut(inner).set(leaf, text);
        } else {
          bad.mut(key).set(inner, given);
        }
      }
    }
    Reply made = api.post(kDefinitions, bad);
    EXPECT_EQ(made.status, 422) << one.patch;
    EXPECT_THAT(made.message(), HasSubstr(one.part));
  }
}

}  // namespace
}  // namespace dibs::server
