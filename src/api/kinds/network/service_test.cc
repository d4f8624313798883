#include "api/kinds/network/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"
#include "json/patch.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Value parsed(std::string_view text) { return json::parse(text).value(); }

Value service(std::string_view spec) {
  Value object =
      Value::object({{"metadata", Value::object({{"name", "s"}})}, {"spec", parsed(spec)}});
  const KindRules& rules = kind_rules("", "Service");
  rules.set_defaults(object);
  rules.prepare_create(object, {Time{}, ""});
  return object;
}

Value updated(const Value& old, std::string_view patch) {
  Value object = json::apply_merge_patch(old, parsed(patch));
  const KindRules& rules = kind_rules("", "Service");
  rules.set_defaults(object);
  rules.prepare_update(object, old, {Time{}, ""});
  return object;
}

std::vector<std::string> faults_of(const Value& object, const Value* old = nullptr) {
  FieldErrors errors;
  const KindRules& rules = kind_rules("", "Service");
  if (old == nullptr)
    rules.validate(object, errors);
  else
    rules.validate_update(object, *old, errors);
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(cat(error.field, ": ", error.text));
  return out;
}

TEST(Service, a_headless_one_without_selector_has_both_families) {
  Value free = service(R"({"clusterIP":"None","ports":[{"port":80}]})");
  EXPECT_EQ(free["spec"]["ipFamilies"], parsed(R"(["IPv4","IPv6"])"));
  EXPECT_EQ(free["spec"]["ipFamilyPolicy"].as_string(), "RequireDualStack");
  Value selecting = service(R"({"clusterIP":"None","selector":{"a":"b"},"ports":[{"port":80}]})");
  EXPECT_EQ(selecting["spec"]["ipFamilies"], parsed(R"(["IPv4"])"));
  EXPECT_EQ(selecting["spec"]["ipFamilyPolicy"].as_string(), "SingleStack");
}

TEST(Service, warns_of_what_is_ignored_or_deprecated) {
  const auto warnings = [](std::string_view spec) {
    return kind_rules("", "Service").warnings(service(spec), nullptr);
  };
  EXPECT_THAT(warnings(R"({"ports":[{"port":80}]})"), IsEmpty());
  EXPECT_THAT(warnings(R"({"clusterIP":"None","loadBalancerIP":"1.2.3.4","externalIPs":["1.2.3.4"],
                           "sessionAffinity":"ClientIP"})"),
              ElementsAre("spec.loadBalancerIP is ignored for headless services",
                          "spec.externalIPs is ignored for headless services",
                          "spec.SessionAffinity is ignored for headless services"));
  EXPECT_THAT(
      warnings(R"({"externalIPs":["FD00::1"],"externalName":"a","ports":[{"port":80}]})"),
      ElementsAre(
          "spec.externalIPs[0]: IPv6 address \"FD00::1\" should be in RFC 5952 canonical "
          "format (\"fd00::1\")",
          "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
          "spec.externalName is ignored when spec.type is not \"ExternalName\""));
  EXPECT_THAT(
      warnings(R"({"type":"ExternalName","externalName":"a.example","externalIPs":["1.2.3.4"]})"),
      ElementsAre("spec.externalIPs is ignored when spec.type is \"ExternalName\""));
  EXPECT_THAT(warnings(R"({"trafficDistribution":"PreferClose","ports":[{"port":80}]})"),
              ElementsAre("spec.trafficDistribution: \"PreferClose\" is deprecated; use "
                          "\"PreferSameZone\""));
}

TEST(Service, keeps_what_was_allocated) {
  Value old = service(R"({"type":"NodePort","clusterIP":"10.0.0.7","ports":[
      {"port":80,"nodePort":31801}]})");
  Value object =
      updated(old, R"({"spec":{"clusterIP":null,"ports":[{"port":80,"targetPort":8}]}})");
  EXPECT_EQ(object["spec"]["clusterIPs"], parsed(R"(["10.0.0.7"])"));
  EXPECT_EQ(object["spec"]["ports"][0]["nodePort"].as_int(), 31801);
  EXPECT_THAT(faults_of(object, &old), IsEmpty());
  Value other = updated(old, R"({"spec":{"clusterIP":"10.0.0.8"}})");
  EXPECT_THAT(faults_of(other, &old),
              ElementsAre("spec.clusterIPs[0]: Invalid value: [\"10.0.0.8\"]: may not change once "
                          "set"));
}

TEST(Service, another_type_leaves_fields_behind) {
  Value old = service(R"({"type":"LoadBalancer","clusterIP":"10.0.0.7",
      "externalTrafficPolicy":"Local","ports":[{"port":80,"nodePort":31801}]})");
  Value object = updated(old, R"({"spec":{"type":"ClusterIP"}})");
  EXPECT_THAT(faults_of(object, &old), IsEmpty());
  EXPECT_TRUE(object["spec"]["externalTrafficPolicy"].is_null());
  EXPECT_TRUE(object["spec"]["allocateLoadBalancerNodePorts"].is_null());
  EXPECT_TRUE(object["spec"]["ports"][0]["nodePort"].is_null());
}

TEST(Service, special_addresses_are_not_for_others) {
  struct Case {
    const char* ip;
    std::size_t faults;
  };
  const Case cases[] = {{"10.0.0.1", 0},    {"0.0.0.0", 1},     {"127.0.0.1", 1},
                        {"169.254.1.1", 1}, {"224.0.0.1", 1},   {"::1", 1},
                        {"fe80::1", 1},     {"2001:db8::1", 0}, {"not-an-ip", 1}};
  for (const Case& c : cases) {
    FieldErrors errors;
    validate_non_special_ip(c.ip, Path("ip"), errors);
    EXPECT_EQ(errors.size(), c.faults) << c.ip;
  }
}

TEST(Service, whose_addresses_do_not_fit_is_told_that_alone) {
  Value old = service(R"({"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],"ports":[{"port":1}]})");

  EXPECT_THAT(faults_of(updated(old, R"({"spec":{"clusterIPs":["10.0.0.2"]}})"), &old),
              ElementsAre("spec.clusterIPs: Invalid value: [\"10.0.0.2\"]: first value must match "
                          "`clusterIP`"));
  EXPECT_THAT(faults_of(updated(old, R"({"spec":{"type":"X"}})"), &old),
              ElementsAre("spec.type: Unsupported value: \"X\": supported values: \"ClusterIP\", "
                          "\"ExternalName\", \"LoadBalancer\", \"NodePort\""));
}

TEST(Service, keeps_the_port_of_its_health) {
  Value old = service(R"({"type":"LoadBalancer","externalTrafficPolicy":"Local",
      "healthCheckNodePort":30001,"ports":[{"port":1}]})");

  EXPECT_THAT(faults_of(updated(old, R"({"spec":{"healthCheckNodePort":30002}})"), &old),
              testing::Contains("spec.healthCheckNodePort: Forbidden: field is immutable"));
}

}  // namespace
}  // namespace dibs::api
