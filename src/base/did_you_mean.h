#pragma once
// What somebody who mistyped a name may have meant.

#include <string>
#include <string_view>
#include <vector>

namespace dibs {

/// `; did you mean "serve"?` with the name that is nearest to the word: few letters are missing,
/// wrong, too many or in the wrong order, or it is a beginning that no other name has. "" where
/// none is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& names);

}  // namespace dibs
