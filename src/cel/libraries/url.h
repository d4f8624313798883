#pragma once
// What is wrong with a text as an absolute URL or path.

#include <string>
#include <string_view>

namespace dibs::cel {

/// Empty when nothing is, else as Go says it: `parse "x": invalid URI for request`.
std::string url_problem(std::string_view text);

}  // namespace dibs::cel
