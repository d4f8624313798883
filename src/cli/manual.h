#pragma once
// What the table of commands and flags says of itself: `help`, `version`, `man` and `completion`.
// A command that joins the table is in all of them.

#include <string>

#include "cli/command_line.h"

namespace dibs::cli {

/// Adds the four of them to the end of the table.
void add_manual_commands(CommandLine& line);

/// A page of section 1 in roff: of the whole for "", of a command, or of a group with its commands.
/// "" where there is none.
std::string man_page(const CommandLine& line, const std::string& path);
/// What the page's file is called: dibs.1, dibs-up.1, dibs-driver-gpu.1.
std::string man_file(const CommandLine& line, const std::string& path);
/// All commands and flags in one page of Markdown.
std::string markdown_reference(const CommandLine& line);

/// A script for "bash", "zsh" or "fish".
std::string completion_script(const CommandLine& line, const std::string& shell);

}  // namespace dibs::cli
