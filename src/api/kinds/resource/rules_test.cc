// Behaviour of resource.k8s.io that the vectors of 1.36 do not show: defaults, gates, what 1.37
// says, what a status may change, and the classic model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/resource/rules.h"
#include "api/schema/builtin.h"
#include "api/schema/gates.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Value parsed(std::string text) {
  for (char& c : text) {
    if (c == '\'') c = '"';
  }
  auto value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

Features gates(std::string_view release = "1.37", std::string_view changes = {}) {
  auto features = Features::parse(release, changes);
  EXPECT_TRUE(features.ok()) << changes;
  return std::move(features).value();
}

std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(cat(error.field, ": ", error.text));
  return out;
}

std::vector<std::string> faults(const KindRules& rules, const Value& object,
                                const Value* old = nullptr, bool status = false) {
  FieldErrors errors;
  if (old == nullptr) {
    rules.validate(object, errors);
  } else {
    (status ? rules.validate_status : rules.validate_update)(object, *old, errors);
  }
  return texts(errors);
}

Value claim(std::string_view requests, std::string_view status = "{}") {
  return parsed(
      cat("{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','metadata':{'name':"
          "'c','namespace':'n'},'spec':{'devices':{'requests':",
          requests, "}},'status':", status, "}"));
}

constexpr const char* kGpu =
    "[{'name':'gpu','exactly':{'deviceClassName':'c','allocationMode':'ExactCount','count':1}}]";
constexpr const char* kAllocated =
    "{'allocation':{'devices':{'results':[{'request':'gpu','driver':'d','pool':'p','device':'g'}]}}"
    "}";

TEST(ResourceDefaults, fill_in_what_a_request_leaves_out) {
  struct Case {
    const char* request;
    const char* made;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"{'exactly':{'deviceClassName':'c'}}",
            "{'exactly':{'deviceClassName':'c','allocationMode':'ExactCount','count':1}}"},
           {"{'exactly':{'allocationMode':'All'}}", "{'exactly':{'allocationMode':'All'}}"},
           {"{'exactly':{'count':5,'tolerations':[{'key':'k'}]}}",
            "{'exactly':{'count':5,'allocationMode':'ExactCount','tolerations':[{'key':'k',"
            "'operator':'Equal'}]}}"},
           {"{'firstAvailable':[{'name':'a'}]}",
            "{'firstAvailable':[{'name':'a','allocationMode':'ExactCount','count':1}]}"},
           // v1beta1: a request without a class is none.
           {"{'deviceClassName':'c'}",
            "{'deviceClassName':'c','allocationMode':'ExactCount','count':1}"},
           {"{'count':2}", "{'count':2}"}}) {
    Value object = claim(cat("[", c.request, "]"));
    set_device_claim_defaults(object);
    EXPECT_EQ(object["spec"]["devices"]["requests"][0], parsed(c.made)) << c.request;
  }
}

TEST(ResourceDefaults, give_taints_the_time_of_the_write) {
  Value slice = parsed(
      "{'spec':{'devices':[{'name':'a','taints':[{'key':'k'},{'key':'l','timeAdded':'x'}]}]}}");
  set_taint_times(slice, Time{});
  const Value& taints = slice["spec"]["devices"][0]["taints"];
  EXPECT_EQ(taints[0]["timeAdded"].str(), "1970-01-01T00:00:00Z");
  EXPECT_EQ(taints[1]["timeAdded"].str(), "x");
}

TEST(ResourceGates, take_out_what_is_off_unless_it_is_in_use) {
  Features off = gates("1.36", "DRADeviceTaints=false,DRAConsumableCapacity=false");
  Value claim = parsed(
      "{'spec':{'devices':{'requests':[{'name':'a','exactly':{'tolerations':[{'key':'k'}],"
      "'capacity':{}}}],'constraints':[{'distinctAttribute':'d/a'}]}}}");
  const Gates of_claims(*builtin_schema("resource.k8s.io", "v1", "ResourceClaim"));
  Value fresh = claim;
  of_claims.drop_disabled(fresh, nullptr, off);
  EXPECT_EQ(fresh["spec"], parsed("{'devices':{'requests':[{'name':'a','exactly':{}}],"
                                  "'constraints':[{}]}}"));

  Value kept = claim;
  of_claims.drop_disabled(kept, &claim, off);
  EXPECT_EQ(kept, claim);
}

TEST(ResourceGates, leave_an_attribute_of_a_list_without_a_value) {
  Value slice = parsed(
      "{'spec':{'devices':[{'name':'a','attributes':{'s':{'strings':['x']}},'consumesCounters':[{"
      "'counterSet':'s','compatibilityGroups':['g']}]}],'skipNodeOperations':['*']}}");
  const Gates of_slices(*builtin_schema("resource.k8s.io", "v1", "ResourceSlice"));
  of_slices.drop_disabled(slice, nullptr, gates());
  EXPECT_EQ(slice["spec"], parsed("{'devices':[{'name':'a','attributes':{'s':{}},"
                                  "'consumesCounters':[{'counterSet':'s'}]}]}"));
}

TEST(ResourceClaims, tell_declared_faults_after_the_others) {
  KindRules rules = make_resource_rules("ResourceClaim", gates());
  Value object = claim(
      "[{'name':'A','exactly':{'deviceClassName':'c','allocationMode':'Some'}},"
      "{'name':'b','exactly':{'deviceClassName':'','allocationMode':'All'}}]");
  EXPECT_THAT(faults(rules, object),
              ElementsAre(HasSubstr("spec.devices.requests[0].name: Invalid value: \"A\""),
                          "spec.devices.requests[1].exactly.deviceClassName: Required value",
                          "spec.devices.requests[0].exactly.allocationMode: Unsupported value: "
                          "\"Some\": supported values: \"All\", \"ExactCount\""));
}

TEST(ResourceClaims, name_declared_fields_as_the_version_has_them) {
  KindRules rules = make_resource_rules("ResourceClaim", "v1beta1", gates());
  Value object = claim("[{'name':'a','exactly':{'deviceClassName':'','allocationMode':'Some'}}]");
  EXPECT_THAT(faults(rules, object),
              ElementsAre("spec.devices.requests[0].exactly.deviceClassName: Required value",
                          HasSubstr("spec.devices.requests[0].allocationMode: Unsupported value")));
}

TEST(ResourceClaims, show_a_duplicate_as_the_version_writes_it) {
  const char* twice =
      "[{'name':'a','exactly':{'count':1,'deviceClassName':'c','allocationMode':'ExactCount'}},"
      "{'name':'a','exactly':{'count':1,'deviceClassName':'c','allocationMode':'ExactCount'}}]";
  EXPECT_THAT(faults(make_resource_rules("ResourceClaim", gates()), claim(twice)),
              ElementsAre("spec.devices.requests[1]: Duplicate value: {\"name\":\"a\",\"exactly\":{"
                          "\"deviceClassName\":\"c\",\"allocationMode\":\"ExactCount\",\"count\":1}"
                          "}"));
  EXPECT_THAT(
      faults(make_resource_rules("ResourceClaim", "v1beta1", gates()), claim(twice)),
      ElementsAre("spec.devices.requests[1]: Duplicate value: {\"name\":\"a\","
                  "\"deviceClassName\":\"c\",\"allocationMode\":\"ExactCount\",\"count\":1}"));
  EXPECT_THAT(faults(make_resource_rules("ResourceClaim", gates("1.36")), claim(twice)),
              ElementsAre("spec.devices.requests[1]: Duplicate value: \"a\""));
}

TEST(ResourceClaims, cannot_change_their_spec) {
  KindRules rules = make_resource_rules("ResourceClaim", gates());
  Value old = claim(kGpu);
  Value changed = claim("[{'name':'B','exactly':{'count':-1}}]");
  EXPECT_THAT(faults(rules, changed, &old),
              ElementsAre("spec: Invalid value: null: field is immutable"));
  EXPECT_THAT(faults(rules, old, &old), IsEmpty());
}

TEST(ResourceClaimTemplates, are_judged_again_beside_that_they_cannot_change) {
  const auto of = [](std::string_view requests) {
    return parsed(
        cat("{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaimTemplate','metadata':{'name':"
            "'t','namespace':'n'},'spec':{'spec':{'devices':{'requests':",
            requests, "}}}}"));
  };
  const KindRules rules = make_resource_rules("ResourceClaimTemplate", gates());
  const Value old = of(kGpu);
  const Value changed =
      of("[{'name':'Gpu','exactly':{'deviceClassName':'c','allocationMode':'X'}}]");

  EXPECT_THAT(
      faults(rules, changed, &old),
      ElementsAre(HasSubstr("spec.spec.devices.requests[0].name: Invalid value: \"Gpu\""),
                  HasSubstr(": field is immutable"),
                  "spec.spec.devices.requests[0].exactly.allocationMode: Unsupported value: "
                  "\"X\": supported values: \"All\", \"ExactCount\""));
  EXPECT_THAT(faults(rules, old, &old), IsEmpty());
}

TEST(ResourceClaims, have_an_allocation_set_or_taken_away_but_not_changed) {
  KindRules rules = make_resource_rules("ResourceClaim", gates());
  Value free = claim(kGpu);
  Value allocated = claim(kGpu, kAllocated);
  Value other = allocated;
  other.mut("status")
      .mut("allocation")
      .mut("devices")
      .mut("results")
      .mut(std::size_t{0})
      .set("device", "h");
  EXPECT_THAT(faults(rules, allocated, &free, true), IsEmpty());
  EXPECT_THAT(faults(rules, free, &allocated, true), IsEmpty());
  EXPECT_THAT(faults(rules, other, &allocated, true),
              ElementsAre("status.allocation: Invalid value: null: field cannot be modified once "
                          "set"));
}

TEST(ResourceClaims, forget_what_drivers_said_of_devices_that_are_gone) {
  KindRules rules = make_resource_rules("ResourceClaim", gates());
  Value old = claim(kGpu, kAllocated);
  old.mut("status").set("devices", parsed("[{'driver':'d','pool':'p','device':'g'}]"));
  Value freed = old;
  freed.mut("status").erase("allocation");
  rules.prepare_status(freed, old, {});
  EXPECT_EQ(freed["status"], Value::object());

  // One that never was there is a fault, not forgotten.
  Value strange = old;
  strange.mut("status").mut("devices").mut(std::size_t{0}).set("device", "x");
  rules.prepare_status(strange, old, {});
  EXPECT_THAT(faults(rules, strange, &old, true),
              ElementsAre(HasSubstr("status.devices[0]: Invalid value: {\"Driver\":\"d\",\"Pool\":"
                                    "\"p\",\"Device\":\"x\",\"ShareID\":\"\"}")));
}

TEST(ResourceClaims, keep_metadata_apart_from_status) {
  KindRules rules = make_resource_rules("ResourceClaim", gates());
  Value old = claim(kGpu);
  Value sent = claim(kGpu, kAllocated);
  sent.mut("metadata").set("labels", parsed("{'a':'b'}"));
  sent.mut("metadata").set("finalizers", parsed("['x/y']"));
  rules.prepare_status(sent, old, {});
  EXPECT_EQ(sent["metadata"], old["metadata"]);
}

TEST(ResourceClaims, want_derived_attributes_to_be_used) {
  Features features = gates("1.37", "DRADerivedAttributes=true");
  KindRules rules = make_resource_rules("ResourceClaim", features);
  auto with = [&](std::string_view expression, std::string_view constraint) {
    Value object = claim(
        cat("[{'name':'a','exactly':{'deviceClassName':'c','allocationMode':'ExactCount','count':1,"
            "'derivedAttributes':[{'name':'d/x','expression':'",
            expression, "'}]}}]"));
    object.mut("spec").mut("devices").set("constraints", parsed(std::string(constraint)));
    return faults(rules, object);
  };
  EXPECT_THAT(with("device.driver", "[{'matchAttribute':'d/x'}]"), IsEmpty());
  EXPECT_THAT(with("device.driver", "[{'matchAttribute':'d/y'}]"),
              ElementsAre(HasSubstr("derivedAttributes[0].name: Invalid value: \"d/x\": must be "
                                    "referenced")));
  EXPECT_THAT(with("device.attributes", "[{'matchAttribute':'d/x'}]"),
              ElementsAre(HasSubstr("must evaluate to a primitive scalar")));
}

TEST(ResourceSlices, judge_again_only_what_changed) {
  KindRules rules = make_resource_rules("ResourceSlice", gates());
  Value old = parsed(
      "{'apiVersion':'resource.k8s.io/v1','kind':'ResourceSlice','metadata':{'name':'s'},'spec':{"
      "'driver':'d','pool':{'name':'p','generation':1,'resourceSliceCount':1},'nodeName':'n',"
      "'devices':[{'name':'a','taints':[{'key':'k','effect':'Old'}],'attributes':{'x':{}}}]}}");
  Value changed = old;
  changed.mut("spec").mut("pool").set("generation", 2);
  // Attributes are judged by the older checks, which know no past.
  EXPECT_THAT(faults(rules, changed, &old),
              ElementsAre("spec.devices[0].attributes[x]: Invalid value: \"\": exactly one value "
                          "must be specified"));
  EXPECT_THAT(faults(rules, old), ElementsAre(HasSubstr("attributes[x]: Invalid value: \"\": must "
                                                        "specify one of"),
                                              HasSubstr("taints[0].effect: Unsupported value")));
}

TEST(ResourceSlices, keep_driver_pool_and_node) {
  KindRules rules = make_resource_rules("ResourceSlice", gates());
  Value old = parsed(
      "{'apiVersion':'resource.k8s.io/v1','metadata':{'name':'s'},'spec':{'driver':'d','pool':{"
      "'name':'p','resourceSliceCount':1},'nodeName':'n'}}");
  Value changed = parsed(
      "{'apiVersion':'resource.k8s.io/v1','metadata':{'name':'s'},'spec':{'driver':'e','pool':{"
      "'name':'q','resourceSliceCount':1},'allNodes':true}}");
  EXPECT_THAT(faults(rules, changed, &old),
              ElementsAre("spec.pool.name: Invalid value: \"q\": field is immutable",
                          "spec.driver: Invalid value: \"e\": field is immutable",
                          "spec.nodeName: Invalid value: null: field is immutable"));
}

TEST(DeviceTaintRules, renew_the_time_with_the_effect) {
  KindRules rules = make_resource_rules("DeviceTaintRule", gates());
  Value old = parsed("{'spec':{'taint':{'key':'k','effect':'None','timeAdded':'t'}}}");
  Value other = parsed("{'spec':{'taint':{'key':'k','effect':'NoExecute','timeAdded':'t'}}}");
  rules.prepare_update(other, old, {});
  EXPECT_EQ(other["spec"]["taint"]["timeAdded"].str(), "1970-01-01T00:00:00Z");
  Value given = parsed("{'spec':{'taint':{'key':'k','effect':'NoExecute','timeAdded':'u'}}}");
  rules.prepare_update(given, old, {});
  EXPECT_EQ(given["spec"]["taint"]["timeAdded"].str(), "u");
  EXPECT_FALSE(rules.allow_unconditional_update);
  KindRules older = make_resource_rules("DeviceTaintRule", "v1beta2", gates());
  EXPECT_TRUE(older.allow_unconditional_update);
}

TEST(PoolStatusRequests, have_their_status_written_once) {
  KindRules rules = make_resource_rules("ResourcePoolStatusRequest", "v1alpha3", gates());
  Value fresh = parsed("{'spec':{'driver':'d','limit':100}}");
  Value done = parsed("{'spec':{'driver':'d','limit':100},'status':{'poolCount':1}}");
  Value again = parsed("{'spec':{'driver':'d','limit':100},'status':{'poolCount':2}}");
  EXPECT_THAT(faults(rules, done, &fresh, true), IsEmpty());
  EXPECT_THAT(faults(rules, again, &done, true),
              ElementsAre("status: Invalid value: {\"PoolCount\":2,\"Pools\":null,\"Conditions\":"
                          "null}: field is immutable"));
}

TEST(ClassicClaims, follow_the_rules_of_their_model) {
  KindRules rules = make_resource_rules("ResourceClaim", "v1alpha2", gates("1.30"));
  auto classic = [](std::string_view spec, std::string_view status = "{}") {
    return parsed(
        cat("{'apiVersion':'resource.k8s.io/v1alpha2','kind':'ResourceClaim','metadata':{"
            "'name':'c'},'spec':",
            spec, ",'status':", status, "}"));
  };
  constexpr const char* spec = "{'resourceClassName':'c','allocationMode':'WaitForFirstConsumer'}";
  Value object = classic("{'resourceClassName':'c'}");
  rules.set_defaults(object);
  EXPECT_EQ(object["spec"], parsed(spec));

  // A main update is judged twice over.
  Value bad = classic("{'resourceClassName':'c','allocationMode':'x'}");
  EXPECT_THAT(faults(rules, bad, &object),
              ElementsAre(HasSubstr("spec.allocationMode: Unsupported value"),
                          HasSubstr("spec: Invalid value: resource.ResourceClaimSpec{"),
                          HasSubstr("spec.allocationMode: Unsupported value")));

  struct Case {
    const char* old;
    const char* status;
    const char* fault;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"{}", "{'allocation':{}}",
            "status.driverName: Required value: must be specified when `allocation` is set"},
           {"{}", "{'reservedFor':[{'resource':'pods','name':'p','uid':'u'}]}",
            "status.reservedFor: Forbidden: may not be specified when `allocated` is not set"},
           {"{}",
            "{'driverName':'d','allocation':{},'reservedFor':[{'resource':'pods','name':'p','uid':"
            "'u'},{'resource':'pods','name':'q','uid':'v'}]}",
            "status.reservedFor: Forbidden: may not be reserved more than once"},
           {"{'driverName':'d','allocation':{},'deallocationRequested':true}",
            "{'driverName':'d','allocation':{}}",
            "status.deallocationRequested: Forbidden: may not be cleared when `allocation` is set"},
           {"{'driverName':'d','allocation':{},'deallocationRequested':true}",
            "{'driverName':'d','deallocationRequested':true}",
            "status: Forbidden: `allocation` must be set when `deallocationRequested` is set"}}) {
    Value old = classic(spec, c.old);
    EXPECT_THAT(faults(rules, classic(spec, c.status), &old, true), ElementsAre(c.fault));
  }
}

TEST(PodGates, make_a_pod_without_claims) {
  const KindRules& rules = kind_rules("", "Pod");
  const Value spec = parsed(
      "{'resourceClaims':[{'name':'a'}],'containers':[{'name':'c','resources':{'claims':[{'name':"
      "'a'}]}}]}");
  auto updated = [&](const Value& old, const Features& features) {
    Value pod = Value::object({{"spec", spec}});
    RuleContext context;
    context.features = &features;
    rules.prepare_update(pod, Value::object({{"spec", old}}), context);
    return pod["spec"];
  };
  const Features off = gates("1.30", "DynamicResourceAllocation=false");
  EXPECT_EQ(updated(Value::object(), off), parsed("{'containers':[{'name':'c','resources':{}}]}"));
  EXPECT_EQ(updated(spec, off), spec);
  EXPECT_EQ(updated(Value::object(), gates("1.30")), spec);
}

TEST(PodGates, make_a_status_without_health) {
  const Value pod = parsed(
      "{'spec':{},'status':{'containerStatuses':[{'name':'c','allocatedResourcesStatus':[{'name':"
      "'claim:a'}]}],'extendedResourceClaimStatus':{}}}");
  const Gates of_pods(*builtin_schema("", "v1", "Pod"));
  const Value old = parsed("{'spec':{},'status':{}}");
  Value fresh = pod;
  of_pods.drop_disabled(fresh, &old,
                        gates("1.36", "ResourceHealthStatus=false,DRAExtendedResource=false"));
  EXPECT_EQ(fresh["status"], parsed("{'containerStatuses':[{'name':'c'}]}"));
  Value on = pod;
  of_pods.drop_disabled(on, &old, gates());
  EXPECT_EQ(on, pod);
}

}  // namespace
}  // namespace dibs::api
