// Admission webhooks of a whole server: whom they concern, what they are told, what they answer.
// The transport is a fake that answers at once.
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
using test::Reply;
using test::simple_pod;
using test::TestServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kGroup = "/apis/admissionregistration.k8s.io/v1/";

/// Answers by the path of the URL; keeps the questions in order.
class FakeWebhooks : public WebhookTransport {
 public:
  using Answer = std::function<Result<net::Response>(const Value& request)>;

  WebhookReply post(const WebhookCall& call) override {
    calls.push_back(call);
    Value review = json::parse(call.body).value();
    asked.push_back(review["request"]);
    const std::string path = call.url.substr(call.url.rfind('/') + 1);
    auto found = answers.find(path);
    if (found == answers.end()) return {respond(review, from_text("{'allowed':true}")), {}};
    return {found->second(review), std::chrono::milliseconds(20)};
  }

  static Result<net::Response> respond(const Value& review, Value response) {
    if (!response.contains("uid")) response.set("uid", review["request"]["uid"]);
    net::Response out;
    out.body = json::write(Value::object({{"kind", "AdmissionReview"},
                                          {"apiVersion", review["apiVersion"]},
                                          {"response", std::move(response)}}));
    return out;
  }
  /// `response` as JSON with '.
  void answer(std::string path, std::string response) {
    answers[std::move(path)] = [response](const Value& review) {
      return respond(review, from_text(response));
    };
  }
  void patch(std::string path, std::string operations) {
    answers[std::move(path)] = [operations](const Value& review) {
      return respond(review,
                     Value::object({{"allowed", true},
                                    {"patchType", "JSONPatch"},
                                    {"patch", base64_encode(json::write(from_text(operations)))}}));
    };
  }
  void body(std::string path, int status, std::string text) {
    answers[std::move(path)] = [status, text](const Value&) {
      net::Response out;
      out.status = status;
      out.body = text;
      return out;
    };
  }

  std::map<std::string, Answer> answers;
  std::vector<WebhookCall> calls;
  std::vector<Value> asked;
};

Options with(std::shared_ptr<FakeWebhooks> hooks) {
  Options options;
  options.webhooks = std::move(hooks);
  return options;
}

class Webhooks : public testing::Test {
 protected:
  Webhooks() : hooks(std::make_shared<FakeWebhooks>()), api(with(hooks)) {
    api.add_account("default");
  }

  /// One webhook at https://hooks/<name>, about creates of configmaps unless `more` says otherwise.
  void add(std::string_view kind, std::string_view name, std::string_view more = "{}") {
    Value hook = from_text(
        "{'sideEffects':'None','admissionReviewVersions':['v1'],'rules':[{'apiGroups':['*'],"
        "'apiVersions':['*'],'resources':['configmaps'],'operations':['CREATE']}]}");
    hook.set("name", cat(name, ".example.com"));
    hook.mut("clientConfig").set("url", cat("https://hooks/", name));
    const Value changes = from_text(more);
    for (const auto& [key, value] : changes.members()) hook.set(key, value);
    Reply made = api.post(cat(kGroup, kind, "webhookconfigurations"),
                          Value::object({{"metadata", Value::object({{"name", name}})},
                                         {"webhooks", Value::array({hook})}}));
    ASSERT_EQ(made.status, 201) << made.text;
  }
  Reply create(std::string_view name = "a") { return api.post(kConfigMaps, config_map(name)); }
  std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const WebhookCall& call : hooks->calls)
      out.push_back(call.url.substr(call.url.rfind('/') + 1));
    return out;
  }

  std::shared_ptr<FakeWebhooks> hooks;
  TestServer api;
};

TEST_F(Webhooks, are_asked_about_what_will_be_stored) {
  add("validating", "v");

  Reply made = create();

  ASSERT_EQ(made.status, 201) << made.text;
  ASSERT_EQ(hooks->asked.size(), 1U);
  const Value& request = hooks->asked[0];
  EXPECT_EQ(request["object"]["metadata"]["uid"], made.body["metadata"]["uid"]);
  EXPECT_EQ(request["operation"].as_string(), "CREATE");
  EXPECT_EQ(request["kind"]["kind"].as_string(), "ConfigMap");
  EXPECT_EQ(request["namespace"].as_string(), "default");
  EXPECT_TRUE(request["oldObject"].is_null());
  EXPECT_EQ(request["dryRun"], Value(false));
}

TEST_F(Webhooks, refuse_in_their_own_words) {
  hooks->answer("v",
                "{'allowed':false,'status':{'code':402,'reason':'Broke','message':'pay first'},"
                "'warnings':['last one']}");
  add("validating", "v");

  Reply refused = create();

  EXPECT_EQ(refused.status, 402);
  EXPECT_EQ(refused.reason(), "Broke");
  EXPECT_EQ(refused.message(), "admission webhook \"v.example.com\" denied the request: pay first");
  EXPECT_FALSE(refused.body.contains("details"));
  EXPECT_THAT(refused.warnings(), ElementsAre("299 - \"last one\""));
}

TEST_F(Webhooks, refuse_with_400_where_their_status_is_no_refusal) {
  hooks->answer("v", "{'allowed':false,'status':{'code':200,'status':'Success'}}");
  add("validating", "v");

  Reply refused = create();

  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.message(),
            "admission webhook \"v.example.com\" denied the request without explanation");
}

TEST_F(Webhooks, fail_closed_or_open_as_they_say) {
  auto dead = [](const Value&) -> Result<net::Response> {
    return Error::unavailable("Post \"https://hooks/v?timeout=10s\": dial tcp: connection refused");
  };
  hooks->answers["v"] = dead;
  hooks->answers["w"] = dead;
  add("validating", "v");
  Reply refused = create();
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(refused.reason(), "InternalError");
  EXPECT_EQ(refused.message(),
            "Internal error occurred: failed calling webhook \"v.example.com\": failed to call "
            "webhook: Post \"https://hooks/v?timeout=10s\": dial tcp: connection refused");
  api.remove(cat(kGroup, "validatingwebhookconfigurations/v"));

  add("mutating", "w", "{'failurePolicy':'Ignore'}");

  EXPECT_EQ(create().status, 201);
  EXPECT_THAT(
      api.get("/metrics").text,
      HasSubstr(
          "apiserver_admission_webhook_fail_open_count{name=\"w.example.com\",type=\"admit\"} 1"));
}

TEST_F(Webhooks, mutate_in_order_each_seeing_what_came_before) {
  hooks->patch("b", "[{'op':'add','path':'/data','value':{'k':'b'}}]");
  hooks->patch("c", "[{'op':'replace','path':'/data/k','value':'c'}]");
  add("mutating", "c");
  add("mutating", "b");

  Reply made = create();

  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["data"]["k"].as_string(), "c");
  EXPECT_THAT(paths(), ElementsAre("b", "c"));
  EXPECT_EQ(hooks->asked[1]["object"]["data"]["k"].as_string(), "b");
}

TEST_F(Webhooks, are_asked_once_more_where_others_changed_the_object_after_them) {
  hooks->patch("b", "[{'op':'add','path':'/data','value':{'k':'b'}}]");
  add("mutating", "a", "{'reinvocationPolicy':'IfNeeded'}");
  add("mutating", "b", "{'reinvocationPolicy':'IfNeeded'}");
  add("mutating", "c");

  ASSERT_EQ(create().status, 201);

  EXPECT_THAT(paths(), ElementsAre("a", "b", "c", "a"));
  EXPECT_EQ(hooks->asked[3]["object"]["data"]["k"].as_string(), "b");
}

TEST_F(Webhooks, change_pods_that_the_server_then_completes) {
  hooks->patch("m",
               "[{'op':'add','path':'/spec/containers/1','value':{'name':'two','image':'i'}}]");
  add("mutating", "m",
      "{'rules':[{'apiGroups':[''],'apiVersions':['v1'],'resources':['pods'],"
      "'operations':['CREATE']}]}");

  Reply made = api.post(kPods, simple_pod("p"));

  ASSERT_EQ(made.status, 201) << made.text;
  const Value& added = made.body["spec"]["containers"][1];
  EXPECT_EQ(added["imagePullPolicy"].as_string(), "Always");
  EXPECT_EQ(added["volumeMounts"].size(), 1U);
  EXPECT_EQ(made.body["spec"]["volumes"].size(), 1U);
}

TEST_F(Webhooks, must_not_move_an_object_to_another_namespace) {
  hooks->patch("m", "[{'op':'replace','path':'/metadata/namespace','value':'kube-system'}]");
  add("mutating", "m");

  Reply refused = create();

  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.message(), HasSubstr("does not match the namespace"));
}

TEST_F(Webhooks, must_not_make_another_kind_of_it) {
  hooks->patch("m", "[{'op':'replace','path':'/kind','value':'Secret'}]");
  add("mutating", "m");

  EXPECT_EQ(create().status, 500);
}

TEST_F(Webhooks, whose_patch_does_not_apply_are_told_why) {
  hooks->patch("m", "[{'op':'remove','path':'/metadata/nothing'}]");
  add("mutating", "m");

  Reply refused = create();

  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(refused.message(),
            "Internal error occurred: error in remove for path: '/metadata/nothing': Unable to "
            "remove nonexistent key: nothing: missing value");
}

TEST_F(Webhooks, see_deletions_and_cannot_change_them) {
  ASSERT_EQ(create().status, 201);
  hooks->patch("m", "[{'op':'add','path':'/data','value':{}}]");
  add("mutating", "m",
      "{'rules':[{'apiGroups':[''],'apiVersions':['v1'],'resources':['configmaps'],"
      "'operations':['DELETE']}]}");

  Reply refused = api.remove(cat(kConfigMaps, "/a"));

  EXPECT_EQ(refused.status, 500);
  EXPECT_THAT(refused.message(),
              HasSubstr("admission webhook \"m.example.com\" attempted to modify the object, which "
                        "is not supported for this operation"));
  EXPECT_TRUE(hooks->asked[0]["object"].is_null());
  EXPECT_EQ(hooks->asked[0]["oldObject"]["metadata"]["name"].as_string(), "a");
}

TEST_F(Webhooks, change_the_number_of_a_scale) {
  ASSERT_EQ(
      api.post("/apis/apps/v1/namespaces/default/deployments",
               from_text("{'metadata':{'name':'d'},'spec':{'selector':{'matchLabels':{'a':'b'}},"
                         "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers':"
                         "[{'name':'c','image':'i'}]}}}}"))
          .status,
      201);
  hooks->patch("m", "[{'op':'replace','path':'/spec/replicas','value':7}]");
  add("mutating", "m",
      "{'rules':[{'apiGroups':['apps'],'apiVersions':['v1'],'resources':['deployments/scale'],"
      "'operations':['UPDATE']}]}");

  Reply scaled = api.patch("/apis/apps/v1/namespaces/default/deployments/d/scale", "merge",
                           "{\"spec\":{\"replicas\":3}}");

  ASSERT_EQ(scaled.status, 200) << scaled.text;
  EXPECT_EQ(hooks->asked[0]["object"]["spec"]["replicas"].as_int(), 3);
  EXPECT_EQ(scaled.body["spec"]["replicas"].as_int(), 7);
}

TEST_F(Webhooks, change_the_body_of_an_eviction) {
  api.run_pod("p");
  hooks->patch("m", "[{'op':'add','path':'/deleteOptions','value':{'dryRun':['All']}}]");
  add("mutating", "m",
      "{'rules':[{'apiGroups':[''],'apiVersions':['v1'],'resources':['pods/eviction'],"
      "'operations':['CREATE']}]}");

  Reply made = api.post(cat(kPods, "/p/eviction"), from_text("{'metadata':{'name':'p'}}"));

  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(hooks->asked[0]["kind"]["kind"].as_string(), "Eviction");
  EXPECT_FALSE(api.get(cat(kPods, "/p")).body["metadata"].contains("deletionTimestamp"));
}

TEST_F(Webhooks, are_not_asked_about_configurations) {
  hooks->answer("v", "{'allowed':false}");
  add("validating", "v",
      "{'rules':[{'apiGroups':['*'],'apiVersions':['*'],'resources':['*/*'],"
      "'operations':['*']}]}");
  EXPECT_EQ(create().status, 400);

  EXPECT_EQ(api.remove(cat(kGroup, "validatingwebhookconfigurations/v")).status, 200);

  EXPECT_EQ(create().status, 201);
}

TEST_F(Webhooks, without_rules_are_asked_about_nothing) {
  add("validating", "v", "{'rules':[]}");

  EXPECT_EQ(create().status, 201);

  EXPECT_THAT(hooks->calls, IsEmpty());
}

TEST_F(Webhooks, match_other_versions_by_policy) {
  const std::string rules =
      "'rules':[{'apiGroups':['resource.k8s.io'],'apiVersions':['v1beta1'],"
      "'resources':['deviceclasses'],'operations':['CREATE']}]";
  add("validating", "equivalent", cat("{", rules, "}"));
  add("validating", "exact", cat("{'matchPolicy':'Exact',", rules, "}"));

  Reply made = api.post("/apis/resource.k8s.io/v1/deviceclasses",
                        from_text("{'metadata':{'name':'d'},'spec':{}}"));

  ASSERT_EQ(made.status, 201) << made.text;
  ASSERT_THAT(paths(), ElementsAre("equivalent"));
  EXPECT_EQ(hooks->asked[0]["object"]["apiVersion"].as_string(), "resource.k8s.io/v1beta1");
  EXPECT_EQ(hooks->asked[0]["kind"]["version"].as_string(), "v1beta1");
  EXPECT_EQ(hooks->asked[0]["requestKind"]["version"].as_string(), "v1");
}

TEST_F(Webhooks, change_an_object_through_another_version_of_it) {
  hooks->patch("m",
               "[{'op':'replace','path':'/spec/devices/requests/0/deviceClassName',"
               "'value':'b'}]");
  add("mutating", "m",
      "{'rules':[{'apiGroups':['resource.k8s.io'],'apiVersions':['v1beta1'],"
      "'resources':['resourceclaims'],'operations':['CREATE']}]}");

  Reply made = api.post("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
                        from_text("{'metadata':{'name':'c'},'spec':{'devices':{'requests':[{"
                                  "'name':'r','exactly':{'deviceClassName':'a'}}]}}}"));

  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"].as_string(),
            "b");
}

TEST_F(Webhooks, that_see_another_version_keep_what_it_does_not_show) {
  const std::string slices = "/apis/resource.k8s.io/v1/resourceslices";
  Reply slice = api.post(
      slices, from_text("{'metadata':{'name':'s'},'spec':{'driver':'d.example.com','nodeName':'n',"
                        "'pool':{'name':'p','generation':1,'resourceSliceCount':1},'devices':[{"
                        "'name':'one'}]}}"));
  ASSERT_EQ(slice.status, 201) << slice.text;
  hooks->patch("m", "[{'op':'add','path':'/metadata/labels','value':{'by':'hook'}}]");
  add("mutating", "m",
      "{'rules':[{'apiGroups':['resource.k8s.io'],'apiVersions':['v1alpha2'],"
      "'resources':['resourceslices'],'operations':['*']}]}");
  slice.body.mut("spec").set("devices", from_text("[{'name':'one'},{'name':'two'}]"));

  Reply changed = api.put(cat(slices, "/s"), slice.body);
  Reply made = api.post(
      slices, from_text("{'metadata':{'name':'t'},'spec':{'driver':'d.example.com','nodeName':'n',"
                        "'pool':{'name':'q','generation':1,'resourceSliceCount':1},'devices':[{"
                        "'name':'one'}]}}"));

  ASSERT_EQ(changed.status, 200) << changed.text;
  EXPECT_EQ(changed.body["metadata"]["labels"]["by"].as_string(), "hook");
  EXPECT_EQ(changed.body["spec"]["devices"].size(), 2U);
  ASSERT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(made.body["metadata"]["labels"]["by"].as_string(), "hook");
  EXPECT_EQ(made.body["spec"]["devices"].size(), 1U) << made.text;
}

TEST_F(Webhooks, are_chosen_by_conditions) {
  hooks->answer("v", "{'allowed':false}");
  add("validating", "v",
      "{'matchConditions':[{'name':'c','expression':'object.data.k == string(1)'}]}");

  EXPECT_EQ(api.post(kConfigMaps, config_map("a", "{'k':'2'}")).status, 201);
  EXPECT_EQ(api.post(kConfigMaps, config_map("b", "{'k':'1'}")).status, 400);
  Reply unclear = api.post(kConfigMaps, config_map("c", "{'x':'1'}"));

  EXPECT_EQ(unclear.status, 403);
  EXPECT_THAT(unclear.message(), HasSubstr("resulted in error: no such key: k"));
  EXPECT_EQ(hooks->calls.size(), 1U);
}

TEST_F(Webhooks, with_conditions_that_fail_are_left_out_where_failures_are_ignored) {
  hooks->answer("v", "{'allowed':false}");
  add("validating", "v",
      "{'failurePolicy':'Ignore','matchConditions':[{'name':'c','expression':'object.data.k == "
      "string(1)'}]}");

  EXPECT_EQ(api.post(kConfigMaps, config_map("c", "{'x':'1'}")).status, 201);

  EXPECT_THAT(hooks->calls, IsEmpty());
}

TEST_F(Webhooks, tell_services_by_their_cluster_address) {
  Reply service = api.post(
      "/api/v1/namespaces/default/services",
      from_text("{'metadata':{'name':'s'},'spec':{'ports':[{'port':8443,'targetPort':1}]}}"));
  ASSERT_EQ(service.status, 201) << service.text;
  add("validating", "v",
      "{'clientConfig':{'service':{'name':'s','namespace':'default','path':'/p','port':8443}}}");

  ASSERT_EQ(create().status, 201);

  EXPECT_EQ(hooks->calls[0].url, "https://s.default.svc:8443/p");
  EXPECT_EQ(hooks->calls[0].at_host, service.body["spec"]["clusterIP"].as_string());
  EXPECT_EQ(hooks->calls[0].at_port, 8443);
}

TEST_F(Webhooks, of_services_that_cannot_be_reached_fail) {
  api.post("/api/v1/namespaces/default/services",
           from_text("{'metadata':{'name':'headless'},'spec':{'clusterIP':'None'}}"));
  add("validating", "v", "{'clientConfig':{'service':{'name':'headless','namespace':'default'}}}");
  EXPECT_THAT(create().message(), HasSubstr("cannot route to service with ClusterIP \"None\""));
  api.remove(cat(kGroup, "validatingwebhookconfigurations/v"));

  add("validating", "w", "{'clientConfig':{'service':{'name':'none','namespace':'default'}}}");

  EXPECT_THAT(create().message(),
              HasSubstr("failed to call webhook: Post "
                        "\"https://none.default.svc:443/?timeout=10s\": service \"none\" not "
                        "found"));
}

TEST_F(Webhooks, refuse_dry_runs_only_without_a_word_on_side_effects) {
  add("validating", "v", "{'sideEffects':'NoneOnDryRun'}");
  const std::string dry = cat(kConfigMaps, "?dryRun=All");
  EXPECT_EQ(api.post(dry, config_map("a")).status, 201);
  ASSERT_EQ(hooks->asked.size(), 1U);
  EXPECT_EQ(hooks->asked[0]["dryRun"], Value(true));

  // No more such are taken, but one may have been stored long ago.
  const store::Listing stored = api.store->range({.prefix = "/registry/"}).value();
  for (const auto& record : stored.records) {
    std::string bytes = *record->value;
    const std::string_view known = "\"NoneOnDryRun\"";
    if (const auto at = bytes.find(known); at != std::string::npos) {
      bytes.replace(at, known.size(), "\"Unknown\"");
      ASSERT_TRUE(api.store->commit({{std::string(record->key), share(bytes), std::nullopt}}).ok());
    }
  }
  const Reply refused = api.post(dry, config_map("a"));

  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.message(), "admission webhook \"v.example.com\" does not support dry run");
  EXPECT_EQ(hooks->asked.size(), 1U);
  EXPECT_EQ(create().status, 201);
  EXPECT_EQ(hooks->asked.size(), 2U);
}

TEST_F(Webhooks, speak_the_first_version_that_is_known) {
  add("validating", "v", "{'admissionReviewVersions':['v7','v1beta1','v1']}");

  ASSERT_EQ(create().status, 201);

  EXPECT_THAT(hooks->calls[0].body, HasSubstr("\"apiVersion\":\"admission.k8s.io/v1beta1\""));
}

TEST_F(Webhooks, that_talk_nonsense_fail_with_what_was_wrong) {
  const std::pair<std::string, std::string> kCases[] = {
      {"{", "couldn't get version/kind; json parse error: unexpected end of JSON input"},
      {"[]", "cannot unmarshal array into Go value"},
      {"", "0-length response with status code: 200"},
      {"{}", "received invalid webhook response: webhook response was absent"},
      {"{\"response\":7}",
       "json: cannot unmarshal number into Go struct field AdmissionReview.response of type "
       "v1.AdmissionResponse"},
      {"{\"response\":{\"uid\":\"x\",\"allowed\":true}}", "expected response.uid=\""},
  };
  add("validating", "v");
  for (const auto& [text, fault] : kCases) {
    hooks->body("v", 200, text);
    Reply refused = create();
    EXPECT_EQ(refused.status, 500);
    EXPECT_THAT(refused.message(), HasSubstr(fault));
  }
  hooks->body("v", 500, "broken");
  EXPECT_THAT(create().message(),
              HasSubstr("failed to call webhook: an error on the server (\"broken\") has "
                        "prevented the request from succeeding"));
  hooks->answer("v", "{'allowed':true,'patch':'W10=','patchType':'JSONPatch'}");
  EXPECT_THAT(create().message(), HasSubstr("validating webhook may not return response.patch"));
}

TEST_F(Webhooks, all_are_asked_and_the_first_refusal_is_told) {
  hooks->answer("a", "{'allowed':false,'status':{'message':'from a'}}");
  hooks->answer("b", "{'allowed':false,'status':{'message':'from b'}}");
  add("validating", "b");
  add("validating", "a");

  Reply refused = create();

  EXPECT_THAT(refused.message(), HasSubstr("from a"));
  EXPECT_THAT(paths(), ElementsAre("a", "b"));
}

TEST_F(Webhooks, may_be_more_than_anybody_may_wait_for_at_once) {
  Value all = Value::array();
  for (int i = 0; i < 300; ++i) {
    Value hook = from_text(
        "{'sideEffects':'None','admissionReviewVersions':['v1'],'clientConfig':{'url':"
        "'https://hooks/v'},'rules':[{'apiGroups':[''],'apiVersions':['v1'],"
        "'resources':['configmaps'],'operations':['CREATE']}]}");
    hook.set("name", cat("h", i, ".example.com"));
    all.push(std::move(hook));
  }
  ASSERT_EQ(api.post(cat(kGroup, "validatingwebhookconfigurations"),
                     Value::object({{"metadata", Value::object({{"name", "many"}})},
                                    {"webhooks", std::move(all)}}))
                .status,
            201);
  net::Request request = test::make_request("POST", kConfigMaps, json::write(config_map("a")));
  request.peer.address = "192.0.2.9:4711";

  const Reply made = api.send(request);

  EXPECT_EQ(made.status, 201) << made.text;
  EXPECT_EQ(hooks->calls.size(), 300U);
}

TEST_F(Webhooks, hold_after_a_restart_that_they_cannot_prevent) {
  hooks->answer("v", "{'allowed':false}");
  add("validating", "v",
      "{'rules':[{'apiGroups':['*'],'apiVersions':['*'],'resources':['*/*'],"
      "'operations':['*']}]}");

  api.restart();

  EXPECT_EQ(create().status, 400);
}

}  // namespace
}  // namespace dibs::server
