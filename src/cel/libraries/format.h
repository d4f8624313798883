#pragma once
// "%s and %d".format([...]).
//
// The extension has two manners of it. Up to its third version (the one in Kubernetes) elements of
// lists and maps look like literals of the language, and numbers with a fraction look as they do in
// American English; from the fourth on everything is plain.

#include <string>
#include <string_view>

#include "cel/type.h"
#include "cel/value.h"

namespace dibs::cel {

enum class FormatStyle : std::uint8_t { literal, plain };

/// The text, or the error.
Value format_string(std::string_view format, const List& arguments, FormatStyle style);

/// Reads the clause behind the percent sign at `at`, moving `at` behind it. An error, or empty.
struct FormatClause {
  char verb = 's';
  int precision = 6;
};
std::string read_clause(std::string_view format, std::size_t& at, FormatClause& clause);

/// What a clause demands of its argument, when a value of the static type cannot meet it; else "".
std::string_view broken_format_rule(char verb, const Type& type, FormatStyle style);

}  // namespace dibs::cel
