#pragma once
// "%s and %d".format([...]).

#include <string_view>

#include "cel/value.h"

namespace dibs::cel {

/// The text, or the error.
Value format_string(std::string_view format, const List& arguments);

}  // namespace dibs::cel
