#include "cli/command_line.h"

#include <CLI/CLI.hpp>

#include <map>

#include "base/strings.h"

namespace dibs::cli {
namespace {

// The option for each kind of target.

template <typename T>
CLI::Option* add_option(CLI::App& app, const Flag& flag, T* target) {
  return app.add_option(flag.name, *target, flag.help);
}

CLI::Option* add_option(CLI::App& app, const Flag& flag, bool* target) {
  return flag.form.has_value ? app.add_option(flag.name, *target, flag.help)
                             : app.add_flag(flag.name, *target, flag.help);
}

CLI::Option* add_option(CLI::App& app, const Flag& flag, Duration* target) {
  const auto read = [target, name = flag.name](const CLI::results_t& given) {
    const auto duration = parse_duration(given.back());
    if (!duration.ok()) throw CLI::ValidationError(name, duration.error().message());
    *target = *duration;
    return true;
  };
  return app.add_option(flag.name, read, flag.help)->type_name("DURATION");
}

// The default as help shows it.

std::string shown(const std::string* value) { return *value; }
std::string shown(const std::vector<std::string>* value) { return join(*value, ","); }
std::string shown(const Duration* value) { return format_duration(*value); }
std::string shown(const bool* value) { return *value ? "true" : "false"; }
template <typename T>
std::string shown(const T* value) {
  return std::to_string(*value);
}

void add_flag(CLI::App& app, const Flag& flag) {
  const Flag::Form& form = flag.form;
  CLI::Option* option =
      std::visit([&](auto* target) { return add_option(app, flag, target); }, flag.target);
  const bool is_switch = std::holds_alternative<bool*>(flag.target) && !form.has_value;
  if (!is_switch && flag.help.find("(default: ") == std::string::npos) {
    option->default_str(std::visit([](auto* target) { return shown(target); }, flag.target));
  }
  if (*form.type != '\0') option->type_name(form.type);
  if (!form.one_of.empty()) option->check(CLI::IsMember(form.one_of));
  if (!form.env.empty()) option->envname(form.env);
  if (form.required) option->required();
  if (form.hidden) option->group("");
  if (form.commas) option->delimiter(',');
  if (form.last_wins) option->take_last();
}

}  // namespace

int run(const CommandLine& line, int argc, char** argv) {
  CLI::App app{line.about, line.name};
  app.require_subcommand(1);
  app.set_version_flag("--version", line.version);
  app.failure_message(CLI::FailureMessage::help);
  std::map<std::string, CLI::App*> groups;
  std::vector<CLI::App*> parsers;
  for (const Command& command : line.commands) {
    const std::size_t blank = command.path.find(' ');
    CLI::App* above = &app;
    if (blank != std::string::npos) {
      const std::string name = command.path.substr(0, blank);
      above = groups[name];
      if (above == nullptr) {
        const auto group = std::find_if(line.groups.begin(), line.groups.end(),
                                        [&](const CommandGroup& one) { return one.name == name; });
        above = groups[name] = app.add_subcommand(name, group->about);
        above->require_subcommand(1);
      }
    }
    CLI::App* parser = above->add_subcommand(
        blank == std::string::npos ? command.path : command.path.substr(blank + 1), command.about);
    parser->footer(command.footer);
    for (const Flag& flag : command.flags) add_flag(*parser, flag);
    parsers.push_back(parser);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  std::size_t named = 0;
  while (!parsers[named]->parsed()) ++named;
  return line.commands[named].run();
}

}  // namespace dibs::cli
