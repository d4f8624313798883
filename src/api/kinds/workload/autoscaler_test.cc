#include "api/kinds/workload/autoscaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTarget =
    R"("scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"web"})";
constexpr const char* kProcessor =
    R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}})";

KindRules rules_of(const char* release, const char* gates = "") {
  return make_autoscaler_rules(*Features::parse(release, gates));
}

Value autoscaler(const std::string& spec, std::string_view version = "autoscaling/v2") {
  return *json::parse(cat(R"({"kind":"HorizontalPodAutoscaler","apiVersion":")", version,
                          R"(","metadata":{"name":"web"},"spec":{)", kTarget, ",", spec, "}}"));
}

std::vector<std::string> faults(const Value& object, const Value* old = nullptr,
                                const char* release = "1.37") {
  FieldErrors errors;
  const KindRules rules = rules_of(release);
  if (old != nullptr) {
    rules.validate_update(object, *old, errors);
  } else {
    rules.validate(object, errors);
  }
  std::vector<std::string> out;
  for (const auto& error : errors.errors()) out.push_back(cat(error.field, ": ", error.text));
  return out;
}

std::vector<std::string> faults_of_metric(const std::string& metric) {
  return faults(autoscaler(cat(R"("maxReplicas":3,"metrics":[)", metric, "]")));
}

TEST(Autoscaler, defaults_to_the_processor_and_to_rules_of_both_directions) {
  const KindRules rules = rules_of("1.37");
  Value plain = autoscaler(R"("maxReplicas":3)");
  rules.set_defaults(plain);
  EXPECT_EQ(plain["spec"]["minReplicas"].as_int(), 1);
  EXPECT_EQ(plain["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"].as_int(), 80);
  EXPECT_FALSE(plain["spec"].contains("behavior"));

  Value calm = autoscaler(R"("maxReplicas":3,"behavior":{"scaleDown":{"selectPolicy":"Min"}})");
  rules.set_defaults(calm);
  const Value& behavior = calm["spec"]["behavior"];
  EXPECT_EQ(behavior["scaleUp"]["stabilizationWindowSeconds"], Value(0));
  EXPECT_EQ(behavior["scaleUp"]["policies"].size(), 2);
  EXPECT_FALSE(behavior["scaleDown"].contains("stabilizationWindowSeconds"));
  EXPECT_EQ(behavior["scaleDown"]["selectPolicy"].str(), "Min");
  EXPECT_EQ(behavior["scaleDown"]["policies"][0]["type"].str(), "Percent");
  EXPECT_THAT(faults(calm), IsEmpty());
}

TEST(Autoscaler, refuses_bounds_that_make_no_sense) {
  EXPECT_THAT(faults(autoscaler(R"("minReplicas":-1,"maxReplicas":0)")),
              ElementsAre("spec.minReplicas: Invalid value: -1: must be greater than or equal to 0",
                          "spec.maxReplicas: Required value"));
  EXPECT_THAT(faults(autoscaler(R"("minReplicas":4,"maxReplicas":3)")),
              ElementsAre("spec.maxReplicas: Invalid value: 3: must be greater than or equal to "
                          "`minReplicas`"));
  // What is declared comes last.
  EXPECT_THAT(
      faults(autoscaler(
          R"("maxReplicas":0,"minReplicas":1,"behavior":{"scaleUp":{"stabilizationWindowSeconds":-1}})")),
      ElementsAre("spec.maxReplicas: Invalid value: 0: must be greater than or equal to "
                  "`minReplicas`",
                  HasSubstr("stabilizationWindowSeconds"), HasSubstr("policies"),
                  "spec.maxReplicas: Required value"));
  EXPECT_THAT(faults(autoscaler(R"("maxReplicas":0)"), nullptr, "1.34"),
              ElementsAre("spec.maxReplicas: Invalid value: 0: must be greater than 0"));
}

TEST(Autoscaler, goes_to_zero_only_by_metrics_that_need_no_pods) {
  const std::string processor =
      cat(R"("minReplicas":0,"maxReplicas":3,"metrics":[)", kProcessor, "]");
  EXPECT_THAT(faults(autoscaler(processor)),
              ElementsAre("spec.metrics: Forbidden: must specify at least one Object or External "
                          "metric to support scaling to zero replicas"));
  const Value zero = autoscaler(
      R"("minReplicas":0,"maxReplicas":3,"metrics":[{"type":"External","external":{"metric":{"name":"q"},"target":{"type":"Value","value":"3"}}}])");
  EXPECT_THAT(faults(zero), IsEmpty());
  EXPECT_THAT(
      faults(zero, nullptr, "1.34"),
      ElementsAre("spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"));
  EXPECT_THAT(faults(zero, &zero, "1.34"), IsEmpty());
}

TEST(Autoscaler, refuses_targets_without_a_group_but_keeps_what_it_had) {
  Value core = autoscaler(R"("maxReplicas":3)");
  core.mut("spec").mut("scaleTargetRef").set("apiVersion", "v1");
  EXPECT_THAT(faults(core), ElementsAre("spec.scaleTargetRef.apiVersion: Invalid value: \"v1\": "
                                        "apiVersion must specify API group"));
  EXPECT_THAT(faults(core, &core), IsEmpty());
  core.mut("spec").mut("scaleTargetRef").set("kind", "ReplicationController");
  EXPECT_THAT(faults(core), IsEmpty());
  core.mut("spec").mut("scaleTargetRef").set("apiVersion", "a/b/c");
  core.mut("spec").mut("scaleTargetRef").set("name", "a/b");
  EXPECT_THAT(faults(core),
              ElementsAre("spec.scaleTargetRef.name: Invalid value: \"a/b\": may not contain '/'",
                          "spec.scaleTargetRef.apiVersion: Invalid value: \"a/b/c\": unexpected "
                          "GroupVersion string: a/b/c"));
}

TEST(Autoscaler, refuses_metrics_that_make_no_sense) {
  EXPECT_THAT(faults_of_metric(R"({"type":"Cpu"})"),
              Contains("spec.metrics[0].type: Unsupported value: \"Cpu\": supported values: "
                       "\"ContainerResource\", \"External\", \"Object\", \"Pods\", \"Resource\""));
  EXPECT_THAT(faults_of_metric(R"({"type":"Resource"})"),
              ElementsAre("spec.metrics[0].resource: Required value: must populate information for "
                          "the given metric source"));
  EXPECT_THAT(
      faults_of_metric(
          R"({"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization"}}})"),
      ElementsAre("spec.metrics[0].resource.target.averageUtilization: Required value: must set "
                  "either a target raw value or a target utilization"));
  EXPECT_THAT(
      faults_of_metric(
          R"({"type":"Pods","pods":{"metric":{"name":"a%b"},"target":{"type":"AverageValue","averageValue":"0"}}})"),
      ElementsAre("spec.metrics[0].pods.metric.name: Invalid value: \"a%b\": may not contain '%'",
                  "spec.metrics[0].pods.target.averageValue: Invalid value: \"0\": must be "
                  "positive"));
  EXPECT_THAT(
      faults_of_metric(
          R"({"type":"ContainerResource","containerResource":{"name":"cpus","target":{"type":"Utilization","averageUtilization":5}}})"),
      ElementsAre("spec.metrics[0].containerResource.name: Invalid value: \"cpus\": must be a "
                  "standard resource type or fully qualified",
                  "spec.metrics[0].containerResource.name: Invalid value: \"cpus\": must be a "
                  "standard resource for containers",
                  "spec.metrics[0].containerResource.container: Required value: must specify a "
                  "container"));
}

TEST(Autoscaler, refuses_rules_that_make_no_sense) {
  EXPECT_THAT(
      faults(autoscaler(
          R"("maxReplicas":3,"behavior":{"scaleUp":{"stabilizationWindowSeconds":3601,"selectPolicy":"Best","policies":[{"type":"Share","value":0,"periodSeconds":1801}],"tolerance":"-1"}})")),
      ElementsAre(
          "spec.behavior.scaleUp.stabilizationWindowSeconds: Invalid value: 3601: must be less "
          "than or equal to 3600",
          "spec.behavior.scaleUp.selectPolicy: Unsupported value: \"Best\": supported values: "
          "\"Disabled\", \"Max\", \"Min\"",
          "spec.behavior.scaleUp.policies[0].type: Unsupported value: \"Share\": supported values: "
          "\"Percent\", \"Pods\"",
          "spec.behavior.scaleUp.policies[0].value: Invalid value: 0: must be greater than zero",
          "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than "
          "or equal to 1800",
          "spec.behavior.scaleUp.tolerance: Invalid value: \"-1\": must be greater than or equal "
          "to 0"));
}

TEST(Autoscaler, loses_tolerances_while_their_gate_is_off) {
  Value object = autoscaler(
      R"("maxReplicas":3,"behavior":{"scaleUp":{"tolerance":"50m","selectPolicy":"Max"}})");
  const Value had = object;
  rules_of("1.34").prepare_update(object, had, {});
  EXPECT_TRUE(object["spec"]["behavior"]["scaleUp"].contains("tolerance"));
  rules_of("1.37").prepare_create(object, {});
  EXPECT_TRUE(object["spec"]["behavior"]["scaleUp"].contains("tolerance"));
  rules_of("1.34").prepare_create(object, {});
  EXPECT_FALSE(object["spec"]["behavior"]["scaleUp"].contains("tolerance"));
}

TEST(Autoscaler, carries_what_v1_cannot_say_in_annotations_and_back) {
  Value object = autoscaler(cat(
      R"("minReplicas":2,"maxReplicas":5,"metrics":[)", kProcessor,
      R"(,{"type":"Pods","pods":{"metric":{"name":"hits","selector":{"matchLabels":{"a":"b"}}},"target":{"type":"AverageValue","averageValue":"10"}}},)",
      R"({"type":"Object","object":{"describedObject":{"name":"s","kind":"Service"},"target":{"type":"AverageValue","averageValue":"5"},"metric":{"name":"m"}}},)",
      R"({"type":"External","external":{"metric":{"name":"queue"},"target":{"type":"Value","value":"30"}}},)",
      R"({"type":"ContainerResource","containerResource":{"name":"memory","target":{"type":"AverageValue","averageValue":"1Gi"},"container":"c"}}],)",
      R"("behavior":{"scaleDown":{"stabilizationWindowSeconds":1,"selectPolicy":"Max","policies":[{"periodSeconds":15,"type":"Pods","value":1}],"tolerance":"50m"}})"));
  object.set(
      "status",
      *json::parse(
          R"({"desiredReplicas":3,"currentReplicas":2,"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageValue":"10m","averageUtilization":40}}}],)"
          R"("conditions":[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"R","message":"M"}]})"));

  const Value older = autoscaler_to_v1(object);

  EXPECT_EQ(older["apiVersion"].str(), "autoscaling/v1");
  EXPECT_EQ(older["spec"]["targetCPUUtilizationPercentage"].as_int(), 50);
  EXPECT_EQ(older["status"]["currentCPUUtilizationPercentage"].as_int(), 40);
  const Value& annotations = older["metadata"]["annotations"];
  EXPECT_THAT(annotations["autoscaling.alpha.kubernetes.io/metrics"].str(),
              HasSubstr(R"({"type":"Pods","pods":{"metricName":"hits","targetAverageValue":"10")"));
  EXPECT_THAT(annotations["autoscaling.alpha.kubernetes.io/metrics"].str(),
              HasSubstr(R"({"target":{"kind":"Service","name":"s"},"metricName":"m")"));
  EXPECT_EQ(annotations["autoscaling.alpha.kubernetes.io/behavior"].str(),
            R"({"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":1,"SelectPolicy":"Max",)"
            R"("Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":15}],"Tolerance":"50m"}})");
  EXPECT_EQ(annotations["autoscaling.alpha.kubernetes.io/conditions"].str(),
            R"([{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z",)"
            R"("reason":"R","message":"M"}])");

  // The target of the processor comes last of those that come back.
  Value expected = object;
  const Value processor = object["spec"]["metrics"][0];
  expected.mut("spec").mut("metrics").erase_at(0);
  expected.mut("spec").mut("metrics").push(processor);
  EXPECT_EQ(autoscaler_from_v1(older), expected);
}

TEST(Autoscaler, takes_no_harm_from_annotations_that_cannot_be_read) {
  Value older = autoscaler(R"("maxReplicas":3)", "autoscaling/v1");
  older.mut("metadata")
      .set("annotations", Value::object({{"autoscaling.alpha.kubernetes.io/metrics",
                                          R"([{"type":7,"resource":[]}])"},
                                         {"autoscaling.alpha.kubernetes.io/behavior", "{"},
                                         {"autoscaling.alpha.kubernetes.io/conditions", "3"},
                                         {"kept", "yes"}}));

  const Value object = autoscaler_from_v1(older);

  EXPECT_EQ(object["spec"]["metrics"].size(), 1);
  EXPECT_FALSE(object["spec"].contains("behavior"));
  EXPECT_EQ(json::write(object["metadata"]["annotations"]), R"({"kept":"yes"})");
}

}  // namespace
}  // namespace dibs::api
