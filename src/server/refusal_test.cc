#include "server/refusal.h"

#include <gtest/gtest.h>

namespace dibs::server {
namespace {

std::size_t causes(const char* release, bool custom) {
  Resource resource;
  resource.custom = custom;
  resource.kind = "Thing";
  resource.features = std::make_shared<const api::Features>(*api::Features::parse(release));
  api::FieldErrors errors;
  for (int i = 0; i < 2; ++i) errors.invalid(api::Path("spec").child("a"), "x", "must not be");
  errors.invalid(api::Path("spec").child("b"), "x", "must not be");
  return refusal_of(resource, errors, "t").details()->causes.size();
}

TEST(Refusal, has_equal_faults_of_a_built_in_kind_once) {
  EXPECT_EQ(causes("1.37", false), 2U);
  EXPECT_EQ(causes("1.37", true), 3U);
  EXPECT_EQ(causes("1.36", false), 3U);
}

}  // namespace
}  // namespace dibs::server
