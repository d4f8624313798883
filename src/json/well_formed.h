#pragma once
// Whether bytes are JSON, without making anything of them: for text that is passed on as it is.

#include <cstddef>
#include <string_view>

namespace dibs::json {

/// What parse() takes, at the same depths, and nothing around it.
bool is_well_formed(std::string_view text, std::size_t max_depth = 10000);

}  // namespace dibs::json
