// ValidatingAdmissionPolicies of a whole server: what they see, whom they concern, what they
// answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::kPods;
using test::make_request;
using test::Reply;
using test::simple_pod;
using test::TestServer;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kGroup = "/apis/admissionregistration.k8s.io/v1/";

class AdmissionPolicies : public testing::Test {
 protected:
  AdmissionPolicies() { api.add_account("default"); }

  void make(std::string target, const Value& object) {
    Reply made = api.post(std::move(target), object);
    ASSERT_EQ(made.status, 201) << made.text;
  }

  /// A policy over `resources` ("configmaps,pods/status") with one validation, without a binding.
  Value policy(std::string_view resources, std::string_view expression,
               std::string_view more_spec = "{}") {
    Value rule = from_text("{'apiGroups':['*'],'apiVersions':['*'],'operations':['*']}");
    for (std::string_view resource : split(resources, ',')) rule.mut("resources").push(resource);
    Value spec = from_text(more_spec);
    spec.mut("matchConstraints").mut("resourceRules").push(rule);
    if (!expression.empty()) {
      spec.set("validations",
               Value::array({Value::object({{"expression", expression}, {"message", "no"}})}));
    }
    return Value::object({{"metadata", Value::object({{"name", "p"}})}, {"spec", spec}});
  }
  void add(const Value& policy) { make(cat(kGroup, "validatingadmissionpolicies"), policy); }
  /// Until changes of policies hold.
  void settle() { api.sim.advance(std::chrono::milliseconds(30)); }
  void change(std::string_view what, std::string_view patch) {
    Reply patched = api.patch(cat(kGroup, what), "merge", patch);
    EXPECT_EQ(patched.status, 200) << patched.text;
    settle();
  }
  void bind(std::string_view more_spec = "{}") {
    Value spec = from_text(more_spec);
    spec.set("policyName", "p");
    if (!spec.contains("validationActions")) spec.set("validationActions", Value::array({"Deny"}));
    make(cat(kGroup, "validatingadmissionpolicybindings"),
         Value::object({{"metadata", Value::object({{"name", "b"}})}, {"spec", spec}}));
    settle();
  }
  void forbid(std::string_view resources, std::string_view unless) {
    add(policy(resources, unless));
    bind();
  }
  /// What follows "denied request: ", or "" when it was not denied.
  static std::string denial(const Reply& reply) {
    std::string text = reply.message();
    auto at = text.find("denied request: ");
    return at == std::string::npos ? "" : text.substr(at + 16);
  }

  TestServer api;
};

TEST_F(AdmissionPolicies, refuse_with_reason_and_cause) {
  add(policy("configmaps", "object.metadata.name != 'bad'"));
  bind();

  EXPECT_EQ(api.post(kConfigMaps, config_map("good")).status, 201);
  Reply refused = api.post(kConfigMaps, config_map("bad"));

  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.reason(), "Invalid");
  std::string why = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no";
  EXPECT_EQ(refused.message(), cat("configmaps \"bad\" is forbidden: ", why));
  EXPECT_EQ(test::to_text(refused.body["details"]),
            test::to_text(
                Value::object({{"name", "bad"},
                               {"kind", "configmaps"},
                               {"causes", Value::array({Value::object({{"message", why}})})}})));
}

TEST_F(AdmissionPolicies, answer_with_the_code_of_the_reason) {
  for (auto [reason, code] : {std::pair("Forbidden", 403), std::pair("Invalid", 422),
                              std::pair("RequestEntityTooLarge", 413)}) {
    TestServer fresh;
    Value made = policy("configmaps", "false");
    made.mut("spec").mut("validations").mut(std::size_t{0}).set("reason", reason);
    fresh.post(cat(kGroup, "validatingadmissionpolicies"), made);
    fresh.post(cat(kGroup, "validatingadmissionpolicybindings"),
               from_text("{'metadata':{'name':'b'},'spec':{'policyName':'p',"
                         "'validationActions':['Deny']}}"));
    fresh.sim.advance(std::chrono::milliseconds(30));

    Reply refused = fresh.post(kConfigMaps, config_map("a"));

    EXPECT_EQ(refused.status, code);
    EXPECT_EQ(refused.reason(), reason);
  }
}

TEST_F(AdmissionPolicies, hold_a_moment_after_they_are_bound_and_no_longer) {
  auto status = [this] {
    return api.post(cat(kConfigMaps, "?dryRun=All"), config_map("a")).status;
  };
  add(policy("configmaps", "false"));
  EXPECT_EQ(status(), 201) << "no binding";
  bind();
  EXPECT_EQ(status(), 422);
  change("validatingadmissionpolicies/p", "{'spec':{'validations':[{'expression':'true'}]}}");
  EXPECT_EQ(status(), 201);
  change("validatingadmissionpolicies/p", "{'spec':{'validations':[{'expression':'false'}]}}");
  EXPECT_EQ(status(), 422);
  api.restart();
  EXPECT_EQ(status(), 422) << "after a restart";
  api.remove(cat(kGroup, "validatingadmissionpolicies/p"));
  EXPECT_EQ(status(), 422) << "not yet";
  settle();
  EXPECT_EQ(status(), 201);
}

TEST_F(AdmissionPolicies, warn_or_log_where_the_binding_says_so) {
  add(policy("configmaps", "false"));
  bind("{'validationActions':['Warn','Audit']}");

  Reply made = api.post(kConfigMaps, config_map("a"));

  EXPECT_EQ(made.status, 201);
  EXPECT_THAT(made.warnings(),
              ElementsAre("299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with "
                          "binding 'b': no\""));
}

TEST_F(AdmissionPolicies, see_both_objects_of_an_update_and_the_old_one_of_a_delete) {
  api.post(kConfigMaps, config_map("a", "{'k':'1'}"));
  forbid("configmaps",
         "request.operation == 'UPDATE' ? int(object.data.k) > int(oldObject.data.k) : "
         "request.operation != 'DELETE' || (object == null && oldObject.data.k == '3')");
  std::string target = cat(kConfigMaps, "/a");

  EXPECT_EQ(denial(api.patch(target, "merge", "{'data':{'k':'0'}}")), "no");
  EXPECT_EQ(denial(api.remove(target)), "no");
  EXPECT_EQ(api.patch(target, "merge", "{'data':{'k':'2'}}").status, 200);
  EXPECT_EQ(api.put(target, config_map("a", "{'k':'3'}")).status, 200);
  EXPECT_EQ(api.remove(target).status, 200);
}

TEST_F(AdmissionPolicies, know_the_request) {
  Value made = policy("configmaps", "false");
  made.mut("spec")
      .mut("validations")
      .mut(std::size_t{0})
      .set(
          "messageExpression",
          "request.operation + ' ' + request.resource.resource + ' ' + request.kind.kind + ' ' + "
          "request.requestResource.version + ' ' + request.namespace + '/' + request.name + ' ' + "
          "request.userInfo.username + ' ' + string(request.dryRun) + ' ' + request.options.kind + "
          "' ' + request.options.fieldManager + ' ' + string(has(request.subResource)) + ' ' + "
          "namespaceObject.metadata.name");
  add(made);
  bind();

  Reply refused = api.post(cat(kConfigMaps, "?dryRun=All&fieldManager=me"), config_map("a"));

  EXPECT_THAT(denial(refused),
              testing::MatchesRegex("CREATE configmaps ConfigMap v1 default/a .* true "
                                    "CreateOptions me false default"));
}

TEST_F(AdmissionPolicies, leave_themselves_alone) {
  forbid("*", "false");

  EXPECT_EQ(api.post(kConfigMaps, config_map("a")).status, 422);
  EXPECT_EQ(api.remove(cat(kGroup, "validatingadmissionpolicybindings/b")).status, 200);
  EXPECT_EQ(api.remove(cat(kGroup, "validatingadmissionpolicies/p")).status, 200);
}

TEST_F(AdmissionPolicies, distinguish_subresources) {
  api.run_pod("web");
  forbid("pods/status", "object.status.phase != 'Failed'");
  std::string target = cat(kPods, "/web");

  EXPECT_EQ(api.patch(target, "merge", "{'metadata':{'labels':{'a':'b'}}}").status, 200);
  Reply refused = api.patch(cat(target, "/status"), "merge", "{'status':{'phase':'Failed'}}");
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.message(),
            "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied "
            "request: no");
}

TEST_F(AdmissionPolicies, judge_a_scale_as_such) {
  make("/apis/apps/v1/namespaces/default/deployments",
       from_text("{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'a':'b'}},"
                 "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':[{'name':'c',"
                 "'image':'i'}]}}}}"));
  forbid("deployments/scale",
         "request.kind.kind == 'Scale' && object.kind == 'Scale' && oldObject.spec.replicas == 1 "
         "&& object.spec.replicas < 5");
  std::string target = "/apis/apps/v1/namespaces/default/deployments/d/scale";

  EXPECT_EQ(api.patch(target, "merge", "{'spec':{'replicas':7}}").status, 422);
  EXPECT_EQ(api.patch(target, "merge", "{'spec':{'replicas':3}}").status, 200);
}

TEST_F(AdmissionPolicies, judge_bindings_and_evictions_by_what_is_sent) {
  make(kPods, simple_pod("web"));
  forbid("pods,pods/binding,pods/eviction",
         "request.operation == 'CREATE' && request.subResource == 'binding' "
         "? object.target.name == 'good' : request.operation != 'DELETE' && "
         "object.kind == 'Eviction' && has(object.deleteOptions)");
  auto binding = [this](std::string_view node) {
    return api.post(cat(kPods, "/web/binding"),
                    Value::object({{"metadata", Value::object({{"name", "web"}})},
                                   {"target", Value::object({{"kind", "Node"}, {"name", node}})}}));
  };

  EXPECT_EQ(denial(binding("bad")), "no");
  EXPECT_EQ(binding("good").status, 201);
  EXPECT_EQ(denial(api.remove(cat(kPods, "/web"))), "no");
  std::string target = cat(kPods, "/web/eviction");
  EXPECT_EQ(denial(api.post(target, from_text("{'metadata':{'name':'web'}}"))), "no");
  EXPECT_EQ(api.post(target, from_text("{'metadata':{'name':'web'},'deleteOptions':{}}")).status,
            201)
      << "the deletion that follows is not asked about again";
}

TEST_F(AdmissionPolicies, judge_streams_and_tokens) {
  api.run_pod("web");
  forbid("pods/exec,pods/attach,serviceaccounts/token",
         "request.operation == 'CONNECT' ? object.kind == 'PodExecOptions' && 'ls' in "
         "object.command : object.spec.expirationSeconds < 1000");

  EXPECT_EQ(denial(api.post(cat(kPods, "/web/exec?command=rm&stdout=true"), Value())), "no");
  EXPECT_EQ(denial(api.post(cat(kPods, "/web/exec?command=ls&command=-l"), Value())), "");
  EXPECT_EQ(denial(api.post(cat(kPods, "/web/attach"), Value())), "no");
  std::string token = "/api/v1/namespaces/default/serviceaccounts/default/token";
  EXPECT_EQ(denial(api.post(token, from_text("{'spec':{'expirationSeconds':3600}}"))), "no");
  EXPECT_EQ(denial(api.post(token, from_text("{'spec':{'expirationSeconds':900}}"))), "");
}

TEST_F(AdmissionPolicies, select_by_namespace_and_treat_a_namespace_as_its_own) {
  api.add_namespace("dev");
  make("/api/v1/namespaces", from_text("{'metadata':{'name':'prod','labels':{'tier':'prod'}}}"));
  add(policy("configmaps,namespaces", "false"));
  bind("{'matchResources':{'namespaceSelector':{'matchLabels':{'tier':'prod'}}}}");

  EXPECT_EQ(api.post("/api/v1/namespaces/dev/configmaps", config_map("a")).status, 201);
  EXPECT_EQ(api.post("/api/v1/namespaces/prod/configmaps", config_map("a")).status, 422);
  EXPECT_EQ(api.remove("/api/v1/namespaces/dev").status, 200);
  EXPECT_EQ(api.remove("/api/v1/namespaces/prod").status, 422);
  EXPECT_EQ(denial(api.post("/api/v1/namespaces",
                            from_text("{'metadata':{'name':'x','labels':{'tier':'prod'}}}"))),
            "no");
}

TEST_F(AdmissionPolicies, use_the_parameters_that_the_binding_names) {
  auto limits = [](std::string_view name, std::string_view max) {
    return from_text(cat("{'metadata':{'name':'", name,
                         "','labels':{'kind':'limits'}},'data':{'max':'", max, "'}}"));
  };
  make(kConfigMaps, limits("loose", "3"));
  make(kConfigMaps, limits("tight", "1"));
  add(policy("configmaps", "size(object.data) <= int(params.data.max)",
             "{'paramKind':{'apiVersion':'v1','kind':'ConfigMap'}}"));
  bind("{'paramRef':{'name':'loose','namespace':'default','parameterNotFoundAction':'Deny'}}");
  auto post = [this](std::string_view data) {
    return denial(api.post(cat(kConfigMaps, "?dryRun=All"), config_map("a", data)));
  };
  auto refer = [this](std::string_view reference) {
    change("validatingadmissionpolicybindings/b", cat("{'spec':{'paramRef':", reference, "}}"));
  };

  EXPECT_EQ(post("{'a':'1','b':'2'}"), "");
  refer("{'name':'tight'}");
  EXPECT_EQ(post("{'a':'1','b':'2'}"), "no");
  refer("{'name':'tight','namespace':null}");
  EXPECT_EQ(post("{'a':'1','b':'2'}"), "no") << "from the namespace of the object";
  refer("{'name':null,'namespace':'default','selector':{'matchLabels':{'kind':'limits'}}}");
  EXPECT_EQ(post("{'a':'1'}"), "");
  EXPECT_EQ(post("{'a':'1','b':'2'}"), "no") << "each of them counts";
  refer("{'selector':{'matchLabels':{'kind':'none'}}}");
  EXPECT_EQ(post("{'a':'1'}"),
            "failed to configure binding: no params found for policy binding with `Deny` "
            "parameterNotFoundAction");
  refer("{'parameterNotFoundAction':'Allow'}");
  EXPECT_EQ(post("{'a':'1','b':'2','c':'3','d':'4'}"), "");
  refer("null");
  EXPECT_EQ(post("{'a':'1'}"),
            "expression 'size(object.data) <= int(params.data.max)' resulted in error: no such "
            "key: data")
      << "without a reference params is null";
}

TEST_F(AdmissionPolicies, tell_what_is_wrong_with_parameters) {
  add(policy("configmaps,nodes", "true",
             "{'paramKind':{'apiVersion':'example.com/v1','kind':'Limit'}}"));
  bind("{'paramRef':{'name':'x','parameterNotFoundAction':'Deny'}}");

  Reply refused = api.post(kConfigMaps, config_map("a"));
  EXPECT_EQ(refused.message(),
            "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed "
            "to configure policy: failed to find resource referenced by paramKind: "
            "'example.com/v1, Kind=Limit'");
  change("validatingadmissionpolicies/p",
         "{'spec':{'paramKind':{'apiVersion':'v1','kind':'ConfigMap'}}}");
  EXPECT_EQ(denial(api.post("/api/v1/nodes", from_text("{'metadata':{'name':'n'}}"))),
            "failed to configure binding: cannot use namespaced paramRef in policy binding that "
            "matches cluster-scoped resources");
  change("validatingadmissionpolicies/p", "{'spec':{'failurePolicy':'Ignore'}}");
  EXPECT_EQ(api.post("/api/v1/nodes", from_text("{'metadata':{'name':'n'}}")).status, 201);
}

TEST_F(AdmissionPolicies, see_the_version_that_their_rule_names) {
  Value made = policy("events", "", "{}");
  Value& spec = made.mut("spec");
  spec.set("matchConstraints",
           from_text("{'matchPolicy':'Equivalent','resourceRules':[{'apiGroups':['events.k8s.io'],"
                     "'apiVersions':['v1'],'operations':['CREATE'],'resources':['events']}]}"));
  spec.set("validations",
           Value::array({Value::object(
               {{"expression", "false"},
                {"messageExpression",
                 "object.apiVersion + ' ' + object.note + ' ' + request.resource.group + ' ' + "
                 "request.requestResource.version + request.requestResource.group"}})}));
  add(made);
  bind();
  Value event = from_text(
      "{'metadata':{'name':'e','namespace':'default'},'involvedObject':{'namespace':'default'},"
      "'message':'hello','reason':'r','type':'Normal'}");

  EXPECT_EQ(denial(api.post("/api/v1/namespaces/default/events", event)),
            "events.k8s.io/v1 hello events.k8s.io v1");
  change("validatingadmissionpolicies/p", "{'spec':{'matchConstraints':{'matchPolicy':'Exact'}}}");
  EXPECT_EQ(api.post("/api/v1/namespaces/default/events", event).status, 201);
}

TEST_F(AdmissionPolicies, ask_the_authorizer_about_the_requester) {
  make("/apis/rbac.authorization.k8s.io/v1/clusterroles",
       from_text("{'metadata':{'name':'writer'},'rules':[{'apiGroups':[''],'resources':"
                 "['configmaps'],'verbs':['create']}]}"));
  make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       from_text("{'metadata':{'name':'writer'},'roleRef':{'apiGroup':'rbac.authorization.k8s.io',"
                 "'kind':'ClusterRole','name':'writer'},'subjects':[{'kind':'User','name':'ann',"
                 "'apiGroup':'rbac.authorization.k8s.io'}]}"));
  forbid("configmaps",
         "object.metadata.name != 'special' || "
         "authorizer.requestResource.check('bless').allowed()");
  auto post = [this](std::string_view name, bool as_ann) {
    net::Request request = make_request("POST", kConfigMaps, json::write(config_map(name)));
    if (as_ann) request.headers.set("Impersonate-User", "ann");
    return api.send(std::move(request)).status;
  };

  EXPECT_EQ(post("plain", true), 201);
  EXPECT_EQ(post("special", true), 422);
  EXPECT_EQ(post("special", false), 201);
}

TEST_F(AdmissionPolicies, call_many_that_are_deleted_at_once_unknown) {
  api.post(kConfigMaps, config_map("a"));
  forbid("configmaps", "request.operation != 'DELETE' || has(request.name)");

  Reply refused = api.remove(kConfigMaps);

  EXPECT_THAT(refused.message(), HasSubstr("configmaps \"Unknown\" is forbidden"));
  EXPECT_EQ(api.remove(cat(kConfigMaps, "/a")).status, 200);
}

}  // namespace
}  // namespace dibs::server
