#pragma once
// How much of a selector is taken.

#include <cstddef>

namespace dibs::api {

/// Requirements and their values in one selector: every object of a list is held against all of
/// them.
inline constexpr std::size_t kMaxSelectorTerms = 1000;

}  // namespace dibs::api
