#pragma once
// Comparing values in tests of this folder.

#include <gtest/gtest.h>

#include <string_view>

#include "json/parse.h"
#include "json/value.h"

namespace dibs::api {

inline json::Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? std::move(value).value() : json::Value();
}

/// Equal whatever the order of members.
inline ::testing::AssertionResult same(const json::Value& got, const json::Value& wanted) {
  if (got == wanted) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "got    " << json::write(got) << "\nwanted " << json::write(wanted);
}

}  // namespace dibs::api
