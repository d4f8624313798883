#include "cli/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/flags.h"
#include "base/strings.h"

namespace dibs::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// The real table, whose commands only say that they were run.
struct Walk {
  CommandLine line = dibs_command_line();
  int runs = 0;
  std::string output;
  std::string errors;

  Walk() {
    for (Command& command : line.commands) {
      // What flags point to lives as long as these.
      command.run = [this, run = std::move(command.run), tell = std::move(command.tell)] {
        return ++runs, 0;
      };
      command.tell = nullptr;
      // Flags that variables give would depend on who runs this.
      for (Flag& flag : command.flags) flag.form.env.clear();
    }
  }

  int run(const std::vector<std::string>& given) {
    std::vector<std::string> words = {"dibs"};
    words.insert(words.end(), given.begin(), given.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int status = cli::run(line, static_cast<int>(argv.size()), argv.data());
    output = testing::internal::GetCapturedStdout();
    errors = testing::internal::GetCapturedStderr();
    return status;
  }
};

std::vector<std::string> words_of(const Command& command) {
  std::vector<std::string> out;
  for (const std::string_view word : split(command.path, ' ')) out.emplace_back(word);
  return out;
}

/// With everything that the command cannot do without, but for `but`.
std::vector<std::string> complete(const Command& command, const Flag* but = nullptr) {
  auto out = words_of(command);
  for (const Flag& flag : command.flags) {
    if (!flag.form.required || &flag == but) continue;
    if (!is_positional(flag)) out.push_back(name_of(flag));
    out.push_back(flag.form.one_of.empty() ? "x" : flag.form.one_of.front());
  }
  return out;
}

bool takes_rest(const Command& command) {
  return std::any_of(command.flags.begin(), command.flags.end(),
                     [](const Flag& flag) { return flag.form.rest; });
}

/// Behind the others, but before the words of a program that the command runs: those are its own.
void add(const Command& command, std::vector<std::string>& words, std::string word) {
  words.insert(takes_rest(command) ? words.end() - 1 : words.end(), std::move(word));
}

/// A wrong command line: one line about it, status 2, and nothing was begun.
void expect_refused(Walk& walk, const std::vector<std::string>& words, const std::string& about) {
  SCOPED_TRACE(join(words, " "));
  EXPECT_EQ(walk.run(words), 2);
  EXPECT_EQ(walk.runs, 0);
  EXPECT_EQ(walk.output, "");
  EXPECT_THAT(walk.errors, StartsWith("dibs"));
  EXPECT_THAT(walk.errors, HasSubstr(about));
  EXPECT_THAT(walk.errors, EndsWith("\n"));
  EXPECT_EQ(std::count(walk.errors.begin(), walk.errors.end(), '\n'), 1) << walk.errors;
}

std::string without_last(std::string word) {
  word.pop_back();
  return word;
}

TEST(Commands, are_found_by_what_is_nearly_their_name) {
  Walk walk;
  for (const Command& command : walk.line.commands) {
    auto words = words_of(command);
    std::string& last = words.back();
    const std::string meant = last;
    last += last.back();
    expect_refused(walk, words, cat("unknown command ", dibs::quoted(last), "; did you mean "));
    EXPECT_THAT(walk.errors, HasSubstr(dibs::quoted(meant)));
  }
}

TEST(Commands, refuse_flags_and_arguments_that_they_do_not_have) {
  Walk walk;
  for (const Command& command : walk.line.commands) {
    auto words = complete(command);
    add(command, words, "--no-such-flag-anywhere=1");
    expect_refused(walk, words, "unknown flag \"--no-such-flag-anywhere\"");
    // A list goes on up to the next flag.
    const bool takes_many =
        std::any_of(command.flags.begin(), command.flags.end(), [](const Flag& flag) {
          return is_list(flag) && (is_positional(flag) || flag.form.required);
        });
    if (takes_many) continue;
    words = complete(command);
    for (int i = 0; i < 4; ++i) words.emplace_back("surplus");
    expect_refused(walk, words, "unexpected argument \"surplus\"");
  }
}

TEST(Commands, name_the_flag_that_was_meant) {
  Walk walk;
  for (const Command& command : walk.line.commands) {
    std::set<std::string> names;
    for (const Flag& flag : command.flags) names.insert(name_of(flag));
    for (const Flag& flag : command.flags) {
      const std::string typed = without_last(name_of(flag));
      if (is_positional(flag) || flag.form.hidden || names.contains(typed)) continue;
      auto words = complete(command, &flag);
      add(command, words, typed + "=1");
      expect_refused(walk, words, cat("unknown flag ", dibs::quoted(typed), "; did you mean \"--"));
    }
  }
}

TEST(Commands, say_which_flag_is_missing_or_wants_a_value) {
  Walk walk;
  for (const Command& command : walk.line.commands) {
    for (const Flag& flag : command.flags) {
      if (flag.form.required) {
        expect_refused(walk, complete(command, &flag), cat(name_of(flag), " is required"));
      }
      if (is_positional(flag) || is_switch(flag)) continue;
      auto words = complete(command, &flag);
      // Else the program's name is the value, or the flag is the program's.
      if (takes_rest(command)) words.pop_back();
      words.push_back(name_of(flag));
      expect_refused(walk, words, cat(name_of(flag), ": needs a value"));
    }
  }
}

TEST(Commands, judge_values_by_their_type_and_name_the_bounds) {
  Walk walk;
  for (const Command& command : walk.line.commands) {
    for (const Flag& flag : command.flags) {
      const auto refused = [&](const std::string& value, const std::string& why) {
        auto words = complete(command, &flag);
        add(command, words, cat(name_of(flag), "=", value));
        expect_refused(walk, words, cat(name_of(flag), ": ", dibs::quoted(value), why));
      };
      if (is_positional(flag) || is_switch(flag)) continue;
      if (std::holds_alternative<int*>(flag.target) ||
          std::holds_alternative<unsigned*>(flag.target)) {
        for (const char* value : {"many", "1.5", "99999999999999999999", "-99999999999"}) {
          refused(value, ": must be a whole number from ");
        }
      } else if (std::holds_alternative<double*>(flag.target)) {
        for (const char* value : {"many", "nan", "1e999"}) refused(value, ": must be a number");
      } else if (std::holds_alternative<Duration*>(flag.target)) {
        for (const char* value : {"soon", "5", "-1s"}) refused(value, ": must be a duration");
      } else if (std::holds_alternative<bool*>(flag.target)) {
        refused("perhaps", ": must be true or false");
      } else if (!flag.form.one_of.empty()) {
        refused("no-such-thing", cat(" is not one of ", join(flag.form.one_of, ", ")));
        const std::string& known = flag.form.one_of.front();
        refused(known + known.back(), " is not one of ");
        EXPECT_THAT(walk.errors, HasSubstr("; did you mean "));
      }
    }
  }
}

TEST(Commands, tell_of_themselves) {
  Walk walk;
  for (const Command& command : walk.line.commands) {
    auto words = words_of(command);
    words.emplace_back("--help");
    EXPECT_EQ(walk.run(words), 0);
    EXPECT_EQ(walk.runs, 0);
    EXPECT_THAT(walk.output, HasSubstr(command.about));
    for (const Flag& flag : command.flags) {
      EXPECT_FALSE(flag.help.empty()) << command.path << " " << flag.name;
      if (flag.form.hidden) continue;
      EXPECT_THAT(walk.output, HasSubstr(name_of(flag)));
    }
    EXPECT_EQ(walk.run(complete(command)), 0);
    EXPECT_EQ(std::exchange(walk.runs, 0), 1) << command.path;
  }
  EXPECT_EQ(walk.run({"--help"}), 0);
  for (const std::string& word : words_after(walk.line, "")) {
    EXPECT_THAT(walk.output, HasSubstr(cat("\n  ", word, " ")));
  }
  for (const CommandGroup& group : walk.line.groups) {
    EXPECT_EQ(walk.run({group.name, "--help"}), 0);
    EXPECT_EQ(walk.run({group.name}), 2);
    EXPECT_FALSE(words_after(walk.line, group.name).empty()) << group.name;
  }
}

}  // namespace
}  // namespace dibs::cli
