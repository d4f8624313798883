#pragma once
// Patterns of RE2, compiled once per thread and kept for the next use.

#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace dibs::cel {

/// Null, with the words of Go's compiler in `message`, when the pattern is not valid. Good until
/// the thread's next call.
const re2::RE2* find_pattern(std::string_view pattern, std::string& message);

}  // namespace dibs::cel
