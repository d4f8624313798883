#include "cli/manual.h"

#include <cstdio>
#include <iostream>
#include <memory>

#include "base/flags.h"
#include "base/strings.h"
#include "cli/common_flags.h"
#include "cli/process.h"
#include "cli/version.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

struct HelpFlags {
  std::vector<std::string> words;
};
struct CompletionFlags {
  std::string shell;
};
struct ManFlags {
  std::vector<std::string> words;
  std::string folder;
  std::string format = "roff";
};
struct VersionFlags {
  std::string output = "text";
};

/// Words that name no command: what is behind one, or nearly one. The exit status.
int refuse_words(const CommandLine& line, const std::vector<std::string>& words) {
  std::string path;
  for (std::size_t n = 0; n + 1 < words.size(); ++n) {
    append(path, n > 0 ? " " : "", words[n]);
    if (find_command(line, path) == nullptr || !words_after(line, path).empty()) continue;
    std::fprintf(stderr, "%s help: unexpected argument %s (\"%s help %s\" tells of that command)\n",
                 line.name.c_str(), quoted(words[n + 1]).c_str(), line.name.c_str(), path.c_str());
    return 2;
  }
  const bool in_group = words.size() > 1 && !words_after(line, words[0]).empty();
  return in_group ? refuse_command(line, words[0], words[1]) : refuse_command(line, "", words[0]);
}

int help(const CommandLine& line, const HelpFlags& flags) {
  std::string text;
  const std::string path = join(flags.words, " ");
  if (path.empty()) {
    text = help_of_all(line);
  } else if (const Command* command = find_command(line, path)) {
    text = help_of_command(line, *command);
  } else if (const CommandGroup* group = find_group(line, path)) {
    text = help_of_group(line, *group);
  } else {
    return refuse_words(line, flags.words);
  }
  std::cout << text << std::flush;
  return 0;
}

std::vector<std::string> all_pages(const CommandLine& line) {
  std::vector<std::string> out = {""};
  for (const CommandGroup& group : line.groups) out.push_back(group.name);
  for (const Command& command : line.commands) out.push_back(command.path);
  return out;
}

Result<> write_pages(const CommandLine& line, const std::string& folder) {
  runtime::Files& files = runtime::system_files();
  DIBS_CHECK(files.make_dirs(folder, 0755));
  for (const std::string& path : all_pages(line)) {
    DIBS_CHECK(files.write(cat(folder, "/", man_file(line, path)), man_page(line, path), 0644));
  }
  return success();
}

int man(const CommandLine& line, const ManFlags& flags) {
  if (!flags.folder.empty()) return exit_status("man", write_pages(line, flags.folder));
  if (flags.format == "markdown") {
    std::cout << markdown_reference(line) << std::flush;
    return 0;
  }
  const std::string page = man_page(line, join(flags.words, " "));
  if (page.empty()) return help(line, {flags.words});
  std::cout << page << std::flush;
  return 0;
}

int version(const CommandLine& line, const VersionFlags& flags) {
  const BuildInfo built = build_info();
  if (flags.output == "json") {
    std::cout << "{\"version\":" << quoted(built.version) << ",\"commit\":" << quoted(built.commit)
              << ",\"date\":" << quoted(built.date) << "}" << std::endl;
  } else {
    std::cout << line.version << std::endl;
  }
  return 0;
}

/// As command() of commands.cc, for those that are told the table.
template <typename Values, typename Tell>
Command about_table(const char* path, const char* about, Flags (*table)(Values&), Tell tell) {
  const auto values = std::make_shared<Values>();
  Command out{path, about, table(*values), {}, {}, {}};
  out.tell = [values, tell](const CommandLine& line) { return tell(line, *values); };
  return out;
}

}  // namespace

void add_manual_commands(CommandLine& line) {
  line.commands.push_back(about_table(
      "help", "Tell what there is, or of one command",
      +[](HelpFlags& flags) {
        return Flags{{"COMMAND", &flags.words, "Command to tell of (default: all)"}};
      },
      help));
  line.commands.push_back(about_table(
      "completion", "Print a script that completes commands and flags in a shell",
      +[](CompletionFlags& flags) {
        return Flags{{"SHELL",
                      &flags.shell,
                      "Shell to write for",
                      {.one_of = {"bash", "zsh", "fish"}, .required = true}}};
      },
      [](const CommandLine& all, const CompletionFlags& flags) {
        std::cout << completion_script(all, flags.shell) << std::flush;
        return 0;
      }));
  line.commands.push_back(about_table(
      "man", "Print the manual page of a command, or write all of them",
      +[](ManFlags& flags) {
        return Flags{
            {"COMMAND", &flags.words, "Command whose page is printed (default: dibs itself)"},
            {"--write", &flags.folder, "Folder to write all pages to instead", {.type = "DIR"}},
            {"--format", &flags.format, "roff for man, or markdown: all commands in one page",
             one_of({"roff", "markdown"})}};
      },
      man));
  line.commands.push_back(about_table(
      "version", "Tell which version this is, and of which commit",
      +[](VersionFlags& flags) {
        return Flags{{"-o,--output", &flags.output, "How to print it", one_of({"text", "json"})}};
      },
      version));
}

}  // namespace dibs::cli
