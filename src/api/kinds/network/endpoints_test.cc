#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/network/service.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Value parsed(std::string_view text) { return json::parse(text).value(); }

const KindRules& slices() { return kind_rules("discovery.k8s.io", "EndpointSlice"); }

Value slice(std::string_view type, std::string_view endpoints) {
  Value object = Value::object({{"metadata", parsed(R"({"name":"s","generation":1})")},
                                {"addressType", type},
                                {"endpoints", parsed(endpoints)},
                                {"ports", Value::array()}});
  slices().set_defaults(object);
  return object;
}

std::vector<std::string> faults_of(const Value& object) {
  FieldErrors errors;
  slices().validate(object, errors);
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(cat(error.field, ": ", error.text));
  return out;
}

TEST(EndpointSlice, has_addresses_of_its_type) {
  EXPECT_THAT(faults_of(slice("IPv4", R"([{"addresses":["10.1.2.3"]}])")), IsEmpty());
  EXPECT_EQ(faults_of(slice("IPv4", R"([{"addresses":["fd00::1"]}])")).size(), 1U);
  const auto faults = faults_of(slice("IPv4", R"([{"addresses":["10.1.2.3", "x"]}])"));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_TRUE(faults[0].starts_with("endpoints[0].addresses[1]: ")) << faults[0];
  EXPECT_THAT(faults_of(slice("FQDN", R"([{"addresses":["a.example."]}])")), IsEmpty());
  EXPECT_EQ(faults_of(slice("FQDN", R"([{"addresses":["alone"]}])")).size(), 1U);
  EXPECT_EQ(faults_of(slice("FQDN", R"([{"addresses":["no name"]}])")).size(), 1U);
  for (const char* special : {"0.0.0.0", "127.0.0.1", "169.254.0.1", "224.0.0.1"})
    EXPECT_EQ(faults_of(slice("IPv4", cat(R"([{"addresses":[")", special, "\"]}]"))).size(), 1U)
        << special;
}

TEST(EndpointSlice, has_few_hints_each_once) {
  const auto with = [](std::string_view hints) {
    return faults_of(slice("IPv4", cat(R"([{"addresses":["10.1.2.3"],"hints":)", hints, "}]")));
  };
  EXPECT_THAT(with(R"({"forZones":[{"name":"a"}],"forNodes":[{"name":"n"}]})"), IsEmpty());
  EXPECT_EQ(with(R"({"forZones":[{"name":"a"},{"name":"a"}]})").size(), 1U);
  EXPECT_EQ(with(R"({"forNodes":[{"name":"N"}]})").size(), 1U);
  EXPECT_EQ(with(R"({"forZones":[{"name":"a b"}]})").size(), 1U);
  EXPECT_EQ(with(R"({"forZones":[{"name":"1"},{"name":"2"},{"name":"3"},{"name":"4"},{"name":"5"},
                 {"name":"6"},{"name":"7"},{"name":"8"},{"name":"9"}]})")
                .size(),
            1U);
}

TEST(EndpointSlice, drops_what_v1_does_not_have) {
  Value object =
      slice("IPv4",
            R"([{"addresses":["10.1.2.3"],"deprecatedTopology":{"kubernetes.io/hostname":"n"}}])");
  const Value old = object;
  slices().prepare_create(object, {Time{}, ""});
  EXPECT_TRUE(object["endpoints"][0]["deprecatedTopology"].is_null());
  EXPECT_TRUE(object["endpoints"][0]["nodeName"].is_null());
  // A node that the slice had before is kept by its name of today.
  Value changed = old;
  changed.mut("endpoints").mut(0).set("addresses", parsed(R"(["10.1.2.4"])"));
  slices().prepare_update(changed, old, {Time{}, ""});
  EXPECT_EQ(changed["endpoints"][0]["nodeName"].as_string(), "n");
}

TEST(EndpointSlice, is_another_generation_with_other_labels) {
  const Value old = slice("IPv4", "[]");
  Value same = old;
  slices().prepare_update(same, old, {Time{}, ""});
  EXPECT_EQ(same["metadata"]["generation"].as_int(), 1);
  Value changed = old;
  changed.mut("metadata").set("labels", parsed(R"({"a":"b"})"));
  slices().prepare_update(changed, old, {Time{}, ""});
  EXPECT_EQ(changed["metadata"]["generation"].as_int(), 2);
}

TEST(EndpointSlice, warns_of_domains_and_of_unusual_spelling) {
  EXPECT_THAT(slices().warnings(slice("FQDN", R"([{"addresses":["a.example"]}])"), nullptr),
              ElementsAre("spec.addressType: FQDN endpoints are deprecated"));
  Value six = slice("IPv6", R"([{"addresses":["fd00:0::1"]},{"addresses":["fd00::2"]}])");
  EXPECT_THAT(slices().warnings(six, nullptr),
              ElementsAre("endpoints[0].addresses[0]: IPv6 address \"fd00:0::1\" should be in RFC "
                          "5952 canonical format (\"fd00::1\")"));
  six.mut("metadata")
      .set("labels",
           parsed(
               R"({"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io"})"));
  EXPECT_THAT(slices().warnings(six, nullptr), IsEmpty());
}

TEST(Endpoints, keep_what_passed_once_and_warn_of_unusual_spelling) {
  const KindRules& rules = kind_rules("", "Endpoints");
  const Value old = parsed(R"({"subsets":[{"addresses":[{"ip":"127.0.0.1"}]}]})");
  FieldErrors fresh;
  rules.validate(old, fresh);
  EXPECT_EQ(fresh.errors().size(), 1U);
  FieldErrors again;
  rules.validate_update(old, old, again);
  EXPECT_TRUE(again.errors().empty());
  EXPECT_THAT(
      rules.warnings(parsed(R"({"subsets":[{"notReadyAddresses":[{"ip":"FD00::1"}]}]})"), nullptr),
      ElementsAre("subsets[0].notReadyAddresses[0].ip: IPv6 address \"FD00::1\" should be in RFC "
                  "5952 canonical format (\"fd00::1\")"));
}

}  // namespace
}  // namespace dibs::api
