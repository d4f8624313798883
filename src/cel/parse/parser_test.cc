#include "cel/parse/parser.h"

#include <gtest/gtest.h>

#include "base/strings.h"

namespace dibs::cel {
namespace {

std::string issues_of(std::string_view source, const ParserOptions& options = {}) {
  std::vector<Issue> issues;
  const auto ast = parse(source, options, issues);
  EXPECT_EQ(ast == nullptr, !issues.empty());
  return format_issues(source, issues);
}

TEST(Parser, says_where_a_problem_is) {
  const struct {
    std::string_view source;
    std::string_view wanted;
  } cases[] = {
      {"1 +", "<input>:1:4: Syntax error"},
      {"true ? true ? true : false : true", "<input>:1:13: Syntax error: mismatched input '?'"},
      {"\n\n  )", "<input>:3:3: Syntax error"},
      {"for == 1", "<input>:1:1: reserved identifier: for"},
      {"9223372036854775808", "<input>:1:1: invalid int literal"},
      {"18446744073709551616u", "<input>:1:1: invalid uint literal"},
      {"1e999", "<input>:1:1: invalid double literal"},
      {"b\"\\u00e9\"", "<input>:1:1: unable to unescape string"},
      {"\"\\ud800\"", "<input>:1:1: invalid unicode code point"},
      {"\"\\s\"", "<input>:1:1: Syntax error: token recognition error"},
      {"a.`b-c`", "<input>:1:3: unsupported syntax: '`'"},
      {"has(a)", "<input>:1:5: invalid argument to has() macro"},
      {"[1].all(x.y, true)", "<input>:1:10: argument must be a simple name"},
      {"[1].all(__result__, true)", "iteration variable overwrites accumulator variable"},
      {"// nothing", "Syntax error"},
      {"rb\"a\"", "<input>:1:3: Syntax error"},
  };
  for (const auto& test : cases)
    EXPECT_NE(issues_of(test.source).find(test.wanted), std::string::npos)
        << test.source << "\n"
        << issues_of(test.source);
}

TEST(Parser, says_what_was_expected) {
  const std::string operands =
      " expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, "
      "NUM_UINT, STRING, BYTES, IDENTIFIER}";
  const struct {
    std::string_view source;
    std::vector<std::string> wanted;
  } cases[] = {
      {"1 +", {cat("1:4: Syntax error: mismatched input '<EOF>'", operands)}},
      {"1 + +",
       {cat("1:5: Syntax error: mismatched input '+'", operands),
        cat("1:6: Syntax error: mismatched input '<EOF>'", operands)}},
      {"in",
       {cat("1:1: Syntax error: mismatched input 'in'", operands),
        cat("1:3: Syntax error: mismatched input '<EOF>'", operands)}},
      {"?!",
       {cat("1:1: Syntax error: extraneous input '?'", operands),
        cat("1:3: Syntax error: extraneous input '<EOF>'", operands)}},
      {"?",
       {cat("1:1: Syntax error: mismatched input '?'", operands),
        cat("1:2: Syntax error: mismatched input '<EOF>'", operands)}},
      {"a == )", {cat("1:6: Syntax error: mismatched input ')'", operands)}},
      {"a b", {"1:3: Syntax error: extraneous input 'b' expecting <EOF>"}},
      {"1 + 2\n3 +", {"2:1: Syntax error: mismatched input '3' expecting <EOF>"}},
      {"1. == 1.0", {"1:4: Syntax error: no viable alternative at input '. =='"}},
      {"a.", {"1:3: Syntax error: no viable alternative at input '.'"}},
      {"self.true == 1", {"1:6: Syntax error: mismatched input 'true' expecting IDENTIFIER"}},
      {"{a}", {"1:3: Syntax error: mismatched input '}' expecting ':'"}},
      {"[1, 2].exists(x, )", {cat("1:18: Syntax error: mismatched input ')'", operands)}},
  };
  for (const auto& test : cases) {
    std::vector<std::string> found;
    const std::string text = issues_of(test.source);
    for (std::string_view line : split(text, '\n')) {
      constexpr std::string_view kBegin = "ERROR: <input>:";
      if (line.starts_with(kBegin)) found.emplace_back(line.substr(kBegin.size()));
    }
    EXPECT_EQ(found, test.wanted) << test.source;
  }
}

TEST(Parser, marks_the_place_below_the_line) {
  EXPECT_EQ(issues_of("1 + for"),
            "ERROR: <input>:1:5: reserved identifier: for\n | 1 + for\n | ....^");
}

TEST(Parser, bounds_what_input_can_nest) {
  const std::string deep = std::string(300, '(') + "1" + std::string(300, ')');
  EXPECT_NE(issues_of(deep).find("expression recursion limit exceeded: 250"), std::string::npos);

  const auto repeated = [](std::string text, std::string_view more, int times) {
    for (int i = 0; i < times; ++i) text += more;
    return text;
  };
  constexpr std::string_view kTooHigh = "<input>:-1:0: max recursion depth exceeded";
  for (const int times : {251, 20'000}) {
    for (const auto& [begin, more] : {std::pair<const char*, const char*>{"1", "+1"},
                                      {"1", "<1"},
                                      {"a", ".a"},
                                      {"a", ".?a"},
                                      {"a", "[1]"},
                                      {"a", ".f()"}})
      EXPECT_NE(issues_of(repeated(begin, more, times)).find(kTooHigh), std::string::npos) << more;
  }
  for (const auto& [begin, more] :
       {std::pair<const char*, const char*>{"1", "+1"}, {"a", ".a"}, {"a", "[1]"}})
    EXPECT_EQ(issues_of(repeated(begin, more, 250)), "") << more;
  constexpr std::string_view kTooDeep = "<input>:-1:0: expression recursion limit exceeded: 250";
  for (const char* begin : {"(", "[", "{1:", "f(", "a.f(", "a[", "1+(", "1<(", "!(", "-(", "a?b:"})
    EXPECT_NE(issues_of(repeated("", begin, 251) + "1").find(kTooDeep), std::string::npos) << begin;
  EXPECT_EQ(issues_of(repeated("", "a?b:", 249) + "1"), "");
  EXPECT_EQ(issues_of(repeated("", "-", 5000) + "1"), "");

  std::string many = "true";
  for (int i = 0; i < 5000; ++i) many += "&&true";
  EXPECT_EQ(issues_of(many), "");

  EXPECT_NE(issues_of(std::string(100'001, ' ')).find("expression code point size exceeds limit"),
            std::string::npos);
}

TEST(Parser, keeps_macros_as_nodes) {
  std::vector<Issue> issues;
  const auto ast = parse("[1].map(x, x > 0, x + 1)", {}, issues);
  ASSERT_NE(ast, nullptr);

  const AstNode& root = ast->node(ast->root);

  EXPECT_EQ(root.kind, NodeKind::fold);
  EXPECT_EQ(root.fold, Fold::map);
  EXPECT_NE(ast->child(root, 1), kNoNode);
  EXPECT_NE(ast->child(root, 2), kNoNode);
}

TEST(Parser, leaves_calls_of_another_shape_alone) {
  std::vector<Issue> issues;
  const auto ast = parse("a.map(x)", {}, issues);
  ASSERT_NE(ast, nullptr);

  EXPECT_EQ(ast->node(ast->root).kind, NodeKind::call);
}

}  // namespace
}  // namespace dibs::cel
