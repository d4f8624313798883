#include "drivers/net/model/claim_parameter.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/test_text.h"

namespace dibs::drivers::net {
namespace {

using json::test::from_text;

Result<ClaimParameter> parse(const std::string& spec, const std::string& annotations = "") {
  return parse_claim_parameter(
      from_text(cat("{'metadata': {'name': 'demo', 'namespace': 'default', 'annotations': {",
                    annotations, "}}, 'spec': {", spec, "}}")));
}

ClaimParameter ok(const std::string& spec, const std::string& annotations = "") {
  auto parsed = parse(spec, annotations);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message();
  return parsed ? *parsed : ClaimParameter();
}

std::string error_of(const std::string& spec, const std::string& annotations = "") {
  const auto parsed = parse(spec, annotations);
  return parsed ? "" : parsed.error().message();
}

TEST(ClaimParameter, without_a_spec_has_its_defaults) {
  for (const auto& object : {json::Value(), from_text("{'metadata': {'name': 'demo'}}")}) {
    const auto parameter = parse_claim_parameter(object);

    ASSERT_TRUE(parameter.ok());
    EXPECT_FALSE(parameter->names_nics());
    EXPECT_FALSE(parameter->rdma_acc);
    EXPECT_EQ(parameter->cdi_version, "0.6.0");
  }
}

TEST(ClaimParameter, knows_the_names_of_all_releases) {
  EXPECT_TRUE(ok("'rdma': true").rdma_acc);
  EXPECT_TRUE(ok("'rdmaAcc': true").rdma_acc);
  EXPECT_TRUE(ok("'enableRdma': true").enable_rdma);
  EXPECT_EQ(ok("'resources': {'spidernet.io/a': 2}").resources.at("spidernet.io/a"), 2);
  EXPECT_EQ(ok("'netResources': {'spidernet.io/a': '3'}").resources.at("spidernet.io/a"), 3);
  EXPECT_EQ(ok("'ippools': ['p']").ippools, std::vector<std::string>{"p"});
  for (const char* spec :
       {"'secondaryNics': [{'multusName': 'm', 'namespace': 'n'}]",
        "'staticNics': [{'multusConfigName': 'm', 'namespace': 'n'}]", "'multusNames': ['n/m']"}) {
    const auto parameter = ok(spec);
    ASSERT_EQ(parameter.secondary_nics.size(), 1U) << spec;
    EXPECT_EQ(parameter.secondary_nics[0].key(), "n/m") << spec;
  }
  EXPECT_EQ(ok("'multusNames': ['m']").secondary_nics[0].key(), "default/m");
  const auto parameter =
      ok("'defaultNic': {'multusName': 'm', 'namespace': 'n', 'defaultRoute': true}");
  EXPECT_EQ(parameter.default_nic->key(), "n/m");
  EXPECT_TRUE(parameter.default_nic->default_route);
}

TEST(ClaimParameter, of_which_two_say_different_things_is_refused) {
  EXPECT_EQ(error_of("'multusNames': ['m'], 'staticNics': [{'multusConfigName': 'm', "
                     "'namespace': 'n'}]"),
            "spec: only one of secondaryNics, staticNics and multusNames may be given");
  EXPECT_EQ(error_of("'resources': {'a/b': 1}, 'netResources': {'a/b': 2}"),
            "spec.netResources[a/b]: resources and netResources differ");
  EXPECT_EQ(error_of("'resources': {'a/b': 1}, 'netResources': {'a/b': '1'}"), "");
}

TEST(ClaimParameter, is_refused_with_the_field) {
  EXPECT_EQ(error_of("'staticNics': [{'multusConfigName': '', 'namespace': 'n'}]"),
            "spec.staticNics[0].multusConfigName: Invalid value: \"\": value should not be empty");
  EXPECT_EQ(error_of("'defaultNic': {'multusName': 'm', 'namespace': '../x'}"),
            "spec.defaultNic.namespace: Invalid value: \"../x\": no name of a namespace");
  EXPECT_EQ(error_of("'resources': {'a/b': '1.5'}"),
            "spec.resources[a/b]: Invalid value: \"1.5\": must be an integer, 0 or more");
  EXPECT_EQ(error_of("'resources': {'a/b': -1}"),
            "spec.resources[a/b]: Invalid value: \"-1\": must be an integer, 0 or more");
  EXPECT_EQ(error_of("'multusNames': ['a/b/c']"),
            "spec.multusNames[0]: Invalid value: \"a/b/c\": must be [namespace/]name");
}

TEST(ClaimParameter, reads_the_cdi_version_in_both_spellings) {
  EXPECT_EQ(ok("", "'dra.spidernet.io/cdi-version': '0.5.0'").cdi_version, "0.5.0");
  EXPECT_EQ(ok("", "'ipam.spidernet.io/cdi-version': 'v0.5.0'").cdi_version, "0.5.0");
  EXPECT_EQ(ok("",
               "'dra.spidernet.io/cdi-version': '0.4.0', "
               "'ipam.spidernet.io/cdi-version': '0.5.0'")
                .cdi_version,
            "0.4.0");
  EXPECT_EQ(
      error_of("", "'dra.spidernet.io/cdi-version': '0.9.9'"),
      "metadata.annotations[dra.spidernet.io/cdi-version]: invalid version \"0.9.9\", must be "
      "0.1.0 to 0.6.0");
}

TEST(ClaimParameter, wants_nics_that_exist_and_secondary_ones_of_one_type) {
  const auto find = [](const std::string& key) -> std::optional<MultusConfig> {
    if (key == "n/absent") return std::nullopt;
    MultusConfig config;
    config.cni_type = key == "n/other" ? "ipvlan" : "macvlan";
    return config;
  };
  const auto nic = [](const std::string& name) {
    return cat("{'multusName': '", name, "', 'namespace': 'n'}");
  };
  const auto judge = [&](const std::string& spec) {
    const auto judged = check_nics(ok(spec), find);
    return judged ? std::string() : judged.error().message();
  };

  EXPECT_EQ(judge(""), "");
  EXPECT_EQ(judge(cat("'defaultNic': ", nic("other"), ", 'secondaryNics': [", nic("a"), "]")), "");
  EXPECT_EQ(judge(cat("'defaultNic': ", nic("absent"))),
            "error get spidermultusconfig n/absent: not found");
  EXPECT_EQ(
      judge(cat("'secondaryNics': [", nic("a"), ", ", nic("other"), "]")),
      "spec.secondaryNics: all must be of one cniType, but n/other is ipvlan and not macvlan");
}

TEST(ClaimParameter, warns_of_versions_that_do_for_some_claims_only) {
  EXPECT_EQ(warning_of(ok("")), "");
  EXPECT_EQ(warning_of(ok("", "'dra.spidernet.io/cdi-version': '0.5.0'")), "");
  EXPECT_NE(warning_of(ok("", "'dra.spidernet.io/cdi-version': '0.4.0'")), "");
}

}  // namespace
}  // namespace dibs::drivers::net
