// Pages of man and Markdown, out of the table of commands.
#include "base/flags.h"
#include "base/strings.h"
#include "cli/manual.h"
#include "cli/version.h"

namespace dibs::cli {
namespace {

/// Text that roff takes for text.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      append(out, "\\&", c);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

/// What stands behind the name: "UINT", "sqlite|memory|etcd"; "" of a switch.
std::string value_word(const Flag& flag) {
  if (is_switch(flag) || is_positional(flag)) return "";
  return flag.form.one_of.empty() ? type_of(flag) : join(flag.form.one_of, "|");
}

/// "Default: 5s. From 0 to 9. Also by the variable X.", as far as there is something to say.
std::string facts_of(const Flag& flag) {
  std::string out;
  const std::string value = value_of(flag);
  if (!is_switch(flag) && !value.empty() && flag.help.find("(default: ") == std::string::npos) {
    append(out, " Default: ", value, ".");
  }
  if (const std::string range = range_of(flag); !range.empty())
    append(out, " Bounds: ", range, ".");
  if (!flag.form.env.empty()) append(out, " Variable: ", flag.form.env, ".");
  if (flag.form.required) append(out, " Required.");
  return out;
}

std::string synopsis(const Command& command) {
  std::string out;
  bool options = false;
  for (const Flag& flag : command.flags) {
    if (flag.form.hidden) continue;
    const std::string name = name_of(flag);
    if (is_positional(flag)) {
      const std::string word = is_list(flag) ? name + "..." : name;
      append(out, " ", flag.form.required ? word : cat("[", word, "]"));
    } else if (flag.form.required) {
      append(out, " ", name, " ", value_word(flag));
    } else {
      options = true;
    }
  }
  return options ? out + " [FLAG...]" : out;
}

std::string head(const CommandLine& line, const std::string& path, const std::string& about) {
  std::string title = path.empty() ? line.name : cat(line.name, "-", path);
  for (char& c : title) c = c == ' ' ? '-' : c;
  const BuildInfo built = build_info();
  const std::string date = std::string(built.date).substr(0, 10);
  return cat(".TH \"", to_upper(title), "\" 1 \"", date == "unknown" ? "" : date, "\" \"",
             line.name, " ", built.version, "\"\n.SH NAME\n", roff(title), " \\- ", roff(about),
             "\n");
}

std::string section_of_command(const CommandLine& line, const Command& command) {
  std::string out = cat(".SH SYNOPSIS\n.B ", roff(cat(line.name, " ", command.path)), "\n",
                        roff(trim(synopsis(command))), "\n");
  bool any = false;
  for (const Flag& flag : command.flags) {
    if (flag.form.hidden) continue;
    if (!any) out += ".SH FLAGS\n";
    any = true;
    append(out, ".TP\n\\fB", roff(join(names_of(flag), ", ")), "\\fR");
    if (const std::string word = value_word(flag); !word.empty())
      append(out, " \\fI", roff(word), "\\fR");
    append(out, "\n", roff(flag.help), ".", roff(facts_of(flag)), "\n");
  }
  if (!command.footer.empty()) append(out, ".SH NOTES\n", roff(command.footer), "\n");
  return out;
}

std::string list_of_commands(const CommandLine& line, const std::string& group) {
  std::string out = ".SH COMMANDS\n";
  for (const Command& command : line.commands) {
    if (!group.empty() && !command.path.starts_with(group + " ")) continue;
    append(out, ".TP\n\\fB", roff(cat(line.name, " ", command.path)), "\\fR\n", roff(command.about),
           "\n");
  }
  return out;
}

std::string dashed(std::string text) {
  for (char& c : text) c = c == ' ' ? '-' : c;
  return text;
}

/// A cell of a table, where a bar would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out.push_back('\\');
    out.push_back(c == '\n' ? ' ' : c);
  }
  return out;
}

}  // namespace

std::string man_file(const CommandLine& line, const std::string& path) {
  return path.empty() ? cat(line.name, ".1") : cat(line.name, "-", dashed(path), ".1");
}

std::string man_page(const CommandLine& line, const std::string& path) {
  if (path.empty()) {
    return cat(head(line, "", line.about), ".SH SYNOPSIS\n.B ", roff(line.name),
               "\nCOMMAND [FLAG...]\n", list_of_commands(line, ""));
  }
  if (const CommandGroup* group = find_group(line, path)) {
    return cat(head(line, path, group->about), ".SH SYNOPSIS\n.B ", roff(cat(line.name, " ", path)),
               "\nCOMMAND [FLAG...]\n", list_of_commands(line, path), ".SH SEE ALSO\n",
               roff(line.name), "(1)\n");
  }
  const Command* command = find_command(line, path);
  if (command == nullptr) return "";
  return cat(head(line, path, command->about), section_of_command(line, *command),
             ".SH EXIT STATUS\n0 when all is well, 1 for a failure, 2 for a wrong command line, "
             "unless the notes say otherwise.\n.SH SEE ALSO\n",
             roff(line.name), "(1)\n");
}

std::string markdown_reference(const CommandLine& line) {
  std::string out = cat("# Commands and flags of ", line.name, "\n\n", line.about, "\n");
  for (const Command& command : line.commands) {
    append(out, "\n## ", line.name, " ", command.path, "\n\n", command.about, ".\n\n    ",
           line.name, " ", command.path, synopsis(command), "\n");
    bool any = false;
    for (const Flag& flag : command.flags) {
      if (flag.form.hidden) continue;
      if (!any) out += "\n| flag | is |\n|---|---|\n";
      any = true;
      const std::string word = value_word(flag);
      append(out, "| `", join(names_of(flag), "`, `"), cell(word.empty() ? "" : " " + word), "` | ",
             cell(flag.help), ".", cell(facts_of(flag)), " |\n");
    }
    if (!command.footer.empty()) append(out, "\n", command.footer, "\n");
  }
  return out;
}

}  // namespace dibs::cli
