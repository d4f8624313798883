#pragma once
// Flags of a command line as data: what each may be, and where its value goes.
//
// From here come help and errors of all programs, and values that come by a variable or by an
// option of a driver: what is right, and what is said of what is not. Who splits the command line
// into words is elsewhere (cli/command_line.h, driver/command_line.h).

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace dibs::flags {

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
    // Of a list that is known by its place: the first word that belongs to no flag, and all behind
    // it, whatever they look like. A program with its arguments.
    bool rest = false;
    // Of a number, or of a duration in seconds: what it may be. Without them, whatever its type
    // holds, and no duration below 0 or above 1,200,000 hours.
    std::optional<double> least = {};
    std::optional<double> most = {};
  };

  std::string name;  // "--bind", "-o,--output"; "FILE" is known by its place
  Target target;     // must outlive the parsing
  std::string help;
  Form form = {};
};
using Flags = std::vector<Flag>;

/// The name to call it by: the long one of several.
std::string name_of(const Flag& flag);
/// All of them: "-o" and "--output".
std::vector<std::string> names_of(const Flag& flag);
bool is_positional(const Flag& flag);
bool is_switch(const Flag& flag);
bool is_list(const Flag& flag);
/// "TEXT", "INT", "DURATION", …, as help shows it.
std::string type_of(const Flag& flag);
/// "0 to 100", "1 or more"; "" where nothing but the type limits it.
std::string range_of(const Flag& flag);
/// What stands there now, as a command line would have it.
std::string value_of(const Flag& flag);

/// Sets what the flag points to: the last of the words, or all of a list. The error says what is
/// wrong, and does not name the flag.
Result<> set_value(const Flag& flag, const std::vector<std::string>& words);

}  // namespace dibs::flags
