#pragma once
// The command line of a driver that is a program of its own.
//
// `--name value` or `--name=value`; a switch needs no value. Lists take several, with commas
// between them where the flag says so, and may be repeated. A variable counts where the flag is not
// given. What a value may be, and the words for one that it may not be, are base/flags.h.

#include <functional>
#include <string>
#include <string_view>

#include "base/flags.h"
#include "base/result.h"

namespace dibs::driver {

using flags::Flag;
using flags::Flags;

/// Sets what the flags point to. Errors (bad_request) name the flag. `variable` gives the value of
/// one, or null.
Result<> parse_flags(int argc, const char* const* argv,
                     const std::function<const char*(const char*)>& variable, const Flags& flags);

/// Rows of --help, under a title: name, type, what it is for, its default, its variable.
std::string help_of_flags(std::string_view title, const Flags& flags);

}  // namespace dibs::driver
