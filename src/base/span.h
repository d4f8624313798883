#pragma once
// Spans of time that somebody else has written.

#include <algorithm>
#include <cstdint>

#include "base/time.h"

namespace dibs {

/// At most a century either way: what is longer would not fit into a Duration, or not once it is
/// added to a Time, and come out as its opposite.
inline Duration seconds_of(std::int64_t seconds) {
  constexpr std::int64_t kCentury = 100LL * 365 * 24 * 3600;
  return std::chrono::seconds(std::clamp(seconds, -kCentury, kCentury));
}

}  // namespace dibs
