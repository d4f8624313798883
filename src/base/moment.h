#pragma once
// A time as the API spells it, which may lie further away than Time can tell: the years 0 to 9999.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs {

struct Moment {
  static constexpr std::int64_t kFirst = -62'167'219'200;  // 0000-01-01T00:00:00Z
  static constexpr std::int64_t kLast = 253'402'300'799;   // 9999-12-31T23:59:59Z

  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
};

/// As parse_rfc3339() and parse_rfc3339_micro() (time.h); what an offset moves out of these years
/// becomes the first or last second of them.
Result<Moment> parse_moment(std::string_view text, bool micro);
std::string format_moment(Moment moment, bool micro);

}  // namespace dibs
