#pragma once
// A command line as data: commands with tables of flags, and one parser for all of them.
//
// What a value looks like, how help shows it and what is said about a wrong one follow from where
// it goes. The default is what stands there; help shows it, unless the text says "(default: …)".

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"

namespace dibs::cli {

struct Flag {
  using Target = std::variant<std::string*, std::vector<std::string>*, bool*, int*, unsigned*,
                              double*, Duration*>;
  struct Form {
    const char* type = "";  // word for the value in help; "": by the target
    std::vector<std::string> one_of = {};
    std::string env = {};  // variable that may give it instead
    bool required = false;
    bool hidden = false;     // from help
    bool has_value = false;  // of a bool; else it is true when named
    bool commas = false;     // of a list: between its items
    bool last_wins = false;  // may be given again
  };

  std::string name;  // "--bind", "-o,--output"; "FILE" is known by its place
  Target target;     // must outlive the parsing
  std::string help;
  Form form = {};
};
using Flags = std::vector<Flag>;

struct Command {
  std::string path;  // "up", "driver gpu"
  std::string about;
  Flags flags;
  std::function<int()> run;  // the exit status
  std::string footer = {};
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

/// Returns the exit status of the command that is named; 2 when the command line is wrong, which is
/// then told with the help.
int run(const CommandLine& line, int argc, char** argv);

}  // namespace dibs::cli
