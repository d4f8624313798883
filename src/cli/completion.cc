// Scripts by which shells complete commands, flags and their values, out of the table of commands.
//
// All three walk over the words that name a command, and then know which flags there are: nothing
// is asked of the binary while somebody types.
#include <set>

#include "base/flags.h"
#include "base/strings.h"
#include "cli/manual.h"

namespace dibs::cli {
namespace {

/// In single quotes, for any of the shells.
std::string in_quotes(std::string_view text, std::string_view quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
    } else {
      out.push_back(c == '\n' ? ' ' : c);
    }
  }
  return out + "'";
}
std::string sh(std::string_view text) { return in_quotes(text, "'\\''"); }
std::string fish(std::string_view text) { return in_quotes(text, "\\'"); }

/// Groups and commands: whatever names a place to stand at.
std::vector<std::string> paths_of(const CommandLine& line) {
  std::vector<std::string> out;
  for (const CommandGroup& group : line.groups) out.push_back(group.name);
  for (const Command& command : line.commands) out.push_back(command.path);
  return out;
}

std::string about_of(const CommandLine& line, const std::string& path) {
  if (const Command* command = find_command(line, path)) return command->about;
  const CommandGroup* group = find_group(line, path);
  return group != nullptr ? group->about : "";
}

enum class Value { none, words, file, any };

Value value_kind(const Flag& flag) {
  if (is_switch(flag)) return Value::none;
  if (!flag.form.one_of.empty() || std::holds_alternative<bool*>(flag.target)) return Value::words;
  const std::string type = type_of(flag);
  const std::string name = name_of(flag);
  if (type == "FILE" || type == "DIR" || name == "FILE" || name == "PROGRAM") return Value::file;
  for (const char* part : {"-dir", "-file", "-path", "-root", "-out", "--out", "--images"}) {
    if (name.find(part) != std::string::npos) return Value::file;
  }
  return Value::any;
}

std::vector<std::string> value_words(const Flag& flag) {
  if (!flag.form.one_of.empty()) return flag.form.one_of;
  return {"true", "false"};
}

std::string bash_script(const CommandLine& line) {
  std::string paths;
  for (const std::string& path : paths_of(line)) append(paths, paths.empty() ? "" : "|", sh(path));
  std::string words;
  std::string flags;
  std::string values;
  std::string files;  // commands whose words are such
  for (const std::string& group : [&] {
         std::vector<std::string> out = {""};
         for (const CommandGroup& one : line.groups) out.push_back(one.name);
         return out;
       }()) {
    append(words, "    ", sh(group), ") words=", sh(join(words_after(line, group), " ")), " ;;\n");
  }
  for (const Command& command : line.commands) {
    std::vector<std::string> names = {"--help"};
    for (const Flag& flag : command.flags) {
      if (flag.form.hidden) continue;
      const Value kind = value_kind(flag);
      if (is_positional(flag)) {
        const std::string place = sh(command.path);
        if (kind == Value::file) append(files, files.empty() ? "" : "|", place);
        if (kind == Value::words) {
          append(words, "    ", place, ") words=", sh(join(value_words(flag), " ")), " ;;\n");
        } else if (name_of(flag) == "COMMAND") {
          append(words, "    ", place, ") words=", sh(join(words_after(line, ""), " ")), " ;;\n");
        }
        continue;
      }
      std::string keys;
      for (const std::string& name : names_of(flag)) {
        names.push_back(name);
        append(keys, keys.empty() ? "" : "|", sh(cat(command.path, " ", name)));
      }
      if (kind == Value::none) continue;
      append(values, "    ", keys, ") ",
             kind == Value::words  ? cat("COMPREPLY=($(compgen -W ",
                                         sh(join(value_words(flag), " ")), " -- \"$cur\"))")
             : kind == Value::file ? "COMPREPLY=($(compgen -f -- \"$cur\"))"
                                   : "COMPREPLY=()",
             "; return ;;\n");
    }
    append(flags, "    ", sh(command.path), ") flags=", sh(join(names, " ")), " ;;\n");
    if (const std::string behind = join(words_after(line, command.path), " "); !behind.empty()) {
      append(words, "    ", sh(command.path), ") words=", sh(behind), " ;;\n");
    }
  }
  return cat(
      "# bash completion of ", line.name, ", made by `", line.name, " completion bash`\n_",
      line.name, "() {\n",
      R"(  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at= i words= flags=
  COMPREPLY=()
  # bash takes the = of --flag=value for a word.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "${at:+$at }${COMP_WORDS[i]}" in
    )",
      paths, R"() at="${at:+$at }${COMP_WORDS[i]}" ;;
    *) break ;;
    esac
  done
  case "$at $prev" in
)",
      values, "  esac\n  case $at in\n", words, "  esac\n  case $at in\n", flags, R"(  esac
  if [[ $cur == -* ]]; then
    words=$flags
  elif [[ -z $words ]]; then
    case $at in
    )",
      files, R"() COMPREPLY=($(compgen -f -- "$cur")) ;;
    esac
    return
  fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o filenames -F _)",
      line.name, " ", line.name, "\n");
}

/// Text inside of [ ] and behind : of _arguments and _describe.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string zsh_value(const Flag& flag) {
  switch (value_kind(flag)) {
    case Value::none:
      return "";
    case Value::words:
      return cat(":value:(", join(value_words(flag), " "), ")");
    case Value::file:
      return ":file:_files";
    case Value::any:
      break;
  }
  return cat(":", zsh_text(type_of(flag)), ": ");
}

std::string zsh_words(const CommandLine& line, const std::string& group) {
  std::string out = "there=(";
  for (const std::string& word : words_after(line, group)) {
    const std::string path = group.empty() ? word : cat(group, " ", word);
    append(out, " ", sh(cat(word, ":", zsh_text(about_of(line, path)))));
  }
  return out + " ); _describe command there";
}

std::string zsh_script(const CommandLine& line) {
  std::string paths;
  for (const std::string& path : paths_of(line)) append(paths, paths.empty() ? "" : "|", sh(path));
  std::string cases = cat("    ('') ", zsh_words(line, ""), " ;;\n");
  for (const CommandGroup& group : line.groups) {
    append(cases, "    (", sh(group.name), ") ", zsh_words(line, group.name), " ;;\n");
  }
  for (const Command& command : line.commands) {
    append(cases, "    (", sh(command.path), ") _arguments '--help[Tell what there is]'");
    int place = 0;
    if (const std::string behind = join(words_after(line, command.path), " "); !behind.empty()) {
      append(cases, " \\\n      ", sh(cat(++place, ":command:(", behind, ")")));
    }
    for (const Flag& flag : command.flags) {
      if (flag.form.hidden) continue;
      const std::string value = zsh_value(flag);
      if (is_positional(flag)) {
        const std::string what = name_of(flag) == "COMMAND"
                                     ? cat(":command:(", join(words_after(line, ""), " "), ")")
                                     : value;
        append(cases, " \\\n      ", sh(cat(is_list(flag) ? "*" : std::to_string(++place), what)));
        continue;
      }
      for (const std::string& name : names_of(flag)) {
        const char* joint = value.empty() ? "" : name.starts_with("--") ? "=" : "+";
        append(
            cases, " \\\n      ",
            sh(cat(is_list(flag) ? "*" : "", name, joint, "[", zsh_text(flag.help), "]", value)));
      }
    }
    append(cases, " ;;\n");
  }
  return cat("#compdef ", line.name, "\n# zsh completion of ", line.name, ", made by `", line.name,
             " completion zsh`\n_", line.name, R"(() {
  local at= i=2
  local -a there
  while (( i < CURRENT )); do
    case "${at:+$at }${words[i]}" in
    ()",
             paths, R"() at="${at:+$at }${words[i]}"; (( i++ )) ;;
    (*) break ;;
    esac
  done
  # _arguments takes the first word for the command's name.
  shift $(( i - 2 )) words
  (( CURRENT -= i - 2 ))
  case $at in
)",
             cases, "  esac\n}\nif [ \"$funcstack[1]\" = _", line.name, " ]; then\n  _", line.name,
             " \"$@\"\nelse\n  compdef _", line.name, " ", line.name, "\nfi\n");
}

std::string fish_script(const CommandLine& line) {
  const std::string self = cat("complete -c ", line.name);
  std::string out = cat("# fish completion of ", line.name, ", made by `", line.name,
                        " completion fish`\nset -g __", line.name, "_paths");
  for (const std::string& path : paths_of(line)) append(out, " ", fish(path));
  append(out, "\nfunction __", line.name, R"(_at
    set -l at
    for word in (commandline -opc)[2..-1]
        contains -- (string join -- ' ' $at $word) $__)",
         line.name, R"(_paths; or break
        set -a at $word
    end
    test "$at" = "$argv[1]"
end
)",
         self, " -f\n");
  const auto where = [&](const std::string& path) {
    return cat(self, " -n ", fish(cat("__", line.name, "_at \"", path, "\"")));
  };
  const auto words = [&](const std::string& group) {
    for (const std::string& word : words_after(line, group)) {
      const std::string path = group.empty() ? word : cat(group, " ", word);
      append(out, where(group), " -a ", word, " -d ", fish(about_of(line, path)), "\n");
    }
  };
  words("");
  for (const CommandGroup& group : line.groups) words(group.name);
  for (const Command& command : line.commands) {
    words(command.path);
    append(out, where(command.path), " -l help -d 'Tell what there is'\n");
    for (const Flag& flag : command.flags) {
      if (flag.form.hidden) continue;
      const Value kind = value_kind(flag);
      if (is_positional(flag)) {
        const bool commands = name_of(flag) == "COMMAND";
        if (kind == Value::file) append(out, where(command.path), " -F\n");
        if (kind == Value::words || commands) {
          append(out, where(command.path), " -a ",
                 fish(join(commands ? words_after(line, "") : value_words(flag), " ")), "\n");
        }
        continue;
      }
      append(out, where(command.path));
      for (const std::string& name : names_of(flag)) {
        append(out,
               name.starts_with("--") ? cat(" -l ", name.substr(2)) : cat(" -s ", name.substr(1)));
      }
      if (kind == Value::words) append(out, " -x -a ", fish(join(value_words(flag), " ")));
      if (kind == Value::file) out += " -r -F";
      if (kind == Value::any) out += " -x";
      append(out, " -d ", fish(flag.help), "\n");
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const CommandLine& line, const std::string& shell) {
  if (shell == "bash") return bash_script(line);
  if (shell == "zsh") return zsh_script(line);
  return fish_script(line);
}

}  // namespace dibs::cli
