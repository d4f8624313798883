#include "api/schema/schema_lines.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::api {
namespace {

std::string text_of(const SchemaBlock& block) {
  std::string text;
  auto add = [&](const SchemaLine& line) {
    for (std::string_view word : line.words) append(text, word, ' ');
    text.back() = ';';
  };
  add(block.head);
  for (const SchemaLine& line : block.lines) add(line);
  return text;
}

std::vector<std::string> texts_of(const std::vector<SchemaText>& texts) {
  auto blocks = read_blocks(texts);
  if (!blocks.ok()) return {blocks.error().message()};
  std::vector<std::string> out;
  for (const SchemaBlock& block : *blocks) out.push_back(text_of(block));
  return out;
}

constexpr std::string_view kBase =
    "package a/v1 x.a.v1\n"
    "\n"
    "# of all\n"
    "resource things Thing\n"
    "  scope cluster\n"
    "  releases 34-\n"
    "\n"
    "type Thing kind\n"
    "  spec Spec 1\n"
    "  old  Old  2\n"
    "type ThingList kind\n"
    "  items []Thing 1\n"
    "type Spec\n"
    "  first  string 1\n"
    "  second string 2\n"
    "type Old\n";

TEST(SchemaLines, ABlockIsAHeadWithItsLines) {
  EXPECT_EQ(texts_of({{"a", "type A\n  x string 1\n  y  string 2 keep\n"}}),
            std::vector<std::string>{"type A;x string 1;y string 2 keep;"});
}

TEST(SchemaLines, AVersionTakesWhatItNamesFromTheOneItIsLike) {
  const std::vector<std::string> whole = texts_of({{"1", kBase},
                                                   {"2",
                                                    "package a/v2 x.a.v2\n"
                                                    "like a/v1\n"
                                                    "resource things\n"
                                                    "  releases 36-\n"
                                                    "amend Thing\n"
                                                    "  - old\n"
                                                    "amend Spec\n"
                                                    "  first *string 1\n"
                                                    "  third string 3\n"}});
  const std::vector<std::string> second(whole.begin() + 6, whole.end());
  EXPECT_EQ(second, (std::vector<std::string>{
                        "package a/v2 x.a.v2;", "resource things Thing;scope cluster;releases 36-;",
                        "type Thing kind;spec Spec 1;", "type ThingList kind;items []Thing 1;",
                        "type Spec;first *string 1;second string 2;third string 3;"}));
}

TEST(SchemaLines, WhatIsNowhereIsAFault) {
  EXPECT_EQ(texts_of({{"1", kBase}, {"2", "package a/v2 x\nlike a/v1\ntype A\n  b B 1\n"}}),
            std::vector<std::string>{"a/v1: type B is not defined"});
  EXPECT_EQ(texts_of({{"1", "  x string 1\n"}}),
            std::vector<std::string>{"1:1: a line of nothing"});
}

}  // namespace
}  // namespace dibs::api
