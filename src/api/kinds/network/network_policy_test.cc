#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/kinds/network/service.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Value policy(const std::string& spec) {
  return *json::parse(cat(R"({"metadata":{"name":"p"},"spec":)", spec, "}"));
}

std::vector<std::string> faults(const std::string& spec, const Value* old = nullptr) {
  FieldErrors errors;
  const KindRules rules = network_policy_rules();
  if (old != nullptr) {
    rules.validate_update(policy(spec), *old, errors);
  } else {
    rules.validate(policy(spec), errors);
  }
  std::vector<std::string> out;
  for (const auto& error : errors.errors()) out.push_back(cat(error.field, ": ", error.text));
  return out;
}

std::string with_block(const std::string& block) {
  return cat(R"({"podSelector":{},"egress":[{"to":[{"ipBlock":)", block, "}]}]}");
}

TEST(NetworkPolicy, defaults_types_by_its_rules_and_ports_to_tcp) {
  Value plain = policy(R"({"podSelector":{}})");
  network_policy_rules().set_defaults(plain);
  EXPECT_EQ(plain["spec"]["policyTypes"], Value::array({"Ingress"}));

  Value both =
      policy(R"({"podSelector":{},"egress":[{"ports":[{"port":53},{"protocol":"UDP"}]}]})");
  network_policy_rules().set_defaults(both);
  EXPECT_EQ(both["spec"]["policyTypes"], Value::array({"Ingress", "Egress"}));
  EXPECT_EQ(both["spec"]["egress"][0]["ports"][0]["protocol"].str(), "TCP");
  EXPECT_EQ(both["spec"]["egress"][0]["ports"][1]["protocol"].str(), "UDP");

  Value one = policy(R"({"podSelector":{},"egress":[{}],"policyTypes":["Egress"]})");
  network_policy_rules().set_defaults(one);
  EXPECT_EQ(one["spec"]["policyTypes"], Value::array({"Egress"}));
}

TEST(NetworkPolicy, takes_what_upstream_takes) {
  EXPECT_THAT(faults(R"({"podSelector":{"matchLabels":{"a":"b"}},"policyTypes":["Ingress","Egress"],
      "ingress":[{"from":[{"podSelector":{}},{"namespaceSelector":{},"podSelector":{}}],
                  "ports":[{"port":"http"},{"port":80,"endPort":90,"protocol":"SCTP"},{}]},{}],
      "egress":[{"to":[{"ipBlock":{"cidr":"10.0.0.0/8","except":["10.1.0.0/16"]}}]}]})"),
              IsEmpty());
}

TEST(NetworkPolicy, refuses_ports_that_make_no_sense) {
  const auto ports = [](const std::string& port) {
    return faults(cat(R"({"podSelector":{},"ingress":[{"ports":[)", port, "]}]}"));
  };
  EXPECT_THAT(ports(R"({"protocol":"ICMP"})"),
              ElementsAre("spec.ingress[0].ports[0].protocol: Unsupported value: \"ICMP\": "
                          "supported values: \"TCP\", \"UDP\", \"SCTP\""));
  EXPECT_THAT(ports(R"({"port":0})"),
              ElementsAre("spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and "
                          "65535, inclusive"));
  EXPECT_THAT(
      ports(R"({"endPort":9})"),
      ElementsAre("spec.ingress[0].ports[0].endPort: Invalid value: 9: may not be specified "
                  "when `port` is not specified"));
  EXPECT_THAT(
      ports(R"({"port":"http","endPort":9})"),
      ElementsAre("spec.ingress[0].ports[0].endPort: Invalid value: 9: may not be specified "
                  "when `port` is non-numeric"));
  EXPECT_THAT(ports(R"({"port":10,"endPort":9})"),
              ElementsAre("spec.ingress[0].ports[0].endPort: Invalid value: 9: must be greater "
                          "than or equal to `port`"));
}

TEST(NetworkPolicy, refuses_peers_that_make_no_sense) {
  const auto peer = [](const std::string& text) {
    return faults(cat(R"({"podSelector":{},"ingress":[{"from":[)", text, "]}]}"));
  };
  EXPECT_THAT(peer("{}"),
              ElementsAre("spec.ingress[0].from[0]: Required value: must specify a peer"));
  EXPECT_THAT(peer(R"({"podSelector":{},"ipBlock":{"cidr":"10.0.0.0/8"}})"),
              ElementsAre("spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and "
                          "another peer"));
  EXPECT_THAT(faults(with_block(R"({"cidr":""})")),
              ElementsAre("spec.egress[0].to[0].ipBlock.cidr: Required value"));
  EXPECT_THAT(faults(with_block(R"({"cidr":"10.0.0.0/8","except":["10.0.0.0/8"]})")),
              ElementsAre("spec.egress[0].to[0].ipBlock.except[0]: Invalid value: \"10.0.0.0/8\": "
                          "must be a strict subset of `cidr`"));
  EXPECT_THAT(faults(with_block(R"({"cidr":"10.0.0.1/8"})")),
              ElementsAre("spec.egress[0].to[0].ipBlock.cidr: Invalid value: \"10.0.0.1/8\": must "
                          "not have bits set beyond the prefix length"));
  EXPECT_THAT(faults(R"({"podSelector":{},"policyTypes":["Egress","Ingress","Egress"]})").size(),
              1);
  EXPECT_THAT(faults(R"({"podSelector":{},"policyTypes":["Both"]})"),
              ElementsAre("spec.policyTypes[0]: Unsupported value: \"Both\": supported values: "
                          "\"Ingress\", \"Egress\""));
}

TEST(NetworkPolicy, keeps_ranges_that_it_had) {
  const Value old = policy(with_block(R"({"cidr":"10.0.0.1/8"})"));
  EXPECT_THAT(faults(with_block(R"({"cidr":"10.0.0.1/8"})"), &old), IsEmpty());
  EXPECT_THAT(faults(with_block(R"({"cidr":"10.0.0.2/8"})"), &old).size(), 1);
}

TEST(NetworkPolicy, warns_of_ipv6_that_is_spelled_oddly) {
  EXPECT_THAT(
      network_policy_rules().warnings(policy(with_block(R"({"cidr":"FD00:0::/64"})")), nullptr),
      ElementsAre("spec.egress[0].to[0].ipBlock.cidr: IPv6 CIDR value \"FD00:0::/64\" should be in "
                  "RFC 5952 canonical format (\"fd00::/64\")"));
}

}  // namespace
}  // namespace dibs::api
