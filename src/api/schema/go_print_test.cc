#include "api/schema/go_print.h"

#include <gtest/gtest.h>

#include "api/schema/builtin.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

Value parsed(std::string_view text) { return *json::parse(text); }

TEST(GoForm, IsTheJsonOfTheInternalType) {
  const Value request = parsed(R"({"name":"a","exactly":{"selectors":[{"cel":{"expression":"x"}}],
      "capacity":{"requests":{"b":"1","a":"2"}}}})");
  EXPECT_EQ(
      json::write(go_form(request, *builtin_type("resource/v1.DeviceRequest"))),
      R"({"Name":"a","Exactly":{"DeviceClassName":"","Selectors":[{"CEL":{"Expression":"x"}}],)"
      R"("AllocationMode":"","Count":0,"AdminAccess":null,"Tolerations":null,)"
      R"("Capacity":{"Requests":{"a":"2","b":"1"}},"DerivedAttributes":null},)"
      R"("FirstAvailable":null})");
}

TEST(GoForm, HasMetadataAndEmbeddedPartsInTheObject) {
  const Value spec = parsed(R"({"metadata":{"labels":{"b":"1"},"name":"n"},"spec":{"devices":{
      "requests":null,"config":[{"opaque":{"driver":"d","parameters":{"x":1}}}]}}})");
  EXPECT_EQ(json::write(go_form(spec, *builtin_type("resource/v1.ResourceClaimTemplateSpec"))),
            R"({"name":"n","labels":{"b":"1"},"Spec":{"Devices":{"Requests":null,)"
            R"("Constraints":null,"Config":[{"Requests":null,"Opaque":{"Driver":"d",)"
            R"("Parameters":{"x":1}}}]}}})");
}

TEST(GoForm, ShowsUnionsOfSchemasByTheirParts) {
  const Value schema = parsed(R"({"type":"object","properties":{"b":{"items":{"type":"string"}},
      "a":{"additionalProperties":true}},"x-kubernetes-validations":[{"rule":"self.a < 1"}]})");
  const std::string text =
      json::write(go_form(schema, *builtin_type("apiextensions/v1.JSONSchemaProps")), true);
  for (const char* part :
       {R"("Type":"object","Nullable":false)", R"("Properties":{"a":{"ID":"")",
        R"("AdditionalProperties":{"Allows":true,"Schema":null})", R"("JSONSchemas":null})",
        R"("XValidations":[{"Rule":"self.a \u003c 1","Message":"","MessageExpression":"",)"
        R"("Reason":null,"FieldPath":"","OptionalOldSelf":null}])"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
}

TEST(GoSyntax, PrintsInternalStructures) {
  const Value claim = parsed(R"({"spec":{"resourceClassName":"c","parametersRef":{"name":"p"}},
      "status":{"allocation":{"resourceHandles":[{"driverName":"d"}],"shareable":true}}})");
  const Schema& schema = *builtin_schema("resource.k8s.io", "v1alpha2", "ResourceClaim", 27);
  EXPECT_EQ(go_syntax(claim["spec"], *schema.field("spec")->schema),
            R"(resource.ResourceClaimSpec{ResourceClassName:"c", )"
            R"(ParametersRef:(*resource.ResourceClaimParametersReference)(0xc000000000), )"
            R"(AllocationMode:""})");
  const Schema& status = *schema.field("status")->schema;
  EXPECT_EQ(go_syntax(claim["status"]["allocation"], *status.field("allocation")->schema),
            R"(resource.AllocationResult{ResourceHandles:[]resource.ResourceHandle{)"
            R"(resource.ResourceHandle{DriverName:"d", Data:""}}, )"
            R"(AvailableOnNodes:(*core.NodeSelector)(nil), Shareable:true})");
}

TEST(GoSyntax, NamesEmbeddedStructures) {
  const Value config = parsed(R"({"requests":["r"]})");
  EXPECT_EQ(go_syntax(config, *builtin_type("resource/v1beta1.DeviceClaimConfiguration")),
            R"(resource.DeviceClaimConfiguration{Requests:[]string{"r"}, )"
            R"(DeviceConfiguration:resource.DeviceConfiguration{)"
            R"(Opaque:(*resource.OpaqueDeviceConfiguration)(nil)}})");
}

TEST(GoOrder, IsThatOfTheStructure) {
  const Value condition = parsed(R"({"message":"m","reason":"r","status":"True","type":"T"})");
  EXPECT_EQ(json::write(in_go_order(condition, *builtin_type("meta/v1.Condition"))),
            R"({"type":"T","status":"True","reason":"r","message":"m"})");
}

}  // namespace
}  // namespace dibs::api
