#include "cli/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/flags.h"
#include "base/strings.h"
#include "cli/commands.h"

namespace dibs::cli {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string in_roff(std::string text) {
  std::string out;
  for (const char c : text) out += c == '-' ? "\\-" : std::string(1, c);
  return out;
}

TEST(Manual, has_a_page_with_all_flags_for_every_command) {
  const CommandLine line = dibs_command_line();
  const std::string whole = man_page(line, "");
  for (const Command& command : line.commands) {
    EXPECT_THAT(whole, HasSubstr(in_roff(cat("dibs ", command.path))));
    const std::string page = man_page(line, command.path);
    EXPECT_THAT(page, StartsWith(".TH \"DIBS-"));
    for (const Flag& flag : command.flags) {
      const std::string name = in_roff(name_of(flag));
      if (flag.form.hidden) continue;
      EXPECT_THAT(page, HasSubstr(name)) << command.path;
    }
  }
  for (const CommandGroup& group : line.groups) {
    EXPECT_THAT(man_page(line, group.name), HasSubstr(".SH COMMANDS"));
  }
  EXPECT_EQ(man_page(line, "nothing"), "");
  EXPECT_EQ(man_file(line, "driver gpu"), "dibs-driver-gpu.1");
}

TEST(Manual, takes_no_text_for_a_request_of_roff) {
  std::string value;
  CommandLine line = {"tool", "A tool.", "tool 1", {}, {}};
  line.commands.push_back({"one", "Does\n.it", {{"--x", &value, ".dots\\ 'first"}}, {}});
  EXPECT_THAT(man_page(line, "one"), HasSubstr("\n\\&.dots\\e 'first."));
  EXPECT_THAT(man_page(line, "one"), Not(HasSubstr("\n.it")));
}

TEST(Manual, knows_every_command_flag_and_value_in_every_shell) {
  const CommandLine line = dibs_command_line();
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = completion_script(line, shell);
    for (const Command& command : line.commands) {
      EXPECT_THAT(script, HasSubstr(command.path)) << shell;
      for (const Flag& flag : command.flags) {
        if (flag.form.hidden || is_positional(flag)) continue;
        const std::string name = name_of(flag);
        EXPECT_THAT(script, HasSubstr(shell == std::string("fish") ? name.substr(2) : name));
        for (const std::string& word : flag.form.one_of) EXPECT_THAT(script, HasSubstr(word));
      }
    }
  }
}

TEST(Manual, completes_commands_that_stand_behind_another) {
  const CommandLine line = dibs_command_line();
  EXPECT_THAT(completion_script(line, "bash"), HasSubstr("    'node') words='join' ;;\n"));
  EXPECT_THAT(completion_script(line, "zsh"), HasSubstr("'1:command:(join)'"));
  EXPECT_THAT(completion_script(line, "fish"), HasSubstr("_at \"node\"' -a join -d "));
}

TEST(Manual, is_one_page_of_markdown) {
  const std::string page = markdown_reference(dibs_command_line());
  EXPECT_THAT(page, HasSubstr("\n## dibs up\n"));
  EXPECT_THAT(page, HasSubstr("| `--nodes UINT` | "));
  EXPECT_THAT(page, HasSubstr("Bounds: 0 to 100000."));
}

}  // namespace
}  // namespace dibs::cli
