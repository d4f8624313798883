#include "server/runtime_config.h"

#include <gtest/gtest.h>

namespace dibs::server {
namespace {

api::ResourceInfo resource(std::string group, std::string version, std::string plural) {
  api::ResourceInfo info;
  info.group = std::move(group);
  info.version = std::move(version);
  info.plural = std::move(plural);
  return info;
}

api::Catalog known() {
  api::Catalog catalog;
  catalog.add(resource("", "v1", "pods"));
  catalog.add(resource("g.io", "v1", "things"));
  catalog.add(resource("g.io", "v1beta1", "things"));
  catalog.add(resource("g.io", "v1alpha1", "things"));
  catalog.add(resource("g.io", "v1alpha1", "others"));
  return catalog;
}

struct ServesCase {
  const char* text;
  const char* group;
  const char* version;
  const char* plural;
  bool by_default;
  bool served;
};

class Serves : public ::testing::TestWithParam<ServesCase> {};

TEST_P(Serves, WhatTheMostSpecificKeySays) {
  const ServesCase& c = GetParam();
  auto config = RuntimeConfig::parse(c.text, known());
  ASSERT_TRUE(config.ok()) << config.error().message();
  EXPECT_EQ(config->serves(resource(c.group, c.version, c.plural), c.by_default), c.served);
}

INSTANTIATE_TEST_SUITE_P(
    Keys, Serves,
    ::testing::Values(ServesCase{"", "g.io", "v1", "things", true, true},
                      ServesCase{"", "g.io", "v1alpha1", "things", false, false},
                      ServesCase{"api/all=true", "g.io", "v1alpha1", "things", false, true},
                      ServesCase{"api/all=false", "", "v1", "pods", true, false},
                      ServesCase{"api/all=false,v1=true", "", "v1", "pods", true, true},
                      ServesCase{"api/all=true,api/alpha=false", "g.io", "v1alpha1", "things",
                                 false, false},
                      ServesCase{"api/beta=false", "g.io", "v1beta1", "things", true, false},
                      ServesCase{"g.io/v1alpha1", "g.io", "v1alpha1", "things", false, true},
                      ServesCase{"g.io/v1alpha1=true,g.io/v1alpha1/others=false", "g.io",
                                 "v1alpha1", "others", false, false},
                      ServesCase{" g.io/v1 = false ,", "g.io", "v1", "things", true, false}));

TEST(RuntimeConfig, RefusesWhatItDoesNotKnow) {
  auto unknown = RuntimeConfig::parse("g.io/v2=true", known());
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message(),
            "unknown api version \"g.io/v2\"; known are api/all, api/ga, api/beta, api/alpha, "
            "api/v1, g.io/v1, g.io/v1beta1, g.io/v1alpha1");
  EXPECT_FALSE(RuntimeConfig::parse("api/all=perhaps", known()).ok());
}

}  // namespace
}  // namespace dibs::server
