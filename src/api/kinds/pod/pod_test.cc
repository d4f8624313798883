#include "api/kinds/pod/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/spec.h"
#include "api/kinds/subresource_rules.h"
#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const Time kNow = Time::from_seconds(1577836800);

Value parsed(std::string_view text) { return json::parse(text).value(); }

std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(cat(error.field, ": ", error.text));
  return out;
}

/// A stored pod with this spec.
Value pod(std::string_view spec) {
  Value object = Value::object(
      {{"metadata", Value::object({{"name", "p"}, {"namespace", "n"}})}, {"spec", parsed(spec)}});
  kind_rules("", "Pod").set_defaults(object);
  prepare_pod(object, kNow);
  return object;
}

std::vector<std::string> faults_of(std::string_view spec) {
  FieldErrors errors;
  validate_pod(pod(spec), errors);
  return texts(errors);
}

using Check = void (*)(const Value&, const Value&, FieldErrors&);

std::vector<std::string> faults_of_patch(const Value& old, std::string_view patch, Check check) {
  Value changed = json::apply_merge_patch(old, parsed(patch));
  FieldErrors errors;
  check(changed, old, errors);
  return texts(errors);
}

constexpr const char* kSmall = R"({"containers":[{"name":"c","image":"app:1"}]})";

TEST(PodDefaults, pull_policy_follows_the_tag) {
  struct Case {
    const char* image;
    const char* policy;
  };
  const Case cases[] = {
      {"app", "Always"},
      {"app:latest", "Always"},
      {"app:1", "IfNotPresent"},
      {"host:5000/app", "Always"},
      {"host:5000/app:2", "IfNotPresent"},
      {"app@sha256:0000000000000000000000000000000000000000000000000000000000000000",
       "IfNotPresent"},
      {"", "IfNotPresent"},
      {"Bad Image", "IfNotPresent"},
  };
  for (const Case& c : cases) {
    Value spec = Value::object(
        {{"containers", Value::array({Value::object({{"name", "c"}, {"image", c.image}})})}});
    set_pod_spec_defaults(spec, true);
    EXPECT_EQ(spec["containers"][0]["imagePullPolicy"].as_string(), c.policy) << c.image;
  }
}

TEST(PodDefaults, templates_leave_requests_to_the_pod) {
  constexpr const char* spec =
      R"({"containers":[{"name":"c","image":"a:1","resources":{"limits":{"cpu":"1"}}}]})";
  Value in_template = parsed(spec);
  set_pod_spec_defaults(in_template, true);
  EXPECT_TRUE(in_template["containers"][0]["resources"]["requests"].is_null());
  EXPECT_TRUE(in_template["enableServiceLinks"].is_null());
  EXPECT_EQ(pod(spec)["spec"]["containers"][0]["resources"]["requests"], parsed(R"({"cpu":"1"})"));
}

TEST(PodDefaults, ports_in_the_network_of_the_node_are_host_ports) {
  Value object = pod(R"({"hostNetwork":true,"containers":[{"name":"c","image":"a:1",
      "ports":[{"containerPort":80},{"containerPort":81,"hostPort":81}]}]})");
  EXPECT_EQ(object["spec"]["containers"][0]["ports"][0]["hostPort"].as_int(), 80);
}

TEST(PodDefaults, volumes_without_a_source_are_empty_directories) {
  Value object = pod(R"({"containers":[{"name":"c","image":"a:1"}],"volumes":[{"name":"v"},
      {"name":"s","secret":{"secretName":"x"}}]})");
  EXPECT_EQ(object["spec"]["volumes"][0], parsed(R"({"name":"v","emptyDir":{}})"));
  EXPECT_EQ(object["spec"]["volumes"][1]["secret"]["defaultMode"].as_int(), 420);
}

TEST(PodVolumes, say_what_certificate_they_want_and_where) {
  const auto faults = [](std::string_view source) {
    return faults_of(cat(R"({"containers":[{"name":"c","image":"a:1"}],"volumes":[{"name":"v",)",
                         R"("projected":{"sources":[{"podCertificate":)", source, "}]}}]}"));
  };
  const std::string at = "spec.volumes[0].projected.sources[0].podCertificate";
  EXPECT_THAT(faults(R"({"signerName":"e.com/s","keyType":"ED25519","keyPath":"k"})"), IsEmpty());
  EXPECT_THAT(
      faults(R"({"signerName":"e.com/s","keyType":"DSA","maxExpirationSeconds":60})"),
      ElementsAre(at + ".keyType: Unsupported value: \"DSA\": supported values: \"RSA3072\", "
                       "\"RSA4096\", \"ECDSAP256\", \"ECDSAP384\", \"ECDSAP521\", \"ED25519\"",
                  at + ".maxExpirationSeconds: Invalid value: 60: if provided, "
                       "maxExpirationSeconds must be >= 3600",
                  at + ": Required value: specify at least one of credentialBundlePath, keyPath, "
                       "and certificateChainPath"));
  EXPECT_THAT(faults(R"({"signerName":"kubernetes.io/s","keyType":"ED25519","keyPath":"a",
                         "certificateChainPath":"a","maxExpirationSeconds":86401,
                         "userAnnotations":{"plain":""}})"),
              ElementsAre(at + ".userAnnotations: Invalid value: \"plain\": must be a "
                               "domain-prefixed key (such as \"acme.io/foo\")",
                          at + ".maxExpirationSeconds: Invalid value: 86401: if provided, "
                               "maxExpirationSeconds must be <= 86400",
                          "spec.volumes[0].projected: Invalid value: \"a\": conflicting duplicate "
                          "paths"));
}

TEST(PodVolumes, know_a_flocker_by_one_of_its_names) {
  const auto faults = [](std::string_view source) {
    return faults_of(cat(R"({"containers":[{"name":"c","image":"a:1"}],"volumes":[{"name":"v",)",
                         R"("flocker":)", source, "}]}"));
  };
  EXPECT_THAT(faults(R"({"datasetName":"a"})"), IsEmpty());
  EXPECT_THAT(faults(R"({})"), ElementsAre("spec.volumes[0].flocker: Required value: one of "
                                           "datasetName and datasetUUID is required"));
  EXPECT_THAT(faults(R"({"datasetName":"a/b"})"),
              ElementsAre("spec.volumes[0].flocker.datasetName: Invalid value: \"a/b\": must not "
                          "contain '/'"));
}

TEST(PodResources, quality_of_service_by_requests_and_limits) {
  auto qos = [](std::string_view resources) {
    Value spec =
        parsed(cat(R"({"containers":[{"name":"c","image":"a:1","resources":)", resources, "}]}"));
    set_pod_spec_defaults(spec, false);
    return std::string(qos_class(spec));
  };
  EXPECT_EQ(qos("{}"), "BestEffort");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"}})"), "Guaranteed");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1000m"}})"),
            "Guaranteed");
  EXPECT_EQ(qos(R"({"limits":{"cpu":"1"}})"), "Burstable");
  EXPECT_EQ(qos(R"({"requests":{"example.com/gpu":"1"},"limits":{"example.com/gpu":"1"}})"),
            "BestEffort");
}

TEST(PodResources, sidecars_add_up_and_init_containers_do_not) {
  Value spec = parsed(R"({
      "containers":[{"resources":{"requests":{"cpu":"1"}}},
                    {"resources":{"requests":{"cpu":"500m"}}}],
      "initContainers":[
        {"resources":{"requests":{"cpu":"3"}}},
        {"restartPolicy":"Always","resources":{"requests":{"cpu":"250m"}}},
        {"resources":{"requests":{"cpu":"1"}}}],
      "overhead":{"cpu":"10m"}})");
  EXPECT_EQ(aggregate_containers(spec, "requests").at("cpu").str(), "3");
  EXPECT_EQ(pod_requests(spec).at("cpu").str(), "3010m");
}

TEST(PodValidation, speaks_as_kubectl_shows_it) {
  EXPECT_THAT(
      faults_of(R"({"restartPolicy":"Sometimes","dnsPolicy":"Never","containers":[
          {"name":"a","image":""},
          {"name":"a","image":"busybox","imagePullPolicy":"Maybe",
           "ports":[{"containerPort":0},{"containerPort":70000}]}]})"),
      ElementsAre(
          "spec.containers[0].image: Required value",
          "spec.containers[1].ports[0].containerPort: Required value",
          "spec.containers[1].ports[1].containerPort: Invalid value: 70000: must be between 1 and "
          "65535, inclusive",
          "spec.containers[1].imagePullPolicy: Unsupported value: \"Maybe\": supported values: "
          "\"Always\", \"IfNotPresent\", \"Never\"",
          "spec.containers[1].name: Duplicate value: \"a\"",
          "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", "
          "\"OnFailure\", \"Never\"",
          "spec.dnsPolicy: Unsupported value: \"Never\": supported values: "
          "\"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\""));
  EXPECT_THAT(
      faults_of(R"({"volumes":[{"name":"v","emptyDir":{}},{"name":"v","configMap":{"name":"c"}},
          {"name":"two","emptyDir":{},"hostPath":{"path":"/x"}}],
          "containers":[{"name":"a","image":"busybox",
          "volumeMounts":[{"name":"absent","mountPath":"/x"},{"name":"v","mountPath":"/x"}],
          "resources":{"requests":{"cpu":"3","memory":"1Gi"},
                       "limits":{"cpu":"2","example.com/gpu":"1"}},
          "env":[{"name":"1=2"}]}]})"),
      ElementsAre(
          "spec.volumes[1].name: Duplicate value: \"v\"",
          "spec.volumes[2].hostPath: Forbidden: may not specify more than 1 volume type",
          "spec.containers[0].env[0].name: Invalid value: \"1=2\": a valid environment "
          "variable name must consist only of printable ASCII characters other than '='",
          "spec.containers[0].volumeMounts[0].name: Not found: \"absent\"",
          "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/x\": must be "
          "unique",
          "spec.containers[0].resources.requests: Invalid value: \"3\": must be less than or "
          "equal to cpu limit of 2"));
}

TEST(PodValidation, env_has_one_source) {
  EXPECT_THAT(
      faults_of(R"({"containers":[{"name":"c","image":"a:1","env":[
          {"name":"A","valueFrom":{}},
          {"name":"B","value":"x","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}},
          {"name":"C","valueFrom":{"fieldRef":{"fieldPath":"spec.containers"}}},
          {"name":"D","valueFrom":{"fieldRef":{"fieldPath":"metadata.labels['app']"}}},
          {"name":"E","valueFrom":{"resourceFieldRef":{"resource":"limits.gpu"}}},
          {"name":"F","valueFrom":{"configMapKeyRef":{"name":"m","key":"a b"}}}]}]})"),
      ElementsAre(
          HasSubstr("env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`"),
          "spec.containers[0].env[1].valueFrom: Invalid value: \"\": may not be specified when "
          "`value` is not empty",
          "spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Invalid value: "
          "\"spec.containers\": error converting fieldPath: field label not supported: "
          "spec.containers",
          HasSubstr(
              "env[4].valueFrom.resourceFieldRef.resource: Unsupported value: \"limits.gpu\""),
          HasSubstr("env[5].valueFrom.configMapKeyRef.key: Invalid value: \"a b\"")));
}

TEST(PodValidation, claims_may_have_the_older_source) {
  EXPECT_THAT(faults_of(R"({"containers":[{"name":"c","image":"a:1"}],"resourceClaims":[
          {"name":"a","source":{"resourceClaimName":"c"}},{"name":"b","source":{}},
          {"name":"d","source":{"resourceClaimTemplateName":"-x"}}]})"),
              ElementsAre("spec.resourceClaims[1].source: Invalid value: "
                          "core.ClaimSource{ResourceClaimName:(*string)(nil), "
                          "ResourceClaimTemplateName:(*string)(nil)}: must specify one of: "
                          "`resourceClaimName`, `resourceClaimTemplateName`",
                          HasSubstr("spec.resourceClaims[2].source.resourceClaimTemplateName: "
                                    "Invalid value: \"-x\"")));
}

TEST(PodTemplate, labels_and_ephemeral_containers) {
  FieldErrors errors;
  validate_pod_template(parsed(R"({"metadata":{"labels":{"a":"!"}},"spec":{}})"), Path("template"),
                        errors);
  EXPECT_THAT(texts(errors).front(), StartsWith("template.labels: Invalid value: \"!\""));
}

TEST(PodUpdate, takes_images_deadlines_and_more_tolerations) {
  Value old = pod(kSmall);
  EXPECT_THAT(faults_of_patch(old, R"({"spec":{"activeDeadlineSeconds":5,
      "tolerations":[{"key":"a","operator":"Exists"}]}})",
                              validate_pod_update),
              IsEmpty());
  EXPECT_THAT(
      faults_of_patch(old, R"({"spec":{"nodeName":"n1","priority":3}})", validate_pod_update),
      ElementsAre(StartsWith(
          "spec: Forbidden: pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,"
          "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
          "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it "
          "was previously negative)\n")));
}

TEST(PodUpdate, gates_only_go_and_nodes_only_narrow) {
  Value old = pod(R"({"containers":[{"name":"c","image":"a:1"}],"nodeSelector":{"x":"y"},
      "schedulingGates":[{"name":"a"},{"name":"b"}]})");
  EXPECT_EQ(old["status"]["conditions"][0]["reason"].as_string(), "SchedulingGated");
  EXPECT_THAT(faults_of_patch(old, R"({"spec":{"schedulingGates":[{"name":"b"}],
      "nodeSelector":{"z":"w"}}})",
                              validate_pod_update),
              IsEmpty());
  EXPECT_THAT(faults_of_patch(old, R"({"spec":{"schedulingGates":[{"name":"a"},{"name":"d"}],
      "nodeSelector":{"x":"z"}}})",
                              validate_pod_update),
              ElementsAre("spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but "
                          "found new scheduling gate 'd'",
                          "spec.nodeSelector: Invalid value: {\"x\":\"z\"}: only additions to "
                          "spec.nodeSelector are allowed (no mutations or deletions)"));
}

TEST(PodEphemeralContainers, are_added_and_never_changed) {
  const KindRules* rules = subresource_rules("", "Pod", "ephemeralcontainers");
  ASSERT_NE(rules, nullptr);
  Value old = pod(kSmall);
  Value sent = old;
  sent.mut("metadata").mut("labels").set("ignored", "yes");
  sent.mut("spec")
      .mut("ephemeralContainers")
      .push(parsed(R"({"name":"dbg","image":"tool","targetContainerName":"c"})"));
  kind_rules("", "Pod").set_defaults(sent);

  rules->prepare_update(sent, old, {kNow, "ephemeralcontainers"});
  FieldErrors errors;
  rules->validate_update(sent, old, errors);

  EXPECT_THAT(texts(errors), IsEmpty());
  EXPECT_TRUE(sent["metadata"]["labels"].is_null());
  EXPECT_THAT(
      faults_of_patch(sent, R"({"spec":{"ephemeralContainers":[]}})",
                      validate_ephemeral_containers_update),
      ElementsAre("spec.ephemeralContainers: Forbidden: existing ephemeral containers \"dbg\" "
                  "may not be removed\n"));
  EXPECT_THAT(
      faults_of_patch(old, R"({"spec":{"ephemeralContainers":[{"name":"e","image":"t",
          "imagePullPolicy":"Always","terminationMessagePolicy":"File",
          "ports":[{"containerPort":1}],
          "resources":{"limits":{"cpu":"1"}},"targetContainerName":"zz"}]}})",
                      validate_ephemeral_containers_update),
      ElementsAre(
          "spec.ephemeralContainers[0].targetContainerName: Not found: \"zz\"",
          "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
          "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral "
          "Container"));
}

TEST(PodResize, changes_cpu_and_memory_only) {
  Value old = pod(R"({"containers":[{"name":"c","image":"a:1","resources":{
      "requests":{"cpu":"100m","memory":"64Mi"},"limits":{"cpu":"200m"}}}]})");
  auto resize = [&](std::string_view resources) {
    Value sent = old;
    sent.mut("spec").mut("containers").mut(std::size_t{0}).set("image", "a:2");
    sent.mut("spec").mut("containers").mut(std::size_t{0}).set("resources", parsed(resources));
    prepare_resize(sent, old);
    EXPECT_EQ(sent["spec"]["containers"][0]["image"].as_string(), "a:1");
    FieldErrors errors;
    validate_resize(sent, old, errors);
    return texts(errors);
  };
  EXPECT_THAT(resize(R"({"requests":{"cpu":"150m","memory":"64Mi"},"limits":{"cpu":"200m"}})"),
              IsEmpty());
  EXPECT_THAT(resize(R"({"requests":{"cpu":"300m","memory":"64Mi"},"limits":{"cpu":"200m"}})"),
              ElementsAre("spec.containers[0].resources.requests: Invalid value: \"300m\": must be "
                          "less than or equal to cpu limit of 200m"));
  EXPECT_THAT(resize(R"({"requests":{"cpu":"100m","memory":"64Mi","example.com/d":"1"},
                         "limits":{"cpu":"200m","example.com/d":"1"}})"),
              ElementsAre("spec: Forbidden: only cpu and memory resources are mutable"));
  EXPECT_THAT(resize(R"({"requests":{"cpu":"200m","memory":"64Mi"},
                         "limits":{"cpu":"200m","memory":"64Mi"}})"),
              ElementsAre("spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a "
                          "result of resizing"));
}

TEST(PodStatus, qos_and_claim_statuses_are_kept_when_left_out) {
  Value old = pod(kSmall);
  old.mut("status").set("resourceClaimStatuses", parsed(R"([{"name":"a"}])"));
  Value sent = old;
  sent.set("status", parsed(R"({"phase":"Running"})"));
  kind_rules("", "Pod").prepare_status(sent, old, {kNow, "status"});
  EXPECT_EQ(sent["status"], parsed(R"({"phase":"Running","qosClass":"BestEffort",
      "resourceClaimStatuses":[{"name":"a"}]})"));
}

TEST(PodStatus, ended_containers_stay_ended) {
  Value old = pod(R"({"restartPolicy":"Never","containers":[{"name":"c","image":"a:1"}]})");
  old.mut("status").set("containerStatuses",
                        parsed(R"([{"name":"c","state":{"terminated":{"exitCode":1}}}])"));
  EXPECT_THAT(
      faults_of_patch(old, R"({"status":{"containerStatuses":[
      {"name":"c","state":{"running":{}}}]}})",
                      validate_pod_status_update),
      ElementsAre("status.containerStatuses[0].state: Forbidden: may not be transitioned to "
                  "non-terminated state"));
}

TEST(PodBinding, sets_the_node_once) {
  Value free = pod(kSmall);
  Value binding = parsed(R"({"metadata":{"name":"p","annotations":{"by":"me"}},
      "target":{"kind":"Node","name":"n1"}})");

  auto bound = bind_pod(free, binding, kNow);

  ASSERT_TRUE(bound.ok());
  EXPECT_EQ((*bound)["spec"]["nodeName"].as_string(), "n1");
  EXPECT_EQ((*bound)["metadata"]["annotations"], parsed(R"({"by":"me"})"));
  EXPECT_EQ((*bound)["status"]["conditions"],
            parsed(R"([{"type":"PodScheduled","status":"True","lastProbeTime":null,
                "lastTransitionTime":"2020-01-01T00:00:00Z"}])"));
  auto again = bind_pod(*bound, binding, kNow);
  EXPECT_EQ(again.error().code(), Code::conflict);
  EXPECT_EQ(
      again.error().message(),
      "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node "
      "\"n1\"");
}

TEST(PodBinding, names_its_pod_and_a_node) {
  const auto checked = [](std::string_view target) {
    Value binding = Value::object({{"metadata", parsed(R"({"name":"p"})")}});
    binding.set("target", parsed(target));
    return check_binding(binding, "p");
  };

  EXPECT_TRUE(checked(R"({"name":"n1"})").ok());
  EXPECT_EQ(checked(R"({"name":""})").error().message(), "target.name: Required value");
  EXPECT_THAT(checked(R"({"name":"BAD NAME"})").error().message(),
              StartsWith("target.name: Invalid value: \"BAD NAME\": a lowercase RFC 1123"));
  const Value other = parsed(R"({"metadata":{"name":"q"},"target":{"name":"n"}})");
  EXPECT_EQ(check_binding(other, "p").error().code(), Code::bad_request);
  EXPECT_TRUE(check_binding(other, "").ok());
}

TEST(PodWarnings, tell_what_is_hardly_meant) {
  Value object = pod(R"({"nodeSelector":{"beta.kubernetes.io/arch":"amd64"},"containers":[
      {"name":"c","image":"a:1","resources":{"limits":{"memory":"100m"}},
       "env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]})");
  object.mut("metadata").mut("annotations").set("scheduler.alpha.kubernetes.io/critical-pod", "");
  EXPECT_THAT(
      kind_rules("", "Pod").warnings(object, nullptr),
      ElementsAre(
          "spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "
          "\"kubernetes.io/arch\" instead",
          "metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in "
          "v1.16+; use the \"priorityClassName\" field instead",
          "spec.containers[0].resources.limits[memory]: fractional byte value \"100m\" is invalid, "
          "must be an integer",
          "spec.containers[0].resources.requests[memory]: fractional byte value \"100m\" is "
          "invalid, "
          "must be an integer",
          "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped "
          "when "
          "using apply"));
  EXPECT_THAT(kind_rules("", "Pod").warnings(object, &object), IsEmpty());
}

}  // namespace
}  // namespace dibs::api
