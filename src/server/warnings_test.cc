#include "server/warnings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::server {
namespace {

using testing::ElementsAre;

std::vector<std::string> headers_of(const std::vector<std::string>& texts) {
  net::Headers headers;
  add_warnings(texts, headers);
  std::vector<std::string> out;
  for (const auto& [name, value] : headers.fields()) out.push_back(value);
  return out;
}

TEST(Warnings, are_told_once_and_quoted) {
  EXPECT_THAT(headers_of({"a \"b\" \\", "c", "a \"b\" \\"}),
              ElementsAre("299 - \"a \\\"b\\\" \\\\\"", "299 - \"c\""));
}

TEST(Warnings, never_break_out_of_their_header) {
  EXPECT_THAT(headers_of({"a\r\nSet-Cookie: x", "tab\there", "\xff", "", "fine"}),
              ElementsAre("299 - \"fine\""));
}

TEST(Warnings, are_cut_where_they_are_too_long_together) {
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back(cat(i, std::string(300, 'x')));

  const auto headers = headers_of(texts);

  EXPECT_EQ(headers.size(), 16U);
  EXPECT_EQ(headers[0], cat("299 - \"0", std::string(255, 'x'), "\""));
}

TEST(Warnings, are_cut_between_characters) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "ä";

  const auto headers = headers_of({text});

  ASSERT_EQ(headers.size(), 1U);
  EXPECT_EQ(headers[0].size(), 8 + 512U);
}

}  // namespace
}  // namespace dibs::server
