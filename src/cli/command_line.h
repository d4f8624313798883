#pragma once
// A command line as data: commands with tables of flags, and one parser for all of them.
//
// What a value looks like, how help shows it and what is said about a wrong one follow from where
// it goes. The default is what stands there; help shows it, unless the text says "(default: …)".

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/flags.h"
#include "base/result.h"

namespace dibs::cli {

using flags::Flag;
using flags::Flags;

struct CommandLine;

struct Command {
  std::string path;  // "up", "driver gpu"
  std::string about;
  Flags flags;
  std::function<int()> run;  // the exit status
  std::string footer = {};
  /// Instead of `run`, of a command that tells of all others.
  std::function<int(const CommandLine&)> tell = {};
  /// Before `run`: may set flags that were not given. Those that were are named as by name_of().
  std::function<Result<>(const Flags&, const std::set<std::string>& given)> complete = {};
};

/// The first word of the paths of several commands.
struct CommandGroup {
  std::string name;
  std::string about;
};

struct CommandLine {
  std::string name;
  std::string about;
  std::string version;
  std::vector<CommandGroup> groups;
  std::vector<Command> commands;  // in the order of help
};

/// Null: there is none.
const Command* find_command(const CommandLine& line, std::string_view path);
const CommandGroup* find_group(const CommandLine& line, std::string_view name);
/// The commands and groups that stand behind `group`, which is "" for those that stand first.
std::vector<std::string> words_after(const CommandLine& line, std::string_view group);

/// What `--help` prints.
std::string help_of_all(const CommandLine& line);
std::string help_of_group(const CommandLine& line, const CommandGroup& group);
std::string help_of_command(const CommandLine& line, const Command& command);

/// `dibs: unknown command "upp"; did you mean "up"? ("dibs help" lists all)`, on standard error; 2.
int refuse_command(const CommandLine& line, std::string_view group, std::string_view word);

/// Returns the exit status of the command that is named; 2 when the command line is wrong, which is
/// then told in one line, with the name that may have been meant.
int run(const CommandLine& line, int argc, char** argv);

}  // namespace dibs::cli
