#pragma once
// What a check comes to: a word of what is worth knowing, or what was expected and not seen.

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/strings.h"

namespace dibs::trial {

using Verdict = Result<std::string>;

inline Error unmet(std::string_view expected, std::string_view seen) {
  return Error::invalid(cat("expected ", expected, "; seen: ", seen));
}

}  // namespace dibs::trial
