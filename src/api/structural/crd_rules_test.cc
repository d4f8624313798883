#include "api/structural/crd_rules.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

Value version(std::string_view name, bool storage, std::string_view schema,
              std::string_view more = "") {
  return parsed(cat(R"({"name":")", name, R"(","served":true,"storage":)", storage,
                    R"(,"schema":{"openAPIV3Schema":)", schema, "}", more, "}"));
}

Value definition(std::vector<Value> versions) {
  Value object = parsed(
      R"({"metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
      "names":{"plural":"things","kind":"Thing"}}})");
  Value list = Value::array();
  for (Value& item : versions) list.push(std::move(item));
  object.mut("spec").set("versions", list);
  return object;
}

std::string shown(const FieldErrors& errors) {
  std::string text;
  for (const FieldError& error : errors.errors())
    append(text, text.empty() ? "" : "; ", error.field, ": ", error.text);
  return text;
}

std::string faults(Value object, CelChecker cel = {}) {
  const KindRules rules = make_definition_rules(std::move(cel));
  rules.set_defaults(object);
  rules.prepare_create(object, RuleContext());
  FieldErrors errors;
  rules.validate(object, errors);
  return shown(errors);
}

constexpr std::string_view kPlain = R"({"type":"object"})";

TEST(DefinitionRules, name_the_version_where_versions_differ) {
  EXPECT_EQ(
      faults(definition({version("v1", true, kPlain),
                         version("v2", false, R"({"type":"object","properties":{"a":{}}})")})),
      "spec.versions[1].schema.openAPIV3Schema.properties[a].type: Required value: must not be "
      "empty for specified "
      "object fields");
}

TEST(DefinitionRules, defaults_and_stored_versions) {
  const KindRules rules = make_definition_rules();
  Value object = definition({version("v1", false, kPlain), version("v2", true, kPlain)});
  rules.set_defaults(object);
  rules.prepare_create(object, RuleContext());
  EXPECT_EQ(
      object["spec"]["names"],
      parsed(R"({"plural":"things","kind":"Thing","singular":"thing","listKind":"ThingList"})"));
  EXPECT_EQ(object["spec"]["conversion"], parsed(R"({"strategy":"None"})"));
  EXPECT_EQ(
      object["status"],
      parsed(
          R"({"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":["v2"]})"));

  Value next = object;
  next.mut("spec").mut("versions").mut(0).set("storage", true);
  next.mut("spec").mut("versions").mut(1).set("storage", false);
  next.erase("status");
  rules.prepare_update(next, object, RuleContext());
  EXPECT_EQ(next["status"]["storedVersions"], parsed(R"(["v2","v1"])"));
}

TEST(DefinitionRules, columns_selectable_fields_and_scale_per_version) {
  EXPECT_EQ(
      faults(definition(
          {version(
               "v1", true,
               R"({"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object"}}}}})",
               R"(,"selectableFields":[{"jsonPath":".spec.a"},{"jsonPath":".spec.o"},{"jsonPath":".spec.a"},{"jsonPath":".spec['a']"},{"jsonPath":""}],
                     "additionalPrinterColumns":[{"name":"A","type":"string","format":"odd","jsonPath":".a"}],
                     "subresources":{"scale":{"specReplicasPath":".status.r","statusReplicasPath":".status.r","labelSelectorPath":".x"}})"),
           version("v2", false, kPlain)})),
      "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: \".status.r\": should "
      "be a json path under .spec; "
      "spec.versions[0].subresources.scale.labelSelectorPath: Invalid value: \".x\": should be a "
      "json path under either .spec or .status; "
      "spec.versions[0].additionalPrinterColumns[0].format: Invalid value: \"odd\": must be one of "
      "byte,date,date-time,double,float,int32,int64,password; "
      "spec.versions[0].selectableFields[1].jsonPath: Invalid value: \".spec.o\": must point to a "
      "field of type string, boolean or integer. Enum string fields and strings with formats are "
      "allowed.; "
      "spec.versions[0].selectableFields[2].jsonPath: Duplicate value: \".spec.a\"; "
      "spec.versions[0].selectableFields[3].jsonPath: Invalid value: \".spec['a']\": is an invalid "
      "path: array notation is not allowed; "
      "spec.versions[0].selectableFields[4].jsonPath: Required value");
}

TEST(DefinitionRules, status_subresource_narrows_the_root) {
  const std::string text = faults(definition({version(
      "v1", true,
      R"({"type":"object","oneOf":[{"required":["a"]}],"properties":{"a":{"type":"string"}}})",
      R"(,"subresources":{"status":{}})")}));
  EXPECT_NE(text.find("spec.validation.openAPIV3Schema: Invalid value: {\"ID\":\"\""),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("only [Description Type Format Title"), std::string::npos) << text;
}

TEST(DefinitionRules, junctors_at_the_root_need_their_properties) {
  EXPECT_EQ(
      faults(definition({version(
          "v1", true, R"({"type":"object","anyOf":[{"properties":{"a":{"minimum":1}}}]})")})),
      "spec.validation.openAPIV3Schema.properties[a]: Required value: because it is defined in "
      "spec.validation.openAPIV3Schema.anyOf[0].properties[a]");
}

TEST(DefinitionRules, defaults_must_fit_and_be_pruned) {
  EXPECT_EQ(faults(definition({version("v1", true, R"({"type":"object","properties":{
                "o":{"type":"object","default":{"x":1},"properties":{"y":{"type":"string"}}},
                "l":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer","default":"x"}}}},
                "e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"default":{"kind":"K"}},
                "metadata":{"type":"object","default":{}}}})")})),
            "spec.validation.openAPIV3Schema.properties[o].default: Invalid value: {\"x\":1}: must "
            "not have unknown fields; "
            "spec.validation.openAPIV3Schema.properties[l].items.properties[n].default: Invalid "
            "value: \"string\":  in body must be of type integer: \"string\"; "
            "spec.validation.openAPIV3Schema.properties[e].default.apiVersion: Required value; "
            "spec.validation.openAPIV3Schema.properties[metadata].default: Forbidden: must not be "
            "set in top-level metadata");
}

TEST(DefinitionRules, conversion_webhook) {
  auto with = [](std::string_view conversion) {
    Value object = definition({version("v1", true, kPlain)});
    object.mut("spec").set("conversion", parsed(conversion));
    return faults(object);
  };
  EXPECT_EQ(
      with(
          R"({"strategy":"Webhook","webhook":{"clientConfig":{"url":"http://u@h/p?q#f"},"conversionReviewVersions":["v9","v9"]}})"),
      "spec.conversion.webhookClientConfig.url: Invalid value: \"http\": 'https' is the only "
      "allowed URL scheme; desired format: https://host[/path]; "
      "spec.conversion.webhookClientConfig.url: Invalid value: \"u\": user information is not "
      "permitted in the URL; "
      "spec.conversion.webhookClientConfig.url: Invalid value: \"f\": fragments are not permitted "
      "in the URL; "
      "spec.conversion.webhookClientConfig.url: Invalid value: \"q\": query parameters are not "
      "permitted in the URL; "
      "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v9\": duplicate version; "
      "spec.conversion.conversionReviewVersions: Invalid value: [\"v9\",\"v9\"]: must include at "
      "least one of v1, v1beta1");
  EXPECT_EQ(
      with(
          R"({"strategy":"Webhook","webhook":{"clientConfig":{"service":{"name":"s","namespace":"n","path":"x"}},"conversionReviewVersions":["v1"]}})"),
      "spec.conversion.webhookClientConfig.service.path: Invalid value: \"x\": must start with a "
      "'/'; "
      "spec.conversion.webhookClientConfig.service.path: Invalid value: \"x\": segment[0] may not "
      "be empty");
  EXPECT_EQ(with(R"({"strategy":"None","webhook":{"conversionReviewVersions":["v1"]}})"),
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy "
            "is not set to Webhook");
}

TEST(DefinitionRules, established_names_are_fixed) {
  const KindRules rules = make_definition_rules();
  Value old = definition({version("v1", true, kPlain)});
  rules.set_defaults(old);
  rules.prepare_create(old, RuleContext());
  Value next = old;
  next.mut("spec").set("scope", "Cluster");
  FieldErrors before;
  rules.validate_update(next, old, before);
  EXPECT_EQ(shown(before), "");

  old.mut("status").set("conditions", parsed(R"([{"type":"Established","status":"True"}])"));
  FieldErrors after;
  rules.validate_update(next, old, after);
  EXPECT_EQ(shown(after), "spec.scope: Invalid value: \"Cluster\": field is immutable");
}

TEST(DefinitionRules, hostile_schemas_are_refused_without_recursion) {
  Value deep = Value::object({{"type", "string"}});
  for (int i = 0; i < 3000; ++i) {
    deep = Value::object({{"type", "object"}, {"properties", Value::object({{"a", deep}})}});
  }
  Value object = definition({version("v1", true, kPlain)});
  object.mut("spec").mut("versions").mut(0).mut("schema").set("openAPIV3Schema", deep);
  EXPECT_EQ(faults(object),
            "spec.validation.openAPIV3Schema: Invalid value: \"\": must not be nested deeper than "
            "256 levels");
}

TEST(DefinitionRules, expressions_are_compiled_only_in_sound_schemas) {
  int called = 0;
  CelChecker cel;
  cel.rules = [&](const CelCheck& check, FieldErrors& errors) {
    ++called;
    if (check.faults.empty())
      errors.invalid(check.path.child("x-kubernetes-validations"), "x", "no");
  };
  constexpr std::string_view kRule = R"("x-kubernetes-validations":[{"rule":"true"}])";
  EXPECT_EQ(faults(definition({version("v1", true, cat(R"({"type":"object",)", kRule, "}"))}), cel),
            "spec.validation.openAPIV3Schema.x-kubernetes-validations: Invalid value: \"x\": no");
  EXPECT_EQ(faults(definition({version(
                       "v1", true, cat(R"({"type":"object","uniqueItems":true,)", kRule, "}"))}),
                   cel),
            "spec.validation.openAPIV3Schema.uniqueItems: Forbidden: uniqueItems cannot be set to "
            "true since the runtime "
            "complexity becomes quadratic");
  EXPECT_EQ(faults(definition({version("v1", true, kPlain)}), cel), "");
  EXPECT_EQ(called, 2);
}

TEST(DefinitionRules, warns_of_formats_and_sets) {
  const KindRules rules = make_definition_rules();
  const Value object = definition(
      {version("v1", true, R"({"type":"object","properties":{"a":{"type":"string","format":"odd"},
      "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-map-type":"atomic"}}}})")});
  EXPECT_EQ(rules.warnings(object, nullptr),
            (std::vector<std::string>{
                "unrecognized format \"odd\"",
                "x-kubernetes-list-type: set for items of type \"object\" is not supported by "
                "server-side apply or CEL validation rules"}));
  EXPECT_TRUE(rules.warnings(object, &object).empty());
}

TEST(DeprecationWarning, names_the_newest_version_that_is_not) {
  const Value object = parsed(R"({"spec":{"group":"e.com","names":{"kind":"T"},"versions":[
      {"name":"v1alpha1","served":true,"deprecated":true},{"name":"v1beta1","served":true},
      {"name":"v1","served":true,"deprecated":true,"deprecationWarning":"not this one"},{"name":"v2","served":false}]}})");
  EXPECT_EQ(deprecation_warning(object, "v1alpha1"),
            "e.com/v1alpha1 T is deprecated; use e.com/v1beta1 T");
  EXPECT_EQ(deprecation_warning(object, "v1"), "not this one");
  EXPECT_EQ(deprecation_warning(object, "v1beta1"), "");
}

}  // namespace
}  // namespace dibs::api
