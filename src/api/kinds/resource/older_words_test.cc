#include "api/kinds/resource/older_words.h"

#include <gtest/gtest.h>

#include "api/kinds/resource/versions/test_support.h"
#include "api/schema/builtin.h"

namespace dibs::api {
namespace {

struct WordsCase {
  const char* name;
  Fault fault;
  const char* field;
  const char* text;
  const char* wanted;
};

class Words : public ::testing::TestWithParam<WordsCase> {};

TEST_P(Words, AreThoseOfTheRelease) {
  const WordsCase& c = GetParam();
  KindRules rules;
  rules.validate = [&](const Value&, FieldErrors& errors) {
    errors.add(c.fault, Path(c.field), c.text);
  };
  for (int minor : {32, 34}) {
    FieldErrors errors;
    in_words_of_release(rules, "ResourceClaim", minor).validate(Value::object(), errors);
    ASSERT_EQ(errors.size(), 1u);
    std::string got = errors.errors()[0].field + ": " + errors.errors()[0].text;
    if (minor == 32) {
      EXPECT_EQ(got, c.wanted);
    } else {
      EXPECT_EQ(got, std::string(c.field) + ": " + c.text);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Older, Words,
    ::testing::Values(
        WordsCase{"path", Fault::invalid, "spec.devices.requests[0].exactly.count",
                  "Invalid value: 2: x", "spec.devices.requests[0].count: Invalid value: 2: x"},
        WordsCase{"neither", Fault::required, "spec.devices.requests[0]",
                  "Required value: exactly one of `exactly` or `firstAvailable` is required",
                  "spec.devices.requests[0].deviceClassName: Required value"},
        WordsCase{"duplicate", Fault::duplicate, "spec.spec.devices.requests[1]",
                  "Duplicate value: \"gpu\"",
                  "spec.spec.devices.requests[1].name: Duplicate value: \"gpu\""},
        WordsCase{"reference", Fault::invalid, "spec.devices.constraints[0].requests[0]",
                  "Invalid value: \"net\": must be the name of a request in the claim or the name "
                  "of a request and a subrequest separated by '/'",
                  "spec.devices.constraints[0].requests[0]: Invalid value: \"net\": must be the "
                  "name of a request in the claim"},
        WordsCase{"device", Fault::invalid, "spec.devices[0].attributes[a].string",
                  "Invalid value: \"\"",
                  "spec.devices[0].basic.attributes[a].string: Invalid value: \"\""},
        WordsCase{"device_name", Fault::required, "spec.devices[0].name", "Required value",
                  "spec.devices[0].name: Required value"}),
    [](const auto& info) { return info.param.name; });

TEST(Older, SpecsAreShownInGoSyntax) {
  KindRules rules;
  rules.validate_update = [](const Value&, const Value&, FieldErrors& errors) {
    errors.add(Fault::invalid, Path("spec"), "Invalid value: {}: field is immutable");
  };
  Value claim = parsed(R"({"kind":"ResourceClaim","apiVersion":"resource.k8s.io/v1",
    "metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"other","exactly":{
    "deviceClassName":"x","allocationMode":"ExactCount","count":1}}]}}})");
  FieldErrors errors;
  in_words_of_release(rules, "ResourceClaim", 32).validate_update(claim, claim, errors);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors.errors()[0].text,
            "Invalid value: resource.ResourceClaimSpec{Devices:resource.DeviceClaim{Requests:"
            "[]resource.DeviceRequest{resource.DeviceRequest{Name:\"other\", DeviceClassName:"
            "\"x\", Selectors:[]resource.DeviceSelector(nil), AllocationMode:\"ExactCount\", "
            "Count:1, AdminAccess:(*bool)(nil)}}, Constraints:[]resource.DeviceConstraint(nil), "
            "Config:[]resource.DeviceClaimConfiguration(nil)}}: field is immutable");
}

}  // namespace
}  // namespace dibs::api
