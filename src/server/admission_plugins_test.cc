// The admission plugins of a whole server, one behaviour each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/admission_for_test.h"

namespace dibs::server {
namespace {

using json::Value;
using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::kPods;
using test::Reply;
using test::simple_pod;
using test::strings_of;
using test::to_text;
using testing::ElementsAre;
using testing::HasSubstr;

class NamespaceLifecycle : public AdmissionTest {
 protected:
  void end_namespace() {
    api.add_namespace("n");
    Reply removed = api.remove("/api/v1/namespaces/n");
    EXPECT_EQ(removed.status, 200) << removed.text;
    EXPECT_EQ(removed.body["status"]["phase"].as_string(), "Terminating");
  }
};

TEST_F(NamespaceLifecycle, nothing_is_made_where_there_is_no_namespace) {
  Reply made = api.post("/api/v1/namespaces/none/configmaps", config_map("a"));

  EXPECT_EQ(made.status, 404);
  EXPECT_EQ(made.message(), "namespaces \"none\" not found");
}

TEST_F(NamespaceLifecycle, nothing_is_made_where_the_namespace_ends) {
  end_namespace();

  Reply made = api.post("/api/v1/namespaces/n/configmaps", config_map("a"));

  EXPECT_EQ(made.status, 403);
  EXPECT_EQ(made.message(),
            "configmaps \"a\" is forbidden: unable to create new content in namespace n because it "
            "is being terminated");
  EXPECT_EQ(made.body["details"]["causes"][0]["reason"].as_string(), "NamespaceTerminating");
}

TEST_F(NamespaceLifecycle, what_is_there_may_still_change_and_go) {
  api.add_namespace("n");
  api.post("/api/v1/namespaces/n/configmaps", config_map("a"));
  api.remove("/api/v1/namespaces/n");

  EXPECT_EQ(api.patch("/api/v1/namespaces/n/configmaps/a", "merge", "{'data':{'k':'v'}}").status,
            200);
  EXPECT_EQ(api.remove("/api/v1/namespaces/n/configmaps/a").status, 200);
}

TEST_F(NamespaceLifecycle, the_first_namespaces_stay) {
  for (const char* name : {"default", "kube-system", "kube-public"}) {
    Reply removed = api.remove(cat("/api/v1/namespaces/", name));
    EXPECT_EQ(removed.status, 403) << name;
    EXPECT_EQ(removed.message(),
              cat("namespaces \"", name, "\" is forbidden: this namespace may not be deleted"));
  }
}

TEST_F(NamespaceLifecycle, a_namespace_goes_when_its_finalizer_does) {
  end_namespace();
  Value object = api.get("/api/v1/namespaces/n").body;
  EXPECT_THAT(strings_of(object["spec"]["finalizers"]), ElementsAre("kubernetes"));
  object.mut("spec").erase("finalizers");

  EXPECT_EQ(api.put("/api/v1/namespaces/n/finalize", object).status, 200);

  EXPECT_EQ(api.get("/api/v1/namespaces/n").status, 404);
}

class ServiceAccountPlugin : public AdmissionTest {};

TEST_F(ServiceAccountPlugin, gives_a_pod_the_default_account_and_its_token) {
  Value pod = make_pod(simple_pod("p"));

  EXPECT_EQ(pod["spec"]["serviceAccountName"].as_string(), "default");
  EXPECT_EQ(pod["spec"]["serviceAccount"].as_string(), "default");
  const Value& volume = pod["spec"]["volumes"][0];
  EXPECT_THAT(volume["name"].str(), HasSubstr("kube-api-access-"));
  EXPECT_EQ(volume["projected"]["sources"].size(), 3U);
  const Value& mount = pod["spec"]["containers"][0]["volumeMounts"][0];
  EXPECT_EQ(mount["name"], volume["name"]);
  EXPECT_EQ(mount["mountPath"].as_string(), "/var/run/secrets/kubernetes.io/serviceaccount");
  EXPECT_TRUE(mount["readOnly"].as_bool());
}

TEST_F(ServiceAccountPlugin, refuses_an_account_that_does_not_exist) {
  Reply made = api.post(kPods, simple_pod("p", "{'serviceAccountName':'robot'}"));

  EXPECT_EQ(made.status, 403);
  EXPECT_EQ(made.message(),
            "pods \"p\" is forbidden: error looking up service account default/robot: "
            "serviceaccount \"robot\" not found");
}

TEST_F(ServiceAccountPlugin, waits_for_the_account_that_a_new_namespace_gets) {
  const Value fresh = Value::object({{"metadata", Value::object({{"name", "fresh"}})}});
  ASSERT_EQ(api.post("/api/v1/namespaces", fresh).status, 201);
  const std::string pods = "/api/v1/namespaces/fresh/pods";
  EXPECT_EQ(api.post(pods, simple_pod("p")).status, 0) << "answered before there was an account";
  api.add_account("fresh");
  api.sim.advance(std::chrono::milliseconds(60));
  EXPECT_EQ(api.get(pods + "/p").status, 200);
}

TEST_F(ServiceAccountPlugin, waits_no_longer_than_a_second) {
  const Value fresh = Value::object({{"metadata", Value::object({{"name", "fresh"}})}});
  ASSERT_EQ(api.post("/api/v1/namespaces", fresh).status, 201);
  const std::string pods = "/api/v1/namespaces/fresh/pods";
  EXPECT_EQ(api.post(pods, simple_pod("p")).status, 0);
  api.sim.advance(std::chrono::milliseconds(1100));
  api.add_account("fresh");
  api.sim.advance(std::chrono::seconds(1));
  EXPECT_EQ(api.get(pods + "/p").status, 404);
}

TEST_F(ServiceAccountPlugin, mounts_no_token_when_told_so) {
  api.add_account("default", "quiet");
  EXPECT_EQ(api.patch("/api/v1/namespaces/default/serviceaccounts/quiet", "merge",
                      "{'automountServiceAccountToken':false}")
                .status,
            200);

  Value by_pod = make_pod(simple_pod("a", "{'automountServiceAccountToken':false}"));
  Value by_account = make_pod(simple_pod("b", "{'serviceAccountName':'quiet'}"));
  Value by_pod_again = make_pod(
      simple_pod("c", "{'serviceAccountName':'quiet','automountServiceAccountToken':true}"));

  EXPECT_TRUE(by_pod["spec"]["volumes"].empty());
  EXPECT_TRUE(by_account["spec"]["volumes"].empty());
  EXPECT_EQ(by_pod_again["spec"]["volumes"].size(), 1U) << "the pod has the last word";
}

TEST_F(ServiceAccountPlugin, leaves_a_mount_at_its_place_alone) {
  Value pod = simple_pod("p", "{'volumes':[{'name':'v','emptyDir':{}}]}");
  pod.mut("spec")
      .mut("containers")
      .mut(0)
      .set("volumeMounts",
           from_text("[{'name':'v','mountPath':'/var/run/secrets/kubernetes.io/serviceaccount'}]"));

  Value made = make_pod(pod);

  EXPECT_EQ(made["spec"]["volumes"].size(), 1U);
  EXPECT_EQ(made["spec"]["containers"][0]["volumeMounts"].size(), 1U);
}

TEST_F(ServiceAccountPlugin, hands_on_the_pull_secrets_of_the_account) {
  EXPECT_EQ(api.patch("/api/v1/namespaces/default/serviceaccounts/default", "merge",
                      "{'imagePullSecrets':[{'name':'s'}]}")
                .status,
            200);

  EXPECT_EQ(to_text(make_pod(simple_pod("a"))["spec"]["imagePullSecrets"]), "[{'name':'s'}]");
  EXPECT_EQ(to_text(make_pod(simple_pod(
                "b", "{'imagePullSecrets':[{'name':'own'}]}"))["spec"]["imagePullSecrets"]),
            "[{'name':'own'}]");
}

class PriorityPlugin : public AdmissionTest {
 protected:
  PriorityPlugin() {
    make("/apis/scheduling.k8s.io/v1/priorityclasses",
         "{'apiVersion':'scheduling.k8s.io/"
         "v1','kind':'PriorityClass','metadata':{'name':'high'},'value':1000,"
         "'preemptionPolicy':'Never'}");
  }
};

TEST_F(PriorityPlugin, is_zero_without_a_class) {
  Value pod = make_pod(simple_pod("p"));

  EXPECT_EQ(pod["spec"]["priority"].as_int(-1), 0);
  EXPECT_EQ(pod["spec"]["preemptionPolicy"].as_string(), "PreemptLowerPriority");
}

TEST_F(PriorityPlugin, is_the_number_of_the_class) {
  Value pod = make_pod(simple_pod("p", "{'priorityClassName':'high'}"));

  EXPECT_EQ(pod["spec"]["priority"].as_int(), 1000);
  EXPECT_EQ(pod["spec"]["preemptionPolicy"].as_string(), "Never");
}

TEST_F(PriorityPlugin, is_that_of_the_default_class_for_who_names_none) {
  make("/apis/scheduling.k8s.io/v1/priorityclasses",
       "{'apiVersion':'scheduling.k8s.io/"
       "v1','kind':'PriorityClass','metadata':{'name':'usual'},'value':5,"
       "'globalDefault':true}");

  Value pod = make_pod(simple_pod("p"));

  EXPECT_EQ(pod["spec"]["priority"].as_int(), 5);
  EXPECT_EQ(pod["spec"]["priorityClassName"].as_string(), "usual");
}

TEST_F(PriorityPlugin, is_nobody_elses_to_write) {
  struct {
    const char* spec;
    const char* part;
  } cases[] = {
      {"{'priorityClassName':'none'}", "no PriorityClass with name none was found"},
      {"{'priority':7}",
       "the integer value of priority (7) must not be provided in pod spec; priority admission "
       "controller computed 0 from the given PriorityClass name"},
      {"{'priorityClassName':'high','preemptionPolicy':'PreemptLowerPriority'}",
       "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided"}};
  for (const auto& one : cases) {
    Reply made = api.post(kPods, simple_pod("p", one.spec));
    EXPECT_EQ(made.status, 403) << one.spec;
    EXPECT_THAT(made.message(), HasSubstr(one.part));
  }
  EXPECT_EQ(api.post(kPods, simple_pod("p", "{'priority':0}")).status, 201)
      << "the right number is no harm";
}

TEST_F(PriorityPlugin, stays_when_the_pod_is_written_without_it) {
  Value pod = make_pod(simple_pod("p", "{'priorityClassName':'high'}"));
  pod.mut("spec").erase("priority");

  Reply updated = api.put(cat(kPods, "/p"), pod);

  EXPECT_EQ(updated.status, 200) << updated.text;
  EXPECT_EQ(updated.body["spec"]["priority"].as_int(), 1000);
}

class TolerationsPlugin : public AdmissionTest {};

TEST_F(TolerationsPlugin, lets_pods_outlive_a_short_trouble_of_their_node) {
  struct {
    const char* tolerations;
    std::vector<std::string> added;
  } cases[] = {
      {"[]", {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}},
      {"[{'key':'node.kubernetes.io/"
       "not-ready','operator':'Exists','effect':'NoExecute','tolerationSeconds':5}]",
       {"node.kubernetes.io/unreachable"}},
      {"[{'key':'node.kubernetes.io/not-ready','operator':'Exists','effect':'NoSchedule'}]",
       {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}},
      {"[{'operator':'Exists'}]", {}},
  };
  int number = 0;
  for (const auto& one : cases) {
    Value given = from_text(one.tolerations);
    Value pod = simple_pod(cat("p", ++number));
    pod.mut("spec").set("tolerations", given);
    const Value made = make_pod(pod);
    std::vector<std::string> added;
    for (std::size_t i = given.size(); i < made["spec"]["tolerations"].size(); ++i) {
      const Value& toleration = made["spec"]["tolerations"][i];
      added.push_back(toleration["key"].str());
      EXPECT_EQ(toleration["effect"].as_string(), "NoExecute");
      EXPECT_EQ(toleration["tolerationSeconds"].as_int(), 300);
    }
    EXPECT_EQ(added, one.added) << one.tolerations;
  }
}

class QuotaPlugin : public AdmissionTest {
 protected:
  const std::string target = "/api/v1/namespaces/default/resourcequotas/q";

  void set_quota(std::string_view hard, std::string_view used) {
    Value quota = from_text("{'apiVersion':'v1','kind':'ResourceQuota','metadata':{'name':'q'}}");
    quota.mut("spec").set("hard", from_text(hard));
    Reply made = api.post("/api/v1/namespaces/default/resourcequotas", quota);
    EXPECT_EQ(made.status, 201) << made.text;
    made.body.mut("status").set("hard", from_text(hard));
    made.body.mut("status").set("used", from_text(used));
    EXPECT_EQ(api.put(target + "/status", made.body).status, 200);
  }
  std::string used() { return to_text(api.get(target).body["status"]["used"]); }
};

TEST_F(QuotaPlugin, charges_what_is_made) {
  set_quota("{'configmaps':'2'}", "{'configmaps':'0'}");

  EXPECT_EQ(api.post(kConfigMaps, config_map("a")).status, 201);

  EXPECT_EQ(used(), "{'configmaps':'1'}");
}

TEST_F(QuotaPlugin, refuses_what_is_too_much) {
  set_quota("{'configmaps':'1'}", "{'configmaps':'0'}");
  api.post(kConfigMaps, config_map("a"));

  Reply refused = api.post(kConfigMaps, config_map("b"));

  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.message(),
            "configmaps \"b\" is forbidden: exceeded quota: q, requested: configmaps=1, used: "
            "configmaps=1, limited: "
            "configmaps=1");
  EXPECT_EQ(used(), "{'configmaps':'1'}");
}

TEST_F(QuotaPlugin, counts_what_pods_ask_for) {
  set_quota("{'pods':'5','requests.cpu':'1'}", "{'pods':'0','requests.cpu':'0'}");
  Value pod = simple_pod("a");
  pod.mut("spec")
      .mut("containers")
      .mut(0)
      .set("resources", from_text("{'requests':{'cpu':'700m'}}"));
  EXPECT_EQ(api.post(kPods, pod).status, 201);
  EXPECT_EQ(used(), "{'pods':'1','requests.cpu':'700m'}");
  pod.mut("metadata").set("name", "b");

  Reply refused = api.post(kPods, pod);
  Reply silent = api.post(kPods, simple_pod("c"));

  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.message(),
              HasSubstr("exceeded quota: q, requested: requests.cpu=700m, used: requests.cpu=700m, "
                        "limited: requests.cpu=1"));
  EXPECT_EQ(silent.status, 403);
  EXPECT_THAT(silent.message(), HasSubstr("failed quota: q: must specify requests.cpu"));
}

TEST_F(QuotaPlugin, charges_nothing_for_what_is_not_stored) {
  set_quota("{'configmaps':'5'}", "{'configmaps':'0'}");
  api.post(kConfigMaps, config_map("a"));

  EXPECT_EQ(api.post(cat(kConfigMaps, "?dryRun=All"), config_map("b")).status, 201);
  EXPECT_EQ(api.post(kConfigMaps, config_map("A_b")).status, 422);
  EXPECT_EQ(api.post(kConfigMaps, config_map("a")).status, 409);

  EXPECT_EQ(used(), "{'configmaps':'1'}");
}

TEST_F(QuotaPlugin, waits_until_the_quota_has_been_counted) {
  Value quota = from_text(
      "{'apiVersion':'v1','kind':'ResourceQuota','metadata':{'name':'q'},'spec':{'hard':{'"
      "configmaps':'0'}}}");
  ASSERT_EQ(api.post("/api/v1/namespaces/default/resourcequotas", quota).status, 201);

  EXPECT_EQ(api.post(kConfigMaps, config_map("a")).status, 201);
}

class OtherPlugins : public AdmissionTest {};

TEST_F(OtherPlugins, limit_ranges_fill_in_and_bound) {
  make("/api/v1/namespaces/default/limitranges",
       "{'apiVersion':'v1','kind':'LimitRange','metadata':{'name':'l'},'spec':{'limits':[{'type':'"
       "Container',"
       "'default':{'cpu':'500m'},'defaultRequest':{'cpu':'100m'},'max':{'cpu':'1'}}]}}");

  Value pod = make_pod(simple_pod("a"));
  Value large = simple_pod("b");
  large.mut("spec").mut("containers").mut(0).set("resources", from_text("{'limits':{'cpu':'2'}}"));
  Reply refused = api.post(kPods, large);

  EXPECT_EQ(to_text(pod["spec"]["containers"][0]["resources"]),
            "{'limits':{'cpu':'500m'},'requests':{'cpu':'100m'}}");
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.message(), HasSubstr("maximum cpu usage per Container is 1, but limit is 2"));
}

TEST_F(OtherPlugins, runtime_classes_add_what_they_ask_for) {
  make("/apis/node.k8s.io/v1/runtimeclasses",
       "{'apiVersion':'node.k8s.io/"
       "v1','kind':'RuntimeClass','metadata':{'name':'vm'},'handler':'vm','overhead':"
       "{'podFixed':{'cpu':'250m'}},'scheduling':{'nodeSelector':{'vm':'yes'}}}");

  Value pod = make_pod(simple_pod("a", "{'runtimeClassName':'vm'}"));
  Reply unknown = api.post(kPods, simple_pod("b", "{'runtimeClassName':'none'}"));
  Reply against =
      api.post(kPods, simple_pod("c", "{'runtimeClassName':'vm','nodeSelector':{'vm':'no'}}"));

  EXPECT_EQ(to_text(pod["spec"]["overhead"]), "{'cpu':'250m'}");
  EXPECT_EQ(to_text(pod["spec"]["nodeSelector"]), "{'vm':'yes'}");
  EXPECT_EQ(unknown.status, 403);
  EXPECT_THAT(unknown.message(), HasSubstr("pod rejected: RuntimeClass \"none\" not found"));
  EXPECT_EQ(against.status, 403);
}

TEST_F(OtherPlugins, claims_of_volumes_are_held_and_get_the_default_class) {
  make("/apis/storage.k8s.io/v1/storageclasses",
       "{'apiVersion':'storage.k8s.io/"
       "v1','kind':'StorageClass','metadata':{'name':'fast','annotations':"
       "{'storageclass.kubernetes.io/is-default-class':'true'}},'provisioner':'e.com/p'}");

  Reply claim = api.post(
      "/api/v1/namespaces/default/persistentvolumeclaims",
      from_text("{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'c'},'spec':{"
                "'accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}"));

  ASSERT_EQ(claim.status, 201) << claim.text;
  EXPECT_EQ(claim.body["spec"]["storageClassName"].as_string(), "fast");
  EXPECT_THAT(strings_of(claim.body["metadata"]["finalizers"]),
              ElementsAre("kubernetes.io/pvc-protection"));
}

TEST_F(OtherPlugins, only_claims_whose_class_says_so_grow) {
  for (const char* name : {"rigid", "elastic"}) {
    make("/apis/storage.k8s.io/v1/storageclasses",
         cat("{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'", name,
             "'},'provisioner':'e.com/p','allowVolumeExpansion':",
             name[0] == 'e' ? "true" : "false", "}"));
    make("/api/v1/namespaces/default/persistentvolumeclaims",
         cat("{'apiVersion':'v1','kind':'PersistentVolumeClaim','metadata':{'name':'", name,
             "'},'spec':{'storageClassName':'", name,
             "','accessModes':['ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}"));
  }
  const auto grow = [this](const std::string& name) {
    return api.patch("/api/v1/namespaces/default/persistentvolumeclaims/" + name,
                     "application/merge-patch+json",
                     R"({"spec":{"resources":{"requests":{"storage":"2Gi"}}}})");
  };
  const auto bind = [this](const std::string& name) {
    return api.patch("/api/v1/namespaces/default/persistentvolumeclaims/" + name + "/status",
                     "application/merge-patch+json",
                     R"({"status":{"phase":"Bound","capacity":{"storage":"1Gi"}}})");
  };
  for (const char* name : {"rigid", "elastic"}) ASSERT_EQ(bind(name).status, 200);

  const Reply refused = grow("rigid");
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.message(),
              HasSubstr("only dynamically provisioned pvc can be resized and the storageclass that "
                        "provisions the pvc must support resize"));
  EXPECT_EQ(grow("elastic").status, 200);
}

TEST_F(OtherPlugins, nobody_grants_what_he_does_not_hold) {
  make("/apis/rbac.authorization.k8s.io/v1/clusterroles",
       "{'apiVersion':'rbac.authorization.k8s.io/"
       "v1','kind':'ClusterRole','metadata':{'name':'maker'},'rules':[{"
       "'apiGroups':['rbac.authorization.k8s.io'],'resources':['roles'],'verbs':['create']}]}");
  make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
       "{'apiVersion':'rbac.authorization.k8s.io/"
       "v1','kind':'ClusterRoleBinding','metadata':{'name':'maker'},'roleRef':{"
       "'apiGroup':'rbac.authorization.k8s.io','kind':'ClusterRole','name':'maker'},'subjects':[{'"
       "kind':'User','name':'eve',"
       "'apiGroup':'rbac.authorization.k8s.io'}]}");
  net::Request request = test::make_request(
      "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
      R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r"},)"
      R"("rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]})");
  request.peer.common_name = "eve";
  request.peer.organizations.clear();

  Reply refused = api.send(request);

  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.message(),
              HasSubstr("is attempting to grant RBAC permissions not currently held"));
}

}  // namespace
}  // namespace dibs::server
