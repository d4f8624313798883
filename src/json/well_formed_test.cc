#include "json/well_formed.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "json/parse.h"

namespace dibs::json {
namespace {

TEST(WellFormed, is_what_the_parser_takes) {
  for (const std::string text : {"",
                                 " ",
                                 "null",
                                 " true ",
                                 "falsey",
                                 "tru",
                                 "{}",
                                 "[]",
                                 "{",
                                 "[",
                                 "]",
                                 "{]",
                                 "[}",
                                 "[1,]",
                                 "[,1]",
                                 "[1 2]",
                                 R"({"a":1})",
                                 R"({"a":1,})",
                                 R"({"a"})",
                                 R"({a:1})",
                                 R"({"a":{"b":[{}]}})",
                                 R"({"a":1}{)",
                                 "0",
                                 "-0",
                                 "-",
                                 "01",
                                 "1.",
                                 "1.5e+3",
                                 "1e",
                                 ".5",
                                 "+1",
                                 R"("\u00e9\n\/")",
                                 R"("\x")",
                                 R"("\u00g0")",
                                 "\"a\tb\"",
                                 "\"open",
                                 "\"\\",
                                 "[[[[]]]]",
                                 "\"\xff\"",
                                 "1\0"}) {
    EXPECT_EQ(is_well_formed(text), parse(text).ok()) << text;
  }
  EXPECT_FALSE(is_well_formed(std::string("{}\0", 3)));
}

TEST(WellFormed, is_bounded_in_depth) {
  for (const std::size_t depth : {1, 2, 3, 4, 5}) {
    const std::string text = std::string(depth, '[') + std::string(depth, ']');
    ParseOptions options;
    options.max_depth = 3;
    EXPECT_EQ(is_well_formed(text, 3), parse(text, options).ok()) << depth;
  }
}

TEST(WellFormed, agrees_with_the_parser_on_any_bytes) {
  const std::string good =
      R"({"kind":"A","n":[1,-2.5e-7,true,null,{"x":"\u0041\\"},[]],"m":{"a":{},"b":"c"}})";
  std::mt19937 random(5);
  const std::string_view letters = "{}[],:\"\\0123456789-+.eEutrnfals \n\x01\x80";
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (unsigned change = random() % 4; change > 0; --change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = letters[random() % letters.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 3);
          break;
        default:
          text.insert(at, 1, letters[random() % letters.size()]);
      }
    }
    ASSERT_EQ(is_well_formed(text), parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace dibs::json
