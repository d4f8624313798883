#include "cli/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "base/did_you_mean.h"
#include "base/flags.h"
#include "base/strings.h"

namespace dibs::cli {
namespace {

/// Leaves the parser by way of its callbacks.
struct WrongValue {
  std::string message;
};

CLI::Option* add_option(CLI::App& app, const Flag& flag) {
  if (is_switch(flag)) return app.add_flag(flag.name, *std::get<bool*>(flag.target), flag.help);
  const auto set = [&flag](const CLI::results_t& words) {
    // A variable that is not set, in a script that means one of many.
    if (is_positional(flag) && std::find(words.begin(), words.end(), "") != words.end()) {
      throw WrongValue{cat(name_of(flag), ": is empty")};
    }
    const auto done = set_value(flag, words);
    if (!done.ok()) throw WrongValue{cat(name_of(flag), ": ", done.error().message())};
    return true;
  };
  CLI::Option* option = app.add_option(flag.name, set, flag.help);
  std::string type = type_of(flag);
  if (const std::string range = range_of(flag); !range.empty()) append(type, ":", range);
  if (!flag.form.one_of.empty()) append(type, ":{", join(flag.form.one_of, ","), "}");
  option->type_name(type);
  // As many as stand there, up to the next flag.
  if (is_list(flag)) option->expected(CLI::detail::expected_max_vector_size);
  if (flag.help.find("(default: ") == std::string::npos) option->default_str(value_of(flag));
  return option;
}

/// The parser gives what it hides no name in its messages: only help hides.
enum class For { parsing, help };

CLI::Option* add_flag(CLI::App& app, const Flag& flag, For what) {
  const Flag::Form& form = flag.form;
  CLI::Option* option = add_option(app, flag);
  if (!form.env.empty()) option->envname(form.env);
  if (form.required) option->required();
  if (form.hidden && what == For::help) option->group("");
  if (form.commas) option->delimiter(',');
  if (form.last_wins) option->take_last();
  return option;
}

std::string full_name(const CommandLine& line, const Command& command) {
  return cat(line.name, " ", command.path);
}

/// One for each flag; null for that of another program's words.
std::vector<CLI::Option*> prepare(CLI::App& app, const Command& command, For what) {
  app.footer(command.footer);
  app.allow_extras();
  std::vector<CLI::Option*> out;
  for (const Flag& flag : command.flags) {
    // The words of another program are not for this parser.
    const bool own = what == For::help || !flag.form.rest;
    out.push_back(own ? add_flag(app, flag, what) : nullptr);
  }
  return out;
}

std::set<std::string> given_flags(const Command& command,
                                  const std::vector<CLI::Option*>& options) {
  std::set<std::string> out;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (options[i] != nullptr && options[i]->count() > 0) out.insert(name_of(command.flags[i]));
  }
  return out;
}

std::vector<std::string> flag_names(const Command& command) {
  std::vector<std::string> out = {"--help"};
  for (const Flag& flag : command.flags) {
    if (is_positional(flag) || flag.form.hidden) continue;
    for (std::string& name : names_of(flag)) out.push_back(std::move(name));
  }
  return out;
}

/// What no flag and no place of the command takes; "" where nothing is left over.
std::string leftover(const Command& command, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (!word.starts_with('-') || word == "-") continue;
    const std::string name = word.substr(0, word.find('='));
    return cat("unknown flag ", quoted(name), did_you_mean(name, flag_names(command)));
  }
  return words.empty() ? "" : cat("unexpected argument ", quoted(words.front()));
}

/// The flag that the parser's message begins with, or names.
const Flag* flag_of(const Command& command, std::string_view message) {
  const Flag* found = nullptr;
  std::size_t longest = 0;
  for (const Flag& flag : command.flags) {
    for (const std::string& name : names_of(flag)) {
      const auto at = message.find(name);
      if (at == std::string_view::npos || name.size() <= longest) continue;
      found = &flag;
      longest = name.size();
    }
  }
  return found;
}

std::string needs_value(const Flag& flag) {
  std::string what = type_of(flag);
  if (const std::string range = range_of(flag); !range.empty()) append(what, ", ", range);
  if (!flag.form.one_of.empty()) what = join(flag.form.one_of, ", ");
  return cat(name_of(flag), ": needs a value (", what, ")");
}

/// The parser's complaint in our words.
std::string explain(const Command& command, const CLI::ParseError& error) {
  const std::string message = error.what();
  const Flag* flag = flag_of(command, message);
  if (flag == nullptr) return message;
  if (error.get_name() == "RequiredError") {
    return cat(name_of(*flag), " is required: ", flag->help);
  }
  if (message.find("At Most") != std::string::npos) {
    return cat(name_of(*flag), ": given more than once");
  }
  if (is_switch(*flag)) return cat(name_of(*flag), ": must be true or false, if it has a value");
  if (error.get_name() == "ArgumentMismatch") return needs_value(*flag);
  return message;
}

int refuse(const std::string& who, const std::string& what, const std::string& list) {
  std::fprintf(stderr, "%s: %s (%s)\n", who.c_str(), what.c_str(), list.c_str());
  return 2;
}

const Flag* rest_flag(const Command& command) {
  const auto found = std::find_if(command.flags.begin(), command.flags.end(),
                                  [](const Flag& flag) { return flag.form.rest; });
  return found == command.flags.end() ? nullptr : &*found;
}

bool takes_next_word(const Command& command, const std::string& word) {
  return std::any_of(command.flags.begin(), command.flags.end(), [&](const Flag& flag) {
    const auto names = names_of(flag);
    return !is_switch(flag) && std::find(names.begin(), names.end(), word) != names.end();
  });
}

/// Takes the words of a program that the command runs, which are its own, away from `words`: all
/// from the first that is no flag of the command, or behind a --.
std::vector<std::string> take_rest(const Command& command, std::vector<std::string>& words) {
  std::size_t i = 1;
  while (i < words.size() && words[i].starts_with('-') && words[i] != "--") {
    i += takes_next_word(command, words[i]) ? 2 : 1;
  }
  if (i >= words.size()) return {};
  const auto at = words.begin() + static_cast<std::ptrdiff_t>(i);
  std::vector<std::string> rest(at + (*at == "--" ? 1 : 0), words.end());
  words.erase(at, words.end());
  return rest;
}

int run_command(const CommandLine& line, const Command& command, int argc, char** argv) {
  const std::string name = full_name(line, command);
  CLI::App app{command.about, name};
  const auto options = prepare(app, command, For::parsing);
  const auto refuse_flags = [&](const std::string& what) {
    return refuse(name, what, cat(quoted(cat(name, " --help")), " lists all"));
  };
  std::string wrong;
  try {
    std::vector<std::string> words(argv, argv + argc);
    if (const Flag* rest = rest_flag(command)) {
      const auto own = take_rest(command, words);
      if (own.empty() && rest->form.required)
        wrong = cat(name_of(*rest), " is required: ", rest->help);
      if (const auto set = set_value(*rest, own); !own.empty() && !set.ok()) {
        wrong = cat(name_of(*rest), ": ", set.error().message());
      }
    }
    std::vector<const char*> pointers;
    for (const std::string& word : words) pointers.push_back(word.c_str());
    app.parse(static_cast<int>(pointers.size()), pointers.data());
  } catch (const CLI::CallForHelp&) {
    std::cout << help_of_command(line, command) << std::flush;
    return 0;
  } catch (const WrongValue& value) {
    wrong = value.message;
  } catch (const CLI::ParseError& error) {
    wrong = explain(command, error);
  }
  // What is missing may be there under a name that was mistyped.
  if (const std::string left = leftover(command, app.remaining()); !left.empty()) wrong = left;
  if (!wrong.empty()) return refuse_flags(wrong);
  if (command.complete) {
    const auto done = command.complete(command.flags, given_flags(command, options));
    if (!done.ok()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), done.error().message().c_str());
      return 2;
    }
  }
  return command.tell ? command.tell(line) : command.run();
}

struct Row {
  std::string name;
  std::string about;
};

std::string rows_text(const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  std::string out;
  for (const Row& row : rows) {
    append(out, "  ", row.name, std::string(width - row.name.size() + 2, ' '), row.about, "\n");
  }
  return out;
}

std::string word_after(const Command& command, std::string_view group) {
  if (group.empty()) return command.path.substr(0, command.path.find(' '));
  if (!command.path.starts_with(cat(group, " "))) return "";
  return command.path.substr(group.size() + 1);
}

}  // namespace

const Command* find_command(const CommandLine& line, std::string_view path) {
  for (const Command& command : line.commands) {
    if (command.path == path) return &command;
  }
  return nullptr;
}

const CommandGroup* find_group(const CommandLine& line, std::string_view name) {
  for (const CommandGroup& group : line.groups) {
    if (group.name == name) return &group;
  }
  return nullptr;
}

std::vector<std::string> words_after(const CommandLine& line, std::string_view group) {
  std::vector<std::string> out;
  for (const Command& command : line.commands) {
    std::string word = word_after(command, group);
    if (!word.empty() && (out.empty() || out.back() != word)) out.push_back(std::move(word));
  }
  return out;
}

std::string help_of_all(const CommandLine& line) {
  std::vector<Row> rows;
  for (const std::string& word : words_after(line, "")) {
    const Command* command = find_command(line, word);
    const CommandGroup* group = find_group(line, word);
    rows.push_back({word, command != nullptr ? command->about : group->about});
  }
  return cat(line.about, "\n\nUsage: ", line.name, " COMMAND [FLAG...]\n\nCommands:\n",
             rows_text(rows), "\n\"", line.name, " help COMMAND\" tells of one, \"", line.name,
             " --version\" of this program.\n");
}

std::string help_of_group(const CommandLine& line, const CommandGroup& group) {
  std::vector<Row> rows;
  for (const std::string& word : words_after(line, group.name)) {
    rows.push_back({word, find_command(line, cat(group.name, " ", word))->about});
  }
  return cat(group.about, "\n\nUsage: ", line.name, " ", group.name,
             " COMMAND [FLAG...]\n\nCommands:\n", rows_text(rows), "\n\"", line.name, " help ",
             group.name, " COMMAND\" tells of one.\n");
}

std::string help_of_command(const CommandLine& line, const Command& command) {
  CLI::App app{command.about, full_name(line, command)};
  prepare(app, command, For::help);
  return app.help();
}

int refuse_command(const CommandLine& line, std::string_view group, std::string_view word) {
  const std::string who = group.empty() ? line.name : cat(line.name, " ", group);
  const std::string list =
      group.empty() ? cat(line.name, " help") : cat(line.name, " help ", group);
  return refuse(who,
                cat("unknown command ", quoted(word), did_you_mean(word, words_after(line, group))),
                cat(quoted(list), " lists all"));
}

int run(const CommandLine& line, int argc, char** argv) {
  if (argc < 2) {
    std::cerr << help_of_all(line);
    return 2;
  }
  const std::string first = argv[1];
  if (first == "-h" || first == "--help") {
    std::cout << help_of_all(line) << std::flush;
    return 0;
  }
  if (first == "--version") {
    std::cout << line.version << std::endl;
    return 0;
  }
  if (first.starts_with('-')) {
    return refuse(line.name,
                  cat("unknown flag ", quoted(first), did_you_mean(first, {"--help", "--version"}),
                      "; those of a command stand behind it"),
                  cat(quoted(cat(line.name, " help")), " lists all commands"));
  }
  const std::string second = argc > 2 ? argv[2] : "";
  // "node" is a command, and so is "node join".
  if (const Command* command = find_command(line, cat(first, " ", second))) {
    return run_command(line, *command, argc - 2, argv + 2);
  }
  if (const Command* command = find_command(line, first)) {
    if (!did_you_mean(second, words_after(line, first)).empty()) {
      return refuse_command(line, first, second);
    }
    return run_command(line, *command, argc - 1, argv + 1);
  }
  const CommandGroup* group = find_group(line, first);
  if (group == nullptr) return refuse_command(line, "", first);
  if (second == "-h" || second == "--help") {
    std::cout << help_of_group(line, *group) << std::flush;
    return 0;
  }
  if (second.empty()) {
    std::cerr << help_of_group(line, *group);
    return 2;
  }
  return refuse_command(line, first, second);
}

}  // namespace dibs::cli
