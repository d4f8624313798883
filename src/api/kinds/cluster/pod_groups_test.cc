#include "api/kinds/cluster/pod_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Value parsed(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return json::parse(text).value();
}

std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(error.field + ": " + error.text);
  return out;
}

const Features kGates =
    Features::parse("1.37", "GenericWorkload=true,DRAWorkloadResourceClaims=true").value();

std::vector<std::string> faults(const std::string& kind, const std::string& spec) {
  FieldErrors errors;
  make_group_rules(kind, kGates).validate(parsed(cat("{'spec':", spec, "}")), errors);
  return texts(errors);
}

std::vector<std::string> faults_of_change(const std::string& before, const std::string& after) {
  FieldErrors errors;
  make_group_rules("PodGroup", kGates)
      .validate_update(parsed(cat("{'spec':", after, "}")), parsed(cat("{'spec':", before, "}")),
                       errors);
  return texts(errors);
}

TEST(PodGroups, have_one_policy_and_a_count) {
  EXPECT_THAT(faults("PodGroup", "{'schedulingPolicy':{'basic':{}}}"), IsEmpty());
  EXPECT_THAT(faults("PodGroup", "{'schedulingPolicy':{'gang':{'minCount':-1}}}"),
              ElementsAre("spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater "
                          "than or equal to 1"));
  EXPECT_THAT(faults("PodGroup", "{'schedulingPolicy':{}}"),
              ElementsAre("spec.schedulingPolicy: Invalid value: \"\": must specify one of: "
                          "`basic`, `gang`"));
}

TEST(PodGroups, may_change_the_count_of_a_gang_and_nothing_else) {
  const std::string gang = "'schedulingPolicy':{'gang':{'minCount':2}}";
  EXPECT_THAT(faults_of_change(cat("{", gang, "}"), "{'schedulingPolicy':{'gang':{'minCount':3}}}"),
              IsEmpty());
  EXPECT_THAT(
      faults_of_change(cat("{", gang, "}"), "{'schedulingPolicy':{'basic':{}}}"),
      ElementsAre("spec.schedulingPolicy.basic: Invalid value: null: field is immutable",
                  "spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared "
                  "once set"));
  EXPECT_THAT(faults_of_change(cat("{", gang, "}"), cat("{", gang, ",'priority':7}")),
              ElementsAre("spec.priority: Invalid value: null: field is immutable"));
}

TEST(PodGroups, lose_fields_whose_gate_is_off) {
  const Features off = Features::parse("1.37", "GenericWorkload=true").value();
  const KindRules rules = make_group_rules("PodGroup", off);
  Value group = parsed(
      "{'spec':{'schedulingPolicy':{'basic':{}},'preemptionPolicy':'Never',"
      "'schedulingConstraints':{'topology':[{'key':'rack'}]},"
      "'resourceClaims':[{'name':'c','resourceClaimName':'x'}]},'status':{'conditions':[]}}");
  rules.prepare_create(group, {});
  EXPECT_EQ(group, parsed("{'spec':{'schedulingPolicy':{'basic':{}}}}"));
}

TEST(PodGroups, name_their_claims_in_the_status) {
  FieldErrors errors;
  const Value before = parsed("{'spec':{'resourceClaims':[{'name':'a','resourceClaimName':'x'}]}}");
  Value after = before;
  after.set("status", parsed("{'resourceClaimStatuses':[{'name':'b','resourceClaimName':'x'}]}"));
  make_group_rules("PodGroup", kGates).validate_status(after, before, errors);
  EXPECT_THAT(texts(errors),
              ElementsAre("status.resourceClaimStatuses[0].name: Invalid value: \"b\": must match "
                          "the name of an entry in `spec.resourceClaims`"));
}

TEST(PodGroups, keep_their_meaning_in_the_version_of_1_36) {
  const Value stored = parsed(
      "{'apiVersion':'scheduling.k8s.io/v1beta1','kind':'PodGroup','spec':{'schedulingPolicy':{"
      "'basic':{}},'disruptionMode':{'all':{}},'workloadRef':{'workloadName':'w',"
      "'templateName':'t'}}}");
  const Value shown = group_from_stored("PodGroup", "v1alpha2", stored);
  EXPECT_EQ(shown["spec"]["disruptionMode"].as_string(), "PodGroup");
  EXPECT_EQ(shown["spec"]["podGroupTemplateRef"]["workload"]["podGroupTemplateName"].as_string(),
            "t");
  EXPECT_EQ(group_to_stored("PodGroup", shown), stored);
}

const Features kTrees =
    Features::parse(
        "1.37", "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true")
        .value();
constexpr const char* kRef = "'workloadRef':{'workloadName':'w','templateName':'t'}";

std::vector<std::string> faults_in_tree(const std::string& kind, const std::string& spec) {
  FieldErrors errors;
  make_group_rules(kind, kTrees).validate(parsed(cat("{'spec':", spec, "}")), errors);
  return texts(errors);
}

TEST(PodGroups, in_a_tree_say_which_workload_they_are_of) {
  const std::string parent =
      "'parentCompositePodGroupName':'top','schedulingPolicy':{'basic':{}},"
      "'disruptionMode':{'single':{}}";
  EXPECT_THAT(faults_in_tree("PodGroup", cat("{", parent, ",", kRef, "}")), IsEmpty());
  EXPECT_THAT(faults_in_tree("PodGroup", cat("{", parent, "}")),
              ElementsAre("spec.workloadRef: Required value: must be set when "
                          "parentCompositePodGroupName is set"));
}

TEST(PodGroups, lose_their_parent_without_the_gate) {
  Value group =
      parsed("{'spec':{'parentCompositePodGroupName':'top','schedulingPolicy':{'basic':{}}}}");
  make_group_rules("PodGroup", kGates).prepare_create(group, {});
  EXPECT_TRUE(group["spec"]["parentCompositePodGroupName"].is_null());
}

TEST(CompositePodGroups, have_a_workload_one_policy_and_a_count) {
  const std::string mode = ",'disruptionMode':{'single':{}}";
  EXPECT_THAT(
      faults_in_tree("CompositePodGroup",
                     cat("{", kRef, ",'schedulingPolicy':{'gang':{'minGroupCount':2}}", mode, "}")),
      IsEmpty());
  EXPECT_THAT(
      faults_in_tree(
          "CompositePodGroup",
          cat("{'workloadRef':null,'schedulingPolicy':{'gang':{'minGroupCount':-1}}", mode, "}")),
      ElementsAre("spec.workloadRef: Required value",
                  "spec.schedulingPolicy.gang.minGroupCount: Invalid value: -1: must be greater "
                  "than or equal to 1"));
  EXPECT_THAT(
      faults_in_tree("CompositePodGroup", cat("{", kRef, ",'schedulingPolicy':{}", mode, "}")),
      ElementsAre("spec.schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, "
                  "`gang`"));
  EXPECT_THAT(faults_in_tree("CompositePodGroup",
                             cat("{", kRef,
                                 ",'schedulingPolicy':{'basic':{}},'disruptionMode':{'single':{},"
                                 "'all':{}},'schedulingConstraints':{'topology':[{'key':'a'},"
                                 "{'key':'b'}]},'parentCompositePodGroupName':'No'}")),
              testing::Contains("spec.schedulingConstraints.topology: Too many: 2: must have at "
                                "most 1 item"));
}

TEST(CompositePodGroups, never_change) {
  const auto spec = [](int count, const char* more) {
    return parsed(cat("{'spec':{", kRef, ",'schedulingPolicy':{'gang':{'minGroupCount':", count,
                      "}},'disruptionMode':{'single':{}}", more, "}}"));
  };
  const KindRules rules = make_group_rules("CompositePodGroup", kTrees);
  FieldErrors errors;
  rules.validate_update(spec(2, ""), spec(2, ""), errors);
  EXPECT_THAT(texts(errors), IsEmpty());
  rules.validate_update(spec(3, ",'parentCompositePodGroupName':'top'"), spec(2, ""), errors);
  EXPECT_THAT(texts(errors),
              ElementsAre("spec.parentCompositePodGroupName: Invalid value: null: field is "
                          "immutable",
                          "spec.schedulingPolicy: Invalid value: null: field is immutable"));
}

TEST(Workloads, have_templates_of_groups_of_groups) {
  const std::string group = "{'name':'g','schedulingPolicy':{'basic':{}}}";
  const auto composite = [](const std::string& name, const std::string& inside) {
    return cat("{'name':'", name, "','schedulingPolicy':{'gang':{'minGroupCount':1}}", inside, "}");
  };
  const auto top = [](const std::string& one) {
    return cat("{'podGroupTemplates':null,'compositePodGroupTemplates':[", one, "]}");
  };
  EXPECT_THAT(
      faults_in_tree("Workload", top(composite("a", cat(",'podGroupTemplates':[", group, "]")))),
      IsEmpty());
  EXPECT_THAT(faults_in_tree("Workload", top(composite("a", ""))),
              ElementsAre("spec.compositePodGroupTemplates[0]: Invalid value: \"a\": must have at "
                          "least one child PodGroupTemplate or CompositePodGroupTemplate"));
  EXPECT_THAT(
      faults_in_tree("Workload", top(composite("g", cat(",'podGroupTemplates':[", group, "]")))),
      ElementsAre("spec.compositePodGroupTemplates[0].podGroupTemplates[0].name: Duplicate value: "
                  "\"g\""));
}

TEST(Workloads, have_templates_of_one_priority) {
  const std::string group = "{'name':'a','schedulingPolicy':{'basic':{}}}";
  EXPECT_THAT(faults("Workload", cat("{'podGroupTemplates':[", group, "]}")), IsEmpty());
  EXPECT_THAT(faults("Workload", "{'podGroupTemplates':null}"),
              ElementsAre("spec: Invalid value: \"\": must specify one of: `podGroupTemplates`, "
                          "`compositePodGroupTemplates`"));
  EXPECT_THAT(faults("Workload", cat("{'podGroupTemplates':[", group,
                                     ",{'name':'b','priority':3,'schedulingPolicy':{'basic':{}}}"
                                     "]}")),
              ElementsAre("spec: Invalid value: null: detected multiple priority configurations"));
}

}  // namespace
}  // namespace dibs::api
