// MutatingAdmissionPolicies of a whole server: whom they change, in which order, and what they
// answer when they cannot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "json/parse.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::make_request;
using test::Reply;
using test::TestServer;
using testing::HasSubstr;

constexpr std::string_view kGroup = "/apis/admissionregistration.k8s.io/v1/";

class MutatingPolicies : public testing::Test {
 protected:
  Reply add_policy(std::string_view name, std::string_view type, std::string_view expression,
                   std::string_view more_spec = "{}", std::string_view resources = "configmaps") {
    Value spec = from_text(more_spec);
    if (!spec.contains("matchConstraints")) {
      Value rule = from_text("{'apiGroups':['*'],'apiVersions':['*'],'operations':['*']}");
      for (std::string_view resource : split(resources, ',')) rule.mut("resources").push(resource);
      spec.mut("matchConstraints").mut("resourceRules").push(rule);
    }
    if (!spec.contains("reinvocationPolicy")) spec.set("reinvocationPolicy", "Never");
    spec.mut("mutations")
        .push(Value::object({{"patchType", type},
                             {type == "JSONPatch" ? "jsonPatch" : "applyConfiguration",
                              Value::object({{"expression", expression}})}}));
    return api.post(cat(kGroup, "mutatingadmissionpolicies"),
                    Value::object({{"metadata", Value::object({{"name", name}})}, {"spec", spec}}));
  }
  void bind(std::string_view name, std::string_view more_spec = "{}") {
    Value spec = from_text(more_spec);
    spec.set("policyName", name);
    Reply made = api.post(
        cat(kGroup, "mutatingadmissionpolicybindings"),
        Value::object({{"metadata", Value::object({{"name", cat("b-", name)}})}, {"spec", spec}}));
    ASSERT_EQ(made.status, 201) << made.text;
    api.sim.advance(std::chrono::milliseconds(30));
  }
  void add(std::string_view name, std::string_view type, std::string_view expression,
           std::string_view more_spec = "{}", std::string_view resources = "configmaps") {
    Reply made = add_policy(name, type, expression, more_spec, resources);
    ASSERT_EQ(made.status, 201) << made.text;
    bind(name);
  }
  void label(std::string_view name, std::string_view key, std::string_view value,
             std::string_view more_spec = "{}") {
    add(name, "ApplyConfiguration",
        cat("Object{metadata: Object.metadata{labels: {'", key, "': ", value, "}}}"), more_spec);
  }
  /// "key=value " of each by its key, or the refusal.
  static std::string labels_in(const Reply& made) {
    if (made.status != 201) return made.message();
    std::map<std::string, std::string> sorted;
    for (const auto& [key, value] : made.body["metadata"]["labels"].members())
      sorted[std::string(key)] = value.str();
    std::string out;
    for (const auto& [key, value] : sorted) append(out, key, "=", value, " ");
    return out;
  }
  std::string labels_of(std::string_view name) {
    return labels_in(api.post(kConfigMaps, config_map(name)));
  }

  TestServer api;
};

TEST_F(MutatingPolicies, change_what_is_written) {
  label("p", "made", "request.operation");
  Reply made = api.post(kConfigMaps, config_map("a"));
  EXPECT_EQ(made.body["metadata"]["labels"]["made"].as_string(), "CREATE") << made.text;
  Reply patched = api.patch(cat(kConfigMaps, "/a"), "merge", "{'data':{'x':'y'}}");
  EXPECT_EQ(patched.body["metadata"]["labels"]["made"].as_string(), "UPDATE") << patched.text;
  EXPECT_EQ(api.get(cat(kConfigMaps, "/a")).body["metadata"]["labels"]["made"].as_string(),
            "UPDATE");
}

TEST_F(MutatingPolicies, change_nothing_in_a_dry_run) {
  label("p", "made", "string(request.dryRun)");
  Reply made = api.post(cat(kConfigMaps, "?dryRun=All"), config_map("a"));
  EXPECT_EQ(made.body["metadata"]["labels"]["made"].as_string(), "true");
  EXPECT_EQ(api.get(cat(kConfigMaps, "/a")).status, 404);
}

TEST_F(MutatingPolicies, are_asked_about_what_those_before_them_made) {
  label("p1", "a", "'1'");
  label("p2", "b", "object.metadata.labels.a + '2'");
  EXPECT_EQ(labels_of("x"), "a=1 b=12 ");
}

TEST_F(MutatingPolicies, make_all_their_mutations_in_order) {
  ASSERT_EQ(add_policy("p", "JSONPatch",
                       "[JSONPatch{op: 'add', path: '/data/n', value: object.data.n + 'b'}]",
                       "{'mutations':[{'patchType':'ApplyConfiguration','applyConfiguration':"
                       "{'expression':'Object{data: {\\'n\\': \\'a\\'}}'}}]}")
                .status,
            201);
  bind("p");
  EXPECT_EQ(test::to_text(api.post(kConfigMaps, config_map("x")).body["data"]), "{'n':'ab'}");
}

TEST_F(MutatingPolicies, ask_again_who_wants_to_see_what_came_after_him) {
  label("p1", "seen",
        "has(object.metadata.labels) && 'late' in object.metadata.labels ? 'yes' : 'no'",
        "{'reinvocationPolicy':'IfNeeded'}");
  label("p2", "late", "'1'");
  EXPECT_EQ(labels_of("x"), "late=1 seen=yes ");
}

TEST_F(MutatingPolicies, ask_others_once) {
  label("p1", "seen",
        "has(object.metadata.labels) && 'late' in object.metadata.labels ? 'yes' : 'no'");
  label("p2", "late", "'1'");
  EXPECT_EQ(labels_of("x"), "late=1 seen=no ");
}

TEST_F(MutatingPolicies, concern_only_what_conditions_and_bindings_select) {
  ASSERT_EQ(add_policy("p", "ApplyConfiguration",
                       "Object{metadata: Object.metadata{labels: {'made': 'yes'}}}",
                       "{'matchConditions':[{'name':'odd','expression':"
                       "'object.metadata.name.startsWith(\\\"odd\\\")'}]}")
                .status,
            201);
  bind("p",
       "{'matchResources':{'objectSelector':{'matchExpressions':[{'key':'skip','operator':"
       "'DoesNotExist'}]}}}");
  EXPECT_EQ(labels_of("even"), "");
  EXPECT_EQ(labels_of("odd"), "made=yes ");
  Value skipped = config_map("odd-2");
  skipped.mut("metadata").mut("labels").set("skip", "1");
  EXPECT_EQ(test::to_text(api.post(kConfigMaps, skipped).body["metadata"]["labels"]),
            "{'skip':'1'}");
}

TEST_F(MutatingPolicies, take_parameters) {
  api.post(kConfigMaps, from_text("{'metadata':{'name':'params'},'data':{'team':'red'}}"));
  ASSERT_EQ(add_policy("p", "ApplyConfiguration",
                       "Object{metadata: Object.metadata{labels: {'team': params.data.team}}}",
                       "{'paramKind':{'apiVersion':'v1','kind':'ConfigMap'}}")
                .status,
            201);
  bind("p", "{'paramRef':{'name':'params','parameterNotFoundAction':'Deny'}}");
  EXPECT_EQ(labels_of("x"), "team=red ");
  api.remove(cat(kConfigMaps, "/params"));
  EXPECT_EQ(labels_of("y"),
            "policy 'p' with binding 'b-p' denied request: failed to configure binding: no params "
            "found for policy binding with `Deny` parameterNotFoundAction");
}

TEST_F(MutatingPolicies, refuse_what_they_cannot_change) {
  label("p", "made", "object.data.nope");
  Reply refused = api.post(kConfigMaps, config_map("x"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.reason(), "Invalid");
  const std::string why =
      "policy 'p' with binding 'b-p' denied request: expression 'Object{metadata: "
      "Object.metadata{labels: {'made': object.data.nope}}}' resulted in error: no such key: ";
  EXPECT_THAT(refused.message(), HasSubstr(why));
  EXPECT_THAT(refused.body["details"]["causes"][0]["message"].str(), HasSubstr(why));
  EXPECT_EQ(refused.body["details"]["name"].as_string(), "x");
}

TEST_F(MutatingPolicies, pass_by_where_failures_are_ignored) {
  label("p", "made", "object.data.nope", "{'failurePolicy':'Ignore'}");
  EXPECT_EQ(labels_of("x"), "");
}

TEST_F(MutatingPolicies, refuse_operations_that_make_something_unknown) {
  add("p", "JSONPatch", "[JSONPatch{op: 'add', path: '/nope', value: 1}]",
      "{'failurePolicy':'Ignore'}");
  Reply refused = api.post(kConfigMaps, config_map("x"));
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(refused.message(),
            "Internal error occurred: strict decoding error: unknown field \"nope\"");
}

TEST_F(MutatingPolicies, are_judged_when_they_are_written) {
  EXPECT_THAT(add_policy("p", "ApplyConfiguration", " Object.spec{} ").message(),
              HasSubstr("spec.mutations[0].applyConfiguration.expression: Invalid value: "
                        "\"Object.spec{}\": must evaluate to Object but got Object.spec"));
  EXPECT_THAT(add_policy("p", "JSONPatch", "[JSONPatch{op: 1}]").message(),
              HasSubstr("spec.mutations[0].jsonPatch.expression: Invalid value: "
                        "\"[JSONPatch{op: 1}]\": compilation failed: ERROR: <input>:1:12: expected "
                        "type of field 'op' is 'string' but provided type is 'int'"));
  EXPECT_THAT(add_policy("p", "ApplyConfiguration", "variables.x").message(),
              HasSubstr("undefined field 'x'"));
}

TEST_F(MutatingPolicies, are_not_asked_about_policies_nor_removals) {
  add("p", "ApplyConfiguration", "Object{nope: 1}", "{}", "*");
  EXPECT_EQ(api.post(kConfigMaps, config_map("x")).status, 403);
  EXPECT_EQ(api.remove(cat(kGroup, "mutatingadmissionpolicybindings/b-p")).status, 200);
}

TEST_F(MutatingPolicies, change_custom_objects) {
  api.post(
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      from_text("{'metadata':{'name':'shops.example.com'},'spec':{'group':'example.com','scope':"
                "'Namespaced','names':{'plural':'shops','singular':'shop','kind':'Shop',"
                "'listKind':'ShopList'},'versions':[{'name':'v1','served':true,'storage':true,"
                "'schema':{'openAPIV3Schema':{'type':'object','properties':{'spec':{'type':"
                "'object','properties':{'size':{'type':'integer'},'names':{'type':'array',"
                "'items':{'type':'string'}}}}}}}}]}}"));
  add("p", "ApplyConfiguration", "Object{spec: Object.spec{size: object.spec.size + 1}}", "{}",
      "shops");
  constexpr const char* kShops = "/apis/example.com/v1/namespaces/default/shops";
  const auto shop = [](std::string_view name) {
    return from_text(cat("{'apiVersion':'example.com/v1','kind':'Shop','metadata':{'name':'", name,
                         "'},'spec':{'size':1}}"));
  };
  Reply made = api.post(kShops, shop("a"));
  EXPECT_EQ(made.body["spec"]["size"].as_int(), 2) << made.text;
  add("q", "ApplyConfiguration", "Object{spec: Object.spec{names: ['x']}}", "{}", "shops");
  EXPECT_THAT(api.post(kShops, shop("b")).message(),
              HasSubstr("may not mutate atomic arrays, maps or structs: .spec.names"));
}

}  // namespace
}  // namespace dibs::server
