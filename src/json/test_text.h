#pragma once
// For tests: objects as text in C++ sources.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "json/parse.h"
#include "json/value.h"

namespace dibs::json::test {

/// JSON with ' in place of ". A fault fails the test.
inline Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  auto value = parse(text);
  if (!value) {
    ADD_FAILURE() << value.error().message() << " in " << text;
    return {};
  }
  return std::move(value).value();
}

}  // namespace dibs::json::test
