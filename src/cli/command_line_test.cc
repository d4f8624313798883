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
  Duration wait = std::chrono::seconds(10);
  int runs = 0;

  int run(std::vector<std::string> words) {
    CommandLine line = {"tool", "A tool.", "tool 1", {{"group", "Several."}}, {}};
    line.commands.push_back({"one",
                             "Has flags.",
                             {
                                 {"--text", &text, "Text", {.one_of = {"t", "u", "under"}}},
                                 {"--told", &told, "Text (default: by luck)"},
                                 {"--list", &list, "List", {.commas = true}},
                                 {"--named", &named, "Switch"},
                                 {"--valued", &valued, "Bool", {.has_value = true}},
                                 {"--number", &number, "Number", {.env = "TOOL_NUMBER"}},
                                 {"--count", &count, "Count", {.last_wins = true, .most = 9}},
                                 {"--share", &share, "Share", {.hidden = true}},
                                 {"--period", &period, "Period"},
                                 {"--wait", &wait, "Wait", {.least = 0.5, .most = 600}},
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
  for (const char* shown : {"--text TEXT:{t,u,under}=t", "--told TEXT ", "--valued BOOLEAN=true",
                            "--number INT=-1 (Env:TOOL_NUMBER)", "--count UINT:0 to 9=2",
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

TEST(CommandLine, tells_what_is_wrong_in_a_line_and_ends_with_2) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"onne"},
       "tool: unknown command \"onne\"; did you mean \"one\"? (\"tool help\" lists all)\n"},
      {{"entirely"}, "tool: unknown command \"entirely\" (\"tool help\" lists all)\n"},
      {{"group", "tow"},
       "tool group: unknown command \"tow\"; did you mean \"two\"? (\"tool help group\" lists "
       "all)\n"},
      {{"--verson"},
       "tool: unknown flag \"--verson\"; did you mean \"--version\"?; those of a command stand "
       "behind it (\"tool help\" lists all commands)\n"},
      {{"one", "--periode=5s"},
       "tool one: unknown flag \"--periode\"; did you mean \"--period\"? (\"tool one --help\" "
       "lists "
       "all)\n"},
      {{"one", "more"}, "tool one: unexpected argument \"more\" (\"tool one --help\" lists all)\n"},
      {{"one", "--text", "udner"},
       "tool one: --text: \"udner\" is not one of t, u, under; did you mean \"under\"? (\"tool one "
       "--help\" lists all)\n"},
      {{"one", "--text"},
       "tool one: --text: needs a value (t, u, under) (\"tool one --help\" lists all)\n"},
      {{"one", "--text", "t", "--text", "u"},
       "tool one: --text: given more than once (\"tool one --help\" lists all)\n"},
      {{"one", "--count", "-1"},
       "tool one: --count: \"-1\": must be a whole number from 0 to 9 (\"tool one --help\" lists "
       "all)\n"},
      {{"one", "--number", "99999999999999999999"},
       "tool one: --number: \"99999999999999999999\": must be a whole number from -2147483648 to "
       "2147483647 (\"tool one --help\" lists all)\n"},
      {{"one", "--valued", "perhaps"},
       "tool one: --valued: \"perhaps\": must be true or false (\"tool one --help\" lists all)\n"},
      {{"one", "--period", "soon"},
       "tool one: --period: \"soon\": must be a duration, such as 90s, 1m30s or 500ms (\"tool one "
       "--help\" lists all)\n"},
      {{"one", "--period", "-1s"},
       "tool one: --period: \"-1s\": must be a duration of 0s or more (\"tool one --help\" lists "
       "all)\n"},
      {{"one", "--period", "2000000h"},
       "tool one: --period: \"2000000h\": must be a duration from 0s to 1200000h0m0s (\"tool one "
       "--help\" lists all)\n"},
      {{"one", "--wait", "10m1s"},
       "tool one: --wait: \"10m1s\": must be a duration from 500ms to 10m0s (\"tool one --help\" "
       "lists all)\n"},
  };
  for (const auto& [words, message] : cases) {
    Example example;
    EXPECT_EQ(example.run(words), 2) << message;
    EXPECT_EQ(example.runs, 0);
    EXPECT_EQ(example.errors, message);
    EXPECT_EQ(example.output, "");
  }
}

TEST(CommandLine, shows_what_there_is_where_no_command_is_named) {
  Example example;
  EXPECT_EQ(example.run({}), 2);
  EXPECT_THAT(example.errors, HasSubstr("Has flags."));
  EXPECT_EQ(example.run({"group"}), 2);
  EXPECT_THAT(example.errors, HasSubstr("Another."));
  EXPECT_EQ(example.run({"--help"}), 0);
  EXPECT_THAT(example.output, HasSubstr("Several."));
  EXPECT_EQ(example.run({"--version"}), 0);
  EXPECT_EQ(example.output, "tool 1\n");
}

TEST(CommandLine, looks_for_mistyped_flags_before_missing_ones) {
  std::string from;
  CommandLine line = {"tool", "A tool.", "tool 1", {}, {}};
  line.commands.push_back(
      {"copy", "Copies.", {{"--from", &from, "Where from", {.required = true}}}, [] { return 0; }});
  const auto errors_of = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"tool", "copy"});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStderr();
    EXPECT_EQ(cli::run(line, static_cast<int>(argv.size()), argv.data()), 2);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(errors_of({}), HasSubstr("--from is required: Where from"));
  EXPECT_THAT(errors_of({"--form", "x"}), HasSubstr("did you mean \"--from\"?"));
}

TEST(CommandLine, has_commands_below_a_command) {
  std::vector<std::string> ran;
  const auto says = [&](const char* word) {
    return [&ran, word] { return ran.emplace_back(word), 0; };
  };
  const CommandLine line = {
      "tool",
      "",
      "",
      {},
      {{"node", "", {}, says("node")}, {"node join", "", {}, says("node join")}}};
  const auto run_words = [&](std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return cli::run(line, static_cast<int>(argv.size()), argv.data());
  };
  EXPECT_EQ(run_words({"tool", "node"}), 0);
  EXPECT_EQ(run_words({"tool", "node", "join"}), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_words({"tool", "node", "joni"}), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("did you mean \"join\"?"));
  EXPECT_THAT(ran, ElementsAre("node", "node join"));
}

TEST(CommandLine, lets_a_command_complete_what_was_not_given) {
  std::string first = "a";
  std::string second = "b";
  std::set<std::string> given;
  bool good = true;
  CommandLine line = {"tool", "", "", {}, {}};
  line.commands.push_back(
      {"up", "", {{"--first", &first, "F"}, {"-s,--second", &second, "S"}}, [] { return 0; }});
  line.commands.back().complete = [&](const Flags&,
                                      const std::set<std::string>& names) -> Result<> {
    given = names;
    if (!good) return Error::bad_request("line 3: no");
    return success();
  };
  const auto run_words = [&](std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    return cli::run(line, static_cast<int>(argv.size()), argv.data());
  };
  EXPECT_EQ(run_words({"tool", "up", "-s", "x"}), 0);
  EXPECT_THAT(given, ElementsAre("--second"));
  good = false;
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_words({"tool", "up"}), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "tool up: line 3: no\n");
}

TEST(CommandLine, leaves_the_words_of_a_program_alone) {
  struct Case {
    std::vector<std::string> words;
    std::vector<std::string> program;
  };
  const Case cases[] = {
      {{"./mine"}, {"./mine"}},
      {{"./mine", "--level", "4", "-o"}, {"./mine", "--level", "4", "-o"}},
      {{"--only", "a,b", "./mine", "--only", "c"}, {"./mine", "--only", "c"}},
      {{"--only=a,b", "--quick", "./mine", "--", "-h"}, {"./mine", "--", "-h"}},
      {{"--only", "a,b", "--", "--odd", "x"}, {"--odd", "x"}},
  };
  for (const auto& [given, expected] : cases) {
    std::vector<std::string> program, only;
    bool quick = false;
    CommandLine line = {"tool", "A tool.", "tool 1", {}, {}};
    line.commands.push_back({"run",
                             "Runs.",
                             {{"PROGRAM", &program, "Program", {.required = true, .rest = true}},
                              {"--only", &only, "Some", {.commas = true}},
                              {"--quick", &quick, "Quick"}},
                             [] { return 5; }});
    auto words = given;
    words.insert(words.begin(), {"tool", "run"});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    EXPECT_EQ(cli::run(line, static_cast<int>(argv.size()), argv.data()), 5);
    EXPECT_EQ(program, expected);
    if (given[0].starts_with("--only")) {
      EXPECT_THAT(only, ElementsAre("a", "b"));
    }
  }
}

}  // namespace
}  // namespace dibs::cli
