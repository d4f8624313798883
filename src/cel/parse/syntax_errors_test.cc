#include "cel/parse/syntax_errors.h"

#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "cel/parse/parser.h"

namespace dibs::cel {
namespace {

const std::string kOperands =
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, "
    "BYTES, IDENTIFIER}";

/// "line:column message" of each issue, one per line.
std::string told(std::string_view source, bool quoted_fields = false) {
  std::vector<Issue> issues;
  ParserOptions options;
  options.quoted_fields = quoted_fields;
  const auto ast = parse(source, options, issues);
  EXPECT_EQ(ast == nullptr, !issues.empty()) << source;
  std::string out;
  const std::string text = format_issues(source, issues);
  for (std::string_view line : split(text, '\n')) {
    constexpr std::string_view kBegin = "ERROR: <input>:";
    if (!line.starts_with(kBegin)) continue;
    line.remove_prefix(kBegin.size());
    const std::size_t blank = line.find(": ");
    std::string_view message = line.substr(blank + 2);
    if (message.starts_with("Syntax error: ")) message.remove_prefix(14);
    append(out, out.empty() ? "" : "\n", line.substr(0, blank), " ", message);
  }
  return out;
}

struct Case {
  std::string source;
  std::string wanted;
};

TEST(SyntaxErrors, are_those_of_the_reference_implementation) {
  const std::string expecting = cat(" expecting ", kOperands);
  const Case cases[] = {
      {"*@a | b", cat("1:1 extraneous input '*'", expecting,
                      "\n1:2 token recognition error at: '@'"
                      "\n1:5 token recognition error at: '| '"
                      "\n1:7 extraneous input 'b' expecting <EOF>")},
      {"a | b", "1:3 token recognition error at: '| '\n1:5 extraneous input 'b' expecting <EOF>"},
      {"{",
       "1:2 mismatched input '<EOF>' expecting {'[', '{', '}', '(', '.', ',', '-', '!', '?', "
       "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"},
      {"TestAllTypes(){}", "1:15 mismatched input '{' expecting <EOF>"},
      {"TestAllTypes{}()", "1:15 mismatched input '(' expecting <EOF>"},
      {"1 + $",
       cat("1:5 token recognition error at: '$'\n1:6 mismatched input '<EOF>'", expecting)},
      {"1 + 2\n3 +", "2:1 mismatched input '3' expecting <EOF>"},
      {"1 + +",
       cat("1:5 mismatched input '+'", expecting, "\n1:6 mismatched input '<EOF>'", expecting)},
      {"{\"a\": 1}.\"a\"", "1:10 no viable alternative at input '.\"a\"'"},
      {"\"\\xFh\"", cat("1:1 token recognition error at: '\"\\xFh'"
                        "\n1:6 token recognition error at: '\"'"
                        "\n1:7 mismatched input '<EOF>'",
                        expecting)},
      {"a && in.😁", cat("1:6 extraneous input 'in'", expecting,
                        "\n1:9 token recognition error at: '😁'"
                        "\n1:10 no viable alternative at input '.'")},
      {"in",
       cat("1:1 mismatched input 'in'", expecting, "\n1:3 mismatched input '<EOF>'", expecting)},
      {"func{{a}}",
       "1:6 extraneous input '{' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
       "\n1:8 mismatched input '}' expecting ':'"
       "\n1:9 extraneous input '}' expecting <EOF>"},
      {"msg{:a}",
       "1:5 extraneous input ':' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
       "\n1:7 mismatched input '}' expecting ':'"},
      {"{a}", "1:3 mismatched input '}' expecting ':'"},
      {"{:a}",
       "1:2 extraneous input ':' expecting {'[', '{', '}', '(', '.', ',', '-', '!', '?', "
       "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
       "\n1:4 mismatched input '}' expecting ':'"},
      {"ind[a{b}]", "1:8 mismatched input '}' expecting ':'"},
      {"--",
       cat("1:3 no viable alternative at input '-'\n1:3 mismatched input '<EOF>'", expecting)},
      {"?",
       cat("1:1 mismatched input '?'", expecting, "\n1:2 mismatched input '<EOF>'", expecting)},
      {"?!",
       cat("1:1 extraneous input '?'", expecting, "\n1:3 extraneous input '<EOF>'", expecting)},
      {"a ? b ((?))", cat("1:9 mismatched input '?'", expecting, "\n1:10 mismatched input ')'",
                          expecting, "\n1:12 mismatched input '<EOF>' expecting ':'")},
      {"self.true == 1", "1:6 mismatched input 'true' expecting IDENTIFIER"},
      {"x{.", "1:3 mismatched input '.' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"},
      {"x{?.",
       "1:3 unsupported ident kind"
       "\n1:4 mismatched input '.' expecting {IDENTIFIER, ESC_IDENTIFIER}"},
      {"x.?)",
       "1:4 mismatched input ')' expecting {IDENTIFIER, ESC_IDENTIFIER}"
       "\n1:4 unsupported ident kind"},
      {"1. == 1.0", "1:4 no viable alternative at input '. =='"},
      {"\"\\s\" == \"\"",
       "1:1 token recognition error at: '\"\\s'"
       "\n1:10 token recognition error at: '\"'"},
      {"\"a\" 'b' == \"ab\"", "1:5 mismatched input ''b'' expecting <EOF>"},
      {"rb\"a\" == b\"a\"", "1:3 mismatched input '\"a\"' expecting <EOF>"},
      {"// comment", cat("1:11 mismatched input '<EOF>'", expecting)},
      {"true ? true ? true : false : true", "1:13 mismatched input '?' expecting ':'"},
      {"", cat("1:0 mismatched input '<EOF>'", expecting)},
      {"a = b", "1:3 token recognition error at: '= '\n1:5 extraneous input 'b' expecting <EOF>"},
      {"[1 2]", "1:4 extraneous input '2' expecting {']', ','}"},
      {"[1 2 3]", "1:4 mismatched input '2' expecting {']', ','}"},
      {"f(1 2)", "1:5 extraneous input '2' expecting ')'"},
      {"(1 + 2", "1:7 missing ')' at '<EOF>'"},
      {"f(1,", cat("1:5 mismatched input '<EOF>'", expecting)},
      {"a[1", "1:4 missing ']' at '<EOF>'"},
      {"'abc",
       cat("1:1 token recognition error at: ''abc'\n1:5 mismatched input '<EOF>'", expecting)},
      {"1 ++ 2", cat("1:4 extraneous input '+'", expecting)},
  };
  for (const Case& test : cases) EXPECT_EQ(told(test.source), test.wanted) << test.source;
}

TEST(SyntaxErrors, know_quoted_fields) {
  const std::string expecting = cat(" expecting ", kOperands);
  EXPECT_EQ(told("`b-c`", true), cat("1:1 mismatched input '`b-c`'", expecting));
  EXPECT_EQ(told("`b-c`()", true), cat("1:1 extraneous input '`b-c`'", expecting,
                                       "\n1:7 mismatched input ')'", expecting));
  EXPECT_EQ(told("a.`$b`", true),
            "1:3 token recognition error at: '`$'\n1:6 token recognition error at: '`'");
  EXPECT_EQ(told("a.`b-c`(1)", true), "1:8 mismatched input '(' expecting <EOF>");
}

TEST(SyntaxErrors, come_with_the_other_problems) {
  EXPECT_EQ(told("for +"), cat("1:1 reserved identifier: for\n1:6 mismatched input '<EOF>' "
                               "expecting ",
                               kOperands));
}

TEST(SyntaxErrors, end_after_a_while) {
  std::string source;
  for (int i = 0; i < 200; ++i) source += "+ ) ";
  const std::string text = told(source);
  EXPECT_NE(text.find("error recovery attempt limit exceeded: 30"), std::string::npos) << text;

  EXPECT_NE(told(std::string(1000, ')')).find("error recovery token lookahead limit exceeded: 256"),
            std::string::npos);
  EXPECT_NE(told(std::string(300, '$') + "1").find("token recognition error"), std::string::npos);
}

}  // namespace
}  // namespace dibs::cel
