#pragma once
// "Did you mean ...": the known names that look most like one that is not known.

#include <string>
#include <string_view>
#include <vector>

namespace dibs {

/// How many letters must be put in, taken out, changed or swapped with their neighbour to make `b`
/// of `a`; anything above `limit` comes back as limit + 1. The case of ASCII letters costs nothing.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

/// The candidates that are a plausible misspelling away from `name`, nearest first, at most `most`;
/// empty when none is near. Candidates equal to `name` are not among them.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates,
                                 std::size_t most = 3);

}  // namespace dibs
