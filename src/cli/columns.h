#pragma once
// Text for terminals: in columns, as kubectl prints them, and free of what moves a cursor.

#include <string>
#include <string_view>
#include <vector>

namespace dibs::cli {

/// With blanks for control characters, which others may have written into an object.
std::string in_one_line(std::string_view text);
/// Each cell in one line, three blanks between columns; the last one is as long as it is.
std::string in_columns(std::vector<std::vector<std::string>> rows);

}  // namespace dibs::cli
