#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// A command with a flag of every kind, and what it was set to.
struct Example {
  std::string text = "t";
  std::string told;
  std::vector<std::string> list;
  bool named = false;
  bool valued = true;
  int number = -1;
  unsigned count = 2;
  double share = 0.5;
  Duration period = std::chrono::seconds(5);
  int runs = 0;

  int run(std::vector<std::string> words) {
    CommandLine line = {"tool", "A tool.", "tool 1", {{"group", "Several."}}, {}};
    line.commands.push_back({"one",
                             "Has flags.",
                             {
                                 {"--text", &text, "Text", {.one_of = {"t", "u"}}},
                                 {"--told", &told, "Text (default: by luck)"},
                                 {"--list", &list, "List", {.commas = true}},
                                 {"--named", &named, "Switch"},
                                 {"--valued", &valued, "Bool", {.has_value = true}},
                                 {"--number", &number, "Number", {.env = "TOOL_NUMBER"}},
                                 {"--count", &count, "Count", {.last_wins = true}},
                                 {"--share", &share, "Share", {.hidden = true}},
                                 {"--period", &period, "Period"},
                             },
                             [this] { return ++runs; },
                             "The end."});
    line.commands.push_back({"group two", "Another.", {}, [] { return 7; }});
    words.insert(words.begin(), "tool");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = cli::run(line, static_cast<int>(argv.size()), argv.data());
    output = testing::internal::GetCapturedStdout();
    errors = testing::internal::GetCapturedStderr();
    return status;
  }
  std::string output;
  std::string errors;
};

TEST(CommandLine, sets_what_flags_point_to) {
  Example example;

  EXPECT_EQ(example.run({"one", "--text", "u", "--list", "a,b", "--named", "--valued", "false",
                         "--number", "-3", "--count", "4", "--count", "5", "--share", "0.25",
                         "--period", "1m30s"}),
            1);

  EXPECT_EQ(example.text, "u");
  EXPECT_THAT(example.list, ElementsAre("a", "b"));
  EXPECT_TRUE(example.named);
  EXPECT_FALSE(example.valued);
  EXPECT_EQ(example.number, -3);
  EXPECT_EQ(example.count, 5U);
  EXPECT_EQ(example.share, 0.25);
  EXPECT_EQ(example.period, Duration(std::chrono::seconds(90)));
}

TEST(CommandLine, shows_defaults_in_help) {
  Example example;

  EXPECT_EQ(example.run({"one", "--help"}), 0);

  EXPECT_EQ(example.runs, 0);
  for (const char* shown : {"--text TEXT:{t,u}=t", "--told TEXT ", "--valued BOOLEAN=true",
                            "--number INT=-1 (Env:TOOL_NUMBER)", "--count UINT=2",
                            "--period DURATION=5s", "The end."}) {
    EXPECT_THAT(example.output, HasSubstr(shown));
  }
  EXPECT_THAT(example.output, Not(HasSubstr("--share")));
}

TEST(CommandLine, finds_commands_of_groups) {
  Example example;
  EXPECT_EQ(example.run({"group", "two"}), 7);
  EXPECT_EQ(example.run({"group", "--help"}), 0);
  EXPECT_THAT(example.output, HasSubstr("Another."));
}

TEST(CommandLine, tells_what_is_wrong_and_ends_with_2) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{}, "A subcommand is required"},
      {{"three"}, "A subcommand is required"},
      {{"group"}, "A subcommand is required"},
      {{"one", "--other"}, "The following argument was not expected: --other"},
      {{"one", "--text", "v"}, "--text: v not in {t,u}"},
      {{"one", "--count", "-1"}, "--count"},
      {{"one", "--period", "soon"}, "--period: time: invalid duration \"soon\""},
  };
  for (const auto& [words, message] : cases) {
    Example example;
    EXPECT_EQ(example.run(words), 2) << message;
    EXPECT_EQ(example.runs, 0);
    EXPECT_THAT(example.errors, HasSubstr(message));
  }
}

}  // namespace
}  // namespace dibs::cli
